"""Text back to kernels: the inverse of `ir.printer`, whose docstring shows the notation.

`#` starts a comment. Nested operations need their parentheses: there is no precedence to know.
A node without a place of its own (`!file:line:column-end`) gets its place in the text, so that
errors found later point at a line the reader has.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import NoReturn, TypeVar

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.printer import BINARY_SIGNS, RESERVED, UNARY_SIGNS
from treadle.ir.rules import binary_type, intrinsic_type
from treadle.ir.tokens import Token, tokens

_T = TypeVar("_T")
_BINARY = {sign: op for op, sign in BINARY_SIGNS.items()}
_UNARY = {sign: op for op, sign in UNARY_SIGNS.items()}


def from_text(text: str, file: str = "<ir>") -> n.Kernel:
    """The kernel that `text` describes. Raises CompileError with line and column in `text`."""
    try:
        return _Parser(tokens(text, file)).kernel()
    except CompileError as error:
        raise error.with_source(text) from None


class _Parser:
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

    # --- declarations ---

    def kernel(self) -> n.Kernel:
        functions: list[n.Function] = []
        self.skip_lines()
        while not self.peek("kernel"):
            if self.accept("struct"):
                self.struct()
            elif self.peek("function"):
                functions.append(self.function())
            else:
                self.fail(f"expected struct, function or kernel, found {self.next.text!r}")
            self.skip_lines()
        span = self.take().span
        name = self.name("the kernel")
        block = None
        if self.accept("block"):
            self.expect("(")
            block = Dim3.of(self.separated(self.integer, ")"))
        fastmath = self.accept("fastmath")
        self.expect("{")
        span = self.place(span)
        self.variables, self.memories = {}, {}
        self.skip_lines()
        buffers: list[n.Buffer] = []
        parameters: list[n.Parameter] = []
        while self.peek("buffer", "parameter"):
            if self.peek("buffer"):
                buffers.append(self.buffer())
            else:
                parameters.append(self.parameter())
            self.end_line()
        memories = self.owned_memories()
        body = self.rest_of_block()
        self.skip_lines()
        if self.next.kind != "end":
            self.fail(f"nothing follows the kernel, but here is {self.next.text!r}")
        return n.Kernel(
            name, tuple(buffers), tuple(parameters), body, memories, tuple(functions), block,
            fastmath, span,
        )  # fmt: skip

    def struct(self) -> None:
        token = self.next
        name = self.name("a struct")
        plain, _, number = name.rpartition("~")
        if token.kind == "quoted":
            plain, number = name, token.text.rpartition("`")[2]
        self.expect("{")
        self.skip_lines()
        fields: list[t.Field] = []
        while not self.accept("}"):
            field = self.name("a field")
            self.expect(":")
            fields.append(t.Field(field, self.type()))
            self.end_line()
        self.structs[token.text] = t.Struct(plain if number and plain else name, tuple(fields))

    def buffer(self) -> n.Buffer:
        span = self.take().span
        name = self.name("a buffer")
        self.expect(":")
        element = self.type()
        self.memories[name] = element
        return n.Buffer(name, element, self.place(span))

    def parameter(self) -> n.Parameter:
        span = self.take().span
        name = self.name("a parameter")
        self.expect(":")
        at = self.next.span
        type = self.type()
        if not isinstance(type, t.Scalar):
            self.fail(f"a parameter is one number, not {type}", at)
        origin: list[str | int] = []
        if self.accept("from"):
            self.expect("(")
            origin = self.separated(self.origin_part, ")")
        self.variables[name] = type
        return n.Parameter(name, type, tuple(origin), self.place(span))

    def origin_part(self) -> str | int:
        return self.string() if self.next.kind == "string" else self.integer()

    def owned_memories(self) -> tuple[n.Memory, ...]:
        memories: list[n.Memory] = []
        while self.peek("shared", "local"):
            token = self.take()
            name = self.name("a memory")
            self.expect(":")
            element = self.type()
            self.expect("[")
            length = None if self.accept("?") else self.integer()
            self.expect("]")
            self.memories[name] = element
            memory = n.Memory(name, "local", element, length, self.place(token.span))
            memories.append(replace(memory, space="shared") if token.text == "shared" else memory)
            self.end_line()
        return tuple(memories)

    def function(self) -> n.Function:
        span = self.take().span
        name = self.name("a function")
        self.variables, self.memories = {}, {}
        self.expect("(")
        parameters = self.separated(self.function_parameter, ")")
        self.expect("->")
        result = self.type()
        self.expect("{")
        span = self.place(span)
        self.functions[name] = result
        self.skip_lines()
        memories = self.owned_memories()
        body = self.rest_of_block()
        return n.Function(name, tuple(parameters), result, body, memories, span)

    def function_parameter(self) -> n.Variable | n.Buffer:
        span = self.next.span
        name = self.name("a parameter")
        self.expect(":")
        if self.accept("&"):
            self.memories[name] = element = self.type()
            return n.Buffer(name, element, span)
        self.variables[name] = type = self.type()
        return n.Variable(name, type, span)

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

    # --- statements ---

    def block(self) -> n.Block:
        self.expect("{")
        return self.rest_of_block()

    def rest_of_block(self) -> n.Block:
        statements: list[n.Statement] = []
        self.skip_lines()
        while not self.accept("}"):
            statements.append(self.statement())
            self.end_line()
        return tuple(statements)

    def statement(self) -> n.Statement:
        span = self.next.span
        reader = _STATEMENTS.get(self.next.text) if self.next.kind == "name" else None
        if reader is not None:
            self.at += 1
            return reader(self, span)
        if self.peek("atomic", "subgroup", "call"):
            return self.effect(span, None)
        place = self.assigned_place()
        self.expect("=")
        if self.peek("atomic", "subgroup", "call"):
            if not isinstance(place, n.Variable):
                self.fail("the result goes into a variable, not into a part of one", span)
            return self.effect(span, place)
        value = self.expression()
        return n.Assign(place, value, self.place(span))

    def effect(self, span: Span, result: n.Variable | None) -> n.Statement:
        kind = self.take().text
        if kind == "atomic":
            op = self.word(n.ATOMICS, "an atomic operation")
            target = self.memory_place()
            operands: list[n.Expression] = []
            while self.accept(","):
                operands.append(self.expression())
            return n.Atomic(op, target, tuple(operands), result, self.place(span))
        if kind == "subgroup":
            op = self.word(tuple(n.SUBGROUP_OPERATIONS), "a subgroup operation")
            values = [self.expression()]
            while self.accept(","):
                values.append(self.expression())
            if result is None:
                self.fail("a subgroup operation needs a variable for its result", span)
            return n.Subgroup(op, tuple(values), result, self.place(span))
        function = self.name("a function")
        self.expect("(")
        arguments = self.separated(self.argument, ")")
        return n.CallStatement(function, tuple(arguments), result, self.place(span))

    def declare(self, span: Span) -> n.Declare:
        variable = self.declared()
        value = self.expression() if self.accept("=") else None
        return n.Declare(variable, value, self.place(span))

    def declared(self) -> n.Variable:
        span = self.next.span
        name = self.name("a variable")
        self.expect(":")
        self.variables[name] = type = self.type()
        return n.Variable(name, type, span)

    def condition(self) -> n.Expression:
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        return condition

    def if_statement(self, span: Span) -> n.If:
        condition = self.condition()
        self.expect("{")
        span = self.place(span)
        then = self.rest_of_block()
        otherwise: n.Block = ()
        if self.accept("else"):
            inner = self.next.span
            otherwise = (self.if_statement(inner),) if self.accept("if") else self.block()
        return n.If(condition, then, otherwise, span)

    def for_statement(self, span: Span) -> n.For:
        variable = self.declared()
        self.expect("in")
        self.expect("range")
        self.expect("(")
        start = self.expression()
        self.expect(",")
        stop = self.expression()
        step = self.integer() if self.accept(",") else 1
        self.expect(")")
        unroll, parallel = self.accept("unroll"), self.accept("parallel")
        self.expect("{")
        span = self.place(span)
        return n.For(variable, start, stop, step, self.rest_of_block(), unroll, parallel, span)

    def while_statement(self, span: Span) -> n.While:
        condition = self.condition()
        self.expect("{")
        span = self.place(span)
        body = self.rest_of_block()
        update = self.block() if self.accept("update") else ()
        return n.While(condition, body, update, span)

    def return_statement(self, span: Span) -> n.Return:
        ends = self.next.kind in ("newline", "span", "end") or self.peek("}")
        value = None if ends else self.expression()
        return n.Return(value, self.place(span))

    def barrier(self, span: Span) -> n.Barrier:
        scope = self.word(("block", "subgroup"), "a barrier's scope")
        return n.Barrier("block" if scope == "block" else "subgroup", self.place(span))

    def fence(self, span: Span) -> n.Fence:
        scope = self.word(("block", "device"), "a fence's scope")
        return n.Fence("block" if scope == "block" else "device", self.place(span))

    def print_statement(self, span: Span) -> n.Print:
        parts: list[str | n.Expression] = []
        while self.next.kind not in ("newline", "span", "end") and not self.peek("}"):
            if parts:
                self.expect(",")
            parts.append(self.string() if self.next.kind == "string" else self.expression())
        return n.Print(tuple(parts), self.place(span))

    def assert_statement(self, span: Span) -> n.Assert:
        condition = self.expression()
        self.expect(",")
        message = self.string()
        return n.Assert(condition, message, self.place(span))

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
        while self.peek("->", "["):
            if self.accept("->"):
                place = n.Member(place, *self.member(place.type), span)
                continue
            if not isinstance(place.type, t.Array):
                self.fail(f"only an array has items, not {place.type}")
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
            self.expect("in")
            found.append(n.Check(index, self.expression(), axis))
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


_STATEMENTS: dict[str, Callable[[_Parser, Span], n.Statement]] = {
    "var": _Parser.declare,
    "if": _Parser.if_statement,
    "for": _Parser.for_statement,
    "while": _Parser.while_statement,
    "break": lambda parser, span: n.Break(parser.place(span)),
    "continue": lambda parser, span: n.Continue(parser.place(span)),
    "return": _Parser.return_statement,
    "barrier": _Parser.barrier,
    "fence": _Parser.fence,
    "print": _Parser.print_statement,
    "assert": _Parser.assert_statement,
}
