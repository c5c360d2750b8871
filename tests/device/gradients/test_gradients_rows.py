"""Gradients of what works on rows: softmax, norms, cross-entropy, activations."""

import numpy as np
import pytest

import treadle as td
from tests.support.gradients import check_gradients
from treadle.core.errors import AutogradError

F = td.nn.functional

try:
    import torch
except ImportError:  # pragma: no cover
    torch = None


# Functions of each element, whose derivatives are smooth where none is 0; they share kernels.
_OF_ELEMENTS = [
    F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.mish,
    lambda x: F.softplus(x, 2.0, 3.0), F.logsigmoid, F.softsign, F.tanhshrink,
    lambda x: F.elu(x, 1.5), lambda x: F.celu(x, 1.5), F.selu, F.hardswish,
    F.leaky_relu, lambda x: F.leaky_relu(x, -0.5), F.sigmoid, F.relu, F.hardshrink, F.softshrink,
    F.relu6, F.hardtanh, F.hardsigmoid, lambda x: F.threshold(x, 0.1, 3.0),
]  # fmt: skip


def test_that_activations_have_gradients(rng):
    x = rng.standard_normal(3)
    check_gradients(
        lambda x: sum((i + 1) * f(x) for i, f in enumerate(_OF_ELEMENTS)), x, second=False
    )
    check_gradients(lambda x: F.silu(x) + F.elu(x) * F.gelu(x), x)
    gates = (F.glu, F.swiglu, F.geglu, F.reglu)
    check_gradients(lambda x: sum(gate(x) for gate in gates), rng.standard_normal(4), second=False)
    check_gradients(F.prelu, rng.standard_normal((1, 2, 2)), rng.standard_normal(2), second=False)


def test_that_rows_have_gradients(rng):
    def function(x):
        y = F.softmax(x, dim=1) + 2 * F.log_softmax(x, dim=1) + 3 * F.softmin(x, dim=1)
        return y + F.normalize(x) + td.logsumexp(x, axis=1, keepdims=True), td.logsumexp(x)

    check_gradients(function, rng.standard_normal((2, 2)), second=False)
    check_gradients(lambda x: F.softmax(x) * F.log_softmax(x), rng.standard_normal((2, 2)))


def test_that_random_functions_have_gradients(rng):
    def function(hard):
        def of(x):
            given = td.Generator(3)
            noisy = F.gumbel_softmax(x, 0.5, hard, generator=given)
            return noisy + F.rrelu(x, training=True, generator=given)

        return of

    x = rng.standard_normal((2, 3))
    check_gradients(function(False), x, second=False)
    soft, hard = (
        td.autograd.grad((function(hard)(leaf) * td.asarray(x, device="cpu")).sum(), leaf)[0]
        for hard in (False, True)
        for leaf in [td.asarray(x, device="cpu").requires_grad_()]
    )
    np.testing.assert_allclose(hard.numpy(), soft.numpy())


def test_that_norms_have_gradients(rng):
    x, w, b = rng.standard_normal((2, 3)), rng.standard_normal(3), rng.standard_normal(3)
    check_gradients(lambda x, w, b: F.layer_norm(x, 3, w, b), x, w, b)
    check_gradients(lambda x, w: F.rms_norm(x, 3, w), x, w, second=False)
    x, w, b = rng.standard_normal((1, 2, 3)), rng.standard_normal(2), rng.standard_normal(2)
    check_gradients(lambda x, w, b: F.group_norm(x, 1, w, b), x, w, b, second=False)
    check_gradients(lambda x, w, b: F.instance_norm(x, None, None, w, b), x, w, b, second=False)


def test_that_running_statistics_are_moved_and_differentiated_through(rng):
    x, w, b = rng.standard_normal((3, 2)), rng.standard_normal(2), rng.standard_normal(2)

    def function(training):
        def of(x, w, b):
            mean, var = td.zeros(2, dtype=td.float64, device="cpu"), td.ones(2, device="cpu")
            return F.batch_norm(x, mean, var, w, b, training)

        return of

    check_gradients(function(True), x, w, b)
    check_gradients(function(False), x, w, b, second=False)


_TARGETS = np.array([[0, -100]])


@pytest.mark.parametrize(("reduction", "smoothing"), [("mean", 0.3), ("none", 0.0)])
def test_that_cross_entropy_has_gradients(reduction, smoothing, rng):
    x, weight = rng.standard_normal((1, 3, 2)), rng.random(3)

    def function(x):
        return F.cross_entropy(
            x, td.asarray(_TARGETS, device="cpu"), td.asarray(weight, device="cpu"),
            reduction=reduction, label_smoothing=smoothing,
        )  # fmt: skip

    check_gradients(function, x)
    check_gradients(
        lambda x, goal: F.cross_entropy(x, goal, reduction=reduction, label_smoothing=smoothing),
        x, rng.random((1, 3, 2)), second=False,
    )  # fmt: skip


