"""Optimizers: the numbers of PyTorch's, and parameters that lie together."""

import copy

import numpy as np
import pytest

import treadle as td

try:
    import torch
except ImportError:
    torch = None

_SHAPES = [(3, 4), (5,), (), (7, 2), (1,)]
_OPTIONS = [
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"betas": (0.8, 0.95), "eps": 1e-6}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
]


_MORE = [
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.9, 0.99)}),
    ("ASGD", {"t0": 5, "lambd": 0.1}),
    ("Rprop", {}),
    ("Adafactor", {"weight_decay": 0.1}),
]


def _named(options):
    name, given = options
    return "-".join([name, *given])


def _parameters(rng, device, dtype=np.float32):
    return [
        td.asarray(rng.standard_normal(shape).astype(dtype), device=device).requires_grad_()
        for shape in _SHAPES
    ]


def _steps(rng, optimizer, parameters, other, others, count):
    """Take steps with the same gradients."""
    for _ in range(count):
        for mine, theirs in zip(parameters, others, strict=True):
            gradient = rng.standard_normal(mine.shape)
            mine.grad = td.asarray(gradient, dtype=mine.dtype)
            theirs.grad = torch.tensor(gradient).to(theirs.dtype)
        optimizer.step()
        other.step()


def _pairs(parameters, others):
    return zip(parameters, others, strict=True)


if torch is not None:

    def _theirs(parameters):
        return [torch.tensor(each.numpy()).requires_grad_() for each in parameters]

    @pytest.mark.parametrize("options", _OPTIONS, ids=_named)
    def test_that_steps_are_those_of_pytorch(rng, options):
        name, given = options
        with td.use_device("cpu"):
            parameters = _parameters(rng, "cpu")
            others = _theirs(parameters)
            optimizer = getattr(td.optim, name)(parameters, **given)
            other = getattr(torch.optim, name)(others, **given)
            _steps(rng, optimizer, parameters, other, others, 100)
            for mine, theirs in _pairs(parameters, others):
                np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), 1e-5, 1e-5)

    @pytest.mark.parametrize("options", _OPTIONS[1::2] + _MORE, ids=_named)
    def test_that_a_device_takes_the_same_steps(device, rng, options):
        name, given = options
        parameters = _parameters(rng, device)
        others = _theirs(parameters)
        optimizer = getattr(td.optim, name)(parameters, **given)
        other = getattr(torch.optim, name)(others, **given)
        _steps(rng, optimizer, parameters, other, others, 3)
        for mine, theirs in _pairs(parameters, others):
            np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), 1e-5, 1e-6)

    @pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64"])
    def test_that_other_dtypes_take_the_same_steps(rng, dtype):
        tolerance = {"bfloat16": 2**-7, "float16": 2**-10, "complex64": 1e-5}.get(dtype, 1e-12)
        with td.use_device("cpu"):
            start = [rng.standard_normal(shape) for shape in _SHAPES]
            parameters = [td.asarray(x, dtype=dtype).requires_grad_() for x in start]
            others = [torch.tensor(x).to(getattr(torch, dtype)).requires_grad_() for x in start]
            options = {"lr": 0.05, "eps": 1e-3}
            optimizer = td.optim.Adam(parameters, **options)
            # Theirs computes in float32 and rounds once where it is fused.
            other = torch.optim.Adam(others, fused=dtype != "complex64", **options)
            _steps(rng, optimizer, parameters, other, others, 4)
            for mine, theirs in _pairs(parameters, others):
                expected = theirs.detach().to(torch.complex128).numpy()
                found = mine.numpy().astype(np.complex128)
                np.testing.assert_allclose(found, expected, tolerance, tolerance)

    @pytest.mark.parametrize("options", _OPTIONS[1:], ids=_named)
    def test_that_states_move_both_ways(rng, options):
        name, given = options
        with td.use_device("cpu"):
            parameters = _parameters(rng, "cpu")
            others = _theirs(parameters)
            optimizer = getattr(td.optim, name)(parameters, **given)
            other = getattr(torch.optim, name)(others, **given)
            _steps(rng, optimizer, parameters, other, others, 2)
            mine, theirs = optimizer.state_dict(), other.state_dict()
            assert [set(each) for each in mine["state"].values()] == [
                set(each) for each in theirs["state"].values()
            ]
            assert set(mine["param_groups"][0]) == set(theirs["param_groups"][0])
            copied = {
                number: {key: torch.tensor(value.numpy()) for key, value in state.items()}
                for number, state in mine["state"].items()
            }
            fresh, anew = _parameters(rng, "cpu"), _theirs(parameters)
            for each, known in _pairs(fresh, others):
                each.data = td.asarray(known.detach().numpy(), copy=True)
            optimizer = getattr(td.optim, name)(fresh, lr=7)
            optimizer.load_state_dict(theirs)
            other = getattr(torch.optim, name)(anew, lr=7)
            other.load_state_dict({"state": copied, "param_groups": mine["param_groups"]})
            _steps(rng, optimizer, fresh, other, anew, 3)
            for one, two in _pairs(fresh, anew):
                np.testing.assert_allclose(one.numpy(), two.detach().numpy(), 1e-5, 1e-5)


