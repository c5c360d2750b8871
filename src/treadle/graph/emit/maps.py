"""Every point of the loops by itself: one thread for each, or for a few neighbours.

The last three axes are the grid's; further ones in front are counted by the first of them. A
thread that owns several neighbours loads and stores them as one vector, which GPUs like. A long
axis that these do not fill has its last points done one by one, in a kernel of their own: WGSL
binds a memory as an array of vectors or as one of numbers, and a kernel that needs both gets words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum

from treadle.core.dim3 import Dim3
from treadle.core.sizes import is_size
from treadle.graph.emit.body import Body, Values, type_named
from treadle.graph.program import NEXT, Program, Stage, Strategy, Style
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import COMPONENTS, F64, I32, Scalar, Vector, size_of
from treadle.runtime.devices import Device
from treadle.runtime.launch import suitable_block

MOST_AXES = 3  # of a grid
# The threads of one row of a long axis: of one with more threads than a grid counts along an axis.
LONG_ROW = 1 << 24
MOST_THREADS = (1 << 31) - 1024  # along an axis of a grid


class MapVariant(Enum):
    """The kernels of a map."""

    POINTS = "points"  # a thread for each point, or for a vector of them
    LONG = "long"  # the same along an axis that is longer than a grid's
    TAIL = "tail"  # the points that do not fill a vector
    STREAM = "stream"  # all points along one axis, of results that are larger than the caches


def map_strategy(program: Program, extents: tuple[int, ...], device: Device) -> Strategy:
    """One thread for each point, or for `lanes` of them; another launch for the remainder."""
    sizes = list(extents) or [1]
    sizes[-1], left = divmod(sizes[-1], program.lanes)
    axes = grid_axes(program.kept)
    front = len(sizes) - axes
    for extent in sizes[:front]:
        sizes[front] *= extent
    variant = MapVariant.POINTS
    if program.kept == 1 and sizes[0] >= MOST_THREADS:
        variant, axes, front = MapVariant.LONG, 2, 0
        sizes = [-(-sizes[0] // LONG_ROW), LONG_ROW]
    elif _is_streamed(program, extents, device):
        variant = MapVariant.STREAM
    stages = [_stage(variant, Dim3(*reversed(sizes[front:])), axes, device)]
    if left:
        stages.append(_stage(MapVariant.TAIL, Dim3(left), 1, device))
    return Strategy(tuple(stages))


def _is_streamed(program: Program, extents: tuple[int, ...], device: Device) -> bool:
    """Whether the results lie in one piece each, and caches hold none of them."""
    bound = device.traits.streamed_bytes
    if not bound or program.kept != 1 or is_size(extents[0]):
        return False
    accesses = [program.accesses[output.access] for output in program.outputs]
    types = [type_named(program.buffers[access.buffer]) for access in accesses]
    return all(access.axes == (NEXT,) for access in accesses) and all(
        isinstance(type, Scalar) and extents[0] * size_of(type) > bound for type in types
    )


def _stage(variant: MapVariant, threads: Dim3, axes: int, device: Device) -> Stage:
    block = suitable_block(threads, device)
    grid = Dim3(*(-(-n // b) for n, b in zip(threads, block, strict=True)))
    return Stage(variant, grid, block, threads=tuple(threads)[:axes])


def grid_axes(kept: int) -> int:
    """The axes that threads are launched along."""
    return min(max(kept, 1), MOST_AXES)


def emit_map(program: Program, variant: MapVariant) -> n.Kernel:
    """The kernel of one of the stages that `map_strategy` plans. It is launched by threads."""
    tail = variant == MapVariant.TAIL
    if tail:
        lanes, program = program.lanes, program._replace(lanes=1)
    body = Body(program)
    b = body.builder
    long = variant == MapVariant.LONG
    axes = 2 if long else grid_axes(program.kept)
    places = []
    for axis in range(axes):  # x is the last loop axis
        bound = b.parameter(f"threads{axis}", I32, "threads", axis)
        at = b.let(f"t{axis}", ir.global_index(axis))
        places.append((at, bound))
    inside: n.Expression = ir.less(*places[0])
    for at, bound in places[1:]:
        inside = ir.both(inside, ir.less(at, bound))
    with b.when(inside):
        threads = [at for at, _ in places]
        if long:
            start = ir.mul(ir.cast(threads[1], body.index_type), LONG_ROW)
            at = body.let(
                "i", ir.mul(ir.add(start, ir.cast(threads[0], body.index_type)), program.lanes)
            )
            with b.when(ir.less(at, body.extents[0])):
                _compute(body, [at])
        elif tail:
            first = ir.sub(body.extents[0], ir.binary("mod", body.extents[0], lanes))
            _compute(body, [body.let("i", ir.add(first, ir.cast(threads[0], body.index_type)))])
        else:
            _compute(body, _point(body, threads))
    return _streamed(body) if variant == MapVariant.STREAM else body.kernel()


def _streamed(body: Body) -> n.Kernel:
    """The kernel, whose results are stored past the caches."""
    program, kernel = body.program, body.kernel()
    results = {program.accesses[output.access].buffer for output in program.outputs}
    names = {body.buffers[buffer].name for buffer in results}
    buffers = (replace(b, streamed=b.name in names) for b in kernel.buffers)
    return replace(kernel, buffers=tuple(buffers))


def _compute(body: Body, point: list[n.Expression]) -> None:
    """The steps at a point, and their results stored."""
    program = body.program
    if program.lanes > 1:
        _several(body, point)
        return
    values = body.evaluate(point, [output.step for output in program.outputs])
    for output in program.outputs:
        body.store(output.access, point, values[output.step])


def _point(body: Body, threads: list[n.Variable]) -> list[n.Expression]:
    """The loop axes' indices of a thread."""
    program, type = body.program, body.index_type
    if program.kept == 0:
        return []
    indices: list[n.Expression] = [ir.cast(at, type) for at in reversed(threads)]
    front = program.kept - len(threads)
    if front > 0:
        left = indices[0]
        outer: list[n.Expression] = []
        for axis in range(front, 0, -1):
            left, inside = _divided(body, left, body.extents[axis])
            outer.append(inside)
        indices = [left, *reversed(outer), *indices[1:]]
    if program.lanes > 1:
        indices[-1] = ir.mul(indices[-1], program.lanes)
    return [body.let("i", index) for index in indices]


