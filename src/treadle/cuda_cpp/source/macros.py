"""Macros, and the parsing of their definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from treadle.cuda_cpp.source.diagnostics import Diagnostics
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token

_VARIADIC = "__VA_ARGS__"
_OPTIONAL = "__VA_OPT__"
_RESERVED = ("defined", _VARIADIC, _OPTIONAL)


@dataclass(frozen=True, slots=True)
class Part:
    """One operand of a replacement list.

    It is a token (`token`), a parameter (its index is `parameter`), a parameter after # (with
    `stringify`), or the contents of __VA_OPT__ (`optional`). `joined`: it follows ##.
    """

    token: Token
    parameter: int | None = None
    stringify: bool = False
    optional: tuple[Part, ...] | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Macro:
    """`parameters` is None for an object-like macro; `special` computes a replacement.

    `simple`: the replacement list has plain tokens only. `words` are its tokens as written.
    """

    name: str
    parts: tuple[Part, ...] = ()
    parameters: tuple[str, ...] | None = None
    variadic: bool = False
    special: Special | None = None
    words: tuple[Token, ...] = ()
    simple: bool = False


class Expanding(Protocol):
    """What a special macro uses of the expander (`expansion.Expander`)."""

    macros: dict[str, Macro]
    diagnostics: Diagnostics

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """The tokens with all macros expanded."""

    def following(self, pending: list[Token]) -> Token | None:
        """The next token, which is not consumed; None at the end."""

    def arguments(
        self, macro: Macro, token: Token, pending: list[Token]
    ) -> list[list[Token]] | None:
        """The arguments at a `(`, which are consumed; None after an error, which is recorded."""


Special = Callable[[Expanding, Token, list[Token]], list[Token]]


def defined_macro(tokens: list[Token], directive: Token, diagnostics: Diagnostics) -> Macro | None:
    """The macro that a #define line defines; None after an error, which is recorded."""
    if not tokens or tokens[0].kind != IDENTIFIER:
        diagnostics.error("#define needs a name to define", tokens[0] if tokens else directive)
        return None
    name = tokens[0]
    if name.text in _RESERVED:
        diagnostics.error(f"{name.text} cannot be defined as a macro", name)
        return None
    parameters: tuple[str, ...] | None = None
    variadic = False
    body = tokens[1:]
    if body and body[0].text == "(" and not body[0].spaced:
        end = next((i for i, token in enumerate(body) if token.text == ")"), None)
        if end is None:
            diagnostics.error(f"the parameters of macro {name.text} have no closing )", body[0])
            return None
        listed = _parameters(body[1:end], name, diagnostics)
        if listed is None:
            return None
        parameters, variadic = listed
        body = body[end + 1 :]
    parts = _parts(body, parameters, variadic, diagnostics)
    if parts is None:
        return None
    simple = all(part.parameter is None and not part.optional and not part.joined for part in parts)
    return Macro(name.text, parts, parameters, variadic, None, tuple(body), simple)


def _parameters(
    tokens: list[Token], name: Token, diagnostics: Diagnostics
) -> tuple[tuple[str, ...], bool] | None:
    """The parameters of a macro, and whether it is variadic."""
    names: dict[str, None] = {}
    variadic = False
    for i, token in enumerate(tokens):
        between = i % 2 == 1  # where a comma is expected, or ... after a name
        if variadic:
            diagnostics.error(f") is expected after ... in macro {name.text}", token)
            return None
        if token.text == "...":
            variadic = True
            if not between:
                names[_VARIADIC] = None
        elif between and token.text == "," and i + 1 < len(tokens):
            continue
        elif between:
            diagnostics.error(
                f"a comma and a name, or ), is expected among the parameters of macro {name.text}",
                token,
            )
            return None
        elif token.kind == IDENTIFIER and token.text not in names and token.text not in _RESERVED:
            names[token.text] = None
        else:
            diagnostics.error(
                f"{token.text} cannot be a parameter of macro {name.text}: a name is expected, "
                "each once",
                token,
            )
            return None
    return tuple(names), variadic


def _parts(
    body: list[Token], parameters: tuple[str, ...] | None, variadic: bool, diagnostics: Diagnostics
) -> tuple[Part, ...] | None:
    """The operands of a replacement list."""
    numbers = {name: i for i, name in enumerate(parameters or ())}
    parts: list[Part] = []
    joined = False
    i = 0
    while i < len(body):
        token = body[i]
        i += 1
        if token.text == "##":
            if not parts or joined or i == len(body):
                diagnostics.error("## needs an operand on both sides", token)
                return None
            joined = True
            continue
        if token.text == "#" and parameters is not None:
            number = numbers.get(body[i].text) if i < len(body) else None
            if number is None:
                diagnostics.error("# is not followed by a parameter of the macro", token)
                return None
            i += 1
            parts.append(Part(token, number, stringify=True, joined=joined))
        elif token.text == _OPTIONAL and variadic:
            end = _closing(body, i)
            if end is None:
                diagnostics.error(f"{_OPTIONAL} needs ( and ) around its contents", token)
                return None
            inner = body[i + 1 : end]
            if any(word.text == _OPTIONAL for word in inner):
                diagnostics.error(f"{_OPTIONAL} cannot hold another {_OPTIONAL}", token)
                return None
            held = _parts(inner, parameters, variadic, diagnostics)
            if held is None:
                return None
            parts.append(Part(token, optional=held, joined=joined))
            i = end + 1
        elif token.text == _VARIADIC and _VARIADIC not in numbers:
            diagnostics.error(
                f"{_VARIADIC} is only allowed in a macro whose parameters end in ...", token
            )
            return None
        else:
            parts.append(Part(token, numbers.get(token.text), joined=joined))
        joined = False
    return tuple(parts)


def _closing(tokens: list[Token], opening: int) -> int | None:
    """The index of the parenthesis that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].text == "(") - (tokens[i].text == ")")
        if depth <= 0:
            return i if i > opening else None
    return None
