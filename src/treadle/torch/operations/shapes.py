"""Other shapes and axes for the same elements: views wherever PyTorch has views."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.graph import views
from treadle.graph.views import View
from treadle.runtime.arrays import DeviceArray
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.operations.axes import again, listed, one, several, spread


@spread("shape")
def reshape(input: Inner, *shape: Any) -> Inner:
    """The same elements in another shape; a view where that is possible."""
    return input.reshape(_extents(input, listed(shape)))


def reshape_as(input: Inner, other: Inner) -> Inner:
    """The same elements in another tensor's shape."""
    return reshape(input, other.shape)


@spread("size")
def view(input: Inner, *shape: Any) -> Inner:
    """A view of another shape, RuntimeError if the elements would have to be copied; or the bits of
    the elements as those of another dtype."""
    if len(shape) == 1 and isinstance(shape[0], DType):
        return _bits(input, shape[0])
    try:
        return input.reshape(_extents(input, listed(shape)), copy=False)
    except td.errors.ShapeError:
        raise
    except ValueError:
        raise RuntimeError(
            f"view size is not compatible with input tensor's size and stride (shape "
            f"{list(input.shape)}, strides {list(input.strides)}). Use .reshape(...) instead."
        ) from None


def view_as(input: Inner, other: Inner) -> Inner:
    """A view of another tensor's shape."""
    return view(input, other.shape)


def _extents(input: Inner, shape: tuple[Any, ...]) -> tuple[int, ...]:
    found = tuple([int(each) for each in shape])
    if min(found, default=0) < -1:
        raise RuntimeError(f"invalid shape dimension {min(found)}")
    if found.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 in found and not input.size and not math.prod(each for each in found if each != -1):
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(found)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    return found


