"""Parts of tensors on the ranks of a group, for layers that share out one computation.

In these layers all ranks compute one loss, so a derivative counts it once. That is another one than
those of collectives, which are of the sum of all ranks' losses: a sum's gradient is given on as it
is, and that of a copy is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from treadle.autograd.function import Function
from treadle.distributed.collectives import all_gather, all_reduce
from treadle.distributed.group import current
from treadle.distributed.members import Group
from treadle.nn.parameter import Parameter
from treadle.tensor.assembly import concat
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Part:
    """How an axis of `extent` elements is divided among ranks, in units (as the elements of a head)
    that stay together: the first ranks may have one unit more. A tensor may have several `blocks`
    of so many elements along the axis, which are divided alike."""

    extent: int
    ranks: int
    unit: int = 1
    axis: int = 0
    blocks: int = 1

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each rank's part begins and ends."""
        fewest, more = divmod(self.extent // self.unit, self.ranks)
        widths = [(fewest + (rank < more)) * self.unit for rank in range(self.ranks)]
        return list(pairwise([0, *accumulate(widths)]))

    def of(self, rank: int, whole: Tensor) -> Tensor:
        """A rank's part of a tensor."""
        start, stop = self.bounds[rank]
        places = [
            (slice(None),) * self.axis + (slice(k * self.extent + start, k * self.extent + stop),)
            for k in range(self.blocks)
        ]
        found = [whole[place] for place in places]
        return found[0] if len(found) == 1 else concat(found, self.axis)

    def joined(self, own: Tensor, group: Group) -> Tensor:
        """The whole tensor, from all ranks' parts."""
        widths = [stop - start for start, stop in self.bounds]
        lead = (slice(None),) * self.axis
        found = []
        for k in range(self.blocks):
            width = widths[group.rank]
            block = own[(*lead, slice(k * width, (k + 1) * width))]
            found.append(_gathered(block, self.axis, widths, group))
        return found[0] if len(found) == 1 else concat(found, self.axis)


def divided(
    name: str, extent: int, group: Group, unit: int = 1, axis: int = 0, blocks: int = 1
) -> Part:
    """How an axis is divided among the ranks of a group. ValueError if a rank would get nothing."""
    if extent % unit or extent // unit < group.size:
        raise ValueError(
            f"{name}: {extent // unit} are not enough for {group.size} ranks: each gets one at "
            "least. Take fewer ranks"
        )
    return Part(extent, group.size, unit, axis, blocks)


def part_of(parameter: Parameter | None, part: Part, group: Group) -> Parameter | None:
    """A parameter of its own for this rank's part."""
    if parameter is None:
        return None
    own = part.of(group.rank, parameter.detach())
    return Parameter(own.copied(), parameter.requires_grad)


def _gathered(x: Tensor, axis: int, widths: Sequence[int], group: Group) -> Tensor:
    """All ranks' parts, which may have unequal widths along an axis."""
    widest = max(widths)
    own = x.shape[axis]
    if own < widest:
        shape = (*x.shape[:axis], widest - own, *x.shape[axis + 1 :])
        x = concat([x, zeros(shape, dtype=x.dtype, device=x.device)], axis)
    every = all_gather(x, axis, group)
    if min(widths) == widest:
        return every
    lead = (slice(None),) * axis
    places = [slice(widest * rank, widest * rank + width) for rank, width in enumerate(widths)]
    return concat([every[(*lead, place)] for place in places], axis)


# --- what ranks do with parts --------------------------------------------------------------------


def copied(x: Tensor, group: Group) -> Tensor:
    """What all ranks have, at the beginning of what each does with its part: the gradient is the
    sum of theirs."""
    made: Tensor = x if group.engine is None else _Copied.apply(x, group)
    return made


def summed(x: Tensor, group: Group) -> Tensor:
    """The sum of all ranks' results, at the end of what each has done with its part: the gradient
    is that of the sum."""
    made: Tensor = x if group.engine is None else _Summed.apply(x, group)
    return made


def split(x: Tensor, axis: int = 1, group: Group | None = None) -> Tensor:
    """This rank's part along an axis of what all ranks of a group have, as a sequence; the axis is
    divisible by their number. The gradients of the parts are joined.

    In a model with layers that divide a sequence this is its beginning, and `join` its end: all
    ranks compute one loss, which counts once.

    >>> import treadle as td
    >>> td.distributed.split(td.ones((2, 8, 3), device="cpu"), axis=1).shape  # of one rank
    (2, 8, 3)
    """
    group = current() if group is None else group
    axis = _axis("split", x, axis)
    extent = x.shape[axis]
    if extent % group.size:
        raise ValueError(
            f"split: axis {axis} of shape {x.shape} is not {group.size} equal parts, one for each "
            "rank: pad it"
        )
    return cut(x, Part(extent, group.size, axis=axis), group)


def join(x: Tensor, axis: int = 1, group: Group | None = None) -> Tensor:
    """The parts of all ranks of a group along an axis, one after the other, on each: what `split`
    has divided. The gradient of a part is its part of the gradient.

    >>> import treadle as td
    >>> td.distributed.join(td.ones((2, 8, 3), device="cpu"), axis=1).shape  # of one rank
    (2, 8, 3)
    """
    group = current() if group is None else group
    axis = _axis("join", x, axis)
    return whole(x, Part(x.shape[axis] * group.size, group.size, axis=axis), group)


def cut(x: Tensor, part: Part, group: Group) -> Tensor:
    """This rank's part of what all have."""
    made: Tensor = x if group.engine is None else _Cut.apply(x, part, group)
    return made


def whole(x: Tensor, part: Part, group: Group) -> Tensor:
    """All ranks' parts as one tensor, which all have."""
    made: Tensor = x if group.engine is None else _Whole.apply(x, part, group)
    return made


def _axis(name: str, x: Any, axis: int) -> int:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} takes a tensor, not {type(x).__name__}: td.asarray(…) makes one")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{name} along axis {axis} of a tensor of shape {x.shape}")
    return axis % x.ndim


class _Copied(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return summed(g, ctx.group), None


class _Summed(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return all_reduce(x, "sum", group)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return copied(g, ctx.group), None


class _Cut(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, part: Part, group: Group) -> Tensor:
        ctx.part, ctx.group = part, group
        return part.of(group.rank, x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return whole(g, ctx.part, ctx.group), None, None


class _Whole(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, part: Part, group: Group) -> Tensor:
        ctx.part, ctx.group = part, group
        return part.joined(x, group)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return cut(g, ctx.part, ctx.group), None, None
