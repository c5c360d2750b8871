"""`td.load_gguf`: a file's tensors as tensors of a device."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import treadle as td
from treadle.formats.gguf import GgufSource, write_gguf
from treadle.quant.blocks import FORMATS


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 256)).astype(np.float32)
    tensors = {
        "plain": x,
        "half": x.astype(np.float16),
        "brain": x.astype(ml_dtypes.bfloat16),
        "experts": GgufSource((3, 1, 256), "q4_k", lambda: FORMATS["q4_k"].quantize(x)),
        "sparse": GgufSource((1, 256), "iq2_xxs", lambda: np.zeros(66, np.uint8)),
    }
    write_gguf(tmp_path / "model.gguf", {"general.architecture": "test"}, tensors)
    return tmp_path / "model.gguf", x


def test_tensors_by_their_names(path):
    where, x = path
    g = td.load_gguf(where, device="cpu")
    assert g.metadata["general.architecture"] == "test"
    assert (len(g), "plain" in g, "other" in g) == (5, True, False)
    assert set(g) == set(g.tensors)
    assert "5 tensors" in repr(g)
    for name, dtype in {"plain": td.float32, "half": td.float16, "brain": td.bfloat16}.items():
        found = g[name]
        assert isinstance(found, td.Tensor)
        assert found.dtype == dtype
        assert np.abs(found.astype(td.float32).numpy() - x).max() < 0.02
    experts = g.tensor("experts", device="cpu")
    assert isinstance(experts, td.quant.QuantizedTensor)
    assert experts.shape == (3, 1, 256)
    assert np.abs(experts[2].numpy() - x[2]).max() < 0.3


def test_a_type_that_is_not_read_is_named(path):
    g = td.load_gguf(path[0], device="cpu")
    g.check(["plain", "experts"])
    for ask in (g.check, lambda: g["sparse"]):
        with pytest.raises(td.errors.FormatError, match=r"'sparse' is iq2_xxs, .* q4_k"):
            ask()
    with pytest.raises(KeyError):
        g["other"]


def test_a_quantized_tensor_is_saved_by_its_blocks(tmp_path):
    w = td.quant.quantize(np.ones((2, 32)), "q8_0", device="cpu")
    with pytest.raises(TypeError, match=r"save its blocks\(\)"):
        td.save({"w": w}, tmp_path / "w")
    td.save({"w": w.blocks()}, tmp_path / "w")
    blocks = td.load(tmp_path / "w", device="cpu")["w"]
    again = td.quant.QuantizedTensor.from_blocks(np.asarray(blocks), (2, 32), "q8_0", "cpu")
    assert np.array_equal(again.numpy(), w.numpy())
