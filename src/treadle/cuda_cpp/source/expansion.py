"""Macro expansion.

Pending tokens are on a stack with the next one on top. A macro's replacement is pushed with a mark
under it: until the mark is reached, the macro's own name is painted, so that it is never expanded
again ([cpp.rescan]). A token of a replacement has the location of the macro's use; arguments keep
their own locations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.cuda_cpp.source.diagnostics import Diagnostics
from treadle.cuda_cpp.source.lexer import single
from treadle.cuda_cpp.source.macros import Macro, Part
from treadle.cuda_cpp.source.tokens import CHARACTER, IDENTIFIER, STRING, Token

PAINTED = "painted"  # an identifier that is never expanded again
_MARK = "mark"  # the end of the replacement of the macro that the token names
_MOST_NESTED = 200  # arguments in arguments

More = Callable[[], "list[Token] | None"]


class Expander:
    """Expands macros by the current contents of the table `macros`."""

    def __init__(self, macros: dict[str, Macro], diagnostics: Diagnostics) -> None:
        self.macros = macros
        self.diagnostics = diagnostics
        self._open: set[str] = set()  # the macros whose replacement is being read
        self._nested = 0
        self._more: More | None = None

    def expand(self, tokens: Sequence[Token], more: More | None = None) -> list[Token]:
        """The tokens with all macros expanded.

        `more` returns further tokens (or None) where a macro's arguments continue after the last.
        """
        outer, self._more = self._more, more
        macros = self.macros
        pending = list(reversed(tokens))
        out: list[Token] = []
        while pending:
            token = pending.pop()
            kind = token[0]
            if kind == IDENTIFIER:
                macro = macros.get(token[1])
                if macro is None:
                    out.append(token)
                elif token[1] in self._open:
                    out.append(_painted(token))
                else:
                    self._use(macro, token, pending, out)
            elif kind == _MARK:
                self._open.discard(token[1])
            else:
                out.append(token)
        self._more = outer
        return out

    def following(self, pending: list[Token], beyond: bool = False) -> Token | None:
        """The next token, which is not consumed; None at the end of the text up to a directive.

        `beyond`: the search continues after the directive.
        """
        while True:
            while pending and pending[-1].kind == _MARK:
                self._open.discard(pending.pop().text)
            if pending:
                return pending[-1]
            more = self._more() if beyond and self._more else None
            if not more:
                return None
            pending.extend(reversed(more))

    def _use(self, macro: Macro, token: Token, pending: list[Token], out: list[Token]) -> None:
        """Expand one use of a macro."""
        if macro.special:
            out.extend(macro.special(self, token, pending))
            return
        if macro.parameters is None:
            made = self._substituted(macro.parts, [], macro, token)
        else:
            following = self.following(pending)
            if following is None or following.text != "(":
                out.append(token)
                return
            arguments = self.arguments(macro, token, pending)
            if arguments is None:
                out.append(_painted(token))
                return
            made = self._substituted(macro.parts, [_Argument(a) for a in arguments], macro, token)
        if made:
            made[0] = _respaced(made[0], token.spaced)
        self._open.add(macro.name)
        pending.append(Token(_MARK, macro.name, token.file, token.line, token.column))
        pending.extend(reversed(made))

    def arguments(
        self, macro: Macro, token: Token, pending: list[Token]
    ) -> list[list[Token]] | None:
        """The arguments at a `(`, which are consumed; None after an error, which is recorded."""
        parameters = macro.parameters or ()
        named = len(parameters) - macro.variadic
        pending.pop()
        arguments: list[list[Token]] = [[]]
        depth = taken = 0
        while (following := self.following(pending, beyond=True)) is not None:
            pending.pop()
            taken += 1
            text = following.text
            if text == ")":
                if not depth:
                    break
                depth -= 1
            elif text == "(":
                depth += 1
            elif text == "," and not depth and (not macro.variadic or len(arguments) <= named):
                arguments.append([])
                continue
            elif following.kind == IDENTIFIER and text in self._open:
                following = _painted(following)
            arguments[-1].append(following)
        else:
            self.diagnostics.error(f"the arguments of macro {macro.name} have no closing )", token)
            return None
        self.diagnostics.charge(taken, token)
        if not parameters and not arguments[0] and len(arguments) == 1:
            return []
        if macro.variadic and len(arguments) == named:
            arguments.append([])
        if len(arguments) != len(parameters):
            self.diagnostics.error(
                f"macro {macro.name} takes {_count(named, macro.variadic)}, not {len(arguments)}",
                token,
            )
            return None
        return arguments

    def _substituted(
        self, parts: tuple[Part, ...], arguments: list[_Argument], macro: Macro, use: Token
    ) -> list[Token]:
        """A replacement list with the arguments substituted."""
        if macro.simple:
            self.diagnostics.charge(len(parts), use)
            return [_placed(part.token, use) for part in parts]
        made: list[Token] = []
        filled = False  # whether the operand before gave a token, which ## can paste
        for i, part in enumerate(parts):
            joins = i + 1 < len(parts) and parts[i + 1].joined
            tokens = self._operand(part, arguments, macro, use, part.joined or joins)
            if not part.joined:
                made += tokens
                filled = bool(tokens)
                continue
            if self._is_comma_before_variadic(parts, i, macro):
                if not tokens and made and made[-1].text == ",":
                    made.pop()
                made += tokens
                filled = bool(tokens)
                continue
            if tokens and filled:
                made += self._pasted(made.pop(), tokens[0], use)
                tokens = tokens[1:]
            made += tokens
            filled = filled or bool(tokens)
        self.diagnostics.charge(len(made), use)
        return made

    def _operand(
        self, part: Part, arguments: list[_Argument], macro: Macro, use: Token, raw: bool
    ) -> list[Token]:
        """The tokens of one part of a replacement list."""
        if part.optional is not None:
            if not self._expanded(arguments[-1], use):
                return []
            tokens = self._substituted(part.optional, arguments, macro, use)
        elif part.parameter is None:
            return [_placed(part.token, use)]
        elif part.stringify:
            text = _stringified(arguments[part.parameter].tokens)
            self.diagnostics.charge_text(text, use)
            return [Token(STRING, text, use.file, use.line, use.column, part.token.spaced)]
        else:
            argument = arguments[part.parameter]
            tokens = argument.tokens if raw else self._expanded(argument, use)
        if not tokens:
            return []
        return [_respaced(tokens[0], part.token.spaced), *tokens[1:]]

    @staticmethod
    def _is_comma_before_variadic(parts: tuple[Part, ...], i: int, macro: Macro) -> bool:
        """Whether `, ##` stands before the last parameter of a variadic macro.

        The comma is removed if no argument is passed: GNU's extension, which nvcc has.
        """
        return (
            macro.variadic
            and parts[i].parameter == len(macro.parameters or ()) - 1
            and parts[i - 1].parameter is None
            and parts[i - 1].token.text == ","
        )

    def _expanded(self, argument: _Argument, use: Token) -> list[Token]:
        """An argument with its macros expanded, once."""
        if argument.expanded is None:
            if self._nested == _MOST_NESTED:
                raise self.diagnostics.give_up(
                    f"macros in macro arguments are nested more than {_MOST_NESTED} deep", use
                )
            self._nested += 1
            argument.expanded = self.expand(argument.tokens)
            self._nested -= 1
        return argument.expanded

    def _pasted(self, left: Token, right: Token, use: Token) -> list[Token]:
        """Two tokens pasted by ##."""
        text = left.text + right.text
        kind = single(text)
        if kind is None:
            self.diagnostics.error(f"## cannot join {left.text} and {right.text} to one token", use)
            return [left, right]
        self.diagnostics.charge_text(text, use)
        return [Token(kind, text, use.file, use.line, use.column, left.spaced)]


class _Argument:
    """One argument as written, and expanded if that is needed."""

    __slots__ = ("expanded", "tokens")

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.expanded: list[Token] | None = None


def is_word(token: Token) -> bool:
    """Whether it is an identifier, painted or not."""
    return token.kind in (IDENTIFIER, PAINTED)


def _painted(token: Token) -> Token:
    return Token(PAINTED, *token[1:])


def _placed(token: Token, use: Token) -> Token:
    """A token of a macro's definition with the location of the macro's use."""
    return Token(token.kind, token.text, use.file, use.line, use.column, token.spaced)


def _respaced(token: Token, spaced: bool) -> Token:
    return token if token.spaced == spaced else Token(*token[:5], spaced)


def _stringified(tokens: list[Token]) -> str:
    """The string literal that # makes: the tokens as written, with single spaces."""
    words = []
    for i, token in enumerate(tokens):
        text = token.text
        if token.kind in (STRING, CHARACTER):
            text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        words.append(" " + text if i and token.spaced else text)
    return '"' + "".join(words) + '"'


def _count(named: int, variadic: bool) -> str:
    least = "at least " if variadic else ""
    return f"{least}{named or 'no'} argument{'' if named == 1 else 's'}"
