"""Products of matrices by tiles, in registers and shared memory.

A block computes a tile of the result. Tiles of both factors go through shared memory, `depth` steps
of the inner axis at a time. The next tiles are loaded into registers while the current ones are
multiplied, so that memory latency is hidden. A thread computes groups of 4 x 4 elements. Its groups
are as far apart as one group of each thread takes, so that neighbouring threads read neighbouring
words of shared memory.

`finish` is the epilogue: it is called where an element of the result is complete. The prologues
that `prologue_of` makes are called where elements of a factor are loaded that is not in memory. A
fused kernel replaces all of them by its own (`graph.emit.products`).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Function, Kernel

MOST_BATCHES = 3  # axes
_GAP = 4  # padding elements after each row of a tile: transposed stores use different banks
_SUBGROUP = 32


class Tile(NamedTuple):
    """What a block computes of a product, in elements: `rows` and `columns` of the result, `depth`
    of the inner axis at a time.

    A thread computes `down` x `across` groups of 4 x 4. With two `copies` of the factors' tiles in
    shared memory (double buffering), one barrier a step is enough; with more of them, they are
    filled by copies that happen later (`copied_product`). `warp_columns` threads of a warp
    are side by side in a row of the tile. The loop over the depth is `unrolled` where compilers are
    quick and there are many registers. Loads are `guarded` against the end of the inner axis even
    where that is not needed, where the compiler then uses fewer registers.
    """

    rows: int
    columns: int
    depth: int
    down: int
    across: int
    copies: int = 1
    warp_columns: int = 16
    unrolled: bool = True
    guarded: bool = False

    @property
    def is_copied(self) -> bool:
        """Whether the factors come to shared memory by copies that happen later."""
        return self.copies > 2

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return (self.rows // (4 * self.down)) * (self.columns // (4 * self.across))

    def shared_bytes(self, item: int) -> int:
        """The shared memory of a block at most, for sums of so many bytes."""
        return self.copies * self.depth * (self.rows + self.columns + 2 * _GAP) * item


class Loading(NamedTuple):
    """How a factor is read: `lanes` neighbours in one load, along the `inner` axis or along the
    other one, which is the rows of the first factor and the columns of the second. A factor that is
    `computed` is not in memory: its elements are what the factor's prologue gives. Of one that is
    `aligned`, with four lanes, every other load begins at a multiple of eight elements."""

    inner: bool
    lanes: int
    computed: bool = False
    aligned: bool = False


class Form(NamedTuple):
    """What the code depends on, in addition to the tile. `lanes` elements of a row of the result
    are stored at once. `exact`: the inner axis is a multiple of the depth. `big`: indices need 64
    bits. `parts` (split-K): a block sums a part of the inner axis, and `part_joiner` adds up the
    parts. `whole`: rows and columns are multiples of the tile's. The result has the factors' dtype
    unless `result` names another one. The second factor may have an `other` dtype of the same size,
    if it is not computed."""

    dtype: DType
    batches: int  # axes
    first: Loading
    second: Loading
    lanes: int
    exact: bool
    big: bool
    parts: bool = False
    result: DType | None = None
    other: DType | None = None
    whole: bool = False

    @property
    def made(self) -> DType:
        """The dtype of the result."""
        return self.result or self.dtype

    @property
    def factors(self) -> tuple[DType, DType]:
        """The dtypes of the factors."""
        return self.dtype, self.other or self.dtype


@td.func
def finish(value, batch, row, column):
    """An element of the result, or four neighbours of a row, before it is stored."""
    return value


@td.func
def itself(value, batch, row, column):
    """The same, without an epilogue."""
    return value


@functools.cache
def prologue_of(second: bool, held: Any) -> Function:
    """What stands where elements of a computed factor are loaded: one element of a line (a row of
    the first factor, a column of the second), or four neighbours."""

    @td.func
    def first_factor(batch, line, inner):
        return held(0)

    @td.func
    def second_factor(batch, line, inner):
        return held(0)

    return second_factor if second else first_factor


@functools.cache
def tile_multiplier(form: Form, tile: Tile) -> Kernel:
    """A kernel whose blocks compute a tile each; the grid is (columns, rows, batch). Strides and
    offset of a factor count loads, each of `lanes` elements. In parts of `chunk` of the inner axis,
    the grid has all `matrices` of the stack for each part, one part after the other."""
    dtype, store_lanes, parts = form.dtype, form.lanes, form.parts
    index = td.i64 if form.big else td.i32
    rows, columns, depth, down, across, copies, _, unrolled, _ = tile
    row_step, column_step = rows // down, columns // across  # between a thread's groups
    groups = 4 * down * across
    first = _carrier(form, form.first, tile, rows, False)
    second = _carrier(form, form.second, tile, columns, True)
    a_type, a_held, a_loads, left_pitch, left_type, place_a, fetch_a, put_a = first
    b_type, b_held, b_loads, right_pitch, right_type, place_b, fetch_b, put_b = second
    whole = (
        right_type is b_held and form.second.lanes == 4
    )  # vectors are stored as they were loaded
    a_computed, b_computed = form.first.computed, form.second.computed
    vec = td.vec4[wide(dtype)]
    made = wide(dtype) if parts else form.made
    stored: Any = td.vec4[made] if store_lanes == 4 else made
    a_many = form.first.lanes if form.first.inner else 1
    b_many = form.second.lanes if form.second.inner else 1
    left_size, right_size = depth * left_pitch, depth * right_pitch
    right_step = right_size if whole else right_size // 4
    offset_of = batch_offset(form.batches, index)
    place_in_tile, store = placing(tile), storing(form, tile)

    @td.func
    def accumulate(left, right, left_at, right_at, sums):
        """One step of the inner axis."""
        beneath = td.local(across, vec)
        for group in td.static_range(across):
            if whole:
                beneath[group] = right[right_at + group * (column_step // 4)]
            else:
                at = right_at + group * column_step
                beneath[group] = vec(right[at], right[at + 1], right[at + 2], right[at + 3])
        for r in td.static_range(4):
            for g in td.static_range(down):
                value = left[left_at + g * row_step + r]
                for group in td.static_range(across):
                    sums[(g * across + group) * 4 + r] += beneath[group] * value

    @td.kernel(checked=False)
    def multiply(
        a: td.Array[a_type], b: td.Array[b_type], c: td.Array[stored],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: index, a1: index, a2: index, a_line: index, a_step: index, a_offset: index,
        b0: index, b1: index, b2: index, b_line: index, b_step: index, b_offset: index,
        matrices: td.i32, chunk: td.i32,
    ):  # fmt: skip
        left = td.shared(copies * left_size, left_type)
        right = td.shared(copies * right_size, right_type)
        t = td.thread_idx.x
        tx, ty = place_in_tile(t)
        row = td.block_idx.y * rows
        column = td.block_idx.x * columns
        z = td.block_idx.z
        batch = z % matrices if parts else z
        begin = z // matrices * chunk if parts else 0
        deep = td.minimum(chunk, k - begin) if parts else k
        a_at = td.local(a_loads, index)
        a_to = td.local(a_loads, td.i32)
        a_deep = td.local(a_loads, td.i32)
        of_a = td.local(a_loads, a_held)
        base = index(0) if a_computed else a_offset + offset_of(batch, extent1, extent2, a0, a1, a2)
        if parts and not a_computed:
            base += index(begin // a_many) * a_step
        place_a(t, base, row, m, a_line, a_step, a_at, a_to, a_deep)
        b_at = td.local(b_loads, index)
        b_to = td.local(b_loads, td.i32)
        b_deep = td.local(b_loads, td.i32)
        of_b = td.local(b_loads, b_held)
        base = index(0) if b_computed else b_offset + offset_of(batch, extent1, extent2, b0, b1, b2)
        if parts and not b_computed:
            base += index(begin // b_many) * b_step
        place_b(t, base, column, n, b_line, b_step, b_at, b_to, b_deep)
        sums = td.local(groups, vec)
        for s in td.static_range(groups):
            sums[s] = vec(0)
        steps = (deep + depth - 1) // depth
        left_at = 0  # of the current copy, in vec4s
        right_at = 0
        if a_computed:
            fetch_a(t, deep, batch, begin, a_at, a_deep, of_a)
        else:
            fetch_a(a, t, deep, a_step, a_at, a_deep, of_a)
        if b_computed:
            fetch_b(t, deep, batch, begin, b_at, b_deep, of_b)
        else:
            fetch_b(b, t, deep, b_step, b_at, b_deep, of_b)
        for step in range(steps):
            put_a(left, t, left_at * 4, a_to, of_a)
            put_b(right, t, right_at if whole else right_at * 4, b_to, of_b)
            td.sync_threads()
            if step + 1 < steps:
                remaining = deep - (step + 1) * depth
                if a_computed:
                    fetch_a(t, remaining, batch, begin + deep - remaining, a_at, a_deep, of_a)
                else:
                    fetch_a(a, t, remaining, a_step, a_at, a_deep, of_a)
                if b_computed:
                    fetch_b(t, remaining, batch, begin + deep - remaining, b_at, b_deep, of_b)
                else:
                    fetch_b(b, t, remaining, b_step, b_at, b_deep, of_b)
            upper = (
                left_at + ty
            ) * 4  # written as a multiple of 4, so that the compiler loads a vec4
            near = right_at + tx
            if unrolled:
                for d in td.static_range(depth):
                    at = near + d * right_pitch if whole else near * 4 + d * right_pitch
                    accumulate(left, right, upper + d * left_pitch, at, sums)
            else:
                for d in range(depth):
                    at = near + d * right_pitch if whole else near * 4 + d * right_pitch
                    accumulate(left, right, upper + d * left_pitch, at, sums)
            if copies == 1:
                td.sync_threads()
            else:
                left_at = left_size // 4 - left_at
                right_at = right_step - right_at
        store(c, sums, z, batch, row + ty * 4, column + tx * 4, m, n)

    return multiply


@functools.cache
def placing(tile: Tile) -> Function:
    """Where a thread is in a tile, along its columns and along its rows."""
    side, warp_columns = tile.columns // (4 * tile.across), tile.warp_columns

    @td.func
    def place_in_tile(t):
        # A warp covers `warp_columns` threads of a row and as many rows as that needs: a tile of
        # such warps reads fewer different words of shared memory than rows of 32 threads would.
        tx = t % warp_columns + t // _SUBGROUP % (side // warp_columns) * warp_columns
        ty = t // warp_columns % (_SUBGROUP // warp_columns)
        ty += t // (_SUBGROUP * (side // warp_columns)) * (_SUBGROUP // warp_columns)
        return tx, ty

    return place_in_tile


@functools.cache
def storing(form: Form, tile: Tile) -> Function:
    """What ends a thread's sums and stores them: groups of 4 x 4, of which the first one is at a
    row and a column."""
    store_lanes, down, across = form.lanes, tile.down, tile.across
    row_step, column_step = tile.rows // down, tile.columns // across
    index = td.i64 if form.big else td.i32
    made = wide(form.dtype) if form.parts else form.made
    ended = itself if form.parts else finish

    @td.func
    def store(c, sums, z, batch, row, column, m, n):
        for g in td.static_range(down):
            for r in td.static_range(4):
                i = row + g * row_step + r
                if i < m:
                    start = (index(z) * index(m) + index(i)) * index(n)
                    for group in td.static_range(across):
                        j = column + group * column_step
                        total = td.vec4[made](sums[(g * across + group) * 4 + r])
                        if store_lanes == 4:
                            if j < n:
                                c[(start + index(j)) // 4] = ended(total, batch, i, j)
                        else:
                            if j < n:
                                c[start + index(j)] = ended(total.x, batch, i, j)
                            if j + 1 < n:
                                c[start + index(j + 1)] = ended(total.y, batch, i, j + 1)
                            if j + 2 < n:
                                c[start + index(j + 2)] = ended(total.z, batch, i, j + 2)
                            if j + 3 < n:
                                c[start + index(j + 3)] = ended(total.w, batch, i, j + 3)

    return store


@functools.cache
def part_joiner(dtype: DType, lanes: int, big: bool) -> Kernel:
    """A kernel whose threads add up the parts' sums for `lanes` neighbours of the result."""
    index = td.i64 if big else td.i32
    summed: Any = td.vec4[wide(dtype)] if lanes == 4 else wide(dtype)
    stored: Any = td.vec4[dtype] if lanes == 4 else dtype

    @td.kernel(checked=False)
    def join_parts(
        x: td.Array[summed], c: td.Array[stored],
        m: td.i32, n: td.i32, matrices: td.i32, parts: td.i32,
    ):  # fmt: skip
        at = index(td.block_idx.x) * index(td.block_dim.x) + index(td.thread_idx.x)
        size = index(matrices) * index(m) * index(n) // lanes
        if at < size:
            total = summed(0)
            for part in range(parts):
                total += x[index(part) * size + at]
            line = at * lanes // index(n)
            column = td.i32(at * lanes - line * index(n))
            batch = line // index(m)
            row = td.i32(line - batch * index(m))
            c[at] = finish(stored(total), td.i32(batch), row, column)

    return join_parts


