"""Arrays of other libraries: their memory, dtype and shape, and the stream that they are used on.

There are three ways to read them: the library's own attributes, for the common ones (PyTorch,
CuPy), which take a tenth of the protocols' time; DLPack; and `__cuda_array_interface__`. No library
is imported here: that of a given array is loaded already.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.format import descr_to_dtype

from treadle.core import dtypes
from treadle.core.dtypes import DType
from treadle.core.errors import DtypeError, LaunchError
from treadle.runtime import dlpack
from treadle.runtime.arrays import array_dtype, check_unmasked, is_array_type, packed_strides
from treadle.runtime.dlpack import LEGACY
from treadle.runtime.libraries import LIBRARIES, Library


@dataclass(slots=True)
class Foreign:
    """Another library's array."""

    library: Library
    device: tuple[int, int]  # kind and number, as DLPack has them; number -1: not known
    address: int  # of the first element
    dtype: DType | np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    read_only: bool
    owner: object  # keeps the memory while it lives
    stream: int | None = None  # that its work is on; None: not known
    whole: tuple[int, int] | None = None  # address and bytes of its allocation

    def bounds(self) -> tuple[int, int]:
        """The address of its first byte, and the one after its last."""
        low = high = 0
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent == 0:
                return self.address, self.address
            reach = (extent - 1) * stride
            if reach < 0:
                low += reach
            else:
                high += reach
        item = self.dtype.itemsize
        return self.address + low * item, self.address + (high + 1) * item


_ALSO_KNOWN_AS = {"jaxlib": "jax", "numba_cuda": "numba"}


@dataclass(frozen=True, slots=True)
class Kind:
    """How arrays of one Python type are read."""

    library: Library
    place: Callable[[Any], tuple[int, int]]  # the kind and number of the device
    read: Callable[[Kind, Any], Foreign]
    # Everything that the result of `read` depends on, as a key: an array with the same facts need
    # not be read again. None where only `read` finds them out.
    facts: Callable[[Any], Any] | None = None


_kinds: dict[type, Kind | None] = {}


def kind_of(value: Any) -> Kind | None:
    """How to read another library's array; None for other values (NumPy's arrays among them)."""
    type_ = type(value)
    try:
        kind = _kinds[type_]
    except KeyError:
        kind = _kinds[type_] = _find_kind(type_)
    if kind is _ASK_EACH:
        return _INTERFACE if hasattr(value, "__cuda_array_interface__") else None
    return kind


def _find_kind(type_: type) -> Kind | None:
    if issubclass(type_, (np.ndarray, np.generic)) or is_array_type(type_):  # treadle's own
        return None
    root = type_.__module__.partition(".")[0]
    root = _ALSO_KNOWN_AS.get(root, root)
    library = LIBRARIES.get(root) or Library(root)
    if root == "torch" and type_.__name__ in ("Tensor", "Parameter"):  # not their subclasses
        return Kind(library, _torch_place, _read_torch, _torch_facts)
    if root == "cupy" and type_.__name__ == "ndarray":
        return Kind(library, _cupy_place, _read_cupy, _cupy_facts)
    if hasattr(type_, "__dlpack__"):
        return Kind(library, _dlpack_place, _read_dlpack)
    if hasattr(type_, "__cuda_array_interface__"):
        return replace(_INTERFACE, library=library)
    return _ASK_EACH


def read(value: Any, what: str) -> Foreign:
    """Read another library's array. LaunchError if its library refuses."""
    kind = kind_of(value) or _NUMPY
    try:
        found = kind.read(kind, value)
    except DtypeError as error:
        raise DtypeError(f"{what}: {error}") from None
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise LaunchError(f"{what} cannot be used without a copy: {error}") from None
    if kind.library.immutable:
        found.read_only = True
    return found


# --- PyTorch -------------------------------------------------------------------------------------


def _torch_place(tensor: Any) -> tuple[int, int]:
    if tensor.is_cpu:
        return dlpack.CPU, 0
    number = tensor.get_device()
    if tensor.is_cuda and sys.modules["torch"].version.hip is None:
        return dlpack.CUDA, number
    return 0, number


_torch_dtypes: dict[Any, DType] = {}


def _read_torch(kind: Kind, tensor: Any) -> Foreign:
    """PyTorch's tensors by their attributes: 2 µs, where DLPack takes 10."""
    if tensor.requires_grad:
        raise BufferError("it requires gradients, which a kernel would not see: use x.detach()")
    if tensor.is_conj() or tensor.is_neg():
        raise BufferError("its conjugation or sign is not applied yet: use x.resolve_conj()")
    storage = tensor.untyped_storage()  # an error for sparse tensors, which have none
    dtype = _torch_dtypes.get(tensor.dtype)
    if dtype is None:
        dtype = dtypes.as_dtype(str(tensor.dtype).partition(".")[2])
        _torch_dtypes[tensor.dtype] = dtype
    return Foreign(
        kind.library, _torch_place(tensor), tensor.data_ptr(), dtype,
        tuple(tensor.shape), tensor.stride(), False, tensor,
        whole=(storage.data_ptr(), storage.nbytes()),
    )  # fmt: skip


