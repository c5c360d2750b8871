"""How rows of known sizes are divided among threads: the strategies of reducing programs."""

from __future__ import annotations

import math

from treadle.core.dim3 import Dim3
from treadle.core.sizes import is_size
from treadle.graph.emit.body import type_named
from treadle.graph.emit.combine import kept_type
from treadle.graph.emit.row_analysis import (
    RowAnalysis,
    cost,
    needed,
    online,
    row_analysis,
    scratch_of,
    steady,
    wanted_in,
)
from treadle.graph.emit.row_loops import LANES, TILE, vectors_at_once
from treadle.graph.emit.row_walk import Neighbours, RowVariant
from treadle.graph.program import IN_PARTS, NEXT, Phase, Program, Stage, Strategy, Style
from treadle.ir.types import size_of
from treadle.kernels.machine import Machine

# A CPU: blocks that give many cores work, and elements that are worth a block.
_BLOCKS = 128
_BLOCK_ELEMENTS = 1 << 14
_LONG = 256  # elements of a row of which few are left when four vectors are taken at once
_STRIP = 1024  # rows that are done together, side by side
_NARROW = 256  # the fewest: lines of memory that are pages apart are slow to reach
_STRIP_BYTES = 1 << 20  # what they may take to be near when they are visited again
# A GPU: threads that keep it busy, and elements that are worth a thread.
_THREADS = 256
_BUSY = 1 << 18
_THREAD_ITERATIONS = 4
_STRIPE = 32  # neighbouring rows that threads go along with, for memory's sake
_JOIN_UNROLL = 4  # parts whose states a thread loads at once: it waits for them, and does no more
_SUBGROUP = 32  # threads that exchange values without shared memory, or nearly
_HELD, _HELD_IN_SOFTWARE = 32, 8  # words of a row in a thread: drivers compile them for long
# What a thread computes of the elements that it holds, all of which is unrolled; and what it
# computes at once of others. Software drivers take more than linear time to compile it.
_HELD_COST, _HELD_COST_IN_SOFTWARE = 4096, 256
_COST_IN_SOFTWARE = 100
_LOADS = 2  # of a thread at least, rather than one in each of twice as many
_HELD_BLOCK = 128  # threads of a block, if a row needs no more
_HELD_THREADS = 1024  # of a row, where the device has them
_HELD_VARYING = 4  # elements, or vectors, of a thread at most if the length of rows varies


def row_strategy(program: Program, extents: tuple[int, ...], machine: Machine) -> Strategy:
    """The launches for rows of these sizes."""
    rows = math.prod(extents[: program.kept])
    if rows == 0:
        return Strategy(())
    row = extents[program.kept :]
    if program.style == Style.LOOPS:
        return _loops(program, extents[: program.kept], row, machine)
    return _threads(program, rows, row, machine)


def _stages(
    program: Program, variant: RowVariant, join: RowVariant, rows: int, grid: tuple[int, int],
    block: int, parts: int, span: int,
) -> Strategy:  # fmt: skip
    """The stages of a way in which `grid` blocks cover the rows: of `variant`, and of `join`."""
    if parts <= 1:
        return Strategy((Stage(variant, Dim3(grid[0]), Dim3(block)),))
    scratch = scratch_of(program)
    own = tuple(range(len(scratch.names)))
    analysis = row_analysis(program)

    def stage(variant: RowVariant, blocks: Dim3, threads: int) -> Stage:
        return Stage(variant, blocks, Dim3(threads), own, (parts, span))

    stages: list[Stage] = []
    joining = join.rows * join.threads if program.style == Style.THREADS else 1
    for number in range(len(analysis.passes)):
        part = variant._replace(phase=Phase.PART, number=number)
        stages.append(stage(part, Dim3(grid[0], parts), block))
        stages.append(stage(join._replace(phase=Phase.JOIN, number=number), Dim3(grid[1]), joining))
    if analysis.each:
        stages.append(stage(variant._replace(phase=Phase.LAST), Dim3(grid[0], parts), block))
    return Strategy(tuple(stages), scratch.buffers(rows, parts))


# --- a CPU's loops --------------------------------------------------------------------------------