def _bits(input: Inner, dtype: DType) -> Inner:
    """The bits of the elements as elements of another dtype, in new memory; the last axis has more
    or fewer of them if their sizes differ."""
    if dtype is input.dtype:
        return again(input)
    shape, own, size = input.shape, input.dtype.itemsize, dtype.itemsize
    if own != size:
        if not shape or shape[-1] * own % size:
            raise RuntimeError(
                f"view({dtype}) of {input.dtype}: the last axis of {list(shape)} is not a "
                f"whole number of elements of {size} bytes"
            )
        shape = (*shape[:-1], shape[-1] * own // size)
    array = input.detach().copied().realize().__treadle_array__()
    offset = array.offset * own // size
    return Inner(DeviceArray(array.device, array.storage, dtype, shape, None, offset))


def flatten(input: Inner, start_dim: int = 0, end_dim: int = -1) -> Inner:
    """The axes from start_dim to end_dim as one; a view where that is possible."""
    ndim = len(input.shape)
    first, end = one(start_dim, ndim), one(end_dim, ndim)
    if first > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not ndim:
        return input.reshape(1)
    merged = math.prod(input.shape[first : end + 1])
    return input.reshape((*input.shape[:first], merged, *input.shape[end + 1 :]))


def ravel(input: Inner) -> Inner:
    """All elements along one axis; a view where that is possible."""
    return input.reshape(input.size)


def unflatten(input: Inner, dim: int, sizes: Sequence[int]) -> Inner:
    """An axis as several; one extent may be -1."""
    at = one(dim, len(input.shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    parts, extent = [int(each) for each in sizes], input.shape[at]
    if parts.count(-1) == 1:
        rest = math.prod(each for each in parts if each != -1)
        parts[parts.index(-1)] = extent // rest if rest else 0
    if math.prod(parts) != extent:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({extent}) in the input tensor"
        )
    return input.reshape((*input.shape[:at], *parts, *input.shape[at + 1 :]))


# --- axes of extent 1 ----------------------------------------------------------------------------


def squeeze(input: Inner, dim: Any = None) -> Inner:
    """A view without axes of extent 1: all of them, or those named that have it."""
    ndim = len(input.shape)
    named = range(ndim) if dim is None else several(dim, ndim)
    gone = tuple([axis for axis in named if ndim and input.shape[axis] == 1])
    return input._seen_through(views.squeeze(input._where, gone))


def unsqueeze(input: Inner, dim: int) -> Inner:
    """A view with a new axis of extent 1."""
    return td.expand_dims(input, axis=one(dim, len(input.shape) + 1))


def atleast(count: int) -> Any:
    """`atleast_1d`, `atleast_2d` or `atleast_3d`."""

    def function(*tensors: Any) -> Any:
        given = listed(tensors)
        found = tuple([_with_axes(each, count) for each in given])
        return found[0] if len(tensors) == 1 and isinstance(tensors[0], Inner) else found

    function.__name__ = f"atleast_{count}d"
    function.__doc__ = f"Tensors with at least {count} axes; fewer get axes of extent 1."
    return function


def _with_axes(input: Inner, count: int) -> Inner:
    shape = input.shape
    if len(shape) >= count:
        return input
    if count == 3 and len(shape) == 2:
        return unsqueeze(input, -1)
    if count == 3 and len(shape) == 1:
        return input.reshape(1, shape[0], 1)
    return input.reshape((1,) * (count - len(shape)) + shape)


# --- the order of axes and elements --------------------------------------------------------------


def transpose(input: Inner, dim0: int, dim1: int) -> Inner:
    """A view with two axes exchanged."""
    ndim = len(input.shape)
    first, second = one(dim0, ndim), one(dim1, ndim)
    if first == second:
        return again(input)
    return td.swapaxes(input, first, second)


def swapaxes(input: Inner, axis0: int, axis1: int) -> Inner:
    """A view with two axes exchanged."""
    return transpose(input, axis0, axis1)


def t(input: Inner) -> Inner:
    """The transpose of a matrix; tensors of fewer axes as they are."""
    if len(input.shape) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {len(input.shape)}D"
        )
    return transpose(input, 0, 1) if len(input.shape) == 2 else again(input)


@spread("dims")
def permute(input: Inner, *dims: Any) -> Inner:
    """A view with the axes in another order."""
    order = several(listed(dims), len(input.shape))
    if len(order) != len(input.shape):
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {len(input.shape)} "
            f"is not equal to len(dims) = {len(order)}"
        )
    return td.permute_dims(input, order)


def movedim(input: Inner, source: Any, destination: Any) -> Inner:
    """A view with some axes moved to other places."""
    ndim = len(input.shape)
    moved, places = several(source, ndim), several(destination, ndim)
    if len(moved) != len(places):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(moved)} dims) should "
            f"contain the same number of dims as destination ({list(places)} dims)"
        )
    return td.moveaxis(input, moved, places) if ndim else again(input)


def reversed_axes(input: Inner) -> Inner:
    """`x.T`: all axes in reverse order."""
    return td.permute_dims(input, tuple(range(len(input.shape)))[::-1])


def matrix_transpose(input: Inner) -> Inner:
    """`x.mT`: the last two axes exchanged."""
    if len(input.shape) < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got "
            f"{len(input.shape)}-D tensor."
        )
    return td.matrix_transpose(input)


def adjoint(input: Inner) -> Inner:
    """`x.mH`: the last two axes exchanged, and conjugated."""
    found = matrix_transpose(input)
    return td.conj(found) if input.dtype.kind == "complex" else found


def hermitian(input: Inner) -> Inner:
    """`x.H`: the conjugate transpose of a matrix."""
    if len(input.shape) not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {len(input.shape)}-D tensor"
        )
    found = reversed_axes(input)
    return td.conj(found) if input.dtype.kind == "complex" else found


@spread("dims")
def flip(input: Inner, *dims: Any) -> Inner:
    """A copy with the elements in reverse order along axes."""
    axes = several(listed(dims), len(input.shape))
    return td.flip(input, axis=axes).copied() if input.shape else input.copied()


