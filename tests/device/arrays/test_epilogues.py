"""What follows a product of matrices: done where an element is complete, or by another kernel."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.graph import numbering


@pytest.fixture(autouse=True)
def _fresh(device):
    with poisoned(device):
        yield


def integers(rng, *shape):
    return rng.integers(-8, 8, shape).astype(np.float32)


def assert_one(tensor: td.Tensor, *names: str) -> None:
    """One kernel, with these operations; where a library multiplies, one more."""
    told = td.explain(tensor)
    if "a library computes it" in told:
        assert told.startswith("2 kernels\n1. product: ")
    else:
        assert told.startswith("1 kernel\n1. product_")
        assert "(product)" in told
        assert "x1 @ x2" in told
    for name in names:
        assert name in told


def test_bias_activation_scale_and_residual(device, rng):
    x, w, b, r = (integers(rng, *s) for s in ((21, 32), (24, 32), (24,), (21, 24)))
    a, v, c, d = map(td.asarray, (x, w, b, r))
    found = td.maximum(a @ v.mT + c, 0) * 0.5 + d
    assert_one(found, "maximum", "multiply")
    np.testing.assert_array_equal(found.numpy(), np.maximum(x @ w.T + b, 0) * 0.5 + r)


def test_after_parts_of_a_long_inner_axis(device, rng):
    x, w, b = integers(rng, 2, 3, 600), integers(rng, 2, 600, 8), integers(rng, 8)
    found = td.maximum(td.asarray(x) @ td.asarray(w) + td.asarray(b), 0)
    assert_one(found, "maximum")
    np.testing.assert_array_equal(found.numpy(), np.maximum(x @ w + b, 0))


def test_axes_that_do_not_merge(device, rng):
    """Rows and columns are several axes each, a part of an array is added, turned, and the result
    goes where every second row is."""
    x, w, r = integers(rng, 2, 9, 16), integers(rng, 16, 24), integers(rng, 4, 9, 6, 3)
    a, v, d = map(td.asarray, (x, w, r))
    out = td.full((2, 18, 4, 6), 7.0)
    out[:, ::2] = (a @ v).reshape(2, 9, 4, 6) + d[:, :, :, :2].permute_dims((3, 1, 0, 2))
    expected = np.full((2, 18, 4, 6), 7, np.float32)
    expected[:, ::2] = (x @ w).reshape(2, 9, 4, 6) + r[:, :, :, :2].transpose(3, 1, 0, 2)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_dtypes_after_the_product(device, rng):
    x, w, b = integers(rng, 20, 16), integers(rng, 16, 24), integers(rng, 24)
    a, v, c = map(td.asarray, (x, w, b))
    whole = (a @ v + c).to(td.int32)
    assert_one(whole)
    np.testing.assert_array_equal(whole.numpy(), (x @ w + b).astype(np.int32))
    halves = a.to(td.float16).realize() @ v.to(td.float16).realize() + c.to(td.float16)
    assert halves.dtype == td.float16
    np.testing.assert_array_equal(halves.numpy(), (x @ w + b).astype(np.float16))


def test_factors_read_again_and_gathered_rows(device, rng):
    x, table, at = (
        integers(rng, 24, 24),
        integers(rng, 5, 24),
        rng.integers(0, 5, 24).astype(np.int32),
    )
    a = td.asarray(x)
    found = td.where(td.asarray(x > 0), a @ a, a) + td.asarray(table)[td.asarray(at)]
    expected = np.where(x > 0, x @ x, x) + table[at]
    np.testing.assert_array_equal(found.numpy(), expected)


def test_two_products_are_two_kernels(device, rng):
    x, y = integers(rng, 20, 24), integers(rng, 24, 20)
    a, b = map(td.asarray, (x, y))
    np.testing.assert_array_equal((a @ b + (b @ a).sum()).numpy(), x @ y + (y @ x).sum())
    found = a @ b + (b.mT @ a.mT)
    with_library = device.traits.host_memory or getattr(device.handle, "blas", None) is not None
    assert td.explain(found)[:1] == ("3" if with_library else "2")
    np.testing.assert_array_equal(found.numpy(), x @ y + y.T @ x.T)


def test_what_several_kernels_read_is_kept(device, rng):
    x, y = integers(rng, 20, 24), integers(rng, 24, 20)
    product = td.asarray(x) @ td.asarray(y)
    shifted = product - product.max(axis=1, keepdims=True)
    assert td.explain(shifted).count("x1 @ x2") <= 1
    expected = x @ y
    np.testing.assert_array_equal(shifted.numpy(), expected - expected.max(1, keepdims=True))
    turned = product.mT + 1
    np.testing.assert_array_equal(turned.numpy(), expected.T + 1)


def test_numbers_that_change(device, rng):
    """Kernels are remembered for graphs that are equal but for their numbers."""
    x, y = integers(rng, 20, 24), integers(rng, 24, 20)
    a, b = map(td.asarray, (x, y))
    for factor in (2.0, -3.0):
        np.testing.assert_array_equal((a @ b * factor).numpy(), x @ y * np.float32(factor))


def test_indices_of_64_bits(device, rng, monkeypatch):
    if "int64" in device.info.features:  # others have no arrays that need it
        monkeypatch.setattr(numbering, "_MOST_INDEX", 100)
    x, w, r = integers(rng, 2, 23, 29), integers(rng, 29, 26), integers(rng, 23, 26)
    a, v, d = map(td.asarray, (x, w, r))
    np.testing.assert_array_equal((a[:, 1:] @ v + d[1:]).numpy(), x[:, 1:] @ w + r[1:])
