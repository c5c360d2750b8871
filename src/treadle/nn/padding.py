"""What makes images larger: zeros, numbers, or their own elements around them.

`padding` is one number for all sides, or (left, right, top, bottom, front, back), as far as there
are axes.
"""

from __future__ import annotations

from typing import Any

from treadle.nn.function_module import FunctionModule
from treadle.tensor.functional.padding import pad
from treadle.tensor.tensor import Tensor

Padding = int | tuple[int, ...]


class _Pad(FunctionModule):
    """Elements around the last axes: `_axes` says how many."""

    _axes: int
    _mode: str = "constant"
    _text = "{padding}"

    def __init__(self, padding: Padding) -> None:
        sides = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        if len(sides) != 2 * self._axes:
            raise ValueError(
                f"{type(self).__name__}: padding is a number, or {2 * self._axes} of them, not "
                f"{padding}"
            )
        super().__init__(padding=sides)

    def forward(self, input: Any) -> Tensor:
        """A larger tensor."""
        return pad(input, self.padding, self._mode)


class _ConstantPad(_Pad):
    _text = "padding={padding}, value={value}"

    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value
        self._settings = ("padding", "value")

    def forward(self, input: Any) -> Tensor:
        """A larger tensor."""
        return pad(input, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """A number around the last axis."""

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """A number around the last two axes."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """A number around the last three axes."""

    _axes = 3


class ZeroPad1d(_Pad):
    """Zeros around the last axis."""

    _axes = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes.

    >>> import treadle as td
    >>> td.nn.ZeroPad2d(1)(td.ones((1, 1, 1, 1), device="cpu"))[0, 0].tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    _axes = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three axes."""

    _axes = 3


class ReflectionPad1d(_Pad):
    """What is inside the last axis, mirrored at its ends."""

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """What is inside the last two axes, mirrored at their ends."""

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """What is inside the last three axes, mirrored at their ends."""

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """The ends of the last axis, repeated."""

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The ends of the last two axes, repeated."""

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """The ends of the last three axes, repeated."""

    _axes, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """The last axis as a ring."""

    _axes, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """The last two axes as rings."""

    _axes, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """The last three axes as rings."""

    _axes, _mode = 3, "circular"
