"""Gradients of linear algebra: those of differences, and PyTorch's."""

import gc
import weakref

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError

try:
    import torch
except ImportError:
    torch = None


def regular(rng, kind, *shape):
    """Matrices that are far from singular."""
    x = rng.standard_normal(shape)
    if kind == "complex":
        x = x + 1j * rng.standard_normal(shape)
    return x + 3 * np.eye(shape[-2], shape[-1])


def adjoint(lib, x):
    return lib.conj(x.mT)


def positive(lib, x):
    return x @ adjoint(lib, x)


def of_svd(lib, x):
    u, s, vh = lib.linalg.svd(x, full_matrices=False)
    return u * s**2 @ vh, u[..., :1] @ adjoint(lib, u[..., :1])


def of_eigh(lib, x):
    values, vectors = lib.linalg.eigh(positive(lib, x))
    return values, vectors[..., 1:] @ adjoint(lib, vectors[..., 1:])


def of_eig(lib, x):
    values, vectors = lib.linalg.eig(x)
    return values, vectors * lib.conj(vectors)


# What is differentiated, and the shapes and kind of its arguments. What has vectors of an unknown
# phase uses them without it.
FUNCTIONS = {
    "cholesky": (lambda lib, x: lib.linalg.cholesky(positive(lib, x)), "complex", (2, 2)),
    "cholesky, upper": (
        lambda lib, x: lib.linalg.cholesky(positive(lib, x), upper=True), "real", (2, 2, 2)
    ),
    "qr": (lambda lib, x: tuple(lib.linalg.qr(x)), "complex", (3, 2)),
    "qr, wide": (lambda lib, x: lib.linalg.qr(x, mode="complete")[1], "real", (2, 3)),
    "inv": (lambda lib, x: lib.linalg.inv(x), "complex", (2, 2, 2)),
    "det": (lambda lib, x: lib.linalg.det(x), "complex", (2, 2, 2)),
    "slogdet": (lambda lib, x: tuple(lib.linalg.slogdet(x)), "complex", (2, 2)),
    "svdvals": (lambda lib, x: lib.linalg.svdvals(x), "real", (2, 2, 3)),
    "svd": (of_svd, "complex", (3, 2)),
    "eigh": (of_eigh, "complex", (3, 3)),
    "eig": (of_eig, "complex", (2, 2)),
    "pinv": (lambda lib, x: lib.linalg.pinv(x), "complex", (3, 2)),
    "pinv, wide": (lambda lib, x: lib.linalg.pinv(x), "real", (2, 2, 3)),
    "matrix_exp": (lambda lib, x: lib.linalg.matrix_exp(x), "real", (2, 2, 2)),
    "nuc": (lambda lib, x: lib.linalg.matrix_norm(x, ord="nuc"), "real", (2, 2, 2)),
    "rows": (lambda lib, x: lib.linalg.matrix_norm(x, ord=np.inf), "real", (2, 2)),
    "vectors": (lambda lib, x: lib.linalg.vector_norm(x, dim=0), "complex", (2, 2)),
    "vectors, 3": (
        lambda lib, x: lib.linalg.vector_norm(x, ord=3, dim=1, keepdim=True), "real", (2, 2)
    ),
    "vectors, inf": (lambda lib, x: lib.linalg.vector_norm(x, ord=np.inf), "real", (2, 2)),
    "solve": (lambda lib, a, b: lib.linalg.solve(a, b), "complex", (2, 2, 2), (2, 1)),
    "triangular": (
        lambda lib, a, b: lib.linalg.solve_triangular(a, b, upper=True),
        "complex", (2, 2), (2, 2, 1),
    ),
    "triangular, right": (
        lambda lib, a, b: lib.linalg.solve_triangular(
            a, b, upper=False, left=False, unitriangular=True
        ),
        "real", (2, 2), (1, 2),
    ),
    "lstsq": (lambda lib, a, b: lib.linalg.lstsq(a, b).solution, "real", (3, 2), (3, 1)),
}  # fmt: skip


def arguments(rng, kind, *shapes):
    first, *others = shapes
    drawn = [rng.standard_normal(shape) * (1 + 1j if kind == "complex" else 1) for shape in others]
    return [regular(rng, kind, *first), *drawn]


