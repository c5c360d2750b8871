"""Expressions of a function, printed at its current position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from treadle.codegen.leaves import leaf_range, leaf_types, must_not_speculate
from treadle.codegen.ptx import arithmetic, casts, memory
from treadle.codegen.ptx.accesses import Accesses, Known, Scope
from treadle.codegen.ptx.emitter import Emitter, unless, when
from treadle.codegen.ptx.intrinsics import intrinsic
from treadle.codegen.ptx.values import Value, number
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import types
from treadle.ir.intervals import LARGEST_EXTENT, Interval, combine, extreme, fits, union
from treadle.ir.types import Scalar, Type

_SPECIAL = {"thread_idx": "%tid", "block_idx": "%ctaid", "grid_dim": "%nctaid"}


class Expressions(Accesses, ABC):
    """Printing of expressions into one function."""

    def __init__(self, emitter: Emitter, scope: Scope, block: Dim3) -> None:
        self.e = emitter
        self.scope = scope
        self.block_size = block
        self.known = Known()
        self.builtins: dict[tuple[str, int], Value] = {}

    def value(self, node: n.Expression) -> Value:
        """The value of an expression."""
        result: Value = getattr(self, _RULES[type(node)])(node)
        return result

    # --- leaves -----------------------------------------------------------------------------------

    def constant(self, node: n.Constant) -> Value:
        interval = None
        if node.type.is_integer:
            interval = (int(node.value), int(node.value))
        return Value((number(self.e, node.type, node.value),), interval)

    def variable(self, node: n.Variable) -> Value:
        scope = self.scope
        if node.name in scope.values:
            return scope.values[node.name]
        if node.name in scope.registers:
            return Value(scope.registers[node.name])
        return memory.load(self.e, self.address(node), node.type)

    def builtin(self, node: n.Builtin) -> Value:
        key = (node.name, node.axis)
        if key not in self.builtins:
            self.builtins[key] = self.new_builtin(node.name, node.axis)
        return self.builtins[key]

    def new_builtin(self, name: str, axis: int) -> Value:
        """A builtin, read at the kernel's beginning."""
        extent = self.block_size[axis]
        if name == "block_dim":
            return Value((str(extent),), (extent, extent))
        if name == "subgroup_size":
            return Value(("32",), (32, 32))
        if name == "lane":
            return Value((self.e.first("b32", "mov.u32", "%laneid"),), (0, 31))
        if name == "thread_idx" and extent == 1:
            return Value(("0",), (0, 0))
        interval = self.interval_of(name, axis)
        source = f"{_SPECIAL[name]}.{'xyz'[axis]}"
        return Value((self.e.first("b32", "mov.u32", source),), interval)

    def interval_of(self, name: str, axis: int) -> Interval:
        """Where an index or extent lies."""
        extent = self.block_size[axis]
        if name == "thread_idx":
            return 0, extent - 1
        most = max(LARGEST_EXTENT // extent, 1)
        return (0, most - 1) if name == "block_idx" else (1, most)

    # --- computing --------------------------------------------------------------------------------

    def unary(self, node: n.Unary) -> Value:
        a = self.value(node.operand)
        return self.each(node.type, [a], lambda s, x: arithmetic.unary(self.e, node.op, s, x[0]))

    def binary(self, node: n.Binary) -> Value:
        if node.op in n.LOGICAL:
            return self.logical(node)
        if node.op == "or" and (halves := _halves_of(node)) and self.e.module.has(80, (7, 0)):
            kind, low, high = halves
            word = f"cvt.rn.{kind}x2.f32"
            return Value((self.e.op("b32", word, self.scalar(high), self.scalar(low)),))
        a, b = self.value(node.left), self.value(node.right)
        if node.op in n.COMPARISONS:
            of_type = node.left.type
            assert isinstance(of_type, Scalar)
            return Value((arithmetic.compare(self.e, node.op, of_type, a.leaves[0], b.leaves[0]),))
        bounds = a.interval, b.interval
        value = self.each(
            node.type,
            [a, b],
            lambda s, x: arithmetic.binary(self.e, node.op, s, x[0], x[1], bounds),
        )
        if isinstance(node.type, Scalar) and node.type.is_integer:
            interval = combine(node.op, *bounds)
            value.interval = interval if fits(interval, node.type) else None
        return value

    def logical(self, node: n.Binary) -> Value:
        """`and` and `or`: the right side is behind a branch if it must not be speculated."""
        e, left = self.e, self.scalar(node.left)
        is_and = node.op == "logical_and"
        if not must_not_speculate(node.right):
            operation = "and.pred" if is_and else "or.pred"
            return Value((e.op("pred", operation, left, self.scalar(node.right)),))
        result, done = e.register("pred"), e.new_label()
        e.move("pred", result, left)
        e.jump(done, unless(result) if is_and else when(result))
        before = self.known.snapshot()
        e.move("pred", result, self.scalar(node.right))
        self.known.restore(before)
        e.place(done)
        return Value((result,))

    def select(self, node: n.Select) -> Value:
        condition = self.scalar(node.condition)
        a, b = self.value(node.if_true), self.value(node.if_false)
        chosen = tuple(
            arithmetic.select(self.e, scalar, condition, x, y)
            for scalar, x, y in zip(leaf_types(node.type), a.leaves, b.leaves, strict=True)
        )
        return Value(chosen, union(a.interval, b.interval))

    def cast(self, node: n.Cast) -> Value:
        a = self.value(node.operand)
        sources, targets = leaf_types(node.operand.type), leaf_types(node.type)
        result = tuple(
            casts.cast(self.e, source, target, leaf)
            for source, target, leaf in zip(sources, targets, a.leaves, strict=True)
        )
        kept = targets[0].is_integer and fits(a.interval, targets[0])
        return Value(result, a.interval if kept else None)

    def bitcast(self, node: n.Bitcast) -> Value:
        a = self.value(node.operand)
        sources, targets = leaf_types(node.operand.type), leaf_types(node.type)
        return Value(
            tuple(
                casts.bitcast(self.e, source, target, leaf)
                for source, target, leaf in zip(sources, targets, a.leaves, strict=True)
            )
        )

    def intrinsic(self, node: n.Intrinsic) -> Value:
        operands = [self.value(operand) for operand in node.operands]
        if node.op == "dot":
            return self.dot(node, *operands)
        value = self.each(
            node.operands[0].type, operands, lambda s, x: intrinsic(self.e, node.op, s, x)
        )
        if node.op in ("min", "max"):
            value.interval = extreme(node.op, operands[0].interval, operands[1].interval)
        return value

    def dot(self, node: n.Intrinsic, a: Value, b: Value) -> Value:
        element = node.type
        assert isinstance(element, Scalar)
        total = ""
        for x, y in zip(a.leaves, b.leaves, strict=True):
            product = arithmetic.binary(self.e, "mul", element, x, y)
            if total:
                product = arithmetic.binary(self.e, "add", element, total, product)
            total = product
        return Value((total,))

    def call(self, node: n.Call | n.CallStatement) -> Value:
        """A call of a pure function."""
        values: list[Value] = []
        for argument in node.arguments:
            if isinstance(argument, n.MemoryReference):
                raise CompileError(
                    f"`{node.function}` takes a memory: such functions are inlined "
                    "(ir.passes.inline) before a kernel is printed",
                    node.span,
                )
            values.append(self.value(argument))
        return self.called(node.function, values)

    @abstractmethod
    def called(self, name: str, arguments: list[Value]) -> Value:
        """The result of a function, whose statements are printed in the call's place."""

    def construct(self, node: n.Construct) -> Value:
        parts = [self.value(operand) for operand in node.operands]
        return Value(tuple(leaf for part in parts for leaf in part.leaves))

    def extract(self, node: n.Extract) -> Value:
        a = self.value(node.operand)
        start, stop = leaf_range(node.operand.type, node.name)
        return Value(a.leaves[start:stop])

    def each(
        self, type: Type, values: list[Value], rule: Callable[[Scalar, Sequence[str]], str]
    ) -> Value:
        """A scalar rule applied to every leaf of values of one type."""
        return Value(
            tuple(
                rule(scalar, [value.leaves[i] for value in values])
                for i, scalar in enumerate(leaf_types(type))
            )
        )


def _halves_of(node: n.Binary) -> tuple[str, n.Expression, n.Expression] | None:
    """The dtype and the two float32 numbers of a word made of both, rounded to 16 bits each, the
    second one in the upper half: one instruction has them."""
    match node.left, node.right:
        case (
            n.Cast(n.Bitcast(n.Cast(low, first), types.U16), types.U32),
            n.Binary(
                "shl",
                n.Cast(n.Bitcast(n.Cast(high, second), types.U16), types.U32),
                n.Constant(16),
            ),
        ) if first == second and low.type == high.type == types.F32:
            if first == types.F16:
                return "f16", low, high
            if first == types.BF16:
                return "bf16", low, high
    return None


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
