"""Hooks around a module's forward, and in the backward pass through it."""

import numpy as np
import pytest

import treadle as td
from treadle import nn

try:
    import torch
except ImportError:
    torch = None


class Two(nn.Module):
    def forward(self, x, y, *, factor=1.0):
        return x * y * factor, x + y


def ones(value=1.0):
    return td.full(2, value, device="cpu")


def test_hooks_before_and_after():
    module, calls = Two(), []
    module.register_forward_pre_hook(lambda m, args: calls.append("second"))
    module.register_forward_pre_hook(lambda m, args: (args[0] * 2, args[1]), prepend=True)
    keywords = module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {**kwargs, "factor": 10.0}), with_kwargs=True
    )
    after = module.register_forward_hook(lambda m, args, out: out[0])
    assert module(ones(), ones(3.0)).tolist() == [60.0, 60.0]
    after.remove()
    after.remove()
    assert module(ones(), ones(3.0))[1].tolist() == [5.0, 5.0]
    with keywords:
        pass
    assert module(ones(), ones(3.0), factor=1.0)[0].tolist() == [6.0, 6.0]
    module.register_forward_hook(
        lambda m, args, kwargs, out: out[0] * kwargs["factor"], with_kwargs=True
    )
    assert module(ones(), ones(3.0), factor=2.0).tolist() == [24.0, 24.0]
    assert calls == ["second"] * 4


def test_a_hook_that_is_called_after_an_error():
    module, seen = Two(), []
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("never"))
    with pytest.raises(TypeError):
        module(ones())
    assert seen == [None]


def test_a_hook_that_is_always_called_is_called_once():
    module, seen = Two(), []

    def fails(module, args, out):
        seen.append("fails")
        raise ValueError("the first error")

    def fails_too(module, args, out):
        seen.append("fails too")
        raise KeyError("the second")

    module.register_forward_hook(lambda m, args, out: seen.append(len(out)), always_call=True)
    module.register_forward_hook(fails, always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append("never"))
    module.register_forward_hook(fails_too, always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append(out[0]), always_call=True)
    with (
        pytest.raises(ValueError, match="the first error"),
        pytest.warns(
            UserWarning, match=r"Two with always_call=True raised KeyError\('the second'\)"
        ),
    ):
        module(ones(), ones(3.0))
    assert seen[:-1] == [2, "fails", "fails too"]
    assert seen[-1].tolist() == [3.0, 3.0]


def test_backward_hooks_see_and_change_gradients(device):
    module = Two()
    seen = {}
    module.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 10, grads[1]))
    module.register_full_backward_hook(lambda m, given, results: seen.update(a=given, b=results))
    module.register_full_backward_hook(lambda m, given, results: (given[0] + 1, given[1]))
    x, y = (td.full(2, each, device=device).requires_grad_() for each in (3.0, 4.0))
    product, _ = module(x, y)
    product.sum().backward()
    assert [each.tolist() for each in seen["a"]] == [[40.0, 40.0], [30.0, 30.0]]
    assert seen["b"][0].tolist() == [10.0, 10.0]
    assert seen["b"][1] is None
    assert x.grad.tolist() == [41.0, 41.0]
    assert y.grad.tolist() == [30.0, 30.0]


def test_backward_hooks_without_gradients_of_inputs():
    layer, seen = nn.Linear(2, 2, device="cpu"), []
    layer.register_full_backward_hook(lambda m, given, results: seen.append((given, results)))
    layer(ones()).sum().backward()
    assert seen[0][0] == (None,)
    assert seen[0][1][0].tolist() == [1.0, 1.0]
    with td.no_grad():
        layer(ones())
    assert len(seen) == 1


def test_a_backward_hook_that_gives_too_few():
    module = Two()
    module.register_full_backward_hook(lambda m, given, results: given[0])
    total = module(ones().requires_grad_(), ones().requires_grad_())[0].sum()
    with pytest.raises(ValueError, match="1 gradients in place of 2"):
        total.backward()


if torch is not None:

    def test_that_pytorch_calls_backward_hooks_with_the_same():
        found = {}
        for name, library in (("ours", td), ("theirs", torch)):
            model = library.nn.Sequential(library.nn.Linear(2, 2, device="cpu"))
            model[0].register_full_backward_hook(
                lambda m, given, results, name=name: found.update({name: (given, results)})
            )
            with library.no_grad():
                model[0].weight[...] = 3.0
            model(library.ones(2, device="cpu").requires_grad_()).sum().backward()
        (given, results), (expected, theirs) = found["ours"], found["theirs"]
        np.testing.assert_array_equal(given[0].numpy(), expected[0].numpy())
        np.testing.assert_array_equal(results[0].numpy(), theirs[0].numpy())
