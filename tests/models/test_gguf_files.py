"""GGUF files of real models, beside the package `gguf`; and files that llama.cpp reads."""

from __future__ import annotations

import gguf as peer
import numpy as np
import pytest

from tests.support import llama_server, small_llama
from treadle.formats import gguf_values
from treadle.formats.gguf import read_gguf, write_gguf
from treadle.quant.recipes import RECIPES, types_of_recipe


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


def test_llama_cpp_runs_what_is_written(tmp_path):
    path = tmp_path / "small.gguf"
    write_gguf(path, small_llama.METADATA, small_llama.tensors())
    assert llama_server.answer(path, "Once upon", 4) == 4


@pytest.mark.parametrize(("name", "recipe"), [("gemma", "q4_k_m"), ("smollm", "q4_1")])
def test_recipes_are_those_that_llama_cpp_followed(request, name, recipe):
    file = read_gguf(request.getfixturevalue(name))
    shapes = {name: tensor.shape for name, tensor in file.tensors.items()}
    types = types_of_recipe(shapes, RECIPES[recipe])
    assert {name: types.get(name, "f32") for name in shapes} == {
        name: tensor.type for name, tensor in file.tensors.items()
    }
    assert file.metadata["general.file_type"] == RECIPES[recipe].file_type
