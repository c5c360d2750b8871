"""A built kernel: its code with what a launch must know about it, and its form on disk.

The bytes on disk are plain data: a length, JSON of that length, and the machine code if there is
any. The JSON holds the records below, each as a list of its name and its fields. Only these records
are constructed from it, so that an entry cannot run code when it is read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from treadle.codegen.records import KernelCode
from treadle.core.errors import FormatError
from treadle.ir.types import PAIR_OF_FLOATS, SCALARS, Scalar


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """Generated code, and what a launch must know about it."""

    code: KernelCode
    sites: tuple[Any, ...]  # of the prints and checks whose results it reports
    written: frozenset[int]  # positions of the array arguments that it writes to
    read: frozenset[int]  # positions of those that it reads
    whole: bool = False  # launched by threads, and needs whole subgroups of them


# The records that an entry may hold, and the modules that define them, imported on first use.
_RECORDS = {
    "Binding": "treadle.codegen.records",
    "BuiltKernel": "treadle.runtime.built_kernel",
    "Conversion": "treadle.core.printf",
    "Dim3": "treadle.core.dim3",
    "KernelCode": "treadle.codegen.records",
    "Parameter": "treadle.ir.nodes",
    "ParameterLayout": "treadle.codegen.records",
    "ReportSite": "treadle.ir.passes.instrument",
    "Slot": "treadle.codegen.records",
    "Span": "treadle.core.source",
    "TensorMap": "treadle.codegen.records",
    "Spelling": "treadle.ir.passes.instrument",
}
_LENGTH = 8  # bytes of the length in front


def to_bytes(built: BuiltKernel, binary: bytes | None) -> bytes:
    """The content of a compiled kernel's entry on disk."""
    text = json.dumps([_plain(built), binary is not None], separators=(",", ":")).encode()
    return len(text).to_bytes(_LENGTH, "little") + text + (binary or b"")


def from_bytes(data: bytes) -> tuple[BuiltKernel, bytes | None]:
    """The inverse of `to_bytes`. FormatError for bytes that `to_bytes` does not produce."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    try:
        plain, has_binary = json.loads(data[_LENGTH:end])
        built = _record(plain)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise FormatError(f"this is not a compiled kernel: {error}") from None
    if not isinstance(built, BuiltKernel) or end > len(data) or len(data) < _LENGTH:
        raise FormatError("this is not a compiled kernel")
    return built, data[end:] if has_binary else None


def _plain(value: Any) -> Any:
    """A value in JSON's types: strings, numbers and None as they are, everything else as a list
    whose first element names its type."""
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
        return PAIR_OF_FLOATS if parts[0] == PAIR_OF_FLOATS.name else SCALARS[parts[0]]
    made = map(_record, parts)
    if kind == "tuple":
        return tuple(made)
    if kind == "frozenset":
        return frozenset(made)
    return _maker(kind)(*made)


@cache
def _maker(name: str) -> Any:
    return getattr(import_module(_RECORDS[name]), name)
