"""How messages and replies become bytes, and bytes become values again."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treadle.core.dtypes import misfit, shown_number
from treadle.core.errors import DtypeError, shortened
from treadle.ir import types as t
from treadle.lang.types import Vector, annotation_of, class_of, numpy_dtype
from treadle.tensor.creation import asarray

# By the scalar's name: its format for `struct`. bfloat16 has none.
_FORMATS = {
    "bool": "?", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
    "i64": "q", "u64": "Q", "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip


_LONGEST_SHOWN = 60  # characters

# One function, since each call would cost as much as the packing.
_PACKER = """\
def packed(v):
    if {test}:
        try:
            return pack({places})
        except errors:
            pass
    return otherwise(v)


def packed_into(v, memory):
    if {test}:
        try:
            pack_into(memory, 0, {places})
            return
        except errors:
            pass
    memory[:] = otherwise(v)
"""


class Codec:
    """The values of one type: messages or replies of an actor."""

    def __init__(self, type: t.Scalar | t.Vector | t.Struct, what: str) -> None:
        self.type = type
        self.what = what  # for messages: "a message of scaler"
        self.dtype = numpy_dtype(type)  # of one value; a vector's is a subarray
        self.size = t.size_of(type)
        self.class_: Any = class_of(type) if isinstance(type, t.Struct) else None
        self._leaves = _leaves_of(type)
        if self._leaves is not None:
            self._struct = struct.Struct(_format_of(self._leaves, self.size))
        self.pack: Callable[[Any], bytes]
        self.pack_into: Callable[[Any, memoryview], None]
        self.pack, self.pack_into = self._packers()

    def _packers(self) -> tuple[Callable[[Any], bytes], Callable[[Any, memoryview], None]]:
        """Functions that make the bytes of a value, and that put them into memory. DtypeError for
        values of another type."""
        if self._leaves is None:
            return self._pack_otherwise, self._pack_otherwise_into
        places = ", ".join(f"v{path}" for _, path, _ in self._leaves)
        test = "accepts(v)"
        if self.class_ is not None:
            test = f"v.__class__ is class_ or {test}"
        scope = {
            "pack": self._struct.pack, "pack_into": self._struct.pack_into,
            "class_": self.class_, "accepts": self._accepts(), "otherwise": self._pack_otherwise,
            "errors": (struct.error, OverflowError, TypeError, AttributeError, IndexError),
        }  # fmt: skip
        exec(_PACKER.format(test=test, places=places), scope)
        return scope["packed"], scope["packed_into"]

    def _accepts(self) -> Callable[[Any], bool]:
        type = self.type
        if isinstance(type, t.Struct):  # another class may be defined the same
            return lambda value: getattr(value.__class__, "__treadle_struct__", None) == type
        if isinstance(type, t.Vector):
            like = annotation_of(type)
            return lambda value: isinstance(value, Vector) and value.type == like
        if type.name == "bool":
            return lambda value: isinstance(value, (bool, np.bool_))
        kinds: tuple[Any, ...] = (int, np.integer)
        if type.is_float:
            kinds = (float, int, np.floating, np.integer)
        return lambda value: isinstance(value, kinds) and value.__class__ is not bool

    def _pack_otherwise(self, value: Any) -> bytes:
        """The bytes of a value that is another library's, a sequence for a vector, a record for a
        struct, or has fixed arrays or bfloat16 in it. DtypeError, also for what does not fit."""
        base, _ = self.dtype.subdtype or (self.dtype, ())
        try:
            return np.asarray(self._taken(value), base).tobytes()
        except (TypeError, ValueError, OverflowError, DtypeError) as error:
            refused = DtypeError(f"{self.what} is {self.named()}, {error}")
        raise shortened(refused)

    def _pack_otherwise_into(self, value: Any, memory: memoryview) -> None:
        memory[:] = self._pack_otherwise(value)

    def _taken(self, value: Any) -> Any:
        """A value as one of the type. DtypeError with what is wrong with it."""
        given, value = value, _of_host(value)
        if isinstance(self.type, t.Scalar):
            return _number(value, self.type)
        if isinstance(self.type, t.Vector):
            count = self.type.count
            if isinstance(value, Vector) or not isinstance(value, (tuple, list, np.ndarray)):
                if not self._accepts()(value):
                    raise DtypeError(
                        f"not {_shown(given)}: give it a sequence or an array of {count} numbers"
                    )
                return value.parts
            if np.ndim(value) != 1 or len(value) != count:
                raise DtypeError(f"which has {count} components, not {_shown(given)}")
            return [_number(_of_host(part), self.type.element) for part in value]
        if isinstance(value, np.ndarray) and not value.ndim:
            value = value[()]
        if isinstance(value, np.void) and value.dtype == self.dtype:
            return value
        if not self._accepts()(value):
            fields = ", ".join(field.name for field in self.type.fields)
            raise DtypeError(
                f"not {_shown(given)}: give it {self.class_.__name__}({fields}), or a record of "
                "its dtype"
            )
        return value

    def named(self) -> str:
        """The type, for messages."""
        if isinstance(self.type, t.Struct):
            return f"a {self.class_.__name__}"
        return f"td.{self.type}" if isinstance(self.type, t.Scalar) else str(self.type)

    def pack_many(self, values: Any) -> np.ndarray[Any, Any]:
        """Many values as contiguous bytes, from an array of the type's dtype, or a sequence."""
        values = _of_host(values)
        if isinstance(values, np.ndarray):
            base, shape = self.dtype.subdtype or (self.dtype, ())
            if values.dtype != base or values.shape[1:] != shape or values.ndim != 1 + len(shape):
                inner = "".join(f", {extent}" for extent in shape) or ","
                raise DtypeError(
                    f"{self.what} is {self.named()}, so many are an array of shape (n{inner}) and "
                    f"dtype {base}, not of shape {values.shape} and dtype "
                    f"{values.dtype}"
                )
            return np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise DtypeError(f"send_many takes an array or a sequence, not {values!r}")
        return np.frombuffer(b"".join(map(self.pack, values)), np.uint8)

    def unpack(self, data: bytes) -> Any:
        """A value from its bytes: a Python number, a vector, an instance of the struct's class."""
        if isinstance(self.type, t.Scalar) and self._leaves is not None:
            return self._struct.unpack(data)[0]
        if isinstance(self.type, t.Struct):
            record = np.frombuffer(data, self.dtype)[0]
            return self.class_(*(record[field.name] for field in self.type.fields))
        if isinstance(self.type, t.Vector):
            element = numpy_dtype(self.type.element)
            return Vector(annotation_of(self.type), *np.frombuffer(data, element, self.type.count))
        return np.frombuffer(data, self.dtype)[0].item()

    def array(self, data: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
        """Many values from their bytes, as an array of the type's dtype."""
        base, shape = self.dtype.subdtype or (self.dtype, ())
        return data[: count * self.size].view(base).reshape(count, *_rows(self.type, shape))


def _of_host(value: Any) -> Any:
    """Arrays of the library and of others as NumPy's."""
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__dlpack__"):
        return value
    return asarray(value).numpy()


def _number(value: Any, type: t.Scalar) -> Any:
    """A number, or an array of no dimensions, for a scalar type. DtypeError."""
    given = value
    if isinstance(value, (np.ndarray, np.generic)) and not value.ndim:
        value = value.item()
    kinds = (bool,) if type.name == "bool" else (int, float, np.floating)
    if not isinstance(value, kinds) or (isinstance(value, bool) and type.name != "bool"):
        raise DtypeError(f"not {_shown(given)}")
    why = misfit(value, annotation_of(type))
    if why is not None:
        raise DtypeError(f"not {_shown(given)}: {why}")
    return value


def _shown(value: Any) -> str:
    """What was given, for messages: short numbers and texts as such, else what it is."""
    if isinstance(value, (bool, int, float, str, type(None))):
        text = shown_number(value) if isinstance(value, int) else repr(value)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    shape = getattr(value, "shape", None)
    if isinstance(value, (tuple, list)):
        shape = (len(value),)
    kind = type(value).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    if shape is not None and shape != ():
        return f"{article} {kind} of shape {tuple(shape)}"
    return f"{article} {kind}"


def _rows(type: t.Type, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if isinstance(type, t.Vector) else ()


def _leaves_of(type: t.Type) -> list[tuple[int, str, str]] | None:
    """Each scalar of a type: its offset, how Python reads it, its format. None where NumPy has to
    convert: fixed arrays, bfloat16."""
    try:
        return list(_walk(type, 0, ""))
    except KeyError:
        return None


def _walk(type: t.Type, offset: int, path: str) -> Iterator[tuple[int, str, str]]:
    match type:
        case t.Scalar():
            yield offset, path, _FORMATS[type.name]
        case t.Vector():
            item = t.size_of(type.element)
            for at in range(type.count):
                yield from _walk(type.element, offset + at * item, f"{path}.parts[{at}]")
        case t.Struct():
            for field in type.fields:
                start = offset + t.field_offset(type, field.name)
                yield from _walk(field.type, start, f"{path}.{field.name}")
        case _:
            raise KeyError(type)


def _format_of(leaves: list[tuple[int, str, str]], size: int) -> str:
    form, end = "<", 0
    for offset, _, code in leaves:
        form += f"{offset - end}x{code}"
        end = offset + struct.calcsize(f"<{code}")
    return form + f"{size - end}x"
