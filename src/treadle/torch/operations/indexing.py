"""`x[index]` with PyTorch's rules, and reading and writing at indices.

Integers, slices and None select a view first, and tensors of integers and bools index that view.
Indices in tensors are not read: one outside its axis gives 0, and what is written there is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.graph import views
from treadle.graph.placeholders import within
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers
from treadle.torch.operations import bounds, shapes
from treadle.torch.operations.axes import long, one
from treadle.torch.operations.operands import cast

_PLAIN = (int, type(None), type(Ellipsis))


def getitem(input: Inner, index: Any) -> Inner:
    """`x[index]`: a view for integers, slices, None and `...`, else a copy."""
    if _is_plain(index) or (type(index) is tuple and all(map(_is_plain, index))):
        return input[index]
    if type(index) is Inner and index.dtype.kind == "int" and index.shape and input.shape:
        return _taken_from(input, _beside(input, index))
    found, places = _split(input, index)
    return found if places is None else _taken_from(found, places)


@bounds.looking
def _taken_from(part: Inner, places: Any) -> Inner:
    return part[places]


def _is_plain(part: Any) -> bool:
    """Whether a part of an index is one that treadle takes as PyTorch does."""
    kind = type(part)
    return kind is int or (kind is slice and part.step is None) or part is None


def setitem(input: Inner, index: Any, value: Any) -> None:
    """`x[index] = value`, which is broadcast and cast."""
    if type(value) in (float, int) and (
        _is_plain(index) or (type(index) is tuple and all(map(_is_plain, index)))
    ):
        input[index] = value
        return
    part, places = _split(input, index)
    if isinstance(value, Inner):
        value = _fitted(value, part, places).to(part.device, dtype=part.dtype)
    if places is None:
        part[...] = value
    else:
        _put_into(part, places, value)


@bounds.looking
def _put_into(part: Inner, places: Any, value: Any) -> None:
    part[places] = value


def _fitted(value: Inner, part: Inner, places: Any) -> Inner:
    """A value without more leading axes of extent 1 than what it is written to has."""
    if places is None and len(value.shape) > len(part.shape):
        front = len(value.shape) - len(part.shape)
        if set(value.shape[:front]) == {1}:
            return value.reshape(value.shape[front:])
    return value


def _split(input: Inner, index: Any) -> tuple[Inner, Any]:
    """The view that the plain parts of an index select, and the index of the tensors into it."""
    kind = type(index)
    if kind is list and _is_tuple(index):
        index = tuple(index)
    parts = index if type(index) is tuple else (index,)
    seen = [_beside(input, _part(each)) for each in parts]
    if sum(each is Ellipsis for each in seen) > 1:
        seen = _with_one_ellipsis(seen, len(input.shape))
    if all(type(each) in _PLAIN or type(each) is slice for each in seen):
        return input[tuple(seen)], None
    taken = sum(_taken(each) for each in seen)
    if taken > len(input.shape):
        raise IndexError(f"too many indices for tensor of dimension {len(input.shape)}")
    missing = len(input.shape) - taken
    if Ellipsis not in [each for each in seen if type(each) is type(Ellipsis)]:
        seen.append(Ellipsis)
    first: list[Any] = []
    second: list[Any] = []
    for each in seen:
        if each is Ellipsis:
            first += [slice(None)] * missing
            second += [slice(None)] * missing
        elif type(each) is int:
            first.append(each)
        elif each is None or type(each) is slice:
            first.append(each)
            second.append(slice(None))
        else:
            first += [slice(None)] * _taken(each)
            second.append(each)
    return input[tuple(first)], tuple(second)


def _with_one_ellipsis(parts: list[Any], axes: int) -> list[Any]:
    """An index without the further `...`: those stand for no axes. Where axes are left for the
    first one, PyTorch has them pass over as many again, so they may only stand at the end."""
    first = next(at for at, each in enumerate(parts) if each is Ellipsis)
    rest = [each for each in parts[first + 1 :] if each is not Ellipsis]
    missing = axes - sum(map(_taken, parts))
    again = next(at for at, each in enumerate(parts) if each is Ellipsis and at > first)
    if missing > 0 and any(each is not Ellipsis for each in parts[again:]):
        raise IndexError(
            "an index has one ... for the axes that it does not name: another one may only stand "
            "at its end"
        )
    return [*parts[: first + 1], *rest]


def _is_tuple(index: list[Any]) -> bool:
    return len(index) < 32 and any(
        each is None or each is Ellipsis or isinstance(each, (slice, Inner, list, tuple))
        for each in index
    )


def _part(part: Any) -> Any:
    """A part of an index: int, slice, None, `...`, bool, or an array of integers or bools."""
    if type(part) is slice:
        step = part.step
        if step is not None and int(step) <= 0:
            raise ValueError("step must be greater than zero")
        return part
    if part is None or part is Ellipsis or isinstance(part, bool) or type(part) is int:
        return part
    if isinstance(part, Inner):
        if part.dtype is td.uint8:
            return part != 0
        if part.dtype.kind not in ("int", "uint", "bool"):
            raise IndexError(
                f"tensors used as indices must be long, int, byte or bool tensors, not {part.dtype}"
            )
        if not part.shape and part.dtype.kind != "bool" and within.get() is None:
            return int(part.item())
        return part
    if isinstance(part, (list, tuple, np.ndarray, range)):
        if isinstance(part, (list, tuple)) and any(isinstance(each, Inner) for each in part):
            return td.stack([long(each) for each in part])
        array = np.asarray(part)
        return array if array.size or array.dtype.kind in "iub" else array.astype(np.int64)
    if hasattr(part, "__index__"):
        return part.__index__()
    raise (TypeError if isinstance(part, str) else IndexError)(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {type(part).__name__})"
    )


def _beside(input: Inner, part: Any) -> Any:
    """A part of an index on the tensor's device: those on the CPU may index tensors of others."""
    if type(part) is not Inner or part.device is input.device:
        return part
    return part.to(input.device) if part.device.traits.host_memory else part


