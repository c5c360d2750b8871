"""The values of a GGUF file's metadata: numbers, texts, and arrays of them, as bytes.

Reading is done in two steps. `skip` checks a value and finds its end, and takes no memory that
grows with it. `decode` makes Python's value of what has been checked. So a vocabulary of a quarter
of a million tokens costs a walk over their lengths while the file is opened, and becomes texts only
if it is asked for.
"""

from __future__ import annotations

import codecs
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from treadle.core.errors import FormatError
from treadle.formats.contents import Buffer

# The formats of numbers, by the types' numbers in files. Everything is little-endian.
NUMBERS: dict[int, np.dtype[Any]] = {
    number: np.dtype(code)
    for number, code in {
        0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8",
        11: "<i8", 12: "<f8",
    }.items()
}  # fmt: skip
BOOL, TEXT, ARRAY = 7, 8, 9

_DEEPEST = 8  # arrays within arrays; llama.cpp reads one level
_CHUNK = 1 << 16  # bytes of text that are checked at a time
_ASCII = 0x80
_LENGTH = struct.Struct("<Q")
_ELEMENTS = struct.Struct("<IQ")  # an array's type of elements, and their number
_LEAST = {**{n: dtype.itemsize for n, dtype in NUMBERS.items()}, TEXT: 8, ARRAY: 12}

_BY_DTYPE = {dtype: number for number, dtype in NUMBERS.items()}


class Encoded(NamedTuple):
    """A value as it is in a file: its type's number, and the bytes that follow it there."""

    type: int
    data: bytes


class Place(NamedTuple):
    """Where a checked value is in a file."""

    type: int
    start: int
    stop: int


class Metadata(Mapping[str, Any]):
    """What a file says of its model. Values are decoded when they are first asked for.

    Numbers and texts are Python's; an array of numbers is NumPy's, of texts a list.
    """

    def __init__(self, data: Buffer, places: Mapping[str, Place]) -> None:
        self._data = data
        self._places = places
        self._decoded: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._decoded:
            self._decoded[key] = decode(self._data, self._places[key])
        return self._decoded[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __repr__(self) -> str:
        return f"Metadata({', '.join(map(repr, self))})"

    def encoded(self, key: str) -> Encoded:
        """A value with its exact type, to be written to another file."""
        kind, start, stop = self._places[key]
        return Encoded(kind, self._data[start:stop])


# --- reading -------------------------------------------------------------------------------------


def skip(data: Buffer, kind: int, at: int, what: str, depth: int = 0) -> int:
    """The end of the value at a place, which is checked. `what` names it in errors."""
    if kind in NUMBERS:
        stop = at + NUMBERS[kind].itemsize
        require(data, stop, what)
        if kind == BOOL and data[at] > 1:
            raise FormatError(f"{what} is true or false, and byte {at} is {data[at]}")
        return stop
    if kind == TEXT:
        return text_end(data, at, what)
    if kind != ARRAY:
        raise FormatError(f"{what} has the type number {kind} at byte {at - 4}; types are 0 to 12")
    require(data, at + _ELEMENTS.size, what)
    inner: int
    count: int
    inner, count = _ELEMENTS.unpack_from(data, at)
    begin = at + _ELEMENTS.size
    if inner not in _LEAST:
        raise FormatError(f"{what} is an array of the type number {inner}; types are 0 to 12")
    if count * _LEAST[inner] > len(data) - begin:
        raise FormatError(
            f"{what} is an array of {count} elements at byte {at}, and {len(data) - begin} bytes "
            "are left: the file is truncated or corrupt"
        )
    if inner == TEXT:
        return _texts_end(data, begin, count, what)
    if inner == ARRAY:
        if depth == _DEEPEST:
            raise FormatError(f"{what} has arrays nested more than {_DEEPEST} deep")
        for _ in range(count):
            begin = skip(data, ARRAY, begin, what, depth + 1)
        return begin
    stop = begin + count * NUMBERS[inner].itemsize
    if inner == BOOL and count and np.frombuffer(data, np.uint8, count, begin).max() > 1:
        raise FormatError(f"{what} is an array of true and false, and has other bytes")
    return stop


def decode(data: Buffer, place: Place) -> Any:
    """The value at a place that `skip` has checked."""
    return _decoded(data, place.type, place.start)[0]


def text_end(data: Buffer, at: int, what: str) -> int:
    """The end of the text at a place, which is UTF-8 and within the file."""
    require(data, at + _LENGTH.size, what)
    length: int = _LENGTH.unpack_from(data, at)[0]
    start = at + _LENGTH.size
    if length > len(data) - start:
        raise FormatError(
            f"{what} is a text of {length} bytes at byte {at}, and {len(data) - start} bytes are "
            "left: the file is truncated or corrupt"
        )
    _check_utf8(data, start, start + length, what)
    return start + length


def require(data: Buffer, stop: int, what: str) -> None:
    """FormatError if a file ends before a place."""
    if stop > len(data):
        raise FormatError(f"the file ends within {what}: it is truncated, or corrupt before")


def _texts_end(data: Buffer, at: int, count: int, what: str) -> int:
    """The end of an array of texts, all of which are checked.

    Each is UTF-8 exactly if all of them are, with their lengths between them: the eight bytes of a
    length below 128 are ASCII, which no sequence of UTF-8 can go on with. So what lies between the
    long texts is checked at once.
    """
    begin = place = at
    unpack = _LENGTH.unpack_from
    try:
        for _ in range(count):
            (length,) = unpack(data, place)
            if length >= _ASCII:
                _check_texts(data, at, begin, place, what)
                place = begin = text_end(data, place, what)
            else:
                place += 8 + length
    except struct.error:
        raise FormatError(f"the file ends within {what}: it is truncated, or corrupt") from None
    require(data, place, what)
    _check_texts(data, at, begin, place, what)
    return place


def _check_texts(data: Buffer, array: int, start: int, stop: int, what: str) -> None:
    """Check short texts with their lengths, and name the one that is wrong."""
    try:
        _check_utf8(data, start, stop, what)
    except FormatError:
        place = array
        for index in range(stop - array):
            place = text_end(data, place, f"the text {index} of {what}")
            if place >= stop:
                break
        raise


def _check_utf8(data: Buffer, start: int, stop: int, what: str) -> None:
    try:
        if stop - start <= _CHUNK:
            data[start:stop].decode("utf-8")
            return
        decoder = codecs.getincrementaldecoder("utf-8")()
        for begin in range(start, stop, _CHUNK):
            decoder.decode(data[begin : min(begin + _CHUNK, stop)])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise FormatError(f"{what} is not UTF-8 ({error.reason}), after byte {start}") from None


def _decoded(data: Buffer, kind: int, at: int) -> tuple[Any, int]:
    """A checked value and its end."""
    if kind in NUMBERS:
        dtype = NUMBERS[kind]
        return np.frombuffer(data, dtype, 1, at)[0].item(), at + dtype.itemsize
    if kind == TEXT:
        (length,) = _LENGTH.unpack_from(data, at)
        start = at + _LENGTH.size
        return str(data[start : start + length], "utf-8"), start + length
    inner, count = _ELEMENTS.unpack_from(data, at)
    place = at + _ELEMENTS.size
    if inner in NUMBERS:
        numbers = np.frombuffer(data, NUMBERS[inner], count, place).copy()
        numbers.flags.writeable = False
        return numbers, place + numbers.nbytes
    if inner == TEXT:
        texts = []
        unpack = _LENGTH.unpack_from
        for _ in range(count):
            start = place + 8
            place = start + unpack(data, place)[0]
            texts.append(str(data[start:place], "utf-8"))
        return texts, place
    values = []
    for _ in range(count):
        value, place = _decoded(data, ARRAY, place)
        values.append(value)
    return values, place


# --- writing -------------------------------------------------------------------------------------


def encode(value: Any, what: str) -> Encoded:
    """A value as it is written. ValueError, which names it by `what`, for one that files cannot
    hold.

    A NumPy number or array keeps its type. Python's own get the types that llama.cpp's keys have:
    an integer 32 bits, without a sign if it needs none, or 64 where it must; a float 32 bits; the
    integers of a list 32 bits with a sign.
    """
    if isinstance(value, Encoded):
        return value
    if isinstance(value, str):
        return Encoded(TEXT, encoded_text(value, what))
    if isinstance(value, np.ndarray):
        return Encoded(ARRAY, _encoded_array(value, what))
    if isinstance(value, np.generic | bool | int | float):
        number = value if isinstance(value, np.generic) else _number(value, what)
        dtype = number.dtype.newbyteorder("<")
        if dtype in _BY_DTYPE:
            return Encoded(_BY_DTYPE[dtype], number.astype(dtype).tobytes())
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return Encoded(ARRAY, _encoded_list(value, what))
    raise ValueError(
        f"{what} is of the type {type(value).__name__}: a GGUF file has numbers, texts, true and "
        "false, and arrays of one of these"
    )


def encoded_text(text: str, what: str) -> bytes:
    """A text with its length before it."""
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} is not Unicode: {error}") from None
    return _LENGTH.pack(len(raw)) + raw


