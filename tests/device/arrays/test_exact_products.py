"""Products of bytes summed in 32 bits, and of float32 numbers as exactly as asked for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.tensor.dtypes import supports

SHAPES = [(1, 1, 1), (33, 13, 131), (3, 70, 0), (0, 5, 8), (16, 9, 1030)]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    td.set_float32_matmul_precision("highest")


def _bytes(rng, *shape):
    drawn = rng.integers(-128, 128, shape).astype(np.int8)
    drawn.flat[::3] = -128
    return drawn


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bytes_summed_in_32_bits(device, rng, shape):
    if not supports(device, td.int8):
        with pytest.raises(td.errors.DtypeError, match="has no int8"):
            td.asarray(np.zeros((2, 2), np.int8))
        return
    m, n, k = shape
    x, y = _bytes(rng, m, k), _bytes(rng, k, n)
    wanted = x.astype(np.int64) @ y.astype(np.int64)
    with poisoned(device):
        found = td.matmul(td.asarray(x), td.asarray(y), dtype=td.int32)
        assert found.dtype == td.int32
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_as_users_of_numpy_write_it(device, rng):
    """Converted operands, which are read as bytes; and int8 results, which wrap."""
    if not supports(device, td.int8):
        return
    x, y = _bytes(rng, 18, 35), _bytes(rng, 35, 12)
    a, b = (td.asarray(np.ascontiguousarray(each.T)).mT for each in (x, y))
    wanted = x.astype(np.int32) @ y.astype(np.int32)
    found = a.astype(td.int32) @ b.astype(td.int32)
    assert found.dtype == td.int32
    assert "int8[18, 35]" in td.explain(found) or "int8[35, 18]" in td.explain(found)
    np.testing.assert_array_equal(found.numpy(), wanted)
    found = td.einsum("ik,kj->ji", a.to(td.int32), b.to(td.int32)) * 2
    np.testing.assert_array_equal(found.numpy(), 2 * wanted.T)
    np.testing.assert_array_equal((a @ b).numpy(), x @ y)


def test_stacks_and_views_of_bytes(device, rng):
    if not supports(device, td.int8):
        with pytest.raises(td.errors.DtypeError, match="has no int8"):
            td.asarray(np.zeros((2, 2), np.int8))
        return
    x, y = _bytes(rng, 3, 1, 20, 37), _bytes(rng, 2, 37, 19)
    wanted = x.astype(np.int32) @ y.astype(np.int32)
    a, b = td.asarray(x), td.asarray(y)
    np.testing.assert_array_equal(td.matmul(a, b, dtype="int32").numpy(), wanted)
    found = td.matmul(a[..., 1:, 1:], b[:, :-1], dtype=td.int32)
    wanted = x[..., 1:, 1:].astype(np.int32) @ y[:, :-1].astype(np.int32)
    np.testing.assert_array_equal(found.numpy(), wanted)
    scale = td.asarray(rng.standard_normal(19).astype(np.float32))
    scaled = found.astype(td.float32) * scale
    np.testing.assert_allclose(scaled.numpy(), wanted * scale.numpy(), rtol=1e-6)
    whole = td.asarray(x[0, 0]).to(td.int32)
    np.testing.assert_array_equal((whole[1:] @ whole[:1].T).numpy()[:, 0], _rows(x[0, 0]))


def _rows(x):
    return x[1:].astype(np.int32) @ x[0].astype(np.int32)


def test_dtype_of_matmul(device):
    x = td.ones((3, 3), dtype=td.float16) if supports(device, td.float16) else td.ones((3, 3))
    assert td.matmul(x, x, dtype=td.float32).dtype == td.float32
    with pytest.raises(td.errors.DtypeError):
        td.matmul(x, x, dtype="int33")


def test_words():
    assert td.get_float32_matmul_precision() == "highest"
    for word in ("high", "medium", "highest"):
        td.set_float32_matmul_precision(word)
        assert td.get_float32_matmul_precision() == word
    for wrong in ("tf32", "HIGH", None, 1):
        with pytest.raises(ValueError, match="'highest', 'high', 'medium'"):
            td.set_float32_matmul_precision(wrong)
    assert td.get_float32_matmul_precision() == "highest"


def _rounded(x):
    bits = (np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)


def test_a_changed_precision_is_noticed(device, rng):
    """By plans, compiled functions, composite functions and gradients: the result is that of the
    precision at the call. Devices without TF32 compute as ever."""
    x, y = (rng.standard_normal((24, 24)).astype(np.float32) for _ in range(2))
    a, b = td.asarray(x), td.asarray(y)
    has = "tf32" in device.traits.matrix_products
    compiled = td.compile(lambda a, b: a @ b)
    exact = x.astype("f8") @ y
    rounded = _rounded(x).astype("f8") @ _rounded(y) if has else exact
    ways = {
        "@": lambda: a @ b,
        "compiled": lambda: compiled(a, b),
        "linear": lambda: td.nn.functional.linear(a, b.mT),
        "einsum": lambda: td.einsum("ij,jk->ik", a, b),
        "gradient": lambda: td.grad(lambda v: ((v @ b) * 1).sum(), argnums=0)(a),
    }
    gradients = [
        np.ones((24, 24)) @ np.asarray(each, "f8").T for each in (y, _rounded(y) if has else y)
    ]
    for _ in range(2):
        for precision in ("highest", "high", "highest", "medium"):
            td.set_float32_matmul_precision(precision)
            assert ("tf32(" in td.explain(a @ b)) == (has and precision != "highest")
            for name, way in ways.items():
                wanted = exact if precision == "highest" else rounded
                if name == "gradient":
                    wanted = gradients[precision != "highest"]
                np.testing.assert_allclose(
                    way().numpy(), wanted, rtol=2e-5, atol=2e-5, err_msg=f"{name} {precision}"
                )
