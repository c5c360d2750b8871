"""Convolutions and transposed convolutions along one to three axes, with PyTorch's arguments and
defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import float32, float64
from treadle.core.errors import DtypeError, ShapeError
from treadle.graph import views
from treadle.graph.node import Node, view_of
from treadle.kernels.product import rounds_to_tf32
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import cast
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.convolution_operations import (
    Geometry,
    convolution,
    transposed_convolution,
)
from treadle.tensor.functional.windows import Sizes, check_positive, numbers_of
from treadle.tensor.manipulation import swapaxes
from treadle.tensor.operands import prepare
from treadle.tensor.precision import cast_by_name
from treadle.tensor.products import matmul
from treadle.tensor.tensor import Tensor, from_node

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
]  # fmt: skip


@cast_by_name
def conv1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of an input of shape (N, C, L) with weights of shape (O, C / groups, K), of
    shape (N, O, …). Other arguments are as for `conv2d`.

    >>> import treadle as td
    >>> x = td.asarray([[[1.0, 2.0, 3.0, 4.0]]], device="cpu")
    >>> td.nn.functional.conv1d(x, td.ones((1, 1, 2), device="cpu")).tolist()
    [[[3.0, 5.0, 7.0]]]
    """
    moves = _Moves(stride, padding, dilation, groups)
    return _convolution(1, (input, weight, bias), moves)


@cast_by_name
def conv2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of an input of shape (N, C, H, W), or (C, H, W), with weights of shape (O, C
    / groups, KH, KW): the sum of products at each position, plus the output channel's `bias`.

    Weights are not flipped. `padding` is the number of zeros on both sides, or "valid" (none), or
    "same", with which the result is as large as the input (if the padding is odd, there is one more
    zero at the end); then `stride` must be 1. With `groups` each group of output channels depends
    on one group of input channels. float16 and bfloat16 are accumulated in float32; complex numbers
    are convolved by their parts. ShapeError if the dilated kernel is larger than the padded input;
    ValueError for a stride or a dilation below 1, or a padding below 0; DtypeError for bools.

    >>> import treadle as td
    >>> x = td.arange(9.0, device="cpu").reshape(1, 1, 3, 3)
    >>> ones = td.ones((1, 1, 2, 2), device="cpu")
    >>> td.nn.functional.conv2d(x, ones, td.ones(1, device="cpu")).tolist()
    [[[[9.0, 13.0], [21.0, 25.0]]]]
    >>> td.nn.functional.conv2d(x, td.ones((2, 1, 3, 3), device="cpu"), padding="same").shape
    (1, 2, 3, 3)
    """
    moves = _Moves(stride, padding, dilation, groups)
    return _convolution(2, (input, weight, bias), moves)


@cast_by_name
def conv3d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of an input of shape (N, C, D, H, W) with weights of shape (O, C / groups,
    KD, KH, KW). Other arguments are as for `conv2d`.

    >>> import treadle as td
    >>> x, w = td.ones((1, 1, 4, 4, 4), device="cpu"), td.ones((2, 1, 3, 3, 3), device="cpu")
    >>> td.nn.functional.conv3d(x, w).shape
    (1, 2, 2, 2, 2)
    """
    moves = _Moves(stride, padding, dilation, groups)
    return _convolution(3, (input, weight, bias), moves)


@cast_by_name
def conv_transpose1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution of an input of shape (N, C, L) with weights of shape (C, O /
    groups, K), of shape (N, O, …). Other arguments are as for `conv_transpose2d`.

    >>> import treadle as td
    >>> x, w = td.ones((1, 1, 4), device="cpu"), td.ones((1, 2, 3), device="cpu")
    >>> td.nn.functional.conv_transpose1d(x, w).shape
    (1, 2, 6)
    """
    moves = _Moves(stride, padding, dilation, groups, output_padding)
    return _transposed(1, (input, weight, bias), moves)


@cast_by_name
def conv_transpose2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution of an input of shape (N, C, H, W), or (C, H, W), with weights of
    shape (C, O / groups, KH, KW): each element times the weights is added to the result, `stride`
    elements apart, plus the output channel's `bias`. It is the gradient of `conv2d` with the same
    arguments.

    An axis of the result has (extent - 1) * stride - 2 * padding + dilation * (K - 1) +
    output_padding + 1 elements. ValueError if `output_padding` is less than neither the stride nor
    the dilation; ShapeError if the result would have an axis without elements.

    >>> import treadle as td
    >>> x = td.asarray([[[[1.0, 2.0]]]], device="cpu")
    >>> td.nn.functional.conv_transpose2d(x, td.ones((1, 1, 1, 2), device="cpu"), stride=2).tolist()
    [[[[1.0, 1.0, 2.0, 2.0]]]]
    """
    moves = _Moves(stride, padding, dilation, groups, output_padding)
    return _transposed(2, (input, weight, bias), moves)


