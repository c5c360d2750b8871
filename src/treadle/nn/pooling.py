"""Windows of images, of which the greatest element or a mean is taken: `td.nn.functional`'s pools
with their settings as attributes. Images have the shape (N, C, …) or (C, …)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.nn.function_module import FunctionModule
from treadle.tensor.functional import pooling, unpooling
from treadle.tensor.tensor import Tensor

Sizes = int | tuple[int, ...]


# --- the greatest element ------------------------------------------------------------------------


class _MaxPool(FunctionModule):
    _text = (
        "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, "
        "ceil_mode={ceil_mode}"
    )

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )


class MaxPool1d(_MaxPool):
    """The greatest element of each window of one axis; with `return_indices` its place, too.

    >>> import treadle as td
    >>> td.nn.MaxPool1d(2)(td.ones((1, 4), device="cpu")).shape
    (1, 2)
    """

    _function = staticmethod(pooling.max_pool1d)


class MaxPool2d(_MaxPool):
    """The greatest element of each window of two axes; with `return_indices` its place, too.

    >>> import treadle as td
    >>> images = td.reshape(td.arange(16.0, device="cpu"), (1, 1, 4, 4))
    >>> td.nn.MaxPool2d(2)(images).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    _function = staticmethod(pooling.max_pool2d)


class MaxPool3d(_MaxPool):
    """The greatest element of each window of three axes; with `return_indices` its place, too."""

    _function = staticmethod(pooling.max_pool3d)


class _MaxUnpool(FunctionModule):
    _axes: int
    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__(
            kernel_size=_several(kernel_size, self._axes),
            stride=_several(kernel_size if stride is None else stride, self._axes),
            padding=_several(padding, self._axes),
        )

    def forward(self, input: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """Images with zeros but for the places of the greatest elements."""
        function = type(self)._function
        found: Tensor = function(input, indices, **self._values(), output_size=output_size)
        return found


class MaxUnpool1d(_MaxUnpool):
    """What `MaxPool1d` found, put back to its places."""

    _axes = 1
    _function = staticmethod(unpooling.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """What `MaxPool2d` found, put back to its places."""

    _axes = 2
    _function = staticmethod(unpooling.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """What `MaxPool3d` found, put back to its places."""

    _axes = 3
    _function = staticmethod(unpooling.max_unpool3d)


# --- means ---------------------------------------------------------------------------------------


class AvgPool1d(FunctionModule):
    """The mean of each window of one axis."""

    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
    _function = staticmethod(pooling.avg_pool1d)

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(
            kernel_size=_several(kernel_size, 1),
            stride=_several(kernel_size if stride is None else stride, 1),
            padding=_several(padding, 1),
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        )


class _AvgPool(FunctionModule):
    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
        )


class AvgPool2d(_AvgPool):
    """The mean of each window of two axes.

    >>> import treadle as td
    >>> td.nn.AvgPool2d(2)(td.ones((1, 1, 4, 4), device="cpu")).shape
    (1, 1, 2, 2)
    """

    _function = staticmethod(pooling.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of three axes."""

    _function = staticmethod(pooling.avg_pool3d)


class _LPPool(FunctionModule):
    _text = (
        "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"
    )

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode
        )


class LPPool1d(_LPPool):
    """The norm of each window of one axis."""

    _function = staticmethod(pooling.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window of two axes."""

    _function = staticmethod(pooling.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window of three axes."""

    _function = staticmethod(pooling.lp_pool3d)


# --- as many windows as asked for ----------------------------------------------------------------


class _AdaptiveMaxPool(FunctionModule):
    _text = "output_size={output_size}"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The greatest elements of `output_size` windows that share an axis."""

    _function = staticmethod(pooling.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The greatest elements of `output_size` windows that share two axes."""

    _function = staticmethod(pooling.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The greatest elements of `output_size` windows that share three axes."""

    _function = staticmethod(pooling.adaptive_max_pool3d)


class _AdaptiveAvgPool(FunctionModule):
    _text = "output_size={output_size}"

    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size=output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that share an axis."""

    _function = staticmethod(pooling.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of `output_size` windows that share two axes.

    >>> import treadle as td
    >>> td.nn.AdaptiveAvgPool2d(1)(td.ones((1, 3, 4, 4), device="cpu")).shape
    (1, 3, 1, 1)
    """

    _function = staticmethod(pooling.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of `output_size` windows that share three axes."""

    _function = staticmethod(pooling.adaptive_avg_pool3d)


def _several(value: Sizes, axes: int) -> tuple[int, ...]:
    return (value,) * axes if isinstance(value, int) else tuple(value)
