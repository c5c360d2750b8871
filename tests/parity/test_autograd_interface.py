"""`torch.autograd`, `torch.func` and checkpoints: the same calls under both libraries."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import treadle.torch as ours
from tests.parity.comparing import torch


def _numbers(lib: Any, values: Any) -> Any:
    return lib.tensor(values, dtype=lib.float64)


def _gradients(lib):
    x = _numbers(lib, [1.0, 2.0, 3.0]).requires_grad_()
    (first,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    batched = lib.autograd.grad(x * x, x, lib.eye(3, dtype=lib.float64), is_grads_batched=True)
    lib.autograd.backward([x.sum(), (x * 2).sum()])
    with pytest.raises(RuntimeError):
        lib.autograd.grad(x.sum(), _numbers(lib, [1.0]).requires_grad_())
    unused = _numbers(lib, [1.0]).requires_grad_()
    (nothing,) = lib.autograd.grad(x.sum(), unused, allow_unused=True)
    assert nothing is None
    assert lib.autograd.gradcheck(lambda a: a * a, (x,))
    assert lib.autograd.gradgradcheck(lambda a: a * a * a, (x,))
    return [first, second, *batched, x.grad]


def _functional(lib):
    f = lib.autograd.functional
    a, b = _numbers(lib, [1.0, 2.0]), _numbers(lib, [3.0, 4.0])
    found = [each for row in f.jacobian(lambda a, b: (a * b, a.sum()), (a, b)) for each in row]
    found += [f.jacobian(lambda a: a * a.sum(), a), f.hessian(lambda a: (a**3).sum(), a)]
    found += [each for row in f.hessian(lambda a, b: (a * a * b).sum(), (a, b)) for each in row]
    found += [*f.vjp(lambda a: a * a, a, b), *f.jvp(lambda a: a * a, a, b)]
    found += [*f.vhp(lambda a: (a**3).sum(), a, b), *f.hvp(lambda a: (a**3).sum(), a, b)]
    return found


def _functions(lib):
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, y=None):
            ctx.save_for_backward(x, y)
            ctx.k = k
            assert ctx.needs_input_grad[0]
            return x * k, x + 1

        @staticmethod
        def backward(ctx, g, h):
            _, y = ctx.saved_tensors
            assert y is None
            return g * ctx.k + h, None, None

    class Product(lib.autograd.Function):
        @staticmethod
        def forward(x, w):
            return x * w

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g * w, (g * x if ctx.needs_input_grad[1] else None)

    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = _numbers(lib, [1.0, 2.0]).requires_grad_()
    w = _numbers(lib, [3.0, 5.0]).requires_grad_()
    a, b = Scale.apply(x, 3.0)
    (a * a + b).sum().backward()
    found = [a, b, x.grad.clone()]
    Product.apply(x, w).sum().backward()
    found += [x.grad.clone(), w.grad]
    y = x * 1
    assert Doubled.apply(y) is y
    y.sum().backward()
    return [*found, y, x.grad]


def _transforms(lib):
    f = lib.func
    x = _numbers(lib, [[1.0, 2.0], [3.0, 4.0]])
    layer = lib.nn.Linear(2, 2).double()
    ones = {name: value.detach() * 0 + 1 for name, value in layer.named_parameters()}

    def loss(params, row):
        return f.functional_call(layer, params, (row,)).sum()

    output, back = f.vjp(lambda a: a * a, x)
    each = f.vmap(f.grad(loss), in_dims=(None, 0))(ones, x)
    states, _ = f.stack_module_state([lib.nn.Linear(2, 3) for _ in range(2)])
    assert states["weight"].shape == (2, 3, 2)
    assert states["weight"].requires_grad
    with pytest.raises(RuntimeError):
        f.functional_call(layer, {"other": x}, (x,), strict=True)
    return [
        f.grad(lambda a: (a * a).sum())(x), *f.grad_and_value(lambda a: (a * a).sum())(x),
        f.vmap(lambda a, b: (a * b).sum(), out_dims=0)(x, x), output, back(x)[0],
        *f.jvp(lambda a: a * a, (x,), (x,)), f.jacrev(lambda a: a * a)(x[0]),
        f.jacfwd(lambda a: a * a)(x[0]), f.hessian(lambda a: (a**3).sum())(x[0]),
        f.functional_call(layer, ones, (x,)), each["weight"], each["bias"],
        lib.vmap(lambda a: a.sum(), in_dims=1)(x),
    ]  # fmt: skip


def _hooks(lib):
    x = _numbers(lib, [1.0, 2.0]).requires_grad_()
    y = x * 2
    y.retain_grad()
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward()
    handle.remove()
    found, seen = [x.grad, y.grad], []
    z = _numbers(lib, [1.0]).requires_grad_()
    z.register_post_accumulate_grad_hook(lambda p: seen.append((p is z, p.grad.tolist())))
    (z * 3).sum().backward()
    assert seen == [(True, [3.0])]
    with pytest.raises(RuntimeError):
        _numbers(lib, [1.0]).register_hook(print)
    return found


def _modes(lib):
    x = _numbers(lib, [1.0, 2.0]).requires_grad_()

    @lib.no_grad()
    def without():
        return (x * 2).requires_grad

    @lib.inference_mode
    def inference():
        return lib.is_inference_mode_enabled()

    with lib.inference_mode():
        assert lib.is_inference_mode_enabled()
        assert not lib.is_grad_enabled()
    with lib.set_grad_enabled(False), lib.enable_grad():
        assert (x * 2).requires_grad
    with lib.autograd.detect_anomaly(), lib.autograd.set_detect_anomaly(False):
        pass
    assert not without()
    assert inference()
    checkpoints = import_module(f"{lib.__name__}.utils.checkpoint")
    checkpoints.checkpoint(
        lambda a, b: (a * a * b).sum(), x, _numbers(lib, [5.0, 6.0]), use_reentrant=False
    ).backward()
    layers = lib.nn.Sequential(lib.nn.Tanh(), lib.nn.Tanh(), lib.nn.Tanh())
    rest = checkpoints.checkpoint_sequential(layers, 2, x, use_reentrant=False)
    return [x.grad, rest]


_CASES = [_gradients, _functional, _functions, _transforms, _hooks, _modes]

if torch is not None:

    @pytest.mark.parametrize("case", _CASES, ids=lambda case: case.__name__.strip("_"))
    def test_same_derivatives(case):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted, found = case(torch), case(ours)
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert tuple(one.shape) == tuple(other.shape), number
            np.testing.assert_allclose(
                one.detach().numpy(), other.detach().numpy(), 1e-12, err_msg=str(number)
            )