def fliplr(input: Inner) -> Inner:
    """A copy with axis 1 in reverse order."""
    if len(input.shape) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Inner) -> Inner:
    """A copy with axis 0 in reverse order."""
    if len(input.shape) < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


def rot90(input: Inner, k: int = 1, dims: Sequence[int] = (0, 1)) -> Inner:
    """A copy that is turned by k times 90 degrees in the plane of two axes."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    first, second = several(dims, len(input.shape))
    return td.rot90(input, k, axes=(first, second)).copied()


def roll(input: Inner, shifts: Any, dims: Any = None) -> Inner:
    """The elements shifted along axes, or with None along all of them as one."""
    by = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        if len(by) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:0")
        return td.roll(input, by[0])
    axes = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    if len(by) != len(axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(axes)}")
    if not input.shape:
        return input.copied()
    return td.roll(input, by, axis=axes)


# --- elements several times ----------------------------------------------------------------------


@spread("size")
def expand(input: Inner, *size: Any) -> Inner:
    """A view with axes of extent 1 repeated, and new axes in front; -1 leaves an axis as it is."""
    wanted = listed(size)
    front = len(wanted) - len(input.shape)
    if front < 0:
        raise RuntimeError(
            f"expand({input.dtype}, size={list(wanted)}): the number of sizes provided "
            f"({len(wanted)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(input.shape)})"
        )
    found = []
    for at, extent in enumerate(wanted):
        extent = int(extent)
        if extent == -1:
            if at < front:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {at}"
                )
            extent = input.shape[at - front]
        found.append(extent)
    return td.broadcast_to(input, tuple(found))


def expand_as(input: Inner, other: Inner) -> Inner:
    """A view of another tensor's shape."""
    return expand(input, other.shape)


def broadcast_to(input: Inner, size: Any) -> Inner:
    """A view of a shape, as `expand`."""
    return expand(input, tuple(size))


def broadcast_tensors(*tensors: Any) -> tuple[Inner, ...]:
    """Views of the tensors, all of their common shape."""
    return tuple(td.broadcast_arrays(*listed(tensors)))


def broadcast_shapes(*shapes: Any) -> Any:
    """The common shape of tensors of these shapes. RuntimeError if they do not broadcast."""
    from treadle.torch.layouts import Size

    try:
        return Size(np.broadcast_shapes(*[s if isinstance(s, int) else tuple(s) for s in shapes]))
    except ValueError as error:
        raise RuntimeError(f"Shape mismatch: {error}") from None


