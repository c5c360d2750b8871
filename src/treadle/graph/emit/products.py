"""Products of matrices, and what follows them: the library's kernel with a program's steps in it.

The kernel by tiles is lowered as it stands. Where it stores an element of the result it says
`finish`: the steps that read the product take that place, at the element's point of the loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.graph.emit.body import Body, dtype_named
from treadle.graph.emit.maps import store_lanes
from treadle.graph.program import Multiplied, Program
from treadle.graph.strategy import Stage, Strategy
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.passes.inline import inline
from treadle.ir.substitute import substitute
from treadle.ir.traverse import rewrite_block
from treadle.ir.types import COMPONENTS, Vector
from treadle.kernels.device_code.multiplying import Tile, finish, tile_multiplier
from treadle.kernels.machine import Machine
from treadle.kernels.product import launch_for
from treadle.kernels.tiles import Problem
from treadle.runtime.arguments import declared_arguments
from treadle.runtime.signature import Signature

Variant = tuple[Tile, bool]  # whether the inner axis is a multiple of the tile's depth
_BUFFERS = 3  # of the library's kernel, which come before its numbers


def plan(program: Program, extents: Sequence[int], machine: Machine) -> Strategy:
    """One launch, of a block for each tile."""
    number, detail = product_in(program)
    batches, rows, _ = detail.axes
    behind = batches + rows
    parts = (extents[:batches], extents[batches:behind], extents[behind:-1])
    matrices, lines, columns = map(math.prod, parts)
    dtype = dtype_named(program.steps[number].type)
    problem = Problem(dtype, matrices, lines, columns, extents[-1])
    tile, exact, grid = launch_for(machine, problem)
    return Strategy((Stage((tile, exact), Dim3(*grid), Dim3(tile.threads)),))


def product_in(program: Program) -> tuple[int, Multiplied]:
    """The number of the step that is the product, and its detail."""
    for number, step in enumerate(program.steps):
        if step.op == "product":
            return number, step.detail
    raise AssertionError("a program of this kind has a product")


def emit(program: Program, variant: Variant) -> n.Kernel:
    """The kernel for a tile."""
    tile, exact = variant
    number, detail = product_in(program)
    library = tile_multiplier(detail.form._replace(exact=exact), tile)
    lowered = inline(library.lower(Signature(declared_arguments(library))).kernel)
    body = Body(program)
    body.adopt(lowered)
    factors = [body.buffers[buffer].name for buffer in detail.buffers]
    result, names = lowered.buffers[-1].name, [buffer.name for buffer in lowered.buffers]
    integers: dict[str, n.Expression] = {
        each.name: ir.constant(0, each.type)  # sizes of arrays, which unchecked accesses need not
        for each in lowered.parameters
    }
    for at, parameter in enumerate(library.parameters[_BUFFERS:], detail.first):
        assert parameter.declared is not None
        integers[parameter.name] = ir.cast(body.integers[at], parameter.declared)  # type: ignore[arg-type]
    block = substitute(lowered.body, integers, dict(zip(names[:2], factors, strict=True)))

    def change(node: Any) -> Any:
        if not (isinstance(node, n.Assign) and isinstance(node.place, n.Element)):
            return node
        if node.place.memory != result:
            return node
        call = node.value
        assert isinstance(call, n.Call), f"it is stored as {finish} gave it"
        with body.builder.aside() as statements:
            _finish(body, number, detail, call.arguments)  # type: ignore[arg-type]
        return tuple(statements)

    for statement in rewrite_block(block, change):
        body.builder.emit(statement)
    return body.kernel()


def _finish(body: Body, number: int, detail: Multiplied, arguments: Sequence[n.Expression]) -> None:
    """What comes after an element of the product, or after four neighbours, and storing it."""
    program = body.program
    value, *places = arguments
    total = body.let("total", value)
    point: list[n.Expression] = []
    done = 0
    for place, axes in zip(places, detail.axes, strict=True):
        at = body.let("at", ir.cast(place, body.index_type))
        point += _split(body, at, body.extents[done : done + axes])
        done += axes
    if isinstance(total.type, Vector):
        lanes = [
            {number: body.let("part", ir.extract(total, COMPONENTS[lane]))}
            for lane in range(program.lanes)
        ]
        store_lanes(body, point, lanes)
        return
    values = body.evaluate(point, [output.step for output in program.outputs], {number: total})
    for output in program.outputs:
        body.store(output.access, point, values[output.step])


def _split(body: Body, at: n.Variable, extents: Sequence[n.Variable]) -> list[n.Expression]:
    """The indices along some axes of an element that is the `at`-th of them."""
    rest: n.Expression = at
    found: list[n.Expression] = []
    for extent in reversed(extents[1:]):
        found.append(body.let("i", ir.binary("mod", rest, extent)))
        rest = body.let("r", ir.binary("floordiv", rest, extent))
    return [rest, *reversed(found)] if extents else []
