"""DLPack: the C structures in which libraries hand arrays to each other, read and written.

A producer puts a managed tensor (memory, shape, strides, a function that lets go of it) into a
Python capsule; a consumer takes it out, renames the capsule so that nobody takes it twice, and
calls the function when it is done. There are two forms: the old one, and the versioned one that
says whether the memory may be written. https://dmlc.github.io/dlpack has both.

The structures are packed and unpacked as bytes, which costs a tenth of ctypes' structures.
"""

from __future__ import annotations

import atexit
import ctypes
import struct
from typing import Any

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError
from treadle.core.once import once
from treadle.runtime.callbacks import Prototype, callbacks, keep_for_ever

CPU, CUDA, CUDA_HOST, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 11, 13  # kinds of devices
HOST_KINDS = (CPU, CUDA_HOST, ROCM_HOST)
CUDA_KINDS = (CUDA, CUDA_MANAGED)
LEGACY = 1  # CUDA's legacy default stream, where a stream's handle is expected
VERSION = (1, 0)  # that we write; what differs later in 1.x does not concern us

_READ_ONLY, _COPIED = 1, 2  # flags
# data, device (kind, number), ndim, dtype (code, bits, lanes), shape, strides, byte offset
_TENSOR = "PiiiBBHPPQ"
_OLD = struct.Struct(f"@{_TENSOR}0QPP")  # then the producer's own pointer, and the deleter
_NEW = struct.Struct(f"@IIPPQ{_TENSOR}")  # version, own pointer, deleter, flags, then the tensor
_OLD_DELETER, _NEW_DELETER = struct.calcsize(f"@{_TENSOR}0QP"), struct.calcsize("@IIP")

_CODES: dict[tuple[int, int], DType] = (
    {(0, d.bits): d for d in dtypes.DTYPES if d.kind == "int"}
    | {(1, d.bits): d for d in dtypes.DTYPES if d.kind == "uint"}
    | {(2, d.bits): d for d in (dtypes.float16, dtypes.float32, dtypes.float64)}
    | {(4, 16): dtypes.bfloat16, (6, 8): dtypes.bool_}
    | {(5, d.bits): d for d in (dtypes.complex64, dtypes.complex128)}
)
_CODE_OF = {dtype.name: code for code, dtype in _CODES.items()}
_CODE_NAMES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}

# Names are compared by pointer to bytes that must live as long as the capsules.
_NAME_OLD, _NAME_NEW = b"dltensor", b"dltensor_versioned"
_USED_OLD, _USED_NEW = b"used_dltensor", b"used_dltensor_versioned"

_api = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _api))
# For a capsule that is being destroyed, which must not become a Python object again.
_is_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_string_at = ctypes.string_at


# --- reading -------------------------------------------------------------------------------------


class Managed:
    """What a producer handed over. It is let go with this object."""

    __slots__ = ("_deleter", "_pointer", "address", "device", "dtype", "read_only", "shape",
                 "strides")  # fmt: skip
    address: int  # of the first element
    device: tuple[int, int]  # kind and number
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: row by row without gaps
    read_only: bool

    def __init__(self, capsule: Any) -> None:
        """Take it out of its capsule. BufferError for what is no tensor, DtypeError for elements
        that no array of ours has."""
        self._deleter = 0
        if _is_valid(capsule, _NAME_NEW):
            self._pointer = _get_pointer(capsule, _NAME_NEW)
            major, minor, _, deleter, flags, *tensor = _NEW.unpack(
                _string_at(self._pointer, _NEW.size)
            )
            if major > VERSION[0]:  # nothing but the deleter has a known place
                raise BufferError(f"DLPack {major}.{minor} is newer than what is understood here")
            _set_name(capsule, _USED_NEW)
        elif _is_valid(capsule, _NAME_OLD):
            self._pointer = _get_pointer(capsule, _NAME_OLD)
            *tensor, _, deleter = _OLD.unpack(_string_at(self._pointer, _OLD.size))
            flags = 0
            _set_name(capsule, _USED_OLD)
        else:
            raise BufferError(f"{capsule!r} is no DLPack capsule, or one that was used before")
        self._deleter = deleter
        self.read_only = bool(flags & _READ_ONLY)
        address, kind, number, ndim, code, bits, lanes, shape, strides, offset = tensor
        self.device = kind, number
        self.address = (address or 0) + offset
        self.dtype = _dtype(code, bits, lanes)
        self.shape = _extents(shape, ndim)
        self.strides = _extents(strides, ndim) if strides else None

    def __del__(self) -> None:
        if self._deleter:
            Prototype(self._deleter)(self._pointer)  # it takes the interpreter's lock if need be


def _extents(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"@{count}q", _string_at(address, 8 * count)) if count else ()


def _dtype(code: int, bits: int, lanes: int) -> DType:
    found = _CODES.get((code, bits)) if lanes == 1 else None
    if found is None:
        name = f"{_CODE_NAMES.get(code, f'type {code} of')}{bits}" + f"x{lanes}" * (lanes != 1)
        raise DtypeError(
            f"an array of {name} came, which kernels do not have; there are "
            f"{', '.join(d.name for d in dtypes.ALL_DTYPES)}"
        )
    return found


# --- writing -------------------------------------------------------------------------------------

# What was handed out and not let go of yet, by the address of its structure: the structure's own
# memory, where in it the deleter is, and what keeps the array's memory alive.
_lent: dict[int, tuple[Any, int, Any]] = {}


def capsule(
    address: int,
    device: tuple[int, int],
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *,
    keep: Any,
    versioned: bool,
    read_only: bool = False,
    copied: bool = False,
) -> Any:
    """A capsule with an array's memory, for a consumer; `keep` lives until that lets go of it."""
    form = _NEW if versioned else _OLD
    let_go, destroy = _callbacks()
    ndim = len(shape)
    memory = ctypes.create_string_buffer(form.size + 16 * ndim)
    start = ctypes.addressof(memory)
    extents = start + form.size
    code, bits = _CODE_OF[dtype.name]
    tensor = (address, *device, ndim, code, bits, 1, extents, extents + 8 * ndim, 0)
    if versioned:
        flags = _READ_ONLY * read_only | _COPIED * copied
        form.pack_into(memory, 0, *VERSION, 0, let_go, flags, *tensor)
    else:
        form.pack_into(memory, 0, *tensor, 0, let_go)
    struct.pack_into(f"@{2 * ndim}q", memory, form.size, *shape, *strides)
    _lent[start] = memory, _NEW_DELETER if versioned else _OLD_DELETER, keep
    name = _NAME_NEW if versioned else _NAME_OLD
    return _new_capsule(start, name, destroy)


def _let_go(pointer: int) -> None:
    """The consumer is done."""
    _lent.pop(pointer, None)


def _destroy(capsule: int) -> None:
    """A capsule dies; if nobody took the tensor out of it, it is let go of."""
    for name in (_NAME_NEW, _NAME_OLD):
        if _is_valid_at(capsule, name):
            _lent.pop(_pointer_at(capsule, name), None)


@once
def _callbacks() -> tuple[int, ...]:
    """The addresses of `_let_go` and `_destroy` as C functions."""
    return callbacks(_let_go, _destroy)


# Capsules may outlive this module while the interpreter ends.
for _one in (_NAME_OLD, _NAME_NEW, _USED_OLD, _USED_NEW):
    keep_for_ever(_one)


@atexit.register
def _forget() -> None:
    """Let consumers that outlive Python call nothing: the process frees the memory."""
    for memory, deleter_at, _ in _lent.values():
        struct.pack_into("@P", memory, deleter_at, 0)
        keep_for_ever(memory)
