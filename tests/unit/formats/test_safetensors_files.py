"""safetensors files and their shards, memory-mapped, beside the package `safetensors`."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from collections import Counter

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy as peer

import treadle as td
from treadle.core.errors import FormatError
from treadle.formats.safetensors_files import read_safetensors

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([[True], [False]]),
    "c": np.arange(3, dtype=np.int8),
    "d": np.array(7, np.int64),
    "e": np.ones((2, 0), np.float16),
    "f": np.arange(4).astype(ml_dtypes.bfloat16),
}


@pytest.fixture
def shards(tmp_path):
    """A model of two files, and the path of its index."""
    names = {"model-00001-of-00002.safetensors": "abc", "model-00002-of-00002.safetensors": "def"}
    weight_map = {}
    for file, tensors in names.items():
        peer.save_file({name: ARRAYS[name] for name in tensors}, tmp_path / file, {"format": "pt"})
        weight_map |= dict.fromkeys(tensors, file)
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return path


def altered(index, **changes):
    """The index with other files for some tensors."""
    content = json.loads(index.read_text())
    content["weight_map"] |= changes
    index.write_text(json.dumps(content))
    return index


def check(file):
    assert set(file.tensors) == set(ARRAYS)
    for name, array in ARRAYS.items():
        found = file.array(name)
        assert found.dtype == array.dtype == file.tensors[name].dtype.numpy
        assert found.shape == array.shape == file.tensors[name].shape
        assert found.tobytes() == array.tobytes()
        assert not found.flags.writeable


def test_one_file(tmp_path):
    path = tmp_path / "a.safetensors"
    peer.save_file(ARRAYS, path, {"format": "pt"})
    file = read_safetensors(path)
    check(file)
    assert file.metadata == {"format": "pt"}
    places = [tensor.offset for tensor in file.tensors.values()]
    assert places == sorted(places)


def test_what_td_save_saves(tmp_path):
    path = tmp_path / "a.safetensors"
    td.save({"w": td.ones((2, 3), device="cpu")}, path)
    assert read_safetensors(path).array("w").tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize("length", [0x0280, 0x0380, 0x0480, 0x0580])
def test_a_header_whose_length_looks_like_a_pickle(tmp_path, length):
    path = tmp_path / "a.safetensors"
    header = b'{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'.ljust(length)
    path.write_bytes(struct.pack("<Q", length) + header + struct.pack("<f", 1.5))
    assert read_safetensors(path).array("w").tolist() == [1.5]
    assert td.load(path, device="cpu")["w"].tolist() == [1.5]


def test_shards(shards):
    check(read_safetensors(shards))


def test_shards_that_are_links_elsewhere(shards, tmp_path):
    """As in Hugging Face's cache, whose snapshots are links to blobs."""
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(tmp_path.glob("*.safetensors"))):
        path.rename(blobs / str(number))
        path.symlink_to(blobs / str(number))
    check(read_safetensors(shards))


def test_the_index_says_which_of_two_tensors_is_meant(shards):
    other = shards.with_name("other.safetensors")
    peer.save_file({"a": np.zeros(3, np.float32), "unused": np.ones(1)}, other)
    file = read_safetensors(altered(shards, a="other.safetensors"))
    assert file.array("a").tolist() == [0.0, 0.0, 0.0]
    assert "unused" not in file.tensors


@pytest.mark.parametrize(
    "name",
    ["../x.safetensors", "/etc/x.safetensors", "sub/x.safetensors", "..\\x.safetensors",
     "C:\\x.safetensors", "C:x.safetensors", "\0.safetensors", "a\n.safetensors"],
)  # fmt: skip
def test_an_index_that_leads_out_of_its_folder(shards, tmp_path, name):
    peer.save_file({"a": ARRAYS["a"]}, tmp_path.parent / "x.safetensors")
    with pytest.raises(FormatError, match="which is not a file in its folder"):
        read_safetensors(altered(shards, a=name))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ("{}", "has no weight_map"),
        ('{"weight_map": {}}', "has no weight_map"),
        ('{"weight_map": [1]}', "has no weight_map"),
        ('{"weight_map": {"a": 7}}', "names 7, which is not a safetensors file"),
        ('{"weight_map": {"a": "x.bin"}}', "names 'x.bin', which is not a safetensors file"),
        ('{"weight_map": {"a": "x.safetensors"}}', r"x\.safetensors, which .* names, is missing"),
        ('{"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}}', "stands twice"),
        ('{"weight_map": {"x": "model-00001-of-00002.safetensors"}}', "and it is not"),
        ("[" * 200_000, "nested too deeply|is not JSON"),
        (b"\xff\xfe", "is not UTF-8"),
        ("", "is not JSON"),
    ],
)
def test_what_is_wrong_with_an_index(shards, content, message):
    shards.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FormatError, match=message):
        read_safetensors(shards)


def test_a_shard_that_is_truncated_is_named(shards):
    path = shards.with_name("model-00002-of-00002.safetensors")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match=r"model-00002-of-00002\.safetensors: the file is trunc"):
        read_safetensors(shards)


def test_extents_that_overflow_beside_one_of_zero(tmp_path):
    path = tmp_path / "a.safetensors"
    huge = {"dtype": "F32", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]}
    header = json.dumps({"w": huge}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(FormatError, match="too large"):
        read_safetensors(path).array("w")


def test_truncated_and_mutated_files(tmp_path):
    path = tmp_path / "a.safetensors"
    peer.save_file(ARRAYS, path, {"format": "pt"})
    original = path.read_bytes()
    drawn = random.Random(5)
    contents = [original[:length] for length in range(len(original))]
    for _ in range(800):
        changed = bytearray(original)
        for _ in range(drawn.randrange(1, 4)):
            changed[drawn.randrange(len(changed))] = drawn.randrange(256)
        contents.append(bytes(changed))
    tracemalloc.start()
    outcomes = Counter(outcome(path, content) for content in contents)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 20
    assert set(outcomes) == {True, "a.safetensors"}  # some changes are of elements alone


def outcome(path, content):
    """Whether a file was read; if it was not, the error names it."""
    path.write_bytes(content)
    try:
        file = read_safetensors(path)
        return sum(file.array(name).nbytes for name in file.tensors) <= len(content)
    except FormatError as error:
        return "a.safetensors" if "a.safetensors" in str(error) else str(error)
