"""Exports arrays to other libraries: DLPack on cpu and cuda, `__cuda_array_interface__` on cuda,
and NumPy's arrays on the memory of the CPU.

All share memory and do not copy. On the CPU a launch is done when it returns. On CUDA the
consumer's stream is made to wait for treadle's (DLPack), or the consumer waits for the stream that
the interface names (`__cuda_array_interface__`).

While another library has the memory, its storage is marked as shared, and nothing that reads or
writes it is lazy. DLPack and NumPy signal when they are done. `__cuda_array_interface__` does not:
memory exported in that way stays shared as long as its storage lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.runtime import dlpack
from treadle.runtime.arrays import DeviceArray, numpy_dtype
from treadle.runtime.devices import device
from treadle.runtime.libraries import owner_of_stream

_NO_ORDER = -1  # a consumer's stream: it orders the work itself
_TYPE_CODES = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}


class Exported:
    """The export protocols of an array, as a base class."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __treadle_array__(self, kernel: str | None = None) -> DeviceArray:
            """Its elements (see `LaunchArray`)."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory, for CUDA libraries. Other devices do not have it, and bfloat16 neither, which
        the protocol cannot express (DLPack can). A consumer does not signal when it is done, so
        operations on the memory are not lazy from here on."""
        return _interface(self.__treadle_array__())

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind and number of the device, as DLPack counts them. BufferError on WebGPU."""
        return _place(self.__treadle_array__())

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule with the memory, for `from_dlpack` of another library. The array lives until
        that library releases the memory.

        `stream` is the consumer's on CUDA (None and 1: the legacy default stream, 2: the thread's
        own, -1: no order). `dl_device` may be the CPU's, which copies. BufferError for what DLPack
        cannot express, and on WebGPU, whose memory other libraries cannot access.
        """
        array, copied = self.__treadle_array__(), False
        host = dl_device is not None and dl_device[0] == dlpack.CPU
        place = (dlpack.CPU, 0) if host else _place(array)
        if dl_device is not None and (int(dl_device[0]), dl_device[1]) != place:
            raise BufferError(
                f"a tensor on {array.device.id} cannot be exported to the device "
                f"{tuple(dl_device)} of DLPack: move it first, with .to(device)"
            )
        if host and not array.device.traits.host_memory:
            if copy is False:
                raise BufferError(f"a tensor on {array.device.id} is copied to get to the CPU")
            array, copied = array.copy_to(device("cpu")), True
        elif copy:
            array, copied = array.copy_to(array.device), True
        return _capsule(
            array, place, stream, max_version is not None and max_version[0] > 0, copied
        )


def host_view(array: DeviceArray) -> np.ndarray[Any, Any]:
    """An array on the CPU as NumPy's, without a copy. It is lent until NumPy's array and all views
    of it are freed."""
    return np.asarray(Lent(array)).view(numpy_dtype(array.dtype))


def _place(array: DeviceArray) -> tuple[int, int]:
    if array.device.traits.host_memory:
        return dlpack.CPU, 0
    if not array.device.traits.cuda_memory:
        raise BufferError(
            f"other libraries cannot access the memory of {array.device.id}: copy it, with "
            'x.numpy() or x.to("cpu")'
        )
    return dlpack.CUDA, int(array.device.id.partition(":")[2] or 0)


def _capsule(
    array: DeviceArray, place: tuple[int, int], stream: int | None, versioned: bool, copied: bool
) -> Any:
    if not isinstance(array.dtype, DType):
        raise BufferError(f"DLPack has no structs, such as {array.dtype}: export a field's copy")
    if array.key.read_only and not versioned:
        raise BufferError(
            "this tensor is read-only, which only DLPack 1.0 and newer express: copy it first"
        )
    if place[0] == dlpack.CUDA:
        lent = Lent(array, _let_in(array, stream), place[1])
    elif stream not in (None, _NO_ORDER):
        raise ValueError(
            f"stream is for CUDA, and this tensor is on {array.device.id}: leave it out"
        )
    else:
        lent = Lent(array)
    return dlpack.capsule(
        _address(array), place, array.dtype, array.shape, array.strides,
        keep=lent, versioned=versioned, read_only=array.key.read_only, copied=copied,
    )  # fmt: skip


