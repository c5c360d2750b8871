"""GGUF files: there and back, beside the package `gguf`, and whatever a file says of itself."""

from __future__ import annotations

import os
import struct

import gguf as peer
import ml_dtypes
import numpy as np
import pytest

from tests.support import gguf_files as made
from tests.support.gguf_files import Array
from treadle.core.errors import FormatError
from treadle.formats import gguf_values
from treadle.formats.ggml_types import NUMBERED, TYPES
from treadle.formats.gguf import GgufSource, read_gguf, write_gguf

EVERYTHING = [
    made.pair("general.architecture", made.TEXT, "llama"),
    made.pair("a.u8", made.U8, 255),
    made.pair("a.i8", made.I8, -128),
    made.pair("a.u16", made.U16, 65535),
    made.pair("a.i16", made.I16, -32768),
    made.pair("a.u32", made.U32, 2**32 - 1),
    made.pair("a.i32", made.I32, -(2**31)),
    made.pair("a.u64", made.U64, 2**64 - 1),
    made.pair("a.i64", made.I64, -(2**63)),
    made.pair("a.f32", made.F32, 0.5),
    made.pair("a.f64", made.F64, 1e300),
    made.pair("a.yes", made.BOOL, 1),
    made.pair("a.no", made.BOOL, 0),
    made.pair("ein schlüssel", made.TEXT, "ein Wert, とても長い " + "x" * 200),
    made.pair("empty", made.TEXT, ""),
    made.pair("texts", made.ARRAY, Array(made.TEXT, ("▁the", "", "é" * 70, "\0", "\n", "é" * 63))),
    made.pair("numbers", made.ARRAY, Array(made.I16, (1, -2, 3))),
    made.pair("floats", made.ARRAY, Array(made.F32, (0.5, float("inf")))),
    made.pair("bools", made.ARRAY, Array(made.BOOL, (1, 0, 1))),
    made.pair("nothing", made.ARRAY, Array(made.U64)),
    made.pair(
        "nested",
        made.ARRAY,
        Array(made.ARRAY, (Array(made.U8, (1, 2)), Array(made.TEXT, ("x",)), Array(made.ARRAY))),
    ),
]
SHAPES = [(4,), (2, 3), (32, 2, 1, 3)]


def tensors_of_all_types():
    """Two rows of a block of each type, and some plain ones of other shapes."""
    records, data = [], b""
    for row in TYPES.values():
        records.append(made.tensor(row.name, (row.elements, 2), row.number, len(data)))
        data += os.urandom(row.nbytes * 2)
        data += b"\0" * (-len(data) % 32)
    for shape in SHAPES:
        records.append(made.tensor(str(shape), shape, 0, len(data)))
        data += os.urandom(4 * int(np.prod(shape)))
        data += b"\0" * (-len(data) % 32)
    return records, data


def whole(path):
    """A file's content, all of it read."""
    file = read_gguf(path)
    return dict(file.metadata), {name: file.raw(name).tobytes() for name in file.tensors}


@pytest.fixture
def read(tmp_path):
    """What is read from bytes."""
    path = tmp_path / "a.gguf"

    def reader(content):
        path.write_bytes(content)
        return read_gguf(path)

    return reader


# --- what is right -------------------------------------------------------------------------------


def test_types_are_those_of_ggml():
    assert {(row.number, row.elements, row.nbytes) for row in TYPES.values()} == {
        (int(number), *sizes) for number, sizes in peer.GGML_QUANT_SIZES.items()
    }
    assert {row.number: name.upper() for name, row in TYPES.items()} == {
        int(number): number.name for number in peer.GGML_QUANT_SIZES
    }
    assert all(NUMBERED[row.number] is row for row in TYPES.values())


