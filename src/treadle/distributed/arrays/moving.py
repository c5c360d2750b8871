"""Pieces of arrays, and how they are brought from one layout to another.

Each rank's piece is a tensor with a history of its own. Where ranks have the same piece, each has a
part of the gradient, and the parts are to be added up: so each collective's derivative is that of
the sum of all ranks' losses, as everywhere in `td.distributed`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from treadle.autograd.function import Function
from treadle.distributed.arrays.layout import Layout, Spec
from treadle.distributed.arrays.steps import Step, steps
from treadle.distributed.arrays.traffic import Sent, Traffic, watching
from treadle.distributed.collectives import all_gather, all_reduce, all_to_all, reduce_scatter
from treadle.distributed.lines import users_line
from treadle.distributed.members import Group
from treadle.graph.history import is_differentiable, recording
from treadle.tensor.assembly import concat
from treadle.tensor.cells import written
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor


@dataclass(eq=False)
class Pieces:
    """An array of which this rank has a piece."""

    piece: Tensor
    layout: Layout

    def __post_init__(self) -> None:
        self._trace = written.get()  # of `td.compile`, in which it is made
        self._sums: dict[bool, Tensor] = {}

    def __copy__(self) -> Self:
        return type(self)(self.piece, self.layout)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        return self.layout.shape

    @property
    def dtype(self) -> Any:
        """The dtype of its elements."""
        return self.piece.dtype

    def like(self, piece: Tensor, layout: Layout, *others: Pieces) -> Self:
        """An array that was computed from this one, and from others."""
        return type(self)(tied(piece, self.piece, *[each.piece for each in others]), layout)


def moved(x: Pieces, spec: Spec, operation: str, keep: bool = False) -> Tensor:
    """The piece of an array that a rank has by another spec, where nothing is pending (with `keep`:
    what is pending now)."""
    if x.layout.pending and spec == x.layout.spec and not keep:
        return _sum(x, operation)
    return _stepped(x, spec, operation, keep)


def _sum(x: Pieces, operation: str) -> Tensor:
    """A sum that was pending, which is computed once for all that use it."""
    # What a trace has computed is of no use outside of it, and the other way round.
    is_own, with_history = written.get() is x._trace, recording.get()
    found = x._sums.get(with_history) if is_own else None
    if found is None:
        found = _stepped(x, x.layout.spec, operation)
        if is_own:
            x._sums[with_history] = found
    return found


def _stepped(x: Pieces, spec: Spec, operation: str, keep: bool = False) -> Tensor:
    piece = x.piece
    for step in steps(x.layout, spec, keep):
        piece = _moved(piece, step, operation)
    return piece


def _moved(piece: Tensor, step: Step, operation: str) -> Tensor:
    mesh = step.before.mesh
    if mesh.axes[step.name] == 1:
        return piece
    made = tied(_MOVES[step.kind](piece, step, mesh.group(step.name)), piece)
    traffic = watching()
    if traffic is not None and step.kind != "slice":
        _note(traffic, step, piece, made, operation)
    return made


def _note(traffic: Traffic, step: Step, piece: Tensor, made: Tensor, operation: str) -> None:
    line, size = users_line(), step.sent(piece.dtype.itemsize)
    traffic.sent.append(Sent(line, operation, step.kind, step.name, size))
    if made._history is None:
        return
    kind = {"all_gather": "reduce_scatter", "reduce_scatter": "all_gather"}.get(
        step.kind, step.kind
    )
    back = Sent(line, f"gradient of {operation}", kind, step.name, size)

    def noted(gradient: Tensor) -> None:
        traffic.sent.append(back)

    made.register_hook(noted)


def moved_by(
    kind: str, x: Tensor, layout: Layout, name: str, operation: str, reduction: str = "sum"
) -> Tensor:
    """A collective of equal pieces over a mesh axis: an "all_reduce", or a "stack" of all ranks'
    pieces along a new first axis."""
    mesh = layout.mesh
    count = mesh.axes[name]
    if count == 1:
        return x if kind == "all_reduce" else x.reshape((1, *x.shape))
    group = mesh.group(name)
    if kind == "all_reduce":
        made, factor = all_reduce(x, reduction, group), 2 * (count - 1) / count
    else:
        made, factor = all_gather(x.reshape((1, *x.shape)), group=group), count - 1
    traffic = watching()
    if traffic is not None:
        size = int(math.prod(x.shape) * x.dtype.itemsize * factor)
        what = kind if kind == "all_reduce" else "all_gather"
        traffic.sent.append(Sent(users_line(), operation, what, name, size))
    return made


# --- one function for each kind of step ----------------------------------------------------------


def _all_reduce(x: Tensor, step: Step, group: Group) -> Tensor:
    return all_reduce(x, group=group)


def _all_gather(x: Tensor, step: Step, group: Group) -> Tensor:
    made = all_gather(padded(x, step.axis, step.before.width(step.axis)), step.axis, group)
    return cut(made, step.axis, 0, step.after.range(step.axis)[1])


def _reduce_scatter(x: Tensor, step: Step, group: Group) -> Tensor:
    count, width = group.size, step.after.width(step.axis)
    made = reduce_scatter(padded(x, step.axis, count * width), step.axis, group=group)
    return cut(made, step.axis, 0, step.after.range(step.axis)[1])


def _all_to_all(x: Tensor, step: Step, group: Group) -> Tensor:
    count, width = group.size, step.after.width(step.axis)
    x = padded(padded(x, step.source, step.before.width(step.source)), step.axis, count * width)
    # The parts along one axis become the first axis, and then parts along the other.
    shape = [*x.shape[: step.axis], count, width, *x.shape[step.axis + 1 :]]
    parts = all_to_all(_first(x.reshape(tuple(shape)), step.axis), group=group)
    _, *own = parts.shape
    own[step.source] *= count
    made = _to(parts, step.source).reshape(tuple(own))
    made = cut(made, step.source, 0, step.after.range(step.source)[1])
    return cut(made, step.axis, 0, step.after.range(step.axis)[1])


def _slice(x: Tensor, step: Step, group: Group) -> Tensor:
    start = step.after.range(step.axis)[0] - step.before.range(step.axis)[0]
    return cut(x, step.axis, start, step.after.range(step.axis)[1])


_MOVES: dict[str, Callable[[Tensor, Step, Group], Tensor]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "slice": _slice,
}


def _first(x: Tensor, axis: int) -> Tensor:
    """The tensor with an axis in front of the others."""
    made: Tensor = x.permute(axis, *[each for each in range(len(x.shape)) if each != axis])
    return made


def _to(x: Tensor, axis: int) -> Tensor:
    """The tensor with its first axis at another place."""
    axes = [*range(1, len(x.shape))]
    axes.insert(axis, 0)
    made: Tensor = x.permute(*axes)
    return made


def padded(x: Tensor, axis: int, count: int) -> Tensor:
    """The tensor with zeros behind its elements along an axis, to so many."""
    missing = count - x.shape[axis]
    if not missing:
        return x
    shape = (*x.shape[:axis], missing, *x.shape[axis + 1 :])
    made: Tensor = concat((x, zeros(shape, dtype=x.dtype, device=x.device)), axis=axis)
    return tied(made, x)


def cut(x: Tensor, axis: int, start: int, count: int) -> Tensor:
    """So many elements of a tensor along an axis."""
    if not start and count == x.shape[axis]:
        return x
    made: Tensor = x[(slice(None),) * axis + (slice(start, start + count),)]
    return tied(made, x)


# --- empty pieces --------------------------------------------------------------------------------


def tied(made: Tensor, *sources: Tensor) -> Tensor:
    """What was made of tensors, with a history that leads to them. What is made of empty pieces may
    be a constant, and then the backward pass of this rank would skip the collectives before it,
    which other ranks wait in."""
    if made._history is not None or not recording.get() or not is_differentiable(made._node):
        return made
    tracked = [each for each in sources if each._history is not None]
    return _Tied.apply(made, *tracked) if tracked else made


class _Tied(Function):
    @staticmethod
    def forward(ctx: Any, made: Tensor, *sources: Tensor) -> Tensor:
        ctx.like = [(each.shape, each.dtype, each.device) for each in sources]
        return made

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return (
            None,
            *[zeros(shape, dtype=dtype, device=device) for shape, dtype, device in ctx.like],
        )
