"""States as a table of tensors and a JSON value that says how they hang together.

A state is made of dictionaries, lists and tuples of tensors, NumPy arrays, numbers, texts, truth
values and None. In its JSON form

- None, truth values, integers, texts and finite floats are themselves, and lists are lists;
- `{"tensor": name}` and `{"array": name}` are a tensor and a NumPy array of the table;
- `{"dict": [[key, value], …]}` and `{"tuple": […]}` are those;
- `{"float": "nan"}` and `{"complex": [re, im]}` are numbers that JSON lacks.

What is one tensor at several places of a state has one name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, FormatError
from treadle.tensor.tensor import Tensor

_DEEPEST = 100
_STATES = ("state_dict", "get_state", "blocks")  # what has one of these is saved by what it gives
_KEYS = (str, int, float, bool, type(None))  # JSON's own values, which are always hashable


class Encoded(NamedTuple):
    """A state as tensors by name and a structure."""

    table: dict[str, Tensor | np.ndarray[Any, Any]]
    structure: Any
    # Of a dictionary of tensors by their names: the names of those that have another name, which
    # the table has. None for other states, which need their structure.
    ties: dict[str, str] | None


def encode(state: Any) -> Encoded:
    """The tensors of a state by names, and its structure.

    TypeError for what cannot be saved, with its place in the state.
    """
    found = _Found()
    structure = found.encode(state, (), 0)
    if not isinstance(state, Mapping) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in state.items()
    ):
        return Encoded(found.table, structure, None)
    names = {key: value["tensor"] for key, value in structure["dict"]}
    ties = {key: name for key, name in names.items() if key != name}
    named = all(names.get(name) == name for name in names.values())
    return Encoded(found.table, structure, ties if named else None)


class _Found:
    def __init__(self) -> None:
        self.table: dict[str, Tensor | np.ndarray[Any, Any]] = {}
        self.names: dict[Any, str] = {}  # of tensors, by what they see

    def encode(self, value: Any, path: tuple[Any, ...], depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(
                f"a state can be saved up to {_DEEPEST} levels deep: does {_place(path[:3])}… "
                "contain itself?"
            )
        if value is None or type(value) in (bool, int, str):
            return value
        if isinstance(value, Tensor):
            return {"tensor": self.name_of(value, path)}
        if isinstance(value, np.ndarray):
            return {"array": self.named(value, path)}
        if isinstance(value, np.generic) and type(value.item()) in (bool, int, float, complex, str):
            return self.encode(value.item(), path, depth)
        if isinstance(value, (int, str)):  # of a class of their own
            return int(value) if isinstance(value, int) else str(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, complex):
            return {"complex": [repr(value.real), repr(value.imag)]}
        if isinstance(value, Mapping):
            return {"dict": [self.pair(*item, path, depth) for item in value.items()]}
        if isinstance(value, (list, tuple)):
            parts = [self.encode(one, (*path, i), depth + 1) for i, one in enumerate(value)]
            return parts if isinstance(value, list) else {"tuple": parts}
        hint = next((f": save its {name}()" for name in _STATES if hasattr(value, name)), "")
        raise TypeError(
            f"{_place(path)} is a {type(value).__name__}, and what is saved are tensors, numbers, "
            f"texts and None in dictionaries, lists and tuples{hint}"
        )

    def pair(self, key: Any, value: Any, path: tuple[Any, ...], depth: int) -> list[Any]:
        if type(key) not in _KEYS or (isinstance(key, float) and not math.isfinite(key)):
            raise TypeError(
                f"{_place(path)} has the key {key!r}, and keys that are saved are texts, numbers, "
                "truth values or None"
            )
        return [key, self.encode(value, (*path, key), depth + 1)]

    def name_of(self, tensor: Tensor, path: tuple[Any, ...]) -> str:
        if not isinstance(tensor.dtype, DType):
            raise DtypeError(f"{_place(path)} is an array of structs: save each field by itself")
        seen = tensor._cell, tensor._where
        if seen not in self.names:
            self.names[seen] = self.named(tensor, path)
        return self.names[seen]

    def named(self, value: Tensor | np.ndarray[Any, Any], path: tuple[Any, ...]) -> str:
        base = name = ".".join(map(str, path)) or "state"
        count = 1
        while name in self.table or name == "__metadata__":
            count += 1
            name = f"{base}~{count}"
        self.table[name] = value
        return name


def _place(path: tuple[Any, ...]) -> str:
    return "state" + "".join(f"[{part!r}]" for part in path)


def decode(structure: Any, tensor: Callable[[str], Any], array: Callable[[str], Any]) -> Any:
    """The state of a structure; `tensor` and `array` give those of a name.

    FormatError if it is not a structure that `encode` makes.
    """

    def decode(value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise FormatError(f"the structure of the state is over {_DEEPEST} levels deep")
        if isinstance(value, list):
            return [decode(one, depth + 1) for one in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((tag, content),) = value.items()
            if tag in ("tensor", "array") and isinstance(content, str):
                return (tensor if tag == "tensor" else array)(content)
            if tag == "tuple" and isinstance(content, list):
                return tuple([decode(one, depth + 1) for one in content])
            if tag == "dict" and isinstance(content, list):
                return dict(pair(one, depth) for one in content)
            if tag == "float" and content in ("nan", "inf", "-inf"):
                return float(content)
            if tag == "complex" and isinstance(content, list) and len(content) == 2:
                return _complex(content)
        raise _unknown(value)

    def pair(value: Any, depth: int) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2 or type(value[0]) not in _KEYS:
            raise _unknown(value)
        return value[0], decode(value[1], depth + 1)

    return decode(structure, 0)


def _complex(parts: list[Any]) -> complex:
    try:
        if all(isinstance(part, str) for part in parts):
            return complex(float(parts[0]), float(parts[1]))
    except ValueError:
        pass
    raise _unknown(parts)


def _unknown(value: Any) -> FormatError:
    return FormatError(
        f"the structure of the state has {repr(value)[:60]}, which this version of treadle does "
        "not know"
    )
