"""Complex numbers' parts, and what can be said of a tensor's elements."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.tensor import computed_views
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import floating


def real(input: Inner) -> Inner:
    """The real part, as a view; of real numbers the tensor itself."""
    return computed_views.real_part(input) if input.dtype.is_complex else input


def imag(input: Inner) -> Inner:
    """The imaginary part, as a view. RuntimeError for real numbers."""
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return computed_views.imaginary_part(input)


def conj(input: Inner) -> Inner:
    """The complex conjugate; of real numbers the tensor itself."""
    return apply("conj", input) if input.dtype.is_complex else input


def angle(input: Inner) -> Inner:
    """The angle of each number: 0 or π of real ones."""
    if input.dtype.kind not in ("float", "complex"):
        input = input.to(floating(input.dtype))
    return apply("angle", input)


def view_as_real(input: Inner) -> Inner:
    """The real and the imaginary parts along a last axis, as a view."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return computed_views.pairs(input)


def view_as_complex(input: Inner) -> Inner:
    """Complex numbers whose parts lie along the last axis, as a view."""
    if input.dtype.kind != "float":
        raise RuntimeError("view_as_complex is only supported for floating point tensors")
    if not input.shape or input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    return computed_views.complex_of_pairs(input)


def same(input: Inner) -> Inner:
    """The tensor itself: conjugates and negatives are computed, not marked."""
    return input


def is_not(input: Inner) -> bool:
    """False: conjugates and negatives are computed, not marked."""
    return False


def is_complex(input: Inner) -> bool:
    """Whether the elements are complex."""
    return input.dtype.is_complex


def is_floating_point(input: Inner) -> bool:
    """Whether the elements are floating."""
    return input.dtype.is_float


def is_signed(input: Inner) -> bool:
    """Whether the dtype has negative numbers."""
    return input.dtype.is_signed


def is_nonzero(input: Inner) -> bool:
    """Whether the only element is not 0. RuntimeError if there is not exactly one."""
    if input.size != 1:
        what = "more than one value" if input.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(input.item())


def is_same_size(input: Inner, other: Inner) -> bool:
    """Whether two tensors have one shape."""
    return input.shape == other.shape


def numel(input: Inner) -> int:
    """The number of elements."""
    return input.size


def clone(input: Inner, *, memory_format: Any = None) -> Inner:
    """A copy, through which gradients go on."""
    return input.copied()


def copy(input: Inner, src: Inner, non_blocking: bool = False) -> Inner:
    """Another tensor's elements, broadcast and cast: for `copy_`."""
    return td.broadcast_to(src.to(input.device).to(input.dtype), input.shape)


def fill(input: Inner, value: Any) -> Inner:
    """One value everywhere."""
    if isinstance(value, Inner):
        if value.shape:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{len(value.shape)} dimensions."
            )
        return td.broadcast_to(value.to(input.device).to(input.dtype), input.shape)
    if input.dtype.is_integer and isinstance(value, float):
        value = int(value)
    return td.full_like(input, value)


def zero(input: Inner) -> Inner:
    """Zeros everywhere: for `zero_`."""
    return td.zeros_like(input)


def constant_pad_nd(input: Inner, pad: Any, value: Any = 0) -> Inner:
    """Elements around the tensor: before and after each axis, the last axis first."""
    return td.nn.functional.pad(input, tuple(pad), "constant", value)


def detach(input: Inner) -> Inner:
    """The same elements, cut off from gradients."""
    return input.detach()


def detach_copy(input: Inner) -> Inner:
    """A copy of the elements, cut off from gradients."""
    return input.detach().copied()


def to_dlpack(tensor: Inner) -> Any:
    """The tensor as a capsule, for `from_dlpack` of another library."""
    return tensor.__dlpack__()


def get_device(input: Inner) -> int:
    """The number of the device; -1 on the CPU."""
    kind, _, number = input.device.id.partition(":")
    return -1 if kind == "cpu" else int(number or 0)
