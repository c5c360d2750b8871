"""Reading types, places and expressions of the IR's text; `ir.parser` reads statements."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import NoReturn, TypeVar

from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.printer import BINARY_SIGNS, RESERVED, UNARY_SIGNS
from treadle.ir.rules import binary_type, intrinsic_type
from treadle.ir.tokens import Token

_T = TypeVar("_T")
_BINARY = {sign: op for op, sign in BINARY_SIGNS.items()}
_UNARY = {sign: op for op, sign in UNARY_SIGNS.items()}


class ExpressionParser:
    """Tokens with what is declared so far, and what reads an expression from them."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.structs: dict[str, t.Struct] = {}
        self.functions: dict[str, t.Type] = {}  # results
        self.variables: dict[str, t.Type] = {}  # of the function being read
        self.memories: dict[str, t.Type] = {}

    # --- tokens ---

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def peek(self, *texts: str) -> bool:
        token = self.tokens[self.at]
        return token.text in texts and token.kind in ("sign", "name")

    def accept(self, text: str) -> bool:
        if self.peek(text):
            self.at += 1
            return True
        if text == ">" and self.peek(">>"):  # two closing brackets of nested types
            token = self.next
            self.tokens[self.at] = Token("sign", ">", token.span)
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.next.text!r}")

    def fail(self, message: str, span: Span | None = None) -> NoReturn:
        raise CompileError(message, span or self.next.span)

    def name(self, what: str) -> str:
        """A name; `what` says in a message what it would be the name of."""
        token = self.take()
        if token.kind == "quoted":
            body, _, _ = token.text[1:].rpartition("`")
            return str(json.loads(f'"{body}"'))
        if token.kind != "name" or token.text.split(".", 1)[0] in RESERVED:
            self.fail(f"expected the name of {what}, found {token.text!r}", token.span)
        return token.text

    def word(self, allowed: tuple[str, ...], what: str) -> str:
        token = self.take()
        if token.text not in allowed:
            self.fail(f"{what} is one of {', '.join(allowed)}, not {token.text!r}", token.span)
        return token.text

    def integer(self) -> int:
        negative = self.accept("-")
        token = self.take()
        if token.kind != "number" or not token.text.isdigit():
            self.fail(f"expected an integer, found {token.text!r}", token.span)
        return -int(token.text) if negative else int(token.text)

    def string(self) -> str:
        token = self.take()
        if token.kind != "string":
            self.fail(f"expected a string, found {token.text!r}", token.span)
        return str(json.loads(token.text))

    def skip_lines(self) -> None:
        while self.next.kind == "newline":
            self.at += 1

    def place(self, default: Span) -> Span:
        """The place written here, or `default`."""
        if self.next.kind != "span":
            return default
        text = self.take().text[1:]
        if text == "-":
            return NOWHERE
        file, line, rest = text.rsplit(":", 2)
        column, end = rest.split("-")
        return Span(str(json.loads(file)), int(line), int(column), int(end))

    def end_line(self) -> None:
        if self.next.kind == "newline":
            self.skip_lines()
        elif not self.peek("}") and self.next.kind != "end":
            self.fail(f"expected the end of the statement, found {self.next.text!r}")

    def separated(self, read: Callable[[], _T], close: str) -> list[_T]:
        """What `read` reads, with commas between, up to and including `close`."""
        found: list[_T] = []
        while not self.accept(close):
            if found:
                self.expect(",")
            found.append(read())
        return found

    def type(self) -> t.Type:
        token = self.take()
        word = token.text
        if word in t.SCALARS:
            return t.SCALARS[word]
        if word == "void":
            return t.VOID
        if word in ("vec2", "vec3", "vec4"):
            self.expect("<")
            at = self.next.span
            element = self.type()
            if not isinstance(element, t.Scalar):
                self.fail(f"a vector is made of numbers, not {element}", at)
            self.expect(">")
            return t.Vector(element, int(word[3]))
        if word == "array":
            self.expect("<")
            inner = self.type()
            self.expect(",")
            length = self.integer()
            self.expect(">")
            return t.Array(inner, length)
        if word in self.structs:
            return self.structs[word]
        raise CompileError(f"{word!r} is not a type declared above", token.span)

    # --- places ---

    def assigned_place(self) -> n.Place:
        span = self.next.span
        return self.path(self.name("a variable or memory"), span)

    def memory_place(self) -> n.MemoryPlace:
        span = self.next.span
        place = self.path(self.name("a memory"), span)
        if isinstance(place, n.Variable):
            self.fail(f"{place.name!r} is a variable: a place in memory is expected here", span)
        return place

    def path(self, name: str, span: Span) -> n.Place:
        """The place that starts with `name`: a variable or memory, then fields and items."""
        place: n.Place
        if name in self.variables:
            place = n.Variable(name, self.variables[name], span)
        elif name in self.memories:
            type = self.type() if self.accept("@") else self.memories[name]
            self.expect("[")
            place = n.Element(name, self.expression(), type, self.checks(), span)
        else:
            self.fail(f"{name!r} is not declared", span)
        return self.parts(place, span)

    def parts(self, place: n.Place, span: Span) -> n.Place:
        """The part of a place that fields and items, read here, lead to."""
        while self.peek("->", "["):
            if self.accept("->"):
                place = n.Member(place, *self.member(place.type), span)
                continue
            if not isinstance(place.type, (t.Array, t.Vector)):
                self.fail(f"only an array or a vector has items, not {place.type}")
            self.expect("[")
            place = n.Item(place, self.expression(), place.type.element, self.checks(), span)
        return place

    def member(self, type: t.Type) -> tuple[str, t.Type]:
        """A field's name, read here, with the type it has in `type`."""
        at = self.next.span
        field = self.name("a field")
        try:
            return field, t.member_type(type, field)
        except KeyError:
            self.fail(f"{type} has no {field!r}", at)

    def checks(self) -> tuple[n.Check, ...]:
        """The checks behind a semicolon, up to and including the closing bracket."""
        if not self.accept(";"):
            self.expect("]")
            return ()
        found: list[n.Check] = []
        while not self.accept("]"):
            if found:
                self.expect(",")
            axis = len(found)
            if self.next.text == "axis" and self.tokens[self.at + 1].kind == "number":
                self.at += 1
                axis = self.integer()
                self.expect(":")
            index = self.expression()
            expected = self.accept("within")
            if not expected:
                self.expect("in")
            bound = self.expression()
            of = self.string() if self.accept("of") else ""
            found.append(n.Check(index, bound, axis, expected, of))
        return tuple(found)

    # --- expressions ---

    def expression(self) -> n.Expression:
        span = self.next.span
        left = self.primary()
        if self.next.kind != "sign" or self.next.text not in _BINARY:
            return left
        op = _BINARY[self.take().text]
        right = self.primary()
        if self.next.kind == "sign" and self.next.text in _BINARY:
            self.fail("write parentheses around the inner operation")
        return n.Binary(op, left, right, binary_type(op, left.type), span)

    def argument(self) -> n.Argument:
        span = self.next.span
        if not self.accept("&"):
            return self.expression()
        name = self.name("a memory")
        if name not in self.memories:
            self.fail(f"{name!r} is not a memory declared above", span)
        return n.MemoryReference(name, span)

    def primary(self) -> n.Expression:
        span = self.next.span
        token = self.next
        if token.kind == "number" or token.text in ("true", "false", "nan", "inf"):
            return self.constant(negative=False)
        if token.text in self.structs and self.tokens[self.at + 1].text == "{":
            self.at += 2
            return self.construct(self.structs[token.text], span)
        if token.kind == "quoted":
            return self.value(self.name("a variable"), span)
        if token.kind == "name":
            return self.named(span)
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return self.extracts(inner, span)
        if self.accept("@"):
            return self.extracts(self.call(span), span)
        if token.text in _UNARY and token.kind == "sign":
            self.at += 1
            following = self.next
            if token.text == "-" and (
                following.kind == "number" or following.text in ("nan", "inf")
            ):
                return self.constant(negative=True)
            operand = self.primary()
            return n.Unary(_UNARY[token.text], operand, operand.type, span)
        raise CompileError(f"expected a value, found {token.text!r}", span)

    def named(self, span: Span) -> n.Expression:
        """What starts with a plain name: a variable, memory, builtin, intrinsic, cast, value."""
        word = self.next.text
        first, _, axis = word.partition(".")
        opens = self.tokens[self.at + 1].text == "("
        if first in n.BUILTINS:
            self.at += 1
            if axis not in ("x", "y", "z") and first not in ("lane", "subgroup_size"):
                self.fail(f"write {first}.x, {first}.y or {first}.z", span)
            return n.Builtin(first, "xyz".index(axis) if axis else 0, span=span)
        if word in n.INTRINSICS and opens:
            self.at += 2
            operands = tuple(self.separated(self.expression, ")"))
            if not operands:
                self.fail(f"{word} needs an operand", span)
            return n.Intrinsic(word, operands, intrinsic_type(word, operands[0].type), span)
        if word == "select":
            self.at += 1
            self.expect("(")
            parts = self.separated(self.expression, ")")
            if len(parts) != 3:
                self.fail("select takes a condition and two values", span)
            return n.Select(parts[0], parts[1], parts[2], parts[1].type, span)
        if word == "bitcast":
            self.at += 1
            self.expect("<")
            type = self.type()
            self.expect(">")
            self.expect("(")
            operand = self.expression()
            self.expect(")")
            return n.Bitcast(operand, type, span)
        if word in t.SCALARS or word in ("vec2", "vec3", "vec4"):
            type = self.type()
            if self.accept("{"):
                return self.construct(type, span)
            self.expect("(")
            operand = self.expression()
            self.expect(")")
            return n.Cast(operand, type, span)
        return self.value(self.name("a value"), span)

    def construct(self, type: t.Type, span: Span) -> n.Expression:
        operands = tuple(self.separated(self.expression, "}"))
        return self.extracts(n.Construct(operands, type, span), span)

    def value(self, name: str, span: Span) -> n.Expression:
        """A variable, perhaps with a part taken of it, or a load."""
        if name in self.variables:
            return self.extracts(n.Variable(name, self.variables[name], span), span)
        place = self.path(name, span)
        assert not isinstance(place, n.Variable)
        return n.Load(place, place.type, span)

    def extracts(self, operand: n.Expression, span: Span) -> n.Expression:
        while self.accept("->"):
            operand = n.Extract(operand, *self.member(operand.type), span)
        if self.peek("[") and (place := _place_of(operand)) is not None:
            place = self.parts(place, span)
            return n.Load(place, place.type, span)  # type: ignore[arg-type]
        return operand

    def call(self, span: Span) -> n.Expression:
        at = self.next.span
        name = self.name("a function")
        if name not in self.functions:
            self.fail(f"{name!r} is not a function declared above", at)
        self.expect("(")
        arguments = tuple(self.separated(self.argument, ")"))
        return n.Call(name, arguments, self.functions[name], span)

    def constant(self, negative: bool) -> n.Constant:
        token = self.take()
        text = token.text
        value: bool | int | float
        type: t.Scalar
        if text in ("true", "false"):
            return n.Constant(text == "true", t.BOOL, token.span)
        if text == "nan" and self.accept("("):
            bits = self.take().text
            self.expect(")")
            value = struct.unpack("<d", struct.pack("<Q", int(bits, 16)))[0]
            type = t.F32
        elif text in ("nan", "inf") or "." in text or "e" in text.lower():
            value, type = float(text), t.F32
        else:
            value, type = int(text), t.I32
        if self.accept(":"):
            at = self.next.span
            name = self.take().text
            if name not in t.SCALARS:
                self.fail(f"{name!r} is not the type of a number", at)
            type = t.SCALARS[name]
        if type.is_float:
            value = float(value)
        return n.Constant(-value if negative else value, type, token.span)


def _place_of(value: n.Expression) -> n.Place | None:
    """The place whose value a variable, or a part of one, is."""
    if isinstance(value, n.Variable):
        return value
    if isinstance(value, n.Extract):
        base = _place_of(value.operand)
        return None if base is None else n.Member(base, value.name, value.type, value.span)
    return None
