"""Products of matrices and vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations import reductions
from treadle.numpy.operations.calling import call
from treadle.numpy.operations.operands import array, arrays, axis_of, converted
from treadle.numpy.operations.operands import common as of_numbers
from treadle.tensor.einstein_summation import rearranged
from treadle.tensor.tensor import Tensor as Inner


def common(*values: Any) -> list[Inner]:
    """Arguments in their common dtype; numbers of Python's have dtypes of their own, too."""
    return of_numbers(*arrays(*values))


def _product(one: Inner, other: Inner) -> Inner:
    """The matrix product in the operands' dtype; of bools whether any pair is true."""
    own = one.dtype
    if own.kind == "bool":
        return (td.matmul(one.to(td.int32), other.to(td.int32)) != 0).to(td.bool)
    if own.is_integer and own.itemsize < 4:
        return td.matmul(one.to(td.int32), other.to(td.int32)).to(own)
    made = td.matmul(one, other)
    return made if made.dtype is own else made.to(own)


def _is_plain(one: Any, other: Any) -> bool:
    """Whether a product is of two matrices of floating numbers, which fit."""
    if type(one) is not Inner or type(other) is not Inner or one.dtype is not other.dtype:
        return False
    first, second = one.shape, other.shape
    is_matrix = len(first) == 2 and len(second) == 2
    return is_matrix and first[1] == second[0] and one.dtype.kind == "float"


def matmul(
    x1: Any, x2: Any, /, *, dtype: Any = None, casting: str = "same_kind", axes: Any = None
) -> Inner:
    """The matrix product of the last two axes; the others are broadcast."""
    if dtype is None and axes is None and _is_plain(x1, x2):
        made: Inner = td.matmul(x1, x2)
        return made
    one, other = common(x1, x2)
    if not one.shape or not other.shape:
        raise ValueError(
            "matmul: Input operand does not have enough dimensions (has 0, gufunc core with "
            "signature (n?,k),(k,m?)->(n?,m?) requires 1)"
        )
    if axes is not None:
        raise NotImplementedError("matmul(axes=…): move the axes with np.moveaxis")
    if dtype is not None:
        wanted = promotion.named(dtype, one.device)
        promotion.check_cast(one.dtype, wanted, casting, "ufunc 'matmul' input")
        one, other = converted(one, wanted), converted(other, wanted)
    inner = other.shape[-2] if len(other.shape) > 1 else other.shape[0]
    if one.shape[-1] != inner:
        raise ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc "
            "signature "
            f"(n?,k),(k,m?)->(n?,m?) (size {inner} is different from {one.shape[-1]})"
        )
    return _product(one, other)


