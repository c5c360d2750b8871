"""Convolutions and transposed ones, beside PyTorch in float64."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F
from tests.support.poison import poisoned
from treadle.kernels import convolve
from treadle.kernels.device_code.convolution import Tile

try:
    import torch
except ImportError:
    torch = None


@pytest.fixture(autouse=True)
def poison(request):
    if "device" not in request.fixturenames:
        yield
        return
    with poisoned(request.getfixturevalue("device")):
        yield


class Drawn(NamedTuple):
    """Arguments of a convolution, or of a transposed one."""

    transposed: bool
    input: tuple[int, ...]
    weight: tuple[int, ...]
    biased: bool
    options: dict[str, Any]

    @property
    def name(self) -> str:
        return f"conv{'_transpose' * self.transposed}{len(self.weight) - 2}d"


def drawn(seed: int) -> Drawn:
    """Small odd shapes, any options."""
    draw = random.Random(seed)
    rank = draw.choice([1, 2, 2, 3])
    groups = draw.choice([1, 1, 2, 3])
    channels = [groups * draw.choice([1, 2, 3, 9, 17]) for _ in range(2)]
    size = [draw.choice([5, 7, 16, 33, 50] if rank < 3 else [3, 5, 8]) for _ in range(rank)]
    kernel = tuple(draw.choice([1, 2, 3, 5]) for _ in range(rank))
    options = {
        "stride": tuple(draw.choice([1, 1, 2, 3]) for _ in range(rank)),
        "padding": tuple(draw.choice([0, 1, 2]) for _ in range(rank)),
        "dilation": tuple(draw.choice([1, 1, 2, 3]) for _ in range(rank)),
        "groups": groups,
    }
    transposed = draw.random() < 0.4
    if transposed:
        more = zip(options["stride"], options["dilation"], strict=True)
        options["output_padding"] = tuple(draw.randrange(max(pair)) for pair in more)
        weight = (channels[0], channels[1] // groups, *kernel)
        size = [extent + 4 for extent in size]
    else:
        weight = (channels[1], channels[0] // groups, *kernel)
        reach = zip(size, kernel, options["dilation"], strict=True)
        size = [max(extent, (k - 1) * d + 1) for extent, k, d in reach]
    batch = draw.choice([(), (1,), (2,), (3,)])
    return Drawn(transposed, (*batch, channels[0], *size), weight, draw.random() < 0.5, options)


def operands(rng, case):
    outs = case.weight[1] * case.options["groups"] if case.transposed else case.weight[0]
    shapes = (case.input, case.weight, *[(outs,)] * case.biased)
    return [rng.standard_normal(shape) for shape in shapes]


def right(case, arrays):
    """The result in float64."""
    function = getattr(torch.nn.functional, case.name)
    return function(*map(torch.asarray, arrays), **case.options).numpy()


def check(found, wanted, tolerance):
    assert found.shape == wanted.shape
    values = found.to(td.float32).numpy() if found.dtype == td.bfloat16 else found.numpy()
    error = np.abs(values.astype(np.float64) - wanted).max(initial=0)
    assert error <= tolerance * max(np.abs(wanted).max(initial=0), 1)


TOLERANCES = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3, "float64": 1e-14}

if torch is not None:

    @pytest.mark.parametrize("seed", range(24))
    def test_drawn(device, rng, seed):
        case = drawn(seed)
        arrays = [array.astype(np.float32) for array in operands(rng, case)]
        found = getattr(F, case.name)(*map(td.asarray, arrays), **case.options)
        check(found, right(case, [a.astype(np.float64) for a in arrays]), 2e-6)

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_dtypes(device, rng, dtype):
        if dtype == "float64" and "float64" not in device.features:
            with pytest.raises(td.errors.DtypeError, match="float64"):
                td.zeros(3, dtype=dtype)
            return
        for case in (
            Drawn(False, (2, 40, 9, 17), (5, 40, 3, 3), True, {"padding": 1, "groups": 1}),
            Drawn(True, (2, 40, 9, 17), (40, 5, 3, 3), True, {"padding": 1, "groups": 1}),
        ):
            numpys = td.bfloat16.numpy if dtype == "bfloat16" else dtype
            arrays = [array.astype(numpys) for array in operands(rng, case)]
            tensors = [td.asarray(a.astype(np.float32)).to(dtype) for a in arrays]
            if dtype == "float64":
                tensors = list(map(td.asarray, arrays))
            found = getattr(F, case.name)(*tensors, **case.options)
            assert found.dtype == dtype
            wanted = right(case, [array.astype(np.float64) for array in arrays])
            check(found, wanted, TOLERANCES[dtype])

    def test_more_channels_than_a_slab_has(device, rng):
        """Sums are made in parts, of which those of narrow floats stay wide."""
        case = Drawn(False, (1, 350, 9, 20), (3, 350, 3, 3), True, {"padding": 1, "groups": 1})
        for dtype, tolerance in (("float32", 4e-6), ("float16", 1e-3)):
            arrays = [array.astype(dtype) for array in operands(rng, case)]
            found = F.conv2d(*map(td.asarray, arrays), padding=1)
            check(found, right(case, [array.astype(np.float64) for array in arrays]), tolerance)

    def test_one_place_or_all(device, rng):
        """What is a product of matrices."""
        for dtype, tolerance in (("float32", 2e-6), ("float16", 1e-3)):
            for shape, kernel, bias in (((2, 5, 3, 7), (1, 1), 1), ((2, 5, 3, 4), (3, 4), 0)):
                case = Drawn(False, shape, (3, 5, *kernel), bool(bias), {"groups": 1})
                arrays = [array.astype(dtype) for array in operands(rng, case)]
                found = F.conv2d(*map(td.asarray, arrays))
                check(found, right(case, [a.astype(np.float64) for a in arrays]), tolerance)

    def test_integers(device, rng):
        x = rng.integers(-99, 99, (2, 3, 9, 20)).astype(np.int32)
        weight = rng.integers(-99, 99, (4, 3, 2, 3)).astype(np.int32)
        found = F.conv2d(td.asarray(x), td.asarray(weight), padding=(0, 2))
        assert found.dtype == td.int32
        wanted = torch.conv2d(
            torch.asarray(x).double(), torch.asarray(weight).double(), padding=(0, 2)
        )
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())

    def test_strided_operands(device, rng):
        """Views are convolved as what they show."""
        base = rng.standard_normal((20, 2, 9, 12)).astype(np.float32)
        weight = rng.standard_normal((3, 3, 9, 4)).astype(np.float32)
        x = td.asarray(base).permute_dims((1, 2, 0, 3))[:, ::-2, 3:, 1::2]
        w = td.asarray(weight).permute_dims((3, 2, 0, 1))[:, :5]
        seen = base.transpose(1, 2, 0, 3)[:, ::-2, 3:, 1::2], weight.transpose(3, 2, 0, 1)[:, :5]
        wanted = torch.conv2d(*[torch.asarray(array.copy()).double() for array in seen])
        check(F.conv2d(x, w), wanted.numpy(), 2e-6)
        ones = td.ones(1).broadcast_to((4,))
        check(F.conv2d(x + 0, w * 1, ones) - 1, wanted.numpy(), 2e-6)

    @pytest.mark.filterwarnings("ignore:Using padding")  # of PyTorch, which copies
    @pytest.mark.parametrize("kernel", [1, 2, 3, 4])
    def test_same_padding(device, rng, kernel):
        x = rng.standard_normal((1, 2, 7, 19)).astype(np.float32)
        weight = rng.standard_normal((2, 2, kernel, 2)).astype(np.float32)
        for padding in ("same", "valid"):
            found = F.conv2d(td.asarray(x), td.asarray(weight), padding=padding, dilation=(1, 3))
            wanted = torch.conv2d(
                torch.asarray(x).double(), torch.asarray(weight).double(), padding=padding,
                dilation=(1, 3),
            )  # fmt: skip
            check(found, wanted.numpy(), 2e-6)

    @pytest.mark.parametrize("copies", [1, 2])
    @pytest.mark.parametrize("channels", [3, 20])
    def test_a_tile_of_large_gpus(device, rng, monkeypatch, channels, copies):
        """Copies in shared memory, with channels joined with taps or not."""
        monkeypatch.setattr(convolve, "tile_for", lambda *_: Tile(32, 32, 8, 4, 4, copies))
        case = Drawn(False, (1, channels, 9, 9), (33, channels, 3, 2), True, {"stride": 2})
        arrays = [array.astype(np.float32) for array in operands(rng, case)]
        found = F.conv2d(*map(td.asarray, arrays), stride=2)
        check(found, right(case, [array.astype(np.float64) for array in arrays]), 2e-6)

    @pytest.mark.parametrize("tile", [None, Tile(32, 32, 8, 4, 4)], ids=["own", "large"])
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_gradient_of_weights(device, rng, monkeypatch, seed, tile):
        """What the reverse pass calls, in the kernel library."""
        if tile is not None:
            monkeypatch.setattr(convolve, "tile_for", lambda *_: tile)
        options = [
            {"padding": (1, 0), "stride": (2, 1), "dilation": (1, 2), "groups": 2},
            {"padding": (2,), "stride": (3,), "dilation": (1,), "groups": 1},
            {"padding": (1, 1), "stride": (1, 1), "dilation": (1, 1), "groups": 1},
        ][seed]
        shapes = [
            ((2, 6, 9, 8), (4, 3, 3, 2)),
            ((3, 2, 50), (9, 2, 4)),
            ((2, 5, 7, 20), (17, 5, 3, 3)),
        ]
        x, weight = [rng.standard_normal(shape).astype(np.float32) for shape in shapes[seed]]
        wide = torch.asarray(weight).double().requires_grad_()
        made = getattr(torch, f"conv{len(options['stride'])}d")(
            torch.asarray(x).double(), wide, None, **options
        )
        gradient = rng.standard_normal(made.shape).astype(np.float32)
        made.backward(torch.asarray(gradient).double())
        order = [options[name] for name in ("stride", "padding", "dilation", "groups")]
        operands = [td.asarray(array).realize()._array for array in (x, gradient)]
        found = convolve.weight_gradient(*operands, *order, weight.shape[2:])
        wanted = wide.grad.numpy()
        assert np.abs(found.to_host() - wanted).max() <= 3e-6 * np.abs(wanted).max()

    @pytest.mark.parametrize("dtype", ["float32", "float16"])
    @pytest.mark.parametrize("case", range(5))
    def test_gradients_of_more_weights(device, rng, case, dtype):
        """Several spans and tiles, lines of one place, gaps along three axes, many channels."""
        shape, weights, stride, padding, dilation = [
            ((3, 2, 40, 41), (10, 2, 3, 3), (1, 1), (1, 1), (1, 1)),
            ((2, 3, 5, 6, 7), (9, 3, 2, 3, 2), (1, 2, 3), (1, 0, 2), (1, 2, 1)),
            ((2, 17, 1, 1), (40, 17, 1, 1), (1, 1), (0, 0), (1, 1)),
            ((1, 50, 6, 6), (3, 50, 3, 3), (1, 1), (0, 1), (1, 1)),
            ((2, 19, 701), (5, 19, 4), (2,), (3,), (3,)),
        ][case]
        x = rng.standard_normal(shape).astype(dtype)
        wide = torch.zeros(weights, dtype=torch.float64, requires_grad=True)
        made = getattr(torch, f"conv{len(stride)}d")(
            torch.asarray(x).double(), wide, None, stride, padding, dilation
        )
        gradient = rng.standard_normal(made.shape).astype(dtype)
        made.backward(torch.asarray(gradient).double())
        a, b = (td.asarray(array).realize()._array for array in (x, gradient))
        order = stride, padding, dilation, 1, weights[2:]
        found = convolve.weight_gradient(a, b, *order).to_host().astype(np.float64)
        again = convolve.weight_gradient(a, b, *order).to_host()
        bound = {"float32": 3e-6, "float16": 1e-3}[dtype]
        wanted = wide.grad.numpy()
        assert np.abs(found - wanted).max() <= bound * np.abs(wanted).max()
        np.testing.assert_array_equal(again, found)


def test_special_values_stay_in_their_windows(device):
    x = np.zeros((1, 1, 3, 40), np.float32)
    x[0, 0, 1, [5, 20]] = np.nan, np.inf
    found = F.conv2d(td.asarray(x), td.ones((1, 1, 3, 3)), padding=1).numpy()[0, 0, 1]
    wanted = np.zeros(40)
    wanted[4:7], wanted[19:22] = np.nan, np.inf
    np.testing.assert_array_equal(found, wanted)


def test_nothing_to_convolve(device):
    assert F.conv2d(td.zeros((0, 3, 5, 5)), td.zeros((2, 3, 3, 3))).shape == (0, 2, 3, 3)
    assert F.conv_transpose1d(td.zeros((0, 3, 5)), td.zeros((3, 2, 3))).shape == (0, 2, 7)
    found = F.conv1d(td.zeros((1, 0, 5)), td.zeros((2, 0, 3)), td.asarray([1.0, 2.0]))
    assert found.tolist() == [[[1.0] * 3, [2.0] * 3]]


def test_a_bias_where_no_tap_reaches(device):
    found = F.conv_transpose1d(td.ones((1, 1, 2)), td.ones((1, 1, 1)), td.ones(1), stride=3)
    assert found.tolist() == [[[2, 1, 1, 2]]]


def test_the_order_of_arguments(device):
    x, w, b = td.ones((1, 2, 9)), td.ones((2, 1, 3)), td.zeros(2)
    assert F.conv1d(x, w, b, 2, 3, 2, 2).shape == (1, 2, 6)
    assert F.conv_transpose1d(x, w, b, 3, 2, 1, 2, 2).shape == (1, 2, 26)


REFUSED = [
    (lambda x, w: F.conv2d(x, td.ones((2, 4, 3, 3))), r"\(2, 4, 3, 3\).*\(1, 3, 5, 5\)"),
    (lambda x, w: F.conv2d(x, td.ones((2, 3, 6, 3))), r"\(6, 3\).*larger.*\(1, 3, 5, 5\)"),
    (lambda x, w: F.conv2d(x, w, dilation=3), r"\(3, 3\).*\(7, 7\).*larger"),
    (lambda x, w: F.conv2d(x, w, padding=-1), "padding must not be negative"),
    (lambda x, w: F.conv2d(x, w, padding="full"), "'full'"),
    (lambda x, w: F.conv2d(x, w, padding="same", stride=2), "stride of 1"),
    (lambda x, w: F.conv2d(x, w, stride=0), "stride must be positive"),
    (lambda x, w: F.conv2d(x, w, groups=0), "groups must be positive"),
    (lambda x, w: F.conv2d(x, w, stride=(1, 2, 3)), r"stride=\(1, 2, 3\)"),
    (lambda x, w: F.conv2d(x, w, td.ones(3)), r"bias has shape \(3,\), not \(2,\)"),
    (lambda x, w: F.conv2d(x, td.ones((3, 1, 2, 2)), groups=3, dilation=(1, 0)), "dilation"),
    (lambda x, w: F.conv2d(x, td.ones((4, 1, 2, 2)), groups=3), r"4 output channels.*3 groups"),
    (lambda x, w: F.conv2d(x[0], w[:, :2]), r"an input of shape \(3, 5, 5\) has 3"),
    (lambda x, w: F.conv_transpose2d(x[0], w), r"an input of shape \(3, 5, 5\) has 3"),
    (lambda x, w: F.conv2d(x[0], td.ones((2, 3, 6, 3))), r"the input of shape \(3, 5, 5\)"),
    (lambda x, w: F.conv2d(x, w[:0]), r"\(0, 3, 3, 3\) have no output channels"),
    (lambda x, w: F.conv2d(x[0, 0], w), r"\(5, 5\) and \(2, 3, 3, 3\)"),
    (lambda x, w: F.conv1d(x, w), r"\(1, 3, 5, 5\) and \(2, 3, 3, 3\)"),
    (lambda x, w: F.conv2d(x, td.ones((2, 3, 0, 1))), "without elements"),
    (lambda x, w: F.conv_transpose2d(x, w), r"\(2, 3, 3, 3\).*\(1, 3, 5, 5\)"),
    (lambda x, w: F.conv_transpose2d(x[:, :2], w, output_padding=1), "output_padding"),
    (lambda x, w: F.conv_transpose2d(x[:, :2], w, padding=4), r"\(-1, -1\).*\(1, 2, 5, 5\)"),
    (lambda x, w: F.conv_transpose2d(x[:, :2, :0], w), "has no elements to spread"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case):
    function, message = REFUSED[case]
    with td.use_device("cpu"):
        x, w = td.ones((1, 3, 5, 5)), td.ones((2, 3, 3, 3))
        with pytest.raises(ValueError, match=message):
            function(x, w)


def test_dtypes_and_types_that_are_refused():
    with td.use_device("cpu"):
        x, w = td.ones((1, 3, 5)), td.ones((2, 3, 3))
        with pytest.raises(td.errors.DtypeError, match="bool"):
            F.conv1d(x > 0, w > 0)
        with pytest.raises(TypeError, match="weight is a tensor"):
            F.conv1d(w, 1.0)
        with pytest.raises(TypeError, match="stride is an integer"):
            F.conv1d(td.ones((1, 3, 5)), w, stride=1.5)
        for groups in (1.0, True):
            with pytest.raises(TypeError, match="groups is an integer"):
                F.conv1d(td.ones((1, 3, 5)), w, groups=groups)


def test_a_stride_beyond_the_input(device):
    found = F.conv2d(td.ones((1, 2, 4, 5)), td.ones((3, 2, 3, 3)), stride=(10**10, 1))
    assert found.tolist() == [[[[18.0] * 3]] * 3]
