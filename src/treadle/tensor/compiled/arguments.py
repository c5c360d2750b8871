"""The arguments of one call: the key of the trace that fits them, and the memory of their
elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType
from treadle.graph import views
from treadle.graph.history import recording
from treadle.graph.views import View
from treadle.runtime import settings
from treadle.runtime.devices import Device, default_device
from treadle.tensor.cells import Cell
from treadle.tensor.compiled.structure import (
    assign,
    children,
    flatten,
    is_array,
    is_nested,
    named_leaves,
    unhashable,
)
from treadle.tensor.conversions import mixed_devices
from treadle.tensor.creation import asarray
from treadle.tensor.precision import modes
from treadle.tensor.tensor import Tensor


class Source:
    """Memory of arguments: a range of a cell's elements, or a NumPy array."""

    __slots__ = ("cell", "data", "high", "low")

    def __init__(self, cell: Any, data: Any, low: int, high: int) -> None:
        self.cell: Cell = cell
        self.data: np.ndarray[Any, Any] | None = data
        self.low = low
        self.high = high


class Arguments:
    """The arguments of a call. `leaves` are their arrays, and `places` has for each the number of
    its source and its view of that (None: all of it). `key` is equal for calls that one trace
    fits, `structure` for those that differ in their `sizes` only: the integers among the arguments,
    and the shapes, strides and offsets of the arrays."""

    __slots__ = (
        "args", "device", "key", "kwargs", "leaves", "places", "sizes", "sources", "structure",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        device: Device | None,
    ) -> None:
        self.args = args
        self.kwargs = kwargs
        self.leaves: list[Any] = []
        self.sources: list[Source] = []
        self.places: list[tuple[int, View | None]] = []
        parts: list[Any] = [len(args)]
        sizes: list[int] = []
        try:
            for value in args:
                flatten(value, parts, self.leaves, sizes)
            for each in kwargs:  # in their order, which `**kwargs` shows to a function
                parts.append(each)
                flatten(kwargs[each], parts, self.leaves, sizes)
        except TypeError as error:
            raise self._refusal(name) or error from None
        self.device = self._find(device)
        self._add_to_key(parts, sizes, name)
        # The stream changes when the device was closed.
        parts += (self.device.default_stream, settings.check, recording.get(), *modes())
        self.sizes = tuple(sizes)
        self.structure = tuple(parts)
        self.key = (self.sizes, self.structure)

    def require_gradients(self) -> bool:
        """Whether operations on them are recorded for a backward pass."""
        return recording.get() and any(
            type(each) is Tensor and each._history is not None for each in self.leaves
        )

    def _refusal(self, name: str) -> TypeError | None:
        for path, value in self.named():
            found = unhashable(path, value)
            if found is not None:
                return TypeError(
                    f"{name} is compiled, and remembers what it was called with: the argument "
                    f"{found} cannot be a key of traces, since it has no hash. Pass a tensor, a "
                    "number, or a tuple, list or dict of them"
                )
        return None

    def named(self) -> list[tuple[str, Any]]:
        """The arguments with their names."""
        found = [(f"{at + 1}", value) for at, value in enumerate(self.args)]
        return found + list(self.kwargs.items())

    def _find(self, device: Device | None) -> Device:
        """Find the sources of the leaves. Returns the device that they are on."""
        known: dict[Cell, int] = {}
        sources, places = self.sources, self.places
        for at, leaf in enumerate(self.leaves):
            if type(leaf) is np.ndarray:
                places.append((len(sources), None))
                sources.append(Source(None, leaf, 0, leaf.size))
                continue
            if type(leaf) is not Tensor:
                leaf = self.leaves[at] = asarray(leaf)
            if leaf._cell.base is not None:  # it has no memory of its own
                leaf = self.leaves[at] = leaf.copied()
                leaf._locked = True
            cell, view = leaf._cell, leaf._view
            low, high = (0, cell.value.size) if view is None else views.reach(view)
            number = known.get(cell)
            if number is None:
                known[cell] = number = len(sources)
                sources.append(Source(cell, None, low, high))
                if device is None:
                    device = cell.value.device
            else:
                source = sources[number]
                source.low, source.high = min(low, source.low), max(high, source.high)
            places.append((number, view))
        return device or default_device()

    def _add_to_key(self, parts: list[Any], sizes: list[int], name: str) -> None:
        """Add the properties of the arrays to the key. What is added to the sizes is in the order
        in which `with_sizes` takes it out."""
        device = self.device
        for number, (at, view) in enumerate(self.places):
            source = self.sources[at]
            if source.data is not None:
                parts += (at, source.data.dtype, source.data.ndim)
                sizes += source.data.shape
                continue
            node = source.cell.value
            if node.device is not device:
                raise mixed_devices(f"{name}, which is compiled", device, node.device)
            array = node.array
            dtype = node.dtype.short if type(node.dtype) is DType else node.dtype
            leaf = self.leaves[number]
            locked = leaf._locked or (array is not None and array.key.read_only)
            if view is None:
                parts += (at, len(node.shape), dtype, locked)
                sizes += node.shape
            else:
                moved = View(view.shape, view.strides, view.offset - source.low)
                self.places[number] = at, moved
                parts += (at, View, len(view.shape), dtype, locked)
                sizes += view.shape
                sizes += view.strides
                sizes += (moved.offset, source.high - source.low)

    def with_sizes(self, numbers: Sequence[Any]) -> Symbolic:
        """The arguments' sizes with other numbers in their places, as many as there are sizes."""
        following = iter(numbers)
        integers = [next(following) for _ in range(self._integers())]
        shapes: list[tuple[Any, ...] | None] = [None] * len(self.sources)
        places: list[tuple[int, View | None]] = []
        for at, view in self.places:
            source = self.sources[at]
            if view is None:
                shape = source.data.shape if source.data is not None else source.cell.value.shape
                shapes[at] = tuple([next(following) for _ in shape])
                places.append((at, None))
                continue
            extents = tuple([next(following) for _ in view.shape])
            strides = tuple([next(following) for _ in view.strides])
            places.append((at, View(extents, strides, next(following))))
            stretch = (next(following),)
            if shapes[at] is None:
                shapes[at] = stretch
        return Symbolic(integers, [shape or () for shape in shapes], places)

    def _integers(self) -> int:
        """How many of the arguments are integers."""
        return sum(
            type(each) is int
            for name, value in self.named()
            for _, each in named_leaves(name, value)
        )

    def size_names(self, parameters: Sequence[str]) -> list[str]:
        """The names of the sizes, for people; those of the function's positional parameters are
        given."""
        integers: list[str] = []
        arrays: list[str] = []
        for at, (name, value) in enumerate(self.named()):
            if at < len(self.args):
                name = parameters[at] if at < len(parameters) else f"argument {at + 1}"
            for path, each in named_leaves(name, value):
                if type(each) is int:
                    integers.append(path)
                elif is_array(each):
                    arrays.append(path)
        found = integers
        for path, (_, view), leaf in zip(arrays, self.places, self.leaves, strict=True):
            axes = range(len(leaf.shape))
            found += [f"{path}.shape[{axis}]" for axis in axes]
            if view is not None:
                found += [f"{path}.strides[{axis}]" for axis in axes]
                found += [f"{path}.offset", f"{path}.stretch"]
        return found

    def overlap(self) -> bool:
        """Whether arguments from other libraries share memory, which their cells do not show."""
        arrays = [s.cell.value.array for s in self.sources if s.data is None]
        shared = [array for array in arrays if array is not None and array.storage.shared]
        if len(shared) < 2 or not self.device.traits.has_addresses:
            return False
        bounds = []
        for array in shared:
            first = array.buffer.address() + array.offset * array.dtype.itemsize
            bounds.append((first, first + array.size * array.dtype.itemsize))
        bounds.sort()
        return any(end > start for (_, end), (start, _) in pairwise(bounds))

    def containers(self) -> list[Any]:
        """The lists, dicts and dataclasses among the arguments, inner ones first."""
        found: list[Any] = []
        for _, value in self.named():
            _contained(value, found)
        return found


class Symbolic(NamedTuple):
    """What a trace sees of arguments: their integers, the shapes of the memory of their sources,
    and the views of it."""

    integers: list[Any]
    shapes: list[tuple[Any, ...]]
    places: list[tuple[int, View | None]]


def _contained(value: Any, found: list[Any]) -> None:
    if is_nested(value):
        for _, each in children(value):
            _contained(each, found)
        if not isinstance(value, tuple):
            found.append(value)


class Content:
    """The content of a list, dict or dataclass at one time."""

    __slots__ = ("keys", "values")

    def __init__(self, container: Any) -> None:
        self.keys: Sequence[Any] | None = list(container) if isinstance(container, dict) else None
        self.values = [each for _, each in children(container)]

    def same(self, other: Content) -> bool:
        """Whether another content consists of the same objects."""
        if self.keys != other.keys or len(self.values) != len(other.values):
            return False
        return all(one is two for one, two in zip(self.values, other.values, strict=True))

    def put(self, container: Any, values: Sequence[Any]) -> None:
        """Set the keys and values of a container."""
        assign(container, values, self.keys)
