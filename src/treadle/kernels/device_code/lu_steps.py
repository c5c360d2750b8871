"""LU with partial pivoting in one launch for each panel of columns.

A launch does two things at once. One block of each matrix updates the next panel by the one before
it and factors it, with the panel's rows in registers. All other blocks update the columns behind by
the panel before. So the panels, which are a long chain of small steps, do not wait for the updates.

Rows are not exchanged in memory: `order` has the row that is at each position. What is found goes
to arrays of their own, which nothing else in the launch reads: the rows of U to `u`, in order, and
the columns of L to `lower`. `lower` and `order` have two halves, of which a launch reads one and
writes the other.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType, float32, i32
from treadle.kernels.device_code.element_arithmetic import arithmetic_of
from treadle.lang.decorators import Function, Kernel

WIDEST = 32  # columns of a panel at most
_INVERTIBLE = 2.0**-120  # pivots from here on have a reciprocal
_SIDE = 16  # threads that compare the candidates of all others
_NATIVE = 4  # bytes of numbers that subgroups of every target compare
NOWHERE = 1 << 20  # behind all positions, and still small when it is multiplied


class Step(NamedTuple):
    """What a launch is compiled for: a panel of `width` columns behind one of `before` columns. A
    thread of the panel's block has `rows` rows. Other blocks update tiles of `tile` by `tile`
    elements, `tile` a multiple of 16."""

    dtype: DType
    threads: int
    warp: int  # threads of a subgroup; 0 if there are none
    rows: int
    width: int
    before: int
    tile: int

    @property
    def shared_elements(self) -> int:
        """Of the array that both kinds of blocks use."""
        panel = self.before * (self.before + self.width) + self.threads * (self.width + 1)
        return max(panel, self.before * (self.before + 2 * self.tile))

    @property
    def shared_bytes(self) -> int:
        """The shared memory of a block."""
        item = self.dtype.itemsize
        pairs = self.dtype.component.itemsize + 4
        rows = self.shared_elements + 2 * self.slots * self.width
        return rows * item + (self.candidates + _SIDE) * pairs

    @property
    def slots(self) -> int:
        """The rows that may be the pivot's: one of each subgroup."""
        return self.threads // self.warp if self.warp else 1

    @property
    def candidates(self) -> int:
        """How many numbers are compared in shared memory, those of two steps together."""
        return 2 * self.slots if self.warp else self.threads


@functools.cache
def pivoting(dtype: DType) -> tuple[DType, Function]:
    """The dtype that magnitudes are compared in, and a function that gives an element's: -1 for
    NaN. The bits of float32 numbers that are not negative are in the order of integers, which
    subgroups compare faster."""
    ops = arithmetic_of(dtype)
    size, real = ops.size, ops.real
    if real is not float32:

        @td.func
        def measure(value):
            here = size(value)
            return real(-1) if td.isnan(here) else here

        return real, measure

    @td.func
    def measure_bits(value):
        here = size(value)
        return -1 if td.isnan(here) else td.bitcast(here, i32)

    return i32, measure_bits


