"""Text back to kernels: the inverse of `ir.printer`, whose docstring shows the notation.

`#` starts a comment. Nested operations need their parentheses: there is no precedence to know.
A node without a place of its own (`!file:line:column-end`) gets its place in the text, so that
errors found later point at a line the reader has.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parse_expressions import ExpressionParser
from treadle.ir.stages import OPERATIONS
from treadle.ir.tokens import tokens


def from_text(text: str, file: str = "<ir>") -> n.Kernel:
    """The kernel that `text` describes. Raises CompileError with line and column in `text`."""
    try:
        return _Parser(tokens(text, file)).kernel()
    except CompileError as error:
        raise error.with_source(text) from None


class _Parser(ExpressionParser):
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
        trusting = self.accept("trusting")
        registers = 0
        if self.accept("registers"):
            self.expect("(")
            (registers,) = self.separated(self.integer, ")")
        self.expect("{")
        span = self.place(span)
        self.variables, self.memories = {}, {}
        self.skip_lines()
        buffers: list[n.Buffer] = []
        parameters: list[n.Parameter] = []
        while self.peek("streamed", "acquired", "volatile", "buffer", "parameter"):
            if self.peek("streamed", "acquired", "volatile", "buffer"):
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
            fastmath, trusting, registers, span,
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
        span = self.next.span
        streamed = self.accept("streamed")
        acquired = self.accept("acquired")
        volatile = self.accept("volatile")
        self.expect("buffer")
        name = self.name("a buffer")
        self.expect(":")
        element = self.type()
        self.memories[name] = element
        place = self.place(span)
        return n.Buffer(name, element, place, bool(volatile), bool(acquired), bool(streamed))

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
        if self.peek("atomic", "subgroup", "clock", "call"):
            return self.effect(span, None)
        place = self.assigned_place()
        self.expect("=")
        if self.peek("atomic", "subgroup", "clock", "call"):
            if not isinstance(place, n.Variable):
                self.fail("the result goes into a variable, not into a part of one", span)
            return self.effect(span, place)
        value = self.expression()
        return n.Assign(place, value, self.place(span))

    def later(self, span: Span) -> n.Statement:
        place = self.assigned_place()
        self.expect("=")
        return n.Assign(place, self.expression(), self.place(span), True)

    def opaque(self, span: Span) -> n.Statement:
        columns = self.word(("rows", "columns"), "what is adjacent") == "columns"
        place = self.memory_place()
        if not isinstance(place, n.Element):
            self.fail("a matrix is stored at elements of an array", span)
        self.expect(",")
        stride = self.expression()
        self.expect(",")
        return n.OpaqueStore(place, stride, self.expression(), columns, self.place(span))

    def copies(self, span: Span) -> n.Statement:
        left = int(self.take().text) if self.accept("left") else None
        return n.Copies(left, self.place(span))

    def staged(self, span: Span) -> n.Statement:
        op = self.word(tuple(OPERATIONS), "a step of staged work")
        self.expect("[")
        numbers = tuple(self.separated(self.integer, "]"))
        places: list[n.Place] = []
        operands: list[n.Expression] = []
        ends = ("newline", "span", "end")
        if self.next.kind not in ends and not self.peek("from", "}"):
            places.append(self.assigned_place())
            while self.accept(","):
                places.append(self.assigned_place())
        if self.accept("from"):
            operands.append(self.expression())
            while self.accept(","):
                operands.append(self.expression())
        return n.Staged(op, tuple(places), tuple(operands), numbers, self.place(span))

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
            known = n.SUBGROUP_OPERATIONS | n.MATRIX_OPERATIONS | n.OPAQUE_OPERATIONS
            op = self.word(tuple(known), "a subgroup operation")
            values = [self.expression()] if known[op] else []
            while self.accept(","):
                values.append(self.expression())
            mask = self.mask()
            if result is None:
                self.fail("a subgroup operation needs a variable for its result", span)
            return n.Subgroup(op, tuple(values), result, mask, self.place(span))
        if kind == "clock":
            if result is None:
                self.fail("clock needs a variable for its result", span)
            return n.Clock(result, self.place(span))
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
        step, by = 1, None
        if self.accept(","):
            step, by = (0, self.expression()) if self.accept("by") else (self.integer(), None)
        self.expect(")")
        unroll, parallel = self.accept("unroll"), self.accept("parallel")
        self.expect("{")
        span = self.place(span)
        body = self.rest_of_block()
        return n.For(variable, start, stop, step, body, unroll, parallel, span, by)

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
        scope = self.word(("block", "subgroup", "grid"), "a barrier's scope")
        mask = self.mask()
        part: tuple[n.Expression, ...] = ()
        if self.accept("part"):
            number = self.expression()
            self.expect(",")
            part = (number, self.expression())
        barrier = n.Barrier(
            "block" if scope == "block" else "subgroup", mask, self.place(span), part
        )
        return replace(barrier, scope="grid") if scope == "grid" else barrier

    def mask(self) -> n.Expression | None:
        return self.expression() if self.accept("mask") else None

    def fence(self, span: Span) -> n.Fence:
        scope = self.word(("block", "device", "system"), "a fence's scope")
        fence = n.Fence("block" if scope == "block" else "device", self.place(span))
        fence = replace(fence, scope="system") if scope == "system" else fence
        for role in ("arrive", "wait"):
            if self.accept(role):
                return replace(fence, role=role)
        return replace(fence, sequential=bool(self.accept("sequential")))

    def print_statement(self, span: Span) -> n.Print:
        parts: list[str | n.Expression | n.Formatted] = []
        end = "\n"
        while self.next.kind not in ("newline", "span", "end") and not self.peek("}"):
            if self.peek("end") and self.tokens[self.at + 1].kind == "string":
                self.at += 1
                end = self.string()
                break
            if parts:
                self.expect(",")
            parts.append(self.printed())
        return n.Print(tuple(parts), end, self.place(span))

    def printed(self) -> str | n.Expression | n.Formatted:
        span = self.next.span
        if self.next.kind != "string":
            return self.expression()
        text = self.string()
        if not self.accept("("):
            return text
        values = self.separated(self.expression, ")")
        if not values:
            self.fail(f"{json.dumps(text)} needs a value in its parentheses", span)
        *stars, value = values
        return n.Formatted(text, value, tuple(stars), span)

    def assert_statement(self, span: Span) -> n.Assert:
        condition = self.expression()
        self.expect(",")
        message = self.string()
        always, fault = self.accept("always"), self.accept("fault")
        function = self.string() if self.accept("in") else ""
        return n.Assert(condition, message, always, function, fault, self.place(span))


_STATEMENTS: dict[str, Callable[[_Parser, Span], n.Statement]] = {
    "var": _Parser.declare,
    "if": _Parser.if_statement,
    "for": _Parser.for_statement,
    "while": _Parser.while_statement,
    "break": lambda parser, span: n.Break(parser.place(span)),
    "continue": lambda parser, span: n.Continue(parser.place(span)),
    "return": _Parser.return_statement,
    "barrier": _Parser.barrier,
    "copies": _Parser.copies,
    "later": _Parser.later,
    "opaque": _Parser.opaque,
    "staged": _Parser.staged,
    "fence": _Parser.fence,
    "print": _Parser.print_statement,
    "assert": _Parser.assert_statement,
}
