"""No public function loses a history in silence: it has a derivative, or backward refuses."""

import math

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import AutogradError
from treadle.runtime import settings
from treadle.tensor.elementwise_functions import FUNCTIONS, RULES

_STEP = 1e-6


def places(*values):
    return td.asarray(np.array(values, np.int32), device="cpu")


# What a function takes beside a tensor of shape (3, 3), where that is not enough.
CALLS = {
    "broadcast_arrays": lambda f, x: f(x, x[:1]),
    "broadcast_to": lambda f, x: f(x, (2, 3, 3)),
    "astype": lambda f, x: f(x, td.complex128),
    "atan2": lambda f, x: f(x, x.T + 1),
    "bincount": lambda f, x: f(places(0, 2, 2), weights=x[0]),
    "cdist": lambda f, x: f(x, x[:2] + 1),
    "clip": lambda f, x: f(x, 1.0, x.T + 1),
    "concat": lambda f, x: f([x, x.T]),
    "cross": lambda f, x: f(x, x.T),
    "cumulative_prod": lambda f, x: f(x, axis=0),
    "cumulative_sum": lambda f, x: f(x, axis=0),
    "dot": lambda f, x: f(x[0], x[1]),
    "einsum": lambda f, x: f("ij,kj->ik", x, x),
    "fftfreq": lambda f, x: f(3),
    "from_dlpack": lambda f, x: f(x * 1),
    "full": lambda f, x: f((2, 3, 3), x),
    "full_like": lambda f, x: f(x, x[0, 0]),
    "gather": lambda f, x: f(x, 0, places([0, 2, 0])),
    "histogram": lambda f, x: f(x.detach(), bins=3, weights=x).hist,
    "imag": lambda f, x: f(x * 1j),
    "index_add": lambda f, x: f(x, 0, places(0, 0), x[:2]),
    "index_copy": lambda f, x: f(x, 0, places(0, 0), x[:2]),
    "index_fill": lambda f, x: f(x, 0, places(0), 3.0),
    "index_select": lambda f, x: f(x, 0, places(0, 0)),
    "irfft2": lambda f, x: f(x * (1 + 1j)),
    "lstsq": lambda f, x: f(x, x[0]),
    "masked_fill": lambda f, x: f(x, x > 1, x[0, 0]),
    "masked_select": lambda f, x: f(x, x > 1),
    "matrix_power": lambda f, x: f(x, 2),
    "meshgrid": lambda f, x: f(x[0], x[1]),
    "moveaxis": lambda f, x: f(x, 0, 1),
    "multi_dot": lambda f, x: f([x, x.T]),
    "outer": lambda f, x: f(x[0], x[1]),
    "permute_dims": lambda f, x: f(x, (1, 0)),
    "repeat": lambda f, x: f(x, 2, axis=0),
    "reshape": lambda f, x: f(x, (9,)),
    "rfftfreq": lambda f, x: f(3),
    "roll": lambda f, x: f(x, 1),
    "scatter": lambda f, x: f(x, 0, places([0, 2, 0]), x),
    "scatter_add": lambda f, x: f(x, 0, places([0, 2, 0]), x),
    "scatter_reduce": lambda f, x: f(x, 0, places([0, 2, 0]), x, "prod"),
    "searchsorted": lambda f, x: f(x[0], x[1]),
    "split": lambda f, x: f(x, [1]),
    "solve_triangular": lambda f, x: f(x, x, upper=False),
    "squeeze": lambda f, x: f(x[None], 0),
    "stack": lambda f, x: f([x, x.T]),
    "swapaxes": lambda f, x: f(x, 0, 1),
    "take": lambda f, x: f(x, places(0, 0), axis=0),
    "take_along_axis": lambda f, x: f(x, places([0, 2, 0]), axis=0),
    "tensordot": lambda f, x: f(x, x, axes=1),
    "tile": lambda f, x: f(x, 2),
    "topk": lambda f, x: f(x, 2),
    "where": lambda f, x: f(x > 1, x, x * x),
    **dict.fromkeys(("cholesky", "eigh", "eigvalsh"), lambda f, x: f(x @ x.mT)),
    **dict.fromkeys(("acos", "asin", "atanh"), lambda f, x: f(x / 10)),
    **dict.fromkeys(("acosh",), lambda f, x: f(x + 1)),
}
BITS = {name for name in FUNCTIONS if name.startswith("bitwise")}
OF_TWO = {name for name, rule in RULES.items() if rule.operands == 2} | {
    "matmul", "vecdot", "kron", "solve",
}  # fmt: skip
# They take no tensors, or give none.
WITHOUT = {
    "CommandBatch", "Generator", "Tensor", "__array_namespace_info__", "arange", "can_cast",
    "compile", "elementwise", "empty", "explain", "eye", "fft", "finfo", "iinfo", "isdtype",
    "linalg", "linspace", "manual_seed", "newaxis", "ones", "random", "result_type", "zeros",
    "autocast", "is_autocast_enabled", "get_autocast_dtype",
}  # fmt: skip
# What they give does not depend on the elements.
LIKE = {"empty_like", "fftfreq", "ones_like", "rfftfreq", "zeros_like", "histc"}


