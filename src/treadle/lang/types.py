"""The types that annotate a kernel's parameters and fields: vectors, arrays, structs.

Dtypes are in `treadle.core.dtypes`. Every type here knows its IR type and, where it has a layout
in memory, its NumPy dtype, which agrees with C and with NumPy's `align=True`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, overload

import numpy as np

from treadle.core.dtypes import (
    BY_SHORT_NAME,
    DType,
    FixedArray,
    as_dtype,
    as_number_dtype,
    misfit,
    plain_numbers,
)
from treadle.core.errors import DtypeError
from treadle.ir import types as t
from treadle.ir.signature import Declared, DeclaredArray
from treadle.lang import interpreter_state
from treadle.lang.source import resolve_annotations
from treadle.runtime.arrays import remember_struct

# --- vectors -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class VectorType:
    """`td.vec3[td.f32]`. Called, it makes a vector from its components, or from one number."""

    dtype: DType
    count: int

    @property
    def ir(self) -> t.Vector:
        """The IR's type."""
        return t.Vector(t.SCALARS[self.dtype.short], self.count)

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype: a small subarray."""
        return numpy_dtype(self.ir)

    def __call__(self, *parts: Any) -> Vector:
        """A vector of these components."""
        return Vector(self, *parts)

    def __getitem__(self, length: int) -> FixedArray:
        return FixedArray(self, length)

    def __repr__(self) -> str:
        return f"treadle.vec{self.count}[treadle.{self.dtype.name}]"


class TypeFamily:
    """What gives a type when it is indexed with a dtype; `example` is how people write one."""

    example: str


class VectorFamily(TypeFamily):
    """`td.vec3`, which indexed with a dtype gives a type."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.example = f"td.vec{count}[td.f32]"

    def __getitem__(self, dtype: Any) -> VectorType:
        return VectorType(as_number_dtype(dtype), self.count)

    def __repr__(self) -> str:
        return f"treadle.vec{self.count}"


vec2, vec3, vec4 = VectorFamily(2), VectorFamily(3), VectorFamily(4)


class Vector:
    """A vector outside a kernel: an argument, a field of a struct, or a value while interpreting.

    >>> from treadle.core.dtypes import f32
    >>> v = vec3[f32](1, 2, 3)
    >>> v.y, v.zx
    (np.float32(2.0), vec2[float32](3.0, 1.0))
    """

    __slots__ = ("parts", "type")

    def __init__(self, type: VectorType, *parts: Any) -> None:
        flat = list(_flatten(parts))
        if not flat:
            flat = [0] * type.count
        elif len(flat) == 1:
            flat = flat * type.count
        if len(flat) != type.count:
            raise TypeError(f"{type} has {type.count} components, not {len(flat)}")
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "parts", [type.dtype(part) for part in flat])

    parts: list[Any]
    type: VectorType

    def __getattr__(self, name: str) -> Any:
        if name in Vector.__slots__:  # not set yet: copy and pickle create the object first
            raise AttributeError(name)
        places = [t.COMPONENTS.index(c) for c in name if c in t.COMPONENTS]
        if len(places) != len(name) or not 1 <= len(name) <= 4 or max(places) >= len(self.parts):
            raise AttributeError(f"{self.type} has no component {name!r}")
        if len(places) == 1:
            return self.parts[places[0]]
        return Vector(VectorType(self.type.dtype, len(name)), *(self.parts[at] for at in places))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in t.COMPONENTS[: len(self.parts)]:
            raise AttributeError(f"{self.type} has no component {name!r} to assign")
        self.parts[t.COMPONENTS.index(name)] = self.type.dtype(value)

    def __getitem__(self, index: int) -> Any:
        return self.parts[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vector):
            return NotImplemented
        return self.type == other.type and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"vec{len(self.parts)}[{self.type.dtype}]({', '.join(map(str, self.parts))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Vector, (self.type, *self.parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.parts, dtype=dtype or self.type.dtype.numpy)


def _flatten(parts: Any) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, (Vector, tuple, list, np.ndarray)):
            yield from _flatten(part)
        else:
            yield part


# --- arrays --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayType:
    """The annotation `td.Array[dtype]` or `td.Array[dtype, dimensions]`."""

    element: Any
    ndim: int = 1

    @property
    def declared(self) -> DeclaredArray:
        """The declaration that the runtime checks arguments against."""
        return DeclaredArray(ir_type(self.element), self.ndim)

    def __repr__(self) -> str:
        return f"treadle.Array[{self.element!r}{'' if self.ndim == 1 else f', {self.ndim}'}]"


