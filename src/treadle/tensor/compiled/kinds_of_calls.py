"""Kinds of calls: those with arguments of the same dtypes, values and about the same sizes, which
are placed together.

Extents of arrays, and integers, count by class: eight to an octave, each for itself up to 16. So a
loop over sizes that never come up again has kinds of calls, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any
from weakref import ref

import numpy as np

from treadle.graph.history import recording
from treadle.runtime.costs import Work
from treadle.runtime.devices import Device
from treadle.tensor.compiled.choice import Choice
from treadle.tensor.compiled.structure import LEAF, flatten, is_array, named_leaves
from treadle.tensor.compiled.work import Recorded
from treadle.tensor.precision import modes
from treadle.tensor.tensor import Tensor

_EXACT = 16  # the largest size that is a class of its own
_CLASSES = 8  # of sizes between one and its double
_LONGEST = 40  # characters of a value in a text
_PLAIN = frozenset({int, bool, str, bytes, type(None)})


class Kind:
    """The calls of one kind."""

    __slots__ = (
        "choice", "facts", "has_containers", "home", "is_numpy", "key", "other", "running", "shown",
        "text", "work",
    )  # fmt: skip

    def __init__(
        self, text: str, home: Device, other: Device | None, is_numpy: bool, containers: bool
    ) -> None:
        self.text = text  # the arguments of its first call
        self.home = home
        self.other = other
        self.is_numpy = is_numpy  # arrays are NumPy's, and there are some: results will be, too
        self.has_containers = containers
        self.choice = Choice()
        self.facts: Recorded | None = None  # what the trace at home shows
        self.work: Work | None = None
        self.key = ""  # on disk
        self.shown: bool | None = None  # what TREADLE_EXPLAIN has shown: whether it runs away
        self.running: Any = None  # the call that began last, until it ends


def key_of(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], default: Device
) -> tuple[tuple[Any, ...], list[Any]]:
    """The key of the kind of a call, and its arrays. It holds none of the objects among the
    arguments. TypeError for one without a hash."""
    parts: list[Any] = [default, *modes()]
    leaves: list[Any] = []
    for value in args:
        if type(value) is np.ndarray:
            parts += (value.dtype, value.shape)
            leaves.append(value)
        else:
            _add(value, parts, leaves)
    for name in kwargs:
        parts.append(name)
        _add(kwargs[name], parts, leaves)
    return tuple(parts), leaves


def class_of(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key of the calls that are placed together with those of a key."""
    return tuple([
        tuple(map(size_class, part)) if type(part) is tuple
        else size_class(part) if type(part) is int
        else part
        for part in key
    ])  # fmt: skip


def size_class(size: int) -> int:
    """The class of an extent or an integer; itself up to 16.

    >>> [size_class(n) for n in (-1, 0, 1, 16, 17, 18, 19, 32, 1000, 1050)]
    [-1, 0, 1, 16, 17, 17, 18, 24, 64, 64]
    """
    return size if size <= _EXACT else _EXACT + max(round(_CLASSES * math.log2(size / _EXACT)), 1)


def representative(size: int) -> int:
    """The size that stands for all of a size's class.

    >>> [representative(n) for n in (0, 16, 1000, 1050)]
    [0, 16, 1024, 1024]
    """
    found = size_class(size)
    return found if found <= _EXACT else round(_EXACT * 2 ** ((found - _EXACT) / _CLASSES))


def _add(value: Any, parts: list[Any], leaves: list[Any]) -> None:
    if type(value) in _PLAIN:
        parts += (type(value), value)
        return
    found: list[Any] = []
    own: list[Any] = []
    sizes: list[int] = []
    flatten(value, found, own, sizes)
    parts += map(_weak, found)
    parts += sizes
    for leaf in own:
        if type(leaf) is np.ndarray:
            parts += (leaf.dtype, leaf.shape)
        elif isinstance(leaf, Tensor):
            needs = leaf._history is not None and recording.get()
            parts += (leaf.shape, leaf.dtype, leaf.device, needs)
    leaves += own


def _weak(part: Any) -> Any:
    """A part of a key which does not keep an object alive."""
    if type(part) in _PLAIN or isinstance(part, type) or part is LEAF:
        return part
    try:
        return ref(part)
    except TypeError:
        return part


def leaves_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arrays among the arguments of a call."""
    values = (*args, *kwargs.values())
    return [each for value in values for _, each in named_leaves("", value) if is_array(each)]


def text_of(
    function: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    size: Callable[[int], int] = lambda size: size,
) -> str:
    """The arguments of a kind of calls, as people read them. `size` says what is shown for one."""
    code = getattr(function, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    found = []
    for at, value in enumerate(args):
        name = names[at] if at < len(names) else f"argument {at + 1}"
        found += [_shown(path, leaf, size) for path, leaf in named_leaves(name, value)]
    for name, value in kwargs.items():
        found += [_shown(path, leaf, size) for path, leaf in named_leaves(name, value)]
    return ", ".join(found) or "no arguments"


def _shown(name: str, value: Any, size: Callable[[int], int]) -> str:
    """A name and its value, an array by its dtype and shape."""
    if type(value) is np.ndarray or isinstance(value, Tensor):
        where = f" on {value.device.id}" if isinstance(value, Tensor) else ""
        return f"{name} {value.dtype}{list(map(size, value.shape))}{where}"
    if type(value) in _PLAIN or type(value) is float:
        text = repr(size(value) if type(value) is int else value)
        return f"{name} {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
    return f"{name} ({type(value).__name__})"
