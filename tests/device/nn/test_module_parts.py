"""Containers, modules with chance or a state, and what is done with all parameters."""

import copy
import math
import pickle

import numpy as np
import pytest

import treadle as td
from treadle import nn
from treadle.core.errors import ShapeError


def linear(*sizes):
    return nn.Linear(*(sizes or (2, 2)), device="cpu")


# --- containers ----------------------------------------------------------------------------------


def test_lists_of_modules():
    a, b, c, d = (linear() for _ in range(4))
    for made in (nn.ModuleList([a, b]), nn.Sequential(a, b)):
        made.append(c).insert(1, d)
        assert list(made) == [a, d, b, c]
        assert list(made[1:]) == [d, b, c]
        assert made[-1] is c
        made[0] = d
        del made[1]
        assert made.pop(1) is b
        assert list(made) == [d, c]
        assert [name for name, _ in made.named_children()] == ["0", "1"]
        assert list(made.extend([a])[1:]) == [c, a]
        with pytest.raises(IndexError, match="3 modules"):
            made[3]
        with pytest.raises(TypeError, match="int is not a module"):
            made.append(3)
    both = nn.ModuleList([a]) + nn.ModuleList([b])
    both += [c]
    assert list(both) == [a, b, c]
    assert next(iter(nn.Sequential({"first": a, "last": b}).state_dict())) == "first.weight"


def test_modules_and_parameters_by_names():
    modules = nn.ModuleDict({"a": linear()})
    modules.update([("b", linear(3, 3))])
    assert list(modules.keys()) == ["a", "b"]
    assert "b" in modules
    assert len(list(modules.parameters())) == 4
    assert modules.pop("b").in_features == 3
    assert len(modules) == 1
    parameters = nn.ParameterDict({"x": td.ones(2, device="cpu")})
    parameters["y"] = nn.Parameter(td.ones(3, device="cpu"))
    assert [name for name, _ in parameters.named_parameters()] == ["x", "y"]
    assert "of shape (3,)" in repr(parameters)
    listed = nn.ParameterList([parameters["x"]]).append(td.ones(1, device="cpu"))
    listed[1] = td.zeros(4, device="cpu")
    assert [x.shape for x in listed] == [(2,), (4,)]
    assert list(listed.state_dict()) == ["0", "1"]
    assert len(listed[1:]) == 1


# --- chance and state ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Dropout", "Dropout1d", "AlphaDropout", "RReLU"])
def test_that_chance_is_for_training(name):
    module = getattr(nn, name)()
    x = td.full((2, 50, 3), -1.0, device="cpu")
    assert len(np.unique(module(x).numpy())) > 1
    assert len(np.unique(module.eval()(x).numpy())) == 1
    with pytest.raises(ValueError, match="probability"):
        nn.Dropout(1.5)


def test_running_values_are_for_evaluation(device, rng):
    layer = nn.BatchNorm1d(2, momentum=None, device=device)
    batches = rng.standard_normal((3, 5, 2)).astype(np.float32)
    for batch in batches:
        layer(td.asarray(batch, device=device))
    assert layer.num_batches_tracked.item() == 3
    mean, variance = batches.mean(axis=(0, 1)), batches.var(axis=1, ddof=1).mean(axis=0)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-4, atol=1e-5)
    before = layer.running_var.tolist()
    x = td.asarray(batches[0], device=device)
    found = layer.eval()(x).numpy()
    expected = (batches[0] - mean) / np.sqrt(variance + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert layer.running_var.tolist() == before
    again = pickle.loads(pickle.dumps(layer))
    np.testing.assert_array_equal(again(x).numpy(), found)
    state = copy.deepcopy(layer.state_dict())
    del state["num_batches_tracked"]  # which PyTorch's older checkpoints lack
    layer.reset_running_stats()
    layer.load_state_dict(state)
    assert layer.running_var.tolist() == before
    with pytest.raises(ShapeError, match="2 or 3 axes"):
        layer(td.ones((1, 2, 3, 4), device=device))


def test_unpooling_undoes_pooling():
    pool, back = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    x = td.random.normal((1, 2, 5, 4), device="cpu")
    values, places = pool(x)
    found = back(values, places, output_size=x.shape)
    assert found.shape == x.shape
    assert found.sum().item() == pytest.approx(values.sum().item(), abs=1e-5)


def test_sizes_of_transposed_convolutions():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1, device="cpu")
    x = td.ones((1, 1, 4, 4), device="cpu")
    assert layer(x).shape[2:] == (7, 7)
    assert layer(x, output_size=(8, 7)).shape[2:] == (8, 7)
    with pytest.raises(ShapeError, match=r"from \[7, 7\] to \[8, 8\]"):
        layer(x, output_size=(9, 9))


