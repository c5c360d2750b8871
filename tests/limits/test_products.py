"""Products of matrices on devices with few buffers, threads and little shared memory."""

from __future__ import annotations

import numpy as np

import treadle as td

THREADS = 16


def test_more_arrays_than_a_kernel_has(device, rng):
    x, w = (rng.integers(-8, 8, shape).astype(np.float32) for shape in ((20, 40), (40, 24)))
    others = rng.integers(-8, 8, (7, 20, 24)).astype(np.float32)
    found = td.asarray(x) @ td.asarray(w)
    for other in others:
        found = found + td.asarray(other)
    assert td.explain(found).startswith("2 kernels\n1. product_add")
    np.testing.assert_array_equal(found.numpy(), x @ w + others.sum(0))