@cast_by_name
def conv_transpose3d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution of an input of shape (N, C, D, H, W) with weights of shape (C, O /
    groups, KD, KH, KW). Other arguments are as for `conv_transpose2d`."""
    moves = _Moves(stride, padding, dilation, groups, output_padding)
    return _transposed(3, (input, weight, bias), moves)


# --- shared parts ------------------------------------------------------------------------


class _Moves(NamedTuple):
    """Stride, padding and so on as the user gives them: one number for all axes, or one for
    each."""

    stride: Sizes
    padding: Sizes | str
    dilation: Sizes
    groups: int
    output_padding: Sizes = 0

    def by_axis(self, name: str, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Strides and dilations of each axis. ValueError if a number is below 1."""
        strides = numbers_of(name, "stride", self.stride, rank)
        dilations = numbers_of(name, "dilation", self.dilation, rank)
        check_positive(name, "stride", strides)
        check_positive(name, "dilation", dilations)
        if isinstance(self.groups, bool) or not hasattr(self.groups, "__index__"):
            raise TypeError(f"{name}: groups is an integer, not {self.groups!r}")
        check_positive(name, "groups", (self.groups,))
        return strides, dilations


class _Operands(NamedTuple):
    """Input, weights and perhaps a bias, of one dtype; the input with a batch."""

    nodes: tuple[Node, ...]
    batched: bool

    @property
    def rounds_once(self) -> bool:
        """Whether a matrix product plus bias rounds floats once: not for a half with a bias."""
        dtype = self.nodes[0].dtype
        return dtype in (float32, float64) or (dtype.kind == "float" and len(self.nodes) == 2)

    @property
    def is_rounded(self) -> bool:
        """Whether float32 numbers are rounded to TF32, as those of products are."""
        return self.nodes[0].dtype is float32 and rounds_to_tf32(self.nodes[0].device)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Input, weights and perhaps a bias."""
        x, w, *bias = [from_node(view_of(node, views.whole(node.shape))) for node in self.nodes]
        return x, w, bias[0] if bias else None

    @property
    def input(self) -> tuple[int, ...]:
        return self.nodes[0].shape

    @property
    def weight(self) -> tuple[int, ...]:
        return self.nodes[1].shape

    @property
    def shown(self) -> tuple[int, ...]:
        """The input's shape as it was given."""
        return self.input if self.batched else self.input[1:]


