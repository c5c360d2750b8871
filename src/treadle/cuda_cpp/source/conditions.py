"""The integer expressions of #if and #elif, in 64 bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from treadle.cuda_cpp.source.diagnostics import Diagnostics
from treadle.cuda_cpp.source.expansion import Expander, is_word
from treadle.cuda_cpp.source.macros import Expanding, Macro, Special
from treadle.cuda_cpp.source.tokens import CHARACTER, END, NUMBER, STRING, Token

FindsHeader = Callable[[str, bool, Token], bool]  # name, whether quoted, place


class _Value(NamedTuple):
    """`number` is in the range of its type: uint64 if `unsigned`, else int64."""

    number: int
    unsigned: bool = False


class _Wrong(Exception):
    """The condition is ill-formed."""

    def __init__(self, message: str, token: Token) -> None:
        super().__init__(message)
        self.message = message
        self.token = token


HAS_INCLUDE = "__has_include"

_ZERO = _Value(0)
_MOST_NESTED = 100  # parentheses in parentheses

_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6,
    "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip

_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}

_INTEGER = re.compile(
    r"(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9]\d*))"
    r"(?P<suffix>[uU]?(?:l|L|ll|LL|z|Z)?|(?:l|L|ll|LL|z|Z)[uU])"
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))|([\s\S])")
_LONGEST_NUMBER = 80  # characters


def evaluate(
    tokens: list[Token],
    directive: Token,
    macros: dict[str, Macro],
    finds_header: FindsHeader,
    diagnostics: Diagnostics,
) -> bool:
    """Whether the condition holds; False after an error, which is recorded."""
    special = {
        "defined": Macro("defined", special=_defined),
        HAS_INCLUDE: Macro(HAS_INCLUDE, special=_has_include(finds_header)),
    }
    before = {name: macros[name] for name in special if name in macros}
    macros.update(special)
    try:
        words = Expander(macros, diagnostics).expand(tokens)
        end = Token(END, "", directive.file, directive.line, directive.column)
        return _Condition([*words, end], directive).result()
    except _Wrong as wrong:
        diagnostics.error(f"#{directive.text}: {wrong.message}", wrong.token)
        return False
    finally:
        for name in special:
            del macros[name]
        macros.update(before)


def _has_include(finds_header: FindsHeader) -> Special:
    """`__has_include(<name>)` and `__has_include("name")`."""

    def special(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
        words = _parenthesized(expander, token, pending)
        if words and words[0].text != "<" and words[0].kind != STRING:
            words = expander.expand(words)
        if len(words) == 1 and words[0].kind == STRING:
            return [_number(token, finds_header(words[0].text.strip('"'), True, token))]
        if len(words) > 2 and words[0].text == "<" and words[-1].text.endswith(">"):
            name = "".join(word.text for word in words)[1:-1]
            return [_number(token, finds_header(name, False, token))]
        raise _Wrong('__has_include needs (<name>) or ("name")', token)

    return special


def _defined(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
    """`defined name` and `defined(name)`."""
    following = expander.following(pending)
    if following is not None and following.text == "(":
        words = _parenthesized(expander, token, pending)
    else:
        words = [pending.pop()] if following is not None else []
    if len(words) != 1 or not is_word(words[0]):
        raise _Wrong("defined needs a name", words[0] if words else token)
    return [_number(token, words[0].text in expander.macros)]


def _parenthesized(expander: Expanding, token: Token, pending: list[Token]) -> list[Token]:
    """The tokens between the parentheses that follow, which are consumed."""
    words: list[Token] = []
    following = expander.following(pending)
    if following is None or following.text != "(":
        raise _Wrong(f"{token.text} needs (", token)
    depth = 0
    while expander.following(pending) is not None:
        word = pending.pop()
        depth += (word.text == "(") - (word.text == ")")
        if not depth:
            return words[1:]
        words.append(word)
    raise _Wrong(f"{token.text} has no closing )", token)


def _number(token: Token, value: bool) -> Token:
    return Token(NUMBER, str(int(value)), *token[2:])


class _Condition:
    """A parser that evaluates while it parses; `skipped` operands may divide by zero."""

    def __init__(self, tokens: list[Token], directive: Token) -> None:
        self.tokens = tokens
        self.directive = directive
        self.place = 0
        self.nested = 0

    def result(self) -> bool:
        if len(self.tokens) == 1:
            raise _Wrong("there is no condition", self.directive)
        value = self.conditional(skipped=False)
        left = self.tokens[self.place]
        if left.kind != END:
            raise _Wrong(f"an operator is expected, not {left.text}", left)
        return value.number != 0

    def taken(self, text: str) -> bool:
        """Whether the next token is `text`, which is then consumed."""
        if self.tokens[self.place].text == text and self.tokens[self.place].kind != END:
            self.place += 1
            return True
        return False

    def conditional(self, skipped: bool) -> _Value:
        """A whole expression. Its nesting is limited, as each level takes several Python frames."""
        self.nested += 1
        if self.nested > _MOST_NESTED:
            raise _Wrong(f"nested more than {_MOST_NESTED} levels deep", self.directive)
        condition = self.binary(1, skipped)
        if self.taken("?"):
            holds = condition.number != 0
            first = self.conditional(skipped or not holds)
            if not self.taken(":"):
                raise _Wrong("? has no :", self.tokens[self.place])
            second = self.conditional(skipped or holds)
            chosen = first if holds else second
            condition = _wrapped(chosen.number, first.unsigned or second.unsigned)
        self.nested -= 1
        return condition

    def binary(self, lowest: int, skipped: bool) -> _Value:
        """Operators that bind at least as tightly as `lowest`."""
        left = self.unary(skipped)
        while True:
            operator = self.tokens[self.place]
            precedence = _PRECEDENCE.get(operator.text, 0)
            if precedence < lowest:
                return left
            self.place += 1
            decided = (operator.text == "&&" and not left.number) or (
                operator.text == "||" and left.number != 0
            )
            right = self.binary(precedence + 1, skipped or decided)
            left = _combined(operator, left, right, skipped)

    def unary(self, skipped: bool) -> _Value:
        operators = []
        while (token := self.tokens[self.place]).text in ("!", "~", "-", "+"):
            operators.append(token.text)
            self.place += 1
        value = self.primary(skipped)
        for operator in reversed(operators):
            if operator == "!":
                value = _Value(int(not value.number))
            elif operator == "~":
                value = _wrapped(~value.number, value.unsigned)
            elif operator == "-":
                value = _wrapped(-value.number, value.unsigned)
        return value

    def primary(self, skipped: bool) -> _Value:
        token = self.tokens[self.place]
        self.place += 1
        if token.text == "(":
            value = self.conditional(skipped)
            if not self.taken(")"):
                raise _Wrong("a ( has no )", token)
            return value
        if token.kind == NUMBER:
            return _integer(token)
        if token.kind == CHARACTER:
            return _character(token)
        if is_word(token):
            if self.tokens[self.place].text == "(":
                raise _Wrong(f"{token.text} is not a macro, so it cannot be called here", token)
            return _Value(int(token.text == "true"))  # any other name is 0
        self.place -= 1
        if token.kind == END:
            raise _Wrong("the condition ends too early", self.directive)
        raise _Wrong(f"a value is expected, not {token.text}", token)


def _wrapped(number: int, unsigned: bool) -> _Value:
    number &= (1 << 64) - 1
    if not unsigned and number >> 63:
        number -= 1 << 64
    return _Value(number, unsigned)


def _combined(operator: Token, left: _Value, right: _Value, skipped: bool) -> _Value:
    """`left operator right`."""
    text = operator.text
    if text == "&&":
        return _Value(int(left.number != 0 and right.number != 0))
    if text == "||":
        return _Value(int(left.number != 0 or right.number != 0))
    if text in ("<<", ">>"):
        return _shifted(left, right, text)
    unsigned = left.unsigned or right.unsigned
    a, b = _wrapped(left.number, unsigned).number, _wrapped(right.number, unsigned).number
    if text in _COMPARISONS:
        return _Value(int(_COMPARISONS[text](a, b)))
    if text in _ARITHMETIC:
        return _wrapped(_ARITHMETIC[text](a, b), unsigned)
    if not b:
        if skipped:
            return _ZERO
        raise _Wrong("division by zero", operator)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # rounds towards zero
    return _wrapped(quotient if text == "/" else a - quotient * b, unsigned)


def _shifted(left: _Value, right: _Value, text: str) -> _Value:
    """A shift; a negative count shifts the other way, as in GCC."""
    by = right.number if text == "<<" else -right.number
    by = max(min(by, 64), -64)
    return _wrapped(left.number << by if by >= 0 else left.number >> -by, left.unsigned)


def _integer(token: Token) -> _Value:
    """The value of a number, which must be an integer of at most 64 bits."""
    text = token.text.replace("'", "")
    match = _INTEGER.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if match is None:
        raise _Wrong(f"{token.text[:_LONGEST_NUMBER]} is not an integer", token)
    base = next(name for name in _BASES if match[name])
    number = int(match[base], _BASES[base])
    if number >> 64:
        raise _Wrong(f"{token.text} does not fit in 64 bits", token)
    return _wrapped(number, "u" in match["suffix"].lower() or bool(number >> 63))


def _character(token: Token) -> _Value:
    """The value of a character literal; several characters are the bytes of an int, as in GCC."""
    prefix, _, inner = token.text.partition("'")
    values = []
    for escape in _ESCAPE.finditer(inner[:-1][:_LONGEST_NUMBER]):
        hexadecimal, octal, letter, plain = escape.groups()
        if hexadecimal or octal:
            values.append(int(hexadecimal or octal, 16 if hexadecimal else 8) & 0xFFFFFFFF)
        elif letter:
            values.append(_ESCAPES.get(letter, ord(letter)))
        elif prefix:
            values.append(ord(plain))
        else:
            values += plain.encode("utf-8", "surrogatepass")
    if prefix:
        return _Value(values[-1], prefix != "L")
    if len(values) == 1:
        return _Value((values[0] & 255 ^ 128) - 128)
    number = 0
    for value in values:
        number = (number << 8 | value & 255) & 0xFFFFFFFF
    return _Value(number - (1 << 32) if number >> 31 else number)
