"""The pickles in PyTorch's files: written without PyTorch, and read without running them.

A file of `torch.save` is a zip archive: `data.pkl` has the structure, `data/0`, `data/1`, … the
elements of tensors, to which the pickle refers as ("storage", class, key, device, count). Reading
knows a handful of names: functions that make tensors, containers and numbers of NumPy. Any other
name is an error.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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
_DEPTH = 200


class Stored(NamedTuple):
    """A tensor that is written: its elements, and the key of its part of the file."""

    dtype: DType
    shape: tuple[int, ...]
    location: str
    requires_grad: bool
    data: np.ndarray[Any, Any]
    key: str


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
        """The elements, from the bytes of the part. FormatError if they are not there."""
        size = self.dtype.itemsize
        stored = raw[: raw.size - raw.size % size].view(self.dtype.numpy)
        if math.prod(self.shape):
            last = self.offset + sum(
                (extent - 1) * stride
                for extent, stride in zip(self.shape, self.strides, strict=True)
            )
            if min(self.strides, default=0) < 0 or not 0 <= self.offset <= last < stored.size:
                raise FormatError(f"elements {self.offset} to {last} of {stored.size}")
        else:
            return np.zeros(self.shape, self.dtype.numpy)
        steps = tuple(stride * size for stride in self.strides)
        view = np.lib.stride_tricks.as_strided(stored[self.offset :], self.shape, steps)
        return np.array(view)


# --- writing -------------------------------------------------------------------------------------


def dump(
    state: Any,
    stored: Callable[[Any], Stored | None],
    named: Callable[[Any], tuple[Any, ...] | None],
) -> bytes:
    """A state as a pickle. `stored` says where a tensor's elements are, None for what is none;
    `named` the name of anything else that PyTorch has under one, with arguments if it is made by
    calling it. TypeError for what PyTorch would need a program for."""
    writer = _Writer(stored, named)
    writer.out.write(b"\x80\x02")
    writer.save(state, "state", 0)
    writer.out.write(b".")
    return writer.out.getvalue()


class _Writer:
    """Writes protocol 2 without a memo: what is at two places is written twice."""

    def __init__(
        self,
        stored: Callable[[Any], Stored | None],
        named: Callable[[Any], tuple[Any, ...] | None],
    ) -> None:
        self.out = io.BytesIO()
        self._stored, self._named = stored, named

    def save(self, value: Any, path: str, depth: int) -> None:
        """Write a value."""
        put = self.out.write
        if depth > _DEPTH:
            raise TypeError(f"{path[:200]} is nested deeper than {_DEPTH}, or contains itself")
        tensor = self._stored(value)
        if tensor is not None:
            self._tensor(tensor, path, depth)
        elif value is None or value is True or value is False:
            put({None: b"N", True: b"\x88", False: b"\x89"}[value])
        elif type(value) is int:
            self._integer(value)
        elif type(value) is float:
            put(b"G" + struct.pack(">d", value))
        elif isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            put(b"X" + struct.pack("<I", len(text)) + text)
        elif isinstance(value, (bytes, bytearray)):
            self._call("_codecs", "encode", (bytes(value).decode("latin1"), "latin1"), path, depth)
        elif isinstance(value, complex):
            self._call("builtins", "complex", (value.real, value.imag), path, depth)
        elif isinstance(value, (np.bool_, np.integer, np.floating)):
            self.save(value.item(), path, depth)
        elif (name := self._named(value)) is not None:
            if len(name) == 2:
                self._global(*name)
            else:
                self._call(name[0], name[1], name[2], path, depth)
        elif isinstance(value, OrderedDict):
            self._ordered(value, path, depth)
        elif isinstance(value, Mapping):
            put(b"}")
            self._pairs(value, path, depth)
        elif isinstance(value, list):
            put(b"](")
            for at, each in enumerate(value):
                self.save(each, f"{path}[{at}]", depth + 1)
            put(b"e")
        elif isinstance(value, tuple):
            self._tuple(tuple(value), path, depth)
        elif isinstance(value, (set, frozenset)):
            self._call("builtins", type(value).__name__, (list(value),), path, depth)
        else:
            raise TypeError(
                f"{path} is of type {type(value).__name__}, which is not saved: tensors, numbers, "
                "texts, truth values and None are, in dictionaries, lists, tuples and sets"
            )

    def _integer(self, value: int) -> None:
        if -(2**31) <= value < 2**31:
            self.out.write(b"J" + struct.pack("<i", value))
            return
        data = pickle.encode_long(value)
        short = len(data) < 256
        head = b"\x8a" + bytes([len(data)]) if short else b"\x8b" + struct.pack("<i", len(data))
        self.out.write(head + data)

    def _global(self, module: str, name: str) -> None:
        # Protocol 2 has Python 2's name of the module.
        module = {"builtins": "__builtin__"}.get(module, module)
        self.out.write(f"c{module}\n{name}\n".encode())

    def _tuple(self, values: tuple[Any, ...], path: str, depth: int) -> None:
        self.out.write(b"(")
        for at, each in enumerate(values):
            self.save(each, f"{path}[{at}]", depth + 1)
        self.out.write(b"t")

    def _call(
        self, module: str, name: str, arguments: tuple[Any, ...], path: str, depth: int
    ) -> None:
        self._global(module, name)
        self._tuple(arguments, path, depth)
        self.out.write(b"R")

    def _pairs(self, value: Mapping[Any, Any], path: str, depth: int) -> None:
        self.out.write(b"(")
        for key, each in value.items():
            self.save(key, f"a key of {path}", depth + 1)
            self.save(each, f"{path}[{key!r}]", depth + 1)
        self.out.write(b"u")

    def _ordered(self, value: OrderedDict[Any, Any], path: str, depth: int) -> None:
        self._call("collections", "OrderedDict", (), path, depth)
        self._pairs(value, path, depth)
        own = vars(value)
        if own:  # the versions of modules, in a state dict
            self.save(dict(own), f"{path}.__dict__", depth + 1)
            self.out.write(b"b")

    def _tensor(self, tensor: Stored, path: str, depth: int) -> None:
        storage = STORAGES.get(tensor.dtype.name)
        self._global("torch._utils", "_rebuild_tensor_v2" if storage else "_rebuild_tensor_v3")
        self.out.write(b"(")
        # The elements' place is a persistent id: PyTorch asks its file for it.
        self.out.write(b"(")
        self.save("storage", path, depth)
        self._global(*(("torch", storage) if storage else ("torch.storage", "UntypedStorage")))
        self.save(tensor.key, path, depth)
        self.save(tensor.location, path, depth)
        count = math.prod(tensor.shape)
        self.save(count if storage else count * tensor.dtype.itemsize, path, depth)
        self.out.write(b"tQ")
        strides, step = [], 1
        for extent in reversed(tensor.shape):
            strides.append(step)
            step *= max(extent, 1)
        self.save(0, path, depth)
        self._tuple(tensor.shape, path, depth)
        self._tuple(tuple(reversed(strides)), path, depth)
        self.save(tensor.requires_grad, path, depth)
        self._call("collections", "OrderedDict", (), path, depth)
        if not storage:
            self._global("torch", tensor.dtype.name)
        self.out.write(b"tR")


# --- reading -------------------------------------------------------------------------------------


class _Elements(NamedTuple):
    """A reference to a part of the file."""

    key: str
    dtype: DType | None
    location: str


class _StorageClass(NamedTuple):
    """One of PyTorch's classes of elements; without a dtype, bytes."""

    dtype: DType | None