@pytest.mark.parametrize("version", [2, 3])
def test_values_of_every_type(read, version):
    found = read(made.gguf(EVERYTHING, version=version)).metadata
    assert len(found) == len(EVERYTHING)
    assert found["general.architecture"] == "llama"
    assert found["a.u8"] == 255
    assert found["a.i8"] == -128
    assert found["a.u16"] == 65535
    assert found["a.i16"] == -32768
    assert found["a.u32"] == 2**32 - 1
    assert found["a.i32"] == -(2**31)
    assert found["a.u64"] == 2**64 - 1
    assert found["a.i64"] == -(2**63)
    assert found["a.f32"] == 0.5
    assert found["a.f64"] == 1e300
    assert found["a.yes"] is True
    assert found["a.no"] is False
    assert found["ein schlüssel"] == "ein Wert, とても長い " + "x" * 200
    assert found["empty"] == ""
    assert found["texts"] == ["▁the", "", "é" * 70, "\0", "\n", "é" * 63]
    assert found["texts"] is found["texts"]
    assert found["numbers"].tolist() == [1, -2, 3]
    assert found["numbers"].dtype == np.int16
    assert found["floats"].tolist() == [0.5, float("inf")]
    assert found["bools"].tolist() == [True, False, True]
    assert found["nothing"].shape == (0,)
    assert found["nested"][0].tolist() == [1, 2]
    assert found["nested"][1:] == [["x"], []]
    assert "missing" not in found
    with pytest.raises(KeyError):
        found["missing"]
    with pytest.raises(ValueError, match="read-only"):
        found["numbers"][0] = 7


