"""Shapes of sharded arrays, and parts of them, as far as no data moves."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.core.errors import ShapeError
from treadle.distributed.arrays.elementwise import mesh_of, refusal
from treadle.distributed.arrays.layout import Entry, Spec, width
from treadle.distributed.arrays.mesh import Mesh
from treadle.distributed.arrays.moving import Pieces, moved
from treadle.distributed.arrays.reductions import settled
from treadle.tensor.axes import one_axis, some_axes
from treadle.tensor.manipulation import broadcast_to as broadcast_piece
from treadle.tensor.searching import take as take_of


def permuted(x: Any, axes: Sequence[int], operation: str = "permute_dims") -> Any:
    """The array with its axes in another order."""
    order = some_axes(operation, tuple(axes), len(x.shape)) if axes else ()
    if len(axes) != len(x.shape) or len({*order}) != len(axes):
        raise ShapeError(f"{operation} names each of {len(x.shape)} axes once, not {tuple(axes)}")
    order = tuple([one_axis(operation, axis, len(x.shape)) for axis in axes])
    layout = x.layout.replaced(
        shape=tuple([x.shape[at] for at in order]),
        spec=tuple([x.layout.spec[at] for at in order]),
    )
    return x.like(x.piece.permute(*order) if order else x.piece, layout)


def exchanged(x: Any, one: int, other: int, operation: str) -> Any:
    """The array with two axes exchanged."""
    order = [*range(len(x.shape))]
    first, second = (one_axis(operation, each, len(order)) for each in (one, other))
    order[first], order[second] = order[second], order[first]
    return permuted(x, order, operation)


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """The array in another shape."""
    wanted = _known(x.shape, [operator.index(each) for each in shape])
    spec: list[Entry] = []
    for own, new in _groups(x.shape, wanted):
        spec += _regrouped(x, own, [wanted[at] for at in new], wanted)
    layout = x.layout.replaced(shape=wanted, spec=tuple(spec))
    return x.like(x.piece.reshape(layout.piece_shape), layout)


def expanded(x: Any, axis: Any) -> Any:
    """The array with axes of one element."""
    count = len(x.shape) + (len(axis) if isinstance(axis, (tuple, list)) else 1)
    axes = some_axes("expand_dims", axis, count)
    shape, spec = [*x.shape], [*x.layout.spec]
    for at in sorted(axes):
        shape.insert(at, 1)
        spec.insert(at, ())
    layout = x.layout.replaced(shape=tuple(shape), spec=tuple(spec))
    return x.like(x.piece.reshape(layout.piece_shape), layout)


def squeezed(x: Any, axis: Any) -> Any:
    """The array without axes of one element."""
    ones = tuple([at for at, extent in enumerate(x.shape) if extent == 1])
    axes = ones if axis is None else some_axes("squeeze", axis, len(x.shape))
    for at in axes:
        if x.shape[at] != 1:
            raise ShapeError(f"squeeze: axis {at} of shape {x.shape} has {x.shape[at]} elements")
    if any(x.layout.spec[at] for at in axes):
        raise refusal("squeeze", x, axes)
    left = [at for at in range(len(x.shape)) if at not in axes]
    layout = x.layout.replaced(
        shape=tuple([x.shape[at] for at in left]),
        spec=tuple([x.layout.spec[at] for at in left]),
    )
    return x.like(x.piece.reshape(layout.piece_shape), layout)


def broadcast(x: Any, shape: Sequence[int]) -> Any:
    """The array repeated along axes of one element, and along new ones."""
    wanted = tuple([operator.index(each) for each in shape])
    front = len(wanted) - len(x.shape)
    grown = [at for at, n in enumerate(x.shape) if front < 0 or n not in (wanted[front + at],)]
    if front < 0 or any(x.shape[at] != 1 for at in grown):
        raise ShapeError(f"broadcast_to: the shape {x.shape} does not broadcast to {wanted}")
    if any(x.layout.spec[at] for at in grown):
        raise refusal("broadcast_to", x, grown)
    layout = x.layout.replaced(shape=wanted, spec=(*[()] * front, *x.layout.spec))
    return x.like(broadcast_piece(x.piece, layout.piece_shape), layout)


def indexed(x: Any, key: Any) -> Any:
    """`x[key]`: integers, slices, None and `...`; or an array of integers for the first axis."""
    if isinstance(key, (Pieces, list, np.ndarray)):
        return taken(x, key, 0)
    keys = [*key] if isinstance(key, tuple) else [key]
    axes = sum(each is not None and each is not Ellipsis for each in keys)
    if axes > len(x.shape):
        raise IndexError(f"{axes} indices of an array of shape {x.shape}")
    if not any(each is Ellipsis for each in keys):
        keys.append(Ellipsis)
    at = next(number for number, each in enumerate(keys) if each is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (len(x.shape) - axes)
    shape: list[int] = []
    spec: list[Entry] = []
    local: list[Any] = []
    axis = 0
    for each in keys:
        if each is None:
            shape.append(1)
            spec.append(())
            local.append(None)
            continue
        extent, entry = x.shape[axis], x.layout.spec[axis]
        if isinstance(each, slice):
            count = len(range(*each.indices(extent)))
            is_all = each.indices(extent) == (0, extent, 1)
            if entry and not is_all:
                raise refusal("indexing", x, [axis])
            shape.append(count)
            spec.append(entry)
            local.append(slice(None) if is_all else each)
        elif isinstance(each, (int, np.integer)) and not isinstance(each, bool):
            if not -extent <= each < extent:
                raise IndexError(f"index {each} of axis {axis}, which has {extent} elements")
            if entry:
                raise refusal("indexing", x, [axis])
            local.append(int(each))
        else:
            raise TypeError(
                f"a sharded array is indexed by integers, slices, None and ..., or by one array of "
                f"integers, not by {type(each).__name__}: x.gather() has all the rest"
            )
        axis += 1
    layout = x.layout.replaced(shape=tuple(shape), spec=tuple(spec))
    return x.like(x.piece[tuple(local)], layout)


def taken(x: Any, indices: Any, axis: Any = None) -> Any:
    """`td.take` of a sharded array: indices may be sharded, too."""
    x = settled(x, "take")
    if axis is None:
        if len(x.shape) != 1:
            raise ShapeError("take of an array with several axes: say along which, axis=0")
        axis = 0
    at = one_axis("take", axis, len(x.shape))
    if x.layout.spec[at]:
        raise refusal("take", x, [at])
    entries: Spec
    if not isinstance(indices, Pieces):
        listed = np.asarray(indices)
        if listed.dtype.kind not in "iu":
            raise TypeError(f"take: indices are integers, not {listed.dtype}")
        made = take_of(x.piece, listed, axis=at)
        shape, entries = listed.shape, ((),) * listed.ndim
        own: tuple[int, ...] = listed.shape
    else:
        mesh_of("take", [x, indices], [indices])
        if indices.dtype.kind not in ("int", "uint"):
            raise TypeError(f"take: indices are integers, not {indices.dtype}")
        used = x.layout.split
        spec = tuple([() if any(n in used for n in e) else e for e in indices.layout.spec])
        flat = moved(indices, spec, "take")
        shape, entries = indices.shape, spec
        own = flat.shape
        made = take_of(x.piece, flat.reshape(-1), axis=at)
    piece = x.piece.shape
    made = made.reshape((*piece[:at], *own, *piece[at + 1 :]))
    layout = x.layout.replaced(
        shape=(*x.shape[:at], *shape, *x.shape[at + 1 :]),
        spec=(*x.layout.spec[:at], *entries, *x.layout.spec[at + 1 :]),
    )
    return x.like(made, layout)


# --- reshape -------------------------------------------------------------------------------------


def _known(own: tuple[int, ...], wanted: list[int]) -> tuple[int, ...]:
    """The shape with -1 replaced."""
    unknown = [at for at, each in enumerate(wanted) if each == -1]
    rest, size = math.prod(each for each in wanted if each != -1), math.prod(own)
    if len(unknown) == 1 and rest and size % rest == 0:
        wanted[unknown[0]] = size // rest
    if math.prod(wanted) != size or -1 in wanted:
        raise ShapeError(f"reshape: {own} has {size} elements, and {tuple(wanted)} has not")
    return tuple(wanted)


def _groups(own: tuple[int, ...], new: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """The axes that become each other: smallest groups of equal products, in order."""
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(own) or j < len(new):
        if 0 in own:  # no elements: only equal axes in front stay what they are
            if i < len(own) and j < len(new) and own[i] == new[j]:
                found.append(([i], [j]))
                i, j = i + 1, j + 1
                continue
            found.append(([*range(i, len(own))], [*range(j, len(new))]))
            return found
        left, right = [i] if i < len(own) else [], [j] if j < len(new) else []
        a, b = (own[i] if left else 1), (new[j] if right else 1)
        i, j = i + len(left), j + len(right)
        while a != b:
            if a < b:
                left.append(i)
                a, i = a * own[i], i + 1
            else:
                right.append(j)
                b, j = b * new[j], j + 1
        found.append((left, right))
    return found


def _regrouped(x: Any, own: list[int], new: list[int], wanted: tuple[int, ...]) -> Spec:
    """The entries of new axes, whose extents are given, for those that they are made of."""
    split = [at for at in own if x.layout.spec[at]]
    if not split:
        return ((),) * len(new)
    long = [at for at in own if x.shape[at] != 1]
    if len(split) == 1 and (not long or split[0] == long[0]):
        # The axis that varies slowest among them: its parts are parts of the new one.
        entry = x.layout.spec[split[0]]
        first = next((at for at, extent in enumerate(new) if extent != 1), 0)
        if new and (not long or _cuts_equally(x.layout.mesh, entry, x.shape[split[0]], new[first],
                                              math.prod(x.shape[at] for at in own))):  # fmt: skip
            return (*[()] * first, entry, *[()] * (len(new) - first - 1))
    raise refusal(f"reshape to {wanted}", x, split, " moves data")


def _cuts_equally(mesh: Mesh, entry: Entry, own: int, new: int, size: int) -> bool:
    """Whether the parts of an axis are those of the axis that it becomes."""
    if own == new:
        return True
    if not size:
        return False
    counts = [mesh.axes[name] for name in entry]
    inner, outer = size // own, size // new
    return all(
        width(own, counts[:at]) * inner == width(new, counts[:at]) * outer
        for at in range(1, len(counts) + 1)
    )