def load(
    pickled: bytes,
    tensor: Callable[[Place], Any],
    named: Callable[[str, str], Any],
) -> Any:
    """The state in a pickle. `tensor` makes tensors, `named` gives what else has a name in PyTorch,
    None for what is refused. FormatError for names that are not known, and for damaged files."""
    reader = _Unpickler(pickled, tensor, named)
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
    """Knows a handful of names, none of which runs what a file says."""

    def __init__(
        self,
        pickled: bytes,
        tensor: Callable[[Place], Any],
        named: Callable[[str, str], Any],
    ) -> None:
        super().__init__(io.BytesIO(pickled), encoding="utf-8")
        self._make, self._names = tensor, named

    def find_class(self, module: str, name: str) -> Any:
        """What a name is here."""
        known = _KNOWN.get((module, name))
        if known is not None:
            return known
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self._rebuild_v2
        if (module, name) == ("torch._utils", "_rebuild_tensor_v3"):
            return self._rebuild_v3
        if module == "torch" and name in _DTYPES:
            return _StorageClass(as_dtype(_DTYPES[name]))
        if (module, name) in (("torch.storage", "UntypedStorage"), ("torch", "UntypedStorage")):
            return _StorageClass(None)
        found = self._names(module, name)
        if found is None:
            raise FormatError(
                f"the file has a {module}.{name}, which is not loaded: only tensors, numbers, "
                "texts and containers are. Save a state_dict() with PyTorch and load that"
            )
        return found

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
        return self._make(
            Place(
                storage.key,
                wanted,
                storage.location,
                offset,
                tuple(shape),
                tuple(strides),
                bool(requires_grad),
            )
        )


def _parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> Any:
    return data.requires_grad_() if requires_grad else data


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


def _complex(real: Any, imaginary: Any) -> complex:
    return complex(float(real), float(imaginary))


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("_codecs", "encode"): _encoded,
    **{
        (module, name): kind
        for module in ("builtins", "__builtin__")
        for name, kind in (("set", set), ("frozenset", frozenset), ("complex", _complex))
    },
    ("numpy", "dtype"): _Described,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
}