def namespaces():
    array = {name: getattr(td.tensor, name) for name in td.tensor.__all__ if name not in WITHOUT}
    yield from sorted({**array, **FUNCTIONS}.items())


def of_matrices():
    for space in (td.linalg, td.fft):
        yield from ((name, getattr(space, name)) for name in space.__all__ if name[0].islower())


EVERY = [(name, function) for name, function in namespaces() if name not in BITS]
OF_MATRICES = list(of_matrices())  # there are other tests of the numbers


def results(name, function, x, calls=CALLS):
    """What a function gives that can have gradients."""
    if name in calls:
        given = calls[name](function, x)
    elif name in OF_TWO:
        given = function(x, x.T + 1)
    else:
        given = function(x)
    flat = given if isinstance(given, (tuple, list)) else [given]
    return [each for each in flat if each.dtype.kind in ("float", "complex")]


def number(found):
    """All of the results together."""
    total = 0.0
    for each in found:
        size = math.prod(each.shape)
        by = td.asarray(np.cos(np.arange(size)).reshape(each.shape), device="cpu")
        parts = td.real(each) + td.imag(each) if each.dtype.kind == "complex" else each
        total = total + (parts * by).sum()
    return total


@pytest.mark.parametrize(("name", "function"), EVERY, ids=[name for name, _ in EVERY])
def test_that_no_gradient_is_lost(name, function, monkeypatch):
    monkeypatch.setattr(settings, "eager", True)  # few kernels, which many functions share
    rng = np.random.default_rng(1)
    array = rng.uniform(0.5, 3, (3, 3)) + np.eye(3)
    x = td.asarray(array, device="cpu").requires_grad_()
    found = results(name, function, x)
    if name in LIKE:
        return
    assert all(each.requires_grad or not each.size for each in found), "its history is lost"
    if not found:
        return
    try:
        (slope,) = td.autograd.grad(number(found), x)
    except AutogradError:
        return
    way = rng.standard_normal(array.shape)
    with td.no_grad():
        ends = [
            number(results(name, function, td.asarray(array + step * way, device="cpu"))).item()
            for step in (_STEP, -_STEP)
        ]
    expected = (ends[0] - ends[1]) / (2 * _STEP)
    np.testing.assert_allclose((slope.numpy() * way).sum(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "function"), OF_MATRICES, ids=[name for name, _ in OF_MATRICES])
def test_that_no_history_is_lost(name, function):
    x = td.asarray(np.eye(3) + 0.1, device="cpu").requires_grad_()
    found = results(name, function, x)
    assert name in LIKE or all(each.requires_grad or not each.size for each in found)


# --- complex numbers -----------------------------------------------------------------------------


def _of_adjoint(f, x):
    return f(x @ td.conj(x.mT) + td.eye(3, dtype=td.f64, device="cpu"))


def _sizes(f, x):
    """Vectors have any phase, on which nothing may depend."""
    found = f(x) if f is not td.linalg.eigh else _of_adjoint(f, x)
    return [td.abs(each) for each in found]


