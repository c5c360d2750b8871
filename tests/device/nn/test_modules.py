"""`Module` and `Parameter`: attributes, what is in a module, copies, modes, casts."""

import copy
import pickle

import numpy as np
import pytest

import treadle as td
from treadle import nn
from treadle.core.errors import DtypeError


class Net(nn.Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.first = nn.Linear(3, 4, device=device)
        self.rest = nn.Sequential(nn.Linear(4, 2, device=device))
        self.scale = nn.Parameter(td.ones(2, device=device))
        self.register_buffer("shift", td.zeros(2, device=device))
        self.register_buffer("scratch", td.zeros(1, device=device), persistent=False)

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale + self.shift


NAMES = ["scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias"]


def test_that_a_step_learns(device, rng):
    model, loss = Net(device), nn.MSELoss()
    x = td.asarray(rng.standard_normal((8, 3)).astype(np.float32), device=device)
    y = td.asarray(rng.standard_normal((8, 2)).astype(np.float32), device=device)
    before = loss(model(x), y)
    before.backward()
    with td.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    assert loss(model(x), y).item() < before.item()


def test_what_is_in_a_module():
    model = Net()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [name for name, _ in model.named_parameters("net", recurse=False)] == ["net.scale"]
    assert [name for name, _ in model.named_buffers()] == ["shift", "scratch"]
    assert [name for name, _ in model.named_modules()] == ["", "first", "rest", "rest.0"]
    assert [name for name, _ in model.named_children()] == ["first", "rest"]
    assert model.get_submodule("rest.0") is model.rest[0]
    assert model.get_parameter("rest.0.bias") is model.rest[0].bias
    assert model.get_buffer("shift") is model.shift
    with pytest.raises(AttributeError, match="no module 'other'"):
        model.get_submodule("rest.other")
    with pytest.raises(AttributeError, match="no parameter 'weights'"):
        model.get_parameter("first.weights")


def test_that_what_is_shared_is_there_once():
    model = nn.Sequential(nn.Linear(2, 2, device="cpu"), nn.Linear(2, 2, device="cpu"))
    model[1].weight = model[0].weight
    model.append(model[0])
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len(list(model.named_parameters(remove_duplicate=False))) == 6
    assert len(model.state_dict()) == 6
    assert len(list(model.modules())) == 3


def test_parameters_are_tensors_with_a_mark():
    data = td.ones(3, device="cpu")
    parameter = nn.Parameter(data)
    assert type(parameter) is td.tensor.Tensor
    assert parameter.is_leaf
    for other in (data, parameter[:2], parameter.detach(), parameter + 1, np.ones(2), None):
        assert not isinstance(other, nn.Parameter)
    with td.no_grad():
        parameter += 1
    assert data.tolist() == [2.0, 2.0, 2.0]
    part = nn.Parameter(td.ones((2, 2), device="cpu").T)
    (part * td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")).sum().backward()
    assert part.grad.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_frozen_parameters_stay_parameters():
    model = Net().requires_grad_(False)
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert not model(td.ones((1, 3), device="cpu")).requires_grad
    assert not copy.deepcopy(model).scale.requires_grad
    model.first.weight = nn.Parameter(td.ones((4, 3), device="cpu"), requires_grad=False)
    model.requires_grad_()
    assert all(each.requires_grad for each in model.parameters())
    assert isinstance(nn.Parameter(td.arange(3, device="cpu"), False), nn.Parameter)
    with pytest.raises(DtypeError, match="cast it first"):
        nn.Parameter(td.arange(3, device="cpu"))


def test_attributes_become_what_is_assigned():
    model = Net()
    model.shift = td.ones(2, device="cpu")
    assert dict(model.named_buffers())["shift"] is model.shift
    model.first.bias = None
    assert model.first.bias is None
    assert [name for name, _ in model.first.named_parameters()] == ["weight"]
    model.first = nn.Parameter(td.ones(1, device="cpu"))
    assert "first" not in dict(model.named_modules())
    model.plain = 3
    model.plain = nn.Linear(1, 1, device="cpu")
    assert "plain" in dict(model.named_children())
    del model.plain, model.scratch
    with pytest.raises(AttributeError, match="Net has no attribute 'plain'"):
        _ = model.plain
    assert "scale" in dir(model)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("scale", np.ones(2), TypeError),
        ("rest", 3, TypeError),
        ("shift", 1.0, TypeError),
    ],
)
def test_attributes_that_cannot_become_that(name, value, error):
    model = Net()
    before = getattr(model, name)
    with pytest.raises(error, match=name):
        setattr(model, name, value)
    assert getattr(model, name) is before


