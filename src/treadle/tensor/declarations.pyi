# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""The methods, attributes and operators that tables give to `Tensor`."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike, Axes, DTypeLike, Shape
from treadle.tensor.sorting import TopK
from treadle.tensor.tensor import Tensor

class Declarations:
    """What `Tensor` has besides its class."""

    @property
    def T(self) -> Tensor:
        """A view with the two axes exchanged. ShapeError unless there are two; see `mT`.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.T.tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        """

    def __abs__(self) -> Tensor: ...
    def __add__(self, other: ArrayLike, /) -> Tensor: ...
    def __and__(self, other: ArrayLike, /) -> Tensor: ...
    def __contains__(self, value: ArrayLike) -> bool:
        """Whether an element equals a value: `value in x`."""

    def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __ge__(self, other: ArrayLike, /) -> Tensor: ...
    def __getitem__(self, index: Any, /) -> Tensor:
        """`x[index]`: a view for integers, slices (any step), `...` and None (a new axis); a copy for
        arrays of integers and for masks, whose true elements are counted.
        """

    def __gt__(self, other: ArrayLike, /) -> Tensor: ...
    def __iadd__(self, other: ArrayLike, /) -> Tensor: ...
    def __iand__(self, other: ArrayLike, /) -> Tensor: ...
    def __ifloordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __ilshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __imatmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __imod__(self, other: ArrayLike, /) -> Tensor: ...
    def __imul__(self, other: ArrayLike, /) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: ArrayLike, /) -> Tensor: ...
    def __ipow__(self, other: ArrayLike, /) -> Tensor: ...
    def __irshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __isub__(self, other: ArrayLike, /) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]:
        """The parts along the first axis."""

    def __itruediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __ixor__(self, other: ArrayLike, /) -> Tensor: ...
    def __le__(self, other: ArrayLike, /) -> Tensor: ...
    def __lshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __lt__(self, other: ArrayLike, /) -> Tensor: ...
    def __matmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __mod__(self, other: ArrayLike, /) -> Tensor: ...
    def __mul__(self, other: ArrayLike, /) -> Tensor: ...
    def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: ArrayLike, /) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: ArrayLike, /) -> Tensor: ...
    def __radd__(self, other: ArrayLike, /) -> Tensor: ...
    def __rand__(self, other: ArrayLike, /) -> Tensor: ...
    def __repr__(self) -> str:
        """The text of a tensor. At most about a thousand elements are read.

        >>> import treadle as td
        >>> td.arange(5000, device="cpu")
        tensor([   0,    1,    2, ..., 4997, 4998, 4999], dtype=int64, device="cpu", shape=(5000,))
        """

    def __rfloordiv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rlshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmod__(self, other: ArrayLike, /) -> Tensor: ...
    def __rmul__(self, other: ArrayLike, /) -> Tensor: ...
    def __ror__(self, other: ArrayLike, /) -> Tensor: ...
    def __rpow__(self, other: ArrayLike, /) -> Tensor: ...
    def __rrshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __rshift__(self, other: ArrayLike, /) -> Tensor: ...
    def __rsub__(self, other: ArrayLike, /) -> Tensor: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __rxor__(self, other: ArrayLike, /) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any, /) -> None:
        """`x[index] = value`: write numbers or an array into a part of the tensor; they are broadcast
        and cast. Of several values for one element the last one stays.
        """

    def __sub__(self, other: ArrayLike, /) -> Tensor: ...
    def __truediv__(self, other: ArrayLike, /) -> Tensor: ...
    def __xor__(self, other: ArrayLike, /) -> Tensor: ...
    def abs(self, /) -> Tensor:
        """The absolute value.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result has the same dtype, or that of the parts
        of complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([-1.5, 2.0], device="cpu")
        >>> td.abs(x).tolist()
        [1.5, 2.0]
        """

    def acos(self, /) -> Tensor:
        """The inverse cosine, in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 0.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.acos(x).tolist()])
        0.000 1.571
        """

    def acosh(self, /) -> Tensor:
        """The inverse hyperbolic cosine.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 2.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.acosh(x).tolist()])
        0.000 1.317
        """

    def add(self, x2: ArrayLike, /) -> Tensor:
        """x1 + x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, complex numbers, promoted to one dtype. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.add(x, 3).tolist()
        [4, 5]
        """

    @overload
    def all(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """Whether all elements along one axis, several or all are true (not zero).

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.all(x > 1, axis=1).tolist()
        [False, True]
        """

    @overload
    def all(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    def angle(self, /) -> Tensor:
        """The angle of a complex number, in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype, or that of the parts of complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1j, -1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.angle(x).tolist()])
        1.571 3.142
        """

    @overload
    def any(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """Whether any element along one axis, several or all is true (not zero).

        >>> import treadle as td
        >>> td.any(td.asarray([[0, 1], [0, 0]], device="cpu"), axis=1).tolist()
        [True, False]
        """

    @overload
    def any(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @overload
    def argmax(self, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The index of the greatest element along an axis, the first of equals; NaN counts as greatest.
        Without an axis, its index in the flattened tensor.

        >>> import treadle as td
        >>> td.argmax(td.asarray([[1, 5, 5], [7, 2, 0]], device="cpu"), axis=1).tolist()
        [1, 0]
        """

    @overload
    def argmax(
        self,
        /,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @overload
    def argmin(self, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The index of the least element along an axis, the first of equals; NaN counts as least.
        Without an axis, its index in the flattened tensor.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.argmin(x, axis=1).tolist()
        [0, 0]
        """

    @overload
    def argmin(
        self,
        /,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @overload
    def argsort(
        self,
        /,
        axis: int = -1,
        *,
        descending: bool = False,
        stable: bool = True,
    ) -> Tensor:
        """The indices along the axis that sort x.

        >>> import treadle as td
        >>> td.argsort(td.asarray([2.0, 1.0, 2.0], device="cpu"), descending=True).tolist()
        [0, 2, 1]
        """

    @overload
    def argsort(
        self,
        /,
        dim: int = -1,
        *,
        descending: bool = False,
        stable: bool = True,
    ) -> Tensor: ...
    def argwhere(self, /) -> Tensor:
        """The indices of the elements that are not zero: a row for each of them.

        >>> import treadle as td
        >>> td.argwhere(td.asarray([[0, 5], [6, 0]], device="cpu")).tolist()
        [[0, 1], [1, 0]]
        """

    def asin(self, /) -> Tensor:
        """The inverse sine, in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.asin(x).tolist()])
        0.000 1.571
        """

    def asinh(self, /) -> Tensor:
        """The inverse hyperbolic sine.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.asinh(x).tolist()])
        0.000 0.881
        """

    def astype(
        self,
        dtype: DTypeLike,
        /,
        *,
        copy: bool = True,
        device: str | Device | None = None,
    ) -> Tensor:
        """The elements as another dtype: a new tensor, or the tensor itself with `copy=False` if it has
        that dtype.

        Floats become integers by truncation and saturate, and NaN becomes 0; every number but 0 becomes
        True. DtypeError where imaginary parts would be dropped.

        >>> import treadle as td
        >>> td.astype(td.asarray([-1.5, 300.0], device="cpu"), td.uint8).tolist()
        [0, 255]
        """

    def atan(self, /) -> Tensor:
        """The inverse tangent, in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.atan(x).tolist()])
        0.000 0.785
        """

    def atan2(self, x2: ArrayLike, /) -> Tensor:
        """The angle of the point (x2, x1), in radians.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes floating point
        numbers, promoted to one dtype; integers and booleans become float32. The result has the
        same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1.0, -1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.atan2(x, 1.0).tolist()])
        0.785 -0.785
        """

    def atanh(self, /) -> Tensor:
        """The inverse hyperbolic tangent.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 0.5], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.atanh(x).tolist()])
        0.000 0.549
        """

    def bitwise_and(self, x2: ArrayLike, /) -> Tensor:
        """x1 & x2, bit by bit.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        promoted to one dtype. The result has the same dtype. DtypeError for floating point numbers
        and complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([6, 5], device="cpu")
        >>> td.bitwise_and(x, 3).tolist()
        [2, 1]
        """

    def bitwise_invert(self, /) -> Tensor:
        """Every bit flipped.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers.
        The result has the same dtype. DtypeError for floating point numbers and complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([0, 5], device="cpu")
        >>> td.bitwise_invert(x).tolist()
        [-1, -6]
        """

    def bitwise_left_shift(self, x2: ArrayLike, /) -> Tensor:
        """x1 << x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes integers, promoted
        to one dtype. The result has the same dtype. DtypeError for booleans and floating point
        numbers and complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 3], device="cpu")
        >>> td.bitwise_left_shift(x, 2).tolist()
        [4, 12]
        """

    def bitwise_or(self, x2: ArrayLike, /) -> Tensor:
        """x1 | x2, bit by bit.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        promoted to one dtype. The result has the same dtype. DtypeError for floating point numbers
        and complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([6, 5], device="cpu")
        >>> td.bitwise_or(x, 3).tolist()
        [7, 7]
        """

    def bitwise_right_shift(self, x2: ArrayLike, /) -> Tensor:
        """x1 >> x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes integers, promoted
        to one dtype. The result has the same dtype. DtypeError for booleans and floating point
        numbers and complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([8, -8], device="cpu")
        >>> td.bitwise_right_shift(x, 2).tolist()
        [2, -2]
        """

    def bitwise_xor(self, x2: ArrayLike, /) -> Tensor:
        """x1 ^ x2, bit by bit.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        promoted to one dtype. The result has the same dtype. DtypeError for floating point numbers
        and complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([6, 5], device="cpu")
        >>> td.bitwise_xor(x, 3).tolist()
        [5, 6]
        """

    def broadcast_to(self, /, shape: Shape) -> Tensor:
        """The tensor broadcast to a shape: axes of extent 1 are repeated, and new ones added in front.

        A view that cannot be written, since elements appear several times. ShapeError if the shapes do
        not fit.

        >>> import treadle as td
        >>> td.broadcast_to(td.asarray([1, 2], device="cpu"), (2, 2)).tolist()
        [[1, 2], [1, 2]]
        """

    def cbrt(self, /) -> Tensor:
        """The cube root.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([8.0, -27.0], device="cpu")
        >>> td.cbrt(x).tolist()
        [2.0, -3.0]
        """

    def ceil(self, /) -> Tensor:
        """The smallest integer that is not less.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers. The result has the same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([-1.5, 1.2], device="cpu")
        >>> td.ceil(x).tolist()
        [-1.0, 2.0]
        """

    def clip(self, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        """X limited to the range min … max, which are numbers, or arrays that broadcast with x. The
        dtype is x's, but integers with floating bounds become floats; NaN where x or a bound is NaN.

        >>> import treadle as td
        >>> td.clip(td.arange(5, device="cpu"), 1, max=3).tolist()
        [1, 1, 2, 3, 3]
        """

    def clone(self) -> Tensor:
        """A copy of the tensor in new memory.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> y = x.clone()
        >>> y += 1
        >>> x.tolist()
        [[1.0, 2.0], [3.0, 4.0]]
        """

    def conj(self, /) -> Tensor:
        """The complex conjugate.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result has the same dtype.

        >>> import treadle as td
        >>> x = td.asarray([1 + 2j], device="cpu")
        >>> td.conj(x).tolist()
        [(1-2j)]
        """

    def contiguous(self) -> Tensor:
        """The tensor itself if its elements are contiguous in row-major order, else a copy.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.T.contiguous().strides
        (2, 1)
        """

    def copysign(self, x2: ArrayLike, /) -> Tensor:
        """x1 with the sign of x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes floating point
        numbers, promoted to one dtype; integers and booleans become float32. The result has the
        same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 2.0], device="cpu")
        >>> td.copysign(x, -0.0).tolist()
        [-1.0, -2.0]
        """

    def cos(self, /) -> Tensor:
        """The cosine of an angle in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.cos(x).tolist()])
        1.000 0.540
        """

    def cosh(self, /) -> Tensor:
        """The hyperbolic cosine.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.cosh(x).tolist()])
        1.000 1.543
        """

    @overload
    def count_nonzero(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """The number of elements along one axis, several or all that are not zero.

        >>> import treadle as td
        >>> x = td.asarray([0, 3, 0, 5], device="cpu")
        >>> td.count_nonzero(x).item()
        2
        """

    @overload
    def count_nonzero(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @overload
    def cumprod(
        self,
        /,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """The running product along an axis (which may be left out if there is only one), with the
        dtypes of `td.prod`. With `include_initial` it starts with 1.

        >>> import treadle as td
        >>> td.cumulative_prod(td.asarray([3, 1, 2], device="cpu")).tolist()
        [3, 3, 6]
        """

    @overload
    def cumprod(
        self,
        /,
        dim: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor: ...
    @overload
    def cumsum(
        self,
        /,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """The running sum along an axis (which may be left out if there is only one), with the dtypes
        of `td.sum`. With `include_initial` it starts with 0.

        >>> import treadle as td
        >>> x = td.asarray([3, 1, 2], device="cpu")
        >>> td.cumulative_sum(x).tolist(), td.cumulative_sum(x, include_initial=True).tolist()
        ([3, 4, 6], [0, 3, 4, 6])
        """

    @overload
    def cumsum(
        self,
        /,
        dim: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor: ...
    @overload
    def cumulative_prod(
        self,
        /,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """The running product along an axis (which may be left out if there is only one), with the
        dtypes of `td.prod`. With `include_initial` it starts with 1.

        >>> import treadle as td
        >>> td.cumulative_prod(td.asarray([3, 1, 2], device="cpu")).tolist()
        [3, 3, 6]
        """

    @overload
    def cumulative_prod(
        self,
        /,
        dim: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor: ...
    @overload
    def cumulative_sum(
        self,
        /,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor:
        """The running sum along an axis (which may be left out if there is only one), with the dtypes
        of `td.sum`. With `include_initial` it starts with 0.

        >>> import treadle as td
        >>> x = td.asarray([3, 1, 2], device="cpu")
        >>> td.cumulative_sum(x).tolist(), td.cumulative_sum(x, include_initial=True).tolist()
        ([3, 4, 6], [0, 3, 4, 6])
        """

    @overload
    def cumulative_sum(
        self,
        /,
        dim: int | None = None,
        dtype: DTypeLike | None = None,
        include_initial: bool = False,
    ) -> Tensor: ...
    def diagonal(self, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """A view of the diagonal, the elements whose index along axis2 is that along axis1 plus an
        offset; it replaces the two axes as the last axis of the result.

        >>> import treadle as td
        >>> td.diagonal(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
        [1, 4]
        """

    @overload
    def diff(
        self,
        /,
        *,
        axis: int = -1,
        n: int = 1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor:
        """The differences of neighbours along an axis, n times over. `prepend` and `append` are joined
        to the tensor first.

        >>> import treadle as td
        >>> td.diff(td.asarray([1, 4, 9, 16], device="cpu")).tolist()
        [3, 5, 7]
        """

    @overload
    def diff(
        self,
        /,
        *,
        dim: int = -1,
        n: int = 1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor: ...
    def divide(self, x2: ArrayLike, /) -> Tensor:
        """x1 / x2; of integers in float32.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes floating point
        numbers, complex numbers, promoted to one dtype; integers and booleans become float32. The
        result has the same dtype.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.divide(x, 4).tolist()
        [0.25, 0.5]
        """

    def dot(self, x2: ArrayLike, /) -> Tensor:
        """NumPy's product: of numbers x1 * x2, else the sum of products along the last axis of x1 and
        the last but one of x2 (its only one, if it has one).
        """

    def elu(self, alpha: float = 1.0, inplace: bool = False) -> Tensor:
        """x, or alpha * (exp(x) - 1) where x is negative.

        >>> import treadle as td
        >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
        >>> [round(y, 3) for y in td.nn.functional.elu(x).tolist()]
        [-0.865, 0.5, 3.0]
        """

    def equal(self, x2: ArrayLike, /) -> Tensor:
        """x1 == x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, complex numbers, promoted to one dtype. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.equal(x, 2).tolist()
        [False, True]
        """

    def erf(self, /) -> Tensor:
        """The error function.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.erf(x).tolist()])
        0.000 0.843
        """

    def erfc(self, /) -> Tensor:
        """1 - erf(x).

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.erfc(x).tolist()])
        1.000 0.157
        """

    def erfinv(self, /) -> Tensor:
        """The number whose erf is x; NaN if |x| > 1.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 0.5], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.erfinv(x).tolist()])
        0.000 0.477
        """

    def exp(self, /) -> Tensor:
        """e to the power of x.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.exp(x).tolist()])
        1.000 2.718
        """

    def exp2(self, /) -> Tensor:
        """2 to the power of x.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([3.0, -1.0], device="cpu")
        >>> td.exp2(x).tolist()
        [8.0, 0.5]
        """

    @overload
    def expand_dims(self, /, axis: int | tuple[int, ...] = 0) -> Tensor:
        """A view with a new axis of extent 1 at this place of the result (or with several).

        IndexError if there is no such place.

        >>> import treadle as td
        >>> td.expand_dims(td.asarray([1, 2], device="cpu"), axis=-1).shape
        (2, 1)
        """

    @overload
    def expand_dims(self, /, dim: int | tuple[int, ...] = 0) -> Tensor: ...
    def expm1(self, /) -> Tensor:
        """exp(x) - 1, exact for small x.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.expm1(x).tolist()])
        0.000 1.718
        """

    @overload
    def flatten(self, /, start_axis: int = 0, end_axis: int = -1) -> Tensor:
        """A copy with the axes from start_axis to end_axis merged into one.

        >>> import treadle as td
        >>> td.zeros((2, 3, 4), device="cpu").flatten(1).shape
        (2, 12)
        """

    @overload
    def flatten(self, /, start_dim: int = 0, end_dim: int = -1) -> Tensor: ...
    @overload
    def flip(self, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """A view with the elements in reverse order along some axes or (None) all.

        >>> import treadle as td
        >>> td.flip(td.asarray([1, 2, 3], device="cpu")).tolist()
        [3, 2, 1]
        """

    @overload
    def flip(self, /, dims: int | tuple[int, ...] | None = None) -> Tensor: ...
    def floor(self, /) -> Tensor:
        """The largest integer that is not greater.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers. The result has the same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([-1.5, 1.2], device="cpu")
        >>> td.floor(x).tolist()
        [-2.0, 1.0]
        """

    def floor_divide(self, x2: ArrayLike, /) -> Tensor:
        """x1 / x2, rounded down.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
        point numbers, promoted to one dtype; booleans become the device's default integer. The
        result has the same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([7, -7], device="cpu")
        >>> td.floor_divide(x, 2).tolist()
        [3, -4]
        """

    def gamma(self, /) -> Tensor:
        """The gamma function.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([4.0, 0.5], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.gamma(x).tolist()])
        6.000 1.772
        """

    def gather(self, dim: int, index: ArrayLike) -> Tensor:
        """`input[i, index[i, j], k]` for dim 1, and so for every axis: index has as many axes as input,
        and none but the axis `dim` may be longer. The result has its shape.

        >>> import treadle as td
        >>> x = td.asarray([[1, 2], [3, 4]], device="cpu")
        >>> td.gather(x, 1, td.asarray([[0, 0], [1, 0]], device="cpu")).tolist()
        [[1, 1], [4, 3]]
        """

    def gelu(self, approximate: str = "none") -> Tensor:
        """X times the standard normal distribution function of x; approximated by a formula with tanh
        if `approximate` is "tanh".

        >>> import treadle as td
        >>> round(td.nn.functional.gelu(td.asarray(1.0, device="cpu")).item(), 4)
        0.8413
        """

    def greater(self, x2: ArrayLike, /) -> Tensor:
        """x1 > x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
        numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.greater(x, 1).tolist()
        [False, True]
        """

    def greater_equal(self, x2: ArrayLike, /) -> Tensor:
        """x1 >= x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
        numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.greater_equal(x, 2).tolist()
        [False, True]
        """

    def hypot(self, x2: ArrayLike, /) -> Tensor:
        """sqrt(x1**2 + x2**2), without overflow.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes floating point
        numbers, promoted to one dtype; integers and booleans become float32. The result has the
        same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([3.0, 5.0], device="cpu")
        >>> td.hypot(x, [4.0, 12.0]).tolist()
        [5.0, 13.0]
        """

    @property
    def imag(self) -> Tensor:
        """The imaginary part; 0 of real numbers.

        `x` is an array of any shape; the result has the same shape. It takes complex numbers. The
        result has the same dtype, or that of the parts of complex numbers. DtypeError for booleans
        and integers and floating point numbers.

        >>> import treadle as td
        >>> x = td.asarray([1 + 2j], device="cpu")
        >>> td.imag(x).tolist()
        [2.0]
        """

    def index_add(
        self,
        dim: int,
        index: ArrayLike,
        source: ArrayLike,
        *,
        alpha: Any = 1,
    ) -> Tensor:
        """The tensor with `alpha * source[:, i]` added to `[:, index[i]]`, for dim 1.

        >>> import treadle as td
        >>> x = td.zeros((3, 2), device="cpu")
        >>> rows = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.index_add(x, 0, td.asarray([2, 2], device="cpu"), rows).tolist()
        [[0.0, 0.0], [0.0, 0.0], [4.0, 6.0]]
        """

    def index_add_(
        self,
        dim: int,
        index: ArrayLike,
        source: ArrayLike,
        *,
        alpha: Any = 1,
    ) -> Tensor:
        """`index_add`, written into the tensor itself; the tensor."""

    def index_copy(self, dim: int, index: ArrayLike, source: ArrayLike) -> Tensor:
        """The tensor with `source[:, i]` written to `[:, index[i]]`, for dim 1.

        >>> import treadle as td
        >>> x = td.asarray([10, 20, 30], device="cpu")
        >>> places = td.asarray([2, 0], device="cpu")
        >>> td.index_copy(x, 0, places, td.asarray([1, 2], device="cpu")).tolist()
        [2, 20, 1]
        """

    def index_copy_(self, dim: int, index: ArrayLike, source: ArrayLike) -> Tensor:
        """`index_copy`, written into the tensor itself; the tensor."""

    def index_fill(self, dim: int, index: ArrayLike, value: ArrayLike) -> Tensor:
        """The tensor with one number written to `[:, index[i]]`, for dim 1.

        >>> import treadle as td
        >>> x = td.asarray([10, 20, 30], device="cpu")
        >>> td.index_fill(x, 0, td.asarray([0, 2], device="cpu"), -1).tolist()
        [-1, 20, -1]
        """

    def index_fill_(self, dim: int, index: ArrayLike, value: ArrayLike) -> Tensor:
        """`index_fill`, written into the tensor itself; the tensor."""

    def index_select(self, dim: int, index: ArrayLike) -> Tensor:
        """The parts at some indices along an axis: `td.take` with PyTorch's arguments. From a tensor
        without axes one element is selected, which has none either.

        >>> import treadle as td
        >>> x = td.asarray([10, 20, 30], device="cpu")
        >>> td.index_select(x, 0, td.asarray([2, 0], device="cpu")).tolist()
        [30, 10]
        """

    def isfinite(self, /) -> Tensor:
        """Whether it is neither infinite nor NaN.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([1.0, td.inf], device="cpu")
        >>> td.isfinite(x).tolist()
        [True, False]
        """

    def isinf(self, /) -> Tensor:
        """Whether it is infinite.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([1.0, td.inf], device="cpu")
        >>> td.isinf(x).tolist()
        [False, True]
        """

    def isnan(self, /) -> Tensor:
        """Whether it is NaN.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([1.0, td.nan], device="cpu")
        >>> td.isnan(x).tolist()
        [False, True]
        """

    def leaky_relu(self, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
        """x, or x * negative_slope where x is negative.

        >>> import treadle as td
        >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
        >>> [round(y, 3) for y in td.nn.functional.leaky_relu(x).tolist()]
        [-0.02, 0.5, 3.0]
        """

    def less(self, x2: ArrayLike, /) -> Tensor:
        """x1 < x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
        numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.less(x, 2).tolist()
        [True, False]
        """

    def less_equal(self, x2: ArrayLike, /) -> Tensor:
        """x1 <= x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, promoted to one dtype. The result is boolean. DtypeError for complex
        numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.less_equal(x, 1).tolist()
        [True, False]
        """

    def lgamma(self, /) -> Tensor:
        """The logarithm of the gamma function's magnitude.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 5.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.lgamma(x).tolist()])
        0.000 3.178
        """

    def log(self, /) -> Tensor:
        """The natural logarithm.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 10.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.log(x).tolist()])
        0.000 2.303
        """

    def log10(self, /) -> Tensor:
        """The logarithm to base 10.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([1.0, 1000.0], device="cpu")
        >>> td.log10(x).tolist()
        [0.0, 3.0]
        """

    def log1p(self, /) -> Tensor:
        """log(1 + x), exact for small x.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.log1p(x).tolist()])
        0.000 0.693
        """

    def log2(self, /) -> Tensor:
        """The logarithm to base 2.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([8.0, 0.5], device="cpu")
        >>> td.log2(x).tolist()
        [3.0, -1.0]
        """

    @overload
    def log_softmax(self, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
        """The logarithm of `softmax`, precise where the softmax is near 0.

        >>> import treadle as td
        >>> td.nn.functional.log_softmax(td.asarray([0.0, 200.0], device="cpu")).tolist()
        [-200.0, 0.0]
        """

    @overload
    def log_softmax(self, dim: int = -1, *, dtype: DTypeLike | None = None) -> Tensor: ...
    def logaddexp(self, x2: ArrayLike, /) -> Tensor:
        """log(exp(x1) + exp(x2)), without overflow.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes floating point
        numbers, complex numbers, promoted to one dtype; integers and booleans become float32. The
        result has the same dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 100.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.logaddexp(x, 0.0).tolist()])
        0.693 100.000
        """

    def logical_and(self, x2: ArrayLike, /) -> Tensor:
        """Whether both are true (not zero).

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, promoted
        to one dtype; other numbers are true where they are not 0. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([0, 2], device="cpu")
        >>> td.logical_and(x, [1, 1]).tolist()
        [False, True]
        """

    def logical_not(self, /) -> Tensor:
        """Whether it is false (zero).

        `x` is an array of any shape; the result has the same shape. It takes booleans; other
        numbers are true where they are not 0. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([0, 2], device="cpu")
        >>> td.logical_not(x).tolist()
        [True, False]
        """

    def logical_or(self, x2: ArrayLike, /) -> Tensor:
        """Whether one is true (not zero).

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, promoted
        to one dtype; other numbers are true where they are not 0. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([0, 2], device="cpu")
        >>> td.logical_or(x, [0, 1]).tolist()
        [False, True]
        """

    def logical_xor(self, x2: ArrayLike, /) -> Tensor:
        """Whether exactly one is true (not zero).

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, promoted
        to one dtype; other numbers are true where they are not 0. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([0, 2], device="cpu")
        >>> td.logical_xor(x, [1, 1]).tolist()
        [True, False]
        """

    @overload
    def logsumexp(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """log(sum(exp(x))) along one axis, several or all, without overflow; -inf for no elements.

        >>> import treadle as td
        >>> x = td.asarray([1000.0, 1000.0], device="cpu")
        >>> round(td.logsumexp(x).item(), 3)
        1000.693
        """

    @overload
    def logsumexp(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @property
    def mT(self) -> Tensor:
        """A view with the last two axes exchanged.

        >>> import treadle as td
        >>> td.matrix_transpose(td.asarray([[1, 2, 3]], device="cpu")).tolist()
        [[1], [2], [3]]
        """

    def masked_fill(self, mask: ArrayLike, value: Any) -> Tensor:
        """The elements, replaced by a number where the mask is true.

        >>> import treadle as td
        >>> x = td.asarray([1, 2, 3], device="cpu")
        >>> td.masked_fill(x, x > 1, 0).tolist()
        [1, 0, 0]
        """

    def masked_fill_(self, mask: ArrayLike, value: Any) -> Tensor:
        """`masked_fill`, written into the tensor itself; the tensor."""

    def masked_select(self, mask: ArrayLike) -> Tensor:
        """The elements where a mask is true, in order; both broadcast. Their number is read.

        >>> import treadle as td
        >>> x = td.asarray([1, 2, 3], device="cpu")
        >>> td.masked_select(x, x > 1).tolist()
        [2, 3]
        """

    def matmul(self, x2: ArrayLike, /, *, dtype: DTypeLike | None = None) -> Tensor:
        """The matrix product of the last two axes; leading axes broadcast. An array of one axis is a
        row on the left and a column on the right, and its axis is not in the result.

        With `dtype` it is the product of the arrays as arrays of that dtype. Products of int8 arrays
        are int8 themselves, and wrap; with `dtype=td.int32` they are exact, and as quick.

        >>> import treadle as td
        >>> a = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> (a @ a).tolist(), td.matmul(a, td.asarray([1.0, 10.0], device="cpu")).tolist()
        ([[7.0, 10.0], [15.0, 22.0]], [21.0, 43.0])
        >>> bytes = td.asarray([[100, 100]], dtype=td.int8, device="cpu")
        >>> td.matmul(bytes, bytes.mT, dtype=td.int32).tolist()
        [[20000]]
        """

    def matrix_transpose(self, /) -> Tensor:
        """A view with the last two axes exchanged.

        >>> import treadle as td
        >>> td.matrix_transpose(td.asarray([[1, 2, 3]], device="cpu")).tolist()
        [[1], [2], [3]]
        """

    @overload
    def max(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """The greatest element along one axis, several or all; NaN if there is one. ShapeError for no
        elements.

        As NumPy's, with `dim` for `axis` if you like. PyTorch's `max(x, dim=1)` gives the indices, too:
        those are `td.argmax(x, axis=1)`. Its `max(x, y)` of two tensors is `td.maximum(x, y)`.

        >>> import treadle as td
        >>> td.max(td.asarray([[1, 5], [7, 2]], device="cpu"), axis=1).tolist()
        [5, 7]
        """

    @overload
    def max(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    def maximum(self, x2: ArrayLike, /) -> Tensor:
        """The greater one; NaN if one is NaN.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, promoted to one dtype. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 5], device="cpu")
        >>> td.maximum(x, 3).tolist()
        [3, 5]
        """

    @overload
    def mean(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """The arithmetic mean of the elements along one axis, several or all: float32 for integers, NaN
        for no elements.

        >>> import treadle as td
        >>> td.mean(td.asarray([[1.0, 2.0], [3.0, 5.0]], device="cpu"), axis=0).tolist()
        [2.0, 3.5]
        """

    @overload
    def mean(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @overload
    def min(self, /, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
        """The least element along one axis, several or all; NaN if there is one. ShapeError for no
        elements.

        As NumPy's, with `dim` for `axis` if you like. PyTorch's `min(x, dim=1)` gives the indices, too:
        those are `td.argmin(x, axis=1)`. Its `min(x, y)` of two tensors is `td.minimum(x, y)`.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.min(x, axis=0).tolist()
        [1.0, 2.0]
        """

    @overload
    def min(
        self,
        /,
        dim: Axes | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    def minimum(self, x2: ArrayLike, /) -> Tensor:
        """The smaller one; NaN if one is NaN.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, promoted to one dtype. The result has the same dtype. DtypeError for
        complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1, 5], device="cpu")
        >>> td.minimum(x, 3).tolist()
        [1, 3]
        """

    def moveaxis(
        self,
        source: int | tuple[int, ...],
        destination: int | tuple[int, ...],
        /,
    ) -> Tensor:
        """A view with some axes moved to other places; the others keep their order.

        >>> import treadle as td
        >>> td.moveaxis(td.zeros((2, 3, 4), device="cpu"), 0, -1).shape
        (3, 4, 2)
        """

    def multiply(self, x2: ArrayLike, /) -> Tensor:
        """x1 * x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, complex numbers, promoted to one dtype. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.multiply(x, 3).tolist()
        [3, 6]
        """

    def negative(self, /) -> Tensor:
        """-x.

        `x` is an array of any shape; the result has the same shape. It takes integers, floating
        point numbers, complex numbers. The result has the same dtype. DtypeError for booleans.

        >>> import treadle as td
        >>> x = td.asarray([1, -2], device="cpu")
        >>> td.negative(x).tolist()
        [-1, 2]
        """

    def nextafter(self, x2: ArrayLike, /) -> Tensor:
        """The number next to x1, towards x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes floating point
        numbers, promoted to one dtype; integers and booleans become float32. The result has the
        same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1.0], device="cpu")
        >>> td.nextafter(x, 2.0).tolist()
        [1.0000001192092896]
        """

    def nonzero(self, /) -> tuple[Tensor, ...]:
        """The indices of the elements that are not zero, one tensor for each axis, in row-major order.
        ShapeError for a tensor without axes.

        >>> import treadle as td
        >>> rows, columns = td.nonzero(td.asarray([[0, 5], [6, 0]], device="cpu"))
        >>> rows.tolist(), columns.tolist()
        ([0, 1], [1, 0])
        """

    def not_equal(self, x2: ArrayLike, /) -> Tensor:
        """x1 != x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes booleans, integers,
        floating point numbers, complex numbers, promoted to one dtype. The result is boolean.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.not_equal(x, 2).tolist()
        [True, False]
        """

    def outer(self, x2: ArrayLike, /) -> Tensor:
        """All products of an element of x1 and one of x2, each an array of one axis.

        >>> import treadle as td
        >>> td.outer(td.asarray([1, 2], device="cpu"), td.asarray([1, 10], device="cpu")).tolist()
        [[1, 10], [2, 20]]
        """

    def permute(self, *axes: Any) -> Tensor:
        """A view with the axes in another order, as `x.permute(1, 0)` or `x.permute((1, 0))`.

        >>> import treadle as td
        >>> x = td.zeros((2, 3, 4), device="cpu")
        >>> x.permute(2, 0, 1).shape
        (4, 2, 3)
        """

    def permute_dims(self, /, axes: Sequence[int]) -> Tensor:
        """A view with the axes in another order: axis i of the result is axis axes[i].

        >>> import treadle as td
        >>> td.permute_dims(td.asarray([[1, 2], [3, 4]], device="cpu"), (1, 0)).tolist()
        [[1, 3], [2, 4]]
        """

    def positive(self, /) -> Tensor:
        """x: a copy.

        `x` is an array of any shape; the result has the same shape. It takes integers, floating
        point numbers, complex numbers. The result has the same dtype. DtypeError for booleans.

        >>> import treadle as td
        >>> x = td.asarray([1, -2], device="cpu")
        >>> td.positive(x).tolist()
        [1, -2]
        """

    def pow(self, x2: ArrayLike, /) -> Tensor:
        """x1 to the power of x2. Of integers to a negative power the fraction is cut to an integer (1, -1 or 0); a negative number as x2, or one in a list or NumPy array, is a ValueError, and under TREADLE_CHECK=1 every one is.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
        point numbers, complex numbers, promoted to one dtype; booleans become the device's default
        integer. The result has the same dtype.

        >>> import treadle as td
        >>> x = td.asarray([2, 3], device="cpu")
        >>> td.pow(x, 3).tolist()
        [8, 27]
        """

    @overload
    def prod(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        """The product of the elements along one axis, several or all, with `sum`'s dtypes; 1 for no
        elements.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.prod(x, axis=1).tolist()
        [2.0, 12.0]
        """

    @overload
    def prod(
        self,
        /,
        dim: Axes | None = None,
        dtype: DTypeLike | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    def ravel(self, /) -> Tensor:
        """All elements along one axis: a view where strides can express it, else a copy.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.ravel().tolist()
        [1.0, 2.0, 3.0, 4.0]
        """

    @property
    def real(self) -> Tensor:
        """The real part.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result has the same dtype, or that of the parts
        of complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([1 + 2j], device="cpu")
        >>> td.real(x).tolist()
        [1.0]
        """

    def reciprocal(self, /) -> Tensor:
        """1 / x.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([4.0, -0.5], device="cpu")
        >>> td.reciprocal(x).tolist()
        [0.25, -2.0]
        """

    def relu(self, inplace: bool = False) -> Tensor:
        """The larger of x and 0.

        >>> import treadle as td
        >>> td.nn.functional.relu(td.asarray([-1.0, 2.0], device="cpu")).tolist()
        [0.0, 2.0]
        """

    def remainder(self, x2: ArrayLike, /) -> Tensor:
        """The remainder of floor_divide; it has x2's sign.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
        point numbers, promoted to one dtype; booleans become the device's default integer. The
        result has the same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([7, -7], device="cpu")
        >>> td.remainder(x, 2).tolist()
        [1, 1]
        """

    @overload
    def repeat(self, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
        """Each element repeated along an axis; with None, of the flattened tensor. `repeats` is one
        number, or an array with a number for each element of the axis.

        As NumPy's, and PyTorch's `repeat_interleave`. PyTorch's method `x.repeat(2, 3)`, which puts
        copies of the whole side by side, is `td.tile(x, (2, 3))`.

        >>> import treadle as td
        >>> x = td.asarray([1, 2, 3], device="cpu")
        >>> td.repeat(x, 2).tolist(), td.repeat(x, td.asarray([2, 0, 1], device="cpu")).tolist()
        ([1, 1, 2, 2, 3, 3], [1, 1, 3])
        """

    @overload
    def repeat(self, repeats: int | Tensor, /, *, dim: int | None = None) -> Tensor: ...
    @overload
    def roll(
        self,
        /,
        shift: int | tuple[int, ...],
        axis: int | tuple[int, ...] | None = None,
    ) -> Tensor:
        """The elements shifted along axes; those shifted beyond the end re-enter at the beginning.
        Without an axis the flattened tensor is shifted.

        >>> import treadle as td
        >>> td.roll(td.asarray([1, 2, 3, 4], device="cpu"), 1).tolist()
        [4, 1, 2, 3]
        """

    @overload
    def roll(
        self,
        /,
        shift: int | tuple[int, ...],
        dims: int | tuple[int, ...] | None = None,
    ) -> Tensor: ...
    def round(self, /, decimals: int = 0) -> Tensor:
        """X rounded to a number of decimals (negative: to the left of the point); halves are rounded to
        even.

        >>> import treadle as td
        >>> td.round(td.asarray([1.25, 2.5], device="cpu")).tolist()
        [1.0, 2.0]
        >>> td.round(td.asarray([1.25, 26.0], device="cpu"), decimals=-1).tolist()
        [0.0, 30.0]
        """

    def rsqrt(self, /) -> Tensor:
        """1 / sqrt(x).

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([4.0, 0.25], device="cpu")
        >>> td.rsqrt(x).tolist()
        [0.5, 2.0]
        """

    def scatter(
        self,
        dim: int,
        index: ArrayLike,
        src: ArrayLike,
        *,
        reduce: str | None = None,
    ) -> Tensor:
        """The tensor with `src[i, j, k]` written to `[i, index[i, j, k], k]` for dim 1. index must not
        be longer than src along any axis; src may also be a number. Of several values for an element
        the last one stays, or all are added to it or multiplied with it (`reduce="add"`, `"multiply"`).

        >>> import treadle as td
        >>> x, at = td.zeros((2, 3), device="cpu"), td.asarray([[2], [0]], device="cpu")
        >>> td.scatter(x, 1, at, 5.0).tolist()
        [[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]]
        """

    def scatter_(
        self,
        dim: int,
        index: ArrayLike,
        src: ArrayLike,
        *,
        reduce: str | None = None,
    ) -> Tensor:
        """`scatter`, written into the tensor itself; the tensor."""

    def scatter_add(self, dim: int, index: ArrayLike, src: ArrayLike) -> Tensor:
        """`scatter` that adds all values for an element to it.

        >>> import treadle as td
        >>> x = td.zeros(3, device="cpu")
        >>> places = td.asarray([0, 2, 2], device="cpu")
        >>> td.scatter_add(x, 0, places, td.ones(3, device="cpu")).tolist()
        [1.0, 0.0, 2.0]
        """

    def scatter_add_(self, dim: int, index: ArrayLike, src: ArrayLike) -> Tensor:
        """`scatter_add`, written into the tensor itself; the tensor."""

    def scatter_reduce(
        self,
        dim: int,
        index: ArrayLike,
        src: ArrayLike,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor:
        """`scatter` that reduces all values for an element: "sum", "prod", "mean", "amax" or "amin" of
        them and, with `include_self`, of the element itself.

        >>> import treadle as td
        >>> x, at = td.zeros(2, device="cpu"), td.asarray([0, 0], device="cpu")
        >>> values = td.asarray([2.0, 4.0], device="cpu")
        >>> td.scatter_reduce(x, 0, at, values, "mean", include_self=False).tolist()
        [3.0, 0.0]
        """

    def scatter_reduce_(
        self,
        dim: int,
        index: ArrayLike,
        src: ArrayLike,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Tensor:
        """`scatter_reduce`, written into the tensor itself; the tensor."""

    def searchsorted(
        self,
        x2: ArrayLike,
        /,
        *,
        side: Literal["left", "right"] = "left",
        sorter: ArrayLike | None = None,
    ) -> Tensor:
        """The indices at which the values of x2 would be inserted into the sorted x1, which has one
        axis, to keep it sorted: before equal elements, or after them with `side="right"`. NaN is larger
        than all numbers.

        `sorter` are the indices that sort x1, as returned by `td.argsort(x1)`.

        >>> import treadle as td
        >>> x = td.asarray([1, 2, 2, 5], device="cpu")
        >>> td.searchsorted(x, td.asarray([2, 9], device="cpu")).tolist()
        [1, 4]
        """

    def sigmoid(self, /) -> Tensor:
        """1 / (1 + exp(-x)).

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 2.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.sigmoid(x).tolist()])
        0.500 0.881
        """

    def sign(self, /) -> Tensor:
        """-1, 0 or 1; of complex numbers x / abs(x).

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers, complex numbers. The result has the same dtype.

        >>> import treadle as td
        >>> x = td.asarray([-3.0, 0.0, 2.0], device="cpu")
        >>> td.sign(x).tolist()
        [-1.0, 0.0, 1.0]
        """

    def signbit(self, /) -> Tensor:
        """Whether the sign bit is set (of -0.0, too).

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers; integers and booleans become float32. The result is boolean. DtypeError for complex
        numbers.

        >>> import treadle as td
        >>> x = td.asarray([-0.0, 2.0], device="cpu")
        >>> td.signbit(x).tolist()
        [True, False]
        """

    def silu(self, inplace: bool = False) -> Tensor:
        """The product x * sigmoid(x), also called swish.

        >>> import treadle as td
        >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
        >>> [round(y, 3) for y in td.nn.functional.silu(x).tolist()]
        [-0.238, 0.311, 2.858]
        """

    def sin(self, /) -> Tensor:
        """The sine of an angle in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.sin(x).tolist()])
        0.000 0.841
        """

    def sinh(self, /) -> Tensor:
        """The hyperbolic sine.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.sinh(x).tolist()])
        0.000 1.175
        """

    @overload
    def softmax(self, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
        """exp(x), divided by its sum along an axis. With `dtype` x is cast first. Rows of only -inf,
        and rows with inf or NaN, become NaN, as in PyTorch.

        >>> import treadle as td
        >>> td.nn.functional.softmax(td.zeros((2, 4), device="cpu"), dim=1)[0].tolist()
        [0.25, 0.25, 0.25, 0.25]
        """

    @overload
    def softmax(self, dim: int = -1, *, dtype: DTypeLike | None = None) -> Tensor: ...
    def softplus(self, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
        """log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold.

        >>> import treadle as td
        >>> x = td.asarray([-2.0, 0.5, 3.0], device="cpu")
        >>> [round(y, 3) for y in td.nn.functional.softplus(x).tolist()]
        [0.127, 0.974, 3.049]
        """

    @overload
    def sort(
        self,
        /,
        axis: int = -1,
        *,
        descending: bool = False,
        stable: bool = True,
    ) -> Tensor:
        """The elements in order along an axis. NaN is last, in either order.

        >>> import treadle as td
        >>> td.sort(td.asarray([3.0, float("nan"), 1.0], device="cpu"), descending=True).tolist()
        [3.0, 1.0, nan]
        """

    @overload
    def sort(
        self,
        /,
        dim: int = -1,
        *,
        descending: bool = False,
        stable: bool = True,
    ) -> Tensor: ...
    @overload
    def split(
        self,
        indices_or_sections: int | Sequence[int],
        /,
        *,
        axis: int = 0,
    ) -> list[Tensor]:
        """Views of consecutive parts along an axis: a number of equal parts, or parts that end before
        the given indices. ShapeError if the axis cannot be split equally.

        As NumPy's. PyTorch's `split(x, 2)` and `split(x, [1, 2])` take the lengths of the parts: they
        are `td.split(x, range(2, n, 2))` for an axis of extent n, and `td.split(x, [1])`.

        >>> import treadle as td
        >>> [part.tolist() for part in td.split(td.asarray([1, 2, 3, 4], device="cpu"), [1, 3])]
        [[1], [2, 3], [4]]
        """

    @overload
    def split(
        self,
        indices_or_sections: int | Sequence[int],
        /,
        *,
        dim: int = 0,
    ) -> list[Tensor]: ...
    def sqrt(self, /) -> Tensor:
        """The square root.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([4.0, 2.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.sqrt(x).tolist()])
        2.000 1.414
        """

    def square(self, /) -> Tensor:
        """x * x.

        `x` is an array of any shape; the result has the same shape. It takes integers, floating
        point numbers, complex numbers; booleans become the device's default integer. The result has
        the same dtype.

        >>> import treadle as td
        >>> x = td.asarray([3, -4], device="cpu")
        >>> td.square(x).tolist()
        [9, 16]
        """

    @overload
    def squeeze(self, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """A view without these axes, which must have extent 1; None removes all axes of extent 1.

        ShapeError for an axis of another extent.

        >>> import treadle as td
        >>> td.squeeze(td.asarray([[[1], [2]]], device="cpu"), axis=(0, 2)).tolist()
        [1, 2]
        """

    @overload
    def squeeze(self, /, dim: int | tuple[int, ...] | None = None) -> Tensor: ...
    @overload
    def std(
        self,
        /,
        axis: Axes | None = None,
        correction: float = 0.0,
        keepdims: bool = False,
    ) -> Tensor:
        """The standard deviation: the square root of `var`.

        The default is NumPy's, whose name for the correction is `ddof`; PyTorch's is `correction=1`.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.std(x, axis=1).tolist()
        [0.5, 0.5]
        """

    @overload
    def std(
        self,
        /,
        dim: Axes | None = None,
        correction: float = 0.0,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    def subtract(self, x2: ArrayLike, /) -> Tensor:
        """x1 - x2.

        `x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if
        they do not broadcast, LaunchError for tensors on two devices. It takes integers, floating
        point numbers, complex numbers, promoted to one dtype. The result has the same dtype.
        DtypeError for booleans.

        >>> import treadle as td
        >>> x = td.asarray([1, 2], device="cpu")
        >>> td.subtract(x, 3).tolist()
        [-2, -1]
        """

    @overload
    def sum(
        self,
        /,
        axis: Axes | None = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
    ) -> Tensor:
        """The sum of the elements along one axis, several or all; 0 for no elements.

        Small integers are accumulated in the device's default integer, small unsigned integers in the
        unsigned dtype of its size; uint32 in uint64 if the device has that. With `dtype` the elements
        are cast first.

        >>> import treadle as td
        >>> td.sum(td.asarray([[1, 2], [3, 4]], device="cpu"), axis=0).tolist()
        [4, 6]
        """

    @overload
    def sum(
        self,
        /,
        dim: Axes | None = None,
        dtype: DTypeLike | None = None,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    def swapaxes(self, axis1: int, axis2: int, /) -> Tensor:
        """A view with two axes exchanged.

        >>> import treadle as td
        >>> x = td.zeros((2, 3, 4), device="cpu")
        >>> td.swapaxes(x, 0, 2).shape
        (4, 3, 2)
        """

    @overload
    def take(self, indices: ArrayLike, /, *, axis: int | None = None) -> Tensor:
        """The elements at some indices along an axis, which may be left out if it is the only one.
        Indices may be negative; an index in a tensor that is outside gives 0.

        >>> import treadle as td
        >>> td.take(td.asarray([[1, 2, 3], [4, 5, 6]], device="cpu"), [2, -3], axis=1).tolist()
        [[3, 1], [6, 4]]
        """

    @overload
    def take(self, indices: ArrayLike, /, *, dim: int | None = None) -> Tensor: ...
    @overload
    def take_along_axis(self, indices: ArrayLike, /, *, axis: int = -1) -> Tensor:
        """Along an axis, the elements at `indices`, matched by position along the other axes.

        `indices` has as many axes as x, which broadcast with x's except along `axis`. It may be the
        result of `td.argsort`.

        >>> import treadle as td
        >>> x = td.asarray([[3, 1, 2], [9, 8, 7]], device="cpu")
        >>> td.take_along_axis(x, td.argsort(x)).tolist()
        [[1, 2, 3], [7, 8, 9]]
        """

    @overload
    def take_along_axis(self, indices: ArrayLike, /, *, dim: int = -1) -> Tensor: ...
    def tan(self, /) -> Tensor:
        """The tangent of an angle in radians.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.tan(x).tolist()])
        0.000 1.557
        """

    def tanh(self, /) -> Tensor:
        """The hyperbolic tangent.

        `x` is an array of any shape; the result has the same shape. It takes floating point
        numbers, complex numbers; integers and booleans become float32. The result has the same
        dtype.

        >>> import treadle as td
        >>> x = td.asarray([0.0, 1.0], device="cpu")
        >>> print(*[f"{y:.3f}" for y in td.tanh(x).tolist()])
        0.000 0.762
        """

    def tensordot(self, x2: ArrayLike, /, *, axes: Any = 2) -> Tensor:
        """The sum of products along several axes: the last `axes` of x1 with the first of x2, or, for a
        pair of tuples, those of x1 with those of x2. The result has the other axes, those of x1 first.

        >>> import treadle as td
        >>> x = td.arange(6.0, device="cpu").reshape(2, 3)
        >>> td.tensordot(x, x, axes=((1,), (1,))).tolist()
        [[5.0, 14.0], [14.0, 50.0]]
        """

    def tile(self, repetitions: int | tuple[int, ...], /) -> Tensor:
        """The tensor repeated along each axis; missing axes and numbers are 1, in front.

        >>> import treadle as td
        >>> td.tile(td.asarray([1, 2], device="cpu"), (2, 2)).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
        """

    @overload
    def topk(self, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> TopK:
        """The k greatest elements along an axis (the least, without `largest`), sorted, and their
        indices. NaN counts as greatest. Of equal elements any may be chosen. (They are sorted with
        `sorted=False` as well.)

        >>> import treadle as td
        >>> found = td.topk(td.asarray([3.0, 9.0, 1.0, 7.0], device="cpu"), 2)
        >>> found.values.tolist(), found.indices.tolist()
        ([9.0, 7.0], [1, 3])
        """

    @overload
    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> TopK: ...
    def transpose(self, *axes: Any) -> Tensor:
        """A view with the axes in another order, as NumPy's `transpose`: all axes are named, or
        reversed if none is. Use `swapaxes` to exchange two axes.

        >>> import treadle as td
        >>> x = td.zeros((2, 3, 4), device="cpu")
        >>> x.transpose().shape
        (4, 3, 2)
        """

    def tril(self, /, k: int = 0) -> Tensor:
        """The elements on and below the k-th diagonal of the last two axes, and zeros above it.

        >>> import treadle as td
        >>> td.tril(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
        [[1, 0], [3, 4]]
        """

    def triu(self, /, k: int = 0) -> Tensor:
        """The elements on and above the k-th diagonal of the last two axes, and zeros below it.

        >>> import treadle as td
        >>> td.triu(td.asarray([[1, 2], [3, 4]], device="cpu")).tolist()
        [[1, 2], [0, 4]]
        """

    def trunc(self, /) -> Tensor:
        """The integer part.

        `x` is an array of any shape; the result has the same shape. It takes booleans, integers,
        floating point numbers. The result has the same dtype. DtypeError for complex numbers.

        >>> import treadle as td
        >>> x = td.asarray([-1.5, 1.2], device="cpu")
        >>> td.trunc(x).tolist()
        [-1.0, 1.0]
        """

    @overload
    def unsqueeze(self, /, axis: int | tuple[int, ...] = 0) -> Tensor:
        """A view with a new axis of extent 1 at this place of the result (or with several).

        IndexError if there is no such place.

        >>> import treadle as td
        >>> td.expand_dims(td.asarray([1, 2], device="cpu"), axis=-1).shape
        (2, 1)
        """

    @overload
    def unsqueeze(self, /, dim: int | tuple[int, ...] = 0) -> Tensor: ...
    @overload
    def unstack(self, /, *, axis: int = 0) -> tuple[Tensor, ...]:
        """Views of the tensor's parts along an axis, without that axis.

        >>> import treadle as td
        >>> [part.tolist() for part in td.unstack(td.asarray([[1, 2], [3, 4]], device="cpu"), axis=1)]
        [[1, 3], [2, 4]]
        """

    @overload
    def unstack(self, /, *, dim: int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def var(
        self,
        /,
        axis: Axes | None = None,
        correction: float = 0.0,
        keepdims: bool = False,
    ) -> Tensor:
        """The variance: the sum of the squared differences from the mean, divided by the number of
        elements minus `correction` (1 for a sample's variance).

        The default is NumPy's, whose name for the correction is `ddof`; PyTorch's is `correction=1`.
        Integers are computed in float32 (NumPy: float64, PyTorch: an error).

        >>> import treadle as td
        >>> td.var(td.asarray([1.0, 2.0, 3.0], device="cpu"), correction=1).item()
        1.0
        """

    @overload
    def var(
        self,
        /,
        dim: Axes | None = None,
        correction: float = 0.0,
        keepdim: bool = False,
        *,
        keepdims: bool = False,
    ) -> Tensor: ...
    @overload
    def vecdot(self, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
        """The sum of conj(x1) * x2 along one axis; the other axes broadcast.

        >>> import treadle as td
        >>> rows = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> td.vecdot(rows, td.asarray([1.0, 10.0], device="cpu")).tolist()
        [21.0, 43.0]
        """

    @overload
    def vecdot(self, x2: ArrayLike, /, *, dim: int = -1) -> Tensor: ...
    def where(self, condition: Any, other: Any) -> Tensor:
        """The tensor's elements where the condition holds, else those of `other`.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.where(x > 1, 0).tolist()
        [[0.0, 2.0], [3.0, 4.0]]
        """
