"""Elementwise functions of sharded arrays: their pieces are brought to one layout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dtypes import bfloat16, float16
from treadle.core.errors import ShapeError
from treadle.distributed.arrays.layout import Entry, Layout, Spec, shown
from treadle.distributed.arrays.mesh import Mesh
from treadle.distributed.arrays.moving import Pieces, moved
from treadle.tensor.conversions import common_shape, is_number

# Functions of a sum that are sums of what they are of its terms: what is pending stays pending.
# Products only by numbers, since infinities in an array could meet in the terms.
_LINEAR = frozenset({"negative", "positive"})
_ADDING = frozenset({"add", "subtract"})
_SCALING = frozenset({"multiply", "divide"})


def elementwise(name: str, function: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """An elementwise function of sharded arrays and numbers, which broadcast. Options go to the
    function as they are."""
    arrays = [each for each in operands if isinstance(each, Pieces)]
    mesh = mesh_of(name, arrays, operands)
    shape = common_shape(name, [each.shape for each in arrays])
    pending = _pending(name, operands, shape)
    spec = common_spec(arrays, shape)
    pieces = [
        moved(each, spec_of_operand(each.shape, shape, spec), name, bool(pending))
        if isinstance(each, Pieces)
        else each
        for each in operands
    ]
    made = function(*pieces, **options)
    layout = Layout(mesh, shape, spec, pending)
    if made.shape != layout.piece_shape:
        raise ShapeError(
            f"{name}: a piece of {layout.piece_shape} became {made.shape}: functions that are "
            "given to map compute each element of the result from one of each array"
        )
    return arrays[0].like(made, layout, *arrays[1:])


def _pending(name: str, operands: Sequence[Any], shape: tuple[int, ...]) -> Entry:
    """What stays to be added up."""
    first = operands[0]
    found: Entry = next((x.layout.pending for x in operands if isinstance(x, Pieces)), ())
    if not found:
        return ()
    if name in _LINEAR:
        return found
    others = [each for each in operands if isinstance(each, Pieces)]
    if name in _ADDING and len(others) == 2:
        one, other = (each.layout for each in others)
        is_same = others[0].dtype is others[1].dtype and one.pending == other.pending
        if is_same and one.shape == other.shape and one.spec == other.spec:
            return found
    if name in _SCALING and len(others) == 1:
        number = operands[1] if isinstance(first, Pieces) else operands[0]
        is_first = isinstance(first, Pieces) and others[0].dtype.kind in ("float", "complex")
        # A term of a sum of halves may overflow where the sum does not.
        is_fine = isinstance(number, (int, float)) and math.isfinite(number)
        is_fine = is_fine and others[0].dtype not in (float16, bfloat16)
        if is_fine and (name == "multiply" or (is_first and number)):
            return found if isinstance(number, int) or others[0].dtype.kind == "float" else ()
    return ()


def mesh_of(name: str, arrays: Sequence[Pieces], operands: Sequence[Any]) -> Mesh:
    """The mesh of all operands. TypeError, ValueError for what has none, or another one."""
    mesh = arrays[0].layout.mesh
    for each in operands:
        if isinstance(each, Pieces):
            if each.layout.mesh != mesh:
                raise ValueError(
                    f"{name}: one array is on {mesh}, another on {each.layout.mesh}: "
                    "td.shard(x.gather(), mesh, spec) takes it to the other mesh"
                )
        elif each is not None and not is_number(each):
            raise TypeError(
                f"{name} of a sharded array and a {type(each).__name__}: td.shard(y, mesh, spec) "
                "says how the ranks have it, with the spec () if all of them have the whole"
            )
    return mesh


def common_spec(arrays: Sequence[Pieces], shape: tuple[int, ...]) -> Spec:
    """The spec of a result of this shape: that of the largest array, and of the others what does
    not contradict it."""
    found: list[Entry] = [()] * len(shape)
    for x in sorted(arrays, key=lambda each: -math.prod(each.shape)):
        front = len(shape) - len(x.shape)
        for axis, entry in enumerate(x.layout.spec, front):
            used = [name for each in found for name in each]
            if found[axis] or shape[axis] != x.shape[axis - front]:
                continue
            if not any(name in used for name in entry):
                found[axis] = entry
    return tuple(found)


def spec_of_operand(own: tuple[int, ...], shape: tuple[int, ...], spec: Spec) -> Spec:
    """The part of a result's spec that an operand of a shape has."""
    front = len(shape) - len(own)
    return tuple(
        [spec[axis] if extent == shape[axis] else () for axis, extent in enumerate(own, front)]
    )


def refusal(name: str, x: Pieces, axes: Sequence[int], why: str = "") -> ShapeError:
    """The error of an operation along axes that are split."""
    split = [axis for axis in axes if x.layout.spec[axis]]
    names = " and ".join(
        f"axis {axis}, which is split over {' and '.join(map(repr, x.layout.spec[axis]))}"
        for axis in split
    )
    whole = tuple([() if axis in split else each for axis, each in enumerate(x.layout.spec)])
    return ShapeError(
        f"{name}{why or ' goes'} along {names}: x.reshard({shown(whole)}) before brings it together"
    )
