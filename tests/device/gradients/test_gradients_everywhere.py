"""No public function loses a history in silence: it has a derivative, or is among the few that
may lack one."""

import importlib
import math
import pkgutil

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import AutogradError
from treadle.graph.history import derivatives
from treadle.graph.program import Reduce
from treadle.runtime import settings
from treadle.tensor.composites import composite
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
    "bucketize": lambda f, x: f(x, [1.0, 2.0]),
    "convolve": lambda f, x: f(x[0], x[1]),
    "digitize": lambda f, x: f(x, [1.0, 2.0]),
    "erfinv": lambda f, x: f(x / 5),
    "gradient": lambda f, x: f(x, axis=0),
    "interp": lambda f, x: f(x[0], x[1].sort(), x[2]),
    "isclose": lambda f, x: f(x, x.T),
    "kthvalue": lambda f, x: f(x, 2).values,
    "lerp": lambda f, x: f(x, x.T, x[0]),
    "nanpercentile": lambda f, x: f(x, 30, axis=0),
    "nanquantile": lambda f, x: f(x, 0.3, axis=0),
    "pad": lambda f, x: f(x, 1, "reflect"),
    "percentile": lambda f, x: f(x, 30, axis=0),
    "quantile": lambda f, x: f(x, 0.3, axis=0),
    "stft": lambda f, x: f(x.reshape(-1), 4),
    "trapezoid": lambda f, x: f(x, x[0]),
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
    "inner", "matmul", "vecdot", "kron", "solve",
}  # fmt: skip
# They take no tensors, or give none.
WITHOUT = {
    "CommandBatch", "Generator", "Tensor", "__array_namespace_info__", "arange", "can_cast",
    "compile", "elementwise", "empty", "explain", "eye", "fft", "finfo", "iinfo", "isdtype",
    "linalg", "linspace", "manual_seed", "newaxis", "ones", "random", "result_type", "zeros",
    "get_float32_matmul_precision", "set_float32_matmul_precision",
    "autocast", "is_autocast_enabled", "get_autocast_dtype", "allclose", "bartlett_window",
    "blackman_window", "hamming_window", "hann_window", "kaiser_window", "tril_indices",
    "triu_indices",
}  # fmt: skip
# What they give does not depend on the elements.
LIKE = {"empty_like", "fftfreq", "ones_like", "rfftfreq", "zeros_like", "histc"}
# Operations with floating results that may lack a derivative, and why. Backward refuses them.
WITHOUT_DERIVATIVE = {
    "unique_all": "which elements are kept changes in steps; PyTorch has no derivative either",
    "positive": "it is the operation `copy`, which has one",
}
ADD = "has no derivative: add a rule to {}, or a line with the reason to WITHOUT_DERIVATIVE here"


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


def test_that_elementwise_operations_have_derivatives():
    """Those that give floats or complex numbers."""
    floating = [
        name
        for name, rule in RULES.items()
        if rule.result != "bool" and rule.kinds & {"float", "complex"}
    ]
    lost = [name for name in floating if name not in (derivatives.keys() | WITHOUT_DERIVATIVE)]
    assert not lost, f"{lost} {ADD.format('RULES of autograd/rules/elementwise.py')}"


def test_that_reductions_have_derivatives():
    """Those that give one of their elements' kind."""
    steps = {Reduce.ANY, Reduce.ALL, Reduce.ARGMAX, Reduce.ARGMIN}  # of bools and places
    fused = {Reduce.EXP_SUM}  # made of others when kernels are planned
    lost = {f"reduce {kind.value}" for kind in set(Reduce) - steps - fused} - derivatives.keys()
    assert not lost, f"{lost} {ADD.format('NODES of autograd/rules/reductions.py')}"


def test_that_composite_functions_have_derivatives():
    code = composite(lambda: None).__code__
    found = set()
    for module in pkgutil.walk_packages(td.tensor.__path__, "treadle.tensor."):
        for value in vars(importlib.import_module(module.name)).values():
            while callable(value) and hasattr(value, "__wrapped__"):
                if getattr(value, "__code__", None) is code:
                    found.add(value.__name__)
                value = value.__wrapped__
    assert len(found) > 50
    lost = found - derivatives.keys()
    assert not lost, f"{lost} {ADD.format('the RULES of a file in autograd/rules')}"


def check_refusal(error):
    """Fail unless the operation that was refused may lack a derivative."""
    operation = str(error).partition(" has no derivative")[0]
    assert operation in WITHOUT_DERIVATIVE, f"{operation} {ADD.format('a file in autograd/rules')}"


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
    except AutogradError as error:
        check_refusal(error)
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
# What refuses complex numbers: they have no order, or the function is one of real numbers. Of the
# elementwise functions the table says it.
REAL_ALONE = """
argmax argmin argsort cdist clip histc histogram max min searchsorted sort topk ihfft rfft rfft2
rfftn batch_norm celu elu gelu hardsigmoid hardswish hardtanh layer_norm leaky_relu
local_response_norm log_softmax logsigmoid mish mse_loss prelu relu relu6 rms_norm
scaled_dot_product_attention selu softmax softmin softplus softshrink threshold
bucketize digamma digitize interp kthvalue median nanargmax nanargmin nanmax nanmedian nanmin
nanpercentile nanquantile percentile quantile
"""
REAL_ROWS = {
    name for name, rule in RULES.items() if "float" in rule.kinds and "complex" not in rule.kinds
}
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
    if name in REAL_ROWS or name in REAL_ALONE.split():
        with pytest.raises((td.errors.DtypeError, ValueError)):
            complex_results(name, function, x)
        return
    found = complex_results(name, function, x)
    if name in LIKE or not found:
        return
    try:
        (slope,) = td.autograd.grad(number(found), x)
    except AutogradError as error:
        check_refusal(error)
        return
    way = draw()
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
