"""Products of matrices with prologues and an epilogue: the library's kernel with a program's steps
in it.

The kernel by tiles is lowered as it stands. Where it stores an element of the result it says
`finish`: the steps that read the product take that place, at the element's point of the loops.
Where it loads elements of a factor that is computed, it says `first_factor` or `second_factor`: the
steps that the factor is made of take that place, at the element's point of the factor's axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.core.dtypes import f32
from treadle.core.sizes import has_sizes
from treadle.graph.emit.body import Body, cast, dtype_named, type_named
from treadle.graph.emit.maps import store_lanes, values_of_lanes
from treadle.graph.program import FIXED, Axis, Multiplied, Phase, Program, Stage, Strategy
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.passes.inline import inline
from treadle.ir.signature import Signature
from treadle.ir.substitute import substitute
from treadle.ir.traverse import rewrite_block
from treadle.ir.types import COMPONENTS, Scalar, Vector
from treadle.kernels.device_code.group_product import GroupTile, takes
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.matrix_product import (
    Form,
    finish,
    part_joiner,
    prologue_of,
)
from treadle.kernels.device_code.opaque_product import OpaqueTile
from treadle.kernels.machine import Machine
from treadle.kernels.product import JOINING, LARGE_PRODUCT, launch_for, multiplier_for
from treadle.kernels.tiles import AnyTile, Problem
from treadle.lang.decorators import Kernel
from treadle.runtime.arguments import declared_arguments

FINISH = finish.definition.__name__
PROLOGUES = tuple([prologue_of(second, f32).definition.__name__ for second in (False, True)])
_OWN = 2  # numbers of a launch, beside the program's
_PLACED = 4  # arguments of `finish`: the value, and the element's stack, row and column


class ProductVariant(NamedTuple):
    """One of a program's kernels: the product, sums of parts of it, or what joins these. `exact`
    says that the inner axis is a multiple of the tile's depth. `sizes` are rows, columns and inner
    extent where they, and the strides that follow from them, are in the kernel's text."""

    phase: Phase
    tile: AnyTile
    exact: bool
    sizes: tuple[int, int, int] | None = None


