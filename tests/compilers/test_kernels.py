"""Kernels in Python whose WGSL only Tint once refused."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.tint import tint_error

INFINITY = float("inf")
SOME = np.zeros(64, np.float32)


@td.kernel
def remainder_decides(x: td.Array[td.f32], s: td.f32):
    part = td.shared(64, td.f32)
    t = td.thread_idx.x
    part[t] = x[t]
    # NaN and -0.0 appear in what computes the remainder: they are the same for all threads, too.
    if s % 2.5 == 0.5:
        td.sync_threads()
        x[t] = part[63 - t]


@td.kernel
def smaller_decides(x: td.Array[td.f32], s: td.f32):
    t = td.thread_idx.x
    if td.minimum(s, INFINITY) > -0.0:
        td.sync_threads()
        x[t] = 1.0


@td.kernel
def compare_with_a_shift(x: td.Array[td.f32], s: td.f32):
    t = td.thread_idx.x
    if t < x.size >> 3:
        x[t] = s
    if t << 2 > t >> 1 or td.u32(t) < td.u32(x.size) >> td.u32(2):
        x[t] = 2.0


@td.kernel
def shuffle_in_a_part_of_a_subgroup(x: td.Array[td.f32], s: td.f32):
    t = td.thread_idx.x
    v = td.shuffle_xor(x[t] + s, 1)
    x[t] = v + td.shuffle(v, 2)


@td.kernel
def shared_counter_decides_who_goes_on(x: td.Array[td.f32], s: td.f32):
    count = td.shared(1, td.i32)
    t = td.thread_idx.x
    count[0] = 0
    td.sync_threads()
    td.atomic_add(count, 0, td.i32(x[t] > s))
    td.sync_threads()
    found = count[0]
    if s > 0.0 and found == 0:
        return
    td.sync_threads()
    x[t] = td.f32(found)


@pytest.mark.parametrize("block", [64, 40, 7])
@pytest.mark.parametrize(
    "kernel",
    [
        remainder_decides,
        smaller_decides,
        compare_with_a_shift,
        shuffle_in_a_part_of_a_subgroup,
        shared_counter_decides_who_goes_on,
    ],
    ids=lambda kernel: kernel.name,
)
def test_tint_accepts(kernel, block):
    assert tint_error(kernel.source("wgsl", SOME, 1.0, block=block)) is None
