"""`td.linalg`: residuals of factors on every route, and all functions against NumPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.core.errors import HostWarning
from treadle.kernels import cholesky, decompose, lu, triangular
from treadle.tensor.dtypes import supports
from treadle.tensor.linalg import stacks

try:
    import torch
except ImportError:
    torch = None

ORDERS = (np.inf, -np.inf, 1, -1, 2, -2)


@pytest.fixture(autouse=True)
def _poison(device):
    with poisoned(device), warnings.catch_warnings():
        warnings.simplefilter("ignore", HostWarning)
        yield


def drawn(rng, shape, dtype="float32"):
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def definite(x):
    """A positive definite matrix made of any."""
    return x @ x.conj().mT / x.shape[-1] + np.eye(x.shape[-1], dtype=x.dtype)


def close(found, right, scale=30.0):
    """Near as a whole: by the norm of the difference, in epsilons times the larger extent."""
    right, values = np.asarray(right), np.asarray(found)
    assert values.shape == right.shape
    wide = np.complex128 if np.iscomplexobj(values) else np.float64
    eps = np.finfo(values.dtype).eps * max(right.shape[-2:], default=1)
    error = np.linalg.norm((values.astype(wide) - right).ravel())
    assert error <= scale * eps * np.linalg.norm(right.astype(wide).ravel()) + 1e-30


def routes(device):
    return ("each", "panels", "host") if device.backend == "cpu" else ("each", "panels")


# --- factors, on all routes ----------------------------------------------------------------------


# Software takes long to compile: one dtype of a kind is enough there, and on the CPU.
FACTORED = {
    "cpu": [("float32", "each"), ("float32", "panels"), ("float32", "host"), ("complex128", "each"),
            ("float64", "panels")],
    "software": [("float32", "each"), ("float32", "panels"), ("complex64", "panels")],
}  # fmt: skip
ALL = [(dtype, route) for dtype in ("float32", "complex64", "float64", "complex128")
       for route in ("each", "panels")]  # fmt: skip


def test_factors(device, rng, monkeypatch):
    for dtype, route in FACTORED.get(device.kind, ALL):
        if not supports(device, getattr(td, dtype)):
            continue
        monkeypatch.setattr(decompose, "forced", route)
        # Every step of large matrices, in small ones.
        monkeypatch.setattr(triangular, "WIDE", 32)
        monkeypatch.setattr(triangular, "DEEP", 16)
        # Up to 64 rows the software's threads have one row each, and one kernel serves all sizes.
        sizes = (1, 5, 31, 56) if device.kind == "software" else (1, 16, 33, 70)
        if dtype != "float32":  # the same steps
            sizes = sizes[2:]
        for n in (2, 16) if route == "each" else sizes:
            check_factors(rng, n, dtype)


def check_factors(rng, n, dtype):
    a, b = drawn(rng, (2, n, n), dtype), drawn(rng, (2, n, 3), dtype)
    h = definite(a)
    x = td.linalg.solve(td.asarray(a), td.asarray(b))
    eps = np.finfo(dtype).eps
    # ||A x - b|| beside ||A|| ||x||, however bad the condition of A is.
    size = np.linalg.norm(a) * np.linalg.norm(x.numpy())
    assert np.linalg.norm(a.astype(complex) @ x.numpy() - b) <= 10 * n * eps * size
    lower = td.linalg.cholesky(td.asarray(h)).numpy()
    close(lower @ lower.conj().mT, h)
    assert not np.triu(lower, 1).any()
    sign, log = td.linalg.slogdet(td.asarray(h))
    right = np.linalg.slogdet(h.astype(complex))
    np.testing.assert_allclose(log.numpy(), right[1], rtol=1e3 * eps, atol=1e3 * eps)
    np.testing.assert_allclose(sign.numpy(), right[0], atol=1e3 * eps)
    small = drawn(rng, (2, min(n, 16), min(n, 16)), dtype)
    right = np.linalg.det(small.astype(complex))
    np.testing.assert_allclose(td.linalg.det(td.asarray(small)).numpy(), right, rtol=1e5 * eps)
    for shape, mode in (((n, n), "reduced"), ((n + 4, n), "complete"), ((n, n + 9), "reduced")):
        a = drawn(rng, (2, *shape), dtype)
        q, r = (x.numpy() for x in td.linalg.qr(td.asarray(a), mode=mode))
        right = np.linalg.qr(a, mode)
        assert (q.shape, r.shape) == (right.Q.shape, right.R.shape)
        close(q @ r, a)
        close(q.conj().mT @ q, np.broadcast_to(np.eye(q.shape[-1]), (2, *[q.shape[-1]] * 2)))
        assert not np.tril(r, -1).any()
        close(r, right.R, 1e3)


def test_rows_beyond_registers(device, rng, monkeypatch):
    """Matrices with more rows than one block holds, whose panels stay in memory."""
    monkeypatch.setattr(decompose, "forced", "panels")
    monkeypatch.setattr(lu, "_MOST_ROWS", 0)
    monkeypatch.setattr(triangular, "WIDE", 32)
    monkeypatch.setattr(triangular, "DEEP", 16)
    check_factors(rng, 35, "float32")


def test_columns_before_the_remainder(device, rng, monkeypatch):
    """Cholesky of large matrices, in two launches for each block on the diagonal."""
    monkeypatch.setattr(decompose, "forced", "panels")
    monkeypatch.setattr(cholesky, "_MANY_TILES", 0)
    h = definite(drawn(rng, (2, 75, 75)))
    h[1, 60, 60] = -1
    factors, status = decompose.cholesky(td.asarray(h)._array)
    assert status.to_host().tolist() == [0, 61]
    lower = factors.to_host()[0]
    close(lower @ lower.T, h[0])
    assert not np.triu(lower, 1).any()


@pytest.mark.parametrize("n", [9, 40])
def test_pivots(device, rng, monkeypatch, n):
    """The rows that LAPACK exchanges, the first of equal ones too; numbers that need it."""
    monkeypatch.setattr(decompose, "forced", "panels")
    status = td.zeros(2, dtype=td.int32)._array
    a = drawn(rng, (2, n, n))
    a[0] = rng.integers(-1, 2, (n, n))  # of equal magnitudes the first is taken
    a[:, 0, 0] = 0
    a[0, 2:4, 0] = -1, 1
    a[0] += 3 * np.tri(n, k=-1) * (np.arange(n) > 0)  # regular, without changing that column
    u, pivots = lu.upper_factor(td.asarray(a)._array, status)
    found = u.array.to_host().reshape(2, n, n)
    for one, rows, top in zip(a, pivots.to_host(), found, strict=True):
        close(np.triu(top), np.triu(eliminated(one, rows)), 1e3)
    first = [np.argmax(abs(a[0, :, 0])), np.argmax(abs(a[1, :, 0]))]
    assert pivots.to_host()[:, 0].tolist() == first
    # Without exchanges, or by 1e-6 instead of the 1 below it, nothing is left of this solution.
    a = np.eye(n, dtype=np.float32)[::-1] + 1e-6 * np.eye(n, dtype=np.float32)
    b = drawn(rng, (n, 70))
    close(td.linalg.solve(td.asarray(a), td.asarray(b)), np.linalg.solve(a.astype(float), b))
    hilbert = (1 / (1 + np.add.outer(np.arange(n), np.arange(n)))).astype(np.float32)
    x = td.linalg.solve(td.asarray(hilbert), td.asarray(b)).numpy().astype(float)
    bound = 10 * n * np.finfo(np.float32).eps * np.linalg.norm(hilbert) * np.linalg.norm(x)
    assert np.linalg.norm(hilbert @ x - b) <= bound


def test_what_is_not_finite(device, rng, monkeypatch):
    """One matrix of a stack does not disturb the others, and NaN is not called singular."""
    monkeypatch.setattr(decompose, "forced", "panels")
    a, b = drawn(rng, (3, 20, 20)), drawn(rng, (3, 20, 2))
    a[0, 7, 11], a[1, 3, 3] = np.nan, np.inf
    x = td.linalg.solve(td.asarray(a), td.asarray(b)).numpy()
    assert np.isnan(x[0]).all()
    close(x[2], np.linalg.solve(a[2].astype(float), b[2]), 1e3)
    q, r = (found.numpy() for found in td.linalg.qr(td.asarray(a)))
    assert np.isnan(q[0, :, 11]).all()
    assert np.isnan(r[0, 11, 11])
    close(q[2] @ r[2], a[2])
    h = definite(a[2:]).repeat(3, axis=0)
    h[0, 9, 9], h[1, 19, 19] = np.nan, -1
    factors, status = decompose.cholesky(td.asarray(h)._array)
    assert status.to_host().tolist() == [10, 20, 0]
    close(factors.to_host()[2], np.linalg.cholesky(h[2].astype(float)), 1e3)
    _, status = decompose.solve(*[td.asarray(v)._array for v in (a[:1] * 0, b[:1])])
    assert status.to_host().tolist() != [0]


def eliminated(a, rows):
    """Both factors in one, computed step by step with these exchanges, which must be good ones."""
    a = a.astype(float)
    for k, row in enumerate(rows):
        assert abs(a[row, k]) >= 0.999 * abs(a[k:, k]).max()
        a[[k, row]] = a[[row, k]]
        if a[k, k] != 0:
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def test_large_and_small_numbers(device, monkeypatch):
    a = np.array([[[0, 1, 2], [0, 0, 1e25], [0, 1, 1e25]]], np.float32)
    wide = np.diag(np.array([1e30, -1e30, 1e-30, 1e-30, 3], np.float32))[:, ::-1].copy()
    for route in routes(device):
        monkeypatch.setattr(decompose, "forced", route)
        q, r = td.linalg.qr(td.asarray(a))
        close(q @ r, a)
        np.testing.assert_allclose(td.linalg.det(td.asarray(wide)).numpy(), -3, rtol=1e-4)
        np.testing.assert_array_equal(td.linalg.det(td.asarray(wide[:2, 3:])).numpy(), np.inf)
        assert td.linalg.det(td.asarray(a)).tolist() == [0.0]
        assert [x.tolist() for x in td.linalg.slogdet(td.asarray(a))] == [[0.0], [-np.inf]]


def test_numbers_near_the_smallest(device, rng, monkeypatch):
    """Their reciprocals are infinite. What a device takes for 0 is as well without a factor."""
    for route in (*routes(device), "memory"):
        monkeypatch.setattr(decompose, "forced", "panels" if route == "memory" else route)
        if route == "memory":
            monkeypatch.setattr(lu, "_MOST_ROWS", 0)
        for scale in (1e-37, 1e-39):
            a = (drawn(rng, (40, 4, 4), "float64") * scale).astype(np.float32)
            q, r = (found.numpy() for found in td.linalg.qr(td.asarray(a)))
            close(q.mT @ q, np.broadcast_to(np.eye(4), (40, 4, 4)))
            # A device may take products below the least normal number for 0: eight to an element.
            assert abs(q @ r - a).max() <= 1e-5 * abs(a).max() + 8 * np.finfo(np.float32).tiny
            if device.kind == "cpu":
                h = definite(drawn(rng, (40, 4, 4), "float64"))
                factors, _ = decompose.cholesky(td.asarray((h * scale).astype(np.float32))._array)
                lower = factors.to_host().astype(float)
                assert abs(lower @ lower.mT - h * scale).max() <= 1e-5 * abs(h).max() * scale
    if device.kind == "cpu":
        monkeypatch.setattr(decompose, "forced", "each")
        a = (drawn(rng, (40, 4, 4), "complex128") + 3 * np.eye(4)) * 1e-39
        a = td.asarray(a.astype(np.complex64))
        x, status = decompose.solve(a._array, a._array)
        assert not status.to_host().any()
        assert abs(x.to_host() - np.eye(4)).max() < 1e-2


@pytest.mark.parametrize("upper", [False, True])
def test_triangles(device, rng, upper):
    a = drawn(rng, (70, 70)) / 70 + np.eye(70, dtype=np.float32)
    b = drawn(rng, (2, 70, 3))
    triangle = np.triu(a) if upper else np.tril(a)
    x = td.linalg.solve_triangular(td.asarray(a), td.asarray(b), upper=upper)
    close(x, np.linalg.solve(triangle.astype(float), b))
    y = td.linalg.solve_triangular(td.asarray(a), td.asarray(b.mT), upper=upper, left=False)
    close(y @ td.asarray(triangle), b.mT)
    np.fill_diagonal(triangle, 1.0)
    x = td.linalg.solve_triangular(td.asarray(a), td.asarray(b), upper=upper, unitriangular=True)
    close(x, np.linalg.solve(triangle.astype(float), b))


@pytest.mark.parametrize(
    "shape", [(2, 3, 5), (1, 19, 7), (2, 17, 17), (1, 0, 3), (0, 2, 2)], ids=str
)
def test_lu_factors(device, rng, shape):
    a = drawn(rng, shape)
    factors, pivots, order, status = decompose.lu_factors(td.asarray(a)._array)
    found, order = factors.to_host().astype(float), order.to_host()
    least = min(shape[1:])
    lower = np.tril(found[:, :, :least], -1) + np.eye(shape[1], least)
    close(np.take_along_axis(a, order[:, :, None], 1), lower @ np.triu(found[:, :least]))
    assert not status.to_host().any()
    again = np.broadcast_to(np.arange(shape[1]), shape[:2]).copy()
    for m, row in enumerate(pivots.to_host()):
        for at, other in enumerate(row):
            again[m, [at, other]] = again[m, [other, at]]
    np.testing.assert_array_equal(order, again)


# --- stacks, views, dtypes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "shapes",
    [((3, 3), (3,)), ((3, 3), (2, 3, 4)), ((4, 1, 3, 3), (5, 3, 2)), ((2, 3, 3), (3,)),
     ((2, 1, 3, 3), (0, 3, 2)), ((0, 3, 3), (3, 2)), ((2, 0, 0), (0, 4)), ((1, 1), (1, 0))],
    ids=str,
)  # fmt: skip
def test_solve_broadcasts(device, rng, shapes):
    a, b = (drawn(rng, shape) for shape in shapes)
    found = td.linalg.solve(td.asarray(a), td.asarray(b))
    close(found, np.linalg.solve(a.astype(float), b.astype(float)), 1e3)


def test_views(device, rng):
    a = drawn(rng, (5, 4, 2, 5))
    view = td.asarray(a)[::-1, :, 1].permute(1, 2, 0) + 0
    same = np.ascontiguousarray(a[::-1, :, 1].transpose(1, 2, 0))
    close(td.linalg.inv(view.mT), np.linalg.inv(same.mT.astype(float)), 1e4)
    h = td.asarray(definite(same))
    upper = td.linalg.cholesky(h.mT, upper=True)
    close(upper.mT @ upper, h.numpy())
    assert not np.tril(upper.numpy(), -1).any()
    before = view.numpy()
    td.linalg.solve(view, view), td.linalg.qr(view).Q.realize(), td.linalg.det(view).realize()
    np.testing.assert_array_equal(view.numpy(), before, "what is given is not written")


def test_many_small_matrices(device, rng):
    a = drawn(rng, (300, 3, 3))
    x = td.linalg.inv(td.asarray(a) * 2)
    residual = (a.astype(float) @ x.numpy() * 2 - np.eye(3)) / np.linalg.cond(a)[:, None, None]
    assert abs(residual).max() < 1e-5
    close(td.linalg.det(td.asarray(a)), np.linalg.det(a.astype(float)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_computed_in_float32(device, dtype):
    a = td.asarray([[2.0, 1.0], [1.0, 3.0]], dtype=dtype)
    found = (td.linalg.inv(a), td.linalg.cholesky(a), *td.linalg.qr(a), td.linalg.svdvals(a))
    assert {x.dtype for x in found} == {getattr(td, dtype)}
    close(found[0].to(td.float32), np.array([[0.6, -0.2], [-0.2, 0.4]]), 1e4)
    assert td.linalg.vector_norm(td.full(7, 200.0, dtype=dtype)).item() == pytest.approx(529, 0.01)


def test_no_elements(device):
    empty = td.zeros((2, 0, 0))
    assert td.linalg.det(empty).tolist() == [1, 1]
    assert [x.tolist() for x in td.linalg.slogdet(empty)] == [[1, 1], [0, 0]]
    assert td.linalg.inv(empty).shape == td.linalg.cholesky(empty).shape == (2, 0, 0)
    assert td.linalg.matrix_exp(empty).shape == (2, 0, 0)
    q, r = td.linalg.qr(td.zeros((2, 3, 0)), mode="complete")
    assert (q.tolist(), r.shape) == ([np.eye(3).tolist()] * 2, (2, 3, 0))
    q, r = td.linalg.qr(td.zeros((0, 3)))
    assert (q.shape, r.shape) == ((0, 0), (0, 3))
    u, s, vh = td.linalg.svd(td.zeros((0, 3)))
    assert (u.shape, s.shape, vh.tolist()) == ((0, 0), (0,), np.eye(3).tolist())
    assert td.linalg.pinv(td.zeros((2, 0))).shape == (0, 2)
    assert td.linalg.matrix_rank(td.zeros((2, 0, 3))).tolist() == [0, 0]
    assert td.linalg.vector_norm(td.zeros(0)).item() == td.linalg.norm(td.zeros((0, 2))).item() == 0


# --- singular matrices ---------------------------------------------------------------------------


def test_singular(device, monkeypatch):
    stack = td.asarray([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
    for route in routes(device):
        monkeypatch.setattr(decompose, "forced", route)
        with pytest.raises(np.linalg.LinAlgError, match=r"matrix \(1,\) of the stack is singular"):
            td.linalg.inv(stack)
        with pytest.raises(td.linalg.LinAlgError, match="the matrix is singular"):
            td.linalg.solve(stack[1], td.ones(2))
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            td.linalg.cholesky(-stack)
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            td.linalg.cholesky(stack + np.nan)
        assert td.linalg.det(stack).tolist() == [2.0, 0.0]
    with pytest.raises(np.linalg.LinAlgError, match="full rank"):
        td.linalg.lstsq(td.ones((3, 2)), td.ones(3))
    assert td.linalg.cond(stack, 1).tolist() == [2.0, np.inf]
    assert td.linalg.matrix_rank(stack).tolist() == [2, 1]


def test_a_recorded_solution_of_a_singular_matrix_is_nan(device):
    a = td.asarray([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
    b = td.asarray([[[2.0], [2.0]]]) * td.ones((2, 1, 1))
    td.linalg.solve(a + td.eye(2), b)
    graph = td.Graph(device)
    a.realize(), b.realize()
    with graph.capture():
        x = td.linalg.solve(a, b).realize()
    graph.replay()
    np.testing.assert_array_equal(x.numpy()[:, :, 0], [[2, 1], [np.nan, np.nan]])
    a[1] = td.eye(2)
    a.realize()
    graph.replay()
    np.testing.assert_array_equal(x.numpy()[:, :, 0], [[2, 1], [2, 2]])


def test_a_compiled_function_solves_without_a_read(device):
    @td.compile
    def solved(a, b):
        return td.linalg.solve(a * 2, b) + td.linalg.det(a)

    b = td.asarray([2.0, 4.0])
    for scale in (1.0, 2.0):
        a = td.asarray([[0.0, 1.0], [1.0, 0.0]]) * scale
        found = solved(a, b)
        np.testing.assert_allclose(found.numpy(), [2 / scale - scale**2, 1 / scale - scale**2])
    assert np.isnan(solved(td.ones((2, 2)), b).numpy()).all()


# --- spectra -------------------------------------------------------------------------------------


def test_spectra(device, rng):
    a = drawn(rng, (2, 5, 3))
    for full in (False, True):
        u, s, vh = td.linalg.svd(td.asarray(a), full_matrices=full)
        right = np.linalg.svd(a, full_matrices=full)
        assert (u.shape, vh.shape) == (right.U.shape, right.Vh.shape)
        close(u[..., :3] * s.reshape(2, 1, 3) @ vh, a)
    close(td.linalg.svdvals(td.asarray(a)), right.S)
    close(td.linalg.pinv(td.asarray(a)), np.linalg.pinv(a.astype(float)), 1e3)
    z = drawn(rng, (4, 4), "complex64")
    h = z + z.conj().T
    values, vectors = td.linalg.eigh(td.asarray(np.tril(h)))
    assert (values.dtype, vectors.dtype) == (td.float32, td.complex64)
    close(td.asarray(h) @ vectors, (vectors * values).numpy())
    close(td.linalg.eigvalsh(td.asarray(h)), np.linalg.eigvalsh(h), 100)
    values, vectors = td.linalg.eig(td.asarray(a[:, :3]))
    assert values.dtype == vectors.dtype == td.complex64
    close(a[:, :3] @ vectors.numpy(), vectors.numpy() * values.numpy()[:, None], 100)
    np.testing.assert_array_equal(td.linalg.eigvals(td.asarray(a[:, :3])).shape, (2, 3))
    rtol = td.asarray([1e-3, 0.9])
    right = [
        int((x > r * x[0]).sum()) for x, r in zip(np.linalg.svdvals(a), (1e-3, 0.9), strict=True)
    ]
    assert td.linalg.matrix_rank(td.asarray(a), rtol=rtol).tolist() == right
    assert td.linalg.pinv(td.asarray(a), rtol=0.5).shape == (2, 3, 5)
    s = np.linalg.svd(a.astype(float), compute_uv=False)
    between = ((s[:, 1] + s[:, 2]) / 2).astype(np.float32)  # an absolute limit for each matrix
    assert td.linalg.matrix_rank(td.asarray(a), atol=td.asarray(between)).tolist() == [2, 2]
    count = (s > between[0]).sum(axis=1).tolist()
    assert td.linalg.matrix_rank(td.asarray(a), atol=float(between[0])).tolist() == count
    square = a[:, :3]
    for p in (None, "fro", "nuc", *ORDERS):
        close(td.linalg.cond(td.asarray(square), p), np.linalg.cond(square.astype(float), p), 1e4)


def test_crossing_to_the_host_is_said_once(device, monkeypatch):
    monkeypatch.setattr(stacks, "_warned", set())
    x = td.ones((2, 2), dtype=td.complex64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        td.linalg.svd(td.ones((2, 2)))  # on the device
        if device.traits.host_memory:
            td.linalg.svd(x)
            return
    for call, options in (("svd", {}), ("pinv", {}), ("cond", {}), ("norm", {"ord": 2}),
                          ("matrix_norm", {"ord": "nuc"}), ("eig", {})):  # fmt: skip
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            getattr(td.linalg, call)(x, **options)
            getattr(td.linalg, call)(x, **options)
        assert [w.filename for w in heard] == [__file__], "at the user's line"
        assert f"td.linalg.{call} is computed" in str(heard[0].message)


# --- norms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_vector_norms(device, rng, dtype):
    a = drawn(rng, (3, 4, 5), dtype)
    a[0, 1] = 0
    x = td.asarray(a)
    ways = ((None, True), ((0, 2), True), ((), False), (1, False))
    for ord in (2, 1, 0, 2.5, -2, np.inf, -np.inf):
        for axis, keepdims in ways if ord in (2, 0) else ways[-1:]:
            found = td.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
            assert found.dtype == td.float32
            with np.errstate(divide="ignore"):
                if axis == ():
                    right = (a != 0).astype(float) if ord == 0 else abs(a)
                else:
                    right = np.linalg.vector_norm(
                        a.astype(complex), axis=axis, keepdims=keepdims, ord=ord
                    )
            assert found.shape == right.shape
            np.testing.assert_allclose(found.numpy(), right, rtol=2e-6, atol=1e-6)


def test_matrix_norms(device, rng):
    a = drawn(rng, (3, 4, 5), "float32" if device.kind == "software" else "complex64")
    x = td.asarray(a)
    for ord in ("fro", "nuc", *ORDERS):
        right = np.linalg.matrix_norm(a.astype(complex), ord=ord)
        np.testing.assert_allclose(td.linalg.matrix_norm(x, ord=ord).numpy(), right, rtol=1e-5)
        right = np.linalg.norm(a.astype(complex), ord, (2, 0), True)
        found = td.linalg.norm(x, ord, dim=(2, 0), keepdim=True)
        assert found.shape == right.shape == (1, 4, 1)
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-5)
    for arguments in ((), (None, 1), (1, 0), (3, (-1,))):
        right = np.linalg.norm(a.astype(complex), *arguments)
        np.testing.assert_allclose(td.linalg.norm(x, *arguments).numpy(), right, rtol=1e-5)


def test_a_norm_is_one_kernel(device):
    x = td.ones((4, 5)).realize()
    assert "1 kernel\n" in str(td.explain(td.linalg.vector_norm(x * 2 + 1, axis=1) + 1))


# --- products ------------------------------------------------------------------------------------


def test_powers_and_products(device, rng):
    a = drawn(rng, (2, 3, 3))
    x = td.asarray(a)
    for n in (0, 1, 2, 7, -1, -3):
        close(td.linalg.matrix_power(x, n), np.linalg.matrix_power(a.astype(float), n), 1e5)
    whole = td.asarray([[1, 1], [1, 0]], dtype=td.int32)
    assert td.linalg.matrix_power(whole, 10).tolist() == [[89, 55], [55, 34]]
    chain = [drawn(rng, shape) for shape in ((4,), (4, 7), (7, 2), (2, 5), (5,))]
    close(td.linalg.multi_dot(list(map(td.asarray, chain))), np.linalg.multi_dot(chain))
    close(td.linalg.multi_dot([td.asarray(c) for c in chain[1:4]]), chain[1] @ chain[2] @ chain[3])
    assert td.linalg.trace(x, offset=1).shape == (2,)
    close(td.linalg.trace(x), np.trace(a, axis1=1, axis2=2))
    close(td.linalg.diagonal(x, offset=-1), np.diagonal(a, -1, 1, 2))
    found = td.linalg.cross(x[:, :1], x[0], axis=-1)
    close(found, np.linalg.cross(a[:, :1], np.broadcast_to(a[0], (2, 3, 3))))
    found = td.linalg.cross(td.asarray(a), td.asarray(a[::-1].copy()), axis=1)
    close(found, np.linalg.cross(a, a[::-1], axis=1))


if torch is not None:

    def test_beside_pytorch(device, rng):
        for rows, columns in ((6, 4), (4, 6), (4, 4)):
            a, b = drawn(rng, (2, rows, columns)), drawn(rng, (2, rows, 3))
            found = td.linalg.lstsq(td.asarray(a), td.asarray(b))
            right = torch.linalg.lstsq(*map(torch.asarray, (a, b)), driver="gels")
            close(found.solution, right.solution.numpy(), 1e4)
            if rows > columns:
                close(found.residuals, right.residuals.numpy(), 1e4)
            else:
                assert found.residuals.shape == (0,)
        a = drawn(rng, (3, 4, 4)) * np.array([0.01, 1, 6], np.float32)[:, None, None]
        right = torch.linalg.matrix_exp(torch.asarray(a).double()).numpy()
        for one, other in zip(td.linalg.matrix_exp(td.asarray(a)), right, strict=True):
            close(one, other, 1e3)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda x: td.linalg.inv(x), td.errors.ShapeError, r"square matrices, not 2 × 3"),
        (lambda x: td.linalg.det(x[0]), td.errors.ShapeError, r"matrices.*shape \(3,\)"),
        (lambda x: td.linalg.qr(td.ones((2, 2), dtype=td.int32)), td.errors.DtypeError, "int32"),
        (lambda x: td.linalg.norm(td.ones(2, dtype=td.bool)), td.errors.DtypeError, "bool"),
        (lambda x: td.linalg.qr(x, mode="raw"), ValueError, "reduced"),
        (lambda x: td.linalg.solve(x, x), td.errors.ShapeError, "square"),
        (lambda x: td.linalg.solve(td.eye(3), x), td.errors.ShapeError, r"\(3, 3\).*\(2, 3\)"),
        (lambda x: td.linalg.solve(td.ones((2, 3, 3)), td.ones((3, 3, 1))),
         td.errors.ShapeError, "broadcast"),
        (lambda x: td.linalg.solve(td.eye(2), 2.0), td.errors.ShapeError, "not one number"),
        (lambda x: td.linalg.lstsq(x, td.ones(3)), td.errors.ShapeError, r"\(2, 3\).*\(3,\)"),
        (lambda x: td.linalg.cross(x, td.ones(2)), td.errors.ShapeError, r"\(2, 3\).*\(2,\)"),
        (lambda x: td.linalg.matrix_power(x, 2), td.errors.ShapeError, "square"),
        (lambda x: td.linalg.matrix_norm(x, ord=3), ValueError, "orders"),
        (lambda x: td.linalg.vector_norm(x, ord="fro"), ValueError, "number"),
        (lambda x: td.linalg.norm(td.ones((2, 2, 2)), 1), td.errors.ShapeError, "name axes"),
        (lambda x: td.linalg.norm(x, axis=(0, 0)), ValueError, "twice"),
        (lambda x: td.linalg.multi_dot([x, x]), td.errors.ShapeError, r"\(2, 3\) and \(2, 3\)"),
        (lambda x: td.linalg.multi_dot([x]), ValueError, "two"),
    ],
)  # fmt: skip
def test_refusals(make, error, says):
    with td.use_device("cpu"), pytest.raises(error, match=says):
        make(td.ones((2, 3)))