def test_tensors_of_every_type(read):
    records, data = tensors_of_all_types()
    file = read(made.gguf(EVERYTHING, records, data))
    assert list(file.tensors) == [*TYPES, *map(str, SHAPES)]
    for row in TYPES.values():
        tensor = file.tensors[row.name]
        assert (tensor.type, tensor.shape) == (row.name, (2, row.elements))
        assert tensor.nbytes == 2 * row.nbytes
    for shape in SHAPES:
        assert file.tensors[str(shape)].shape == shape[::-1]
    assert (
        b"".join(
            file.raw(name).tobytes().ljust(-(-file.tensors[name].nbytes // 32) * 32, b"\0")
            for name in file.tensors
        )
        == data
    )
    with pytest.raises(ValueError, match="read-only"):
        file.raw("f32")[0] = 7


def test_tensors_are_in_the_order_of_their_bytes(read):
    records = [made.tensor("b", (8,), 0, 32), made.tensor("a", (8,), 0, 0)]
    file = read(made.gguf([], records, bytes(range(64))))
    assert list(file.tensors) == ["a", "b"]
    assert file.raw("b")[0] == 32


@pytest.mark.parametrize("alignment", [1, 8, 64, 4096])
def test_alignment(tmp_path, alignment):
    path = tmp_path / "a.gguf"
    arrays = {"a": np.arange(3, dtype=np.int8), "b": np.arange(5, dtype=np.float32)}
    write_gguf(path, {"general.alignment": alignment}, arrays)
    file = read_gguf(path)
    assert all(tensor.offset % alignment == 0 for tensor in file.tensors.values())
    assert file.raw("b").view(np.float32).tolist() == arrays["b"].tolist()


def test_a_tensor_of_no_elements_and_one_of_no_axes(tmp_path):
    path = tmp_path / "a.gguf"
    arrays = {
        "full": np.ones(3, np.float32), "empty": np.ones((2, 0), np.float32),
        "number": np.array(7, np.int32), "last": np.ones(0, np.int64),
    }  # fmt: skip
    write_gguf(path, {}, arrays)
    file = read_gguf(path)
    assert file.tensors["empty"].shape == (2, 0)
    assert file.raw("empty").size == 0
    assert file.raw("last").size == 0
    assert file.tensors["number"].shape == ()
    assert file.raw("number").view(np.int32).tolist() == [7]


def test_a_copy_has_the_same_bytes(tmp_path):
    source, copy = tmp_path / "a.gguf", tmp_path / "b.gguf"
    records, data = tensors_of_all_types()
    source.write_bytes(made.gguf(EVERYTHING, records, data))
    file = read_gguf(source)
    write_gguf(
        copy,
        {key: file.metadata.encoded(key) for key in file.metadata},
        {
            name: GgufSource(tensor.shape, tensor.type, lambda name=name: file.raw(name))
            for name, tensor in file.tensors.items()
        },
    )
    assert copy.read_bytes() == source.read_bytes()


def test_values_of_python_are_written_as_llama_cpp_has_them(tmp_path):
    path = tmp_path / "a.gguf"
    given = {
        "u32": 7, "i32": -7, "u64": 2**40, "i64": -(2**40), "f32": 0.25, "bool": True, "text": "é",
        "u16": np.uint16(3), "f64": np.float64(1e300), "texts": ["a", "é"], "none": [],
        "ints": [1, -2], "large": [1, 2**40], "floats": [1, 0.5], "bools": (True, False),
        "bytes": np.arange(3, dtype=np.uint8), "nested": [[1], np.arange(2, dtype=np.uint64)],
    }  # fmt: skip
    write_gguf(path, given, {})
    metadata = read_gguf(path).metadata
    for key, value in given.items():
        assert np.array_equal(metadata[key], value) if key != "nested" else True
    assert [inner.dtype.name for inner in metadata["nested"]] == ["int32", "uint64"]
    assert metadata["ints"].dtype == np.int32
    assert metadata["large"].dtype == np.int64
    assert metadata["floats"].dtype == np.float32
    kinds = {key: metadata.encoded(key).type for key in ("u32", "i32", "u64", "i64", "f32", "u16")}
    assert kinds == {
        "u32": made.U32, "i32": made.I32, "u64": made.U64, "i64": made.I64, "f32": made.F32,
        "u16": made.U16,
    }  # fmt: skip


def test_the_package_gguf_reads_what_is_written(tmp_path):
    path = tmp_path / "a.gguf"
    arrays = {
        "half": np.ones((2, 3), np.float16), "single": np.ones((4, 2), np.float32),
        "brain": np.ones((2, 2), ml_dtypes.bfloat16), "blocks": np.arange(5, dtype=np.int64),
    }  # fmt: skip
    blocks = np.random.default_rng(0).integers(0, 256, (3, 2 * 144), np.uint8)
    values = {"general.architecture": "llama", "n": 7, "x": 0.5, "t": ["a", "b"], "i": [1, 2, 3]}
    write_gguf(path, values, arrays | {"q": GgufSource((3, 512), "q4_k", lambda: blocks)})
    found = peer.GGUFReader(path)
    assert {key: found.get_field(key).contents() for key in values} == values
    theirs = {tensor.name: tensor for tensor in found.tensors}
    assert theirs["q"].tensor_type == peer.GGMLQuantizationType.Q4_K
    assert theirs["q"].data.tobytes() == blocks.tobytes()
    for name, array in arrays.items():
        assert tuple(theirs[name].shape[::-1]) == array.shape
        assert theirs[name].data.tobytes() == array.tobytes()


def test_what_the_package_gguf_writes_is_read(tmp_path):
    path = tmp_path / "a.gguf"
    writer = peer.GGUFWriter(path, "llama")
    writer.add_uint16("n", 3)
    writer.add_array("nested", [[1, 2], [3, 4]])
    writer.add_token_list(["<s>", "▁é", "x" * 300])
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer.add_tensor("w", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = read_gguf(path)
    assert file.metadata["n"] == 3
    assert [inner.tolist() for inner in file.metadata["nested"]] == [[1, 2], [3, 4]]
    assert file.metadata["tokenizer.ggml.tokens"] == ["<s>", "▁é", "x" * 300]
    assert file.tensors["w"].shape == (2, 3)
    assert (file.raw("w").view(np.float32).reshape(2, 3) == array).all()


# --- files of a split model ----------------------------------------------------------------------


def parts_of(folder, count=3, numbers=None, tensors=None, names=None, total=None):
    """A model of so many files, each with a tensor of its own."""
    paths = []
    for number in range(count):
        pairs = [
            made.pair("split.no", made.U16, number if numbers is None else numbers[number]),
            made.pair("split.count", made.U16, count),
            made.pair("split.tensors.count", made.I32, count if total is None else total),
        ]
        if number == 0:
            pairs.append(made.pair("general.architecture", made.TEXT, "llama"))
        name = f"t{number}" if tensors is None else tensors[number]
        path = folder / f"model-{number + 1:05}-of-{count:05}.gguf"
        path.write_bytes(made.gguf(pairs, [made.tensor(name, (4,), 24)], bytes([number] * 4)))
        paths.append(path)
    return paths


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_file_of_a_split_model_stands_for_all(tmp_path, given):
    file = read_gguf(parts_of(tmp_path)[given])
    assert file.metadata["general.architecture"] == "llama"
    assert {name: file.raw(name).tolist() for name in file.tensors} == {
        "t0": [0] * 4, "t1": [1] * 4, "t2": [2] * 4,
    }  # fmt: skip


def test_files_of_a_split_model_that_do_not_fit(tmp_path):
    paths = parts_of(tmp_path)
    paths[1].unlink()
    with pytest.raises(FormatError, match=r"model-00002-of-00003\.gguf is missing"):
        read_gguf(paths[0])
    paths = parts_of(tmp_path, numbers=[0, 2, 1])
    with pytest.raises(FormatError, match=r"is the file 2 \(from 0\) of 3, which its name"):
        read_gguf(paths[0])
    paths = parts_of(tmp_path, tensors=["a", "b", "a"])
    with pytest.raises(FormatError, match="two files of it have a tensor 'a'"):
        read_gguf(paths[0])
    paths = parts_of(tmp_path, total=4)
    with pytest.raises(FormatError, match=r"have 3 tensors, and split\.tensors\.count is 4"):
        read_gguf(paths[0])
    other = tmp_path / "renamed.gguf"
    paths = parts_of(tmp_path)
    paths[0].rename(other)
    with pytest.raises(FormatError, match=r"end in -00001-of-00003\.gguf"):
        read_gguf(other)


# --- what is wrong -------------------------------------------------------------------------------

ONE = made.tensor("w", (32,), 2)
BLOCK = bytes(18)
HOSTILE = {
    "empty": (b"", "the file is empty"),
    "another format": (b"PK\x03\x04" + bytes(40), r"not a GGUF file.*b'PK\\x03\\x04'"),
    "header alone cut": (b"GGUF\x03\0\0\0\x01", "ends within the header"),
    "version 1": (made.gguf(version=1), "version 1.*convert the model again"),
    "version 4": (made.gguf(version=4), "version 4, and treadle reads the versions 2 and 3"),
    "big-endian": (made.gguf(version=0x03000000), "big-endian.*gguf-convert-endian"),
    "counts of values": (made.gguf(pair_count=2**63), f"announces {2**63} metadata values"),
    "counts of tensors": (made.gguf(tensor_count=2**64 - 1), "do not fit into the 32 bytes"),
    "many tensors": (
        made.gguf(tensor_count=100_001, data=bytes(2_500_000)), "treadle reads at most 100000"
    ),
    "values are missing": (
        made.gguf([made.pair("k", made.TEXT, "v" * 20)], pair_count=2, alignment=1),
        "the file ends within the key of metadata value 1",
    ),
    "length of a key": (
        made.gguf([made.text("k", 2**64 - 1) + bytes(8)]), "is a text of 18446744073709551615 bytes"
    ),
    "long key": (made.gguf([made.pair("k" * 70_000, made.U8, 1)]), "names have 65535 at most"),
    "key is not UTF-8": (made.gguf([made.pair(b"\xff", made.U8, 1)]), "the key of.*is not UTF-8"),
    "key twice": (
        made.gguf([made.pair("k", made.U8, 1)] * 2), "the metadata value 'k' is there twice"
    ),
    "type of a value": (made.gguf([made.pair("k", 13, b"\0" * 9)]), "has the type number 13"),
    "type of elements": (
        made.gguf([made.pair("k", made.ARRAY, struct.pack("<IQ", 99, 1) + b"x")]),
        "array of the type number 99",
    ),
    "bool of 2": (made.gguf([made.pair("k", made.BOOL, 2)]), "true or false, and byte 37 is 2"),
    "bools of 2": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.BOOL, (1, 2)))]), "has other bytes"
    ),
    "elements of an array": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.F64, (1.0,), 2**61))]),
        f"'k' is an array of {2**61} elements at byte 37",
    ),
    "texts of an array": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.TEXT, ("a",), 2**60))]), "truncated"
    ),
    "one text too many": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.TEXT, ("a" * 24,), 4))], alignment=1),
        "the file ends within the metadata value 'k'",
    ),
    "text in an array": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.TEXT, ("a", b"b\xff", "c")))]),
        "the text 1 of the metadata value 'k' is not UTF-8",
    ),
    "long text in an array": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.TEXT, ("a", b"\xff" * 200, "c")))]),
        "the metadata value 'k' is not UTF-8",
    ),
    "text that ends within a letter": (
        made.gguf([made.pair("k", made.ARRAY, Array(made.TEXT, ("a", b"\xc3", "c")))]),
        "the text 1 of",
    ),
    "surrogate": (
        made.gguf([made.pair("k", made.TEXT, b"\xed\xa0\x80")]), "'k' is not UTF-8"
    ),
    "nesting": (
        made.gguf([made.pair("k", made.ARRAY, struct.pack("<IQ", 9, 1) * 5000 + bytes(12))]),
        "nested more than 8 deep",
    ),
    "alignment of 0": (made.gguf([made.pair("general.alignment", made.U32, 0)]), "power of two"),
    "alignment of 24": (made.gguf([made.pair("general.alignment", made.U32, 24)]), "is 24, not"),
    "alignment as text": (
        made.gguf([made.pair("general.alignment", made.TEXT, "32")]), "is '32', not"
    ),
    "huge alignment": (
        made.gguf([made.pair("general.alignment", made.U64, 2**63)], [ONE], BLOCK), "truncated"
    ),
    "split.count as text": (made.gguf([made.pair("split.count", made.TEXT, "2")]), "not a number"),
    "split.count of an array": (
        made.gguf([made.pair("split.count", made.ARRAY, Array(made.U8, (1, 2)))]), "not a number"
    ),
    "huge split.count": (
        made.gguf([made.pair("split.count", made.U64, 2**64 - 1)]), "is one of 18446744073709551615"
    ),
    "name twice": (made.gguf([], [ONE, ONE], BLOCK), "two tensors have the name 'w'"),
    "axes": (made.gguf([], [made.tensor("w", (1,) * 5)], bytes(8)), "has 5 axes"),
    "a billion axes": (
        made.gguf([], [made.text("w") + struct.pack("<I", 10**9)], bytes(99)), "has 1000000000 axes"
    ),
    "record cut": (
        made.gguf([], [made.text("w" * 9) + struct.pack("<IQ", 3, 1)], alignment=1),
        "ends within the record of the tensor 'wwwwwwwww'",
    ),
    "type of a tensor": (
        made.gguf([], [made.tensor("w", (32,), 99)], BLOCK),
        "the tensor 'w' has the type number 99, and treadle knows f32, f16, q4_0",
    ),
    "removed type": (
        made.gguf([], [made.tensor("w", (32,), 31)], BLOCK),
        "the type q4_0_4_4, which ggml has removed: quantize the model again",
    ),
    "blocks": (
        made.gguf([], [made.tensor("w", (48,), 2)], BLOCK * 2),
        "rows of 48 elements, and q4_0 has blocks of 32",
    ),
    "size": (
        made.gguf([], [made.tensor("w", (2**20, 2**20), 0)], bytes(64)),
        "takes the bytes 96 to 4398046511200, and the file has 160: it is truncated or corrupt",
    ),
    "product beyond 64 bits": (
        made.gguf([], [made.tensor("w", (2**32, 2**32, 2**32), 0)], bytes(64)), "too large"
    ),
    "product of 0": (made.gguf([], [made.tensor("w", (0, 2**62, 2), 0)]), "too large"),
    "unaligned": (
        made.gguf([], [made.tensor("w", (1,), 0, 4)], bytes(64)), "byte 4.*not aligned to 32"
    ),
    "offset": (
        made.gguf([], [made.tensor("w", (1,), 0, 2**64 - 32)], bytes(64)), "truncated or corrupt"
    ),
    "last byte is missing": (made.gguf([], [ONE], BLOCK[:-1]), "it is truncated or corrupt"),
    "overlap": (
        made.gguf([], [made.tensor("a", (16,)), made.tensor("b", (8,), 0, 32)], bytes(64)),
        "'a' and 'b' overlap: byte 128 belongs to both",
    ),
    "same place": (
        made.gguf([], [made.tensor("a", (1,)), made.tensor("b", (8,))], bytes(64)), "overlap"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_is_said(read, name):
    content, message = HOSTILE[name]
    with pytest.raises(FormatError, match=message) as caught:
        read(content)
    assert "a.gguf" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_long_names_are_shortened_in_messages(read):
    with pytest.raises(FormatError) as caught:
        read(made.gguf([], [made.tensor("w" * 60_000, (32,), 99)], BLOCK))
    assert len(str(caught.value)) < 1000


def test_what_is_not_a_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_gguf(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_gguf(tmp_path / "missing.gguf")
    with pytest.raises(TypeError, match="read_gguf: a path is text"):
        read_gguf(7)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no FIFOs")
def test_a_fifo_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(FormatError, match="is not a file that can be mapped"):
        read_gguf(tmp_path / "fifo")


@pytest.mark.parametrize(
    ("metadata", "tensors", "message"),
    [
        ({"k": object()}, {}, "'k' is of the type object"),
        ({"k": 2**64}, {}, "which 64 bits do not hold"),
        ({"k": 1e300}, {}, "beyond 32-bit floats"),
        ({"k": b"x"}, {}, "'k' is of the type bytes"),
        ({"k": 1j}, {}, "'k' is of the type complex"),
        ({"k": "\ud800"}, {}, "is not Unicode"),
        ({"k": [1, "a"]}, {}, "a list of different types"),
        ({"k": np.ones((2, 2))}, {}, "an array of 2 axes"),
        ({"k": np.ones(2, np.complex64)}, {}, "of complex64"),
        ({"k" * 70_000: 1}, {}, "longer than 65535 bytes"),
        ({"general.alignment": 24}, {}, "not a power of two"),
        ({}, {"w": np.ones(2, np.uint8)}, "has the dtype uint8, and a GGUF file has float32"),
        ({}, {"w": np.ones((1,) * 5, np.float32)}, "has 5 axes"),
        ({}, {"w": GgufSource((2,), "q9", lambda: np.ones(1))}, "has the type 'q9', and ggml has"),
        ({}, {"w": GgufSource((48,), "q4_0", lambda: np.ones(1))}, "rows of 48 elements"),
        (
            {},
            {"w": GgufSource((32,), "q4_0", lambda: np.ones(1))},
            "has 18 bytes, and 8 were given",
        ),
    ],
)
def test_what_cannot_be_written(tmp_path, metadata, tensors, message):
    path = tmp_path / "a.gguf"
    path.write_bytes(b"as it was")
    with pytest.raises(ValueError, match=message):
        write_gguf(path, metadata, tensors)
    assert path.read_bytes() == b"as it was"
    assert os.listdir(tmp_path) == ["a.gguf"]


def test_a_copied_alignment_is_kept(tmp_path):
    path = tmp_path / "a.gguf"
    encoded = gguf_values.encode(64, "it")
    write_gguf(path, {"general.alignment": encoded}, {"w": np.ones(3, np.float32)})
    assert read_gguf(path).tensors["w"].offset % 64 == 0
    assert whole(path)[0]["general.alignment"] == 64
