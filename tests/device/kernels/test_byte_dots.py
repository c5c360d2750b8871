"""Sums of products of the bytes of words, in lanes and in one thread."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


@td.kernel
def dots(a: td.Array[td.u32], b: td.Array[td.u32], c: td.Array[td.i32], out: td.Array[td.i32, 2]):
    i = td.grid(1)
    if i < c.size:
        out[0, i] = td.dot4_i8(a[i], b[i], c[i])
        out[1, i] = td.dot4_u8(a[i], b[i], c[i])
        out[2, i] = td.dot4_u8i8(a[i], b[i], c[i])
        out[3, i] = td.dot4_i8(a[0], b[0], c[0])
        out[4, i] = td.dot4_u8i8(a[i], 0x01020304, 0) + td.dot4_i8(-1, 0x80, i)


@pytest.mark.parametrize("size", [1, 77])
def test_dots_of_bytes(device, size):
    random = np.random.default_rng(5)
    words = random.integers(0, 1 << 32, (2, size), dtype=np.uint32)
    words[:, 0] = 0x80808080, 0x807F80FF
    sums = random.integers(-(1 << 31), 1 << 31, size, dtype=np.int64).astype(np.int32)
    out = td.empty((5, size), dtype=td.int32, device=device)
    given = [td.asarray(x, device=device) for x in (*words, sums)]
    dots.launch(size, *given, out)
    unsigned = words.view(np.uint8).reshape(2, size, 4).astype(np.int64)
    signed = words.view(np.int8).reshape(2, size, 4).astype(np.int64)
    pairs = [signed[0] * signed[1], unsigned[0] * unsigned[1], unsigned[0] * signed[1]]
    wanted = [(pair.sum(1) + sums).astype(np.int32) for pair in pairs]
    wanted.append(np.full(size, wanted[0][0]))
    wanted.append((unsigned[0] @ [4, 3, 2, 1] + 128 + np.arange(size)).astype(np.int32))
    assert (out.numpy() == np.array(wanted)).all()
