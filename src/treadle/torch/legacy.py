"""`torch.Tensor(2, 3)`, `torch.LongTensor([1, 2])`, and `isinstance(x, torch.FloatTensor)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import dtypes
from treadle.torch.devices import place
from treadle.torch.layouts import strided
from treadle.torch.operations import creation
from treadle.torch.tensors import Tensor, unwrapped, wrap


def inner_of(data: tuple[Any, ...], wanted: DType | None, device: Any) -> Inner:
    """What these constructors make: elements that are given, or extents."""
    given = unwrapped(data)
    wanted = dtypes.get_default_dtype() if wanted is None else wanted
    if not given or type(given[0]) is int:
        return td.empty(given or (0,), dtype=wanted, device=place(device))
    if len(given) == 1 and isinstance(given[0], Inner):
        return given[0].detach().to(wanted)
    if len(given) == 1 and type(given[0]).__name__ == "Size":
        return td.empty(given[0], dtype=wanted, device=place(device))
    if len(given) != 1:
        raise TypeError(f"new(): extents, or one sequence of elements, not {data!r}")
    return creation.tensor(given[0], dtype=wanted, device=device)


class _OfDtype(type):
    """The class of tensors of one dtype."""

    dtype: DType

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        return wrap(inner_of(data, cls.dtype, device))

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.layout is strided
            and instance.dtype is cls.dtype
        )


# The class of dtypes, by PyTorch's name.
dtype = DType

# The names of classes by the names of dtypes.
NAMES = {
    "bool": "BoolTensor", "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor",
    "int32": "IntTensor", "int64": "LongTensor", "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor", "float32": "FloatTensor", "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}  # fmt: skip
globals().update(
    (name, _OfDtype(name, (), {"dtype": getattr(td, dtype), "__doc__": f"Tensors of {dtype}."}))
    for dtype, name in NAMES.items()
)
if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