def _taken(part: Any) -> int:
    """How many axes a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if type(part) in (int, slice):
        return 1
    is_mask = part.dtype == bool if isinstance(part, np.ndarray) else part.dtype.kind == "bool"
    return len(part.shape) if is_mask else 1


# --- indices along an axis -----------------------------------------------------------------------


@bounds.looking
def index_select(input: Inner, dim: int, index: Inner) -> Inner:
    """The parts at some indices along an axis."""
    at = one(dim, len(input.shape))
    bounds.check(index, _extent(input, at))
    return td.index_select(input, at, index)


@bounds.looking
def take(input: Inner, index: Inner) -> Inner:
    """The elements at indices into the flattened tensor, in the indices' shape."""
    flat = input.reshape(input.size)
    bounds.check(index, input.size, low=-input.size)
    return flat[index.reshape(index.size)].reshape(index.shape)


@bounds.looking
def take_along_dim(input: Inner, indices: Inner, dim: int | None = None) -> Inner:
    """The elements at indices along an axis, which broadcast otherwise; without an axis those of
    the flattened tensor."""
    if dim is None:
        return take(input, indices.reshape(indices.size))
    ndim = len(input.shape)
    if len(indices.shape) != ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {ndim} dimensions for input, and {len(indices.shape)} dimensions for indices"
        )
    at = one(dim, ndim)
    kept = np.broadcast_shapes(*[(*x.shape[:at], 1, *x.shape[at + 1 :]) for x in (input, indices)])
    wide = [
        td.broadcast_to(x, (*kept[:at], x.shape[at], *kept[at + 1 :])) for x in (input, indices)
    ]
    bounds.check(indices, _extent(input, at), RuntimeError, -_extent(input, at))
    return td.gather(wide[0], at, wide[1])


@bounds.looking
def gather(input: Inner, dim: int, index: Inner, *, sparse_grad: bool = False) -> Inner:
    """`input[i, index[i, j], k]` for dim 1, and so for every axis."""
    if len(index.shape) != len(input.shape) and not index.size:
        return _of_none(input, index.shape)
    wide = index.reshape(1) if not index.shape and len(input.shape) == 1 else index
    at = one(dim, len(input.shape))
    bounds.check(index, _extent(input, at), RuntimeError)
    found = td.gather(input, at, wide)
    return found.reshape(index.shape)


def _of_none(input: Inner, shape: tuple[int, ...]) -> Inner:
    return input.reshape(input.size)[:0].reshape(shape)