@spread("repeats")
def repeat(input: Inner, *repeats: Any) -> Inner:
    """A copy, repeated along each axis; more numbers than axes add axes in front."""
    times = listed(repeats)
    if len(times) < len(input.shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    return td.tile(input, times) if times else input.copied()


@spread("dims")
def tile(input: Inner, *dims: Any) -> Inner:
    """A copy, repeated along the last axes."""
    return td.tile(input, listed(dims)) if listed(dims) else input.copied()


# --- parts ---------------------------------------------------------------------------------------


def narrow(input: Inner, dim: int, start: Any, length: int) -> Inner:
    """A view of so many elements along an axis, from `start` on."""
    if not input.shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at, begin = one(dim, len(input.shape)), int(start)
    extent = input.shape[at]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -extent <= begin <= extent:
        raise IndexError(
            f"start out of range (expected to be in range of [{-extent}, {extent}], but got "
            f"{begin})"
        )
    begin += extent if begin < 0 else 0
    if begin + length > extent:
        raise RuntimeError(
            f"start ({begin}) + length ({length}) exceeds dimension size ({extent})."
        )
    return input._seen_through(views.slice_axis(input._where, at, begin, 1, length))


def select(input: Inner, dim: int, index: Any) -> Inner:
    """A view of the part at an index along an axis, without that axis."""
    if not input.shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, place = one(dim, len(input.shape)), int(index)
    extent = input.shape[at]
    if not -extent <= place < extent:
        raise IndexError(
            f"select(): index {place} out of range for tensor of size {list(input.shape)} at "
            f"dimension {dim}"
        )
    place += extent if place < 0 else 0
    part = views.slice_axis(input._where, at, place, 1, 1)
    return input._seen_through(views.squeeze(part, (at,)))


def slice_of(
    input: Inner, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Inner:
    """A view of a slice along an axis."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    at = one(dim, len(input.shape))
    return input[(slice(None),) * at + (slice(start, end, step),)]


def unfold(input: Inner, dimension: int, size: int, step: int) -> Inner:
    """A view with windows of an axis as a new last axis; their begins are `step` apart."""
    at, shape = one(dimension, len(input.shape)), input.shape
    extent = shape[at] if shape else 1
    if not 0 <= size <= extent or step <= 0:
        raise RuntimeError(
            f"unfold: size {size} must be from 0 to {extent}, and step {step} positive"
        )
    where = input._where if shape else views.unsqueeze(input._where, 0)
    count = (extent - size) // step + 1
    if not shape:
        return input._seen_through(View((size,), (1,), where.offset))
    extents, strides = list(shape), list(where.strides)
    extents[at], strides[at] = count, strides[at] * step
    return input._seen_through(View((*extents, size), (*strides, where.strides[at]), where.offset))


def as_strided(
    input: Inner, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Inner:
    """A view of the memory of a tensor, by the distances between neighbours along each axis."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    offset = input._where.offset if storage_offset is None else storage_offset
    seen = View(tuple(map(int, size)), tuple(map(int, stride)), int(offset))
    low, high = views.reach(seen)
    total = input._cell.value.size
    if min(seen.strides, default=0) < 0:
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}"
        )
    if low < 0 or high > total:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset} "
            f"need {high} elements, and the memory has {total}"
        )
    return input._seen_through(seen)


@spread("size")
def resize(input: Inner, *size: Any, memory_format: Any = None) -> Inner:
    """Another shape for the elements in memory order: fewer, or more, which are then 0 and in new
    memory."""
    shape = tuple([int(each) for each in listed(size)])
    count, held = math.prod(shape), input._cell.value.size - input._where.offset
    if count <= held:
        return as_strided(input, shape, views.whole(shape).strides)
    flat = as_strided(input, (held,), (1,))
    zeros = td.zeros((count - held,), dtype=input.dtype, device=input.device)
    return td.concat([flat, zeros]).reshape(shape)


def resize_as(input: Inner, other: Inner, memory_format: Any = None) -> Inner:
    """`resize` to another tensor's shape."""
    return resize(input, other.shape)


def diagonal(input: Inner, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Inner:
    """A view of a diagonal, as the last axis."""
    if len(input.shape) < 2:
        raise IndexError(
            f"Dimension out of range: diagonal takes two axes of a tensor of {len(input.shape)}"
        )
    first, second = one(dim1, len(input.shape)), one(dim2, len(input.shape))
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return td.diagonal(input, offset=offset, axis1=first, axis2=second)


def copied(function: Any) -> Any:
    """`squeeze_copy` and the like: what the function shows, in new memory."""

    def function_copy(*arguments: Any, **keywords: Any) -> Any:
        found = function(*arguments, **keywords)
        if isinstance(found, tuple):
            return tuple([each.copied() for each in found])
        return found.copied()

    function_copy.__name__ = f"{function.__name__}_copy"
    function_copy.__doc__ = f"`{function.__name__}` in new memory."
    return function_copy


FUNCTIONS = {
    **{f"atleast_{count}d": atleast(count) for count in (1, 2, 3)},
    **{
        f"{name}_copy": copied(function)
        for name, function in {
            "as_strided": as_strided, "diagonal": diagonal, "expand": expand, "narrow": narrow,
            "permute": permute, "select": select, "slice": slice_of, "squeeze": squeeze, "t": t,
            "transpose": transpose, "unfold": unfold, "unsqueeze": unsqueeze, "view": view,
        }.items()
    },
}  # fmt: skip
