"""Padding by numbers and by the tensor's own elements, beside PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F

try:
    import torch
except ImportError:
    torch = None

# Numbers of elements, mode and value; PyTorch has fewer axes of the modes but "constant".
CASES = [
    ((1, 2), "constant", None),
    ((1, 2, -1, 3), "constant", 7.5),
    ((-1, -2, 0, 1, 2, 0, -1, 1), "constant", -1.0),
    ((2, 1, 3, 1), "reflect", None),
    ((5, -2, -1, 4), "reflect", None),
    ((9, -6, -2, 12), "replicate", None),
    ((2, -1, 3, 1), "circular", None),
    ((6, 6, 5, 0), "circular", None),
]
NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.fixture
def on_cpu():
    """For what is made of what other tests have on every device."""
    with td.use_device(td.device("cpu")):
        yield


def numbers(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


if torch is not None:

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_values(on_cpu, rng, case):
        x = numbers(rng, 2, 3, 5, 6)
        wanted = torch.nn.functional.pad(torch.asarray(x), *case)
        np.testing.assert_array_equal(F.pad(td.asarray(x), *case).numpy(), wanted.numpy())


@pytest.mark.parametrize("mode", NUMPY)
def test_any_number_of_axes_of_any_view(device, rng, mode):
    data = numbers(rng, 4, 9, 5, 3, 2)
    x, pads = td.asarray(data), [(0, 0), (1, 2), (2, 1), (0, 2), (1, 1)]
    flat = [number for pair in reversed(pads[1:]) for number in pair]
    found = F.pad(x.flip(axis=2)[1:, ::-2] * 1.0, flat, mode)
    wanted = np.pad(data[1:, ::-2, ::-1], pads, NUMPY[mode])
    np.testing.assert_array_equal(found.numpy(), wanted)
    seen = x.permute(1, 2, 3, 0, 4)[..., 1]  # nothing is copied before
    found = F.pad(seen, (1, 2), mode)
    last = np.moveaxis(data, 0, 3)[..., 1]
    np.testing.assert_array_equal(found.numpy(), np.pad(last, [(0, 0)] * 3 + [(1, 2)], NUMPY[mode]))


def test_dtypes_and_small_tensors(on_cpu):
    for dtype in ("int8", "uint64", "float16", "float64", "complex64"):
        x = td.asarray([1, 2, 3], dtype=dtype)
        found = F.pad(x, (2, 0), value=5)
        assert found.dtype == dtype
        assert found.tolist() == [5, 5, 1, 2, 3]
        assert F.pad(x, (2, 2), "reflect").tolist() == [3, 2, 1, 2, 3, 2, 1]
    assert F.pad(td.asarray([True]), (1, 1)).tolist() == [False, True, False]
    assert F.pad(td.asarray([False]), (1, 1), value=True).tolist() == [True, False, True]
    assert F.pad(td.asarray([4]), (2, 1), "replicate").tolist() == [4, 4, 4, 4]
    assert F.pad(td.zeros((0, 2)), (0, 0, 1, 1), value=3.0).tolist() == [[3, 3], [3, 3]]
    assert F.pad(td.zeros((3, 0)), (0, 0, 2, 1), "reflect").shape == (6, 0)
    x = td.asarray([1.0, 2.0])
    same = F.pad(x, (0, 0))
    x[0] = 9.0
    assert same.tolist() == [1.0, 2.0], "a copy, as of all other paddings"


def test_it_is_a_part_of_the_kernel_that_reads_it():
    x = td.arange(54.0, device="cpu").reshape(6, 9).realize()
    said = td.explain(td.sum(F.pad(x, (1, 1), "reflect") * 2, axis=1))
    assert said.splitlines()[0] == "1 kernel"


def test_refusals():
    x = td.zeros((3, 5), device="cpu")
    cases = {
        r"pad has 3 numbers, and a tensor of shape \(3, 5\)": (x, (1, 2, 3)),
        r"pad has 6 numbers": (x, (1,) * 6),
        r"'reflect' adds at most 4 elements on a side of axis 1 .*not 5": (x, (5, 0), "reflect"),
        r"'circular' adds at most 3 elements on a side of axis 0": (x, (0, 0, 0, 4), "circular"),
        r"'replicate' adds at most 0": (x[:, :0], (1, 0), "replicate"),
        r"\(-3, -3\) removes 6 elements along axis 1 of shape \(3, 5\), which has 5": (x, (-3, -3)),
        "mode is one of constant, reflect, replicate, circular, not 'edge'": (x, (1, 1), "edge"),
        "mode 'reflect' takes no value": (x, (1, 1), "reflect", 1.0),
    }
    for message, arguments in cases.items():
        with pytest.raises(ValueError, match=message):
            F.pad(*arguments)
    with pytest.raises(TypeError, match="a sequence of integers"):
        F.pad(x, 3)