def dot(a: Any, b: Any) -> Inner:
    """The product along the last axis of `a` and the last but one of `b`."""
    if _is_plain(a, b):
        made: Inner = td.matmul(a, b)
        return made
    one, other = common(a, b)
    if not one.shape or not other.shape:
        return call("multiply", one, other)
    if len(other.shape) == 1:
        return tensordot(one, other, ((-1,), (0,)))
    if len(one.shape) <= 2 and len(other.shape) == 2:
        if one.shape[-1] != other.shape[0]:
            raise ValueError(f"shapes {one.shape} and {other.shape} not aligned")
        return _product(one, other)
    return tensordot(one, other, ((-1,), (-2,)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Inner:
    """The sums of products along pairs of axes."""
    one, other = common(a, b)
    if isinstance(axes, (tuple, list)):
        first, second = [
            list(each) if isinstance(each, (tuple, list)) else [operator.index(each)]
            for each in axes
        ]
    else:
        count = operator.index(axes)
        first, second = list(range(-count, 0)), list(range(count))
    if len(first) != len(second):
        raise ValueError("shape-mismatch for sum")
    if len(first) > min(len(one.shape), len(other.shape)):
        raise IndexError("tuple index out of range")
    first = [axis_of(each, len(one.shape)) for each in first]
    second = [axis_of(each, len(other.shape)) for each in second]
    if [one.shape[at] for at in first] != [other.shape[at] for at in second]:
        raise ValueError("shape-mismatch for sum")
    rest_one = [at for at in range(len(one.shape)) if at not in first]
    rest_other = [at for at in range(len(other.shape)) if at not in second]
    count = int(np.prod([one.shape[at] for at in first], dtype=object)) if first else 1
    rows = tuple(one.shape[at] for at in rest_one)
    columns = tuple(other.shape[at] for at in rest_other)
    left = td.permute_dims(one, (*rest_one, *first)).reshape(
        (int(np.prod(rows, dtype=object)) if rows else 1, count)
    )
    right = td.permute_dims(other, (*second, *rest_other)).reshape(
        (count, int(np.prod(columns, dtype=object)) if columns else 1)
    )
    return _product(left, right).reshape((*rows, *columns))


def inner(a: Any, b: Any, /) -> Inner:
    """The products along the last axes."""
    one, other = common(a, b)
    if not one.shape or not other.shape:
        return call("multiply", one, other)
    if one.shape[-1] != other.shape[-1]:
        raise ValueError(f"shapes {one.shape} and {other.shape} not aligned")
    return tensordot(one, other, ((-1,), (-1,)))


def outer(a: Any, b: Any) -> Inner:
    """The products of all pairs of elements of the flattened arrays."""
    one, other = common(a, b)
    return call("multiply", one.reshape((-1, 1)), other.reshape((1, -1)))


def vdot(a: Any, b: Any, /) -> Inner:
    """The product of the flattened arrays, of the first one's conjugate."""
    one, other = common(a, b)
    one, other = one.reshape(-1), other.reshape(-1)
    if one.size != other.size:
        raise ValueError("cannot reshape array: the sizes of vdot's arrays differ")
    return dot(td.conj(one) if one.dtype.kind == "complex" else one, other)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Inner:
    """The products along an axis, of the first one's conjugate; the other axes are broadcast."""
    one, other = common(x1, x2)
    if not one.shape or not other.shape:
        raise ValueError(
            "vecdot: Input operand does not have enough dimensions (has 0, requires 1)"
        )
    one = td.moveaxis(one, axis_of(axis, len(one.shape)), len(one.shape) - 1)
    other = td.moveaxis(other, axis_of(axis, len(other.shape)), len(other.shape) - 1)
    if one.shape[-1] != other.shape[-1]:
        raise ValueError("vecdot: Input operand 1 has a mismatch in its core dimension 0")
    one = td.conj(one) if one.dtype.kind == "complex" else one
    made = _product(td.expand_dims(one, axis=-2), td.expand_dims(other, axis=-1))
    return made.reshape(made.shape[:-2])


def matvec(x1: Any, x2: Any, /) -> Inner:
    """Matrices times vectors."""
    one, other = common(x1, x2)
    if len(one.shape) < 2 or not other.shape:
        raise ValueError("matvec: Input operand does not have enough dimensions")
    if one.shape[-1] != other.shape[-1]:
        raise ValueError("matvec: Input operand 1 has a mismatch in its core dimension 0")
    return _product(one, td.expand_dims(other, axis=-1)).reshape(
        (*np.broadcast_shapes(one.shape[:-2], other.shape[:-1]), one.shape[-2])
    )


def vecmat(x1: Any, x2: Any, /) -> Inner:
    """The conjugates of vectors times matrices."""
    one, other = common(x1, x2)
    if not one.shape or len(other.shape) < 2:
        raise ValueError("vecmat: Input operand does not have enough dimensions")
    if one.shape[-1] != other.shape[-2]:
        raise ValueError("vecmat: Input operand 1 has a mismatch in its core dimension 0")
    one = td.conj(one) if one.dtype.kind == "complex" else one
    return _product(td.expand_dims(one, axis=-2), other).reshape(
        (*np.broadcast_shapes(one.shape[:-1], other.shape[:-2]), other.shape[-1])
    )


def einsum(
    *operands: Any,
    optimize: Any = False,
    dtype: Any = None,
    casting: str = "safe",
    order: Any = "K",
) -> Inner:
    """The sums of products that a subscripts text says, as "ij,jk->ik"."""
    if len(operands) < 2:
        raise ValueError(
            "must specify the einstein sum subscripts string and at least one operand, or at least "
            "one operand and its corresponding subscripts list"
        )
    if not isinstance(operands[0], str):
        operands = _with_text(operands)
    text, *given = operands
    made = common(*given)
    own = made[0].dtype
    if dtype is not None:
        wanted = promotion.named(dtype, made[0].device)
        made = [converted(each, wanted) for each in made]
        own = wanted
    if len(made) == 1 and (view := rearranged([text, *made])) is not None:
        return view
    if own.kind == "bool" or (own.is_integer and own.itemsize < 4):
        found = td.einsum(text, *[each.to(td.int32) for each in made])
        return (found != 0).to(td.bool) if own.kind == "bool" else found.to(own)
    found = td.einsum(text, *made)
    return found.to(own)


def _with_text(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that are arrays and lists of axes, as a text and arrays."""

    def letters(axes: Any) -> str:
        return "".join(
            "..."
            if each is Ellipsis
            else chr(ord("a") + each)
            if each < 26
            else chr(ord("A") + each - 26)
            for each in axes
        )

    pairs = list(zip(given[0::2], given[1::2], strict=False))
    text = ",".join(letters(axes) for _, axes in pairs)
    if len(given) % 2:
        text += "->" + letters(given[-1])
    return (text, *[each for each, _ in pairs])


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """The order in which NumPy would contract operands of these shapes, as NumPy says it."""
    if isinstance(operands[0], str):
        text, *given = operands
    else:
        text, *given = _with_text(operands)
    return np.einsum_path(
        text,
        *[np.broadcast_to(np.float64(0), array(each).shape) for each in given],
        optimize=optimize,
    )


def kron(a: Any, b: Any) -> Inner:
    """The Kronecker product."""
    one, other = common(a, b)
    count = max(len(one.shape), len(other.shape))
    first = one.reshape((*(1,) * (count - len(one.shape)), *one.shape))
    second = other.reshape((*(1,) * (count - len(other.shape)), *other.shape))
    left = first.reshape(tuple(e for extent in first.shape for e in (extent, 1)))
    right = second.reshape(tuple(e for extent in second.shape for e in (1, extent)))
    made = call("multiply", left, right)
    return made.reshape(tuple(x * y for x, y in zip(first.shape, second.shape, strict=True)))


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Inner:
    """The vectors that are perpendicular to pairs of vectors of 3 components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    one, other = common(a, b)
    if not one.shape or not other.shape:
        raise ValueError("At least one array has zero dimension")
    one = td.moveaxis(one, axis_of(axisa, len(one.shape)), len(one.shape) - 1)
    other = td.moveaxis(other, axis_of(axisb, len(other.shape)), len(other.shape) - 1)
    if one.shape[-1] not in (2, 3) or other.shape[-1] not in (2, 3):
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{one.shape[-1]} and {other.shape[-1]} dimensional instead."
        )
    parts = [[x[..., at] if at < x.shape[-1] else None for at in range(3)] for x in (one, other)]
    (a0, a1, a2), (b0, b1, b2) = parts

    def less(p: Any, q: Any, r: Any, s: Any) -> Any:
        first = None if p is None or q is None else p * q
        second = None if r is None or s is None else r * s
        if first is None:
            return -second if second is not None else None
        return first if second is None else first - second

    last = less(a0, b1, a1, b0)
    if a2 is None and b2 is None:
        return last  # type: ignore[no-any-return]
    made = td.stack([less(a1, b2, a2, b1), less(a2, b0, a0, b2), last], axis=-1)
    return td.moveaxis(made, len(made.shape) - 1, axis_of(axisc, len(made.shape)))


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Inner:
    """The sum of the diagonal."""
    from_shapes = _diagonal(array(a), offset, axis1, axis2)
    return reductions.sum(from_shapes, -1, dtype)


def _diagonal(x: Inner, offset: int, axis1: int, axis2: int) -> Inner:
    count = len(x.shape)
    if count < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    one, other = axis_of(axis1, count), axis_of(axis2, count)
    if one == other:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [at for at in range(count) if at not in (one, other)]
    return td.linalg.diagonal(td.permute_dims(x, (*rest, one, other)), offset=offset)