def test_names_that_are_refused():
    model = Net()
    for name in ("", "a.b", "forward"):
        with pytest.raises(KeyError):
            model.register_buffer(name, None)
    with pytest.raises(TypeError, match=r"td\.nn\.Parameter"):
        model.register_parameter("x", td.ones(1, device="cpu"))

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1, device="cpu")

    with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
        Early()


def test_modes_and_application():
    model = Net()
    assert not model.eval().rest[0].training
    model.rest.train()
    assert (model.training, model.rest[0].training) == (False, True)
    order = []
    model.apply(lambda module: order.append(type(module).__name__))
    assert order == ["Linear", "Linear", "Sequential", "Net"]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_of_their_own(again, device):
    model = Net(device)
    model.rest[0].weight.requires_grad_(False)
    x = td.ones((2, 3), device=device)
    expected = model(x).tolist()
    made = again(model)
    assert made(x).tolist() == expected
    assert [name for name, _ in made.named_parameters()] == NAMES
    assert [each.requires_grad for each in made.parameters()] == [True, True, True, False, True]
    assert made.scratch.device is model.scratch.device
    assert list(made.state_dict()) == list(model.state_dict())
    with td.no_grad():
        made.first.weight[...] = 0
    assert model(x).tolist() == expected


def test_casting_keeps_the_parameters_themselves():
    model = Net()
    model.register_buffer("count", td.asarray(3, device="cpu"))
    model(td.ones((1, 3), device="cpu")).sum().backward()
    before = list(model.parameters())
    model.to(td.float64)
    assert all(x is y for x, y in zip(model.parameters(), before, strict=True))
    assert {x.dtype for x in model.parameters()} == {td.float64}
    assert model.scale.grad.dtype == td.float64
    assert model.count.dtype == td.int64
    x = td.ones((1, 3), dtype=td.float64, device="cpu")
    model(x).sum().backward()
    expected = 2 * model.rest[0].weight.numpy().sum(0)
    np.testing.assert_allclose(model.first.bias.grad.numpy(), expected, rtol=1e-6)
    assert model.half().shift.dtype == td.float16
    assert model.to(td.ones(1, device="cpu")).scale.dtype == td.float32
    with pytest.raises(DtypeError, match="floating"):
        model.to(td.int32)


def test_moving_to_another_device(device):
    model = Net()
    model.register_buffer("count", td.asarray(3, device="cpu"))
    model.to(device)
    assert {x.device for x in (*model.parameters(), *model.buffers())} == {device}
    model(td.ones((1, 3), device=device)).sum().backward()
    assert model.scale.grad.device is device
    assert model.cpu().scale.grad.device.id == "cpu"


def test_gradients_go_away():
    model = Net()
    model(td.ones((1, 3), device="cpu")).sum().backward()
    model.zero_grad(set_to_none=False)
    assert model.scale.grad.tolist() == [0.0, 0.0]
    model.zero_grad()
    assert model.scale.grad is None


def test_text():
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (rest): Sequential(\n"
        "    (0): Linear(in_features=4, out_features=2, bias=True)\n"
        "  )\n"
        ")"
    )


def test_that_a_module_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)