def _loops(
    program: Program, kept: tuple[int, ...], row: tuple[int, ...], machine: Machine
) -> Strategy:
    analysis = row_analysis(program)
    rows, length = math.prod(kept), math.prod(row)
    along = _goes_along_row(program, kept, row)
    bytes_each = max((size_of(type_named(b)) for b in program.buffers), default=4)
    wide = _power_below(_STRIP_BYTES // max(length * bytes_each, 1))
    near = len(analysis.passes) + bool(analysis.each) > 1
    near = near and (length < IN_PARTS if along else wide >= _NARROW)
    plain = program
    if not near:
        program = online(program)
        analysis = row_analysis(program)
    cost = analysis.cost
    if along:
        last = row[-1] if row else 1
        variant = RowVariant(
            Phase.WHOLE, Neighbours.ELEMENTS, unroll=vectors_at_once(cost), long=last >= _LONG
        )
        units = -(-last // TILE) * math.prod(row[:-1])
        blocks = rows
    else:
        wide = min(wide, _STRIP) if near else _STRIP
        wide = min(wide, _power_below(machine.shared_bytes // _bytes_of_row(program, analysis)))
        variant = RowVariant(
            Phase.WHOLE,
            Neighbours.ROWS,
            rows=wide,
            unroll=8 if cost <= 4 else 4 if cost <= 16 else 2,
        )
        units = length
        blocks = math.prod(kept[:-1]) * -(-kept[-1] // wide)
    variant = variant._replace(online=program is not plain)
    parts = 1 if near else _parts_of_loops(program, rows * length, blocks)
    span = -(-units // max(min(parts, units), 1))
    parts = -(-units // max(span, 1))
    join = variant._replace(unroll=1 if variant.along == Neighbours.ELEMENTS else 4, long=False)
    return _stages(program, variant, join, rows, (blocks, blocks), 1, parts, span)


def _parts_of_loops(program: Program, elements: int, blocks: int) -> int:
    if blocks >= _BLOCKS // 2 or not scratch_of(program).fits(program):
        return 1
    return min(-(-_BLOCKS // blocks), elements // (_BLOCK_ELEMENTS * blocks))


def _bytes_of_row(program: Program, analysis: RowAnalysis) -> int:
    """What a row has in memory while a strip of rows is done."""
    steps = {reduction.step for reduction in analysis.reductions}
    for number in range(len(analysis.passes) + 1):
        steps |= set(steady(program, analysis, wanted_in(analysis, number)))
    states = [part for reduction in analysis.reductions for part in reduction.parts]
    kept = [type_named(program.steps[step].type) for step in steps]
    return sum(map(size_of, (*states, *states, *kept)))


def _goes_along_row(program: Program, kept: tuple[int, ...], row: tuple[int, ...]) -> bool:
    """Whether neighbours are better elements of a row than rows: as memory has them, unless there
    are too few to fill the lanes."""
    if not kept:
        return True
    if not row:
        return False
    along, across = _neighbours(program)
    if along >= across:
        return row[-1] >= LANES or kept[-1] < LANES // 2
    return kept[-1] < LANES // 2 and row[-1] >= LANES


def _neighbours(program: Program) -> tuple[int, int]:
    """How many accesses find neighbours side by side: elements of a row, and rows."""
    loads = {step.detail for step in program.steps if step.op == "load"}
    axes = [access.axes for k, access in enumerate(program.accesses) if k in loads]
    last = program.kept + program.reduced
    along = sum(len(a) == last and a[-1] == NEXT for a in axes if program.reduced)
    return along, sum(a[program.kept - 1] == NEXT for a in axes if program.kept)


# --- a GPU's threads ------------------------------------------------------------------------------


def _threads(program: Program, rows: int, row: tuple[int, ...], machine: Machine) -> Strategy:
    analysis = row_analysis(program)
    held = _held(program, analysis, rows, row, machine)
    if held is not None:
        return held
    program, plain = online(program), program
    analysis = row_analysis(program)
    most = _most_threads(program, analysis, machine)
    along, across = _neighbours(program)
    by_row = program.kept == 0 or along >= across
    lanes = program.lanes if by_row and row else 1
    if machine.slow_to_compile and analysis.cost * lanes > _COST_IN_SOFTWARE:
        lanes = 1
    units = math.prod(row) // lanes
    unroll = _unroll(analysis.cost, lanes, machine)
    if by_row:
        threads = min(most, _power_above(-(-units // min(unroll, 2))))
        own = machine.subgroup
        variant = RowVariant(
            Phase.WHOLE, Neighbours.ELEMENTS, most // threads, threads, unroll, lanes, subgroup=own
        )
    else:
        wide = min(most, _power_above(rows), _STRIPE if rows * units < _BUSY * 64 else most)
        wide = wide if rows < _BUSY else min(most, _power_above(rows))
        threads = min(most // wide, _power_above(-(-units // unroll)))
        variant = RowVariant(Phase.WHOLE, Neighbours.ROWS, wide, threads, unroll, 1)
    variant = variant._replace(online=program is not plain)
    blocks = -(-rows // variant.rows)
    parts = _parts_of_threads(program, blocks, units, variant)
    span = -(-units // max(parts, 1))
    parts = -(-units // max(span, 1))
    adjacent = 1 if variant.along == Neighbours.ELEMENTS else min(variant.rows, _STRIPE)
    threads = min(most // adjacent, _power_above(parts))
    joined = most // threads if variant.along == Neighbours.ELEMENTS else adjacent
    unroll = min(_JOIN_UNROLL, _power_above(-(-parts // threads)))
    join = variant._replace(rows=joined, threads=threads, unroll=unroll, lanes=1)
    block = variant.rows * variant.threads
    return _stages(
        program, variant, join, rows, (blocks, -(-rows // join.rows)), block, parts, span
    )


def _held(
    program: Program, analysis: RowAnalysis, rows: int, row: tuple[int, ...], machine: Machine
) -> Strategy | None:
    """The launch for rows that are visited more than once and that threads can hold."""
    if not row or len(analysis.passes) + bool(analysis.each) < 2:
        return None
    along, across = _neighbours(program)
    by_row = program.kept == 0 or along >= across
    lanes = program.lanes if by_row else 1
    units = math.prod(row) // lanes
    each = cost(program, analysis.varying)
    slow = machine.slow_to_compile
    most_words = _HELD_IN_SOFTWARE if slow else _HELD
    most_cost = _HELD_COST_IN_SOFTWARE if slow else _HELD_COST
    words = min(most_words // max(analysis.words, 1), most_cost // max(each, 1))
    if words < lanes:
        return None
    threads = _power_above(-(-units // max(words // lanes, 1)))
    most = _most_threads(program, analysis, machine, _HELD_THREADS)
    if by_row:
        threads = max(min(_power_above(-(-units // _LOADS)), _SUBGROUP), threads)
        adjacent = 1
    else:  # neighbouring threads have neighbouring rows
        adjacent = min(_STRIPE, _power_above(rows))
    if threads * adjacent > most:
        return None
    while rows * threads < _BUSY // 2 and threads < units and threads * adjacent < _THREADS:
        threads *= 2
    if threads * adjacent < _HELD_BLOCK:
        adjacent = max(min(_HELD_BLOCK, most) // threads, 1)
    number = -(-units // threads)
    varies = is_size(units)
    if varies and number > _HELD_VARYING:
        return None  # each number is a kernel
    variant = RowVariant(
        Phase.WHOLE, Neighbours.ELEMENTS if by_row else Neighbours.ROWS, adjacent, threads,
        _at_once(program, analysis), lanes, held=number,
        even=not varies and number * threads == units,
        subgroup=machine.subgroup,
    )  # fmt: skip
    return Strategy((Stage(variant, Dim3(-(-rows // adjacent)), Dim3(adjacent * threads)),))


def _at_once(program: Program, analysis: RowAnalysis) -> int:
    """Groups of neighbours that are stored together: more than one where something is loaded for
    them, so that threads wait once."""
    known = {reduction.step for reduction in analysis.reductions}.union(*analysis.held)
    last = needed(program, wanted_in(analysis, len(analysis.passes)), known)
    loads = sum(program.steps[step].op in ("load", "gather") for step in last)
    return max(4 // loads, 1) if loads else 1


def _parts_of_threads(program: Program, blocks: int, units: int, variant: RowVariant) -> int:
    wanted = -(-_BUSY // (blocks * variant.rows * variant.threads))
    worth = units // (variant.threads * variant.unroll * _THREAD_ITERATIONS)
    parts = min(wanted, worth)
    return parts if parts > 1 and scratch_of(program).fits(program) else 1


def _unroll(cost: int, lanes: int, machine: Machine) -> int:
    """Elements (or groups of neighbours) that a thread has under variant."""
    iterations = 8 if cost <= 12 else 4 if cost <= 30 else 2
    iterations = max(iterations // (2 if lanes > 1 else 1), 1)
    if machine.slow_to_compile:
        iterations = min(iterations, max(_COST_IN_SOFTWARE // max(cost * lanes, 1), 1))
    return iterations


def _most_threads(
    program: Program, analysis: RowAnalysis, machine: Machine, liked: int = _THREADS
) -> int:
    """Threads of a block, a power of two for whose states there is shared memory."""
    each = max(
        (
            sum(size_of(kept_type(part)) for reduction in group for part in reduction.parts)
            for group in analysis.passes
        ),
        default=4,
    )
    most = min(liked, machine.most_threads, max(machine.shared_bytes // each, 1))
    return _power_below(most)


def _power_above(number: int) -> int:
    if is_size(number):  # few kernels for all sizes
        return _SUBGROUP if number <= _SUBGROUP else _HELD_THREADS
    return 1 << max(number - 1, 0).bit_length()


def _power_below(number: int) -> int:
    return 1 << max(number.bit_length() - 1, 0)
