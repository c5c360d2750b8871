"""Affine maps: `linear` and `bilinear`."""

from __future__ import annotations

from typing import Any

from treadle.core.errors import ShapeError
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.composites import as_one_node, composite
from treadle.tensor.contraction import contracted
from treadle.tensor.manipulation import expand_dims, swapaxes
from treadle.tensor.operands import operand
from treadle.tensor.precision import cast_by_name
from treadle.tensor.products import matmul, operands_of
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor

__all__ = ["bilinear", "linear"]


@composite
@as_one_node
def linear(input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
    """The product x @ weight.T, plus bias, along the last axis of x: the weight has shape
    (out, in), or (in,) for one output without an axis.

    >>> import treadle as td
    >>> x, weight = td.asarray([[1.0, 2.0]], device="cpu"), td.eye(2, device="cpu") * 3
    >>> td.nn.functional.linear(x, weight, td.asarray([0.0, 10.0], device="cpu")).tolist()
    [[3.0, 16.0]]
    """
    x, w = operand("linear", input), operand("linear", weight)
    if not x.shape or w.ndim not in (1, 2) or x.shape[-1] != w.shape[-1]:
        raise ShapeError(
            f"linear: an input of shape {x.shape} does not fit a weight of shape {w.shape}, which "
            "is (out, in): the last extents must be equal"
        )
    left, right = operands_of("linear", x, w)
    # Not as a product with the transposed weight, so that the gradient has the weight's layout.
    rows, columns = tuple(range(x.ndim - 1)), ("column",) if w.ndim == 2 else ()
    product = contracted((left, (*rows, "inner")), (right, (*columns, "inner")), (*rows, *columns))
    return product if bias is None else product + _bias("linear", bias, w)


@cast_by_name
def bilinear(
    input1: ArrayLike, input2: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None
) -> Tensor:
    """For each output o the sum of x1[i] * weight[o, i, j] * x2[j], plus bias[o], along the last
    axes of x1 and x2, whose other axes are the same.

    >>> import treadle as td
    >>> x, weight = td.asarray([1.0, 2.0], device="cpu"), td.ones((1, 2, 2), device="cpu")
    >>> td.nn.functional.bilinear(x, x, weight).tolist()
    [9.0]
    """
    name = "bilinear"
    a, b, w = operand(name, input1), operand(name, input2), operand(name, weight)
    if (
        w.ndim != 3
        or not a.shape
        or a.shape[:-1] != b.shape[:-1]
        or (a.shape[-1], b.shape[-1]) != w.shape[1:]
    ):
        raise ShapeError(
            f"bilinear: inputs of shapes {a.shape} and {b.shape} do not fit a weight of shape "
            f"{w.shape}, which is (out, in1, in2): inputs have these last extents, and equal ones "
            "before"
        )
    outputs, ones, others = w.shape
    flat = swapaxes(w, 0, 1).reshape(ones, outputs * others)
    halfway = matmul(a, flat).reshape(*a.shape[:-1], outputs, others)
    product = total(halfway * expand_dims(b, -2), axis=-1, dtype=halfway.dtype)
    return product if bias is None else product + _bias(name, bias, w)


def _bias(name: str, bias: Any, weight: Tensor) -> Tensor:
    found = operand(name, bias)
    wanted = weight.shape[:1] if weight.ndim > 1 else ()
    if found.shape not in (wanted, (1,)[: len(wanted)]):
        raise ShapeError(f"{name}: bias has shape {found.shape}, not {wanted}")
    return found