def test_that_lion_is_that_of_the_paper(device, rng):
    x = td.asarray(rng.standard_normal(9).astype(np.float32)).requires_grad_()
    optimizer = td.optim.Lion([x], lr=0.1, weight_decay=0.1)
    expected, mean = x.numpy().astype(np.float64), np.zeros(9)
    for _ in range(4):
        gradient = rng.standard_normal(9).astype(np.float32)
        x.grad = td.asarray(gradient)
        optimizer.step()
        expected -= 0.1 * (np.sign(0.9 * mean + 0.1 * gradient) + 0.1 * expected)
        mean = 0.99 * mean + 0.01 * gradient
    np.testing.assert_allclose(x.numpy(), expected, 1e-5, 1e-6)


# --- where parameters lie ------------------------------------------------------------------------


def _sgd(*parameters, **options):
    return td.optim.SGD(list(parameters), lr=1.0, **options)


def test_that_backward_passes_write_where_steps_read(device):
    x, y = td.ones(3).requires_grad_(), td.full(2, 2.0).requires_grad_()
    seen = x.detach()[1:]
    optimizer = _sgd(x, y)
    ((x * x).sum() + (y * y).sum()).backward()
    buffers = {each._cell.value.whole_array.buffer for each in (x.grad.realize(), y.grad)}
    assert len(buffers) == 1
    x.grad *= 0.25
    optimizer.step()
    assert [x.tolist(), seen.tolist(), y.tolist()] == [[0.5] * 3, [0.5] * 2, [-2] * 2]
    optimizer.zero_grad()
    assert x.grad is None
    (3 * x).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0] * 3


def test_that_kept_gradients_stay(device):
    x, y = td.ones(3).requires_grad_(), td.ones(2).requires_grad_()
    optimizer = _sgd(x, y)
    kept = []
    for factor in (2, 3, 4):
        optimizer.zero_grad()
        (factor * x).sum().backward()
        kept.append(x.grad)
        lazy = x.grad * 10
        optimizer.step()
        assert lazy.tolist() == [10 * factor] * 3
    assert [each.tolist() for each in kept] == [[factor] * 3 for factor in (2, 3, 4)]
    assert x.tolist() == [1 - 2 - 3 - 4] * 3
    kept.clear()
    assert x.grad is x.grad
    assert not x._leaf.home._cell.tensors  # it is not in use: no copies


def test_that_parts_of_kept_gradients_stay(device):
    x, y = td.ones(4).requires_grad_(), td.ones(2).requires_grad_()
    optimizer = _sgd(x, y)
    (x * td.arange(4)).sum().backward()
    optimizer.step()
    whole = x.grad
    part, back, cut = whole[1:3], td.flip(whole, axis=0), whole.detach()
    whole[0] = 7.0  # they are one memory, and stay so
    for _ in range(2):
        optimizer.zero_grad()
        (9 * x.sum() + y.sum()).backward()
        optimizer.step()
        assert whole.tolist() == cut.tolist() == [7, 1, 2, 3]
        assert part.tolist() == [1, 2]
        assert back.tolist() == [3, 2, 1, 7]
    part[0] = 5.0
    assert whole.tolist() == [7, 5, 2, 3]
    assert x.grad.tolist() == [9] * 4
    x.grad = x.grad  # it is the same one
    assert x._leaf.gradient is x._leaf.home
    x.grad *= 2
    optimizer.step()
    assert x.tolist() == [1 - g - 9 - 9 - 18 for g in (0, 1, 2, 3)]


