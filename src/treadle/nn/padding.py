"""What makes images larger: zeros, numbers, or their own elements around them.

`padding` is one number for all sides, or (left, right, top, bottom, front, back), as far as there
are axes.
"""

from __future__ import annotations

from typing import Any

from treadle.nn.function_module import FunctionModule
from treadle.tensor.functional.padding import pad
from treadle.tensor.functional.windows import Sizes, for_each_axis
from treadle.tensor.tensor import Tensor


class _Pad(FunctionModule):
    """Elements around the last axes: `_axes` says how many."""

    _axes: int
    _mode: str = "constant"
    _text = "{padding}"

    def __init__(self, padding: Sizes) -> None:
        sides = for_each_axis(padding, 2 * self._axes)  # before and after each axis
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

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value
        self._settings = ("padding", "value")

    def forward(self, input: Any) -> Tensor:
        """A larger tensor."""
        return pad(input, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """The number `value` around the last axis of a tensor. `padding` is one number, or the numbers
    before and after.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0]], device="cpu")
    >>> td.nn.ConstantPad1d((0, 1), 9.0)(x).tolist()
    [[1.0, 2.0, 3.0, 9.0]]
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """The number `value` around the last two axes of a tensor. `padding` is one number, or the
    numbers before and after each axis, the last axis first.

    >>> import treadle as td
    >>> x = td.zeros((1, 1, 2), device="cpu")
    >>> td.nn.ConstantPad2d((1, 0, 0, 1), 9.0)(x).tolist()
    [[[9.0, 0.0, 0.0], [9.0, 9.0, 9.0]]]
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """The number `value` around the last three axes of a tensor. `padding` is one number, or the
    numbers before and after each axis, the last axis first.

    >>> import treadle as td
    >>> td.nn.ConstantPad3d(1, 9.0)(td.ones((1, 2, 3, 4), device="cpu")).shape
    (1, 4, 5, 6)
    """

    _axes = 3


class ZeroPad1d(_Pad):
    """Zeros around the last axis of a tensor. `padding` is one number, or the numbers before and
    after.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0]], device="cpu")
    >>> td.nn.ZeroPad1d((1, 2))(x).tolist()
    [[0.0, 1.0, 2.0, 3.0, 0.0, 0.0]]
    """

    _axes = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two axes of a tensor. `padding` is one number, or the numbers before
    and after each axis, the last axis first.

    >>> import treadle as td
    >>> td.nn.ZeroPad2d(1)(td.ones((1, 1, 1, 1), device="cpu"))[0, 0].tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    _axes = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three axes of a tensor. `padding` is one number, or the numbers before
    and after each axis, the last axis first.

    >>> import treadle as td
    >>> td.nn.ZeroPad3d(1)(td.ones((1, 2, 3, 4), device="cpu")).shape
    (1, 4, 5, 6)
    """

    _axes = 3


class ReflectionPad1d(_Pad):
    """The elements of the last axis, mirrored at its first and last elements, which are not
    repeated.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0]], device="cpu")
    >>> td.nn.ReflectionPad1d(2)(x).tolist()
    [[3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]]
    """

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The elements of the last two axes, mirrored at their first and last elements, which are not
    repeated.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0], [3.0, 4.0]]], device="cpu")
    >>> td.nn.ReflectionPad2d((1, 0, 1, 0))(x).tolist()
    [[[4.0, 3.0, 4.0], [2.0, 1.0, 2.0], [4.0, 3.0, 4.0]]]
    """

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """The elements of the last three axes, mirrored at their first and last elements, which are not
    repeated.

    >>> import treadle as td
    >>> td.nn.ReflectionPad3d(1)(td.ones((1, 2, 3, 4), device="cpu")).shape
    (1, 4, 5, 6)
    """

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """The first and last elements of the last axis, repeated outwards.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0]], device="cpu")
    >>> td.nn.ReplicationPad1d(1)(x).tolist()
    [[1.0, 1.0, 2.0, 3.0, 3.0]]
    """

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The first and last elements of the last two axes, repeated outwards.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0], [3.0, 4.0]]], device="cpu")
    >>> td.nn.ReplicationPad2d((1, 0, 1, 0))(x).tolist()
    [[[1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [3.0, 3.0, 4.0]]]
    """

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """The first and last elements of the last three axes, repeated outwards.

    >>> import treadle as td
    >>> td.nn.ReplicationPad3d(1)(td.ones((1, 2, 3, 4), device="cpu")).shape
    (1, 4, 5, 6)
    """

    _axes, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Periodic continuation of the last axis: before the first element comes the last one.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0, 3.0]], device="cpu")
    >>> td.nn.CircularPad1d(1)(x).tolist()
    [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    _axes, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Periodic continuation of the last two axes: before the first element comes the last one.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0], [3.0, 4.0]]], device="cpu")
    >>> td.nn.CircularPad2d((1, 0, 1, 0))(x).tolist()
    [[[4.0, 3.0, 4.0], [2.0, 1.0, 2.0], [4.0, 3.0, 4.0]]]
    """

    _axes, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Periodic continuation of the last three axes: before the first element comes the last one.

    >>> import treadle as td
    >>> td.nn.CircularPad3d(1)(td.ones((1, 2, 3, 4), device="cpu")).shape
    (1, 4, 5, 6)
    """

    _axes, _mode = 3, "circular"
