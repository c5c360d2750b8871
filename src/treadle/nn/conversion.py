"""Parameters and buffers on another device, or of another dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.core.dtypes import DType, int32, int64, uint32, uint64
from treadle.core.errors import DtypeError
from treadle.graph.history import recorded
from treadle.runtime.devices import device as find_device
from treadle.tensor.dtypes import supports
from treadle.tensor.tensor import Tensor, as_device_dtype

# What stands for integers that a device lacks: counters of batches fit.
_NARROWER = {int64: int32, uint64: uint32}


def conversion(
    *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False
) -> Callable[[Tensor], Tensor]:
    """What `Module.to` does to each tensor. `non_blocking` changes nothing: copies are queued."""
    for given in args:
        if isinstance(given, Tensor):
            device, dtype = given.device, given.dtype
        elif isinstance(given, bool):
            pass  # PyTorch's non_blocking
        elif given is not None:
            try:
                dtype = as_device_dtype(given)
            except DtypeError:
                device = given
    where = None if device is None else find_device(device)
    wanted = None if dtype is None else as_device_dtype(dtype)
    if wanted is not None and not (
        isinstance(wanted, DType) and wanted.kind in ("float", "complex")
    ):
        raise DtypeError(
            f"modules are cast to floating or complex dtypes, not to {wanted}: use .type(dtype) to "
            "cast all of their tensors"
        )

    def convert(x: Tensor) -> Tensor:
        is_number = isinstance(x.dtype, DType) and x.dtype.kind in ("float", "complex")
        kind = wanted if is_number and wanted is not None else x.dtype
        if where is not None and isinstance(kind, DType) and not supports(where, kind):
            kind = _NARROWER.get(kind, kind)
        return x.to(dtype=kind, device=where)

    return convert


def converted(module: Any, function: Callable[[Tensor], Tensor]) -> None:
    """Replace the tensors of a module, and of those within it, by a function of them."""
    seen: dict[int, tuple[Tensor, Tensor]] = {}
    with recorded(False):
        for each in module.modules():
            for parameter in each._parameters.values():
                if parameter is not None and id(parameter) not in seen:
                    become(parameter, function)
                    seen[id(parameter)] = parameter, parameter
            for name, buffer in each._buffers.items():
                if buffer is not None:
                    if id(buffer) not in seen:
                        seen[id(buffer)] = buffer, function(buffer)
                    each._buffers[name] = seen[id(buffer)][1]


def become(parameter: Tensor, function: Callable[[Tensor], Tensor]) -> None:
    """Give a parameter, and its gradient, what a function makes of them."""
    own = parameter.detach()
    data = function(own)
    if data is own:
        return
    gradient = parameter.grad
    parameter.grad = None
    parameter.data = data
    if gradient is not None:
        parameter.grad = function(gradient)