if torch is not None:

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_parity(name, rng):
        function, *described = FUNCTIONS[name]
        arrays = arguments(rng, *described)
        theirs = [torch.tensor(x, requires_grad=True) for x in arrays]
        results = function(torch, *theirs)
        results = results if isinstance(results, tuple) else (results,)
        weights = [rng.standard_normal(tuple(each.shape)) for each in results]
        torch.autograd.backward(
            results,
            [torch.tensor(w).to(y.dtype) for w, y in zip(weights, results, strict=True)],
        )
        mine = [td.asarray(x, device="cpu").requires_grad_() for x in arrays]
        results = function(td, *mine)
        results = results if isinstance(results, tuple) else (results,)
        weights = [td.asarray(each, device="cpu") for each in weights]
        td.autograd.backward(
            results, [w.to(y.dtype) for w, y in zip(weights, results, strict=True)]
        )
        for x, y in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6, atol=1e-8)


def test_second_derivatives(rng):
    function, _, *shapes = FUNCTIONS["qr"]
    check_gradients(lambda *x: function(td, *x), *arguments(rng, "real", *shapes), rtol=1e-4)


def test_values_that_are_gone_are_there_for_gradients_of_gradients(rng):
    """The results are dropped, and are computed, before the backward pass."""
    x = td.asarray(regular(rng, "real", 2, 2), device="cpu").requires_grad_()
    y = td.linalg.inv(x).sum() + x.exp().sum()
    y.item()
    (first,) = td.autograd.grad(y, x, create_graph=True)
    (second,) = td.autograd.grad(first.sum(), x)
    again = td.asarray(x.numpy(), device="cpu").requires_grad_()
    inverse, power = td.linalg.inv(again), again.exp()
    (first,) = td.autograd.grad(inverse.sum() + power.sum(), again, create_graph=True)
    (expected,) = td.autograd.grad(first.sum(), again)
    np.testing.assert_allclose(second.numpy(), expected.numpy(), rtol=1e-9)
    assert np.abs(second.numpy()).min() > 0


def test_one_of_several_results_changed_in_place(rng):
    x = td.asarray(regular(rng, "real", 2, 2), device="cpu").requires_grad_()
    q, r = td.linalg.qr(x)
    z = r.sum()
    q += 1
    with pytest.raises(AutogradError, match="changed in place"):
        z.backward()


def test_singular_matrices_have_a_gradient_of_det(rng):
    a = rng.standard_normal((3, 3))
    a[2] = a[0] - a[1]
    check_gradients(td.linalg.det, a, second=False)


def test_norms_of_zeros(device):
    x = td.zeros((2, 2), device=device).requires_grad_()
    (td.linalg.vector_norm(x) + td.linalg.vector_norm(x, ord=3) + td.linalg.norm(x)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 2)))


def test_what_depends_on_a_phase_is_refused(rng):
    x = td.asarray(regular(rng, "complex", 2, 2), device="cpu").requires_grad_()
    with pytest.raises(AutogradError, match="factor of magnitude 1"):
        td.imag(td.linalg.eig(x).eigenvectors * (0.5 + 1j)).sum().backward()


def test_complete_qr_is_refused(rng):
    x = td.asarray(regular(rng, "real", 3, 2), device="cpu").requires_grad_()
    with pytest.raises(AutogradError, match='mode="complete"'):
        td.linalg.qr(x, mode="complete").R.sum().backward()


@pytest.mark.parametrize("name", ["cholesky, upper", "qr", "solve"])
def test_on_every_device(name, device, rng):
    function, _, *shapes = FUNCTIONS[name]
    arrays = [x.astype(np.float32) for x in arguments(rng, "real", *shapes)]
    found = []
    for where, dtype in ((device, np.float32), ("cpu", np.float64)):
        tensors = [td.asarray(x.astype(dtype), device=where).requires_grad_() for x in arrays]
        results = function(td, *tensors)
        for each in results if isinstance(results, tuple) else (results,):
            (each * each).sum().backward(retain_graph=True)
        found.append([x.grad.numpy() for x in tensors])
    for mine, expected in zip(*found, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_that_several_results_do_not_keep_each_other(rng):
    """What nobody has is gone at once, without a search for circles."""
    x = td.asarray(regular(rng, "real", 2, 2), device="cpu").requires_grad_()
    q, r = td.linalg.qr(x)
    q.realize()
    histories = [weakref.ref(each._history) for each in (q, r)]
    gc.disable()
    try:
        del q, r
        assert [each() for each in histories] == [None, None]
    finally:
        gc.enable()
