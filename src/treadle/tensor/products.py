"""Matrix and tensor products: `matmul` and `@`, `tensordot`, `vecdot`, `dot`, `outer`.

Each function names the axes of the two arrays; `contraction` decides how to compute the product.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any

from treadle.core.errors import ShapeError
from treadle.graph.node import Node
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.axes import one_axis, takes_dim
from treadle.tensor.composites import as_one_node
from treadle.tensor.contraction import Names, contracted, is_fused
from treadle.tensor.conversions import cast, common_shape, is_number
from treadle.tensor.dtypes import check_dtype, named_dtype
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.operands import prepare
from treadle.tensor.operators import is_operand, named, unsupported
from treadle.tensor.precision import cast_by_name
from treadle.tensor.tensor import Tensor


@cast_by_name
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, dtype: DTypeLike | None = None) -> Tensor:
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
    if dtype is None and type(x1) is Tensor and type(x2) is Tensor and is_fused(x1._node, x2._node):
        return _small_product(x1, x2)
    left, right = operands_of("matmul", x1, x2)
    if dtype is not None:
        wanted = named_dtype(dtype, left.device)
        check_dtype(wanted, left.device)
        left, right = cast(left, wanted), cast(right, wanted)
    return _matrices(left, right)


@as_one_node
def _small_product(x1: Tensor, x2: Tensor) -> Tensor:
    return _matrices(*operands_of("matmul", x1, x2))


def _matrices(left: Node, right: Node) -> Tensor:
    for node in (left, right):
        if not node.shape:
            raise ShapeError("matmul takes arrays with axes: with a number, write x * y")
    at = max(len(right.shape) - 2, 0)
    if left.shape[-1] != right.shape[at]:
        raise _unequal("matmul", left, len(left.shape) - 1, right, at)
    if at or len(left.shape) > 2:
        common_shape("matmul", (left.shape[:-2], right.shape[:at]))
    names1, names2, kept = _names(len(left.shape), len(right.shape))
    return contracted((left, names1), (right, names2), kept)


@lru_cache(64)
def _names(ndim1: int, ndim2: int) -> tuple[Names, Names, Names]:
    """The names of the axes of `matmul`'s operands and of its result. Leading axes are counted from
    the end, where shapes are aligned."""
    front = [max(ndim - 2, 0) for ndim in (ndim1, ndim2)]
    rows = ("row",) if ndim1 > 1 else ()
    columns = ("column",) if ndim2 > 1 else ()
    one, other, both = [range(-count, 0) for count in (*front, max(front))]
    return (*one, *rows, "inner"), (*other, "inner", *columns), (*both, *rows, *columns)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2) -> Tensor:
    """The sum of products along several axes: the last `axes` of x1 with the first of x2, or, for a
    pair of tuples, those of x1 with those of x2. The result has the other axes, those of x1 first.

    >>> import treadle as td
    >>> x = td.arange(6.0, device="cpu").reshape(2, 3)
    >>> td.tensordot(x, x, axes=((1,), (1,))).tolist()
    [[5.0, 14.0], [14.0, 50.0]]
    """
    left, right = operands_of("tensordot", x1, x2)
    along1, along2 = _axes_of_pair(axes, len(left.shape), len(right.shape))
    for a, b in zip(along1, along2, strict=True):
        if left.shape[a] != right.shape[b]:
            raise _unequal("tensordot", left, a, right, b)
    names1: list[Hashable] = [("left", axis) for axis in range(len(left.shape))]
    names2: list[Hashable] = [("right", axis) for axis in range(len(right.shape))]
    for a, b in zip(along1, along2, strict=True):
        names2[b] = names1[a]
    summed = [names1[a] for a in along1]
    kept = [name for name in (*names1, *names2) if name not in summed]
    return contracted((left, names1), (right, names2), kept)


@takes_dim
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along one axis; the other axes broadcast.

    >>> import treadle as td
    >>> rows = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.vecdot(rows, td.asarray([1.0, 10.0], device="cpu")).tolist()
    [21.0, 43.0]
    """
    left, right = operands_of("vecdot", x1, x2)
    most, least = sorted((len(left.shape), len(right.shape)), reverse=True)
    at = one_axis("vecdot", axis, most) - most  # counted from the end, where shapes are aligned
    if at < -least:
        raise IndexError(f"vecdot: axis {axis} is not in both shapes, {left.shape}, {right.shape}")
    if left.shape[at] != right.shape[at]:
        raise _unequal("vecdot", left, at, right, at)
    common_shape("vecdot", (left.shape, right.shape))
    if left.dtype.kind == "complex":
        left = Node("conj", (left,), left.shape, left.dtype, left.device)
    names = range(-most, 0)
    operands = [(node, _last(names, len(node.shape))) for node in (left, right)]
    return contracted(operands[0], operands[1], [name for name in names if name != at])


