"""A float32 matrix product in the kernel language, tuned for large GPUs.

Each block makes a 128 x 128 tile of the result; each of its 256 threads makes 8 x 8 of it, in
registers, as 2 x 2 groups of 4 x 4 that lie 64 apart, so that neighbours read neighbouring shared
memory. Tiles of the operands, 16 deep, go through shared memory; the next tiles are on their way
in registers while the present ones are multiplied.
"""

from __future__ import annotations

import treadle as td

TILE = 128
DEPTH = 16
THREADS = 256
PITCH = TILE + 4  # of a row of the left tile: its transposed stores then spread over the banks

vec = td.vec4[td.f32]


@td.kernel(checked=False)
def matmul(a: td.Array[vec], b: td.Array[vec], c: td.Array[vec], n: td.i32, k: td.i32):
    """C = A B, with n columns and depth k; rows and columns are multiples of 128, k of 16."""
    left = td.shared(DEPTH * PITCH, td.f32)  # the tile of A, transposed
    right = td.shared(DEPTH * TILE // 4, vec)
    t = td.thread_idx.x
    ty = t // 16
    tx = t % 16
    row = td.block_idx.y * TILE
    column = td.block_idx.x * (TILE // 4)
    wide = n // 4
    deep = k // 4
    # What this thread brings: a vector of A from each half of the rows, of B of the depth.
    a_row = t // 4
    a_depth = t % 4
    b_depth = t // 32
    b_column = t % 32
    a_at = (row + a_row) * deep + a_depth
    b_at = b_depth * wide + column + b_column
    a0 = a[a_at]
    a1 = a[a_at + 64 * deep]
    b0 = b[b_at]
    b1 = b[b_at + 8 * wide]
    sums = td.local(16, vec)
    for s in td.static_range(16):
        sums[s] = vec(0.0)
    for step in range(k // DEPTH):
        at = a_depth * 4 * PITCH + a_row
        left[at] = a0.x
        left[at + PITCH] = a0.y
        left[at + 2 * PITCH] = a0.z
        left[at + 3 * PITCH] = a0.w
        left[at + 64] = a1.x
        left[at + PITCH + 64] = a1.y
        left[at + 2 * PITCH + 64] = a1.z
        left[at + 3 * PITCH + 64] = a1.w
        right[b_depth * 32 + b_column] = b0
        right[(b_depth + 8) * 32 + b_column] = b1
        td.sync_threads()
        if step + 1 < k // DEPTH:
            a_at += DEPTH // 4
            b_at += DEPTH * wide
            a0 = a[a_at]
            a1 = a[a_at + 64 * deep]
            b0 = b[b_at]
            b1 = b[b_at + 8 * wide]
        for d in td.static_range(DEPTH):
            near = right[d * 32 + tx]
            far = right[d * 32 + 16 + tx]
            for r in td.static_range(4):
                upper = left[d * PITCH + ty * 4 + r]
                lower = left[d * PITCH + 64 + ty * 4 + r]
                sums[r] += near * upper
                sums[4 + r] += far * upper
                sums[8 + r] += near * lower
                sums[12 + r] += far * lower
        td.sync_threads()
    out = (row + ty * 4) * wide + column + tx
    for r in td.static_range(4):
        c[out + r * wide] = sums[r]
        c[out + r * wide + 16] = sums[4 + r]
        c[out + (64 + r) * wide] = sums[8 + r]
        c[out + (64 + r) * wide + 16] = sums[12 + r]


def multiply(a: td.Tensor, b: td.Tensor, c: td.Tensor) -> None:
    """C = A B by `matmul`, for extents that are multiples of the tile."""
    m, k = a.shape
    n = b.shape[1]
    matmul[(n // TILE, m // TILE), THREADS](a, b, c, n, k)