def test_that_weights_of_classes_are_refused(rng):
    x = td.asarray(rng.standard_normal((2, 3)), device="cpu").requires_grad_()
    weight = td.ones(3, dtype=td.float64, device="cpu").requires_grad_()
    loss = F.nll_loss(x, td.asarray([0, 1], device="cpu"), weight)
    with pytest.raises(AutogradError, match="weights of classes"):
        loss.backward()


if torch is not None:

    def _both(function, *arrays, **dtypes):
        """Gradients of a function of a library's functions and arrays, by ours and by PyTorch."""
        found = []
        for library, make in (
            (F, lambda x: td.asarray(x, device="cpu")),
            (torch.nn.functional, torch.tensor),
        ):
            leaves = [make(x).requires_grad_() for x in arrays]
            result = function(library, make, *leaves)
            weights = np.random.default_rng(3).standard_normal(tuple(result.shape))
            (result * make(weights.astype(arrays[0].dtype))).sum().backward()
            found.append([result.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)])
        for mine, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-6)

    _CORNERS = np.array(
        [-np.inf, -1000.0, -30.0, -6.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, 25.0,
         1000.0, np.inf, np.nan], np.float64,
    )  # fmt: skip
    _ACTIVATIONS = {
        "celu": (1.5,), "elu": (1.5,), "gelu": (), "hardshrink": (), "hardsigmoid": (),
        "hardswish": (), "hardtanh": (), "leaky_relu": (0.1,), "logsigmoid": (), "mish": (),
        "relu": (), "relu6": (), "selu": (), "silu": (), "softplus": (), "softshrink": (),
        "softsign": (), "tanhshrink": (), "threshold": (0.5, 2.0), "sigmoid": (), "tanh": (),
        "rrelu": (0.1, 0.3),
    }  # fmt: skip

    @pytest.mark.parametrize("name", _ACTIVATIONS)
    def test_that_activations_have_the_gradients_of_pytorch_at_corners(name):
        arguments = _ACTIVATIONS[name]
        x = _CORNERS[np.abs(_CORNERS) != np.inf] if name == "softsign" else _CORNERS
        _both(lambda f, make, x: getattr(f, name)(x, *arguments), x)

    def test_that_functions_in_place_have_the_gradients_of_pytorch(rng):
        x = rng.standard_normal((3, 4))
        for name in ("relu", "silu", "threshold_"):
            arguments = (0.1, 0.3) if name == "threshold_" else ()
            options = {} if name.endswith("_") else {"inplace": True}

            def function(f, make, x, name=name, arguments=arguments, options=options):
                y = x * 2
                getattr(f, name)(y, *arguments, **options)
                return y * y

            _both(function, x)

    def test_that_prelu_has_the_gradients_of_pytorch(rng):
        for shape in ((3, 4, 2), (3, 4)):
            x = rng.standard_normal(shape)
            _both(lambda f, make, x, w: f.prelu(x, w), x, rng.standard_normal(4))
            _both(lambda f, make, x, w: f.prelu(x, w), x, rng.standard_normal(1))
        _both(lambda f, make, x, w: f.prelu(x, w), rng.standard_normal(4), rng.standard_normal(1))

    @pytest.mark.parametrize("targets", [[1, 1, 1, 1], [-100, 0, 1, 2], [-100] * 4])
    @pytest.mark.parametrize("weights", [None, [1.0, 0.0, 1.0]])
    @pytest.mark.parametrize("reduction", ["mean", "none"])
    def test_that_losses_of_classes_have_the_gradients_of_pytorch(targets, weights, reduction, rng):
        x = rng.standard_normal((4, 3))
        targets = np.array(targets)
        with np.errstate(all="ignore"):
            # What is smoothed, divided by no weight at all: PyTorch has NaN there, and we infinity.
            no_weight = weights is not None and weights[1] == 0 and set(targets) == {1}
            for smoothing in (0.0, 0.2) if reduction == "mean" and not no_weight else (0.0,):

                def function(f, make, x, smoothing=smoothing):
                    return f.cross_entropy(
                        x, make(targets), None if weights is None else make(np.array(weights)),
                        reduction=reduction, label_smoothing=smoothing,
                    )  # fmt: skip

                _both(function, x)
            _both(
                lambda f, make, x: f.nll_loss(
                    x, make(targets), None if weights is None else make(np.array(weights)),
                    reduction=reduction,
                ),
                x,
            )  # fmt: skip

    def test_that_rows_without_scores_have_the_gradients_of_pytorch():
        x = np.array([[-np.inf, -np.inf], [0.0, -np.inf], [np.inf, 1.0]])
        _both(lambda f, make, x: f.softmax(x, -1), x)
        _both(lambda f, make, x: f.log_softmax(x, -1), x)
        _both(lambda f, make, x: (td if f is F else torch).logsumexp(x, -1), x)
        _both(lambda f, make, x: f.normalize(x, dim=1), np.array([[0.0, 0.0], [3.0, 4.0]]))

    def test_that_norms_of_constant_rows_have_the_gradients_of_pytorch(rng):
        x = np.concatenate([np.full((2, 4), 3.0), rng.standard_normal((2, 4))])
        w, b = rng.standard_normal(4), rng.standard_normal(4)
        _both(lambda f, make, x, w, b: f.layer_norm(x, (4,), w, b), x, w, b)
        _both(lambda f, make, x, w: f.rms_norm(x, (4,), w), x, w)
        _both(lambda f, make, x, w, b: f.group_norm(x, 2, w, b), x, w, b)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_that_devices_agree(device, dtype, rng):
    x, g = rng.standard_normal((2, 5, 96))
    w, b = rng.standard_normal((2, 96))
    targets = np.array([0, 5, -100, 95, 17], np.int32)
    functions = [
        lambda x, w, b: F.layer_norm(x, 96, w, b),
        lambda x, w, b: F.rms_norm(x, 96, w) + b,
        lambda x, w, b: F.softmax(x * w + b),
        lambda x, w, b: F.cross_entropy(
            x * w + b, td.asarray(targets, device=x.device), reduction="none"
        ),
    ]

    def gradients(function, at, kind):
        leaves = [
            td.asarray(td.asarray(each.astype(kind), device="cpu"), device=at).requires_grad_()
            for each in (x, w, b)
        ]
        y = function(*leaves)
        by = td.asarray(g[: y.shape[0]].astype(kind), device=at)
        loss = (y * (by if y.ndim == 2 else by[:, 0])).sum()
        return [each.numpy() for each in td.autograd.grad(loss, leaves)]

    for function in functions[:: 1 if dtype == "float32" else 3]:
        wanted = gradients(function, "cpu", "float64")
        close = 1e-4 if dtype == "float32" else 2e-2
        for mine, exact in zip(gradients(function, device, dtype), wanted, strict=True):
            assert np.abs(mine - exact).max() < close * max(np.abs(exact).max(), 1.0)


