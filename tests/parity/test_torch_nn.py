"""`treadle.torch.nn` beside PyTorch: what modules do other than compute, packed sequences, and
weights that are computed."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import treadle.torch as mine
from tests.parity import comparing
from tests.parity.comparing import torch

if torch is None:
    pytest.skip("beside PyTorch", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _one_by_one():
    with comparing.one_by_one():
        yield


def both(shape: tuple[int, ...], rng: Any) -> tuple[Any, Any]:
    """The same numbers, which require gradients, for PyTorch and here."""
    values = rng.standard_normal(shape)
    return torch.tensor(values, requires_grad=True), mine.tensor(values, requires_grad=True)


def same_about(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), 1e-3, 1e-4)


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), 1e-6, 1e-8)


# --- modules -------------------------------------------------------------------------------------


def network(torch: Any) -> Any:
    """A module of either library."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.norm = nn.BatchNorm1d(4)
            self.rest = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2, bias=False)])
            self.by_name = nn.ModuleDict({"act": nn.ReLU()})
            self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))
            self.factors = nn.ParameterList([torch.zeros(2), nn.Parameter(torch.tensor(1.0))])
            self.named = nn.ParameterDict({"gain": torch.zeros(1)})
            self.register_buffer("shift", torch.tensor([0.5, 0.25]))
            self.register_buffer("scratch", torch.zeros(2), persistent=False)
            self.tied = self.first
            self.plain = torch.zeros(2)

        def forward(self, x: Any) -> Any:
            x = self.by_name["act"](self.norm(self.first(x)))
            for layer in self.rest:
                x = layer(x)
            return x * self.scale + self.shift + self.factors[0] * self.factors[1]

    return Block()


