"""`treadle quantize`: what it writes, which files it refuses, and what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple

import gguf as peer
import ml_dtypes
import numpy as np
import pytest
from gguf.quants import dequantize

from tests.support import llama_server, small_llama
from treadle.cli.quantize import Choice, parse_tensor, planned, quantize_file, read_model
from treadle.core.errors import FormatError, TreadleError
from treadle.formats.gguf import GgufSource, read_gguf, write_gguf
from treadle.quant.recipes import RECIPES

# The most that a number may be off, in parts of the weights' deviation of 0.05.
ERRORS = {
    "f32": 0, "f16": 0, "bf16": 0.02, "q8_0": 0.02, "q6_k": 0.1, "q5_k": 0.2, "q5_k_m": 0.2,
    "q5_1": 0.2, "q5_0": 0.25, "q4_k": 0.4, "q4_k_m": 0.4, "q4_1": 0.4, "q4_0": 0.5,
    "iq4_nl": 0.6, "iq4_xs": 0.6, "mxfp4": 1.3, "q3_k": 1.0, "q2_k": 1.8,
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "small.gguf"
    write_gguf(path, small_llama.METADATA, small_llama.tensors())
    return path


@pytest.fixture(scope="module")
def quantized(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "quantized.gguf"
    quantize_file(model, path, Choice("q8_0"), overwrite=False)
    return path


def test_file_types_are_those_of_llama_cpp():
    for recipe in RECIPES.values():
        name = peer.LlamaFileType(recipe.file_type).name
        given = recipe.name.upper()
        assert name in {f"ALL_{given}", f"MOSTLY_{given}", f"MOSTLY_{given}_S", "MOSTLY_MXFP4_MOE"}


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe(model, tmp_path, name):
    target = tmp_path / "out.gguf"
    quantize_file(model, target, Choice(name), overwrite=False)
    found = peer.GGUFReader(target)
    assert found.get_field("general.file_type").contents() == RECIPES[name].file_type
    assert found.get_field("general.quantization_version").contents() == 2
    assert found.get_field("llama.embedding_length").contents() == small_llama.WIDTH
    weights = small_llama.tensors()
    assert {tensor.name for tensor in found.tensors} == set(weights)
    for tensor in found.tensors:
        numbers = dequantize(tensor.data, tensor.tensor_type).reshape(weights[tensor.name].shape)
        off = np.abs(numbers - weights[tensor.name].astype(np.float32)).max() / 0.05
        assert off <= (0 if "norm" in tensor.name else ERRORS[name])
    kinds = {tensor.name: tensor.tensor_type.name.lower() for tensor in found.tensors}
    assert kinds["token_embd.weight"] == RECIPES[name].output
    assert kinds["blk.0.attn_q.weight"] == RECIPES[name].weights
    assert kinds["output_norm.weight"] == "f32"


def test_llama_cpp_runs_what_is_quantized(model, tmp_path):
    target = tmp_path / "out.gguf"
    quantize_file(model, target, Choice("q4_k_m"), overwrite=False)
    assert llama_server.answer(target, "Once upon", 4) == 4


def test_types_for_single_tensors(model, tmp_path):
    target = tmp_path / "out.gguf"
    tensors = [parse_tensor("*.attn_?.weight=Q8_0"), parse_tensor("blk.1.attn_v.weight=f32")]
    quantize_file(model, target, Choice("q4_k", tensors), overwrite=False)
    types = {name: tensor.type for name, tensor in read_gguf(target).tensors.items()}
    assert types["blk.0.attn_v.weight"] == types["blk.1.attn_q.weight"] == "q8_0"
    assert types["blk.1.attn_v.weight"] == "f32"
    assert types["blk.1.ffn_up.weight"] == "q4_k"
    with pytest.raises(TreadleError, match=r"has no tensor \*\.nothing"):
        planned(read_model(model), Choice("q4_k", [("*.nothing", "q8_0")]))


def test_norms_and_vectors_are_never_quantized(model):
    """treadle refuses such files, and llama.cpp aborts on them."""
    types = planned(read_model(model), Choice("q4_k", [("*norm*", "f16"), ("blk.*", "q8_0")]))
    assert types["blk.0.attn_norm.weight"] == "f16"
    assert types["blk.0.attn_q.weight"] == "q8_0"
    with pytest.raises(TreadleError, match=r"\*norm\* names norms or vectors only.* f32 and f16"):
        planned(read_model(model), Choice("q4_k", [("*norm*", "q8_0")]))


@pytest.mark.parametrize(
    ("text", "message"),
    [("q8_0", "is not PATTERN=TYPE"), ("=q8_0", "is not PATTERN=TYPE"), ("a=q9", "'q9' is not one"),
     ("a=iq1_s", "'iq1_s' is not one of f32, f16, q4_0")],
)  # fmt: skip
def test_what_is_not_a_type_for_tensors(text, message):
    with pytest.raises(ValueError, match=message):
        parse_tensor(text)


def test_what_is_quantized_already(quantized, tmp_path):
    target = tmp_path / "out.gguf"
    with pytest.raises(TreadleError, match=r"15 tensors of .* already \(q8_0\).*--requantize"):
        quantize_file(quantized, target, Choice("q4_k"), overwrite=False)
    quantize_file(quantized, target, Choice("q8_0"), overwrite=False)  # nothing is rounded
    assert target.read_bytes() == quantized.read_bytes()
    again = tmp_path / "again.gguf"
    quantize_file(quantized, again, Choice("f32", requantize=True), overwrite=False)
    stored, found = peer.GGUFReader(quantized).tensors, peer.GGUFReader(again).tensors
    for one, other in zip(stored, found, strict=True):
        expected = dequantize(one.data, one.tensor_type)
        assert np.array_equal(other.data.reshape(expected.shape), expected)


def test_files_that_exist(model, tmp_path):
    target = tmp_path / "out.gguf"
    target.write_bytes(b"as it was")
    with pytest.raises(TreadleError, match="exists: --overwrite replaces it"):
        quantize_file(model, target, Choice("q8_0"), overwrite=False)
    assert target.read_bytes() == b"as it was"
    quantize_file(model, target, Choice("q8_0"), overwrite=True)
    assert read_gguf(target).tensors["token_embd.weight"].type == "q8_0"
    with pytest.raises(TreadleError, match="is a folder: name another file"):
        quantize_file(model, tmp_path, Choice("q8_0"), overwrite=True)
    with pytest.raises(TreadleError, match="is the file that is read"):
        quantize_file(target, target, Choice("q8_0"), overwrite=True)


def test_what_fails_leaves_nothing(tmp_path, monkeypatch):
    source, target = tmp_path / "in.gguf", tmp_path / "out.gguf"
    weights = small_llama.tensors(np.float32)
    weights["blk.1.ffn_up.weight"][3, 5] = np.nan
    write_gguf(source, small_llama.METADATA, weights)
    with pytest.raises(FormatError, match=r"the tensor 'blk\.1\.ffn_up\.weight'.*NaN"):
        quantize_file(source, target, Choice("q4_k"), overwrite=False)
    weights["blk.1.ffn_up.weight"][3, 5] = 1e6
    write_gguf(source, small_llama.METADATA, weights)
    with pytest.raises(FormatError, match=r"too large for f16, and not for bf16"):
        quantize_file(source, target, Choice("f16"), overwrite=False)
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1000))
    with pytest.raises(TreadleError, match=r"takes 1\.\d MB, and 0\.0 MB are free"):
        quantize_file(source, target, Choice("q8_0"), overwrite=False)
    assert os.listdir(tmp_path) == ["in.gguf"]


def test_types_that_are_not_computed_with(tmp_path):
    source = tmp_path / "in.gguf"
    blocks = np.zeros(50 * 4, np.uint8)
    write_gguf(source, {}, {"w.weight": GgufSource((4, 256), "iq1_s", lambda: blocks)})
    with pytest.raises(TreadleError, match=r"w\.weight is iq1_s, from which there is no way to q8"):
        planned(read_model(source), Choice("q8_0", requantize=True))


def test_the_sizes_of_files_are_shown(model, quantized, tmp_path, capsys):
    target = tmp_path / "out.gguf"
    quantize_file(quantized, target, Choice("f16", requantize=True), overwrite=False)
    said = capsys.readouterr().out
    sizes = [path.stat().st_size / 1e6 for path in (target, quantized)]
    assert f"out.gguf: {sizes[0]:.1f} MB instead of {sizes[1]:.1f} MB, " in said
    assert "whole blocks" not in said
    quantize_file(model, target, Choice("q4_k_m"), overwrite=True)
    assert "whole blocks" not in capsys.readouterr().out
    again = tmp_path / "again.gguf"
    quantize_file(target, again, Choice("q4_k_m"), overwrite=False)
    assert "(all tensors had these types: a copy)" in capsys.readouterr().out


def test_experts_and_short_rows(tmp_path, capsys):
    source, target = tmp_path / "in.gguf", tmp_path / "out.gguf"
    drawn = np.random.default_rng(1)
    weights = {
        "blk.0.ffn_up_exps.weight": drawn.standard_normal((3, 4, 256), np.float32),
        "blk.0.ffn_gate_inp.weight": drawn.standard_normal((4, 256), np.float32),
        "blk.0.attn_q.weight": drawn.standard_normal((4, 96)).astype(ml_dtypes.bfloat16),
        "blk.0.attn_k.weight": drawn.standard_normal((4, 40), np.float32),
        "output.weight": drawn.standard_normal((4, 96), np.float32),
        "steps": np.arange(4, dtype=np.int32),
    }
    write_gguf(source, {}, weights)
    quantize_file(source, target, Choice("q4_k"), overwrite=False)
    said = capsys.readouterr().out.splitlines()
    sizes = [path.stat().st_size / 1e6 for path in (target, source)]
    assert f"out.gguf: {sizes[0]:.1f} MB instead of {sizes[1]:.1f} MB, " in said[0]
    assert said[1] == (
        "3 tensors have rows that are not whole blocks of 256 numbers, so they have types of more "
        "bits: q5_0 instead of q4_k, f16 instead of q4_k, q8_0 instead of q6_k"
    )
    file = read_gguf(target)
    assert {name: tensor.type for name, tensor in file.tensors.items()} == {
        "blk.0.ffn_up_exps.weight": "q4_k", "blk.0.ffn_gate_inp.weight": "f32",
        "blk.0.attn_q.weight": "q5_0", "blk.0.attn_k.weight": "f16", "output.weight": "q8_0",
        "steps": "i32",
    }  # fmt: skip
    assert file.tensors["blk.0.ffn_up_exps.weight"].shape == (3, 4, 256)
    theirs = peer.GGUFReader(target).tensors[0]
    numbers = dequantize(theirs.data, theirs.tensor_type)
    assert np.abs(numbers - weights["blk.0.ffn_up_exps.weight"]).max() < 0.4


def test_the_command(model, tmp_path):
    def treadle(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "treadle", "quantize", *map(str, arguments)],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip

    target = tmp_path / "out.gguf"
    done = treadle(model, target, "--type", "Q4_K_M")
    assert done.returncode == 0, done.stderr
    assert "bits a weight; tensors:" in done.stdout
    done = treadle(model, target)
    assert done.returncode == 2
    assert "exists: --overwrite replaces it" in done.stderr
    done = treadle(model, target, "--type", "q9")
    assert done.returncode == 2
    assert "q4_k_m" in done.stderr
    shown = treadle("--help").stdout
    assert all(recipe in shown for recipe in RECIPES)
    assert "\\b" not in shown
    assert re.search(r"^ q8_0 {18}8\.5; next to no loss *$", shown, re.MULTILINE)
