"""Eigenvalues of symmetric matrices and singular values, as GPUs compute them: also on the CPU."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.core.errors import HostWarning
from treadle.kernels import eigen
from treadle.tensor.dtypes import supports


@pytest.fixture(autouse=True)
def _on_the_device(device, monkeypatch):
    monkeypatch.setattr(eigen, "forced", "device")
    with poisoned(device):
        yield


def drawn(rng, *shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def orthogonal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def with_eigenvalues(rng, values):
    q = orthogonal(rng, len(values))
    return ((q * values) @ q.T).astype(np.float32)


def with_singular_values(rng, rows, columns, values):
    k = len(values)
    left, right = orthogonal(rng, rows)[:, :k], orthogonal(rng, columns)[:, :k]
    return ((left * values) @ right.T).astype(np.float32)


def tridiagonal(diagonal, beside):
    return (np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)).astype(np.float32)


def check_eigen(a):
    """Residual, orthogonality and values within some epsilons, by the matrix's norm."""
    a = np.asarray(a)
    values, vectors = td.linalg.eigh(td.asarray(a))
    only = td.linalg.eigvalsh(td.asarray(a)).numpy()
    found, v = values.numpy(), vectors.numpy().astype(float)
    assert found.dtype == only.dtype == vectors.numpy().dtype == a.dtype
    lower = np.tril(a).astype(float)
    symmetric = lower + np.tril(lower, -1).mT
    eps, n = float(np.finfo(a.dtype).eps), a.shape[-1]
    norm = np.linalg.norm(symmetric, 2, (-2, -1))[..., None] + 1e-300
    right = np.linalg.eigh(symmetric).eigenvalues  # closer than eigvalsh
    limit = (8 + n / 8) * eps
    assert (abs(found - right) <= limit * norm).all()
    assert (abs(only - right) <= limit * norm).all()
    assert (np.diff(found) >= 0).all()
    assert (np.diff(only) >= 0).all()
    residual = symmetric @ v - v * found[..., None, :]
    assert (abs(residual) <= limit * norm[..., None]).all()
    assert (abs(v.mT @ v - np.eye(n)) <= 2 * limit).all()


def check_singular(a, full):
    a = np.asarray(a)
    u, s, vh = td.linalg.svd(td.asarray(a), full_matrices=full)
    only = td.linalg.svdvals(td.asarray(a)).numpy()
    right = np.linalg.svd(a.astype(float), full_matrices=full)
    assert (u.shape, s.shape, vh.shape) == (right.U.shape, right.S.shape, right.Vh.shape)
    assert u.numpy().dtype == s.numpy().dtype == vh.numpy().dtype == only.dtype == a.dtype
    u, s, vh = (x.numpy().astype(float) for x in (u, s, vh))
    k = s.shape[-1]
    eps = float(np.finfo(a.dtype).eps)
    limit = (8 + k / 8) * eps
    norm = right.S[..., :1] + 1e-300
    for found in (s, only):
        assert (abs(found - right.S) <= limit * norm).all()
        assert (found >= 0).all()
        assert (np.diff(found) <= 0).all()
    residual = u[..., :k] * s[..., None, :] @ vh[..., :k, :] - a
    assert (abs(residual) <= limit * norm[..., None]).all()
    assert (abs(u.mT @ u - np.eye(u.shape[-1])) <= 2 * limit).all()
    assert (abs(vh @ vh.mT - np.eye(vh.shape[-2])) <= 2 * limit).all()


# --- sizes ---------------------------------------------------------------------------------------


SHAPES = [
    (1, 1), (1, 4), (5, 1), (2, 2), (3, 5), (17, 16), (33, 40), (66, 37), (23, 90), (40, 41),
]  # fmt: skip


def some(device, cases):
    """The cases, or where software takes long, a few of them."""
    return list(cases)[:: 4 if device.kind == "software" else 1]


def test_symmetric_matrices_of_many_sizes(device, rng):
    for n in some(device, (1, 2, 3, 31, 33, 32, 67, 131)):
        check_eigen(drawn(rng, 2, n, n))  # the upper triangle is not looked at


def test_singular_values_of_many_shapes(device, rng):
    for shape in some(device, SHAPES):
        a = drawn(rng, 2, *shape)
        for full in (False, True):
            check_singular(a, full)


