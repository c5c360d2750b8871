"""What a file needs to be loaded, and what is said of one that does not have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.models.peer_models import references, write_peer
from tests.support import small_llama
from treadle.core.errors import FormatError, OutOfMemory
from treadle.formats.gguf import write_gguf
from treadle.models.layers import RowParts, multiply, rows_of


@pytest.mark.parametrize(
    ("name", "kind", "bound"),
    [("llama", "f16", 1e-2), ("qwen2", "bf16", 5e-2), ("qwen3moe", "q8_0", 0.15)],
)
def test_matrices_in_blocks(tmp_path: Path, name: str, kind: str, bound: float) -> None:
    """Products with the blocks, and experts that are taken from stacks of them."""
    given = references()[name]
    path = write_peer(name, tmp_path / "model.gguf", kind)
    model = td.models.load(path, "cpu", cache="f32", activations="float")
    found = model.logits(given["tokens"]).numpy()
    for at, wanted in given["logits"].items():
        np.testing.assert_allclose(found[int(at)], wanted, atol=bound)
    generation = model.generate(given["tokens"], max_tokens=2)
    generation.text()
    first = int(found[-1].argmax())
    again = model.logits([*given["tokens"], first]).numpy()[-1]
    assert generation.tokens == [first, int(again.argmax())]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"general.architecture": "mamba"}, "'mamba': supported are gemma3, llama, phi3, qwen2"),
        ({"block_count": 4}, "no tensor blk.3.attn_norm.weight"),
        ({"block_count": 1 << 40}, "cannot be a size"),
        ({"embedding_length": None}, "no llama.embedding_length"),
        ({"embedding_length": 32}, "token_embd.weight has shape .96, 64., and the metadata says"),
        ({"attention.head_count": 3}, "3 heads of queries cannot share 2 heads of keys"),
        ({"rope.dimension_count": 17}, "dimension_count is 17, and a head has 16"),
        ({"rope.scaling.type": "warp"}, "rope scaling 'warp' is unknown: supported are none"),
        ({"attention.head_count": "four"}, "attention.head_count is 'four', which cannot be"),
        ({"attention.head_count_kv": ["a", "b"]}, "head_count_kv is .* which cannot be"),
        ({"attention.head_count_kv": [2, 4, 2]}, "head_count_kv differs between layers"),
        ({"rope.freq_base": "x"}, "has str under llama.rope.freq_base"),
    ],
)
def test_metadata_that_is_wrong(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    path = write_peer("llama", tmp_path / "model.gguf", **changed)
    with pytest.raises(FormatError, match=words):
        td.models.load(path, "cpu")


def test_a_tokenizer_of_no_kind(tmp_path: Path) -> None:
    """As a file whose key was damaged has it; a file without any tokenizer is for token ids."""
    kind = "tokenizer.ggml.model"
    metadata = {key: value for key, value in small_llama.METADATA.items() if key != kind}
    write_gguf(tmp_path / "model.gguf", metadata, small_llama.tensors())
    with pytest.raises(FormatError, match=rf"has tokenizer\.ggml\.\w+, but no {kind}.*damaged"):
        td.models.load(tmp_path / "model.gguf", "cpu")
    metadata = {key: metadata[key] for key in metadata if not key.startswith("tokenizer.")}
    write_gguf(tmp_path / "model.gguf", metadata, small_llama.tensors())
    assert td.models.load(tmp_path / "model.gguf", "cpu").tokenizer is None


def test_types_of_tensors_are_named(tmp_path: Path) -> None:
    path = write_peer("llama", tmp_path / "model.gguf", "q8_0")
    data = path.read_bytes()
    name = b"blk.1.ffn_up.weight"
    at = data.index(name) + len(name) + 4 + 2 * 8  # its number of axes and its shape
    assert data[at : at + 4] == (8).to_bytes(4, "little")
    path.write_bytes(data[:at] + (24).to_bytes(4, "little") + data[at + 4 :])
    with pytest.raises(
        FormatError, match=r"blk.1.ffn_up.weight has the type i8: supported are f32, f16, q4_0"
    ):
        td.models.load(path, "cpu")
    with pytest.raises(FileNotFoundError):
        td.models.load(tmp_path / "missing.gguf", "cpu")
    with pytest.raises(ValueError, match=r"td\.models\.load: the path is empty"):
        td.models.load("", "cpu")
    with pytest.raises(TypeError, match=r"td\.models\.load: a path is text or a pathlib.Path"):
        td.models.load(5, "cpu")  # type: ignore[arg-type]


def test_a_model_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_peer("llama", tmp_path / "model.gguf")
    device = td.device("cpu")
    before = device.memory_stats()["used"]
    page = 32 * 3 * 2 * 2 * 16 * 2  # places, layers, keys and values, heads, elements, bytes
    weights = path.stat().st_size

    def with_free(free: int) -> Any:
        monkeypatch.setattr(
            type(device), "memory_stats", lambda _: {"used": 0, "driver": {"free": free}}
        )
        return pytest.raises(OutOfMemory)

    with with_free(200_000_000 + weights + 3 * page) as caught:
        td.models.load(path, "cpu")
    assert "small llama has" in str(caught.value)
    assert "a context of 96 would fit, or one of 160 with a cache of q8_0" in str(caught.value)
    with with_free(1000) as caught:
        td.models.load(path, "cpu")
    assert "take a file with fewer bits, a smaller model, or another device" in str(caught.value)
    monkeypatch.undo()
    assert device.memory_stats()["used"] == before  # nothing was uploaded


def test_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_peer("llama", tmp_path / "model.gguf")
    for options, words in (
        ({"context": 257}, "2 to 256, for which small llama was trained"),
        ({"context": 1}, "from 2 to 256"),
        ({"cache": "q4_0"}, "cache is one of f32, f16, q8_0"),
        ({"activations": "int4"}, "activations is 'int8' or 'float'"),
    ):
        with pytest.raises(ValueError, match=words):
            td.models.load(path, "cpu", **options)  # type: ignore[arg-type]
    model = td.models.load(path, "cpu", progress=True)
    assert repr(model) == (
        "<treadle model small llama: llama, 3 layers of 64, context 256, on cpu>"
    )
    assert "small llama" in capsys.readouterr().err
    td.models.load(path, "cpu")
    assert capsys.readouterr().err == ""  # no terminal


def test_a_matrix_in_parts_of_rows() -> None:
    """Lookups and products, where a kernel may not see all of a matrix."""
    rows = np.random.default_rng(0).standard_normal((10, 32)).astype(np.float32)
    whole = td.quant.quantize(td.asarray(rows, device="cpu"), "q8_0")
    parts = RowParts((whole[:4], whole[4:8], whole[8:]))
    indices = td.asarray([9, 0, 3, 4, 7, 8], dtype=td.int32, device="cpu")
    wanted = whole.dequantize().numpy()
    np.testing.assert_array_equal(rows_of(parts, indices).numpy(), wanted[[9, 0, 3, 4, 7, 8]])
    x = td.asarray(rows[:3], device="cpu")
    found = multiply(x, parts, "float").numpy()
    np.testing.assert_allclose(found, rows[:3] @ wanted.T, atol=1e-5)
