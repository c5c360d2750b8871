"""The arguments of windows over images: each is one number, or one for each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.core.errors import ShapeError
from treadle.core.sizes import index
from treadle.kernels.pool import Three, Windows
from treadle.tensor.operands import operand
from treadle.tensor.tensor import Tensor

Sizes = int | Sequence[int]  # one for all axes, or one for each


class WindowSizes(NamedTuple):
    """The arguments of windows: each is one number, or one for each axis. A stride of None is
    `kernel_size`."""

    kernel_size: Sizes
    stride: Sizes | None = None
    padding: Sizes = 0
    dilation: Sizes = 1
    ceil_mode: bool = False

    def by_axis(self, name: str, axes: int) -> tuple[tuple[int, ...], ...]:
        """Kernel, stride, padding and dilation of each axis."""
        kernel = numbers_of(name, "kernel_size", self.kernel_size, axes)
        stride = kernel
        if self.stride is not None:
            stride = numbers_of(name, "stride", self.stride, axes)
        padding = numbers_of(name, "padding", self.padding, axes)
        return kernel, stride, padding, numbers_of(name, "dilation", self.dilation, axes)


def numbers_of(name: str, what: str, value: Any, axes: int) -> tuple[int, ...]:
    """An integer for each axis, from one for all or a sequence. A sequence of one is used for all,
    as in PyTorch."""
    given = value if isinstance(value, Sequence) else (value,)
    try:
        numbers = tuple([index(number) for number in given])
    except TypeError:
        raise TypeError(f"{name}: {what} is an integer, or {axes} of them, not {value!r}") from None
    if len(numbers) == 1:
        return numbers * axes
    if len(numbers) != axes:
        raise ShapeError(f"{name}: {what}={numbers} has {len(numbers)} numbers, not {axes}")
    return numbers


def for_each_axis(value: Sizes, axes: int) -> tuple[int, ...]:
    """A number for each axis, from one for all; of a sequence the length is not checked."""
    return (value,) * axes if isinstance(value, int) else tuple(value)


def check_positive(name: str, what: str, numbers: Sequence[int]) -> None:
    """ValueError unless all numbers are above 0."""
    if min(numbers) < 1:
        shown = numbers[0] if len(numbers) == 1 else tuple(numbers)
        raise ValueError(f"{name}: {what} must be positive, not {shown}")


def images(name: str, input: Any, axes: int) -> Tensor:
    """An input of shape (N, C, …) or (C, …) whose last axes are images, as a tensor. ShapeError for
    empty images."""
    x = operand(name, input)
    if x.ndim not in (axes + 1, axes + 2):
        last = ("L", "H, W", "D, H, W")[axes - 1]
        raise ShapeError(
            f"{name} takes an input of shape (N, C, {last}) or (C, {last}), not {x.shape}"
        )
    if 0 in x.shape[-axes:]:
        raise ShapeError(f"{name}: images of an input of shape {x.shape} have no elements")
    return x


def windows_of(name: str, x: Tensor, axes: int, sizes: WindowSizes) -> Windows:
    """The windows over the last axes of a tensor, by their arguments."""
    if sizes.stride == ():  # as in PyTorch's low-level functions
        sizes = sizes._replace(stride=None)
    kernel, stride, padding, dilation = sizes.by_axis(name, axes)
    ceil_mode = sizes.ceil_mode
    for what, numbers in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        check_positive(name, what, numbers)
    extents, counts = x.shape[-axes:], []
    for extent, k, s, p, d in zip(extents, kernel, stride, padding, dilation, strict=True):
        reach = (k - 1) * d + 1
        if not 0 <= p <= reach // 2:
            raise ValueError(
                f"{name}: padding={padding} must be from 0 to half of a window, which is {reach} "
                f"long (kernel_size={kernel}, dilation={dilation})"
            )
        room = extent + 2 * p - reach
        count = -(-room // s) + 1 if ceil_mode else room // s + 1
        if ceil_mode and (count - 1) * s >= extent + p:  # it would begin after the image
            count -= 1
        if count < 1:
            raise ShapeError(
                f"{name}: a window of kernel_size={kernel}, dilation={dilation} is larger than an "
                f"image of {extents} with padding={padding}"
            )
        counts.append(count)
    return Windows(
        axes,
        _three(extents, 1),
        _three(counts, 1),
        _three(kernel, 1),
        _three(stride, 1),
        _three(padding, 0),
        _three(dilation, 1),
    )


def _three(numbers: Sequence[int], missing: int) -> Three:
    """Numbers for three axes, with `missing` for missing leading ones."""
    z, y, x = (missing,) * (3 - len(numbers)) + tuple(numbers)
    return z, y, x


def counts_of(name: str, x: Tensor, axes: int, wanted: Any) -> tuple[int, ...]:
    """The number of windows along each axis; None: one for each element."""
    given = wanted if isinstance(wanted, Sequence) else (wanted,) * axes
    if len(given) == axes:
        extents = x.shape[-axes:]
        given = [e if number is None else number for number, e in zip(given, extents, strict=True)]
    counts = numbers_of(name, "output_size", given, axes)
    check_positive(name, "output_size", counts)
    return counts


def shared_windows(x: Tensor, axes: int, counts: tuple[int, ...]) -> Windows:
    """Windows that divide images evenly, `counts` of them along each axis."""
    return Windows(axes, _three(x.shape[-axes:], 1), _three(counts, 1))


def last_axes(axes: int) -> tuple[int, ...]:
    """The last axes, counted from the end."""
    return tuple(range(-axes, 0))
