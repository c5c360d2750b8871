"""Printed code with what a launch must know about it, and both as bytes for the disk.

The bytes are plain data: a length, JSON of that length, the machine code if there is any. JSON
holds the records below, each as a list of its name and its fields; nothing else is made from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from treadle.codegen.records import KernelCode
from treadle.core.errors import FormatError
from treadle.ir.types import SCALARS, Scalar


@dataclass(frozen=True, slots=True)
class Built:
    """Printed code, and what a launch must know about it."""

    code: KernelCode
    sites: tuple[Any, ...]  # of prints and checks, if it reports any
    written: frozenset[int]  # positions of the array arguments that it writes to
    read: frozenset[int]  # and of those that it reads


# The records that an entry may hold, and where each is defined: some are loaded only if one is met.
_RECORDS = {
    "Binding": "treadle.codegen.records",
    "Built": "treadle.runtime.built",
    "Conversion": "treadle.core.printf",
    "Dim3": "treadle.core.dim3",
    "KernelCode": "treadle.codegen.records",
    "Parameter": "treadle.ir.nodes",
    "ParameterLayout": "treadle.codegen.records",
    "ReportSite": "treadle.ir.passes.instrument",
    "Slot": "treadle.codegen.records",
    "Span": "treadle.core.source",
    "Spelling": "treadle.ir.passes.instrument",
}
_LENGTH = 8  # bytes of the length in front


def to_bytes(built: Built, binary: bytes | None) -> bytes:
    """What is kept of a compiled kernel."""
    text = json.dumps([_plain(built), binary is not None], separators=(",", ":")).encode()
    return len(text).to_bytes(_LENGTH, "little") + text + (binary or b"")


def from_bytes(data: bytes) -> tuple[Built, bytes | None]:
    """What `to_bytes` was given. FormatError for anything that it does not make."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    try:
        plain, has_binary = json.loads(data[_LENGTH:end])
        built = _record(plain)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise FormatError(f"this is not a compiled kernel: {error}") from None
    if not isinstance(built, Built) or end > len(data) or len(data) < _LENGTH:
        raise FormatError("this is not a compiled kernel")
    return built, data[end:] if has_binary else None


def _plain(value: Any) -> Any:
    """A value as JSON knows them: texts, numbers and None as they are, all else as lists whose
    first element says what they are."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Scalar):
        return ["scalar", value.name]
    name = type(value).__name__
    if name in _RECORDS:
        if is_dataclass(value):
            return [name, *(_plain(getattr(value, field.name)) for field in fields(value))]
        return [name, *map(_plain, value)]
    if isinstance(value, frozenset):
        return ["frozenset", *map(_plain, sorted(value))]
    if isinstance(value, tuple):
        return ["tuple", *map(_plain, value)]
    raise TypeError(f"{name} is not among the records of compiled kernels")


def _record(plain: Any) -> Any:
    if not isinstance(plain, list):
        if isinstance(plain, dict):
            raise TypeError("an object of JSON")
        return plain
    kind, *parts = plain
    if kind == "scalar":
        return SCALARS[parts[0]]
    made = map(_record, parts)
    if kind == "tuple":
        return tuple(made)
    if kind == "frozenset":
        return frozenset(made)
    return _maker(kind)(*made)


@cache
def _maker(name: str) -> Any:
    return getattr(import_module(_RECORDS[name]), name)
