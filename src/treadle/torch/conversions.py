"""`x.to(…)` in all its forms, and its short names; what tensors say of their memory."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.core.errors import TreadleError
from treadle.runtime.arrays import packed_strides
from treadle.runtime.devices import Device as TheirDevice
from treadle.torch.devices import device as Device
from treadle.torch.devices import place
from treadle.torch.dtypes import dtype_named
from treadle.torch.errors import translated
from treadle.torch.legacy import NAMES, inner_of
from treadle.torch.operations.operands import converted
from treadle.torch.tensors import Tensor, wrap


def _as(self: Tensor, dtype: DType | None, where: TheirDevice | None, copy: bool = False) -> Tensor:
    """The tensor in a dtype and on a device; itself if nothing changes."""
    inner = self._inner
    try:
        if dtype is not None and inner.dtype.is_complex and not dtype.is_complex:
            return wrap(converted(inner, dtype).to(where or inner.device))
        made = inner.to(where, dtype=dtype)
    except TreadleError as error:
        raise translated(error) from None
    if made is inner:
        return wrap(inner.copied()) if copy else self
    return wrap(made)


def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """The tensor in a dtype, on a device, or as another tensor is; itself if nothing changes.

    >>> import treadle.torch as torch
    >>> x = torch.ones(2)
    >>> x.to(torch.int64), x.to("cpu") is x
    (tensor([1, 1]), True)
    """
    return _as(self, *wanted(args, dtype, device, other, copy))


def wanted(
    args: tuple[Any, ...], dtype: Any, device: Any, other: Tensor | None, copy: bool
) -> tuple[DType | None, TheirDevice | None, bool]:
    """The dtype and the device that `x.to(…)` asks for, and whether it wants a copy."""
    rest = []
    for each in args:
        if isinstance(each, Tensor):
            other = each
        elif isinstance(each, (str, Device, TheirDevice)):
            device = each
        elif isinstance(each, bool) or each is None:
            rest.append(each)
        elif isinstance(each, int):
            device = Device("cuda", each)
        else:
            dtype = each
    if other is not None:
        dtype, device = other.dtype, other.device
    copy = copy or bool(len(rest) > 1 and rest[1])
    where = None if device is None else place(device)
    return None if dtype is None else dtype_named(dtype), where, copy


def _caster(name: str, dtype: DType) -> Any:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return _as(self, dtype, None)

    method.__name__, method.__doc__ = name, f"The elements as {dtype}."
    return method


SHORT = {
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64", "half": "float16", "bfloat16": "bfloat16", "float": "float32",
    "double": "float64", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
CASTS = {name: _caster(name, getattr(td, dtype)) for name, dtype in SHORT.items()}


def new(self: Tensor, *data: Any, device: Any = None) -> Tensor:
    """Elements that are given, or undefined ones of extents, with the dtype and device."""
    where = self._inner.device if device is None else device
    return wrap(inner_of(data, self._inner.dtype, where))


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU."""
    return _as(self, None, place("cpu"))


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """The tensor on a CUDA device: the default one, or one by its number."""
    if isinstance(device, int):
        device = Device("cuda", device)
    return _as(self, None, place("cuda" if device is None else device))


def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
    """The name of PyTorch's class for the dtype and device; with a dtype, the elements in it."""
    if dtype is None:
        kind = "" if _backend(self) == "cpu" else f"{_backend(self)}."
        return f"torch.{kind}{NAMES[self._inner.dtype.name]}"
    if isinstance(dtype, str):
        short = dtype.rpartition(".")[2]
        wanted = {name: each for each, name in NAMES.items()}.get(short)
        if wanted is None:
            raise ValueError(f"invalid type: {dtype!r}")
        return _as(self, getattr(td, wanted), place("cuda") if ".cuda." in dtype else None)
    return _as(self, dtype_named(getattr(dtype, "dtype", dtype)), None)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with another's dtype, on its device."""
    return _as(self, other._inner.dtype, other._inner.device)


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The elements in row-major order: the tensor itself, if they are."""
    return self if is_contiguous(self) else wrap(self._inner.copied())


def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in row-major order, one after the other."""
    inner = self._inner
    wanted = packed_strides(inner.shape)
    return not inner.size or all(
        extent == 1 or own == other
        for extent, own, other in zip(inner.shape, inner.strides, wanted, strict=True)
    )


def storage_offset(self: Tensor) -> int:
    """Where the first element lies, in elements from the start of the memory."""
    return self._inner._where.offset


def data_ptr(self: Tensor) -> int:
    """The address of the first element. RuntimeError on devices without addresses."""
    inner = self._inner.realize()
    try:
        interface = getattr(inner, "__cuda_array_interface__", None)
        if interface is not None:
            return int(interface["data"][0])
        import numpy as np

        return int(np.from_dlpack(inner.detach()).__array_interface__["data"][0])
    except (BufferError, TypeError, AttributeError, RuntimeError):
        raise RuntimeError(
            f"memory of {self._inner.device.id} has no address that Python knows"
        ) from None


def element_size(self: Tensor) -> int:
    """The bytes of an element."""
    return self._inner.dtype.itemsize


def nbytes(self: Tensor) -> int:
    """The bytes of all elements."""
    return self._inner.nbytes


def itemsize(self: Tensor) -> int:
    """The bytes of an element."""
    return self._inner.dtype.itemsize


def _backend(self: Tensor) -> str:
    return self._inner.device.id.partition(":")[0]


def is_cuda(self: Tensor) -> bool:
    """Whether the elements are on a CUDA device."""
    return Device(self._inner.device).type == "cuda"


def is_cpu(self: Tensor) -> bool:
    """Whether the elements are on the CPU."""
    return _backend(self) == "cpu"


def get_device(self: Tensor) -> int:
    """The number of the device; -1 on the CPU."""
    number = self._inner.device.id.partition(":")[2]
    return -1 if is_cpu(self) else int(number or 0)


def layout(self: Tensor) -> Any:
    """How elements are stored: always `torch.strided`."""
    from treadle.torch.layouts import strided

    return strided


def _never(self: Tensor) -> bool:
    """What tensors here never are."""
    return False


is_sparse = is_quantized = is_mps = is_xpu = is_meta = is_mkldnn = is_nested = _never
is_sparse_csr = is_vulkan = is_xla = is_mtia = is_ipu = is_maia = _never
names = None


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: memory for uploads is the library's own."""
    return self


def share_memory_(self: Tensor) -> Tensor:
    """RuntimeError: memory is not shared among processes."""
    raise RuntimeError("tensors do not share memory among processes: send x.numpy()")


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Replace each element by a Python function of it, on the CPU. RuntimeError elsewhere."""
    if not is_cpu(self):
        raise RuntimeError("apply_ is only implemented on CPU tensors")
    import numpy as np

    values = self._inner.numpy()
    found = np.array([callable(each) for each in values.reshape(-1).tolist()], values.dtype)
    self._inner[...] = td.asarray(found.reshape(values.shape), device=self._inner.device)
    return self