class Array:
    """`td.Array[td.f32]` annotates an array of one dimension, `td.Array[td.f32, 2]` of two.

    `td.Array[td.complex64]` is `td.Array[td.vec2[td.f32]]`, and either takes arrays of both.
    """

    def __new__(cls, *arguments: Any, **keywords: Any) -> Array:
        """td.Array is a type, not an array: DtypeError, which shows how to write it."""
        raise DtypeError(
            "td.Array takes brackets, as in td.Array[td.f32]; td.zeros and td.asarray make arrays"
        )

    def __class_getitem__(cls, key: Any) -> ArrayType:
        element, ndim = key if isinstance(key, tuple) else (key, 1)
        if isinstance(ndim, bool) or not isinstance(ndim, int) or ndim < 0:
            raise DtypeError(f"td.Array[dtype, dimensions]: {ndim!r} is not a number of dimensions")
        if not isinstance(element, (VectorType, FixedArray)) and not is_struct(element):
            element = as_dtype(element)
            if element.is_complex:
                element = VectorType(element.component, 2)
        return ArrayType(element, ndim)


# --- structs -------------------------------------------------------------------------------------

C = TypeVar("C")


@overload
def struct(cls: type[C], /) -> type[C]: ...
@overload
def struct(*, name: str | None = ...) -> Callable[[type[C]], type[C]]: ...
@dataclass_transform()
def struct(cls: Any = None, /, *, name: str | None = None) -> Any:
    """Make a class of annotated fields a struct: a value in kernels, an element of arrays.

    The fields have C's memory layout; `cls.dtype` is the NumPy dtype of an array of them. Instances
    hold NumPy scalars, vectors, structs and arrays; an omitted field is its default, or zero. A
    number that its field cannot hold is DtypeError outside kernels, where they cast: cast it first,
    as in `td.u8(300)`.

    >>> from treadle.core.dtypes import f32, u8
    >>> @struct
    ... class Cell:
    ...     kind: u8
    ...     heat: f32
    >>> Cell.dtype.itemsize, Cell(1, 2.5)
    (8, Cell(kind=1, heat=2.5))
    """
    if cls is None:
        return lambda decorated: struct_from(decorated, name)
    return struct_from(cls, name)


def struct_from(cls: type[C], name: str | None = None) -> type[C]:
    """`struct`, as a plain function of the class."""
    annotations = resolve_annotations(cls)
    if not annotations:
        raise DtypeError(f"struct {cls.__name__} has no fields: annotate them, as in `x: td.f32`")
    fields: list[t.Field] = []
    for field, annotation in annotations.items():
        try:
            fields.append(t.Field(field, ir_type(annotation)))
        except DtypeError as error:
            raise DtypeError(f"field {field} of struct {cls.__name__}: {error}") from None
    ir = t.Struct(name or cls.__name__, tuple(fields))
    made: Any = cls
    made.__treadle_struct__ = ir
    made.__treadle_fields__ = dict(annotations)
    made.dtype = numpy_dtype(ir)
    _classes.setdefault(ir, cls)
    remember_struct(made.dtype, ir)
    defaults = {f: getattr(cls, f) for f in annotations if hasattr(cls, f)}

    # Numbers that most fields are given need no more than a look at their class and their range.
    plain = [(field, each, *_plain(each)) for field, each in annotations.items()]
    count = len(plain)

    def __init__(self: Any, *values: Any, **keywords: Any) -> None:
        if keywords or len(values) != count:
            values = arranged(values, keywords)
        own = self.__dict__
        for (field, annotation, kind, low, high, form), value in zip(plain, values, strict=True):
            given = type(value)
            if given is kind and low <= value <= high:
                own[field] = form(value)
            elif given is form:
                own[field] = value
            else:
                own[field] = field_value(cls, field, annotation, value)

    def arranged(values: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        if len(values) > count:
            raise TypeError(f"{cls.__name__} has {count} fields, not {len(values)}")
        given = dict(zip(annotations, values, strict=False))
        for key, value in keywords.items():
            if key not in annotations:
                raise TypeError(f"{cls.__name__} has no field {key!r}")
            if key in given:
                raise TypeError(f"{cls.__name__}: field {key!r} is given twice")
            given[key] = value
        return tuple(given.get(field, defaults.get(field)) for field in annotations)

    def __setattr__(self: Any, field: str, value: Any) -> None:
        if field not in annotations:
            raise AttributeError(f"{cls.__name__} has no field {field!r}")
        self.__dict__[field] = field_value(cls, field, annotations[field], value)

    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!s}" for field in annotations)
        return f"{cls.__name__}({shown})"

    def __eq__(self: Any, other: object) -> bool:
        if type(other) is not cls:
            return NotImplemented
        pairs = ((getattr(self, f), getattr(other, f)) for f in annotations)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    for method in (__init__, __setattr__, __repr__, __eq__):
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(made, method.__name__, method)
    made.__hash__ = None
    setattr(made, "__match_args__", tuple(annotations))  # noqa: B010 - a class made here
    made.__array__ = made.__treadle_record__ = _struct_array
    made.__class_getitem__ = classmethod(lambda owner, length: FixedArray(owner, length))
    return cls


