"""Convolutions with learned weights. Images have the shape (N, C, …) or (C, …)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from treadle.core.errors import ShapeError
from treadle.nn import init
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.creation import empty
from treadle.tensor.functional import convolution
from treadle.tensor.functional.padding import pad
from treadle.tensor.functional.windows import Sizes, for_each_axis
from treadle.tensor.tensor import Tensor

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Settings(NamedTuple):
    """What a module was made with, besides its channels."""

    kernel_size: Sizes
    stride: Sizes
    padding: Sizes | str
    dilation: Sizes
    groups: int
    bias: bool
    padding_mode: str
    output_padding: Sizes = 0


class _Convolution(Module):
    """What all have in common: settings, and parameters that begin uniform within 1 / sqrt(k),
    where k is the number of elements that go into one of the result's."""

    _axes: ClassVar[int]
    _transposed: ClassVar[bool] = False
    _function: ClassVar[Callable[..., Tensor]]
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, settings: _Settings, device: Any, dtype: Any
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        padding = settings.padding
        self.kernel_size = self._several("kernel_size", settings.kernel_size)
        self.stride = self._several("stride", settings.stride)
        self.padding = padding if isinstance(padding, str) else self._several("padding", padding)
        self.dilation = self._several("dilation", settings.dilation)
        self.transposed = self._transposed
        self.output_padding = self._several("output_padding", settings.output_padding)
        self.groups = settings.groups
        self.padding_mode = settings.padding_mode
        self._check()
        first, second = in_channels, out_channels
        if not self.transposed:
            first, second = second, first
        shape = (first, second // self.groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, dtype=dtype, device=device))
        if settings.bias:
            self.bias = Parameter(empty(self.out_channels, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _several(self, what: str, value: Sizes) -> tuple[int, ...]:
        numbers = for_each_axis(value, self._axes)
        if len(numbers) != self._axes:
            raise ShapeError(
                f"{type(self).__name__}: {what} is a number or {self._axes} of them, not {value}"
            )
        return numbers

    def _check(self) -> None:
        name = type(self).__name__
        if self.groups < 1 or self.in_channels % self.groups or self.out_channels % self.groups:
            raise ShapeError(
                f"{name}: {self.in_channels} and {self.out_channels} channels are not "
                f"{self.groups} groups of as many each"
            )
        if self.padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"{name}: padding_mode is one of {', '.join(_PADDING_MODES)}, not "
                f"{self.padding_mode!r}"
            )
        if isinstance(self.padding, str):
            if self.padding not in ("valid", "same"):
                raise ValueError(
                    f'{name}: padding is numbers, "valid" or "same", not {self.padding!r}'
                )
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError(f'{name}: padding="same" needs a stride of 1, not {self.stride}')

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        inputs = math.prod(self.weight.shape[1:])
        bound = 1 / math.sqrt(inputs) if inputs else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The channels, the kernel, and what is not as usual."""
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        ]
        ones, zeros = (1,) * self._axes, (0,) * self._axes
        usual = {"padding": zeros, "dilation": ones, "output_padding": zeros, "groups": 1}
        for name, value in usual.items():
            if getattr(self, name) != value:
                shown = getattr(self, name)
                parts.append(f"{name}={shown}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = _Settings(kernel_size, stride, padding, dilation, groups, bias, padding_mode)
        super().__init__(in_channels, out_channels, settings, device, dtype)

    def forward(self, input: Any) -> Tensor:
        """Images of out_channels channels."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = pad(input, self._sides(), self.padding_mode)
            padding = 0
        return type(self)._function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _sides(self) -> list[int]:
        """How much is added before and behind each axis, the last one first."""
        sides: list[int] = []
        for axis in reversed(range(self._axes)):
            if isinstance(self.padding, str):
                most = self.dilation[axis] * (self.kernel_size[axis] - 1)
                total = most if self.padding == "same" else 0
                sides += [total // 2, total - total // 2]
            else:
                sides += [self.padding[axis]] * 2
        return sides


class Conv1d(_Conv):
    """Convolution along one axis, of (N, in_channels, L) or (in_channels, L).

    Each output channel is a weighted sum over windows of `kernel_size` elements of all input
    channels, plus a bias. `padding` is the number of zeros added at both ends, "same" (the result
    is as long as the input) or "valid" (none).

    >>> import treadle as td
    >>> layer = td.nn.Conv1d(3, 8, 3, padding=1, device="cpu")
    >>> layer(td.ones((2, 3, 16), device="cpu")).shape
    (2, 8, 16)
    """

    _axes = 1
    _function = staticmethod(convolution.conv1d)


class Conv2d(_Conv):
    """Convolution along two axes, of (N, in_channels, H, W) or (in_channels, H, W); see `Conv1d`.

    The result has the shape (N, out_channels, H', W') and the input's dtype. A size is one number
    for both axes, or a pair.

    >>> import treadle as td
    >>> layer = td.nn.Conv2d(3, 8, kernel_size=3, padding=1, device="cpu")
    >>> layer(td.ones((1, 3, 10, 12), device="cpu")).shape
    (1, 8, 10, 12)
    >>> layer.weight.shape, layer.weight.dtype
    ((8, 3, 3, 3), treadle.float32)
    """

    _axes = 2
    _function = staticmethod(convolution.conv2d)


class Conv3d(_Conv):
    """Convolution along three axes, of (N, in_channels, D, H, W) or (in_channels, D, H, W); see
    `Conv1d`.

    >>> import treadle as td
    >>> layer = td.nn.Conv3d(1, 2, 3, device="cpu")
    >>> layer(td.ones((1, 1, 4, 4, 4), device="cpu")).shape
    (1, 2, 2, 2, 2)
    """

    _axes = 3
    _function = staticmethod(convolution.conv3d)


class _ConvTranspose(_Convolution):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(
                f'{type(self).__name__}: padding_mode is "zeros" alone, not {padding_mode!r}'
            )
        sizes = kernel_size, stride, padding, dilation
        settings = _Settings(*sizes, groups, bias, padding_mode, output_padding)
        super().__init__(in_channels, out_channels, settings, device, dtype)

    def forward(self, input: Any, output_size: Sequence[int] | None = None) -> Tensor:
        """Images of out_channels channels, of `output_size` if several sizes are possible."""
        more = self.output_padding if output_size is None else self._more(input, output_size)
        moves = self.stride, self.padding, more, self.groups, self.dilation
        return type(self)._function(input, self.weight, self.bias, *moves)

    def _more(self, input: Any, output_size: Sequence[int]) -> tuple[int, ...]:
        """How much the result must be larger than the least one."""
        wanted = tuple(output_size)[-self._axes :]
        given = tuple(input.shape)[-self._axes :]
        least = [
            (given[axis] - 1) * self.stride[axis]
            - 2 * int(self.padding[axis])
            + self.dilation[axis] * (self.kernel_size[axis] - 1)
            + 1
            for axis in range(self._axes)
        ]
        more = tuple(size - low for size, low in zip(wanted, least, strict=True))
        if any(not 0 <= extra < step for extra, step in zip(more, self.stride, strict=True)):
            most = [low + step - 1 for low, step in zip(least, self.stride, strict=True)]
            raise ShapeError(
                f"{type(self).__name__}: output_size is from {least} to {most} for an input of "
                f"{list(given)}, not {list(wanted)}"
            )
        return more


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution along one axis, of (N, in_channels, L) or (in_channels, L).

    It is the gradient of `Conv1d` with respect to its input: each input element is multiplied by
    the kernel and added into a window of the result.

    >>> import treadle as td
    >>> layer = td.nn.ConvTranspose1d(3, 8, 4, stride=2, device="cpu")
    >>> layer(td.ones((2, 3, 16), device="cpu")).shape
    (2, 8, 34)
    """

    _axes = 1
    _function = staticmethod(convolution.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution along two axes, of (N, in_channels, H, W); see `ConvTranspose1d`.

    >>> import treadle as td
    >>> layer = td.nn.ConvTranspose2d(8, 3, 2, stride=2, device="cpu")
    >>> layer(td.ones((1, 8, 5, 6), device="cpu")).shape
    (1, 3, 10, 12)
    """

    _axes = 2
    _function = staticmethod(convolution.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution along three axes, of (N, in_channels, D, H, W); see `ConvTranspose1d`.

    >>> import treadle as td
    >>> layer = td.nn.ConvTranspose3d(2, 1, 2, stride=2, device="cpu")
    >>> layer(td.ones((1, 2, 3, 4, 5), device="cpu")).shape
    (1, 1, 6, 8, 10)
    """

    _axes = 3
    _function = staticmethod(convolution.conv_transpose3d)
