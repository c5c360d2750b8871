"""TensorBoard's files of events: what a training measures, by tags and steps.

A file is a row of records, each with its length and checksums, and a record is a message in the
encoding of protocol buffers: fields with their number, kind and bytes. Only those messages are here
that TensorBoard's pages of scalars, texts and histograms read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO

VERSION = "brain.Event:2"  # what the first record of a file says


def _polynomial() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _polynomial()


def crc32c(data: bytes) -> int:
    """Castagnoli's cyclic checksum of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    found = 0xFFFFFFFF
    for byte in data:
        found = found >> 8 ^ _TABLE[(found ^ byte) & 0xFF]
    return found ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    found = crc32c(data)
    return struct.pack("<I", ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def write_record(file: IO[bytes], data: bytes) -> None:
    """Append a record to a file."""
    length = struct.pack("<Q", len(data))
    file.write(length + _masked(length) + data + _masked(data))


# --- messages ------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers have ten bytes
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _doubles(field: int, values: Sequence[float]) -> bytes:
    return _bytes(field, struct.pack(f"<{len(values)}d", *values))


def scalar(tag: str, value: float) -> bytes:
    """A number, as the value of a summary. Numbers too large for float32 are infinite."""
    try:
        return _bytes(1, tag.encode()) + _float(2, value)
    except OverflowError:
        return _bytes(1, tag.encode()) + _float(2, float("inf") if value > 0 else float("-inf"))


def text(tag: str, value: str) -> bytes:
    """A text, which TensorBoard shows as Markdown."""
    shape = _bytes(2, _integer(1, 1))  # one axis of one element
    tensor = _integer(1, 7) + _bytes(2, shape) + _bytes(8, value.encode())
    plugin = _bytes(1, _bytes(1, b"text"))
    return _bytes(1, f"{tag}/text_summary".encode()) + _bytes(8, tensor) + _bytes(9, plugin)


def histogram(
    tag: str, extremes: tuple[float, float], moments: tuple[float, float, float],
    limits: Sequence[float], counts: Sequence[float],
) -> bytes:  # fmt: skip
    """How many values there are up to each limit: the least and the greatest, their number, sum and
    sum of squares, the limits and the counts."""
    numbers = b"".join(
        _double(field, each) for field, each in enumerate((*extremes, *moments), start=1)
    )
    found = numbers + _doubles(6, limits) + _doubles(7, counts)
    return _bytes(1, tag.encode()) + _bytes(5, found)


def event(seconds: float, step: int | None, value: bytes | None) -> bytes:
    """What was measured at a time; without a value the record that begins a file."""
    found = _double(1, seconds)
    if step:
        found += _integer(2, step)
    if value is None:
        return found + _bytes(3, VERSION.encode())
    return found + _bytes(5, _bytes(1, value))
