"""Tensors put together and taken apart, and grids of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import treadle as td
from treadle.graph import views
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.dtypes import integers, result_type
from treadle.torch.errors import kind_of
from treadle.torch.operations.axes import again, listed, one, spread
from treadle.torch.operations.operands import cast
from treadle.torch.operations.shapes import FUNCTIONS as SHAPES
from treadle.torch.operations.shapes import copied

_ONE, _TWO, _THREE = (SHAPES[f"atleast_{count}d"] for count in (1, 2, 3))


def cat(tensors: Sequence[Inner], dim: int = 0) -> Inner:
    """Tensors one after the other along an axis. Tensors of shape (0,) may be among any others."""
    given = list(tensors)
    if not given:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    _check_tensors(given)
    first = given[0]
    shape, dtype = first.shape, first.dtype
    if (
        shape
        and shape != (0,)
        and all(each.dtype is dtype and each.shape == shape for each in given)
    ):
        return td.concat(given, axis=one(dim, len(shape)))
    if not all(each.shape for each in given):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    dtype = _common(given)
    kept = [each for each in given if each.shape != (0,)] or given[:1]
    return td.concat([cast(each, dtype) for each in kept], axis=one(dim, len(kept[0].shape)))


def stack(tensors: Sequence[Inner], dim: int = 0) -> Inner:
    """Tensors of one shape along a new axis."""
    given = list(tensors)
    if not given:
        raise RuntimeError("stack expects a non-empty TensorList")
    _check_tensors(given)
    dtype = _common(given)
    return td.stack([cast(each, dtype) for each in given], axis=one(dim, len(given[0].shape) + 1))


def _check_tensors(given: Sequence[Any]) -> None:
    for at, each in enumerate(given):
        if type(each) is not Inner:
            raise TypeError(
                f"expected Tensor as element {at} in argument 0, but got {kind_of(each)}: "
                "torch.as_tensor makes tensors of arrays and numbers"
            )


def _common(given: Sequence[Inner]) -> Any:
    first = given[0].dtype
    return first if all(each.dtype is first for each in given) else result_type(*given)


def hstack(tensors: Sequence[Inner]) -> Inner:
    """Tensors side by side: along axis 1, or 0 of tensors of one axis."""
    given = _ONE(tuple(tensors))
    return cat(given, 0 if given and len(given[0].shape) == 1 else 1)


def vstack(tensors: Sequence[Inner]) -> Inner:
    """Tensors on top of one another: along axis 0 of at least two."""
    return cat(_TWO(tuple(tensors)), 0)


def dstack(tensors: Sequence[Inner]) -> Inner:
    """Tensors behind one another: along axis 2 of at least three."""
    return cat(_THREE(tuple(tensors)), 2)


def column_stack(tensors: Sequence[Inner]) -> Inner:
    """Tensors of one axis as columns, and others, side by side."""
    return cat([x if len(x.shape) > 1 else x.reshape(x.size, 1) for x in tensors], 1)


def block_diag(*tensors: Any) -> Inner:
    """A matrix with the tensors along its diagonal and zeros elsewhere."""
    blocks = _TWO(listed(tensors))
    if not blocks:
        return td.zeros((1, 0))
    dtype = _common(blocks)
    columns = sum(block.shape[1] for block in blocks)
    before, rows = 0, []
    for block in blocks:
        after = columns - before - block.shape[1]
        sides = [
            td.zeros((block.shape[0], width), dtype=dtype, device=block.device)
            for width in (before, after)
        ]
        rows.append(td.concat([sides[0], cast(block, dtype), sides[1]], axis=1))
        before += block.shape[1]
    return td.concat(rows, axis=0)


# --- parts ---------------------------------------------------------------------------------------


def _parts(tensor: Inner, sizes: Sequence[int], at: int) -> tuple[Inner, ...]:
    where, begin, parts = tensor._where, 0, []
    for size in sizes:
        parts.append(tensor._seen_through(views.slice_axis(where, at, begin, 1, size)))
        begin += size
    return tuple(parts)


def split(
    tensor: Inner, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Inner, ...]:
    """Views of parts along an axis: of one size, the last may be smaller, or of several sizes."""
    if split_size is not None:
        split_size_or_sections = split_size
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    at, size = _axis("split", tensor, dim), int(split_size_or_sections)
    extent = tensor.shape[at]
    if size < 0 or (size == 0 and extent):
        raise RuntimeError(
            f"split expects split_size be {'non-negative' if size < 0 else 'positive'}, but got "
            f"split_size={size}"
        )
    count = max(-(-extent // size), 1) if size else 1
    sizes = [size] * (count - 1)
    return _parts(tensor, [*sizes, extent - sum(sizes)], at)


def split_with_sizes(input: Inner, split_sizes: Sequence[int], dim: int = 0) -> tuple[Inner, ...]:
    """Views of parts of these sizes along an axis, which together are all of it."""
    at, sizes = _axis("split_with_sizes", input, dim), [int(each) for each in split_sizes]
    if sum(sizes) != input.shape[at] or min(sizes, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input.shape[at]} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={sizes}"
        )
    return _parts(input, sizes, at)


def _axis(name: str, tensor: Inner, dim: int) -> int:
    if not tensor.shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    return one(dim, len(tensor.shape))


def chunk(input: Inner, chunks: int, dim: int = 0) -> tuple[Inner, ...]:
    """Views of at most so many parts along an axis, of one size but for the last."""
    at = _axis("chunk", input, dim)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = -(-input.shape[at] // chunks)
    if not size:
        return _parts(input, [0] * chunks, at)
    return split(input, size, dim)


def tensor_split(
    input: Inner, indices_or_sections: Any = None, dim: int = 0, *, sections: Any = None,
    indices: Any = None, tensor_indices_or_sections: Any = None,
) -> tuple[Inner, ...]:  # fmt: skip
    """Views of so many parts along an axis, the first of which are one longer, or of the parts
    between indices."""
    named = (indices_or_sections, sections, indices, tensor_indices_or_sections)
    given: Any = next((each for each in named if each is not None), None)
    at = _axis("tensor_split", input, dim)
    extent = input.shape[at]
    if isinstance(given, Inner):
        given = given.tolist()
    if not isinstance(given, (tuple, list)):
        count = int(given)
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        small, longer = divmod(extent, count)
        return _parts(input, [small + (i < longer) for i in range(count)], at)
    bounds = [slice(None, each).indices(extent)[1] for each in given]
    where, parts = input._where, []
    for begin, end in zip([0, *bounds], [*bounds, extent], strict=True):
        parts.append(
            input._seen_through(views.slice_axis(where, at, begin, 1, max(end - begin, 0)))
        )
    return tuple(parts)


def _equal_parts(name: str, axis: int) -> Any:
    def function(input: Inner, indices_or_sections: Any = None, *more: Any, **named: Any) -> Any:
        given = named.get("sections", named.get("indices", indices_or_sections))
        given = (given, *more) if more else given
        ndim = len(input.shape)
        least = axis + 1 if axis else 1
        if name == "hsplit":
            least = 1
        if ndim < (2 if name == "vsplit" else least):
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {ndim} dimensions!"
            )
        at = 0 if name == "hsplit" and ndim == 1 else axis
        if not isinstance(given, (tuple, list)) and (given <= 0 or input.shape[at] % given):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {at}, but the size of the "
                f"dimension {input.shape[at]} is not divisible by the split_size {given}!"
            )
        return tensor_split(input, given, at)

    function.__name__, function.__doc__ = name, f"`tensor_split` along axis {axis}."
    return function


def unbind(input: Inner, dim: int = 0) -> tuple[Inner, ...]:
    """Views of all parts along an axis, without it."""
    if not input.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return td.unstack(input, axis=one(dim, len(input.shape)))


def repeat_interleave(
    input: Inner, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Inner:
    """Each element repeated along an axis, or of the flattened tensor; of counts alone, each index
    as often as its count says."""
    if repeats is None:
        places = td.arange(input.size, dtype=integers(input.device), device=input.device)
        return td.repeat(places, input)
    if dim is None:
        input, dim = input.reshape(input.size), 0
    at = one(dim, len(input.shape))
    shape = input.shape
    counts = repeats.reshape(-1) if isinstance(repeats, Inner) else repeats
    found = td.repeat(input if shape else input.reshape(1), counts, axis=at)
    return found if shape or found.size != 1 else found.reshape(1)


# --- grids ---------------------------------------------------------------------------------------


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Inner, ...]:
    """Views of tensors of one axis as the coordinates of a grid."""
    given = [each.reshape(each.size) for each in listed(tensors)]
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            'torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing
        )
    is_turned = indexing == "xy" and len(given) >= 2
    order = [1, 0, *range(2, len(given))] if is_turned else list(range(len(given)))
    shape = tuple([given[at].size for at in order])
    return tuple(
        [
            td.broadcast_to(
                each.reshape(tuple([each.size if at == own else 1 for at in order])), shape
            )
            for own, each in enumerate(given)
        ]
    )


def cartesian_prod(*tensors: Any) -> Inner:
    """All combinations of one element of each tensor, as rows."""
    given = listed(tensors)
    if len(given) == 1:
        return given[0]
    grids = meshgrid(*given)
    return td.stack([each.reshape(each.size) for each in grids], axis=1)


def combinations(input: Inner, r: int = 2, with_replacement: bool = False) -> Inner:
    """All choices of r elements of a tensor of one axis, as rows."""
    if len(input.shape) != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(input.shape)))
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return input[:0]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = np.array(list(choose(range(input.size), r)), np.int64).reshape(-1, r)
    return input[td.asarray(chosen, device=input.device)]


@spread("size")
def sum_to_size(input: Inner, *size: Any) -> Inner:
    """Summed along the axes that broadcasting to the tensor's shape would repeat."""
    wanted, shape = listed(size), input.shape
    front = len(shape) - len(wanted)
    if front < 0 or any(
        mine not in (1, theirs) for mine, theirs in zip(wanted, shape[front:], strict=True)
    ):
        raise RuntimeError(f"size {list(wanted)} is not expandable to size {list(shape)}.")
    axes = tuple([at for at in range(len(shape)) if at < front or wanted[at - front] != shape[at]])
    if not axes and wanted:
        return again(input)
    dtype = None if input.dtype.kind in ("float", "complex") else integers(input.device)
    found = td.sum(input, axis=axes, dtype=dtype)
    return found.reshape(tuple(wanted))


def unravel_index(indices: Inner, shape: Any) -> tuple[Inner, ...]:
    """Indices into a flattened tensor of a shape as an index for each of its axes."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    rest, found = indices, []
    for extent in reversed(extents):
        found.append(td.remainder(rest, extent) if extent else rest)
        rest = td.floor_divide(rest, extent) if extent else rest
    if math.prod(extents) == 0 and indices.size:
        raise RuntimeError("unravel_index: a shape without elements has no indices")
    return tuple(reversed(found))


FUNCTIONS = {
    "dsplit": _equal_parts("dsplit", 2),
    "hsplit": _equal_parts("hsplit", 1),
    "vsplit": _equal_parts("vsplit", 0),
    "split_copy": copied(split),
    "split_with_sizes_copy": copied(split_with_sizes),
    "unbind_copy": copied(unbind),
}