def test_that_parameters_without_gradients_stay(device):
    parameters = [td.ones(2).requires_grad_() for _ in range(4)]
    frozen = td.ones(2)
    optimizer = td.optim.Adam([*parameters, frozen], lr=0.5)
    for taken in ((0, 1, 2, 3), (0, 2, 3), (1,)):
        optimizer.zero_grad()
        for k in taken:
            parameters[k].grad = td.ones(2)
        optimizer.step()
    steps = [optimizer.state[each]["step"].item() for each in parameters]
    assert steps == [2, 2, 2, 2]
    for each in parameters:
        np.testing.assert_allclose(each.numpy(), [0, 0], atol=1e-5)
    assert frozen not in optimizer.state
    frozen.requires_grad_()  # thawed
    frozen.grad = td.ones(2)
    optimizer.step()
    np.testing.assert_allclose(frozen.numpy(), [0.5, 0.5], atol=1e-5)


def test_that_replaced_data_is_stepped(device):
    x, y = td.ones(3).requires_grad_(), td.ones(()).requires_grad_()
    optimizer = _sgd(x, y)
    before, other = x.detach(), td.full(3, 5.0)
    x.data = other
    with td.no_grad():
        y[...] = 7
    x.grad, y.grad = td.ones(3), td.ones(())
    optimizer.step()
    assert [x.tolist(), other.tolist(), before.tolist()] == [[4] * 3, [4] * 3, [1] * 3]
    assert y.item() == 6
    optimizer.step()
    assert x.tolist() == [3] * 3


def test_that_parameters_may_change_their_dtype(device):
    x, y = td.ones(3).requires_grad_(), td.ones(2).requires_grad_()
    optimizer = td.optim.SGD([x, y], lr=1.0, momentum=0.5)
    for dtype in ("float32", "float16", "float16"):
        for each in (x, y):
            each.data = each.detach().to(dtype)
        x.grad = td.ones(3, dtype=dtype)
        optimizer.step()
    assert x.tolist() == [1 - 1 - 1.5 - 1.75] * 3