def _plain(annotation: Any) -> tuple[type, Any, Any, type]:
    """`plain_numbers` of a field; a class that nothing is of, if it has none."""
    found = plain_numbers(annotation) if isinstance(annotation, DType) else None
    return found or (_Nothing, 0, 0, _Nothing)


class _Nothing:
    """The class of no value."""


_classes: dict[t.Struct, Any] = {}


def class_of(type: t.Struct) -> Any:
    """The class of a struct type; one is created for a struct known only as a NumPy dtype."""
    found = _classes.get(type)
    if found is None:
        fields = {field.name: annotation_of(field.type) for field in type.fields}
        found = struct_from(builtins.type(type.name, (), {"__annotations__": fields}))
    return found


def annotation_of(type: t.Type) -> Any:
    """The annotation for an IR type."""
    match type:
        case t.Scalar():
            return BY_SHORT_NAME[type.name]
        case t.Vector():
            return VectorType(BY_SHORT_NAME[type.element.name], type.count)
        case t.Array():
            return FixedArray(annotation_of(type.element), type.length)
        case t.Struct():
            return class_of(type)
    raise AssertionError(type)


def _struct_array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    record = np.zeros((), self.dtype)
    store_value(record, (), self)
    return record if dtype is None else record.astype(dtype)


def is_struct(value: object) -> bool:
    """Whether `value` is a class made by `struct`."""
    return isinstance(value, type) and "__treadle_struct__" in vars(value)


def field_value(cls: type, field: str, annotation: Any, value: Any) -> Any:
    """What a field of a struct is set to. In a kernel that is interpreted, values are cast as on a
    device; elsewhere one that the field cannot hold is DtypeError."""
    if value is not None and interpreter_state.state.thread is None:
        why = _misfit(annotation, value)
        if why is not None:
            raise DtypeError(f"field {field} of struct {cls.__name__}: {why}")
    return make_value(annotation, value)


def _misfit(annotation: Any, value: Any) -> str | None:
    """Why a type cannot hold a value's numbers; None if it can, or if `make_value` says it."""
    if isinstance(annotation, DType):
        return misfit(value, annotation)
    element = annotation.dtype if isinstance(annotation, VectorType) else None
    if isinstance(annotation, FixedArray):
        element = annotation.element
    if element is None:  # a struct, whose fields say it
        return None
    if isinstance(value, np.ndarray) and value.dtype == numpy_dtype(ir_type(element)):
        return None
    parts = value if isinstance(value, (tuple, list, np.ndarray, Vector)) else (value,)
    inner = annotation if isinstance(annotation, VectorType) else element
    for part in parts:
        nested = isinstance(part, (tuple, list, np.ndarray, Vector))
        why = _misfit(inner if nested else element, part)
        if why is not None:
            return why
    return None


