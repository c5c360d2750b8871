"""`td.einsum` and `td.kron` against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned

# The text, and the shapes of the arrays.
CASES = [
    ("ij,jk->ik", (3, 5), (5, 2)),
    ("ij,jk", (3, 1), (1, 2)),
    ("ij,kj->ik", (3, 5), (2, 5)),
    ("bij,bjk->bik", (4, 3, 5), (4, 5, 2)),
    ("bij,jk->bki", (4, 3, 5), (5, 2)),
    ("...ij,...jk->...ik", (2, 1, 3, 5), (4, 5, 2)),
    ("i,i->", (7,), (7,)),
    ("i,j->ij", (7,), (3,)),
    ("i,j->ji", (7,), (3,)),
    ("ij->ji", (3, 5)),
    ("ij->", (3, 5)),
    ("ij->j", (3, 5)),
    ("ii", (5, 5)),
    ("ii->i", (5, 5)),
    ("iij->j", (3, 3, 4)),
    ("ba", (3, 5)),
    ("...->...", (3, 5)),
    ("iji,jk->k", (3, 4, 3), (4, 2)),
    ("ij,k->j", (3, 4), (5,)),
    ("ab,bc,cd->ad", (2, 3), (3, 5), (5, 7)),
    ("ab,cd,ef->", (2, 3), (3, 2), (2, 2)),
    ("ea,fb,abcd,gc,hd->efgh", (2, 3), (2, 3), (3, 3, 3, 3), (2, 3), (2, 3)),
    ("bhid,bhjd->bhij", (2, 3, 5, 4), (2, 3, 7, 4)),
    ("i,ij->j", (0,), (0, 3)),
    ("ij,jk->ik", (0, 3), (3, 2)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("ij,jk->ik", (2, 1), (4, 3)),
    ("ijk->kij", (2, 3, 4)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def test_values(device, rng, case):
    text, *shapes = case
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    wide = [array.astype(np.float64) for array in arrays]
    right = np.einsum(text, *wide)
    with poisoned(device):
        found = td.einsum(text, *map(td.asarray, arrays))
        assert (found.shape, found.dtype) == (right.shape, td.float32)
        np.testing.assert_allclose(found.numpy(), right, 1e-5, 1e-5)


def test_lists_of_axes_and_orders(device, rng):
    x, y, z = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3), (3, 4), (4, 5)))
    a, b, c = map(td.asarray, (x, y, z))
    np.testing.assert_allclose(td.einsum(a, [0, 1], b, [1, 2], [2, 0]).numpy(), (x @ y).T, 1e-5)
    np.testing.assert_allclose(td.einsum(a, [0, 1], b, [1, 2]).numpy(), x @ y, 1e-5)
    for optimize in (False, True, "greedy"):
        found = td.einsum("ij,jk,kl->il", a, b, c, optimize=optimize).numpy()
        np.testing.assert_allclose(found, x @ y @ z, 1e-4, 1e-5)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "complex64", "bool"])
def test_dtypes(device, rng, dtype):
    x, y = ((rng.standard_normal(shape) * 3).astype(dtype) for shape in ((3, 5), (5, 2)))
    found = td.einsum("ij,jk->ik", td.asarray(x), td.asarray(y))
    assert found.dtype == dtype
    wide = np.float32 if dtype == "float16" else dtype
    right = np.einsum("ij,jk->ik", x.astype(wide), y.astype(wide))
    np.testing.assert_allclose(found.numpy(), right.astype(dtype), 1e-3, 1e-3)
    total = td.einsum("ij->i", td.asarray(x)).numpy()
    np.testing.assert_allclose(total, np.einsum("ij->i", x.astype(wide)).astype(dtype), 2e-3, 2e-3)


def test_a_diagonal_is_a_copy(device):
    x = td.eye(3)
    d = td.einsum("ii->i", x)
    x[:] = 5.0
    assert d.tolist() == [1.0, 1.0, 1.0]


def test_kron(device, rng):
    for shapes in (((2, 3), (4, 5)), ((3,), (2,)), ((2,), (3, 4)), ((2, 3, 2), (2,)), ((0,), (3,))):
        x, y = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
        found = td.kron(td.asarray(x), td.asarray(y))
        np.testing.assert_allclose(found.numpy(), np.kron(x, y), 1e-6)


def test_refusals(device):
    x, y = td.ones((2, 3)), td.ones((4, 5))
    with pytest.raises(
        td.errors.ShapeError,
        match=r"'j' is an axis of 3 elements in shape \(2, 3\), and of 4 in shape \(4, 5\)",
    ):
        td.einsum("ij,jk->ik", x, y)
    with pytest.raises((td.errors.ShapeError, ValueError), match=r"3 axes|dimension|number"):
        td.einsum("ijk->i", x)
    with pytest.raises(TypeError, match="a text"):
        td.einsum(x)
    with pytest.raises(ValueError, match="z"):
        td.einsum("ij->iz", x)