@bounds.looking
def index_add(input: Inner, dim: int, index: Inner, source: Inner, *, alpha: Any = 1) -> Inner:
    """The tensor with `alpha * source[:, i]` added to `[:, index[i]]`, for dim 1."""
    source = _aligned(input, dim, index, source)
    bounds.check(index, _extent(input, one(dim, len(input.shape))))
    return _in_ints(td.index_add, input, source, one(dim, len(input.shape)), index, alpha=alpha)


@bounds.looking
def index_copy(input: Inner, dim: int, index: Inner, source: Inner) -> Inner:
    """The tensor with `source[:, i]` written to `[:, index[i]]`, for dim 1."""
    at = one(dim, len(input.shape))
    bounds.check(index, _extent(input, at))
    return td.index_copy(input, at, index, _aligned(input, dim, index, source))


def _aligned(input: Inner, dim: int, index: Inner, source: Inner) -> Inner:
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"self and source expected to have the same dtype, but got (self) {input.dtype} and "
            f"(source) {source.dtype}"
        )
    shape = input.shape or (1,)
    if not source.shape and index.size == 1:
        at = one(dim, len(input.shape))
        return source.reshape((*shape[:at], 1, *shape[at + 1 :]))
    return source if source.shape else source.reshape(1)


@bounds.looking
def index_fill(input: Inner, dim: int, index: Inner, value: Any) -> Inner:
    """The tensor with one number written to `[:, index[i]]`, for dim 1."""
    if isinstance(value, Inner):
        if value.shape:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value.shape)} dimension(s)."
            )
        value = cast(value, input.dtype)
    elif input.dtype.kind == "bool":
        value = bool(value)
    elif input.dtype.is_integer:
        value = int(value)
    at = one(dim, len(input.shape))
    bounds.check(index, _extent(input, at), low=-_extent(input, at))
    return td.index_fill(input, at, index, value)