def _let_in(array: DeviceArray, stream: int | None) -> int | None:
    """Let a consumer's stream wait for the work on an array. Returns the stream if treadle must
    wait for it when the consumer is done."""
    if stream == 0 or (stream is not None and (not isinstance(stream, int) or stream < _NO_ORDER)):
        raise ValueError(
            f"{stream!r} is not a stream: for DLPack 1 is the legacy default stream, 2 the "
            "thread's own, and other streams are their handles"
        )
    if stream == _NO_ORDER:
        return None
    ours = array.device.default_stream.handle
    ours.use([array.buffer])  # after the work on treadle's other streams
    if stream is None or stream == dlpack.LEGACY:
        ours.flush()  # the driver orders the legacy stream after this one
        return None
    ours.precede(stream)
    return stream


def _lend(array: DeviceArray) -> Callable[[], None]:
    """Lend memory to another library; returns the function that ends the loan. The library may read
    it now, which ends the recording of a function that is being traced."""
    if (interrupt := array.device.default_stream.interrupt) is not None:
        interrupt("memory is given to another library")
    return array.device.shared_storages.lend(array.storage)


class Lent:
    """An array while another library has its memory. Treadle's work on it continues after that
    library's, which on CUDA is on a stream."""

    __slots__ = ("array", "end", "owner", "stream")

    def __init__(self, array: DeviceArray, stream: int | None = None, number: int = 0) -> None:
        self.owner = None if stream is None else owner_of_stream(stream, number)
        self.stream = stream
        self.end = _lend(array)
        self.array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """For NumPy, whose array keeps this object as its base. Its dtype is bytes; see
        `host_view`."""
        array = self.array
        item = array.dtype.itemsize
        # Broadcast elements share memory and are read-only, as in NumPy.
        repeated = any(n > 1 and s == 0 for n, s in zip(array.shape, array.strides, strict=True))
        return {
            "version": 3,
            "shape": array.shape,
            "typestr": f"|V{item}",
            "data": (_address(array), array.key.read_only or repeated),
            "strides": tuple(stride * item for stride in array.strides),
        }

    def __del__(self) -> None:
        array: DeviceArray | None = getattr(self, "array", None)
        if array is None:  # lending it failed
            return
        stream, owner = self.stream, self.owner
        device = array.device
        device.shared_storages.deferred.append(self.end)
        if stream is None and not device.several_streams:
            return

        def take_back() -> None:
            ours = device.default_stream.handle
            if stream is not None:
                ours.wait_for(stream)
            ours.use([array.buffer])
            _ = owner  # it had to live until here

        device.shared_storages.deferred.append(take_back)


def _interface(array: DeviceArray) -> dict[str, Any]:
    if not array.device.traits.cuda_memory:
        raise AttributeError(f"no __cuda_array_interface__: the tensor is on {array.device.id}")
    dtype, descr = array.dtype, None
    if not isinstance(dtype, DType):
        typestr, descr = dtype.str, dtype.descr
    elif dtype.name == "bfloat16":
        raise AttributeError(
            "__cuda_array_interface__ has no bfloat16: use DLPack, as torch.from_dlpack(x) does"
        )
    else:
        typestr = f"{'|' if dtype.itemsize == 1 else '<'}{_TYPE_CODES[dtype.kind]}{dtype.itemsize}"
    stream = array.device.default_stream.handle
    stream.use([array.buffer])
    stream.flush()
    _lend(array)
    item = dtype.itemsize
    found = {
        "version": 3,
        "shape": array.shape,
        "typestr": typestr,
        "data": (_address(array) if array.size else 0, array.key.read_only),
        "strides": None if array.contiguous else tuple(s * item for s in array.strides),
        "stream": stream.native_handle(),
    }
    return found if descr is None else {**found, "descr": descr}


def _address(array: DeviceArray) -> int:
    return int(array.buffer.address()) + array.offset * array.dtype.itemsize