def test_that_parts_and_shared_memory_are_stepped(device):
    whole = td.ones((4, 3))
    part, turned = whole[1].requires_grad_(), td.ones((2, 3)).T.requires_grad_()
    reshaped = td.ones(6).reshape(2, 3).requires_grad_()
    optimizer = _sgd(part, turned, reshaped, momentum=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (part.sum() + turned.sum() + reshaped.sum()).backward()
        optimizer.step()
    expected = 1 - 1 - 1.5
    assert whole.tolist() == [[1] * 3, [expected] * 3, [1] * 3, [1] * 3]
    assert turned.tolist() == [[expected] * 2] * 3
    assert reshaped.tolist() == [[expected] * 3] * 2


def test_that_two_optimizers_share_a_parameter(device):
    x = td.ones(3).requires_grad_()
    first, second = _sgd(x), td.optim.Lion([x], lr=0.5)
    for _ in range(2):
        first.zero_grad()
        x.sum().backward()
        first.step()
        second.step()
    assert x.tolist() == [1 - 2 - 1] * 3


def test_that_two_parameters_may_be_one_array(device):
    x = td.ones(3).requires_grad_()
    other = x.detach().requires_grad_()
    optimizer = _sgd(x, td.ones(2), other)
    for expected in (-2, -5):
        optimizer.zero_grad()
        (x + 2 * other).sum().backward()
        optimizer.step()
        assert x.tolist() == other.tolist() == [expected] * 3


def test_that_copies_go_on_by_themselves():
    with td.use_device("cpu"):
        x = td.nn.Parameter(td.ones(3))
        optimizer = td.optim.Adam([x], lr=0.25)
        x.grad = td.ones(3)
        optimizer.step()
        twin = copy.deepcopy(optimizer)
        (other,) = twin.param_groups[0]["params"]
        assert other is not x
        twin.param_groups[0]["lr"] = 0.5
        for each, its in ((x, optimizer), (other, twin)):
            each.grad = td.ones(3)
            its.step()
        np.testing.assert_allclose(x.numpy(), [0.5] * 3, 1e-5)
        np.testing.assert_allclose(other.numpy(), [0.25] * 3, 1e-5)
        assert twin.state[other]["step"].item() == 2


def test_that_large_groups_are_split(device, monkeypatch):
    monkeypatch.setattr("treadle.optim.flat_parameters.most_elements", lambda device, dtype: 40)
    parameters = [td.ones(15).requires_grad_() for _ in range(5)]
    optimizer = _sgd(*parameters)
    assert len(optimizer._flats[id(optimizer.param_groups[0])]) == 3
    for each in parameters:
        each.grad = td.ones(15)
    optimizer.step()
    assert all(each.tolist() == [0] * 15 for each in parameters)


def test_that_values_which_gradients_need_are_noticed():
    with td.use_device("cpu"):
        x = td.ones(3).requires_grad_()
        optimizer = _sgd(x)
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        with pytest.raises(td.errors.AutogradError, match="changed in place"):
            loss.backward()


def test_that_steps_are_skipped_and_scaled_on_the_device(device):
    x = td.ones(3).requires_grad_()
    optimizer = td.optim.Adam([x], lr=0.5)
    optimizer.grad_scale = td.full((), 4.0)
    for found, steps in ((1.0, 0), (0.0, 1)):
        x.grad = td.full(3, 8.0)
        optimizer.found_inf = td.full((1,), found)
        optimizer.step()
        assert optimizer.state[x]["step"].item() == steps
        np.testing.assert_allclose(x.numpy(), [1 - 0.5 * steps] * 3, 1e-5)
    np.testing.assert_allclose(optimizer.state[x]["exp_avg"].numpy(), [0.2] * 3, 1e-5)


# --- compiled steps ------------------------------------------------------------------------------


def _training(name, options):
    first = td.asarray(np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3)).requires_grad_()
    second = td.ones(3).requires_grad_()
    optimizer = getattr(td.optim, name)([{"params": [first]}, {"params": [second]}], **options)

    def step(x):
        optimizer.zero_grad()
        loss = ((x @ first * second) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, optimizer, [first, second]


@pytest.mark.parametrize("options", [_OPTIONS[1], _OPTIONS[5]], ids=_named)
def test_that_compiled_steps_are_those_of_python(options):
    with td.use_device("cpu"):
        plain, optimizer, parameters = _training(*options)
        traced, other, others = _training(*options)
        step = td.compile(traced)
        for k in range(8):
            x = td.full((2, 4), 0.5 + k).realize()
            if k == 3:
                for each in (optimizer, other):
                    each.param_groups[0]["lr"] *= 0.5
                    each.param_groups[1].update(lr=0.02)
            if k == 5:
                for each in (parameters[0], others[0]):
                    each.data = td.ones((4, 3))
            if k == 6:
                with td.no_grad():
                    for each in (parameters[1], others[1]):
                        each[...] = each * 2
            assert plain(x).item() == step(x).item()
            for mine, theirs in zip(parameters, others, strict=True):
                np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
                np.testing.assert_array_equal(mine.grad.numpy(), theirs.grad.numpy())
                for name, value in optimizer.state[mine].items():
                    assert value.tolist() == other.state[theirs][name].tolist()
        assert step.traces == 2  # the data of a variable was replaced


def test_that_compiled_steps_go_on_on_a_device(device):
    plain, _, parameters = _training("AdamW", {"lr": 0.1})
    traced, optimizer, others = _training("AdamW", {"lr": 0.1})
    step = td.compile(traced)
    for k in range(3):
        x = td.full((2, 4), 0.5 + k).realize()
        np.testing.assert_allclose(plain(x).item(), step(x).item(), 1e-5)
    for mine, theirs in zip(parameters, others, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), 1e-5)
        assert optimizer.state[theirs]["step"].item() == 3


