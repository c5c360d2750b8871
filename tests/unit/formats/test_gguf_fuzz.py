"""Truncated and mutated GGUF files by the thousand: each is a FormatError, or read as it is.

Nothing large is allocated for any of them, and reading ends: whatever a file announces, it is a few
kilobytes long.
"""

from __future__ import annotations

import math
import mmap
import os
import random
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import gguf_files as made
from tests.support.gguf_files import Array
from treadle.core.errors import FormatError
from treadle.formats import gguf_values
from treadle.formats.ggml_types import TYPES
from treadle.formats.gguf import parse, read_gguf, write_gguf

MOST_MEMORY = 1 << 20  # bytes, for files of some kilobytes
EXTREMES = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
TEXTS = ("▁the", "", "é" * 70, "日本", "x" * 130)
PAIRS = [
    made.pair("general.architecture", made.TEXT, "llama"),
    made.pair("general.alignment", made.U32, 32),
    made.pair("flag", made.BOOL, 1),
    made.pair("x", made.F32, 0.5),
    made.pair("tokens", made.ARRAY, Array(made.TEXT, TEXTS)),
    made.pair("scores", made.ARRAY, Array(made.F32, (0.5, 1.5))),
    made.pair("flags", made.ARRAY, Array(made.BOOL, (0, 1))),
    made.pair("nested", made.ARRAY, Array(made.ARRAY, (Array(made.U16, (1, 2)), Array(8, ("é",))))),
]