@bounds.looking
def index_reduce(
    input: Inner, dim: int, index: Inner, source: Inner, reduce: str, *, include_self: bool = True
) -> Inner:
    """The tensor with `source[:, i]` combined with `[:, index[i]]`, for dim 1: reduce is "prod",
    "mean", "amax" or "amin"."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    at, shape = one(dim, len(input.shape)), source.shape
    bounds.check(index, _extent(input, at))
    wide = index.reshape((1,) * at + (index.size,) + (1,) * (len(shape) - at - 1))
    places = td.broadcast_to(wide, shape) if shape else index.reshape(())
    return td.scatter_reduce(input, at, places, source, reduce, include_self=include_self)


@bounds.looking
def index_put(
    input: Inner, indices: Sequence[Any], values: Inner, accumulate: bool = False
) -> Inner:
    """The tensor with values written at index tensors, or added."""
    made = input.copied()
    places = tuple([slice(None) if each is None else _part(each) for each in indices])
    if values.dtype is not input.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{input.dtype} for the destination and {values.dtype} for the source."
        )
    if not accumulate:
        setitem(made, places, values)
        return made
    order = td.arange(input.size, dtype=integers(input.device), device=input.device).reshape(
        input.shape
    )
    flat = getitem(order, places)
    return put(made, flat, td.broadcast_to(values, flat.shape), True)


@bounds.looking
def put(input: Inner, index: Inner, source: Inner, accumulate: bool = False) -> Inner:
    """The tensor with values written, or added, at indices into the flattened tensor."""
    flat, places = input.reshape(input.size), index.reshape(index.size)
    if source.size != index.size:
        raise RuntimeError(
            f"put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    bounds.check(index, input.size, low=-input.size)
    values = source.reshape(source.size)
    if accumulate:
        return _in_ints(td.index_add, flat, values, 0, places).reshape(input.shape)
    return td.index_copy(flat, 0, places, values).reshape(input.shape)


def _in_ints(function: Any, input: Inner, source: Inner, dim: int, *rest: Any, **named: Any) -> Any:
    """A function that adds; bools are added as integers, and true where that is not 0."""
    if input.dtype.kind != "bool":
        return function(input, dim, *rest, source, **named)
    found = function(input.to(td.int32), dim, *rest, source.to(td.int32), **named)
    return found != 0


# --- scatter -------------------------------------------------------------------------------------


@bounds.looking
def scatter(
    input: Inner, dim: int, index: Inner, src: Any = None, *, value: Any = None,
    reduce: str | None = None,
) -> Inner:  # fmt: skip
    """The tensor with values written at indices along an axis, or added ("add") or multiplied
    ("multiply")."""
    given = value if src is None else src
    if not index.size:
        return input.copied()
    if not isinstance(given, Inner) and input.dtype.kind == "bool":
        given = bool(given)
    elif not isinstance(given, Inner) and input.dtype.is_integer:
        given = int(given)
    if reduce is not None and input.dtype.kind == "bool":
        how = {"add": "sum", "multiply": "prod"}.get(reduce)
        if how:
            if not isinstance(given, Inner):
                given = td.full(index.shape, given, dtype=td.bool, device=input.device)
            return scatter_reduce(input, dim, index, given, how)
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    at = one(dim, len(input.shape))
    bounds.check(index, _extent(input, at), RuntimeError)
    return td.scatter(input, at, index, given, reduce=reduce)


def _extent(input: Inner, dim: int) -> int:
    """The extent of an axis; a tensor without axes has one element."""
    return input.shape[dim] if input.shape else 1


@bounds.looking
def scatter_add(input: Inner, dim: int, index: Inner, src: Inner) -> Inner:
    """The tensor with values added at indices along an axis."""
    if not index.size:
        return input.copied()
    return scatter_reduce(input, dim, index, src, "sum")


@bounds.looking
def scatter_reduce(
    input: Inner, dim: int, index: Inner, src: Inner, reduce: str, *, include_self: bool = True
) -> Inner:
    """The tensor with values combined at indices along an axis: reduce is "sum", "prod", "mean",
    "amax" or "amin"."""
    if not index.size:
        return input.copied()
    at = one(dim, len(input.shape))
    bounds.check(index, _extent(input, at), RuntimeError)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(
            "reduce argument must be either sum, prod, mean, amax or amin, got " + str(reduce)
        )
    named = {"include_self": include_self}
    if input.dtype.kind == "bool" and reduce in ("sum", "prod", "mean"):
        # "or" is the greatest, and "and" the least.
        reduce = "amax" if reduce == "sum" else "amin"
    if src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    return td.scatter_reduce(input, at, index, src, reduce, **named)


def diagonal_scatter(
    input: Inner, src: Inner, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Inner:
    """A copy with src in a diagonal."""
    return _written(input, src, shapes.diagonal, offset, dim1, dim2)


def select_scatter(input: Inner, src: Inner, dim: int, index: int) -> Inner:
    """A copy with src at an index along an axis."""
    return _written(input, src, shapes.select, dim, index)


def slice_scatter(
    input: Inner, src: Inner, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Inner:
    """A copy with src in a slice along an axis."""
    return _written(input, src, shapes.slice_of, dim, start, end, step)


def as_strided_scatter(
    input: Inner, src: Inner, size: Sequence[int], stride: Sequence[int],
    storage_offset: int | None = None,
) -> Inner:  # fmt: skip
    """A copy with src in what `as_strided` shows."""
    return _written(input, src, shapes.as_strided, size, stride, storage_offset or 0)


def _written(input: Inner, src: Inner, view: Any, *arguments: Any) -> Inner:
    made = input.copied()
    part = view(made, *arguments)
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = "
            f"{list(src.shape)}, slice size = {list(part.shape)}"
        )
    part[...] = src
    return made


# --- masks ---------------------------------------------------------------------------------------


def masked_select(input: Inner, mask: Inner) -> Inner:
    """The elements where a mask is true, in order."""
    return td.masked_select(input, _mask(mask))


def masked_scatter(input: Inner, mask: Inner, source: Inner) -> Inner:
    """The elements, replaced where the mask is true by those of another tensor, in order."""
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {input.dtype} "
            f"and {source.dtype}"
        )
    input, chosen = td.broadcast_arrays(input, _mask(mask))
    if not input.size:
        return input.copied()
    flat = chosen.reshape(chosen.size)
    order = td.cumulative_sum(long(flat)) - 1
    values = source.reshape(source.size)
    if not values.size:
        return input.copied()
    places = td.clip(order, 0, values.size - 1)
    return td.where(chosen, values[places].reshape(chosen.shape), input)


def _mask(mask: Inner) -> Inner:
    if mask.dtype is td.uint8:
        return mask != 0
    if mask.dtype.kind != "bool":
        raise RuntimeError(f"expected BoolTensor or ByteTensor for mask, not {mask.dtype}")
    return mask


# --- where elements are --------------------------------------------------------------------------


def nonzero(input: Inner, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0, as rows, or for each axis as one tensor."""
    if as_tuple:
        found = td.nonzero(input if input.shape else input.reshape(1))
        return tuple([long(each) for each in found])
    return long(td.argwhere(input))