def test_that_modules_list_and_save_what_pytorch_lists():
    theirs, ours = network(torch), network(mine)
    for method in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        names = [[name for name, _ in getattr(each, method)()] for each in (ours, theirs)]
        assert names[0] == names[1], method
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    loaded = ours.load_state_dict(theirs.state_dict())
    assert str(loaded) == "<All keys matched successfully>"
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    found, wanted = ours(mine.tensor(x)), theirs(torch.tensor(x))
    same_about(found, wanted)
    found.sum().backward()
    wanted.sum().backward()
    for (name, one), (_, other) in zip(
        ours.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert (one.grad is None) == (other.grad is None), name
        if other.grad is not None:
            same_about(one.grad, other.grad)


def test_that_attributes_are_one_object_and_copies_are_others():
    module = network(mine)
    assert module.scale is module.scale is dict(module.named_parameters())["scale"]
    assert module.shift is module.get_buffer("shift")
    assert isinstance(module.first.weight, mine.nn.Parameter)
    assert not isinstance(module.shift, mine.nn.Parameter)
    module.scale.note = "kept"
    assert module.scale.note == "kept"
    other = copy.deepcopy(module)
    assert other.tied is other.first
    assert other.first is not module.first
    with mine.no_grad():
        other.scale.zero_()
    assert module.scale.tolist() == [2.0, 3.0]
    x = mine.zeros(2, 3)
    again = pickle.loads(pickle.dumps(module.first))
    assert again(x).tolist() == module.first(x).tolist()
    module.shift = mine.tensor([7.0, 7.0])
    assert module.state_dict()["shift"].tolist() == [7.0, 7.0]
    kept = module.first.weight
    assert module.to(mine.float64).first.weight is kept
    assert kept.dtype == mine.float64
    assert module.double().half().shift.dtype == mine.float16
    with pytest.raises(TypeError, match="Parameter"):
        module.scale = mine.zeros(2)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        module.nothing  # noqa: B018
    module.scale = None
    assert "scale" not in dict(module.named_parameters())
    del module.shift
    assert "shift" not in module.state_dict()


def test_state_dicts_that_do_not_fit():
    texts = []
    for library in (mine, torch):
        module = network(library)
        state = module.state_dict()
        del state["scale"]
        state["other.weight"] = library.zeros(1)
        with pytest.raises(RuntimeError) as error:
            module.load_state_dict(state)
        texts.append(str(error.value))
        keys = module.load_state_dict(state, strict=False)
        assert keys.missing_keys == ["scale"]
        assert keys.unexpected_keys == ["other.weight"]
        with pytest.raises(RuntimeError, match=r"first\.bias"):
            module.load_state_dict({"first.bias": library.zeros(9)}, strict=False)
    assert texts[0] == texts[1]


def test_hooks_are_called_as_by_pytorch():
    records = []
    for library in (torch, mine):
        record: list[Any] = []
        layer = library.nn.Linear(2, 2)
        with library.no_grad():
            layer.weight.fill_(1.0)
            layer.bias.fill_(0.5)
        layer.register_forward_pre_hook(lambda module, args, r=record: r.append(type(args)))
        handle = layer.register_forward_hook(lambda module, args, out: out * 2)
        layer.register_full_backward_hook(
            lambda module, given, left, r=record: r.append((given[0].tolist(), left[0].tolist()))
        )
        layer.register_state_dict_post_hook(lambda m, state, prefix, _: state.__delitem__("bias"))
        layer.register_load_state_dict_pre_hook(
            lambda m, state, prefix, *rest: state.setdefault(prefix + "bias", m.bias.detach())
        )
        x = library.tensor([[1.0, 2.0]], requires_grad=True)
        y = layer(x)
        y.sum().backward()
        handle.remove()
        state = layer.state_dict()
        layer.load_state_dict(state)
        record += [y.tolist(), x.grad.tolist(), layer(x).tolist(), list(state)]
        records.append(record)
    assert records[0] == records[1]


def test_own_layers_inside_of_treadle_s():
    class Doubling(mine.nn.TransformerEncoderLayer):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            assert isinstance(args[0], mine.Tensor)
            return super().forward(*args, **kwargs) * 2

    encoder = mine.nn.TransformerEncoder(Doubling(4, 2, 8, 0.0, activation=lambda x: x.relu()), 1)
    x = mine.ones(3, 1, 4)
    plain = mine.nn.TransformerEncoderLayer(4, 2, 8, 0.0)
    plain.load_state_dict(encoder.layers[0].state_dict())
    same(encoder(x), plain(x) * 2)

    class Ones(mine.nn.Linear):
        def reset_parameters(self) -> None:
            mine.nn.init.ones_(self.weight)
            mine.nn.init.zeros_(self.bias)

    assert Ones(2, 3)(mine.ones(2)).tolist() == [2.0, 2.0, 2.0]
    conv = mine.nn.Conv2d(1, 1, 1, bias=False)
    weight = conv.weight.detach() * 0 + 3
    del conv.weight
    conv.weight = weight  # computed, not learned
    assert conv(mine.ones(1, 1, 1, 1)).item() == 3.0
    assert not list(conv.parameters())


def test_lazy_layers():
    for name, shape in (("LazyLinear", (2, 5)), ("LazyBatchNorm1d", (2, 5)),
                        ("LazyConvTranspose1d", (2, 5, 4))):  # fmt: skip
        args = {"LazyLinear": (3,), "LazyConvTranspose1d": (3, 2)}.get(name, ())
        layer = getattr(mine.nn, name)(*args).double()
        found = layer(mine.ones(*shape, dtype=mine.float64))
        wanted = getattr(torch.nn, name)(*args).double()(torch.ones(*shape, dtype=torch.float64))
        assert found.shape == wanted.shape
        assert type(layer) is getattr(mine.nn, name[4:])


def test_classes_by_pytorchs_files():
    from treadle.torch.nn.modules.batchnorm import _BatchNorm
    from treadle.torch.nn.modules.utils import _pair

    assert isinstance(mine.nn.BatchNorm2d(1), _BatchNorm)
    assert _pair(3) == (3, 3)
    assert issubclass(mine.nn.Conv2d, mine.nn.modules.conv._ConvNd)
    for space, here in ((torch.nn, mine.nn), (torch.nn.init, mine.nn.init)):
        listed = {name for name in getattr(space, "__all__", ()) if not name.startswith("_")}
        lacks = {name for name in listed if not hasattr(here, name)}
        assert lacks <= {name.removeprefix("nn.") for name in mine.missing()}, lacks


def test_batch_norms_over_processes():
    def network(at):
        own = at.nn.Sequential(at.nn.Conv2d(3, 4, 3), at.nn.BatchNorm2d(4), at.nn.BatchNorm2d(4))
        return at.nn.Sequential(own, at.nn.Flatten(), at.nn.BatchNorm1d(64))

    theirs, ours = network(torch), network(mine)
    ours.load_state_dict({k: mine.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    before = [*ours.parameters()]
    ours = mine.nn.SyncBatchNorm.convert_sync_batchnorm(ours)
    theirs = torch.nn.SyncBatchNorm.convert_sync_batchnorm(theirs)
    assert [type(each).__name__ for each in ours.modules()] == [
        type(each).__name__ for each in theirs.modules()
    ]
    assert all(a is b for a, b in zip(before, ours.parameters(), strict=True))
    for _ in range(2):
        x = np.random.default_rng(8).normal(size=(5, 3, 6, 6)).astype(np.float32)
        found, expected = ours(mine.tensor(x)), theirs(torch.from_numpy(x))
        np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-3, atol=1e-4)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    converted = mine.nn.SyncBatchNorm.convert_sync_batchnorm(mine.nn.BatchNorm1d(2).eval())
    assert not converted.training


def test_initial_values():
    weight = mine.nn.Linear(300, 200).weight
    std = np.sqrt(2 / 300)
    assert mine.nn.init.kaiming_normal_(weight, nonlinearity="relu") is weight
    assert abs(weight.detach().numpy().std() / std - 1) < 0.05
    q = mine.nn.init.orthogonal_(mine.empty(4, 6)).numpy()
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-5)
    assert mine.nn.init._calculate_fan_in_and_fan_out(weight) == (300, 200)


def test_gradients_are_clipped():
    for norm in (2.0, float("inf")):
        grads = []
        for library in (mine, torch):
            x = library.nn.Parameter(library.tensor([3.0, 4.0, -1.0]))
            (x * x / 2).sum().backward()
            total = library.nn.utils.clip_grad_norm_([x], 1.0, norm)
            library.nn.utils.clip_grad_value_([x], 0.5)
            grads.append((total.item(), x.grad.tolist()))
        np.testing.assert_allclose(grads[0][1], grads[1][1], 1e-5)
        assert abs(grads[0][0] - grads[1][0]) < 1e-5


# --- packed sequences ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "layers", "bidirectional"), [("RNN", 1, True), ("LSTM", 2, False), ("GRU", 1, True)]
)
def test_packed_sequences(kind, layers, bidirectional):
    rng = np.random.default_rng()
    lengths = rng.integers(1, 6, 4)
    lengths[rng.integers(4)] = 5
    size = 3 if kind == "LSTM" else 0
    options = {"bidirectional": bidirectional, **({"proj_size": size} if size else {})}
    theirs = getattr(torch.nn, kind)(3, 4, layers, **options).double()
    ours = getattr(mine.nn, kind)(3, 4, layers, **options).double()
    ours.load_state_dict(theirs.state_dict())
    x, y = both((4, 5, 3), rng)
    one, other = (
        library.nn.utils.rnn.pack_padded_sequence(
            given, lengths.tolist(), batch_first=True, enforce_sorted=False
        )
        for library, given in ((torch, x), (mine, y))
    )
    same(other.data, one.data)
    count = layers * (2 if bidirectional else 1)
    states = [rng.standard_normal((count, 4, size or 4)), rng.standard_normal((count, 4, 4))]
    given = [tuple(each.tensor(s) for s in states) for each in (torch, mine)]
    if kind != "LSTM":
        given = [each[0] for each in given]
    for wanted_state, state in ((None, None), given):
        wanted, wanted_ends = theirs(one, wanted_state)
        found, ends = ours(other, state)
        assert isinstance(found, mine.nn.utils.rnn.PackedSequence)
        for each, expected in zip(
            comparing.leaves(ends), comparing.leaves(wanted_ends), strict=True
        ):
            same(each, expected)
        padded = [
            library.nn.utils.rnn.pad_packed_sequence(given, padding_value=7.0, total_length=6)
            for library, given in ((mine, found), (torch, wanted))
        ]
        same(padded[0][0], padded[1][0])
        assert padded[0][1].tolist() == lengths.tolist()
        x.grad = y.grad = None
        (padded[1][0] ** 2).sum().backward(retain_graph=True)
        (padded[0][0] ** 2).sum().backward(retain_graph=True)
        same(y.grad, x.grad)