def original():
    """A file with a tensor of each type, and where its elements begin."""
    records, data = [], b""
    for row in TYPES.values():
        records.append(
            made.tensor(row.name, (row.elements, 2), row.number, -(-len(data) // 32) * 32)
        )
        data += bytes(-len(data) % 32) + random.Random(row.number).randbytes(row.nbytes * 2)
    content = made.gguf(PAIRS, records, data)
    return content, len(content) - len(data)


ORIGINAL, HEADER = original()


def outcome(content):
    """What becomes of bytes: an error's text, or None where all of a file was read."""
    try:
        part = parse(content)
    except FormatError as error:
        return str(error)
    for key, value in part.metadata.items():
        kind, raw = part.metadata.encoded(key)
        again = gguf_values.decode(raw, gguf_values.Place(kind, 0, len(raw)))
        assert np.array_equal(again, value) or repr(again) == repr(value)
    taken = 0
    for tensor in part.tensors.values():
        row = TYPES[tensor.type]
        assert tensor.nbytes == math.prod(tensor.shape) // row.elements * row.nbytes
        assert tensor.offset + tensor.nbytes <= len(content)
        taken += tensor.nbytes
    assert taken <= len(content)
    return None


@pytest.fixture
def bounded():
    """The most memory that is taken while a test runs, apart from mapped files."""
    tracemalloc.start()
    yield
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < MOST_MEMORY


def test_the_original_is_right():
    assert outcome(ORIGINAL) is None


def test_truncated_at_every_byte_of_the_header():
    assert all(outcome(ORIGINAL[:length]) for length in range(HEADER))


def test_truncated_within_the_elements():
    for length in range(HEADER, len(ORIGINAL), 3):
        assert "truncated" in outcome(ORIGINAL[:length])


def test_truncated_files(tmp_path):
    """The same of files on a disk, which are mapped."""
    path = tmp_path / "a.gguf"
    path.write_bytes(ORIGINAL)
    assert len(read_gguf(path).tensors) == len(TYPES)
    for length in range(len(ORIGINAL) - 1, -1, -97):
        os.truncate(path, length)
        with pytest.raises(FormatError, match=r"a\.gguf: "):
            read_gguf(path)


def test_each_byte_changed():
    drawn = random.Random(1)
    read = 0
    for place in range(HEADER):
        changed = bytearray(ORIGINAL)
        changed[place] ^= 1 << drawn.randrange(8)
        read += outcome(bytes(changed)) is None
    assert read > 100  # letters of texts, numbers, padding


@pytest.mark.parametrize("width", [4, 8])
def test_each_number_replaced_by_extremes(bounded, width):
    drawn = random.Random(width)
    for place in range(4 + width // 4, HEADER - width, 2):
        changed = bytearray(ORIGINAL)
        value = drawn.choice(EXTREMES) % 2 ** (8 * width)
        changed[place : place + width] = value.to_bytes(width, "little")
        outcome(bytes(changed))


def test_every_extreme_in_the_fields_of_the_header(bounded):
    """The counts, and all numbers of the first tensors' records."""
    first = ORIGINAL.index(made.text("f32"))
    places = [8, 16, *range(first + 8, first + 50)]
    for place in places:
        for extreme in EXTREMES:
            changed = bytearray(ORIGINAL)
            changed[place : place + 8] = extreme.to_bytes(8, "little")
            outcome(bytes(changed))


def test_parts_cut_out_doubled_and_swapped():
    drawn = random.Random(3)
    for _ in range(1500):
        one, two = sorted(drawn.sample(range(HEADER), 2))
        one = max(one, two - 300)
        changed = drawn.choice([
            ORIGINAL[:one] + ORIGINAL[two:],
            ORIGINAL[:two] + ORIGINAL[one:],
            ORIGINAL[:one] + drawn.randbytes(two - one) + ORIGINAL[two:],
            ORIGINAL[:one] + bytes(two - one) + ORIGINAL[two:],
        ])  # fmt: skip
        outcome(changed)


def test_deep_arrays_of_many_elements(bounded):
    """Arrays in arrays, each of which announces as many as it has room for."""
    for depth in range(1, 12):
        for count in (1, 2, 3, 100):
            inner = struct.pack("<IQ", 9, count) * depth + struct.pack("<IQ", 0, 0) * count
            outcome(made.gguf([made.pair("k", made.ARRAY, inner)]))


INTEGERS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(width=32, allow_nan=False)
LETTERS = st.text(st.characters(codec="utf-8"), max_size=150)
NUMBERS = st.sampled_from(
    ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "u8", "i8", "f8", "?"]
).flatmap(
    lambda code: st.binary(max_size=40).map(
        lambda raw: np.frombuffer(raw[: len(raw) // 8 * 8], "u1").astype(code)
    )
)
VALUES = st.one_of(
    INTEGERS, FLOATS, LETTERS, st.booleans(), st.lists(LETTERS, max_size=6), NUMBERS,
    st.lists(NUMBERS, min_size=1, max_size=3),
)  # fmt: skip
FILES = st.dictionaries(LETTERS.filter(lambda key: not key.startswith("general.")), VALUES)


def same(one, other):
    if isinstance(one, list) and one and isinstance(one[0], np.ndarray):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    return type(one) is type(other) and one == other


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=FILES, names=st.lists(LETTERS, unique=True, max_size=4))
def test_drawn_files_come_back(tmp_path_factory, values, names):
    path = tmp_path_factory.getbasetemp() / "drawn.gguf"
    arrays = {name: np.full((2, 3), number, np.float32) for number, name in enumerate(names)}
    write_gguf(path, values, arrays)
    file = read_gguf(path)
    assert all(same(value, file.metadata[key]) for key, value in values.items())
    assert list(file.metadata) == list(values)
    assert {name: file.raw(name).tobytes() for name in file.tensors} == {
        name: array.tobytes() for name, array in arrays.items()
    }


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    edits=st.lists(
        st.tuples(st.integers(0, HEADER), st.binary(max_size=9), st.integers(0, 9)), max_size=4
    )
)
def test_drawn_edits(edits):
    changed = ORIGINAL
    for place, new, removed in edits:
        changed = changed[:place] + new + changed[place + removed :]
    outcome(changed)


def test_texts_within_mapped_and_plain_bytes_are_one(tmp_path):
    """`decode` reads bytes and mapped files alike."""
    path = tmp_path / "a"
    encoded = gguf_values.encode(list(TEXTS), "it")
    path.write_bytes(encoded.data)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    place = gguf_values.Place(encoded.type, 0, len(encoded.data))
    assert gguf_values.decode(mapped, place) == gguf_values.decode(encoded.data, place)
    assert gguf_values.skip(mapped, encoded.type, 0, "it") == len(encoded.data)


def test_a_vocabulary_takes_no_memory_before_it_is_asked_for(bounded):
    texts = b"\x01\0\0\0\0\0\0\0a" * 200_000
    tracemalloc.stop()  # apart from the file itself
    content = made.gguf([made.pair("k", made.ARRAY, struct.pack("<IQ", 8, 200_000) + texts)])
    tracemalloc.start()
    assert len(parse(content).metadata) == 1
