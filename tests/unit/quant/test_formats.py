"""Block formats on the host: layouts and rounding, beside ggml's own."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from treadle.quant.blocks import FORMATS, format_named

NAMES = list(FORMATS)
# gguf has reference code for these.
EXACT = ("f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4")
# The root of the mean square error beside that of the numbers, of llama.cpp (b11549) on the numbers
# of `_drawn`: normally distributed ones, and Student's with three degrees of freedom.
LLAMA_CPP = {
    "q2_k": (0.29633, 0.35286),
    "q3_k": (0.15061, 0.19054),
    "q4_k": (0.07134, 0.09239),
    "q5_k": (0.03612, 0.04691),
    "q6_k": (0.01775, 0.0253),
    "iq4_nl": (0.07608, 0.10178),
    "iq4_xs": (0.07668, 0.10288),
}


def type_of(name: str) -> gguf.GGMLQuantizationType:
    """The type of gguf that a format is."""
    return gguf.GGMLQuantizationType(FORMATS[name].number)


def _drawn(kind: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    shape = (256, 1024)
    drawn = rng.standard_t(3, size=shape) if kind else rng.normal(size=shape)
    return drawn.astype(np.float32) * np.float32(0.02)


def _dequantized(name: str, blocks: np.ndarray) -> np.ndarray:
    if name == "q8_k":
        planes = FORMATS[name].split(blocks)
        return (planes["scale"][..., None] * planes["values"]).reshape(len(blocks), -1)
    return gguf.quants.dequantize(blocks.reshape(len(blocks), -1), type_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_ggmls(name):
    kind = FORMATS[name]
    assert (kind.elements, kind.nbytes) == gguf.GGML_QUANT_SIZES[type_of(name)]


@pytest.mark.parametrize("name", NAMES)
def test_planes_join_to_the_same_bytes(name):
    kind = FORMATS[name]
    blocks = np.random.default_rng(1).integers(0, 256, (5, 3, kind.nbytes), np.uint8)
    planes = kind.split(blocks)
    if name == "q8_k":  # the sums of its values follow from them
        sums = planes["values"].reshape(5, 3, 16, 16).sum(-1, dtype=np.int16)
        blocks[..., -32:] = sums.view(np.uint8)
    assert [each.name for each in kind.planes] == list(planes)
    for plane in kind.planes:
        found = planes[plane.name]
        assert found.shape == (5, 3, *plane.shape)
        assert found.dtype.name == plane.dtype
        assert found.flags.c_contiguous
    assert np.array_equal(kind.join(planes), blocks)


@pytest.mark.parametrize("name", EXACT)
def test_quantized_bytes_are_the_references(name):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(13, 192)).astype(np.float32)
    x[0] = 0
    x[1] = 2.5
    x[2, :40] = np.abs(x[2, :40])
    x[3] *= 1e-5
    x[4] *= 1e3
    x[5, ::7] = -8
    expected = gguf.quants.quantize(x, type_of(name)).view(np.uint8)
    assert np.array_equal(FORMATS[name].quantize(x).reshape(13, -1), expected)


@pytest.mark.parametrize("name", LLAMA_CPP)
@pytest.mark.parametrize("kind", [0, 1], ids=["normal", "heavy-tailed"])
def test_errors_are_llama_cpps(name, kind):
    x = _drawn(kind)
    found = _dequantized(name, FORMATS[name].quantize(x))
    error = np.sqrt(np.mean((found - x) ** 2, dtype=np.float64) / np.mean(x**2, dtype=np.float64))
    assert error < 1.02 * LLAMA_CPP[name][kind]


@pytest.mark.parametrize("name", NAMES)
def test_quantizing_again_changes_little(name):
    x = _drawn(0)[:16]
    once = _dequantized(name, FORMATS[name].quantize(x))
    again = _dequantized(name, FORMATS[name].quantize(once))
    lost = np.sqrt(np.mean((again - once) ** 2) / np.mean(x**2))
    assert lost <= 0.35 * np.sqrt(np.mean((once - x) ** 2) / np.mean(x**2))


@pytest.mark.parametrize("name", NAMES)
def test_zeros_and_equal_numbers(name):
    x = np.zeros((3, 512), np.float32)
    x[1] = 1
    x[2, 256:] = -3
    found = _dequantized(name, FORMATS[name].quantize(x))
    assert np.abs(found - x).max() <= 0.02 * 3
    assert not found[0].any()


def test_many_numbers_are_quantized_in_chunks():
    x = np.random.default_rng(3).normal(size=(1100, 1024)).astype(np.float32)
    whole = FORMATS["q8_0"].quantize(x)
    assert np.array_equal(whole[1000:], FORMATS["q8_0"].quantize(x[1000:]))
    assert FORMATS["q8_0"].quantize(x[:0]).shape == (0, 32, 34)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q4_0", "q5_1", "q4_k", "q8_k", "iq4_xs", "mxfp4"])
def test_numbers_that_are_not_finite_are_refused(name, bad):
    x = np.ones((2, 256), np.float32)
    x[1, 100] = bad
    with pytest.raises(ValueError, match=f"{name} has finite numbers only"):
        FORMATS[name].quantize(x)


def test_numbers_that_are_too_large_are_refused():
    x = np.full((1, 256), 1e8, np.float32)
    with pytest.raises(ValueError, match="too large for q4_k"):
        FORMATS["q4_k"].quantize(x)
    assert np.isfinite(_dequantized("mxfp4", FORMATS["mxfp4"].quantize(x))).all()


def test_an_unknown_format_is_named_with_those_that_are_known():
    assert format_named("Q4_K") is FORMATS["q4_k"]
    with pytest.raises(ValueError, match="there is no block format 'q4_9': there are f16, q4_0"):
        format_named("q4_9")