def _convolution(rank: int, given: tuple[Any, Any, Any], moves: _Moves) -> Tensor:
    name = f"conv{rank}d"
    operands = _operands(name, rank, given)
    x, w, groups = operands.input, operands.weight, moves.groups
    strides, steps = moves.by_axis(name, rank)
    if x[1] != w[1] * groups:
        raise ShapeError(
            f"{name}: weights of shape {w} with groups={groups} take {w[1] * groups} input "
            f"channels, and an input of shape {operands.shown} has {x[1]}"
        )
    _check_groups(name, "output channels", w[0], w, groups)
    _check_bias(name, operands, w[0])
    reach = [(k - 1) * d + 1 for k, d in zip(w[2:], steps, strict=True)]
    before, both = _paddings(name, moves.padding, rank, reach, strides)
    room = [extent + p for extent, p in zip(x[2:], both, strict=True)]
    if any(a > b for a, b in zip(reach, room, strict=True)):
        dilated = "" if max(steps) == 1 else f", with dilation {steps} of {tuple(reach)} elements,"
        raise ShapeError(
            f"{name}: a kernel of shape {w[2:]}{dilated} is larger than the input of shape "
            f"{operands.shown}, "
            f"which is {tuple(room)} with its padding"
        )
    # A longer step than the whole axis would not fit a number of a kernel.
    strides = tuple([min(s, max(b, 1)) for s, b in zip(strides, room, strict=True)])
    extents = tuple([(b - a) // s + 1 for a, b, s in zip(reach, room, strides, strict=True)])
    if groups == 1 and max(both) == 0 and operands.rounds_once:
        once = all(k == 1 and s == 1 for k, s in zip(w[2:], strides, strict=True))
        if once or w[2:] == x[2:]:
            return _multiplied(operands, once, extents)
    geometry = Geometry(strides, before, steps, groups, extents, operands.is_rounded)
    made = _of_parts(convolution, operands, geometry)
    return made if operands.batched else made[0]


def _transposed(rank: int, given: tuple[Any, Any, Any], moves: _Moves) -> Tensor:
    name = f"conv_transpose{rank}d"
    operands = _operands(name, rank, given)
    x, w, groups = operands.input, operands.weight, moves.groups
    strides, steps = moves.by_axis(name, rank)
    pads = numbers_of(name, "padding", moves.padding, rank)
    more = numbers_of(name, "output_padding", moves.output_padding, rank)
    _check_not_negative(name, "padding", pads)
    _check_not_negative(name, "output_padding", more)
    if any(m >= max(s, d) for m, s, d in zip(more, strides, steps, strict=True)):
        raise ValueError(
            f"{name}: output_padding must be less than the stride or the dilation, but it is "
            f"{more} with stride={strides} and dilation={steps}"
        )
    if x[1] != w[0]:
        raise ShapeError(
            f"{name}: weights of shape {w} take {w[0]} input channels, and an input of shape "
            f"{operands.shown} has {x[1]}"
        )
    _check_groups(name, "input channels", w[0], w, groups)
    outs = w[1] * groups
    _check_bias(name, operands, outs)
    extents = tuple(
        [
            (size - 1) * s - 2 * p + d * (k - 1) + m + 1
            for size, k, s, p, d, m in zip(x[2:], w[2:], strides, pads, steps, more, strict=True)
        ]
    )
    if 0 in x[2:]:
        raise ShapeError(f"{name}: an input of shape {operands.shown} has no elements to spread")
    if min(extents) < 1:
        raise ShapeError(
            f"{name}: the result's axes would have {extents} elements: too much padding ({pads}) "
            f"for an input of shape {operands.shown} and weights of shape {w}"
        )
    geometry = Geometry(strides, pads, steps, groups, extents, operands.is_rounded)
    made = _of_parts(transposed_convolution, operands, geometry)
    return made if operands.batched else made[0]


def _of_parts(function: Callable[..., Tensor], operands: _Operands, geometry: Geometry) -> Tensor:
    """A convolution; for complex numbers four convolutions of real and imaginary parts."""
    x, w, bias = operands.tensors
    if x.dtype.kind != "complex":
        return function(x, w, bias, geometry)
    real, imag = FUNCTIONS["real"], FUNCTIONS["imag"]
    (a, b), (c, d) = (real(x), imag(x)), (real(w), imag(w))
    e, f = (None, None) if bias is None else (real(bias), imag(bias))
    first = function(a, c, e, geometry) - function(b, d, None, geometry)
    second = function(a, d, f, geometry) + function(b, c, None, geometry)
    parts = (first._node, second._node)
    return from_node(Node("complex", parts, first.shape, x.dtype, parts[0].device))


def _operands(name: str, rank: int, given: tuple[Any, Any, Any]) -> _Operands:
    _, dtype, found = prepare(name, given[:2] if given[2] is None else given)
    if dtype.kind == "bool":
        raise DtypeError(f"{name} takes numbers, not {dtype}: cast it before")
    for what, value in zip(("input", "weight", "bias"), found, strict=False):
        if not isinstance(value, Node):
            raise TypeError(f"{name}: {what} is a tensor, not {value!r}")
    x, w, *rest = [cast(node, dtype) for node in found]
    if len(w.shape) != rank + 2 or len(x.shape) not in (rank + 1, rank + 2):
        raise ShapeError(
            f"{name} takes an input of {rank + 2} axes (or {rank + 1}, without a batch) and "
            f"weights of {rank + 2}, not shapes {x.shape} and {w.shape}"
        )
    if 0 in w.shape[2:]:
        raise ShapeError(f"{name}: weights of shape {w.shape} have a kernel without elements")
    batched = len(x.shape) == rank + 2
    if not batched:
        x = view_of(x, views.whole((1, *x.shape)))
    return _Operands((x, w, *rest), batched)


def _check_not_negative(name: str, what: str, numbers: Sequence[int]) -> None:
    if min(numbers) < 0:
        raise ValueError(f"{name}: {what} must not be negative, as {tuple(numbers)} is")


def _check_groups(
    name: str, what: str, channels: int, weight: tuple[int, ...], groups: int
) -> None:
    if not channels:
        raise ShapeError(f"{name}: weights of shape {weight} have no {what}")
    if channels % groups:
        raise ShapeError(
            f"{name}: {channels} {what} (weights of shape {weight}) do not divide into "
            f"{groups} groups"
        )


def _check_bias(name: str, operands: _Operands, outs: int) -> None:
    if len(operands.nodes) == 3 and operands.nodes[2].shape != (outs,):
        raise ShapeError(
            f"{name}: bias has shape {operands.nodes[2].shape}, not ({outs},) as weights of shape "
            f"{operands.weight} need"
        )


def _paddings(
    name: str, padding: Any, rank: int, reach: Sequence[int], strides: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The zeros in front of each axis, and those on both sides together."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f'{name}: padding is numbers, "same" or "valid", not {padding!r}')
        if padding == "valid":
            return (0,) * rank, (0,) * rank
        if max(strides) > 1:
            raise ValueError(f'{name}: padding="same" needs a stride of 1, not {tuple(strides)}')
        return tuple([(r - 1) // 2 for r in reach]), tuple([r - 1 for r in reach])
    pads = numbers_of(name, "padding", padding, rank)
    _check_not_negative(name, "padding", pads)
    return pads, tuple([2 * p for p in pads])


def _multiplied(operands: _Operands, by_place: bool, extents: tuple[int, ...]) -> Tensor:
    """The convolution as a matrix product, for a kernel of one element, or one as large as the
    input."""
    x, weight, bias = operands.tensors
    n, outs = x.shape[0], weight.shape[0]
    matrix = weight.reshape(outs, math.prod(weight.shape[1:]))
    if by_place:
        made = matmul(matrix, x.reshape(n, matrix.shape[1], math.prod(extents)))
        made = made if bias is None else made + bias.reshape(outs, 1)
    else:
        made = matmul(x.reshape(n, matrix.shape[1]), swapaxes(matrix, 0, 1))
        made = made if bias is None else made + bias
    made = made.reshape(n, outs, *extents)
    return made if operands.batched else made[0]
