"""The kernels that are measured, in the kernel language."""

from __future__ import annotations

import treadle as td


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@td.kernel
def add(x: td.Array[td.vec4[td.f32]], y: td.Array[td.vec4[td.f32]], out: td.Array[td.vec4[td.f32]]):
    i = td.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


@td.kernel
def mandelbrot(out: td.Array[td.i32, 2], limit: td.i32):
    i, j = td.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        cx = -2.0 + 3.0 * td.f32(j) / td.f32(out.shape[1])
        cy = -1.5 + 3.0 * td.f32(i) / td.f32(out.shape[0])
        x = 0.0
        y = 0.0
        n = 0
        while n < limit and x * x + y * y <= 4.0:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            n += 1
        out[i, j] = n


@td.kernel
def nbody(position: td.Array[td.f32, 2], force: td.Array[td.f32, 2]):
    """Forces of bodies of unit mass on each other; rows are x, y, z."""
    i = td.grid(1)
    if i < position.shape[1]:
        px, py, pz = position[0, i], position[1, i], position[2, i]
        fx = 0.0
        fy = 0.0
        fz = 0.0
        for j in range(position.shape[1]):
            dx = position[0, j] - px
            dy = position[1, j] - py
            dz = position[2, j] - pz
            squared = dx * dx + dy * dy + dz * dz + 0.01
            inverse = 1.0 / td.sqrt(squared)
            strength = inverse * inverse * inverse
            fx += dx * strength
            fy += dy * strength
            fz += dz * strength
        force[0, i] = fx
        force[1, i] = fy
        force[2, i] = fz


@td.kernel
def block_sums(x: td.Array[td.f32], out: td.Array[td.f32]):
    """Each block sums 256 elements as a tree in shared memory."""
    part = td.shared(256, td.f32)
    t = td.thread_idx.x
    part[t] = x[td.grid(1)]
    td.sync_threads()
    step = 128
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        td.sync_threads()
        step //= 2
    if t == 0:
        out[td.block_idx.x] = part[0]


@td.kernel
def transpose(x: td.Array[td.f32, 2], out: td.Array[td.f32, 2]):
    """Tiles of 32 x 32 through shared memory, by blocks of 32 x 8 threads."""
    tile = td.shared((32, 33), td.f32)  # one column more: a column's elements lie in all banks
    column = td.thread_idx.x
    row = td.thread_idx.y
    top = td.block_idx.y * 32
    left = td.block_idx.x * 32
    for k in td.static_range(0, 32, 8):
        tile[row + k, column] = x[top + row + k, left + column]
    td.sync_threads()
    for k in td.static_range(0, 32, 8):
        out[left + row + k, top + column] = tile[column, row + k]


@td.kernel
def histogram(x: td.Array[td.u32], counts: td.Array[td.u32]):
    """Adds to `counts` how often each upper byte occurs, by blocks of 256 threads."""
    part = td.shared(256, td.u32)
    t = td.thread_idx.x
    part[t] = 0
    td.sync_threads()
    i = td.grid(1)
    stride = td.grid_dim.x * td.block_dim.x
    while i < x.size:
        td.atomic_add(part, td.i32(x[i] >> td.u32(24)), td.u32(1))
        i += stride
    td.sync_threads()
    td.atomic_add(counts, t, part[t])


@td.func
def subgroup_scan(value):
    """The sums of a subgroup's values up to each thread's own."""
    total = value
    for k in td.static_range(5):
        earlier = td.shuffle_up(total, 1 << k)
        if td.lane() >= 1 << k:
            total += earlier
    return total


@td.kernel
def scan_blocks(
    x: td.Array[td.vec4[td.i32]], out: td.Array[td.vec4[td.i32]], totals: td.Array[td.i32]
):
    """Running sums within each block, four elements a thread; `totals` are those of the blocks."""
    sums = td.shared(32, td.i32)
    t = td.thread_idx.x
    lane = td.lane()
    subgroup = t // 32
    i = td.grid(1)
    own = x[i]
    second = own.x + own.y
    third = second + own.z
    fourth = third + own.w
    before = subgroup_scan(fourth)
    if lane == 31:
        sums[subgroup] = before
    td.sync_threads()
    of_subgroups = subgroup_scan(sums[lane] if lane < td.block_dim.x // 32 else 0)
    earlier = td.shuffle(of_subgroups, td.maximum(subgroup - 1, 0))
    before -= fourth
    if subgroup > 0:
        before += earlier
    out[i] = td.vec4[td.i32](before + own.x, before + second, before + third, before + fourth)
    if t == td.block_dim.x - 1:
        totals[td.block_idx.x] = before + fourth


@td.kernel
def add_totals(out: td.Array[td.vec4[td.i32]], totals: td.Array[td.i32]):
    """Adds to each block's elements the sum of all blocks before it."""
    i = td.grid(1)
    if td.block_idx.x > 0 and i < out.size:
        out[i] = out[i] + td.vec4[td.i32](totals[td.block_idx.x - 1])