@pytest.mark.parametrize("name", ["max", "min", "infinite norm"])
def test_extremes_of_what_is_computed(device, rng, name):
    """All kernels see the same values: one that rounded a * b + c otherwise would find none that is
    equal to the maximum, and no gradient."""
    functions = {
        "max": (lambda x: x.max(axis=(0, 2), keepdims=True), lambda x: x),
        "min": (lambda x: x.min(axis=(0, 2), keepdims=True), lambda x: -x),
        "infinite norm": (lambda x: td.linalg.vector_norm(x, axis=1, ord=np.inf), np.abs),
    }
    function, size = functions[name]
    dtype = np.float64 if "float64" in device.features else np.float32
    a, b = rng.standard_normal((2, 7, 13)).astype(dtype)
    c = rng.standard_normal((5, 7, 13)).astype(dtype)
    x = c + a.astype(np.float64) * b
    sizes, axes = size(x), 1 if name == "infinite norm" else (0, 2)
    greatest = sizes.max(axis=axes, keepdims=True)
    weights = rng.standard_normal(greatest.shape).astype(dtype)
    slope = (sizes >= greatest) * weights * (np.sign(x) if name == "infinite norm" else 1)

    def loss(a, b, c):
        values = function(c + a * b)
        return (values * td.asarray(weights, device=device).reshape(values.shape)).sum()

    arrays = [td.asarray(each, device=device) for each in (a, b, c)]
    exact = [(slope * b).sum(0), (slope * a).sum(0), slope]

    def by_backward(*arrays):
        leaves = [each.detach().requires_grad_() for each in arrays]
        loss(*leaves).backward()
        return [each.grad for each in leaves]  # computed one by one, when they are read

    gradient = td.grad(loss, argnums=(0, 1, 2))
    for gradients in (by_backward, gradient, td.compile(gradient)):
        for mine, wanted in zip(gradients(*arrays), exact, strict=True):
            np.testing.assert_allclose(mine.numpy(), wanted, rtol=1e-5, atol=1e-6)
