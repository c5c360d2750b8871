"""GGUF files made by hand, byte by byte, so that tests can write what no writer would."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64 = range(13)
_CODES = {
    U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "B", U64: "Q",
    I64: "q", F64: "d",
}  # fmt: skip


class Array(NamedTuple):
    """An array of a metadata value: the type of its elements, and these."""

    kind: int
    values: tuple[Any, ...] = ()
    count: int | None = None  # what the file says, if that is not true


def text(value: str | bytes, length: int | None = None) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw) if length is None else length) + raw


def value(kind: int, given: Any) -> bytes:
    """A value without its type."""
    if isinstance(given, Array):
        count = len(given.values) if given.count is None else given.count
        inner = b"".join(value(given.kind, item) for item in given.values)
        return struct.pack("<IQ", given.kind, count) + inner
    if kind == TEXT:
        return text(given)
    return struct.pack("<" + _CODES[kind], given) if kind in _CODES else given


def pair(key: str | bytes, kind: int, given: Any) -> bytes:
    return text(key) + struct.pack("<I", kind) + value(kind, given)


def tensor(name: str | bytes, extents: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    """A tensor's record; the extents are in ggml's order, the elements of a row first."""
    axes = len(extents)
    return text(name) + struct.pack(f"<I{axes}QIQ", axes, *extents, kind, offset)


def gguf(
    pairs: list[bytes] = [],  # noqa: B006 - never changed
    tensors: list[bytes] = [],  # noqa: B006
    data: bytes = b"",
    *,
    version: int = 3,
    magic: bytes = b"GGUF",
    tensor_count: int | None = None,
    pair_count: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A whole file."""
    head = magic + struct.pack(
        "<IQQ",
        version,
        len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if pair_count is None else pair_count,
    )
    head += b"".join(pairs) + b"".join(tensors)
    return head + b"\0" * (-len(head) % alignment) + data
