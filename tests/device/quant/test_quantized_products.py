"""Products with quantized matrices on each device, beside products in float64."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from treadle.errors import ShapeError
from treadle.kernels import quantized_products
from treadle.kernels.device_code.quantized_formats import FORMS
from treadle.kernels.device_code.quantized_products import Spread
from treadle.kernels.machine import machine_of
from treadle.quant.blocks import FORMATS
from treadle.quant.products import linear, linears

NAMES = list(FORMS)
LIKE_OTHERS = ("q5_1", "q5_k", "q2_k", "iq4_xs", "mxfp4", "q8_k")  # in how floats are multiplied


def matrix(
    name: str, rows: int, n: int, seed: int = 1
) -> tuple[td.quant.QuantizedTensor, np.ndarray]:
    """A quantized matrix on the device in use, and its elements."""
    rng = np.random.default_rng(seed)
    kind = FORMATS[name]
    planes = kind.split(rng.integers(0, 256, (rows, n // kind.elements, kind.nbytes), np.uint8))
    for key in {"scale", "min"} & planes.keys():
        size = planes[key].shape
        is_exponent = planes[key].dtype == np.uint8
        planes[key][:] = rng.integers(120, 124, size) if is_exponent else rng.normal(size=size) / 16
    tensor = td.quant.QuantizedTensor.from_blocks(kind.join(planes), (rows, n), name)
    return tensor, tensor.to("cpu").dequantize().numpy().astype(np.float64)


def activations(count: int, n: int) -> np.ndarray:
    return (np.random.default_rng(2).normal(size=(count, n)) + 0.25).astype(np.float32)


def in_eight_bits(x: np.ndarray) -> np.ndarray:
    """What the activations are after rounding them to 8 bits, 32 at a time."""
    groups = x.reshape(len(x), -1, 32)
    top = np.abs(groups).max(axis=2, keepdims=True)
    return (np.rint(groups * (np.float32(127) / top)) * (top / np.float32(127))).reshape(x.shape)


def error(found: td.Tensor, expected: np.ndarray) -> float:
    assert found.dtype == td.float32
    assert found.shape == expected.shape
    return float(np.linalg.norm(found.numpy() - expected) / np.linalg.norm(expected))


def columns(name: str) -> int:
    """Columns that are not a multiple of what threads or lanes share, if the format has such."""
    return 512 if FORMATS[name].elements == 256 else 448


@pytest.mark.parametrize("name", NAMES)
def test_activations_of_eight_bits(device, name):
    n = columns(name)
    w, elements = matrix(name, 37, n)
    x = activations(3, n)
    with poisoned(device):
        found = linear(td.asarray(x), w, "int8")
        assert error(found, in_eight_bits(x).astype(np.float64) @ elements.T) < 1e-3
    assert error(found, x.astype(np.float64) @ elements.T) < 1.5e-2


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LIKE_OTHERS])
def test_float_activations(device, name):
    n = columns(name)
    w, elements = matrix(name, 21, n)
    x = activations(2, n)
    with poisoned(device):
        found = linear(td.asarray(x), w, "float")
        assert error(found, x.astype(np.float64) @ elements.T) < 1e-5


@pytest.mark.parametrize("name", ["q4_0", "q4_k", "q8_0"])
@pytest.mark.parametrize("count", [1, 8, 9, 31, 33])
def test_rows_of_activations(device, name, count):
    w, elements = matrix(name, 5, 512)
    x = activations(count, 512)
    with poisoned(device):
        found = linear(td.asarray(x).reshape(1, count, 512), w)
        assert found.shape == (1, count, 5)
        assert error(found[0], x.astype(np.float64) @ elements.T) < 1.5e-2


def test_sizes_that_kernels_do_not_take(device):
    """Blocks of two groups that share bytes of threads, of which a row has an odd number."""
    w, elements = matrix("q4_0", 3, 96)
    x = activations(2, 96)
    assert error(linear(td.asarray(x), w), x.astype(np.float64) @ elements.T) < 1e-5
    assert linear(td.zeros((0, 96)), w).shape == (0, 3)


@pytest.mark.parametrize("name", ["q4_k", "q5_0"])
def test_rows_of_a_matrix(device, name):
    """Some rows are read where they are; every other row is not, and is copied."""
    w, elements = matrix(name, 12, 256)
    x = activations(1, 256)
    expected = in_eight_bits(x).astype(np.float64) @ elements.T
    assert error(linear(td.asarray(x), w[3:8]), expected[:, 3:8]) < 1e-3
    assert error(linear(td.asarray(x), w[1::2]), expected[:, 1::2]) < 1e-3


@pytest.mark.parametrize(
    ("name", "span", "lines"), [("q8_0", 8, 4), ("q4_k", 16, 2), ("q5_0", 8, 2)]
)
def test_ways_to_share_threads(device, name, span, lines, monkeypatch):
    """Those that a GPU takes for large matrices; on the CPU there is one way."""
    sums = machine_of(device).subgroup == 32
    chosen = Spread(64, span, lines, sums)
    monkeypatch.setattr(quantized_products, "spread_for", lambda *_: chosen)
    w, elements = matrix(name, 75, 768)
    x = activations(2, 768)
    with poisoned(device):
        found = linear(td.asarray(x), w, "int8")
        assert error(found, in_eight_bits(x).astype(np.float64) @ elements.T) < 1e-3


def test_weights_that_share_activations(device):
    made = [matrix(name, rows, 256, rows) for name, rows in (("q4_0", 3), ("q8_0", 9), ("q4_0", 5))]
    x = activations(1, 256)[0]
    found = linears(td.asarray(x), [w for w, _ in made])
    for (_, elements), result in zip(made, found, strict=True):
        expected = in_eight_bits(x[None])[0].astype(np.float64) @ elements.T
        assert error(result, expected) < 1e-3


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_activations_that_are_not_finite(device, value):
    """A row with an infinity or NaN gives numbers that are not finite; other rows are as ever."""
    w, elements = matrix("q8_0", 9, 64)
    x = activations(2, 64)
    x[1, 40] = value
    found = linear(td.asarray(x), w, "int8")
    assert not np.isfinite(found.numpy()[1]).any()
    assert error(found[0], in_eight_bits(x[:1])[0].astype(np.float64) @ elements.T) < 1e-3


def test_activations_of_zeros(device):
    w, _ = matrix("q4_k", 4, 256)
    x = np.zeros((2, 256), np.float32)
    x[1, 3] = 1e-40
    assert np.abs(linear(td.asarray(x), w, "int8").numpy()).max() < 1e-30


def test_wrong_columns():
    w, _ = matrix("q8_0", 4, 64)
    with pytest.raises(ShapeError, match=r"multiplies rows of 64 elements"):
        linear(td.zeros((2, 32)), w)