def _divided(
    body: Body, index: n.Expression, extent: n.Expression
) -> tuple[n.Expression, n.Expression]:
    """The quotient and the remainder of an index, which is not negative, and an extent."""
    if body.program.style == Style.THREADS or body.index_type is not I32:
        inside = body.let("i", ir.binary("mod", index, extent))
        return body.let("r", ir.binary("floordiv", index, extent)), inside
    # A CPU divides as slowly as it computes thirty elements, and the reciprocal is the same in all
    # blocks. The half keeps the product away from integers by more than it is rounded.
    reciprocal = ir.binary("div", ir.constant(1.0, F64), ir.cast(extent, F64))
    exact = ir.mul(ir.add(ir.cast(index, F64), ir.constant(0.5, F64)), reciprocal)
    quotient = body.let("r", ir.cast(exact, I32))
    return quotient, body.let("i", ir.sub(index, ir.mul(quotient, extent)))


def _several(body: Body, point: list[n.Expression]) -> None:
    """The steps for some neighbours along the last axis."""
    store_lanes(body, point, [{}] * body.program.lanes)


def store_lanes(
    body: Body, point: Sequence[n.Expression], known: Sequence[Mapping[int, n.Expression]],
    here: n.Expression | None = None,
) -> None:  # fmt: skip
    """The steps for some neighbours along the last axis, and their results stored together, where
    `here` holds if it is given. `known` has for each lane the steps that have a value already."""
    program, b = body.program, body.builder
    lanes = program.lanes
    wanted = [output.step for output in program.outputs]
    values = values_of_lanes(body, point, len(point) - 1, lanes, wanted, known)
    for output in program.outputs:
        found = [each[output.step] for each in values]
        memory = body.buffers[program.accesses[output.access].buffer]
        assert isinstance(memory.element, Scalar)
        vector = Vector(memory.element, lanes)
        start = ir.binary("floordiv", body.place(output.access, point), lanes)
        place, value = ir.element(memory, start, type=vector), n.Construct(tuple(found), vector)
        if here is None:
            b.assign(place, value)
            continue
        with b.when(here):
            b.assign(place, value)


def values_of_lanes(
    body: Body,
    point: Sequence[n.Expression],
    near: int,
    lanes: int,
    wanted: Sequence[int],
    known: Sequence[Mapping[int, n.Expression]] | None = None,
) -> list[Values]:
    """The wanted steps' values at some neighbours along the axis `near`, of which the point is the
    first. What lies side by side is loaded together. `known` has for each lane the steps that have
    a value already."""
    if lanes == 1:
        return [body.evaluate(point, wanted, known[0] if known else None)]
    program = body.program
    together: dict[int, n.Expression] = {}
    steps = [program.steps[step] for step in body.needed(wanted, known[0] if known else ())]
    for number in sorted({step.detail for step in steps if step.op == "load"}):
        access = program.accesses[number]
        if len(access.axes) > near and access.axes[near] == NEXT:
            element = type_named(program.buffers[access.buffer])
            assert isinstance(element, Scalar)
            start = ir.binary("floordiv", body.place(number, point), lanes)
            place = ir.element(body.buffers[access.buffer], start, type=Vector(element, lanes))
            together[number] = body.let("w", ir.load(place))
    found = []
    for lane in range(lanes):
        here = [*point]
        if lane:
            here[near] = ir.add(here[near], lane)
        loaded = {at: ir.extract(v, COMPONENTS[lane]) for at, v in together.items()}
        found.append(body.evaluate(here, wanted, known[lane] if known else None, loaded))
    return found
