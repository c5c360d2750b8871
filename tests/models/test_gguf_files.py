"""GGUF files of real models, beside the package `gguf`; and files that llama.cpp reads."""

from __future__ import annotations

import gguf as peer
import numpy as np
import pytest

from treadle.formats import gguf_values
from treadle.formats.gguf import read_gguf, write_gguf


def test_smollm_is_what_the_package_gguf_reads(smollm):
    file, found = read_gguf(smollm), peer.GGUFReader(smollm)
    keys = [key for key in found.fields if not key.startswith("GGUF.")]
    assert list(file.metadata) == keys
    for key in keys:
        assert np.array_equal(file.metadata[key], found.fields[key].contents())
    assert list(file.tensors) == [tensor.name for tensor in found.tensors]
    for theirs in found.tensors:
        tensor = file.tensors[theirs.name]
        assert tensor.shape == tuple(reversed(theirs.shape.tolist()))
        assert tensor.type == theirs.tensor_type.name.lower()
        assert np.array_equal(file.raw(theirs.name), theirs.data.reshape(-1).view(np.uint8))


def test_gemma(gemma):
    file = read_gguf(gemma)
    assert file.metadata["general.architecture"] == "gemma3"
    tokens = file.metadata["tokenizer.ggml.tokens"]
    assert len(tokens) == 262_144
    assert tokens[:4] == ["<pad>", "<eos>", "<bos>", "<unk>"]
    assert tokens[262_143] == "<unused6241>"
    assert len(file.tensors) == 236
    assert {tensor.type for tensor in file.tensors.values()} == {
        "f32", "q4_k", "q5_0", "q6_k", "q8_0",
    }  # fmt: skip
    assert file.tensors["token_embd.weight"].shape == (262_144, 640)
    last = list(file.tensors.values())[-1]
    assert last.offset + last.nbytes == gemma.stat().st_size
    # What is decoded is written again as it was.
    for key, value in file.metadata.items():
        assert gguf_values.encode(value, key) == file.metadata.encoded(key)


@pytest.fixture
def small(tmp_path, smollm):
    """A model of one layer with SmolLM's vocabulary, written from plain values."""
    drawn = np.random.default_rng(7)
    width, hidden, tokens = 64, 128, 49_152

    def weight(*shape):
        return (drawn.standard_normal(shape) * 0.05).astype(np.float16)

    metadata = dict(read_gguf(smollm).metadata) | {
        "general.file_type": 1,
        "llama.block_count": 1, "llama.embedding_length": width, "llama.context_length": 64,
        "llama.feed_forward_length": hidden, "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2, "llama.rope.dimension_count": 16,
    }  # fmt: skip
    ones = np.ones(width, np.float32)
    path = tmp_path / "small.gguf"
    write_gguf(path, metadata, {
        "token_embd.weight": weight(tokens, width), "output_norm.weight": ones,
        "blk.0.attn_norm.weight": ones, "blk.0.ffn_norm.weight": ones,
        "blk.0.attn_q.weight": weight(width, width), "blk.0.attn_k.weight": weight(32, width),
        "blk.0.attn_v.weight": weight(32, width), "blk.0.attn_output.weight": weight(width, width),
        "blk.0.ffn_gate.weight": weight(hidden, width),
        "blk.0.ffn_up.weight": weight(hidden, width),
        "blk.0.ffn_down.weight": weight(width, hidden),
    })  # fmt: skip
    return path


def test_llama_cpp_runs_what_is_written(small):
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(small)
    settings.n_ctx = 64
    settings.n_parallel = 1
    settings.warmup = False
    settings.cpuparams.n_threads = 1
    server = xllamacpp.Server(settings)
    said = server.handle_completions({"prompt": "Once upon", "max_tokens": 4, "temperature": 0})
    assert said["usage"]["completion_tokens"] == 4