def product_strategy(program: Program, extents: Sequence[int], machine: Machine) -> Strategy:
    """A launch of a block for each tile; one more where parts are joined."""
    _, detail = product_in(program)
    batches, rows, _ = detail.axes
    behind = batches + rows
    groups = (extents[:batches], extents[batches:behind], extents[behind:-1])
    matrices, lines, columns = map(math.prod, groups)
    form = detail.form
    dtype = form.dtype
    problem = Problem(
        dtype, matrices, lines, columns, extents[-1],
        boxes=takes(form),
        rounded=detail.rounded,
        computed=any(each is not None for each in detail.prologues),
        across=(not form.first.inner, not form.second.inner),
        other=form.other,
    )  # fmt: skip
    tile, exact, grid, parts, chunk = launch_for(machine, problem)
    if isinstance(tile, GroupTile):
        tile = tile.for_operands(_loaded(program))
    sizes = (lines, columns, extents[-1])
    fixed = parts == 1 and matrices == 1 and exact and _has_sizes_in_text(detail, tile, sizes)
    phase = Phase.WHOLE if parts == 1 else Phase.PART
    variant = ProductVariant(phase, tile, exact, sizes if fixed else None)
    stage = Stage(variant, Dim3(*grid), Dim3(tile.threads), integers=(matrices, chunk))
    if parts == 1:
        return Strategy((stage,))
    size = matrices * lines * columns
    join = Stage(
        variant._replace(phase=Phase.JOIN),
        Dim3(-(-size // (detail.form.lanes * JOINING))),
        Dim3(JOINING),
        (0,),
        (matrices, parts),
    )
    scratch = (wide(dtype).short, parts * size)
    return Strategy((replace(stage, scratch=(0,)), join), (scratch,))


def _loaded(program: Program) -> int:
    """The bytes that an element's epilogue loads, where no factor is computed."""
    loads = [step for step in program.steps if step.op in ("load", "gather")]
    return sum(dtype_named(step.type).itemsize for step in loads)


def _has_sizes_in_text(detail: Multiplied, tile: AnyTile, sizes: tuple[int, int, int]) -> bool:
    """Whether a product is worth a kernel of its own for its sizes: a large one by opaque matrices,
    whose compilers have few registers beside the sums, of whole tiles and packed factors."""
    rows, columns, inner = sizes
    return (
        isinstance(tile, OpaqueTile)
        and not has_sizes(sizes)
        and 2 * rows * columns * inner >= LARGE_PRODUCT
        and rows % tile.rows == 0
        and columns % tile.columns == 0
        and all(detail.packed)
        and all(loading.aligned for loading in (detail.form.first, detail.form.second))
    )


def _numbers_in_text(detail: Multiplied, sizes: tuple[int, int, int]) -> dict[str, int]:
    """The library's parameters that are constants then."""
    rows, columns, inner = sizes
    found = {"m": rows, "n": columns, "k": inner, "matrices": 1, "extent1": 1, "extent2": 1}
    factors = ("a", detail.form.first, rows), ("b", detail.form.second, columns)
    for name, loading, lines in factors:
        found |= {f"{name}{axis}": 0 for axis in range(3)}
        far = (inner if loading.inner else lines) // loading.lanes
        found[f"{name}_line"], found[f"{name}_step"] = (far, 1) if loading.inner else (1, far)
    return found


def product_in(program: Program) -> tuple[int, Multiplied]:
    """The number of the step that is the product, and its detail."""
    for number, step in enumerate(program.steps):
        if step.op == "product":
            return number, step.detail
    raise AssertionError("a program of this kind has a product")


def emit_product(program: Program, variant: ProductVariant) -> n.Kernel:
    """The kernel of one of the stages that `product_strategy` plans."""
    number, detail = product_in(program)
    library = _library_kernel(detail.form, variant)
    lowered = inline(library.lower(Signature(declared_arguments(library))).kernel)
    body = Body(program)
    own = [body.builder.parameter(f"n{program.integers + k}", body.index_type) for k in range(_OWN)]
    numbers = body.integers[detail.first :][: len(library.parameters)]
    factors = [None if each is None else body.buffers[each].name for each in detail.buffers]
    scratch = f"a{len(program.buffers)}"
    if variant.phase != Phase.WHOLE:
        body.builder.buffer(scratch, type_named(wide(detail.form.dtype).short))
    body.adopt(lowered)
    # The library's names, and what stands for them here.
    if variant.phase == Phase.JOIN:
        names = dict(zip(("m", "n", "matrices", "parts"), (*numbers[:2], *own), strict=True))
        memories = {"x": scratch}
    else:
        arguments = [each.name for each in library.parameters[3:]]
        taken = [*numbers[: len(arguments) - _OWN], *own]
        names = dict(zip(arguments, taken, strict=True))
        memories = {name: own for name, own in zip("ab", factors, strict=True) if own is not None}
        if variant.phase == Phase.PART:
            memories["c"] = scratch
    known = {} if variant.sizes is None else _numbers_in_text(detail, variant.sizes)
    values = {
        each.name: ir.constant(known[each.name], each.type)
        if each.name in known
        else ir.cast(names[each.name], each.type)
        if each.name in names
        else ir.constant(0, each.type)  # the size of an array, of no use to unchecked accesses
        for each in lowered.parameters
    }
    block = substitute(lowered.body, values, memories)

    if isinstance(variant.tile, GroupTile) and detail.form.lanes > 1:
        block = rewrite_block(block, _loads_first)

    def change(node: Any) -> Any:
        if not (isinstance(node, n.Assign) and isinstance(node.value, n.Call)):
            return node
        called, arguments = node.value.function, node.value.arguments
        if called != FINISH and called not in PROLOGUES:
            return node
        with body.builder.aside() as statements:
            if called == FINISH:
                _finish(body, number, detail, arguments)  # type: ignore[arg-type]
            else:
                value = _computed(body, detail, PROLOGUES.index(called), arguments)  # type: ignore[arg-type]
                body.builder.assign(node.place, value)
        return tuple(statements)

    for statement in rewrite_block(block, change):
        body.builder.emit(statement)
    return body.kernel()


def _loads_first(node: Any) -> Any:
    """What is stored under tests of its row and its column, with the tests as further arguments of
    `finish`: operands are loaded whether they hold or not. Few warps do an epilogue there, one
    element after the other; branches would keep the next loads behind the last store."""
    if not isinstance(node, n.If) or node.otherwise or not node.then:
        return node
    *before, last = node.then
    if not (isinstance(last, n.Assign) and isinstance(last.value, n.Call)):
        return node
    call = last.value
    if call.function != FINISH or not all(isinstance(each, n.Declare) for each in before):
        return node
    arguments = (*call.arguments[:_PLACED], node.condition, *call.arguments[_PLACED:])
    return (*before, replace(last, value=replace(call, arguments=arguments)))


def _library_kernel(form: Form, variant: ProductVariant) -> Kernel:
    if variant.phase == Phase.JOIN:
        return part_joiner(form.made, form.lanes, form.big)
    parts = variant.phase == Phase.PART
    whole = variant.sizes is not None
    form = form._replace(exact=variant.exact, parts=parts, whole=whole)
    return multiplier_for(form, variant.tile)


def _finish(body: Body, number: int, detail: Multiplied, arguments: Sequence[n.Expression]) -> None:
    """The epilogue of an element of the product, or of four neighbours, and storing it."""
    program = body.program
    value, *places = arguments[:_PLACED]
    total = body.let("total", value)
    tests = [body.let("inside", each) for each in arguments[_PLACED:]]
    here = ir.both(*tests) if tests else None
    point: list[n.Expression] = []
    done = 0
    for number_of, (place, axes) in enumerate(zip(places, detail.axes, strict=True)):
        seen = ir.cast(place, body.index_type)
        if tests and number_of:  # a row and a column that exist; tests are of rows, then of columns
            seen = ir.select(tests[number_of - 1], seen, 0)
        at = body.let("at", seen)
        point += _split(body, at, body.extents[done : done + axes])
        done += axes
    if isinstance(total.type, Vector):
        lanes = [
            {number: body.let("part", ir.extract(total, COMPONENTS[lane]))}
            for lane in range(program.lanes)
        ]
        store_lanes(body, point, lanes, here)
        return
    assert here is None, "tests are arguments where lanes are stored together"
    values = body.evaluate(point, [output.step for output in program.outputs], {number: total})
    for output in program.outputs:
        body.store(output.access, point, values[output.step])


def _computed(
    body: Body, detail: Multiplied, position: int, arguments: Sequence[n.Expression]
) -> n.Expression:
    """An element of a computed factor, or four neighbours along the axis that it is read along."""
    prologue = detail.prologues[position]
    assert prologue is not None
    loading = (detail.form.first, detail.form.second)[position]
    point: list[n.Expression] = []
    for place, axes in zip(arguments, prologue.axes, strict=True):
        at = body.let("at", ir.cast(place, body.index_type))
        point += _split_by_shifts(body, at, axes)
    stack, lines, inner = map(len, prologue.axes)
    near = stack + lines + (inner if loading.inner else 0) - 1
    values = values_of_lanes(body, point, near, loading.lanes, [prologue.step])
    type = type_named(wide(detail.form.dtype).short)
    found = [cast(each[prologue.step], type) for each in values]
    if loading.lanes == 1:
        return found[0]
    assert isinstance(type, Scalar)
    return n.Construct(tuple(found), Vector(type, loading.lanes))


def _split_by_shifts(body: Body, at: n.Variable, axes: Sequence[Axis]) -> list[n.Expression]:
    """The indices along a factor's axes of an element that is the `at`-th of them."""
    left: n.Expression = at
    found: list[n.Expression] = []
    for axis in reversed(axes[1:]):
        extent = body.integers[axis.extent]
        if axis.shift == FIXED:
            found.append(body.let("i", ir.binary("mod", left, extent)))
            left = body.let("r", ir.binary("floordiv", left, extent))
        else:
            found.append(body.let("i", ir.binary("and", left, ir.sub(extent, 1))))
            left = body.let("r", ir.binary("shr", left, body.integers[axis.shift]))
    return [left, *reversed(found)] if axes else []


def _split(body: Body, at: n.Variable, extents: Sequence[n.Variable]) -> list[n.Expression]:
    """The indices along some axes of an element that is the `at`-th of them."""
    left: n.Expression = at
    found: list[n.Expression] = []
    for extent in reversed(extents[1:]):
        found.append(body.let("i", ir.binary("mod", left, extent)))
        left = body.let("r", ir.binary("floordiv", left, extent))
    return [left, *reversed(found)] if extents else []
