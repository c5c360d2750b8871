"""Nested arguments and results: tuples, lists, dicts, named tuples and dataclasses of tensors.

They are traversed in one order: that of the elements, of a dict's keys, of a dataclass's fields.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from treadle.runtime.foreign import kind_of
from treadle.tensor.compiled.code_origin import is_library_class
from treadle.tensor.tensor import Tensor

LEAF = object()  # stands for an array in a key

_PLAIN = frozenset({bool, str, bytes, type(None)})
_NESTED = (tuple, list, dict)


# --- keys of arguments ------------------------------------------------------------


def flatten(value: Any, parts: list[Any], leaves: list[Any], sizes: list[int]) -> None:
    """Flatten a value: append its arrays to `leaves`, its integers to `sizes`, and everything else
    to `parts`, so that parts and sizes are equal for equivalent values. TypeError for a value
    without a hash."""
    kind = type(value)
    if kind is Tensor or kind is np.ndarray:
        parts.append(LEAF)
        leaves.append(value)
    elif kind is int:
        parts.append(int)
        sizes.append(value)
    elif kind in _PLAIN:
        parts += (kind, value)
    elif kind is float or kind is complex:
        parts += (kind, repr(value))  # as text, since 0.0 == -0.0 and nan != nan
    elif isinstance(value, _NESTED) and is_nested(value):
        parts += (kind, len(value))
        if isinstance(value, dict):
            parts += value.keys()
            value = value.values()
        for each in value:
            flatten(each, parts, leaves, sizes)
    elif is_nested(value):
        parts.append(kind)
        for field in dataclasses.fields(value):
            flatten(getattr(value, field.name), parts, leaves, sizes)
    elif isinstance(value, np.generic):
        parts += (kind, value.tobytes())
    elif kind is slice:
        parts.append(kind)
        for each in (value.start, value.stop, value.step):
            flatten(each, parts, leaves, sizes)
    elif isinstance(value, Tensor) or kind_of(value) is not None:
        parts += (kind, LEAF)
        leaves.append(value)
    elif is_library_class(kind) or kind.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        hash(value)
        parts += (kind, value)
    else:  # equal objects may differ in attributes that the function reads
        hash(value)
        parts += (kind, value, id(value))


def is_nested(value: Any) -> bool:
    """Whether a value is a container that is flattened."""
    if isinstance(value, tuple):
        return type(value) is tuple or hasattr(value, "_fields")
    if isinstance(value, (list, dict)):
        return True
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def is_array(value: Any) -> bool:
    """Whether a value is a leaf for `flatten`."""
    if isinstance(value, (Tensor, np.ndarray)):
        return True
    return not isinstance(value, np.generic) and kind_of(value) is not None


def children(value: Any) -> list[tuple[str, Any]]:
    """The elements of a nested value, each with the suffix that selects it from the value's
    name."""
    if isinstance(value, dict):
        return [(f"[{key!r}]", each) for key, each in value.items()]
    if isinstance(value, tuple) and type(value) is not tuple:
        return [(f".{name}", each) for name, each in zip(value._fields, value, strict=True)]  # type: ignore[attr-defined]
    if isinstance(value, (tuple, list)):
        return [(f"[{at}]", each) for at, each in enumerate(value)]
    if isinstance(value, slice):
        return [(f".{name}", getattr(value, name)) for name in ("start", "stop", "step")]
    return [(f".{each.name}", getattr(value, each.name)) for each in dataclasses.fields(value)]


def named_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values in a nested value that are not containers, with their paths, in the order of
    `flatten`."""
    if is_nested(value) or type(value) is slice:
        for path, each in children(value):
            yield from named_leaves(name + path, each)
    else:
        yield name, value


def unhashable(name: str, value: Any) -> str | None:
    """The path of a part of a value that has no hash, if there is one."""
    for path, each in named_leaves(name, value):
        try:
            flatten(each, [], [], [])
        except TypeError:
            return path
    return None


# --- the same structure with other leaves --------------------------------------------------------


def with_leaves(
    value: Any,
    leaf: Callable[[Any], Any],
    made: list[tuple[Any, Any]],
    integer: Callable[[int], Any] = lambda value: value,
) -> Any:
    """A value with each of its arrays replaced by `leaf(array)`, and its integers by
    `integer(value)`; itself if it has none. Mutable containers are appended to `made`, each with
    its replacement."""
    if type(value) is int:
        return integer(value)
    if is_array(value):
        return leaf(value)
    if type(value) is slice:
        return slice(*[with_leaves(each, leaf, made, integer) for _, each in children(value)])
    if not is_nested(value):
        return value
    old = [each for _, each in children(value)]
    new = [with_leaves(each, leaf, made, integer) for each in old]
    if all(one is other for one, other in zip(old, new, strict=True)):
        if not isinstance(value, tuple):
            made.append((value, value))
        return value
    found = rebuilt(value, new)
    if not isinstance(value, tuple):
        made.append((value, found))
    return found


def rebuilt(value: Any, new: Sequence[Any]) -> Any:
    """A nested value with other elements."""
    if isinstance(value, tuple):
        return tuple(new) if type(value) is tuple else type(value)._make(new)  # type: ignore[attr-defined]
    found = copy.copy(value)
    assign(found, new, list(value) if isinstance(value, dict) else None)
    return found


def assign(target: Any, new: Sequence[Any], keys: Sequence[Any] | None = None) -> None:
    """Replace the elements of a list, a dict (with these keys) or a dataclass."""
    if isinstance(target, list):
        target[:] = new
    elif isinstance(target, dict):
        assert keys is not None
        target.clear()
        target.update(zip(keys, new, strict=True))
    else:
        for field, each in zip(dataclasses.fields(target), new, strict=True):
            if getattr(target, field.name) is not each:
                object.__setattr__(target, field.name, each)


def collect(value: Any, found: list[Tensor]) -> None:
    """Append the tensors in a value to `found`."""
    if isinstance(value, Tensor):
        found.append(value)
    elif is_nested(value):
        for _, each in children(value):
            collect(each, found)


# --- results -------------------------------------------------------------------------------------

Builder = Callable[[Sequence[Any]], Any]


def builder(value: Any, place: Callable[[Any], int | None]) -> Builder:
    """A function that rebuilds a value from new values. `place` returns the number of the new value
    for a tensor or a container, None if it has none."""
    at = place(value)
    if at is not None:
        return lambda values: values[at]
    if not is_nested(value):
        return lambda _: value
    parts = [builder(each, place) for _, each in children(value)]
    if type(value) is tuple:
        return lambda values: tuple([part(values) for part in parts])
    if type(value) is list:
        return lambda values: [part(values) for part in parts]
    if type(value) is dict:
        keys = list(value)
        return lambda values: dict(zip(keys, [part(values) for part in parts], strict=True))
    blank = rebuilt(value, [None] * len(parts))  # a copy without tensors of the trace
    if isinstance(value, dict):
        keys = list(value)

        def anew(values: Sequence[Any]) -> Any:
            found = copy.copy(blank)
            assign(found, [part(values) for part in parts], keys)
            return found

        return anew
    return lambda values: rebuilt(blank, [part(values) for part in parts])
