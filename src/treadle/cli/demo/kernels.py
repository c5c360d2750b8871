"""The demo's kernels, as a user would write them."""

# ruff: noqa: D103  the kernels' names say what they do

from __future__ import annotations

import treadle as td

RADIUS = 4
BINS = 256


@td.kernel
def blur_rows(image: td.Array[td.f32, 2], weights: td.Array[td.f32], out: td.Array[td.f32, 2]):
    i, j = td.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = 0.0
        for k in range(-RADIUS, RADIUS + 1):
            column = min(max(j + k, 0), image.shape[1] - 1)
            total += weights[k + RADIUS] * image[i, column]
        out[i, j] = total


@td.kernel
def blur_columns(image: td.Array[td.f32, 2], weights: td.Array[td.f32], out: td.Array[td.f32, 2]):
    i, j = td.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        total = 0.0
        for k in range(-RADIUS, RADIUS + 1):
            row = min(max(i + k, 0), image.shape[0] - 1)
            total += weights[k + RADIUS] * image[row, j]
        out[i, j] = total


@td.func
def pixel(image: td.Array[td.f32, 2], i, j):
    return image[min(max(i, 0), image.shape[0] - 1), min(max(j, 0), image.shape[1] - 1)]


@td.kernel
def sobel(image: td.Array[td.f32, 2], out: td.Array[td.f32, 2]):
    i, j = td.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        across = (
            pixel(image, i - 1, j + 1) + 2.0 * pixel(image, i, j + 1) + pixel(image, i + 1, j + 1)
        ) - (pixel(image, i - 1, j - 1) + 2.0 * pixel(image, i, j - 1) + pixel(image, i + 1, j - 1))
        down = (
            pixel(image, i + 1, j - 1) + 2.0 * pixel(image, i + 1, j) + pixel(image, i + 1, j + 1)
        ) - (pixel(image, i - 1, j - 1) + 2.0 * pixel(image, i - 1, j) + pixel(image, i - 1, j + 1))
        out[i, j] = td.sqrt(across * across + down * down)


@td.kernel
def histogram(image: td.Array[td.f32], counts: td.Array[td.u32]):
    """Each block counts in shared memory, then adds its counts to the total once."""
    local = td.shared(BINS, td.u32)
    t = td.thread_idx.x
    for k in range(t, BINS, td.block_dim.x):
        local[k] = 0
    td.sync_threads()
    for i in range(td.grid(1), image.size, td.block_dim.x * td.grid_dim.x):
        level = td.i32(image[i] * 255.0 + 0.5)
        td.atomic_add(local, min(max(level, 0), BINS - 1), 1)
    td.sync_threads()
    for k in range(t, BINS, td.block_dim.x):
        td.atomic_add(counts, k, local[k])


@td.kernel
def wave_step(
    before: td.Array[td.f32, 2], now: td.Array[td.f32, 2], after: td.Array[td.f32, 2], speed
):
    i, j = td.grid(2)
    if 0 < i < now.shape[0] - 1 and 0 < j < now.shape[1] - 1:
        bend = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1] - 4.0 * now[i, j]
        after[i, j] = 2.0 * now[i, j] - before[i, j] + speed * bend