# --- from memory to shared memory ----------------------------------------------------------------


class _Carrier(NamedTuple):
    """How a block's threads load a factor's tile: its type in memory and in registers, the loads
    of a thread, and the pitch and type of the tile in shared memory. `place` computes where a
    thread reads and writes (of a computed factor: the lines), `fetch` loads into registers, `put`
    stores into shared memory."""

    read: Any
    held: Any
    loads: int
    pitch: int
    kept: Any
    place: Function
    fetch: Function
    put: Function


def _carrier(form: Form, loading: Loading, tile: Tile, lines: int, second: bool) -> _Carrier:
    """`lines` is the tile's rows or columns. Vectors of the second factor are stored whole where
    its columns are neighbours in memory."""
    inner, lanes, computed, _ = loading
    dtype, exact, depth, threads = form.dtype, form.exact, tile.depth, tile.threads
    sums_as = wide(dtype)
    index = td.i64 if form.big else td.i32
    vec = td.vec4[sums_as]
    several = lanes == 4
    whole = second and several and not inner
    held: Any = vec if several else sums_as
    pitch = lines // 4 if whole else lines + _GAP
    items = lines * depth // lanes
    loads = -(-items // threads)
    full = items % threads == 0
    chunks = (depth if inner else lines) // lanes  # side by side in memory
    advance = depth // lanes if inner else depth
    contiguous = several and inner  # one step of the inner axis reaches the next vector
    spacing = pitch if inner else 1  # between elements that are neighbours in memory

    @td.func
    def place(t, base, start, end, line_step, inner_step, at, to, deep):
        for v in td.static_range(loads):
            item = t + v * threads
            chunk = item % chunks
            other = item // chunks
            # Past the end, the last line is read again; its results are not stored.
            if inner:
                line = td.minimum(start + other, end - 1)
                if computed:
                    at[v] = index(line)
                else:
                    at[v] = base + index(line) * line_step
                    at[v] += index(chunk) if contiguous else index(chunk) * inner_step
                deep[v] = chunk * lanes
                to[v] = chunk * lanes * pitch + other
            else:
                line = td.minimum(start // lanes + chunk, (end + lanes - 1) // lanes - 1)
                if computed:
                    at[v] = index(line * lanes)
                else:
                    at[v] = base + index(line) * line_step + index(other) * inner_step
                deep[v] = other
                to[v] = other * pitch + (chunk if whole else chunk * lanes)

    loaded = prologue_of(second, held)

    @td.func
    def compute(t, remaining, batch, start, at, deep, held_here):
        for v in td.static_range(loads):
            if full or t + v * threads < items:
                if exact:
                    held_here[v] = loaded(batch, td.i32(at[v]), start + deep[v])
                else:
                    held_here[v] = held(0)
                    if deep[v] < remaining:
                        held_here[v] = loaded(batch, td.i32(at[v]), start + deep[v])

    @td.func
    def fetch(x, t, remaining, inner_step, at, deep, held_here):
        for v in td.static_range(loads):
            if full or t + v * threads < items:
                if exact:
                    held_here[v] = held(x[at[v]])
                else:
                    held_here[v] = held(0)
                    if deep[v] < remaining:
                        held_here[v] = held(x[at[v]])
                at[v] += index(advance) if contiguous else index(advance) * inner_step

    @td.func
    def put(tile_here, t, start, to, held_here):
        for v in td.static_range(loads):
            if full or t + v * threads < items:
                at = start + to[v]
                if whole or not several:
                    tile_here[at] = held_here[v]
                else:
                    tile_here[at] = held_here[v].x
                    tile_here[at + spacing] = held_here[v].y
                    tile_here[at + 2 * spacing] = held_here[v].z
                    tile_here[at + 3 * spacing] = held_here[v].w

    own = form.factors[second]
    read: Any = td.vec4[own] if several else own
    kept = held if whole else sums_as
    return _Carrier(read, held, loads, pitch, kept, place, compute if computed else fetch, put)


@functools.cache
def batch_offset(axes: int, index: DType) -> Function:
    """The offset of a matrix in a stack; the extents are those of the axes after the first."""

    @td.func
    def offset(batch, extent1, extent2, step0, step1, step2):
        at = index(0)
        if axes == 1:
            at = index(batch) * step0
        elif axes == 2:
            at = index(batch // extent1) * step0 + index(batch % extent1) * step1
        elif axes == 3:
            quotient = batch // extent2
            at = index(quotient // extent1) * step0 + index(quotient % extent1) * step1
            at += index(batch % extent2) * step2
        return at

    return offset


# --- for serial threads --------------------------------------------------------------------------

LINES = 8  # rows of a block


@functools.cache
def line_multiplier(dtype: DType, other: DType, batches: int, big: bool, made: DType) -> Kernel:
    """A kernel whose threads make a column of some rows each; neighbours are lanes of vectors. The
    grid is (columns, rows, batch)."""
    sums_as = wide(dtype)
    index = td.i64 if big else td.i32
    offset_of = batch_offset(batches, index)

    @td.kernel(checked=False)
    def multiply_lines(
        a: td.Array[dtype], b: td.Array[other], c: td.Array[made],
        m: td.i32, n: td.i32, k: td.i32, extent1: td.i32, extent2: td.i32,
        a0: index, a1: index, a2: index, a_line: index, a_step: index, a_offset: index,
        b0: index, b1: index, b2: index, b_line: index, b_step: index, b_offset: index,
    ):  # fmt: skip
        j = td.block_idx.x * td.block_dim.x + td.thread_idx.x
        row = td.block_idx.y * LINES
        batch = td.block_idx.z
        a_at = a_offset + offset_of(batch, extent1, extent2, a0, a1, a2)
        b_at = b_offset + offset_of(batch, extent1, extent2, b0, b1, b2) + index(j) * b_line
        sums = td.local(LINES, sums_as)
        starts = td.local(LINES, index)
        for r in td.static_range(LINES):
            sums[r] = sums_as(0)
            starts[r] = a_at + index(td.minimum(row + r, m - 1)) * a_line
        if j < n:
            for i in range(k):
                value = sums_as(b[b_at + index(i) * b_step])
                for r in td.static_range(LINES):
                    sums[r] += sums_as(a[starts[r] + index(i) * a_step]) * value
            for r in td.static_range(LINES):
                if row + r < m:
                    at = (index(batch) * index(m) + index(row + r)) * index(n) + index(j)
                    c[at] = made(sums[r])

    return multiply_lines