def test_padding_and_what_does_not_fit():
    rows = [[1, 2, 3], [4], [5, 6]]
    for side in ("left", "right"):
        found, wanted = (
            library.nn.utils.rnn.pad_sequence(
                [library.tensor(row) for row in rows], True, 9, side
            ).tolist()
            for library in (mine, torch)
        )
        assert found == wanted
    rnn = mine.nn.utils.rnn
    packed = rnn.pack_sequence([mine.tensor(row) for row in rows], enforce_sorted=False)
    assert [each.tolist() for each in rnn.unpack_sequence(packed)] == rows
    for lengths, words in (([1, 2], "sorted"), ([2, 0], "greater than 0"), ([2], "equal")):
        with pytest.raises(RuntimeError, match=words):
            rnn.pack_padded_sequence(mine.zeros(2, 2, 1), lengths)


# --- computed weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("space", ["", "parametrizations"])
def test_normed_weights(norm, space):
    rng = np.random.default_rng()
    for kind, args, shape in (
        ("Linear", (5, 4), (3, 5)), ("ConvTranspose1d", (3, 4, 3), (2, 3, 5)),
    ):  # fmt: skip
        modules = []
        for library in (torch, mine):
            utils = getattr(library.nn.utils, space) if space else library.nn.utils
            modules.append(getattr(utils, norm)(getattr(library.nn, kind)(*args).double()))
        theirs, ours = modules
        assert list(ours.state_dict()) == list(theirs.state_dict())
        ours.load_state_dict(theirs.state_dict())
        x, y = both(shape, rng)
        for training in (True, False):
            wanted, found = theirs.train(training)(x), ours.train(training)(y)
            same(found, wanted)
        (wanted**2).sum().backward()
        (found**2).sum().backward()
        same(y.grad, x.grad)
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), 1e-5, 1e-7)
        for key, value in ours.state_dict().items():
            same(value, theirs.state_dict()[key])
        if space:
            assert mine.nn.utils.parametrize.is_parametrized(ours, "weight")
            same(copy.deepcopy(ours)(y), ours(y))
            mine.nn.utils.parametrize.remove_parametrizations(ours, "weight")
        else:
            getattr(mine.nn.utils, f"remove_{norm}")(ours)
        same(ours(y), found)
        assert type(ours) is getattr(mine.nn, kind)
        assert next(iter(ours.state_dict())) == "bias"


