"""Loops whose step is known only at run time, as loops that count their iterations by 1.

The trip count is computed before the loop, in the unsigned type of the same width, so that nothing
leaves its type however close to the type's end the range stops:

    for i in range(a, b, by s)         gap = select(a < b, u32(b) - u32(a), 0)
                                       count = u32(gap != 0)
                                       if gap > u32(s): count = (gap - 1) / u32(s) + 1
                                       for k in range(0, count): i = a + i32(k) * s

Most grids leave one iteration to a thread, and one iteration takes no division. The counter is the
same for all threads of a block. So the lanes of a CPU read neighbouring elements at once.
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_kernel, statements_in
from treadle.ir.types import BOOL, Scalar


def has_runtime_steps(kernel: n.Kernel) -> bool:
    """Whether a loop's step is an expression."""
    bodies = (kernel.body, *(function.body for function in kernel.functions))
    return any(
        isinstance(node, n.For) and node.by is not None
        for body in bodies
        for node in statements_in(body)
    )


def with_trip_counts(kernel: n.Kernel) -> n.Kernel:
    """The kernel with a constant step in every loop."""
    names = Names(kernel)

    def change(node: Node) -> Node:
        if isinstance(node, n.For) and node.by is not None:
            return _counted(node, node.by, names)
        return node

    return rewrite_kernel(kernel, change)


def _counted(loop: n.For, by: n.Expression, names: Names) -> n.For | n.Block:
    type, span = loop.variable.type, loop.span
    assert isinstance(type, Scalar)
    if isinstance(by, n.Constant):
        return replace(loop, step=int(by.value), by=None) if by.value else ()
    unsigned = Scalar(f"u{type.bits}", "uint", type.bits)
    zero, none, one = n.Constant(0, type), n.Constant(0, unsigned), n.Constant(1, unsigned)
    out: list[n.Statement] = []

    def keep(name: str, value: n.Expression, type: Scalar) -> n.Variable:
        variable = n.Variable(names.fresh(f"{loop.variable.name}.{name}"), type, span)
        out.append(n.Declare(variable, value, span))
        return variable

    def binary(op: str, left: n.Expression, right: n.Expression) -> n.Binary:
        result = left.type if op in n.ARITHMETIC else BOOL
        return n.Binary(op, left, right, result, span)

    def bits(value: n.Expression) -> n.Expression:
        return value if type == unsigned else n.Cast(value, unsigned, span)

    def distance(low: n.Expression, high: n.Expression, runs: n.Expression) -> n.Expression:
        gap = binary("sub", bits(high), bits(low))
        return n.Select(binary("logical_and", runs, binary("lt", low, high)), gap, none, unsigned)

    start, stop, step = (
        keep("start", loop.start, type), keep("stop", loop.stop, type), keep("step", by, type)
    )  # fmt: skip
    rises = n.TRUE if is_extent(by) else binary("gt", step, zero)
    gap, size = distance(start, stop, rises), bits(step)
    if type.is_signed and not is_extent(by):
        falls = binary("lt", step, zero)
        gap = n.Select(rises, gap, distance(stop, start, falls), unsigned)
        size = n.Select(rises, size, binary("sub", none, size), unsigned)
    gap, size = keep("gap", gap, unsigned), keep("size", size, unsigned)
    count = keep("count", n.Select(binary("eq", gap, none), none, one, unsigned), unsigned)
    whole = binary("div", binary("sub", gap, one), size)
    out.append(
        n.If(binary("gt", gap, size), (n.Assign(count, binary("add", whole, one), span),), (), span)
    )
    counter = n.Variable(names.fresh(f"{loop.variable.name}.counter"), unsigned, span)
    far = binary("mul", counter if type == unsigned else n.Cast(counter, type, span), step)
    here = n.Declare(loop.variable, binary("add", start, far), span)
    out.append(n.For(counter, none, count, 1, (here, *loop.body), loop.unroll, loop.parallel, span))
    return tuple(out)


def is_extent(value: n.Expression) -> bool:
    """Whether a step is a number of threads or blocks along an axis, as of a grid-stride loop
    (`td.grid_size(1)`). Such a number is positive and below 2**31."""
    match value:
        case n.Builtin("block_dim" | "grid_dim"):
            return True
        case n.Cast(operand, Scalar(bits=32 | 64)):
            return is_extent(operand)
        case n.Binary("mul", left, right):
            known = [side for side in (left, right) if isinstance(side, n.Constant)]
            extents = [side for side in (left, right) if is_extent(side)]
            return len(known) == len(extents) == 1 and int(known[0].value) > 0
    return False