def test_several_rows_at_once(device, rng, monkeypatch):
    for many in some(device, (64, 500)):  # four rows, then two
        monkeypatch.setattr(eigen, "_MANY_ROWS", many)
        check_eigen(drawn(rng, 2, 37, 37))
        check_singular(drawn(rng, 2, 37, 35), False)


def test_many_small_matrices(device, rng):
    count = 300 if device.kind == "software" else 9000  # more blocks than an axis of a grid has
    a = drawn(rng, count, 8, 8)
    values = td.linalg.eigvalsh(td.asarray(a))
    lower = np.tril(a).astype(float)
    right = np.linalg.eigvalsh(lower + np.tril(lower, -1).mT)
    np.testing.assert_allclose(values.numpy(), right, atol=2e-5)
    right = np.linalg.svdvals(a.astype(float))
    np.testing.assert_allclose(td.linalg.svdvals(td.asarray(a)).numpy(), right, atol=2e-5)


def test_other_dtypes(device, rng):
    if supports(device, td.float64):
        check_eigen(drawn(rng, 70, 70, dtype="float64"))
        check_singular(drawn(rng, 40, 31, dtype="float64"), False)
    a = td.asarray([[3.0, 1.0], [1.0, 3.0]], dtype="float16")
    values, vectors = td.linalg.eigh(a)
    assert values.dtype == vectors.dtype == td.float16
    np.testing.assert_allclose(values.numpy(), [2, 4], rtol=1e-3)
    z = td.asarray(np.array([[2, 1j], [-1j, 2]], np.complex64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        np.testing.assert_allclose(td.linalg.eigvalsh(z).numpy(), [1, 3], atol=1e-6)


# --- values that are hard ------------------------------------------------------------------------


def _glued(n, times, between):
    """Wilkinson's matrices, whose eigenvalues come in close pairs, side by side."""
    one = tridiagonal(abs(np.arange(n) - n // 2), np.ones(n - 1))
    a = np.kron(np.eye(times), one).astype(np.float32)
    for at in range(n, n * times, n):
        a[at, at - 1] = a[at - 1, at] = between
    return a


SYMMETRIC = {
    "zeros": lambda rng: np.zeros((40, 40), np.float32),
    "the identity": lambda rng: np.eye(70, dtype=np.float32),
    "nearly the identity": lambda rng: np.eye(70, dtype=np.float32) + 1e-7 * drawn(rng, 70, 70),
    "ones": lambda rng: np.ones((100, 100), np.float32),
    "few distinct": lambda rng: with_eigenvalues(rng, np.repeat([1.0, 2.0, -1.0], 35)),
    "of all magnitudes": lambda rng: with_eigenvalues(rng, np.geomspace(1, 1e-12, 90)),
    "close": lambda rng: with_eigenvalues(rng, 1 + 1e-6 * np.arange(80)),
    "second differences": lambda rng: tridiagonal(np.full(90, 2.0), np.full(89, -1.0)),
    "in pairs": lambda rng: _glued(21, 5, 1e-4),
    "apart": lambda rng: np.diag(rng.permutation(60)).astype(np.float32),
    "large": lambda rng: drawn(rng, 40, 40) * np.float32(1e35),
    "small": lambda rng: drawn(rng, 40, 40) * np.float32(1e-33),
}


def test_symmetric_matrices_that_are_hard(device, rng):
    for name in some(device, SYMMETRIC):
        check_eigen(SYMMETRIC[name](rng))


def _with_zeros(a):
    a[10:20] = 0
    a[:, 5] = 0
    return a


GENERAL = {
    "zeros": lambda rng: np.zeros((20, 30), np.float32),
    "the identity": lambda rng: np.eye(40, dtype=np.float32),
    "ones": lambda rng: np.ones((60, 50), np.float32),
    "of low rank": lambda rng: with_singular_values(rng, 70, 50, np.ones(9)),
    "of all magnitudes": lambda rng: with_singular_values(rng, 50, 50, np.geomspace(1, 1e-12, 50)),
    "ill conditioned": lambda rng: with_singular_values(rng, 50, 45, np.geomspace(1, 1e-5, 45)),
    "few distinct": lambda rng: with_singular_values(
        rng, 60, 60, np.repeat([3.0, 1.0, 1e-3, 1e-7], 15)
    ),
    "a triangle": lambda rng: np.triu(np.ones((50, 50), np.float32)),
    "rows and columns of zeros": lambda rng: _with_zeros(drawn(rng, 40, 40)),
    "large": lambda rng: drawn(rng, 30, 20) * np.float32(1e36),
    "small": lambda rng: drawn(rng, 20, 30) * np.float32(1e-33),
}


def test_general_matrices_that_are_hard(device, rng):
    for name in some(device, GENERAL):
        check_singular(GENERAL[name](rng), True)


def test_rank_and_inverse(device, rng):
    a = with_singular_values(rng, 70, 50, np.ones(9))
    assert td.linalg.matrix_rank(td.asarray(a)).item() == 9
    np.testing.assert_allclose(td.linalg.pinv(td.asarray(a), rtol=1e-4).numpy(), a.T, atol=2e-5)


def test_no_elements(device):
    values, vectors = td.linalg.eigh(td.zeros((2, 0, 0)))
    assert (values.shape, vectors.shape) == ((2, 0), (2, 0, 0))
    assert td.linalg.eigvalsh(td.zeros((0, 3, 3))).shape == (0, 3)
    u, s, vh = td.linalg.svd(td.zeros((2, 0, 3)))
    assert (u.shape, s.shape) == ((2, 0, 0), (2, 0))
    np.testing.assert_array_equal(vh.numpy(), [np.eye(3)] * 2)
    assert td.linalg.svdvals(td.zeros((2, 3, 0))).shape == (2, 0)


# --- what is not finite, and what is recorded ----------------------------------------------------


def test_matrices_that_are_not_finite_are_nan_alone(device, rng):
    for n, value in ((5, np.nan), (40, np.inf), (5, -np.inf)):
        a = drawn(rng, 3, n, n)
        a[1, n - 1, 0] = value
        tall = np.concatenate([a, a], axis=1)
        found = [*td.linalg.eigh(td.asarray(a)), td.linalg.eigvalsh(td.asarray(a))]
        for x in (a, tall, tall.mT.copy()):
            found += [*td.linalg.svd(td.asarray(x)), td.linalg.svdvals(td.asarray(x))]
        for each in found:
            each = each.numpy()
            assert np.isnan(each[1]).all()
            assert np.isfinite(each[::2]).all()


def test_spectra_in_a_graph(device, rng):
    x = td.asarray(drawn(rng, 40, 40)).realize()
    td.linalg.eigh(x).eigenvectors.realize(), td.linalg.svdvals(x).realize()
    graph = td.Graph(device)
    with graph.capture():
        values, vectors = td.linalg.eigh(x)
        both = values.realize(), vectors.realize(), td.linalg.svdvals(x).realize()
    for _ in range(2):
        a = drawn(rng, 40, 40)
        x[:] = td.asarray(a)
        x.realize()
        graph.replay()
        lower = np.tril(a).astype(float)
        symmetric = lower + np.tril(lower, -1).T
        values, v, s = (each.numpy() for each in both)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric), atol=1e-4)
        np.testing.assert_allclose((v * values) @ v.T, symmetric, atol=1e-4)
        np.testing.assert_allclose(s, np.linalg.svdvals(a.astype(float)), atol=1e-4)


def test_gradients(device, rng):
    a = drawn(rng, 9, 9)
    x = td.asarray(a + a.T).requires_grad_()
    values, vectors = td.linalg.eigh(x)
    ((values**3).sum() + (vectors**2 @ values).sum()).backward()
    # sum(values ** 3) is the trace of x @ x @ x, the other term sums the diagonal of x.
    s = (a + a.T).astype(float)
    np.testing.assert_allclose(x.grad.numpy(), 3 * s @ s + np.eye(9), rtol=1e-3, atol=1e-3)
    x = td.asarray(a).requires_grad_()
    (td.linalg.svdvals(x) ** 4).sum().backward()
    b = a.astype(float)
    np.testing.assert_allclose(x.grad.numpy(), 4 * b @ b.T @ b, rtol=1e-3, atol=1e-2)


def test_vmap(device, rng):
    a = drawn(rng, 3, 2, 6, 6)
    a = a + a.mT
    found = td.vmap(td.linalg.eigvalsh)(td.asarray(a)).numpy()
    np.testing.assert_allclose(found, np.linalg.eigvalsh(a.astype(float)), atol=1e-5)