# --- groups, state, what is refused --------------------------------------------------------------


def test_that_groups_have_their_own_options():
    with td.use_device("cpu"):
        x, y, z = (td.ones(2).requires_grad_() for _ in range(3))
        optimizer = td.optim.SGD([{"params": x, "lr": 0.5}, {"params": [y]}], lr=0.25)
        optimizer.add_param_group({"params": [z], "momentum": 0.5, "lr": 1.0})
        for _ in range(2):
            for each in (x, y, z):
                each.grad = td.ones(2)
            optimizer.step()
        assert [x.tolist(), y.tolist(), z.tolist()] == [[0, 0], [0.5, 0.5], [-1.5, -1.5]]
        assert "momentum: 0.5" in repr(optimizer)


def test_that_closures_and_hooks_are_called():
    with td.use_device("cpu"):
        x = td.ones(2).requires_grad_()
        optimizer, called = _sgd(x), []

        def closure():
            optimizer.zero_grad()
            loss = x.sum()
            loss.backward()
            return loss

        handle = optimizer.register_step_pre_hook(lambda *_: called.append("before"))
        optimizer.register_step_post_hook(lambda *_: called.append("after"))
        assert optimizer.step(closure).item() == 2
        handle.remove()
        optimizer.step(closure)
        assert called == ["before", "after", "after"]
        assert x.tolist() == [-1, -1]


