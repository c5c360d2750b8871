"""Windows of images, of which the greatest element or a mean is taken: `td.nn.functional`'s pools
with their settings as attributes. Images have the shape (N, C, …) or (C, …)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.nn.function_module import FunctionModule
from treadle.tensor.functional import pooling, unpooling
from treadle.tensor.functional.windows import Sizes, for_each_axis
from treadle.tensor.tensor import Tensor

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
    """The maximum of each window of (N, C, L) or (C, L); with `return_indices` also its position,
    as an integer.

    >>> import treadle as td
    >>> td.nn.MaxPool1d(2)(td.ones((1, 4), device="cpu")).shape
    (1, 2)
    """

    _function = staticmethod(pooling.max_pool1d)


class MaxPool2d(_MaxPool):
    """The maximum of each window of (N, C, H, W) or (C, H, W); with `return_indices` also its
    position, as an integer.

    >>> import treadle as td
    >>> images = td.reshape(td.arange(16.0, device="cpu"), (1, 1, 4, 4))
    >>> td.nn.MaxPool2d(2)(images).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    _function = staticmethod(pooling.max_pool2d)


class MaxPool3d(_MaxPool):
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W); with `return_indices` also its
    position, as an integer.

    >>> import treadle as td
    >>> td.nn.MaxPool3d(2)(td.ones((1, 3, 8, 6, 4), device="cpu")).shape
    (1, 3, 4, 3, 2)
    """

    _function = staticmethod(pooling.max_pool3d)


class _MaxUnpool(FunctionModule):
    _axes: int
    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__(
            kernel_size=for_each_axis(kernel_size, self._axes),
            stride=for_each_axis(kernel_size if stride is None else stride, self._axes),
            padding=for_each_axis(padding, self._axes),
        )

    def forward(self, input: Any, indices: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """Images with zeros but for the places of the greatest elements."""
        function = type(self)._function
        found: Tensor = function(input, indices, **self._values(), output_size=output_size)
        return found


class MaxUnpool1d(_MaxUnpool):
    """The inverse of `MaxPool1d`: the values at their positions, and zeros elsewhere.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 5.0, 2.0, 0.0]], device="cpu")
    >>> values, positions = td.nn.MaxPool1d(2, return_indices=True)(x)
    >>> td.nn.MaxUnpool1d(2)(values, positions).tolist()
    [[0.0, 5.0, 2.0, 0.0]]
    """

    _axes = 1
    _function = staticmethod(unpooling.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d`: the values at their positions, and zeros elsewhere.

    >>> import treadle as td
    >>> pool = td.nn.MaxPool2d(2, return_indices=True)
    >>> values, positions = pool(td.ones((1, 3, 8, 6), device="cpu"))
    >>> td.nn.MaxUnpool2d(2)(values, positions).shape
    (1, 3, 8, 6)
    """

    _axes = 2
    _function = staticmethod(unpooling.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """The inverse of `MaxPool3d`: the values at their positions, and zeros elsewhere.

    >>> import treadle as td
    >>> pool = td.nn.MaxPool3d(2, return_indices=True)
    >>> values, positions = pool(td.ones((1, 3, 8, 6, 4), device="cpu"))
    >>> td.nn.MaxUnpool3d(2)(values, positions).shape
    (1, 3, 8, 6, 4)
    """

    _axes = 3
    _function = staticmethod(unpooling.max_unpool3d)


# --- means ---------------------------------------------------------------------------------------


class AvgPool1d(FunctionModule):
    """The mean of each window of (N, C, L) or (C, L). `stride` is `kernel_size` if it is not given.

    >>> import treadle as td
    >>> td.nn.AvgPool1d(2)(td.asarray([[1.0, 3.0, 5.0, 9.0]], device="cpu")).tolist()
    [[2.0, 7.0]]
    """

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
            kernel_size=for_each_axis(kernel_size, 1),
            stride=for_each_axis(kernel_size if stride is None else stride, 1),
            padding=for_each_axis(padding, 1),
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
    """The mean of each window of (N, C, H, W) or (C, H, W). `stride` is `kernel_size` if it is not
    given.

    >>> import treadle as td
    >>> td.nn.AvgPool2d(2)(td.ones((1, 1, 4, 4), device="cpu")).shape
    (1, 1, 2, 2)
    """

    _function = staticmethod(pooling.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W). `stride` is `kernel_size` if it
    is not given.

    >>> import treadle as td
    >>> td.nn.AvgPool3d(2)(td.ones((1, 3, 8, 6, 4), device="cpu")).shape
    (1, 3, 4, 3, 2)
    """

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
    """The `norm_type`-norm of each window of (N, C, L) or (C, L).

    >>> import treadle as td
    >>> td.nn.LPPool1d(2, kernel_size=2)(td.asarray([[3.0, 4.0, 6.0, 8.0]], device="cpu")).tolist()
    [[5.0, 10.0]]
    """

    _function = staticmethod(pooling.lp_pool1d)


class LPPool2d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, H, W) or (C, H, W).

    >>> import treadle as td
    >>> td.nn.LPPool2d(2, kernel_size=2)(td.ones((1, 3, 8, 6), device="cpu")).shape
    (1, 3, 4, 3)
    """

    _function = staticmethod(pooling.lp_pool2d)


class LPPool3d(_LPPool):
    """The `norm_type`-norm of each window of (N, C, D, H, W) or (C, D, H, W).

    >>> import treadle as td
    >>> td.nn.LPPool3d(2, kernel_size=2)(td.ones((1, 3, 8, 6, 4), device="cpu")).shape
    (1, 3, 4, 3, 2)
    """

    _function = staticmethod(pooling.lp_pool3d)


# --- as many windows as asked for ----------------------------------------------------------------


class _AdaptiveMaxPool(FunctionModule):
    _text = "output_size={output_size}"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The maxima of `output_size` windows that divide the axis of (N, C, L) or (C, L) evenly; with
    `return_indices` also their positions.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 5.0, 2.0, 4.0]], device="cpu")
    >>> values, positions = td.nn.AdaptiveMaxPool1d(2, return_indices=True)(x)
    >>> values.tolist(), positions.tolist()
    ([[5.0, 4.0]], [[1, 3]])
    """

    _function = staticmethod(pooling.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The maxima of `output_size` windows that divide the axes of (N, C, H, W) or (C, H, W) evenly;
    with `return_indices` also their positions.

    >>> import treadle as td
    >>> td.nn.AdaptiveMaxPool2d(2)(td.ones((1, 3, 8, 6), device="cpu")).shape
    (1, 3, 2, 2)
    """

    _function = staticmethod(pooling.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The maxima of `output_size` windows that divide the axes of (N, C, D, H, W) or (C, D, H, W)
    evenly; with `return_indices` also their positions.

    >>> import treadle as td
    >>> td.nn.AdaptiveMaxPool3d(2)(td.ones((1, 3, 8, 6, 4), device="cpu")).shape
    (1, 3, 2, 2, 2)
    """

    _function = staticmethod(pooling.adaptive_max_pool3d)


class _AdaptiveAvgPool(FunctionModule):
    _text = "output_size={output_size}"

    def __init__(self, output_size: Any) -> None:
        super().__init__(output_size=output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of `output_size` windows that divide the axis of (N, C, L) or (C, L) evenly.

    >>> import treadle as td
    >>> td.nn.AdaptiveAvgPool1d(2)(td.ones((1, 3, 8), device="cpu")).shape
    (1, 3, 2)
    """

    _function = staticmethod(pooling.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of `output_size` windows that divide the axes of (N, C, H, W) or (C, H, W) evenly.

    >>> import treadle as td
    >>> td.nn.AdaptiveAvgPool2d(1)(td.ones((1, 3, 4, 4), device="cpu")).shape
    (1, 3, 1, 1)
    """

    _function = staticmethod(pooling.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of `output_size` windows that divide the axes of (N, C, D, H, W) or (C, D, H, W)
    evenly.

    >>> import treadle as td
    >>> td.nn.AdaptiveAvgPool3d(2)(td.ones((1, 3, 8, 6, 4), device="cpu")).shape
    (1, 3, 2, 2, 2)
    """

    _function = staticmethod(pooling.adaptive_avg_pool3d)