def _number(value: bool | int | float, what: str) -> np.generic:
    """A number of Python's, with the type that it is written with."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        for form in (np.uint32, np.int32, np.uint64, np.int64):
            if np.iinfo(form).min <= value <= np.iinfo(form).max:
                return form(value)
        raise ValueError(f"{what} is {value}, which 64 bits do not hold")
    if math.isfinite(value) and abs(value) > float(np.finfo(np.float32).max):
        raise ValueError(f"{what} is {value}, beyond 32-bit floats: numpy.float64(x) is 64 bits")
    return np.float32(value)


def _encoded_array(array: np.ndarray[Any, Any], what: str) -> bytes:
    dtype = array.dtype.newbyteorder("<")
    if array.ndim != 1 or dtype not in _BY_DTYPE:
        raise ValueError(
            f"{what} is an array of {array.ndim} axes of {array.dtype}: a GGUF file has arrays of "
            f"one axis of {', '.join(str(known) for known in _BY_DTYPE)}"
        )
    return _ELEMENTS.pack(_BY_DTYPE[dtype], array.size) + array.astype(dtype).tobytes()


def _encoded_list(values: Sequence[Any], what: str) -> bytes:
    if all(isinstance(value, str) for value in values):
        texts = b"".join(encoded_text(value, what) for value in values)
        return _ELEMENTS.pack(TEXT, len(values)) + texts
    if all(isinstance(value, bool | int | float) for value in values):
        array = np.array(values)
        if array.dtype == np.float64:
            array = np.array([_number(float(value), what) for value in values])
        elif array.dtype == np.int64 and (array == array.astype(np.int32)).all():
            array = array.astype(np.int32)
        return _encoded_array(array, what)
    inner = [encode(value, what) for value in values]
    if len({value.type for value in inner}) > 1:
        raise ValueError(f"{what} is a list of different types, and an array has one")
    return _ELEMENTS.pack(inner[0].type, len(inner)) + b"".join(value.data for value in inner)
