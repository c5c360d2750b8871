"""Quantized tensors on each device: their elements beside ggml's reference, products, parts."""

from __future__ import annotations

import asyncio
import pickle

import gguf
import numpy as np
import pytest

import treadle as td
from treadle.quant.blocks import FORMATS

NAMES = list(FORMATS)
QUANTIZED = [name for name in NAMES if FORMATS[name].elements > 1]


def _blocks(rng: np.random.Generator, name: str, rows: int, per_row: int) -> np.ndarray:
    return rng.integers(0, 256, (rows, per_row, FORMATS[name].nbytes), np.uint8)


def _finite_blocks(rng: np.random.Generator, name: str, rows: int, per_row: int) -> np.ndarray:
    """Blocks of numbers about as large as 1."""
    x = rng.normal(size=(rows, per_row * FORMATS[name].elements)).astype(np.float32)
    return FORMATS[name].quantize(x)


def _tensor(name: str, blocks: np.ndarray) -> td.quant.QuantizedTensor:
    rows, per_row, _ = blocks.shape
    shape = (rows, per_row * FORMATS[name].elements)
    return td.quant.QuantizedTensor.from_blocks(blocks, shape, name)


def reference(name: str, blocks: np.ndarray) -> np.ndarray:
    """The elements of blocks by gguf, or for what it does not read by the definition."""
    rows = len(blocks)
    if not blocks.size:
        return np.zeros((rows, blocks.shape[1] * FORMATS[name].elements), np.float32)
    with np.errstate(all="ignore"):
        if name == "q8_k":
            planes = FORMATS[name].split(blocks)
            return (planes["values"] * planes["scale"][..., None]).reshape(rows, -1)
        kind = gguf.GGMLQuantizationType(FORMATS[name].number)
        return gguf.quants.dequantize(blocks.reshape(rows, -1), kind).reshape(rows, -1)


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    """The same bits, or NaN in both."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype == np.float32
    same = found.view(np.uint32) == expected.view(np.uint32)
    same |= np.isnan(found) & np.isnan(expected)
    assert same.all(), (found[~same][:4], expected[~same][:4])


@pytest.mark.parametrize("name", NAMES)
def test_elements_of_random_bytes(device, name):
    rng = np.random.default_rng(3)
    blocks = _blocks(rng, name, 7, 300 if FORMATS[name].elements == 1 else 3)
    if name == "q8_k":  # subnormal float32 may be 0 on a GPU
        blocks[..., 3] |= 16
    found = _tensor(name, blocks)
    assert_same_bits(found.dequantize().numpy(), reference(name, blocks))
    assert found.blocks().shape == blocks.shape


def test_forms_that_are_awaited(device, rng):
    blocks = _finite_blocks(rng, "q4_k", 3, 2)
    x = _tensor("q4_k", blocks)

    async def read():
        moved = await x.to_async("cpu")
        assert await x.to_async(device) is x
        return await x.numpy_async(), await x.blocks_async(), moved.device.id, moved.numpy()

    elements, found, where, there = asyncio.run(read())
    np.testing.assert_array_equal(found, blocks)
    np.testing.assert_array_equal(elements, x.numpy())
    np.testing.assert_array_equal(there, x.to("cpu").numpy())
    assert where == "cpu"


@pytest.mark.parametrize("name", [n for n in QUANTIZED if n not in ("q8_k", "mxfp4")])
def test_special_scales(device, name):
    kind = FORMATS[name]
    special = np.array(
        [0, -0.0, 6e-8, -6e-8, 6.1e-5, 65504, -65504, np.inf, -np.inf, np.nan], np.float16
    )
    planes = kind.split(_blocks(np.random.default_rng(4), name, len(special), 2))
    for one in ("scale", "min"):
        if one in planes:
            planes[one][:] = special[:, None] if one == "scale" else special[::-1, None]
    blocks = kind.join(planes)
    assert_same_bits(_tensor(name, blocks).dequantize().numpy(), reference(name, blocks))


def test_every_scale_of_mxfp4(device):
    blocks = _blocks(np.random.default_rng(5), "mxfp4", 256, 1)
    blocks[:, 0, 0] = np.arange(256)
    normal = blocks[4:]  # products that are subnormal may be 0 on a GPU
    assert_same_bits(_tensor("mxfp4", normal).dequantize().numpy(), reference("mxfp4", normal))


@pytest.mark.parametrize("name", ["q4_0", "q4_k", "q6_k", "iq4_xs", "f16"])
@pytest.mark.parametrize(("rows", "per_row"), [(0, 1), (1, 1), (13, 1), (3, 0)])
def test_sizes(device, name, rows, per_row):
    blocks = _blocks(np.random.default_rng(6), name, rows, per_row)
    w = _tensor(name, blocks)
    assert_same_bits(w.dequantize().numpy(), reference(name, blocks))
    x = td.ones((2, w.shape[1]), device=w.device)
    assert (x @ w.T).shape == (2, rows)


@pytest.mark.parametrize("name", NAMES)
def test_rows(device, name):
    """Embeddings are looked up: the rows asked for are read, in one kernel."""
    rng = np.random.default_rng(7)
    blocks = _finite_blocks(rng, name, 11, 256 // FORMATS[name].elements)
    w, expected = _tensor(name, blocks), reference(name, blocks)
    assert_same_bits(w.rows([[3, 0], [10, 3]]).numpy(), expected[[[3, 0], [10, 3]]])
    picks = td.asarray(np.array([5, 5, 2], np.int32))
    found = w.rows(picks)
    assert td.explain(found).splitlines()[0] == "1 kernel"
    assert_same_bits(found.numpy(), expected[[5, 5, 2]])
    scaled = w.rows(picks) * 8
    assert td.explain(scaled).splitlines()[0] == "1 kernel"
    assert_same_bits(scaled.numpy(), expected[[5, 5, 2]] * 8)


@pytest.mark.parametrize("name", ["q4_0", "q8_0", "q6_k", "mxfp4", "bf16"])
def test_products(device, name):
    rng = np.random.default_rng(8)
    blocks = _finite_blocks(rng, name, 23, 512 // FORMATS[name].elements)
    w, expected = _tensor(name, blocks), reference(name, blocks).astype(np.float64)
    x = rng.normal(size=(2, 3, 512)).astype(np.float32)
    # Where activations are rounded to 8 bits, the standard deviation of a sum is 0.006 of this.
    near = 0.025 * np.sqrt(512)
    found = td.asarray(x) @ w.T
    assert found.shape == (2, 3, 23)
    np.testing.assert_allclose(found.numpy(), x @ expected.T, atol=near)
    np.testing.assert_allclose((x[0, 0] @ w.T).numpy(), x[0, 0] @ expected.T, atol=near)


def test_parts_are_quantized(device):
    rng = np.random.default_rng(9)
    blocks = _finite_blocks(rng, "q4_k", 24, 1)
    w = td.quant.QuantizedTensor.from_blocks(blocks, (4, 6, 256), "q4_k")
    expected = reference("q4_k", blocks).reshape(4, 6, 256)
    for key in (1, -1, (2, 3), slice(1, 3), (slice(None), slice(None, None, 2)), ..., (0, ...)):
        part = w[key]
        assert isinstance(part, td.quant.QuantizedTensor)
        assert_same_bits(part.numpy(), expected[key])
    assert w[1].T.shape == (256, 6)
    assert [len(each) for each in w] == [6] * 4
    with pytest.raises(IndexError, match="first 2 axes"):
        w[0, 0, 3]
    with pytest.raises(IndexError, match=r"rows\(indices\)"):
        w[[1, 2]]
    with pytest.raises(IndexError, match="4"):
        w[4]
    with pytest.raises(td.errors.ShapeError, match="takes a matrix"):
        w.rows([1])
    with pytest.raises(td.errors.ShapeError, match="takes a matrix"):
        _ = w.T


def test_it_moves_and_is_pickled(device):
    w = _tensor("q5_1", _finite_blocks(np.random.default_rng(10), "q5_1", 5, 2))
    assert w.to(w.device) is w
    other = w.to("cpu")
    assert other.device is td.device("cpu")
    assert_same_bits(other.numpy(), w.numpy())
    again = pickle.loads(pickle.dumps(w))
    assert again.format is w.format
    assert again.shape == w.shape
    assert_same_bits(again.numpy(), w.numpy())


def test_quantize(device):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(3, 4, 256)).astype(np.float32)
    for given in (x, td.asarray(x), x.astype(np.float64), td.asarray(x).astype(td.bfloat16)):
        w = td.quant.quantize(given, "q8_0")
        assert w.device is device
        assert w.shape == (3, 4, 256)
        assert np.abs(w.numpy() - x).max() < 0.03
    assert (w.ndim, w.size, w.nbytes, len(w), w.dtype) == (3, 3072, 3264, 3, td.float32)
    assert "format='q8_0'" in repr(w)
    assert np.asarray(w).shape == (3, 4, 256)
    assert td.quant.quantize(x[0, 0], "q4_0").shape == (256,)


def test_what_is_refused(device):
    make = td.quant.QuantizedTensor.from_blocks
    with pytest.raises(td.errors.ShapeError, match=r"formats that fit are f16, q4_0, .*mxfp4"):
        td.quant.quantize(np.ones((2, 96)), "q4_k")
    with pytest.raises(td.errors.ShapeError, match="formats that fit are f16, bf16"):
        td.quant.quantize(np.ones((2, 33)), "q8_0")
    with pytest.raises(ValueError, match="there is no block format 'int4'"):
        td.quant.quantize(np.ones((2, 32)), "int4")
    with pytest.raises(TypeError, match="real numbers"):
        td.quant.quantize(np.ones((2, 32), complex), "q8_0")
    for shape in [(2, 64), (10**12, 32), (-1, 32), (2, -32), ()]:
        with pytest.raises(td.errors.ShapeError):
            make(np.zeros((2, 1, 34), np.uint8), shape, "q8_0")
    with pytest.raises(TypeError, match="bytes"):
        make(np.zeros(34), (1, 32), "q8_0")
    w = td.quant.quantize(np.ones((2, 32)), "q8_0")
    with pytest.raises(td.errors.ShapeError):
        td.ones((1, 64)) @ w.T
    with pytest.raises(TypeError):
        w * 2
    with pytest.raises(TypeError, match="QuantizedTensor"):
        td.save({"w": w}, "unused.safetensors")


@pytest.mark.parametrize("name", QUANTIZED)
def test_products_of_many_rows_dequantize_in_their_loads(device, name):
    """On GPUs a tile of weights is dequantized where the product loads it."""
    rng = np.random.default_rng(12)
    w = td.quant.quantize(rng.normal(size=(48, 512)).astype(np.float32), name)
    x = rng.normal(size=(40, 512)).astype(np.float32)
    found = td.asarray(x) @ w.dequantize().T
    if not device.traits.host_memory:  # where NumPy multiplies
        assert td.explain(found).splitlines()[0] == "1 kernel"
    if name == "q6_k":
        np.testing.assert_allclose(found.numpy(), x @ w.numpy().T, atol=1e-3)