@functools.cache
def loading_triangle(dtype: DType, before: int, threads: int) -> Function:
    """A function that writes the unit lower triangle of a panel to shared memory: in row k what is
    below the diagonal in column k, then zeros. `source` is where the panel's sources begin."""
    ops = arithmetic_of(dtype)
    number, real = ops.number, ops.real
    rounds = -(-before * before // threads)

    @td.func
    def load(lower, start, n, order, source, first, known, board):
        t = td.thread_idx.x
        for each in td.static_range(rounds):
            e = each * threads + t
            k = e // before
            i = k + 1 + e % before
            value = number(real(0))
            if i < known:
                value = lower[start + k * n + first + order[source + first + i]]
            if e < before * before:
                board[e] = value

    return load


@functools.cache
def eliminating(dtype: DType, before: int, columns: int) -> Function:
    """A function by which a thread substitutes through such a triangle, at the beginning of
    `board`, for a column of the `columns` that follow it."""
    ops = arithmetic_of(dtype)
    element, mul, number, real = ops.element, ops.mul, ops.number, ops.real

    @td.func
    def eliminate(board, column):
        x = td.local(before, element)
        line = td.local(before, element)
        for k in td.static_range(before):
            x[k] = board[before * before + k * columns + column]
        for k in range(before):
            for j in td.static_range(before):
                line[j] = board[k * before + j]
            known = x[0]
            for j in td.static_range(before - 1):
                x[j] = x[j + 1] - mul(line[j], known)
            x[before - 1] = number(real(0))
            board[before * before + k * columns + column] = known

    return eliminate


@functools.cache
def searching(what: Step) -> Function:
    """A function that finds the block's largest magnitude `most` (the first, of equal ones), given
    each thread's and its position. It gives the position, where the row is in `slots`, and `most`.
    The row's thread writes it there. Calls alternate between the two halves of the arrays, by
    `side`."""
    dtype, threads, warp, rows_each, width, _, _ = what
    key, _ = pivoting(dtype)
    slots_each = what.slots
    native, halvings = key.itemsize <= _NATIVE, warp.bit_length() - 1

    @td.func
    def largest_of_subgroup(value):
        if native:
            return td.subgroup_max(value)
        most = value
        for step in td.static_range(halvings):
            other = td.shuffle_xor(most, 1 << step)
            most = other if other > most else most
        return most

    @td.func
    def write_row(row, slots, r, place, at):
        for s in td.static_range(rows_each):
            if place[s] == row:
                for j in td.static_range(width):
                    slots[at + j] = r[s * width + j]

    @td.func
    def search_subgroups(best, where, side, tops, places, few_tops, few_places, slots, r, place):
        own = td.thread_idx.x // warp
        lane = td.lane()
        top = largest_of_subgroup(best)
        lowest = td.subgroup_min(where if best == top else NOWHERE)
        if lane == 0:
            tops[side + own] = top
            places[side + own] = lowest * slots_each + own
        write_row(lowest, slots, r, place, (side + own) * width)
        td.sync_threads()
        top = key(-2)
        code = NOWHERE * slots_each
        if lane < slots_each:
            top = tops[side + lane]
            code = places[side + lane]
        most = largest_of_subgroup(top)
        code = td.subgroup_min(code if top == most else NOWHERE * slots_each)
        return code // slots_each, (side + code % slots_each) * width, most

    @td.func
    def better(top, where, other, place):
        return other > top or (other == top and place < where)

    @td.func
    def search_threads(best, where, side, tops, places, few_tops, few_places, slots, r, place):
        t = td.thread_idx.x
        tops[t] = best
        places[t] = where
        td.sync_threads()
        top = best
        lowest = where
        if t < _SIDE:
            for e in range(t, threads, _SIDE):
                if better(top, lowest, tops[e], places[e]):
                    top = tops[e]
                    lowest = places[e]
            few_tops[t] = top
            few_places[t] = lowest
        td.sync_threads()
        for e in range(_SIDE):
            if better(top, lowest, few_tops[e], few_places[e]):
                top = few_tops[e]
                lowest = few_places[e]
        write_row(lowest, slots, r, place, side * width)
        td.sync_threads()
        return lowest, side * width, top

    return search_subgroups if warp else search_threads


@functools.cache
def lu_step(what: Step) -> Kernel:
    """The kernel. `work` and `u` have the layout (matrices, n, m), `lower` (2, matrices, WIDEST,
    n), `order` (2, 2, matrices, n): the row at each position, then where in its panel it was. The
    panel before begins at column `first` and has `known` columns, the next at `at` and has
    `columns`; either may have none. `status` becomes the first pivot (counted from 1) that is 0."""
    dtype, threads, _, rows_each, width, before, tile = what
    ops = arithmetic_of(dtype)
    element, mul, div, number, real = ops.element, ops.mul, ops.div, ops.number, ops.real
    size = ops.size
    key, measure = pivoting(dtype)
    load_triangle = loading_triangle(dtype, before, threads)
    eliminate_panel = eliminating(dtype, before, width)
    eliminate_strip = eliminating(dtype, before, tile)
    shared_elements = what.shared_elements
    pitch = width + 1
    search = searching(what)
    slots_each, candidates = what.slots, what.candidates
    # A thread of another block computes so many elements of a tile, in a grid of threads.
    across = min(16, threads)
    down = threads // across
    out_rows, out_columns = tile // down, tile // across
    strip_rounds, tile_rounds = -(-before * width // threads), -(-before * tile // threads)
    unrolled = min(before, 4)
    held = before * (before + width)  # where rows are in shared memory
    # Columns of L whose elements a thread loads at once.
    batch = min(before, 4 if threads > 512 else 8)

    @td.kernel(checked=False)
    def step(
        work, u, lower, order: td.Array[td.i32], pivots: td.Array[td.i32, 2],
        status: td.Array[td.i32], matrices: td.i32, n: td.i32, m: td.i32,
        first: td.i32, known: td.i32, at: td.i32, columns: td.i32, parity: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        board = td.shared(shared_elements, element)
        slots = td.shared(2 * slots_each * width, element)
        tops = td.shared(candidates, key)
        places = td.shared(candidates, td.i32)
        few_tops = td.shared(_SIDE, key)
        few_places = td.shared(_SIDE, td.i32)
        panels = matrices if columns > 0 else 0
        block = td.block_idx.x
        if block < panels:
            base = block * n * m
            old_order = ((1 - parity) * matrices + block) * n
            new_order = (parity * matrices + block) * n
            old_source = old_order + 2 * matrices * n
            old_lower = ((1 - parity) * matrices + block) * WIDEST * n
            new_lower = (parity * matrices + block) * WIDEST * n
            rows = n - at
            r = td.local(rows_each * width, element)
            place = td.local(rows_each, td.i32)
            # Rows are loaded along the columns, and go through shared memory to their threads.
            for s in td.static_range(rows_each):
                for e in td.static_range(width):
                    one = e * threads + t
                    i = s * threads + one // width
                    column = one % width
                    value = number(real(0))
                    if i < rows and column < columns:
                        value = work[base + order[old_order + at + i] * m + at + column]
                    r[s * width + e] = value
            if known > 0:
                load_triangle(lower, old_lower, n, order, old_source, first, known, board)
                for each in td.static_range(strip_rounds):
                    e = each * threads + t
                    k = e // width
                    column = e % width
                    value = number(real(0))
                    if k < known and column < columns:
                        value = work[base + order[old_order + first + k] * m + at + column]
                    if e < before * width:
                        board[before * before + e] = value
                td.sync_threads()
                for column in range(t, width, threads):
                    eliminate_panel(board, column)
                td.sync_threads()
                for e in range(t, known * width, threads):
                    k = e // width
                    column = e % width
                    if column < columns:
                        u[base + (first + k) * m + at + column] = board[before * before + e]
            for s in td.static_range(rows_each):
                for e in td.static_range(width):
                    one = e * threads + t
                    board[held + one // width * pitch + one % width] = r[s * width + e]
                td.sync_threads()
                for j in td.static_range(width):
                    r[s * width + j] = board[held + t * pitch + j]
                td.sync_threads()
                i = s * threads + t
                place[s] = i if i < rows else -1
            if known > 0:
                factors = td.local(rows_each * batch, element)
                sources = td.local(rows_each, td.i32)
                for s in td.static_range(rows_each):
                    i = s * threads + t
                    sources[s] = old_lower + first
                    if i < rows:
                        sources[s] += order[old_source + at + i]
                for start in range(0, known, batch):
                    for q in td.static_range(batch):
                        for s in td.static_range(rows_each):
                            value = number(real(0))
                            if s * threads + t < rows and start + q < known:
                                value = lower[sources[s] + (start + q) * n]
                            factors[q * rows_each + s] = value
                    for q in td.static_range(batch):
                        for j in td.static_range(width):
                            above = board[before * before + (start + q) * width + j]
                            for s in td.static_range(rows_each):
                                z = r[s * width + j]
                                r[s * width + j] = z - mul(factors[q * rows_each + s], above)
            # The current column is always the first of the registers: after each step they move on.
            bad = 0
            for k in range(width):
                best = key(-2)
                where = NOWHERE
                for s in td.static_range(rows_each):
                    if place[s] >= k:
                        mine = measure(r[s * width])
                        if mine > best or (mine == best and place[s] < where):
                            best = mine
                            where = place[s]
                side = (k & 1) * slots_each
                found, from_slot, most = search(
                    best, where, side, tops, places, few_tops, few_places, slots, r, place
                )
                if k < columns:
                    if t == 0:
                        pivots[block, at + k] = at + found
                    if t < width - k and k + t < columns:
                        u[base + (at + k) * m + at + k + t] = slots[from_slot + t]
                    if most == key(0) and bad == 0:
                        bad = at + k + 1
                pivot = slots[from_slot]
                inverse = number(real(1))
                invertible = size(pivot) >= real(_INVERTIBLE)
                if invertible:
                    inverse = div(number(real(1)), pivot)
                for s in td.static_range(rows_each):
                    here = place[s]
                    i = s * threads + t
                    if here == found:
                        here = -2 - k  # it stays there, and takes no part any more
                    elif here == k:
                        here = found
                    place[s] = here
                    if here > k:
                        last = r[s * width]
                        if invertible:
                            last = mul(last, inverse)
                        elif most != key(0):
                            last = div(last, pivot)
                        lower[new_lower + k * n + at + i] = last
                        for j in td.static_range(width - 1):
                            z = r[s * width + j + 1]
                            r[s * width + j] = z - mul(last, slots[from_slot + j + 1])
                        r[s * width + width - 1] = number(real(0))
            if t == 0 and bad != 0 and status[block] == 0:
                status[block] = bad
            for s in td.static_range(rows_each):
                here = place[s]
                here = -2 - here if here < -1 else here
                if here >= 0:
                    i = s * threads + t
                    order[new_order + at + here] = order[old_order + at + i]
                    order[new_order + 2 * matrices * n + at + here] = i
        else:
            after = at + columns
            wide = (m - after + tile - 1) // tile
            high = td.maximum((n - at + tile - 1) // tile, 1)
            one = block - panels
            matrix = one // (wide * high)
            one -= matrix * (wide * high)
            top_row = at + one // wide * tile
            left = after + one % wide * tile
            base = matrix * n * m
            old_order = ((1 - parity) * matrices + matrix) * n
            old_source = old_order + 2 * matrices * n
            old_lower = ((1 - parity) * matrices + matrix) * WIDEST * n
            y = t // across
            x = t % across
            sums = td.local(out_rows * out_columns, element)
            lines = td.local(out_rows, td.i32)
            for p in td.static_range(out_rows):
                row = top_row + y + p * down
                lines[p] = 0
                if row < n:
                    lines[p] = base + order[old_order + row] * m
                for q in td.static_range(out_columns):
                    column = left + x + q * across
                    value = number(real(0))
                    if row < n and column < m:
                        value = work[lines[p] + column]
                    sums[p * out_columns + q] = value
            load_triangle(lower, old_lower, n, order, old_source, first, known, board)
            strip = before * before
            lefts = strip + before * tile
            for each in td.static_range(tile_rounds):
                e = each * threads + t
                k = e // tile
                other = e % tile
                value = number(real(0))
                if k < known and left + other < m:
                    value = work[base + order[old_order + first + k] * m + left + other]
                factor = number(real(0))
                if k < known and top_row + other < n:
                    line = first + order[old_source + top_row + other]
                    factor = lower[old_lower + k * n + line]
                if e < before * tile:
                    board[strip + e] = value
                    board[lefts + e] = factor
            td.sync_threads()
            for column in range(t, tile, threads):
                eliminate_strip(board, column)
            td.sync_threads()
            if top_row == at:
                for e in range(t, known * tile, threads):
                    column = left + e % tile
                    if column < m:
                        u[base + (first + e // tile) * m + column] = board[strip + e]
            for start in range(0, known, unrolled):
                for e in td.static_range(unrolled):
                    k = start + e
                    for p in td.static_range(out_rows):
                        factor = board[lefts + k * tile + y + p * down]
                        for q in td.static_range(out_columns):
                            above = board[strip + k * tile + x + q * across]
                            z = sums[p * out_columns + q]
                            sums[p * out_columns + q] = z - mul(factor, above)
            for p in td.static_range(out_rows):
                for q in td.static_range(out_columns):
                    column = left + x + q * across
                    if top_row + y + p * down < n and column < m:
                        work[lines[p] + column] = sums[p * out_columns + q]

    return step


@functools.cache
def system_joiner(dtype: DType) -> Kernel:
    """A kernel that writes matrices (and right sides, behind their columns) to `work`, and the
    first order of rows. A thread does one element."""

    @td.kernel(checked=False)
    def join(a, b, work, order: td.Array[td.i32], matrices: td.i32, n: td.i32, m: td.i32):
        thread = td.grid(1)
        row = thread // m
        column = thread - row * m
        if column < n:
            work[thread] = a[row * n + column]
        else:
            work[thread] = b[row * (m - n) + column - n]
        if column == 0:
            order[matrices * n + row] = row % n

    return join