def make_value(annotation: Any, value: Any) -> Any:
    """`value` as a NumPy scalar, vector, struct or array of the annotated type; None is zero.

    Values are copied: a struct inside a struct is its own.
    """
    if isinstance(annotation, DType):
        return annotation(0 if value is None else value)
    if isinstance(annotation, VectorType):
        return Vector(annotation, *(() if value is None else (value,)))
    if isinstance(annotation, FixedArray):
        made = np.zeros((annotation.length,), numpy_dtype(ir_type(annotation.element)))
        if isinstance(value, (tuple, list)):
            if len(value) != annotation.length:
                raise ValueError(f"{annotation!r} has {annotation.length} items, not {len(value)}")
            for at, item in enumerate(value):
                store_value(made, at, make_value(annotation.element, item))
        elif value is not None:
            made[...] = value
        return made
    if value is None:
        return annotation()
    if isinstance(value, np.void):
        return annotation(*(value[field] for field in annotation.__treadle_fields__))
    if not isinstance(value, annotation):
        if hasattr(annotation, "__treadle_from__"):
            return annotation.__treadle_from__(value)
        raise TypeError(f"{value!r} is not a {annotation.__name__}")
    return annotation(**vars(value))


def store_value(array: Any, index: Any, value: Any) -> None:
    """Store a value of `make_value` in an element of a NumPy array."""
    if is_struct(type(value)):
        for field in type(value).__treadle_fields__:
            target = array[field]
            store_value(target, index, getattr(value, field))
    elif isinstance(value, Vector):
        array[index] = value.parts
    else:
        array[index] = value


# --- annotations to IR types and NumPy dtypes ----------------------------------------------------


def ir_type(annotation: Any) -> t.Type:
    """The IR type of a dtype, vector type, struct class or fixed array; DtypeError otherwise."""
    if isinstance(annotation, VectorType):
        return annotation.ir
    if is_struct(annotation):
        struct_type: t.Struct = annotation.__treadle_struct__
        return struct_type
    if isinstance(annotation, FixedArray):
        if isinstance(annotation.length, bool) or not isinstance(annotation.length, int):
            raise DtypeError(f"the length of a fixed array is an integer: {annotation.length!r}")
        if annotation.length < 1:
            raise DtypeError(f"a fixed array has at least one element, not {annotation.length}")
        return t.Array(ir_type(annotation.element), annotation.length)
    if isinstance(annotation, TypeFamily):
        raise DtypeError(f"{annotation!r} needs a dtype, as in {annotation.example}")
    if isinstance(annotation, ArrayType):
        raise DtypeError(
            "an array type is not allowed here: a fixed number of elements is td.f32[4]"
        )
    if annotation is int or annotation is float:
        better = "td.i32" if annotation is int else "td.f32"
        raise DtypeError(f"{annotation.__name__} has no fixed width in a kernel: write {better}")
    return t.SCALARS[as_number_dtype(annotation).short]


def _means_an_array(annotation: Any) -> bool:
    """Whether an annotation is another library's array, a list, or treadle's own tensor."""
    kind = getattr(annotation, "__origin__", annotation)
    return kind in (list, tuple) or (
        isinstance(kind, type) and any(hasattr(kind, name) for name in _ARRAYS_HAVE)
    )


_ARRAYS_HAVE = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")


def declared_type(annotation: Any) -> Declared:
    """The declaration of a parameter, from its annotation."""
    if isinstance(annotation, ArrayType):
        return annotation.declared
    if annotation is Array:
        raise DtypeError("td.Array needs a dtype, as in td.Array[td.f32]")
    try:
        found = ir_type(annotation)
    except DtypeError:
        if not _means_an_array(annotation):
            raise
        raise DtypeError(
            f"{getattr(annotation, '__name__', annotation)} does not say what the elements are: "
            "write td.Array[td.f32], or td.Array[td.f32, 2] for two dimensions"
        ) from None
    if isinstance(found, t.Array):
        raise DtypeError("a fixed array can't be a parameter: pass td.Array[dtype], or a struct")
    assert not isinstance(found, t.Void)
    return found


def numpy_dtype(type: t.Type) -> np.dtype[Any]:
    """The NumPy dtype with the IR's layout."""
    match type:
        case t.Scalar():
            return BY_SHORT_NAME[type.name].numpy
        case t.Vector():
            return np.dtype((numpy_dtype(type.element), (type.count,)))
        case t.Array():
            return np.dtype((numpy_dtype(type.element), (type.length,)))
        case t.Struct():
            return np.dtype(
                {
                    "names": [field.name for field in type.fields],
                    "formats": [numpy_dtype(field.type) for field in type.fields],
                    "offsets": [t.field_offset(type, field.name) for field in type.fields],
                    "itemsize": t.size_of(type),
                }
            )
        case t.Void():
            raise DtypeError("void has no dtype")
