"""State dicts: keys, taking on values, and everything that is wrong at once."""

import numpy as np
import pytest

import treadle as td
from treadle import nn
from treadle.core.errors import StateDictError

try:
    import torch
except ImportError:
    torch = None


class Net(nn.Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.layer = nn.Linear(3, 2, device=device)
        self.register_buffer("seen", td.zeros(2, device=device))
        self.register_buffer("scratch", td.zeros(1, device=device), persistent=False)


def values(rng):
    return {
        "seen": rng.standard_normal(2),
        "layer.weight": rng.standard_normal((2, 3)).astype(np.float32),
        "layer.bias": td.asarray(rng.standard_normal(2).astype(np.float16), device="cpu"),
    }


def test_values_are_cast_and_moved(device, rng):
    model, given = Net(device), values(rng)
    before = dict(model.named_parameters())
    assert model.load_state_dict(given) == ([], [])
    found = model.state_dict()
    assert list(found) == ["seen", "layer.weight", "layer.bias"]
    for name, value in given.items():
        expected = value.numpy() if isinstance(value, td.tensor.Tensor) else value
        np.testing.assert_array_equal(found[name].numpy(), expected.astype(np.float32))
        assert found[name].device is device
    assert all(model.get_parameter(name) is each for name, each in before.items())
    assert not found["layer.weight"].requires_grad
    found["layer.bias"][0] = 7.0
    assert model.layer.bias[0].item() == 7.0
    assert model.state_dict(keep_vars=True, prefix="m.")["m.layer.bias"] is model.layer.bias


def test_that_all_that_is_wrong_is_listed_and_nothing_changed(rng):
    model, given = Net(), values(rng)
    before = {name: value.tolist() for name, value in model.state_dict().items()}
    given["layer.weight"] = np.ones((3, 2), np.float32)
    given["seen"] = "text"
    del given["layer.bias"]
    given["other"] = given["scratch"] = np.ones(1)
    with pytest.raises(StateDictError) as caught:
        model.load_state_dict(given)
    text = str(caught.value)
    for part in ("layer.bias", "other", "scratch", "(3, 2)", "(2, 3)", "seen: a str"):
        assert part in text
    assert {name: value.tolist() for name, value in model.state_dict().items()} == before
    with pytest.raises(StateDictError) as caught:
        model.load_state_dict(given, strict=False)
    assert "layer.bias" not in str(caught.value)
    assert "(3, 2)" in str(caught.value)
    with pytest.raises(StateDictError, match="complex"):
        model.load_state_dict({"seen": np.ones(2, np.complex64)}, strict=False)
    with pytest.raises(TypeError, match="maps names"):
        model.load_state_dict([1])


def test_what_fits_by_name(rng):
    model, given = Net(), values(rng)
    del given["seen"]
    given["other"] = np.ones(1)
    found = model.load_state_dict(given, strict=False)
    assert found.missing_keys == ["seen"]
    assert found.unexpected_keys == ["other"]
    np.testing.assert_array_equal(model.layer.weight.numpy(), given["layer.weight"])


def test_assigning(rng):
    model, given = Net(), values(rng)
    model.layer.bias.requires_grad_(False)
    model.load_state_dict(given, assign=True)
    assert model.layer.bias.dtype == td.float16
    assert model.seen.dtype == td.float64
    assert [each.requires_grad for each in model.parameters()] == [True, False]
    model.layer.bias.detach()[0] = 5.0
    assert given["layer.bias"][0].item() == 5.0


def test_hooks_stay_with_parameters(rng):
    layer = nn.Linear(2, 1, bias=False)
    handle = layer.weight.register_hook(lambda gradient: gradient * 10)
    seen = []
    after = layer.weight.register_post_accumulate_grad_hook(lambda weight: seen.append(weight))
    layer.to(td.float16)
    layer(td.ones(2, dtype=td.float16)).sum().backward()
    assert layer.weight.grad.tolist() == [[10, 10]]
    assert seen[0] is layer.weight
    with pytest.raises(StateDictError, match="weight: another parameter would be left out"):
        layer.load_state_dict({"weight": td.zeros((1, 2))}, assign=True)
    after.remove()
    layer.load_state_dict({"weight": td.zeros((1, 2))}, assign=True)
    layer(td.ones(2)).sum().backward()
    assert layer.weight.grad.tolist() == [[10, 10]]
    handle.remove()
    layer(td.ones(2)).sum().backward()
    assert layer.weight.grad.tolist() == [[11, 11]]
    assert len(seen) == 1


def test_state_that_is_no_tensor():
    class Counting(nn.Module):
        count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    model = nn.Sequential(Counting())
    model[0].count = 3
    other = nn.Sequential(Counting())
    other.load_state_dict(model.state_dict())
    assert other[0].count == 3
    with pytest.raises(StateDictError, match=r"0\._extra_state"):
        other.load_state_dict({})


if torch is not None:

    @pytest.mark.parametrize("kind", ["float32", "bfloat16"])
    def test_pytorch_checkpoints_go_both_ways(kind, device, rng):
        ours = nn.Sequential(nn.Linear(3, 2, device=device))
        theirs = torch.nn.Sequential(torch.nn.Linear(3, 2)).to(getattr(torch, kind))
        ours.load_state_dict(theirs.state_dict(keep_vars=True))
        for name, value in theirs.state_dict().items():
            np.testing.assert_array_equal(ours.state_dict()[name].numpy(), value.float().numpy())
        with td.no_grad():
            ours[0].weight *= 2
        theirs.load_state_dict(
            {name: torch.from_numpy(x.numpy()) for name, x in ours.state_dict().items()}
        )
        weight = theirs[0].weight.detach().float().numpy()
        np.testing.assert_array_equal(weight, ours[0].weight.numpy())
