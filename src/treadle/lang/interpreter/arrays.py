"""Arrays of the interpreter: NumPy memory with bounds checks as in kernels, and assignable
places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_number_dtype
from treadle.core.errors import LaunchError
from treadle.ir import types as t
from treadle.lang import rules
from treadle.lang.interpreter import numbers
from treadle.lang.matrices import METHODS, Matrix
from treadle.lang.positions import GridPos, ShiftedPos
from treadle.lang.rules import Literal
from treadle.lang.types import Vector, annotation_of, ir_type, is_struct, make_value, store_value
from treadle.runtime import settings


class KernelArray:
    """An array as a kernel sees it: indices do not wrap, loads outside give zero, and stores
    outside are dropped."""

    def __init__(self, data: np.ndarray[Any, Any], element: t.Type, name: str = "array") -> None:
        self.data = _pairs(data) if data.dtype.kind == "c" else data
        self.element = element
        self.annotation = annotation_of(element)
        self.name = name
        # Vectors and fixed arrays add axes at the end of NumPy's shape.
        inner = 1 if isinstance(element, (t.Vector, t.Array)) else 0
        self.extents = self.data.shape[: self.data.ndim - inner]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.extents)

    @property
    def size(self) -> Any:
        """The number of elements."""
        return np.int32(np.prod(self.extents, dtype=np.int64))

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extent along each axis."""
        return tuple(np.int32(extent) for extent in self.extents)

    @property
    def dtype(self) -> DType:
        """The dtype of an array of numbers."""
        assert isinstance(self.annotation, DType)
        return self.annotation

    def __len__(self) -> int:
        return int(self.extents[0])

    def find(self, index: Any) -> tuple[int, ...] | None:
        """An index in NumPy's form; None if it is outside. TypeError for a value that is not an
        index."""
        if isinstance(index, GridPos):
            index = index.index
        if isinstance(index, ShiftedPos):
            index = index.indices(self.extents)
            if not all(0 <= at < extent for at, extent in zip(index, self.extents, strict=True)):
                return None
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) != self.ndim:
            raise TypeError(f"{self.name} has {self.ndim} axes, and the index has {len(parts)}")
        found = []
        for axis, (part, extent) in enumerate(zip(parts, self.extents, strict=True)):
            at = index_value(part)
            if not 0 <= at < extent:
                if settings.check:
                    raise LaunchError(
                        f"{self.name}: index {at} is outside axis {axis} of {extent} elements"
                    )
                return None
            found.append(at)
        return tuple(found)

    def load(self, index: Any) -> Any:
        """The element at an index; zero outside. At a position, what its rules say."""
        if isinstance(index, GridPos):
            return index.at(self, *(0 for _ in index.index))
        if isinstance(index, ShiftedPos):
            return index.position.at(self, *index.offsets)
        at = self.find(index)
        if at is None:
            return make_value(self.annotation, None)
        value = make_value(self.annotation, self.data[at])
        if is_struct(self.annotation):
            _share_arrays(value, self.data[at])
        return value

    def store(self, index: Any, value: Any) -> None:
        """Store a value, converted to the element's type; nothing if the index is outside."""
        at = self.find(index)
        if at is not None:
            store_value(self.data, at, converted(value, self.annotation))

    def __iter__(self) -> Iterator[Any]:
        return (self.load(np.int32(at)) for at in range(self.extents[0]))

    def grid(self, index: Any) -> KernelArray | None:
        """The grid `f[q]` of a stack of them; None if an index is of an element."""
        parts = index if isinstance(index, tuple) else (index,)
        if isinstance(index, (GridPos, ShiftedPos)) or len(parts) >= self.ndim:
            return None
        return KernelArray(self.data[tuple(map(index_value, parts))], self.element, self.name)

    def __repr__(self) -> str:
        return f"{self.name} = {self.data!r}"


class ArrayObject:
    """An object with methods of its own, whose items are those of an array."""

    def __init__(self, items: KernelArray) -> None:
        self.items = items


def constant_array(data: np.ndarray[Any, Any]) -> KernelArray:
    """A NumPy array that a kernel captures from outside."""
    return KernelArray(data, t.SCALARS[as_number_dtype(data.dtype).short], "an array from outside")


