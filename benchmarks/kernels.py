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
