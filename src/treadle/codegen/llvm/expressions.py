"""Expressions: each becomes instructions and a `Value`, which may be lanes of a parallel loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.codegen.leaves import leaf_range, leaf_types, must_not_speculate
from treadle.codegen.llvm import arithmetic, casts, intrinsics, memory
from treadle.codegen.llvm.accesses import Accesses, Scope
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import constant, value_type
from treadle.codegen.llvm.values import Value
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval, combine, extreme, fits, union
from treadle.ir.types import SCALARS, Scalar, Type

_LARGEST_STEP = 1 << 24  # bytes or elements from lane to lane, so that lanes never reach far


class Expressions(Accesses):
    """Printing of expressions into one function."""

    def __init__(self, emitter: Emitter, scope: Scope) -> None:
        self.e = emitter
        self.scope = scope
        self.group = ""  # the mark of accesses inside parallel loops

    def value(self, node: n.Expression) -> Value:
        """The value of an expression."""
        result: Value = getattr(self, _RULES[type(node)])(node)
        return result

    # --- leaves -----------------------------------------------------------------------------------

    def constant(self, node: n.Constant) -> Value:
        interval = None
        if node.type.is_integer:
            interval = (int(node.value), int(node.value))
        return Value((constant(node.type, node.value),), 1, interval)

    def variable(self, node: n.Variable) -> Value:
        scope = self.scope
        if node.name in scope.values:
            return scope.values[node.name]
        if node.name in scope.slots:
            return Value(
                tuple(
                    self.e.op(f"load {value_type(scalar)}, ptr {slot}")
                    for scalar, slot in zip(
                        leaf_types(node.type), scope.slots[node.name], strict=True
                    )
                )
            )
        return memory.load(self.e, self.frame(node), node.type, "")

    def builtin(self, node: n.Builtin) -> Value:
        value = self.scope.builtins.get((node.name, node.axis))
        if value is None:
            raise CompileError(
                f"`{node.name}` reached the LLVM printer: a kernel is split into loops over its "
                "threads (ir.passes.fission) before it is printed",
                node.span,
            )
        return value

    # --- computing --------------------------------------------------------------------------------

    def unary(self, node: n.Unary) -> Value:
        a = self.value(node.operand)
        return self.each(
            node.type, [a], lambda s, x, w: arithmetic.unary(self.e, node.op, s, x[0], w)
        )

    def binary(self, node: n.Binary) -> Value:
        if node.op in n.LOGICAL:
            return self.logical(node)
        a, b = self.value(node.left), self.value(node.right)
        if node.op in n.COMPARISONS:
            of_type = node.left.type
            assert isinstance(of_type, Scalar)
            width = max(a.width, b.width)
            x, y = self.widen(a, width, of_type), self.widen(b, width, of_type)
            return Value(
                (arithmetic.compare(self.e, node.op, of_type, x.leaves[0], y.leaves[0], width),),
                width,
            )
        if isinstance(node.type, Scalar) and node.type.is_integer:
            return self.integer(node.op, node.type, a, b)
        return self.each(
            node.type, [a, b], lambda s, x, w: arithmetic.binary(self.e, node.op, s, x[0], x[1], w)
        )

    def integer(self, op: str, type: Scalar, a: Value, b: Value) -> Value:
        """An integer operation, with LLVM's `nsw` flag where it provably does not wrap."""
        width = max(a.width, b.width)
        parts = _parts_of_rows(op, a, b)
        if parts == "row":
            assert a.linear is not None
            return self.integer(op, type, Value((a.linear[0],), 1, a.interval), b)
        x, y = self.widen(a, width, type).leaves[0], self.widen(b, width, type).leaves[0]
        interval = combine(op, a.interval, b.interval)
        if not fits(interval, type):
            interval = None
        divisor_positive = b.interval is not None and b.interval[0] > 0
        if op in arithmetic.DIVISIONS and divisor_positive:
            # Without signs, truncating and flooring are one.
            plain = a.interval is not None and a.interval[0] >= 0
            unsigned = SCALARS[f"u{type.bits}"] if plain else type
            result = arithmetic.divide(self.e, op, unsigned, x, y, width, positive=True)
        else:
            result = self.bounded(op, type, x, y, width, interval, (a.interval, b.interval))
        linear = self.linear(op, type, a, b, interval) if width > 1 else None
        if parts == "column":
            assert a.linear is not None
            first = self.integer(op, type, Value((a.linear[0],), 1, a.interval), b)
            linear = first.leaves[0], 1
        return Value((result,), width, interval, linear, whole=parts == "column")

    def bounded(
        self,
        op: str,
        type: Scalar,
        x: str,
        y: str,
        width: int,
        interval: Interval | None,
        operands: tuple[Interval | None, Interval | None],
    ) -> str:
        """An integer operation with a result in an interval, unless that is None.

        LLVM reads the operands' bits with or without signs, whichever is asked about: -8 + 16 is 8
        and does not wrap with signs, and does without.
        """
        if interval is None or op not in ("add", "sub", "mul"):
            return arithmetic.binary(self.e, op, type, x, y, width)
        known = [one for one in (interval, *operands) if one is not None]
        whole = len(known) == 3
        flags = ""
        if type.is_signed or (whole and max(one[1] for one in known) < 1 << (type.bits - 1)):
            flags += " nsw"
        if op != "sub" and (not type.is_signed or (whole and min(one[0] for one in known) >= 0)):
            flags += " nuw"
        return self.e.op(f"{op}{flags} {value_type(type, width)} {x}, {y}")

    def linear(
        self, op: str, type: Scalar, a: Value, b: Value, interval: Interval | None
    ) -> tuple[str, int] | None:
        """Lane 0 and the step of an operation, if its lanes go in steps."""
        first, second = _steps(a), _steps(b)
        if first is None or second is None:
            return None
        if op in ("mul", "shl"):
            if first[1] and second[1]:
                return None
            step, factor = (first[1], second[0]) if first[1] else (second[1], first[0])
            if not arithmetic.is_literal(factor) or (op == "shl" and not first[1]):
                return None
            step = step * int(factor) if op == "mul" else step << min(int(factor), 63)
        elif op in ("add", "sub"):
            step = first[1] + second[1] if op == "add" else first[1] - second[1]
        else:
            return None
        if abs(step) >= _LARGEST_STEP:
            return None
        operands = a.interval, b.interval
        return self.bounded(op, type, first[0], second[0], 1, interval, operands), step

    def logical(self, node: n.Binary) -> Value:
        """`and` and `or`: the right side is behind a branch if it must not be speculated."""
        return self.logical_after(node, self.scalar(node.left))

    def logical_after(self, node: n.Binary, left: str) -> Value:
        """`and` or `or`, given its left operand."""
        is_and = node.op == "logical_and"
        known = "false" if is_and else "true"
        if not must_not_speculate(node.right):
            right = self.scalar(node.right)
            pair = (right, known) if is_and else (known, right)
            return Value((self.e.op(f"select i1 {left}, i1 {pair[0]}, i1 {pair[1]}"),))
        more, done = self.e.new_label(), self.e.new_label()
        before = self.e.current
        self.e.branch(left, *((more, done) if is_and else (done, more)))
        self.e.place(more)
        right = self.scalar(node.right)
        after = self.e.current
        self.e.jump(done)
        self.e.place(done)
        return Value((self.e.op(f"phi i1 [ {known}, %{before} ], [ {right}, %{after} ]"),))

    def select(self, node: n.Select) -> Value:
        condition = self.value(node.condition)
        a, b = self.value(node.if_true), self.value(node.if_false)
        return self.choose(node.type, condition, a, b)

    def choose(self, type: Type, condition: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`; the condition may be the same for all lanes."""
        width = max(condition.width, a.width, b.width)
        a, b = self.widen(a, width, type), self.widen(b, width, type)
        test, of = condition.leaves[0], condition.width
        return Value(
            tuple(
                arithmetic.select(self.e, test, value_type(scalar, width), x, y, of)
                for scalar, x, y in zip(leaf_types(type), a.leaves, b.leaves, strict=True)
            ),
            width,
            union(a.interval, b.interval),
        )

    def cast(self, node: n.Cast) -> Value:
        a = self.value(node.operand)
        sources, targets = leaf_types(node.operand.type), leaf_types(node.type)
        result = tuple(
            casts.cast(self.e, source, target, leaf, a.width)
            for source, target, leaf in zip(sources, targets, a.leaves, strict=True)
        )
        kept = targets[0].is_integer and fits(a.interval, targets[0])
        linear = None
        if a.linear is not None and (kept or (sources[0].bits == targets[0].bits)):
            start, step = a.linear
            linear = casts.cast(self.e, sources[0], targets[0], start, 1), step
        return Value(result, a.width, a.interval if kept else None, linear)

    def bitcast(self, node: n.Bitcast) -> Value:
        a = self.value(node.operand)
        sources, targets = leaf_types(node.operand.type), leaf_types(node.type)
        return Value(
            tuple(
                casts.bitcast(self.e, source, target, leaf, a.width)
                for source, target, leaf in zip(sources, targets, a.leaves, strict=True)
            ),
            a.width,
        )

    def intrinsic(self, node: n.Intrinsic) -> Value:
        operands = [self.value(operand) for operand in node.operands]
        of_type = node.operands[0].type
        if node.op == "dot":
            return self.dot(node, *operands)
        value = self.each(
            of_type,
            operands,
            lambda s, x, w: intrinsics.intrinsic(self.e, node.op, s, x, w),
        )
        if node.op in ("min", "max"):
            value.interval = extreme(node.op, operands[0].interval, operands[1].interval)
        return value

    def dot(self, node: n.Intrinsic, a: Value, b: Value) -> Value:
        element = node.type
        assert isinstance(element, Scalar)
        width = max(a.width, b.width)
        of_type = node.operands[0].type
        a, b = self.widen(a, width, of_type), self.widen(b, width, of_type)
        total = ""
        for x, y in zip(a.leaves, b.leaves, strict=True):
            product = arithmetic.binary(self.e, "mul", element, x, y, width)
            total = (
                arithmetic.binary(self.e, "add", element, total, product, width)
                if total
                else product
            )
        return Value((total,), width)

    def call(self, node: n.Call) -> Value:
        """A call of a pure function, whose leaves travel as single arguments."""
        return self.called(node, [self.value(argument) for argument in _values(node)], 1, [])

    def called(
        self, node: n.Call, arguments: list[Value], width: int, operands: list[str]
    ) -> Value:
        """The result of a function in that many lanes; `operands` go before its arguments."""
        function = self.scope.functions[node.function]
        for argument, value in zip(node.arguments, arguments, strict=True):
            assert not isinstance(argument, n.MemoryReference)
            operands += [
                f"{value_type(scalar, value.width)} {leaf}"
                for scalar, leaf in zip(leaf_types(argument.type), value.leaves, strict=True)
            ]
        name = self.scope.function_name(function, tuple(a.width for a in arguments), width)
        result = result_type(function.result, width)
        called = self.e.op(f"call {result} {name}({', '.join(operands)})")
        if isinstance(function.result, Scalar):
            return Value((called,), width)
        count = len(leaf_types(function.result))
        leaves = tuple(self.e.op(f"extractvalue {result} {called}, {i}") for i in range(count))
        return Value(leaves, width)

    def construct(self, node: n.Construct) -> Value:
        parts = [self.value(operand) for operand in node.operands]
        width = max((part.width for part in parts), default=1)
        widened_parts = (
            self.widen(part, width, operand.type)
            for part, operand in zip(parts, node.operands, strict=True)
        )
        return Value(tuple(leaf for part in widened_parts for leaf in part.leaves), width)

    def extract(self, node: n.Extract) -> Value:
        a = self.value(node.operand)
        start, stop = leaf_range(node.operand.type, node.name)
        return Value(a.leaves[start:stop], a.width)

    # --- lanes ------------------------------------------------------------------------------------

    def each(
        self, type: Type, values: list[Value], rule: Callable[[Scalar, list[str], int], str]
    ) -> Value:
        """A scalar rule applied to every leaf of values of one type."""
        width = max(value.width for value in values)
        wide = [self.widen(value, width, type) for value in values]
        return Value(
            tuple(
                rule(scalar, [value.leaves[i] for value in wide], width)
                for i, scalar in enumerate(leaf_types(type))
            ),
            width,
        )


def result_type(type: Type, width: int = 1) -> str:
    """The LLVM type that a function returns: a scalar, or a struct of leaves."""
    scalars = leaf_types(type)
    if isinstance(type, Scalar):
        return value_type(type, width)
    inner = ", ".join(value_type(scalar, width) for scalar in scalars)
    return f"{{ {inner} }}" if scalars else "void"


def _values(node: n.Call) -> list[n.Expression]:
    """The arguments of a call, none of which may be a memory."""
    values: list[n.Expression] = []
    for argument in node.arguments:
        if isinstance(argument, n.MemoryReference):
            raise CompileError(
                f"`{node.function}` takes a memory: such functions are inlined "
                "(ir.passes.inline) before a kernel is printed",
                node.span,
            )
        values.append(argument)
    return values


def _steps(value: Value) -> tuple[str, int] | None:
    """Lane 0 and the step of an integer in lanes; what is the same in all has a step of 0."""
    return (value.leaves[0], 0) if value.width == 1 else value.linear


def _parts_of_rows(op: str, a: Value, b: Value) -> str:
    """Threads are often counted in rows: `i // length` is the "row", `i % length` the "column".
    Where a row holds whole strips of lanes, its number is the same in all, and columns go in steps.
    """
    divisor = b.leaves[0]
    countable = a.whole and a.interval is not None and a.interval[0] >= 0
    if not countable or b.width > 1 or not arithmetic.is_literal(divisor):
        return ""
    length = int(divisor)
    if op == "shr":
        length = 1 << length if length < 31 else 0
    elif op == "and":
        length = length + 1 if length >= 0 and length & (length + 1) == 0 else 0
    if length <= 0 or length % a.width:
        return ""
    return {"shr": "row", "div": "row", "floordiv": "row"}.get(
        op, "column" if op in ("and", "rem", "mod") else ""
    )


_RULES: dict[type[Any], str] = {
    n.Constant: "constant",
    n.Variable: "variable",
    n.Builtin: "builtin",
    n.Unary: "unary",
    n.Binary: "binary",
    n.Select: "select",
    n.Cast: "cast",
    n.Bitcast: "bitcast",
    n.Intrinsic: "intrinsic",
    n.Call: "call",
    n.Construct: "construct",
    n.Extract: "extract",
    n.Load: "load",
}