def test_tables_given():
    layer = nn.Embedding.from_pretrained(np.eye(3, dtype=np.float32), padding_idx=0)
    assert not layer.weight.requires_grad
    assert layer(td.asarray([2, 0])).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert nn.Embedding(3, 2, padding_idx=-1, device="cpu").weight[2].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="not a row of a table of 3"):
        nn.Embedding(3, 2, padding_idx=3)


def test_settings_that_are_refused():
    for made, text in (
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "2 groups"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), "kernel_size is a number or 2"),
        (lambda: nn.Conv2d(1, 1, 3, stride=2, padding="same"), "stride of 1"),
        (lambda: nn.Conv1d(1, 1, 3, padding_mode="mirror"), "padding_mode is one of"),
        (lambda: nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect"), "zeros"),
        (lambda: nn.ZeroPad2d((1, 2)), "or 4 of them"),
        (lambda: nn.GroupNorm(2, 3), "2 groups"),
        (lambda: nn.MSELoss(reduction="all"), "MSELoss: reduction is one of"),
        (lambda: nn.TripletMarginLoss(margin=0.0), "greater than 0"),
    ):
        with pytest.raises(ValueError, match=text):
            made()


# --- all parameters ------------------------------------------------------------------------------


def with_gradients(device, *values):
    made = [nn.Parameter(td.zeros(np.shape(value), device=device)) for value in values]
    for parameter, value in zip(made, values, strict=True):
        parameter.grad = td.asarray(np.asarray(value, np.float32), device=device)
    return [*made, nn.Parameter(td.zeros(2, device=device))]


@pytest.mark.parametrize(
    ("p", "norm"), [(2, 13.0), (1, 19.0), (math.inf, 12.0), (3, (27 + 64 + 1728) ** (1 / 3))]
)
def test_clipping_by_norm(p, norm, device):
    parameters = with_gradients(device, [3.0, 0.0], [[-4.0], [12.0]])
    assert nn.utils.clip_grad_norm_(parameters, 1.0, p).item() == pytest.approx(norm, rel=1e-5)
    assert parameters[0].grad.tolist() == pytest.approx([3 / norm, 0.0], rel=1e-4)
    again = copy.copy(parameters[1].grad).tolist()
    nn.utils.clip_grad_norm_(iter(parameters), 5.0, p)
    assert parameters[1].grad.tolist() == again


def test_clipping_what_is_not_finite():
    parameters = with_gradients("cpu", [1.0, math.inf])
    with pytest.raises(RuntimeError, match="inf"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert parameters[0].grad.tolist() == [1.0, math.inf]
    assert nn.utils.clip_grad_norm_(parameters, 1.0).item() == math.inf
    assert nn.utils.get_total_norm([]).item() == 0


def test_clipping_by_value(device):
    parameters = with_gradients(device, [3.0, -0.5, -2.0])
    nn.utils.clip_grad_value_(parameters, 1)
    assert parameters[0].grad.tolist() == [1.0, -0.5, -1.0]


def test_parameters_as_a_vector():
    model = nn.Sequential(linear(2, 3), linear(3, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.requires_grad
    nn.utils.vector_to_parameters(vector * 2, model.parameters())
    again = nn.utils.parameters_to_vector(model.parameters())
    assert again.tolist() == (vector * 2).tolist()
    with pytest.raises(ShapeError, match="13 elements"):
        nn.utils.vector_to_parameters(vector[1:], model.parameters())