def _pairs(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Complex numbers seen as real and imaginary parts, along one more axis."""
    steps = (*data.strides, data.itemsize // 2)
    return np.lib.stride_tricks.as_strided(data.real, (*data.shape, 2), steps)


def _share_arrays(value: Any, record: Any) -> None:
    """Make the fixed arrays of a loaded struct views of memory, so that `a[i].items[k]` is a place.
    (A local variable gets a copy when it is assigned.)"""
    for name in type(value).__treadle_fields__:
        part = getattr(value, name)
        if isinstance(part, np.ndarray):
            vars(value)[name] = record[name]
        elif is_struct(type(part)):
            _share_arrays(part, record[name])


def index_value(part: Any) -> int:
    """The index along one axis as an int; TypeError, with the reason, for other values."""
    if not numbers.is_number(part):
        raise TypeError(f"an index is an integer, not {part!r}")
    kind = numbers.operand(part)
    problem = None if isinstance(kind, Literal) and kind.value < 0 else rules.index_problem(kind)
    if problem:
        raise TypeError(problem)
    return int(part)


def converted(value: Any, annotation: Any) -> Any:
    """A value as the annotated type: numbers are cast, others copied."""
    if isinstance(annotation, DType):
        return numbers.cast(value, t.SCALARS[annotation.short])
    return make_value(annotation, value)


def copied(value: Any) -> Any:
    """A copy of a struct or vector; any other value as it is."""
    if isinstance(value, Vector):
        return Vector(value.type, *value.parts)
    if is_struct(type(value)):
        return make_value(type(value), value)
    return value


# --- places --------------------------------------------------------------------------------------


@dataclass
class ElementPlace:
    """The place `a[i]`, which is loaded and stored."""

    base: Any  # an array, or the place of a vector or fixed array
    index: Any

    def load(self) -> Any:
        """The value there."""
        return item(loaded(self.base), self.index)

    @property
    def is_grid(self) -> bool:
        """Whether it is the grid `f[q]` of a stack, which is a view."""
        base = self.base
        return isinstance(base, KernelArray) and base.grid(self.index) is not None

    def store(self, value: Any) -> None:
        """Store a value there."""
        base = loaded(self.base)
        if isinstance(base, Matrix):
            self._store_in_matrix(base, value)
            return
        if isinstance(base, KernelArray):
            base.store(self.index, value)
            if not (isinstance(self.base, ElementPlace) and self.base.is_grid):
                put_back(self.base, base.data)
            return
        at = index_value(self.index)
        if isinstance(self.index, np.generic) and not is_inside(at, len(base)):
            return
        setattr(base, t.COMPONENTS[at], numbers.cast(value, t.SCALARS[base.type.dtype.short]))
        put_back(self.base, base)

    def _store_in_matrix(self, base: Matrix, value: Any) -> None:
        row, *column = self.index if isinstance(self.index, tuple) else (self.index,)
        if isinstance(row, np.generic) and not is_inside(row, base.rows):
            return
        if not column:
            base[row] = copied(value)
        elif not isinstance(column[0], np.generic) or is_inside(column[0], base.columns):
            base[row, column[0]] = numbers.cast(value, t.SCALARS[base.element.short])
        put_back(self.base, base)


@dataclass
class MemberPlace:
    """The place `p.x` or `a[i].x`."""

    base: Any
    name: str

    def load(self) -> Any:
        """The value there."""
        return attribute(loaded(self.base), self.name)

    def store(self, value: Any) -> None:
        """Store a value there, and the changed struct or vector in its own place."""
        owner = loaded(self.base)
        if isinstance(owner, Vector):
            value = numbers.cast(value, t.SCALARS[owner.type.dtype.short])
        elif is_struct(type(owner)):
            value = converted(value, type(owner).__treadle_fields__[self.name])
        setattr(owner, self.name, value)
        put_back(self.base, owner)


def loaded(base: Any) -> Any:
    """A place's value, or a value itself."""
    if isinstance(base, ArrayObject):
        return base.items
    return base.load() if isinstance(base, (ElementPlace, MemberPlace)) else base


def put_back(base: Any, value: Any) -> None:
    """Store a changed value in the place that it was loaded from."""
    if isinstance(base, (ElementPlace, MemberPlace)):
        base.store(value)


def item(owner: Any, index: Any) -> Any:
    """`owner[index]`."""
    if isinstance(owner, ArrayObject):
        owner = owner.items
    if isinstance(owner, np.ndarray):
        owner = constant_array(owner)
    if isinstance(owner, KernelArray):
        grid = owner.grid(index)
        return owner.load(index) if grid is None else grid
    if isinstance(owner, Matrix):
        row, *column = index if isinstance(index, tuple) else (index,)
        found = item(tuple(owner), row)
        return item(found, column[0]) if column else found
    if isinstance(owner, Vector):
        if isinstance(index, np.generic):
            return _at(owner.parts, index)
        return owner.parts[index_value(index)]
    if isinstance(index, np.generic):
        if isinstance(owner, tuple):
            return _at(owner, index)
        index = index.item()
    return owner[index]


def _at(items: Any, index: Any) -> Any:
    """An item of a tuple or a vector, in the common type of all; zero outside."""
    if all(isinstance(each, tuple) for each in items):
        return tuple(_at(column, index) for column in zip(*items, strict=True))
    if not all(map(numbers.is_number, items)) and not all(isinstance(i, Vector) for i in items):
        return items[index.item()]  # a constant: functions or dtypes
    at, inside = index_value(index), is_inside(index, len(items))
    if isinstance(items[0], Vector):
        return items[at] if inside else Vector(items[0].type)
    type = numbers.common_type(items)
    return numbers.cast(items[at] if inside else 0, type)


def is_inside(index: Any, count: int) -> bool:
    """Whether there is an item at an index; LaunchError in check mode if not."""
    inside = 0 <= int(index) < count
    if not inside and settings.check:
        raise LaunchError(f"index {int(index)} is outside {count} items")
    return inside


def attribute(owner: Any, name: str) -> Any:
    """`owner.name`; a fixed array in a struct is a `KernelArray`."""
    if isinstance(owner, Matrix) and name in METHODS:
        return lambda: getattr(owner, f"{name}_by")(numbers.binary)
    if isinstance(owner, np.ndarray):
        owner = constant_array(owner)
    value = getattr(owner, name)
    if isinstance(value, np.ndarray) and is_struct(type(owner)):
        annotation = type(owner).__treadle_fields__[name]
        return KernelArray(value, ir_type(annotation.element), name)
    return value
