"""The pickles in PyTorch's files: written without PyTorch, and read without running them, unless
the caller wants them run.

A file of `torch.save` is a zip archive: `data.pkl` has the structure, `data/0`, `data/1`, … the
elements of tensors, to which the pickle refers as ("storage", class, key, device, count). Reading
knows a handful of names: functions that make tensors, containers and numbers of NumPy. Any other
name is an error, or, for who trusts the file, what Python imports under it.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, as_dtype
from treadle.core.errors import FormatError

# PyTorch's classes of elements.
STORAGES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage", "int64": "LongStorage", "int32": "IntStorage",
    "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage", "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip
_DTYPES = {storage: name for name, storage in STORAGES.items()}


class Stored(NamedTuple):
    """A tensor that is written: the elements of its memory, the key of this part of the file, and
    which of the elements are the tensor's."""

    dtype: DType
    location: str
    data: np.ndarray[Any, Any]
    key: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    requires_grad: bool


class Place(NamedTuple):
    """A tensor that is read: which part of the file, and which elements of it."""

    key: str
    dtype: DType
    location: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool

    def elements(self, raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """All elements of the part, from its bytes. FormatError if the tensor's are not among
        them."""
        size = self.dtype.itemsize
        stored = raw[: raw.size - raw.size % size].view(self.dtype.numpy)
        if math.prod(self.shape):
            last = self.offset + sum(
                (extent - 1) * stride
                for extent, stride in zip(self.shape, self.strides, strict=True)
            )
            if min(self.strides, default=0) < 0 or not 0 <= self.offset <= last < stored.size:
                raise FormatError(f"elements {self.offset} to {last} of {stored.size}")
        return stored


# --- writing -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Name:
    """A function or class that the file names, which need not be importable here."""

    module: str
    name: str

    def __call__(self) -> None:
        """Pickling asks for what can be called; it is what the file is read by that calls it."""
        raise TypeError(f"{self.module}.{self.name} is a name")


def dump(
    state: Any, reduced: Callable[[Any], Any], named: Callable[[Any], Name | None], protocol: int
) -> bytes:
    """A state as a pickle. `reduced` says how objects of PyTorch's are made, as `__reduce__` does,
    with a `Stored` for a tensor's elements, or NotImplemented for others; `named` gives the name of
    a class or function, or None for that by which Python imports it."""
    out = io.BytesIO()
    _Pickler(out, reduced, named, protocol).dump(state)
    return out.getvalue()


_Python: Any = pickle._Pickler  # type: ignore[attr-defined,unused-ignore]


class _Pickler(_Python):  # type: ignore[misc]
    """Python's own pickler, written in Python: that in C looks each name up."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_Python.dispatch)

    def __init__(
        self,
        out: io.BytesIO,
        reduced: Callable[[Any], Any],
        named: Callable[[Any], Name | None],
        protocol: int,
    ) -> None:
        super().__init__(out, protocol)
        self.reducer_override = reduced
        self._named = named

    def persistent_id(self, obj: Any) -> Any:
        """The reference to a tensor's elements."""
        if type(obj) is not Stored:
            return None
        storage = STORAGES.get(obj.dtype.name)
        name = Name("torch", storage) if storage else Name("torch.storage", "UntypedStorage")
        count = obj.data.size
        count = count if storage else count * obj.dtype.itemsize
        return "storage", name, obj.key, obj.location, count

    def _save_name(self, obj: Name) -> None:
        self.write(f"c{obj.module}\n{obj.name}\n".encode())

    dispatch[Name] = _save_name

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """A class or function, by its name."""
        found = self._named(obj)
        if found is None:
            super().save_global(obj, name)
        else:
            self._save_name(found)
            self.memoize(obj)

    dispatch[FunctionType] = save_global


def rebuilt(stored: Stored) -> tuple[Any, ...]:
    """How a tensor is made of its elements, in PyTorch's words."""
    given: tuple[Any, ...] = (
        stored, stored.offset, stored.shape, stored.strides, stored.requires_grad, OrderedDict(),
    )  # fmt: skip
    if stored.dtype.name in STORAGES:
        return Name("torch._utils", "_rebuild_tensor_v2"), given
    dtype = Name("torch", stored.dtype.name)
    return Name("torch._utils", "_rebuild_tensor_v3"), (*given, dtype)


# --- reading -------------------------------------------------------------------------------------


class _Elements(NamedTuple):
    """A reference to a part of the file."""

    key: str
    dtype: DType | None
    location: str


class _StorageClass(NamedTuple):
    """One of PyTorch's classes of elements; without a dtype, bytes."""

    dtype: DType | None


class Makers(NamedTuple):
    """What makes PyTorch's objects of what a file says."""

    tensor: Callable[[Place], Any]
    parameter: Callable[[Any, bool], Any]
    named: Callable[[str, str], Any]  # None for names that are refused
    is_trusted: bool  # whether names are imported, so that the file runs what it likes


class NotLoaded(FormatError, pickle.UnpicklingError):
    """A name that is not loaded."""


def load(pickled: bytes, makers: Makers) -> Any:
    """The state in a pickle. FormatError for damaged files, NotLoaded for names that are not known
    unless the file is trusted, whose program may raise anything."""
    reader = _Unpickler(pickled, makers)
    if makers.is_trusted:
        return reader.load()
    try:
        return reader.load()
    except FormatError:
        raise
    except (
        pickle.UnpicklingError, EOFError, IndexError, KeyError, TypeError, ValueError,
        AttributeError, struct.error, OverflowError, RecursionError, MemoryError,
    ) as error:  # fmt: skip
        raise FormatError(f"the structure in the file is damaged: {error}") from None


class _Unpickler(pickle.Unpickler):
    """Knows a handful of names, none of which runs what a file says, unless that is trusted."""

    def __init__(self, pickled: bytes, makers: Makers) -> None:
        super().__init__(io.BytesIO(pickled), encoding="utf-8")
        self._makers = makers
        self._rebuilding = {
            "_rebuild_tensor_v2": self._rebuild_v2,
            "_rebuild_tensor_v3": self._rebuild_v3,
            "_rebuild_parameter": self._parameter,
            "_rebuild_parameter_with_state": self._parameter,
            "_rebuild_from_type_v2": self._with_state,
        }

    def find_class(self, module: str, name: str) -> Any:
        """What a name is here."""
        if module == "torch._utils" and name in self._rebuilding:
            return self._rebuilding[name]
        if module == "torch" and name in _DTYPES:
            return _StorageClass(as_dtype(_DTYPES[name]))
        if (module, name) in (("torch.storage", "UntypedStorage"), ("torch", "UntypedStorage")):
            return _StorageClass(None)
        found = self._makers.named(module, name)
        if found is not None:
            return found
        if self._makers.is_trusted:
            return super().find_class(module, name)
        known = _KNOWN.get((module, name))
        if known is None:
            raise NotLoaded(
                f"the file has a {module}.{name}, which is not loaded: only tensors, numbers, "
                "texts and containers are. Save a state_dict() and load that. For a file whose "
                "source you trust, torch.load(..., weights_only=False) imports what it names and "
                "runs what it says, which can be any program; "
                f"torch.serialization.add_safe_globals([{name}]) admits this one name"
            )
        return known

    def persistent_load(self, pid: Any) -> Any:
        """A reference to the elements of a tensor."""
        match pid:
            case ("storage", _StorageClass() as kind, str() as key, str() as location, int(), *_):
                if not key.isalnum():
                    raise FormatError(f"elements are called {key[:60]!r}")
                return _Elements(key, kind.dtype, location)
        raise FormatError(f"an unknown reference to elements: {str(pid)[:100]}")

    def _rebuild_v2(
        self, storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any,
        metadata: Any = None,
    ) -> Any:  # fmt: skip
        return self._rebuild(storage, None, offset, shape, strides, requires_grad)

    def _rebuild_v3(
        self, storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any,
        dtype: Any, metadata: Any = None,
    ) -> Any:  # fmt: skip
        return self._rebuild(storage, dtype, offset, shape, strides, requires_grad)

    def _rebuild(
        self, storage: Any, dtype: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any
    ) -> Any:
        if not isinstance(storage, _Elements):
            raise FormatError("a tensor without elements")
        wanted = storage.dtype if dtype is None else dtype
        numbers = (offset, *shape, *strides)
        if (
            not isinstance(wanted, DType)
            or len(shape) != len(strides)
            or not all(type(each) is int and 0 <= each < 2**62 for each in numbers)
        ):
            raise FormatError("a tensor with a shape, strides or dtype that make no sense")
        place = Place(
            storage.key, wanted, storage.location, offset, tuple(shape), tuple(strides),
            bool(requires_grad),
        )  # fmt: skip
        return self._makers.tensor(place)

    def _parameter(self, data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
        return _attributed(self._makers.parameter(data, bool(requires_grad)), state)

    def _with_state(self, function: Any, kind: Any, arguments: Any, state: Any) -> Any:
        if function not in (self._rebuild_v2, self._rebuild_v3):
            raise FormatError("a tensor of a kind that is not known")
        return _attributed(function(*arguments), state)


def _attributed(tensor: Any, state: Any) -> Any:
    """A tensor with the attributes that a program has set on it."""
    if isinstance(state, dict):
        vars(tensor).update(state)
    return tensor


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise FormatError("bytes in an encoding that is not known")
    return text.encode("latin1")


class _Described:
    """A dtype of NumPy, as files describe it."""

    def __init__(self, text: Any, *rest: Any) -> None:
        if not isinstance(text, str) or not text.isalnum():
            raise FormatError("a dtype of NumPy that is not known")
        self._kind = np.dtype(text)
        if self._kind.kind not in "biufc":
            raise FormatError(f"a NumPy array of {text}")
        self._order = "<"

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">", "|", "="):
            self._order = state[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._kind.newbyteorder(self._order)  # type: ignore[arg-type]


def _scalar(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, _Described) or not isinstance(data, bytes):
        raise FormatError("a number of NumPy that is not one")
    found = np.frombuffer(data, dtype.dtype)
    if found.size != 1:
        raise FormatError("a number of NumPy that is not one")
    return found.astype(dtype.dtype.newbyteorder("="))[0]


def _bytearray(content: Any = b"") -> bytearray:
    if not isinstance(content, bytes):
        raise FormatError("bytes that are none")
    return bytearray(content)


def _complex(real: Any, imaginary: Any) -> complex:
    return complex(float(real), float(imaginary))


_PLAIN = {"set": set, "frozenset": frozenset, "complex": _complex, "bytearray": _bytearray}
_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encoded,
    **{
        (module, name): kind
        for module in ("builtins", "__builtin__")
        for name, kind in _PLAIN.items()
    },
    ("numpy", "dtype"): _Described,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
}