def argwhere(input: Inner) -> Inner:
    """The indices of the elements that are not 0, as rows."""
    return nonzero(input)


def nonzero_static(input: Inner, *, size: int, fill_value: int = -1) -> Inner:
    """The first `size` rows of `nonzero`, filled up with a number."""
    found = nonzero(input)
    if found.shape[0] >= size:
        return found[:size].copied()
    rest = (size - found.shape[0], len(input.shape))
    return td.concat(
        [found, td.full(rest, fill_value, dtype=integers(input.device), device=input.device)]
    )


# --- triangles and diagonals ---------------------------------------------------------------------


def tril(input: Inner, diagonal: int = 0) -> Inner:
    """The elements on and below a diagonal, and zeros."""
    return td.tril(input, k=diagonal)


def triu(input: Inner, diagonal: int = 0) -> Inner:
    """The elements on and above a diagonal, and zeros."""
    return td.triu(input, k=diagonal)


def diag(input: Inner, diagonal: int = 0) -> Inner:
    """A diagonal of a matrix, or the matrix with a diagonal."""
    return td.diag(input, k=diagonal)


def diagflat(input: Inner, offset: int = 0) -> Inner:
    """The matrix with all elements in a diagonal."""
    return td.diag(input.reshape(input.size), k=offset)


def diag_embed(input: Inner, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Inner:
    """Matrices with the last axis in a diagonal."""
    ndim = len(input.shape) + 1
    first, second = one(dim1, ndim), one(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    extent = input.shape[-1]
    wide = extent + abs(offset)
    if offset:
        zeros = td.zeros((*input.shape[:-1], abs(offset)), dtype=input.dtype, device=input.device)
        input = td.concat([input, zeros], axis=-1)
    place = td.eye(wide, wide, k=offset, dtype=td.bool, device=input.device)
    along = td.expand_dims(input, axis=-1 if offset >= 0 else -2)
    found = td.where(place, along, td.zeros((), dtype=input.dtype, device=input.device))
    if first > second:
        found = td.matrix_transpose(found)
    return td.moveaxis(found, (-2, -1), tuple(sorted((first, second))))


def fill_diagonal(input: Inner, fill_value: Any, wrap: bool = False) -> Inner:
    """One number in the main diagonal; `wrap`: it goes on below it in high matrices."""
    shape = input.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        raise RuntimeError("fill_diagonal_: all dimensions of input must be of equal length")
    made = input.copied()
    step = sum(views.whole(shape).strides)
    reach = made.size if wrap or len(shape) > 2 else min(made.size, shape[1] * shape[1])
    made.reshape(made.size)[:reach:step] = fill_value
    return made


def trace(input: Inner) -> Inner:
    """The sum of the diagonal of a matrix."""
    if len(input.shape) != 2:
        raise RuntimeError("trace: expected a matrix")
    dtype = None if input.dtype.kind in ("float", "complex") else integers(input.device)
    return td.trace(input, dtype=dtype)


def _triangle(name: str, upper: bool) -> Any:
    def function(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
        layout: Any = None,
    ) -> Inner:  # fmt: skip
        from treadle.torch.devices import place

        find = td.triu_indices if upper else td.tril_indices
        rows, columns = find(row, offset, col, device=place(device))
        made = td.stack([rows, columns])
        return long(made) if dtype is None else made.to(dtype)

    where = "above" if upper else "below"
    function.__name__ = name
    function.__doc__ = f"The rows and columns of the elements on and {where} a diagonal."
    return function


FUNCTIONS = {
    "tril_indices": _triangle("tril_indices", False),
    "triu_indices": _triangle("triu_indices", True),
}