def _torch_facts(tensor: Any) -> Any:
    return (
        tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device(),
        tensor.requires_grad, tensor.is_conj(), tensor.is_neg(),
    )  # fmt: skip


# --- CuPy ----------------------------------------------------------------------------------------

_numpy_dtypes: dict[np.dtype[Any], DType | np.dtype[Any]] = {}


def _of_numpy(dtype: np.dtype[Any]) -> DType | np.dtype[Any]:
    found = _numpy_dtypes.get(dtype)
    if found is None:
        if not dtype.isnative:
            raise BufferError(f"{dtype} is not in this machine's byte order: convert it first")
        found = _numpy_dtypes[dtype] = array_dtype(dtype)
    return found


def _cupy_place(array: Any) -> tuple[int, int]:
    return dlpack.CUDA, array.data.device_id


def _read_cupy(kind: Kind, array: Any) -> Foreign:
    memory = array.data
    whole = memory.mem
    return Foreign(
        kind.library, (dlpack.CUDA, memory.device_id), memory.ptr, _of_numpy(array.dtype),
        array.shape, _in_elements(array.strides, array.dtype.itemsize), False, array,
        whole=(whole.ptr, whole.size),
    )  # fmt: skip


def _cupy_facts(array: Any) -> Any:
    memory = array.data
    return memory.ptr, array.shape, array.strides, array.dtype, memory.device_id


def _in_elements(strides: tuple[int, ...], item: int) -> tuple[int, ...]:
    if any(stride % item for stride in strides):
        raise BufferError(
            f"its strides {strides} are not multiples of the size of an element, {item} bytes: "
            "copy it first"
        )
    return tuple(stride // item for stride in strides)


# --- NumPy ---------------------------------------------------------------------------------------


def _read_numpy(kind: Kind, array: Any) -> Foreign:
    """NumPy's arrays by their attributes: its DLPack has neither structs nor bfloat16."""
    check_unmasked(array)
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high = byte_bounds(root)
    item = array.dtype.itemsize
    strides = tuple(s if n > 1 else item for n, s in zip(array.shape, array.strides, strict=True))
    return Foreign(
        kind.library, (dlpack.CPU, 0), array.ctypes.data, _of_numpy(array.dtype), array.shape,
        _in_elements(strides, item), not array.flags.writeable, array, whole=(low, high - low),
    )  # fmt: skip


# --- DLPack --------------------------------------------------------------------------------------


def _dlpack_place(array: Any) -> tuple[int, int]:
    kind, number = array.__dlpack_device__()
    return int(kind), number


def _read_dlpack(kind: Kind, array: Any) -> Foreign:
    place = _dlpack_place(array)
    # The library orders its work before later work on the legacy default stream, and so before
    # later work on treadle's default stream.
    options: dict[str, Any] = {"stream": LEGACY} if place[0] in dlpack.CUDA_KINDS else {}
    try:
        capsule = array.__dlpack__(max_version=dlpack.VERSION, **options)
    except TypeError:  # a producer older than DLPack 1.0
        capsule = array.__dlpack__(**options)
    except BufferError:
        if not hasattr(array, "__cuda_array_interface__"):
            raise
        return _read_interface(kind, array)
    managed = dlpack.Managed(capsule)
    shape, strides = managed.shape, managed.strides
    return Foreign(
        kind.library, place, managed.address, managed.dtype, shape,
        packed_strides(shape) if strides is None else strides, managed.read_only, managed,
    )  # fmt: skip


# --- __cuda_array_interface__ --------------------------------------------------------------------


def _interface_place(array: Any) -> tuple[int, int]:
    return dlpack.CUDA, -1


def _read_interface(kind: Kind, array: Any) -> Foreign:
    found = array.__cuda_array_interface__
    if found.get("mask") is not None:
        raise BufferError("it has a mask")
    address, read_only = found["data"]
    dtype = np.dtype(found["typestr"])
    if dtype.kind == "V":
        dtype = descr_to_dtype(found.get("descr", dtype.str))
    shape, strides = tuple(found["shape"]), found.get("strides")
    return Foreign(
        kind.library, (dlpack.CUDA, -1), address or 0, _of_numpy(dtype), shape,
        packed_strides(shape) if strides is None else _in_elements(strides, dtype.itemsize),
        bool(read_only), array, found.get("stream"),
    )  # fmt: skip


# NumPy's arrays are copied as arguments, but may be shared as tensors.
_NUMPY = Kind(Library("numpy"), _dlpack_place, _read_numpy)
_INTERFACE = Kind(Library("another library"), _interface_place, _read_interface)
# For a type without the interface, of which single objects may have it.
_ASK_EACH = replace(_INTERFACE)


def alignment_of(dtype: DType | np.dtype[Any]) -> int:
    """The alignment of elements that compiled code relies on: the largest power of two that divides
    their size, up to 16 bytes, the widest access."""
    return math.gcd(dtype.itemsize, 16)