@pytest.mark.parametrize(("shape", "kind"), [((3, 3), "cayley"), ((4, 2), "householder")])
def test_orthogonal_weights(shape, kind):
    theirs, ours = torch.nn.Linear(*shape).double(), mine.nn.Linear(*shape).double()
    ours.load_state_dict(theirs.state_dict())
    for library, module in ((torch, theirs), (mine, ours)):
        library.nn.utils.parametrizations.orthogonal(module, orthogonal_map=kind)
    state = theirs.state_dict()
    state["parametrizations.weight.original"] += 0.1 * torch.randn(shape[::-1]).tril(-1)
    theirs.load_state_dict(state)
    ours.load_state_dict(state)
    x, y = both((2, shape[0]), np.random.default_rng())
    wanted, found = theirs(x), ours(y)
    same(found, wanted)
    (wanted**3).sum().backward()
    (found**3).sum().backward()
    same(y.grad, x.grad)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(one.grad, other.grad)


def test_parametrizations_of_ones_own():
    class Symmetric(mine.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    layer = mine.nn.Linear(3, 3)
    parametrize = mine.nn.utils.parametrize
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert mine.equal(layer.weight, layer.weight.T)
    wanted = mine.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    layer.weight = wanted
    same(layer.weight, wanted)
    layer(mine.ones(1, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist()[1][0] == 0
    with parametrize.cached():
        assert layer.weight is layer.weight
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    same(layer.weight, wanted.triu())


def test_a_batch_norm_put_into_a_convolution():
    conv, norm = mine.nn.Conv2d(2, 3, 3).eval(), mine.nn.BatchNorm2d(3).eval()
    norm.running_mean[:] = 0.3
    norm.running_var[:] = 2.0
    x = mine.randn(1, 2, 5, 5)
    found = mine.nn.utils.fuse_conv_bn_eval(conv, norm)(x)
    np.testing.assert_allclose(found.detach().numpy(), norm(conv(x)).detach().numpy(), 1e-4, 1e-5)


def test_rare_classes_in_groups():
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0).double()
    ours = mine.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0).double()
    ours.load_state_dict(theirs.state_dict())
    x, y = both((6, 8), np.random.default_rng())
    target = [0, 4, 5, 9, 10, 19]
    wanted, found = theirs(x, torch.tensor(target)), ours(y, mine.tensor(target))
    same(found.output, wanted.output)
    same(found.loss, wanted.loss)
    wanted.loss.backward()
    found.loss.backward()
    same(y.grad, x.grad)
    same(ours.log_prob(y), theirs.log_prob(x))
    assert ours.predict(y).tolist() == theirs.predict(x).tolist()


def test_that_what_is_unchanged_is_the_same_object():
    x = mine.tensor([-1.0, 2.0])
    F = mine.nn.functional
    assert mine.nn.Identity()(x) is x
    assert F.relu(x, inplace=True) is x
    assert F.relu_(x) is x
    assert mine.nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 2.0]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        F.softmax(x)
    assert "dim" in str(found[0].message)
