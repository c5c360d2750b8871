"""Reads and writes DLPack's C structures, in which libraries exchange arrays.

A producer puts a managed tensor (memory, shape, strides, a deleter) into a Python capsule. The
consumer takes it out, renames the capsule so that it cannot be consumed twice, and calls the
deleter when it is done. There are two forms: the old one, and the versioned one, which states
whether the memory may be written. https://dmlc.github.io/dlpack documents both.

The structures are packed and unpacked as bytes, which takes a tenth of the time of ctypes'
structures.
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
from treadle.runtime.callbacks import Prototype, callbacks
from treadle.runtime.host_code import keep_forever

CPU, CUDA, CUDA_HOST, ROCM_HOST, CUDA_MANAGED = 1, 2, 3, 11, 13  # kinds of devices
HOST_KINDS = (CPU, CUDA_HOST, ROCM_HOST)
CUDA_KINDS = (CUDA, CUDA_MANAGED)
LEGACY = 1  # CUDA's legacy default stream, where a stream's handle is expected
VERSION = (1, 0)  # that is written; later 1.x only add what is not used here

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
    """A producer's managed tensor. It is released with this object."""

    __slots__ = ("_deleter", "_pointer", "address", "device", "dtype", "read_only", "shape",
                 "strides")  # fmt: skip
    address: int  # of the first element
    device: tuple[int, int]  # kind and number
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: row-major without gaps
    read_only: bool

    def __init__(self, capsule: Any) -> None:
        """Take it out of its capsule. BufferError for a capsule without a tensor, DtypeError for a
        dtype that treadle does not have."""
        self._deleter = 0
        if _is_valid(capsule, _NAME_NEW):
            self._pointer = _get_pointer(capsule, _NAME_NEW)
            major, minor, _, deleter, flags, *tensor = _NEW.unpack(
                _string_at(self._pointer, _NEW.size)
            )
            if major > VERSION[0]:  # only the deleter's offset is known
                raise BufferError(f"DLPack {major}.{minor} is newer than the supported versions")
            _set_name(capsule, _USED_NEW)
        elif _is_valid(capsule, _NAME_OLD):
            self._pointer = _get_pointer(capsule, _NAME_OLD)
            *tensor, _, deleter = _OLD.unpack(_string_at(self._pointer, _OLD.size))
            flags = 0
            _set_name(capsule, _USED_OLD)
        else:
            raise BufferError(f"{capsule!r} is not a DLPack capsule, or was consumed before")
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
            Prototype(self._deleter)(self._pointer)  # it acquires the GIL itself


def _extents(address: int, count: int) -> tuple[int, ...]:
    return struct.unpack(f"@{count}q", _string_at(address, 8 * count)) if count else ()


def _dtype(code: int, bits: int, lanes: int) -> DType:
    found = _CODES.get((code, bits)) if lanes == 1 else None
    if found is None:
        name = f"{_CODE_NAMES.get(code, f'type {code} of')}{bits}" + f"x{lanes}" * (lanes != 1)
        raise DtypeError(
            f"an array of {name} was given, a dtype that kernels do not have; they have "
            f"{', '.join(d.name for d in dtypes.ALL_DTYPES)}"
        )
    return found


# --- writing -------------------------------------------------------------------------------------

# The exported tensors that are not released yet, by the address of the structure: its memory, the
# offset of the deleter in it, and the owner of the array's memory.
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
    """A capsule with an array's memory, for a consumer, whose deleter releases `keep`."""
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
    """The deleter: the consumer is done."""
    _lent.pop(pointer, None)


def _destroy(capsule: int) -> None:
    """The capsule's destructor: releases the tensor if it was not consumed."""
    for name in (_NAME_NEW, _NAME_OLD):
        if _is_valid_at(capsule, name):
            _lent.pop(_pointer_at(capsule, name), None)


@once
def _callbacks() -> tuple[int, ...]:
    """The addresses of `_let_go` and `_destroy` as C functions."""
    return callbacks(_let_go, _destroy)


# Capsules may outlive this module while the interpreter shuts down.
for _one in (_NAME_OLD, _NAME_NEW, _USED_OLD, _USED_NEW):
    keep_forever(_one)


@atexit.register
def _forget() -> None:
    """Clear the deleters of consumers that outlive Python; the process frees the memory."""
    for memory, deleter_at, _ in _lent.values():
        struct.pack_into("@P", memory, deleter_at, 0)
        keep_forever(memory)
