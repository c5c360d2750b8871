"""A float32 matrix product in the kernel language, tuned for large GPUs.

Each block makes a 128 x 128 tile of the result; each of its 256 threads makes 8 x 8 of it, in
registers, as 2 x 2 groups of 4 x 4 that lie 64 apart, so that neighbours read neighbouring shared
memory. Tiles of the operands go through shared memory; the next tiles are on their way in registers
while the present ones are multiplied.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import treadle as td
from treadle.lang.kernel import Kernel

TILE = 128
THREADS = 256
PITCH = TILE + 4  # of a row of the left tile: its transposed stores then spread over the banks

vec = td.vec4[td.f32]


@dataclass(frozen=True)
class Shape:
    """What suits one device better than another.

    `depth` of the operands' tiles, 8 or 16; `copies` of the tiles in shared memory: with two, one
    barrier a step is enough; `across`: how many of a subgroup's threads lie side by side in a row
    (16, or 4: then they share more of what they read).
    """

    depth: int = 16
    copies: int = 1
    across: int = 16


# The best of the candidates, as `python -m benchmarks.shapes` found on an H100.
SHAPES = {"cuda": Shape(8, 2), "webgpu": Shape(), "dawn": Shape()}
CANDIDATES = [Shape(d, c, a) for d in (8, 16) for c in (1, 2) for a in (16, 4)]


@functools.cache
def matmul_of(shape: Shape) -> Kernel:
    """The kernel in one shape."""
    depth, copies, across = shape.depth, shape.copies, shape.across
    vectors = depth // 8  # that a thread brings of each operand
    a_lanes = depth // 4  # threads that bring one row of A
    a_rows = THREADS // a_lanes
    left_size = depth * PITCH
    right_size = depth * TILE // 4

    @td.kernel(checked=False)
    def matmul(a: td.Array[vec], b: td.Array[vec], c: td.Array[vec], n: td.i32, k: td.i32):
        """C = A B, with n columns and depth k; rows and columns are multiples of 128, k of 16."""
        left = td.shared(copies * left_size, td.f32)  # the tile of A, transposed
        right = td.shared(copies * right_size, vec)
        t = td.thread_idx.x
        # Where the thread's part of the tile is, in groups of 4 x 4: a warp's threads lie `across`
        # to a row, and the warps beside and below each other.
        tx = t % across + t // 32 % (16 // across) * across
        ty = t // across % (32 // across) + t // (32 * (16 // across)) * (32 // across)
        row = td.block_idx.y * TILE
        column = td.block_idx.x * (TILE // 4)
        wide = n // 4
        deep = k // 4
        a_row = t // a_lanes
        a_depth = t % a_lanes
        b_depth = t // 32
        b_column = t % 32
        a_at = (row + a_row) * deep + a_depth
        b_at = b_depth * wide + column + b_column
        of_a = td.local(vectors, vec)
        of_b = td.local(vectors, vec)
        for v in td.static_range(vectors):
            of_a[v] = a[a_at + v * a_rows * deep]
            of_b[v] = b[b_at + v * 8 * wide]
        sums = td.local(16, vec)
        for s in td.static_range(16):
            sums[s] = vec(0.0)
        steps = k // depth
        left_at = 0
        right_at = 0
        for step in range(steps):
            to = left_at * 4 + a_depth * 4 * PITCH + a_row
            for v in td.static_range(vectors):
                left[to + v * a_rows] = of_a[v].x
                left[to + PITCH + v * a_rows] = of_a[v].y
                left[to + 2 * PITCH + v * a_rows] = of_a[v].z
                left[to + 3 * PITCH + v * a_rows] = of_a[v].w
                right[right_at + (b_depth + v * 8) * 32 + b_column] = of_b[v]
            td.sync_threads()
            if step + 1 < steps:
                a_at += depth // 4
                b_at += depth * wide
                for v in td.static_range(vectors):
                    of_a[v] = a[a_at + v * a_rows * deep]
                    of_b[v] = b[b_at + v * 8 * wide]
            upper_at = (left_at + ty) * 4  # plainly a multiple of 4: four are loaded at once
            near_at = right_at + tx
            for d in td.static_range(depth):
                near = right[near_at + d * 32]
                far = right[near_at + d * 32 + 16]
                for r in td.static_range(4):
                    upper = left[upper_at + d * PITCH + r]
                    lower = left[upper_at + d * PITCH + 64 + r]
                    sums[r] += near * upper
                    sums[4 + r] += far * upper
                    sums[8 + r] += near * lower
                    sums[12 + r] += far * lower
            if copies == 1:
                td.sync_threads()
            else:
                left_at = left_size // 4 - left_at
                right_at = right_size - right_at
        out = (row + ty * 4) * wide + column + tx
        for r in td.static_range(4):
            c[out + r * wide] = sums[r]
            c[out + r * wide + 16] = sums[4 + r]
            c[out + (64 + r) * wide] = sums[8 + r]
            c[out + (64 + r) * wide + 16] = sums[12 + r]

    return matmul