COMPLEX_CALLS = {
    "astype": lambda f, x: f(x, td.complex128),
    "full": lambda f, x: f((2, 3, 3), x),
    "imag": lambda f, x: f(x),
    "masked_fill": lambda f, x: f(x, td.real(x) > 1, x[0, 0]),
    "masked_select": lambda f, x: f(x, td.real(x) > 1),
    "scatter_reduce": lambda f, x: f(x, 0, places([0, 2, 0]), x, "sum"),
    "where": lambda f, x: f(td.real(x) > 1, x, x * x),
    **dict.fromkeys(("cholesky", "eigvalsh"), _of_adjoint),
    **dict.fromkeys(("eig", "eigh", "qr", "svd"), _sizes),
    # of layers
    "batch_norm": lambda f, x: f(x, None, None, training=True),
    "bilinear": lambda f, x: f(x, x, x[None]),
    "channel_shuffle": lambda f, x: f(x[None], 3),
    "conv1d": lambda f, x: f(x[None], x[None], x[0, :1]),
    "conv_transpose1d": lambda f, x: f(x[None], x[:, None], x[0, :1]),
    "cosine_similarity": lambda f, x: f(x, x.mT + 1),
    "fold": lambda f, x: f(x[:2].reshape(1, 2, 3)[:, :, :2], (1, 3), (1, 2)),
    "glu": lambda f, x: f(x[:, :2]),
    "interpolate": lambda f, x: f(x[None], 5),
    "layer_norm": lambda f, x: f(x, 3),
    "l1_loss": lambda f, x: f(x, x.mT + 1),
    "linear": lambda f, x: f(x, x, x[0]),
    "local_response_norm": lambda f, x: f(x[None], 2),
    "mse_loss": lambda f, x: f(x, x.mT),
    "pad": lambda f, x: f(x, (1, 1)),
    "pairwise_distance": lambda f, x: f(x, x.mT + 1),
    "pixel_shuffle": lambda f, x: f(x[:1, None], 1),
    "pixel_unshuffle": lambda f, x: f(x[:1, None], 1),
    "prelu": lambda f, x: f(x, x[0, :1]),
    "rms_norm": lambda f, x: f(x, 3),
    "scaled_dot_product_attention": lambda f, x: f(x, x, x),
    "softmax": lambda f, x: f(x),
    "threshold": lambda f, x: f(x, 1, 0),
    "triplet_margin_loss": lambda f, x: f(x, x.mT + 1, x * x),
    "unfold": lambda f, x: f(x[None, None], 2),
}
# What refuses complex numbers: they have no order, or the function is one of real numbers.
REAL_ALONE = """
argmax argmin argsort atan2 cbrt cdist ceil clip copysign erf erfc floor floor_divide gamma
greater greater_equal histc histogram hypot less less_equal lgamma max maximum
min minimum nextafter remainder searchsorted signbit sort topk trunc ihfft rfft
rfft2 rfftn batch_norm celu elu gelu hardsigmoid hardswish hardtanh layer_norm
leaky_relu local_response_norm log_softmax logsigmoid mish mse_loss prelu relu relu6 rms_norm
scaled_dot_product_attention selu softmax softmin softplus softshrink threshold
"""
LAYERS = """
batch_norm bilinear celu channel_shuffle conv1d conv_transpose1d cosine_similarity elu fold gelu glu
hardshrink hardsigmoid hardswish hardtanh interpolate l1_loss layer_norm leaky_relu linear
local_response_norm
log_softmax logsigmoid mish mse_loss normalize pad pairwise_distance pdist pixel_shuffle
pixel_unshuffle prelu relu relu6 rms_norm scaled_dot_product_attention selu silu softmax softmin
softplus softshrink softsign tanhshrink threshold triplet_margin_loss unfold
"""
COMPLEX = EVERY + OF_MATRICES + [(name, getattr(td.nn.functional, name)) for name in LAYERS.split()]


@pytest.mark.parametrize(("name", "function"), COMPLEX, ids=[name for name, _ in COMPLEX])
def test_gradients_of_complex_numbers(name, function, monkeypatch):
    """By every part of every element, beside differences; what takes real numbers says so."""
    monkeypatch.setattr(settings, "eager", True)  # few kernels, which many functions share
    rng = np.random.default_rng(2)

    def draw():
        return rng.uniform(0.5, 2, (3, 3)) + 1j * rng.uniform(-2, 2, (3, 3))

    array = draw() + 2 * np.eye(3)
    x = td.asarray(array, device="cpu").requires_grad_()
    if name in REAL_ALONE.split():
        with pytest.raises((td.errors.DtypeError, ValueError)):
            complex_results(name, function, x)
        return
    found = complex_results(name, function, x)
    if name in LIKE or not found:
        return
    try:
        (slope,) = td.autograd.grad(number(found), x)
    except AutogradError:
        assert name.startswith("unique"), "a derivative is lost"
        return
    for way in (draw(), draw()):
        with td.no_grad():
            ends = [
                number(complex_results(name, function, td.asarray(array + step * way))).item()
                for step in (_STEP, -_STEP)
            ]
        expected = (ends[0] - ends[1]) / (2 * _STEP)
        along = (slope.numpy().conj() * way).sum().real
        np.testing.assert_allclose(along, expected, rtol=1e-5, atol=1e-5)


def complex_results(name, function, x):
    return results(name, function, x, CALLS | COMPLEX_CALLS)