def test_that_own_optimizers_are_possible():
    class Signs(td.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @td.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for each in group["params"]:
                    each[...] = each - group["lr"] * td.sign(each.grad)

    with td.use_device("cpu"):
        x = td.ones(2).requires_grad_()
        optimizer = Signs([("weight", x)], 0.5)
        (3 * x).sum().backward()
        optimizer.step()
        assert x.tolist() == [0.5, 0.5]
        assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight"]


def test_that_states_are_taken_over(device):
    parameters = [td.full(3, k + 1.0).requires_grad_() for k in range(3)]
    copies = [each.detach().clone().requires_grad_() for each in parameters]
    optimizer, other = td.optim.Adam(parameters, lr=0.1), td.optim.Adam(copies, lr=0.3)

    def take(steps):
        for one, params in steps:
            for k, each in enumerate(params[:2]):
                each.grad = td.full(3, 0.5 + k)
            one.step()

    take([(optimizer, parameters)] * 2)
    state = optimizer.state_dict()
    assert set(state["state"]) == {0, 1}
    other.load_state_dict(state)
    for mine, theirs in zip(parameters, copies, strict=True):
        theirs.data = mine.detach().clone()
    assert other.param_groups[0]["lr"] == 0.1
    assert other.state[copies[1]]["step"].item() == 2
    take([(optimizer, parameters), (other, copies)])
    for mine, theirs in zip(parameters, copies, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    assert state["state"][0]["step"].item() == 3  # the optimizer's own
    assert other.state[copies[0]]["step"].item() == 3


_UNFIT = {
    "another shape": (
        {0: {"step": 3, "exp_avg": np.zeros(3), "exp_avg_sq": np.zeros(3)},
         1: {"step": 3, "exp_avg": np.zeros((2, 2)), "exp_avg_sq": np.zeros(4)}},
        {"lr": 0.5}, r"parameter 1 \(bias\): exp_avg_sq is of shape \(4,\), .* \(2, 2\)$",
    ),
    "another kind": (
        {0: {"momentum_buffer": np.zeros(3)}}, {}, "parameter 0 .weight.: momentum_buffer is of an",
    ),
    "counts": ({1: {"step": np.zeros(2)}}, {}, r"parameter 1 .bias.: step is of shape \(2,\)"),
    "options": ({}, {"lr": -1.0}, "lr must be 0 or greater"),
}  # fmt: skip


@pytest.mark.parametrize("name", _UNFIT)
def test_that_a_state_that_does_not_fit_changes_nothing(name):
    states, options, text = _UNFIT[name]
    with td.use_device("cpu"):
        x, y = td.ones(3).requires_grad_(), td.ones((2, 2)).requires_grad_()
        optimizer = td.optim.Adam([("weight", x), ("bias", y)], lr=0.1)
        x.grad, y.grad = td.full(3, 2.0), td.full((2, 2), 2.0)
        optimizer.step()
        group = {**optimizer.state_dict()["param_groups"][0], **options}
        with pytest.raises(ValueError, match=text) as raised:
            optimizer.load_state_dict({"state": states, "param_groups": [group]})
        assert name == "options" or "and nothing was changed" in str(raised.value)
        assert optimizer.param_groups[0]["lr"] == 0.1
        assert optimizer.state[x]["step"].item() == 1
        np.testing.assert_allclose(optimizer.state[y]["exp_avg"].numpy(), 0.2, rtol=1e-6)


def test_that_states_of_switches_that_are_off_may_stay(device):
    x = td.ones(3).requires_grad_()
    kept = {"state": {0: {"momentum_buffer": td.ones(3)}}}
    for momentum in (0.0, 0.9):
        optimizer = td.optim.SGD([x], momentum=momentum)
        optimizer.load_state_dict({**kept, "param_groups": optimizer.state_dict()["param_groups"]})
        assert optimizer.state[x]["momentum_buffer"].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="sum is of another kind of optimizer"):
        td.optim.SGD([x]).load_state_dict(
            {"state": {0: {"sum": td.ones(3)}}, "param_groups": [{"params": [0]}]}
        )


def test_that_states_may_be_set(device):
    x, y = td.ones(3).requires_grad_(), td.ones(3).requires_grad_()
    optimizer = td.optim.Adagrad([x, y], lr=1.0, lr_decay=1.0)
    optimizer.state[x].update(sum=td.full(3, 3.0), step=td.asarray(1.0))
    x.grad, y.grad = td.ones(3), td.ones(3)
    optimizer.step()
    np.testing.assert_allclose(x.numpy(), [1 - 1 / 2 / 2] * 3, 1e-5)
    np.testing.assert_allclose(y.numpy(), [0] * 3, atol=1e-5)
    assert [optimizer.state[each]["step"].item() for each in (x, y)] == [2, 1]


_REFUSED = {
    "a negative rate": (ValueError, "lr must be", lambda x: td.optim.SGD([x], lr=-1)),
    "a decay of 1": (ValueError, r"betas\[1\]", lambda x: td.optim.Adam([x], betas=(0.9, 1.0))),
    "no number": (ValueError, "eps must be", lambda x: td.optim.Adam([x], eps=float("nan"))),
    "nesterov alone": (ValueError, "nesterov", lambda x: td.optim.SGD([x], nesterov=True)),
    "no parameters": (ValueError, "empty", lambda x: td.optim.SGD([])),
    "a tensor": (TypeError, "iterable", lambda x: td.optim.SGD(x)),
    "a set": (TypeError, "order", lambda x: td.optim.SGD([{"params": {x}}])),
    "one twice": (ValueError, "twice", lambda x: td.optim.SGD([x, x])),
    "one in two groups": (
        ValueError, "more than one", lambda x: td.optim.SGD([{"params": x}, {"params": [x]}])
    ),
    "no leaf": (ValueError, "non-leaf", lambda x: td.optim.SGD([x * 2])),
    "what is no tensor": (TypeError, "ndarray", lambda x: td.optim.SGD([x.detach().numpy()])),
    "half the names": (ValueError, "names", lambda x: td.optim.SGD([("a", x), td.ones(1)])),
    "an option": (
        ValueError, "differentiable", lambda x: td.optim.SGD([x], differentiable=True)
    ),
    "other groups": (
        ValueError, "2 parameter groups",
        lambda x: td.optim.SGD([x]).load_state_dict({"state": {}, "param_groups": [{}, {}]}),
    ),
    "other numbers": (
        ValueError, "3 parameters",
        lambda x: td.optim.SGD([x]).load_state_dict(
            {"state": {}, "param_groups": [{"params": [0, 1, 2]}]}
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _REFUSED)
def test_that_bad_arguments_are_refused(name):
    error, text, make = _REFUSED[name]
    with td.use_device("cpu"), pytest.raises(error, match=text):
        make(td.ones(2).requires_grad_())