def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """NumPy's product: of numbers x1 * x2, else the sum of products along the last axis of x1 and
    the last but one of x2 (its only one, if it has one)."""
    left, right = operands_of("dot", x1, x2)
    if not left.shape or not right.shape:
        return apply("multiply", x1, x2)
    return tensordot(x1, x2, axes=((-1,), (max(len(right.shape) - 2, 0),)))


def inner(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sums of products along the last axes of both arrays, of shape (*x1.shape[:-1],
    *x2.shape[:-1]); with a number, or an array without axes, the product. Nothing is conjugated
    (`td.vecdot` does). ShapeError if the last axes differ.

    >>> import treadle as td
    >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> td.inner(x, td.asarray([1.0, 10.0], device="cpu")).tolist()
    [21.0, 43.0]
    """
    if is_number(x1) or is_number(x2):
        return apply("multiply", x1, x2)
    left, right = operands_of("inner", x1, x2)
    if not left.shape or not right.shape:
        return apply("multiply", x1, x2)
    if left.shape[-1] != right.shape[-1]:
        raise _unequal("inner", left, len(left.shape) - 1, right, len(right.shape) - 1)
    return tensordot(x1, x2, axes=((-1,), (-1,)))


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """All products of an element of x1 and one of x2, each an array of one axis.

    >>> import treadle as td
    >>> td.outer(td.asarray([1, 2], device="cpu"), td.asarray([1, 10], device="cpu")).tolist()
    [[1, 10], [2, 20]]
    """
    left, right = operands_of("outer", x1, x2)
    for node in (left, right):
        if len(node.shape) != 1:
            raise ShapeError(f"outer takes arrays of one axis, not of shape {node.shape}")
    return tensordot(x1, x2, axes=0)


# --- operands ------------------------------------------------------------------------------------


def operands_of(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Node, Node]:
    """Both arrays in their common dtype."""
    if type(x1) is Tensor and type(x2) is Tensor:
        left, right = x1._node, x2._node
        if left.dtype is right.dtype and left.device is right.device:
            return left, right
    for value in (x1, x2):
        if is_number(value):
            raise TypeError(f"{name} takes arrays, not numbers as {value!r} is: write x * y")
    _, dtype, (left, right) = prepare(name, (x1, x2))
    return cast(left, dtype), cast(right, dtype)


def _last(names: Sequence[Hashable], count: int) -> Names:
    """The last so many names."""
    return names[len(names) - max(count, 0) :]


def _axes_of_pair(axes: Any, ndim1: int, ndim2: int) -> tuple[list[int], list[int]]:
    if hasattr(axes, "__index__"):
        count = axes.__index__()
        if not 0 <= count <= min(ndim1, ndim2):
            raise ShapeError(
                f"tensordot: axes={count}, but the arrays have {ndim1} and {ndim2} axes"
            )
        return list(range(ndim1 - count, ndim1)), list(range(count))
    try:
        first, second = axes
    except (TypeError, ValueError):
        raise TypeError(
            f"tensordot: axes is a number of axes or a pair of tuples of them, not {axes!r}"
        ) from None
    found = []
    for mine, ndim in ((first, ndim1), (second, ndim2)):
        several = mine if isinstance(mine, (tuple, list)) else (mine,)
        one = [one_axis("tensordot", axis, ndim) for axis in several]
        if len(set(one)) != len(one):
            raise ValueError(f"tensordot: an axis is named twice in {tuple(several)}")
        found.append(one)
    if len(found[0]) != len(found[1]):
        raise ShapeError(f"tensordot: axes={axes!r} names different numbers of axes")
    return found[0], found[1]


def _unequal(name: str, left: Node, axis1: int, right: Node, axis2: int) -> ShapeError:
    return ShapeError(
        f"{name}: axis {axis1} of shape {left.shape} has {left.shape[axis1]} elements, and axis "
        f"{axis2} of shape {right.shape} has {right.shape[axis2]}: they must be equal"
    )


# --- the operator --------------------------------------------------------------------------------


def _at(self: Tensor, other: Any) -> Any:
    if is_operand(other):
        return NotImplemented if is_number(other) else matmul(self, other)
    return unsupported("@", self, other, "__rmatmul__")


def _at_reflected(self: Tensor, other: Any) -> Any:
    if is_operand(other):
        return NotImplemented if is_number(other) else matmul(other, self)
    return unsupported("@", self, other)


def _at_in_place(self: Tensor, other: Any) -> Any:
    if not is_operand(other) or is_number(other):
        return NotImplemented
    node = matmul(self, other)._node
    if node.shape != self.shape or node.dtype is not self.dtype:
        raise ShapeError(
            f"matmul in place: the result is {node.dtype} of shape {node.shape}, and {self.dtype} "
            f"of shape {self.shape} is written to: write x = x @ y instead"
        )
    self._write(node)
    return self


OPERATORS = {
    "__matmul__": named(_at, "__matmul__"),
    "__rmatmul__": named(_at_reflected, "__rmatmul__"),
    "__imatmul__": named(_at_in_place, "__imatmul__"),
}
