"""Collectives on tensors, with their derivatives."""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.function import Function
from treadle.core import dtypes
from treadle.core.errors import AutogradError, DtypeError, ShapeError
from treadle.distributed.group import current
from treadle.distributed.members import Group
from treadle.distributed.request import Request
from treadle.distributed.transfers import transferred
from treadle.graph.placeholders import within
from treadle.tensor.assembly import stack
from treadle.tensor.creation import zeros
from treadle.tensor.elementwise_functions import FUNCTIONS, where
from treadle.tensor.tensor import Tensor, from_node

REDUCTIONS = ("sum", "mean", "min", "max", "product")
_LINEAR = ("sum", "mean")


def all_reduce(x: Tensor, op: str = "sum", group: Group | None = None) -> Tensor:
    """The sum, mean, minimum, maximum or product of all ranks' `x`, element by element, on each
    rank. All have the same shape and dtype.

    MPI adds float16 and bfloat16 in float32, NCCL in their own precision. The minimum or maximum
    with a NaN is NaN, as by `td.max`. The gradient of a sum is the sum of all ranks' gradients.

    >>> import treadle as td
    >>> td.distributed.all_reduce(td.asarray([1.0, 2.0], device="cpu")).tolist()  # of one rank
    [1.0, 2.0]
    """
    group = group_for("all_reduce", x, group)
    _check_reduction("all_reduce", x, op)
    return _all_reduced(group, x, op)


def all_gather(x: Tensor, axis: int = 0, group: Group | None = None) -> Tensor:
    """All ranks' `x`, of the same shape and dtype, one after the other along an axis, on each rank.
    A tensor without axes counts as one of a single element.

    >>> import treadle as td
    >>> td.distributed.all_gather(td.asarray([1, 2], device="cpu")).tolist()
    [1, 2]
    """
    group = group_for("all_gather", x, group)
    if not x.shape:
        x = x.reshape((1,))
    axis = _axis("all_gather", x, axis)
    return _joined(_Gather.apply(x, group), axis)


def reduce_scatter(x: Tensor, axis: int = 0, op: str = "sum", group: Group | None = None) -> Tensor:
    """The sum (or mean, minimum, maximum, product) of all ranks' `x`, of which each rank gets one
    part along an axis: the first rank the first. The axis is divisible by the number of ranks.

    >>> import treadle as td
    >>> td.distributed.reduce_scatter(td.asarray([1, 2], device="cpu")).tolist()
    [1, 2]
    """
    group = group_for("reduce_scatter", x, group)
    _check_reduction("reduce_scatter", x, op)
    parts = _parts("reduce_scatter", x, axis, group.size)
    return _scattered(group, parts, op)


def broadcast(x: Tensor, root: int = 0, group: Group | None = None) -> Tensor:
    """The `x` of the rank `root`, on each rank. The others' have its shape and dtype.

    The gradient reaches the root alone: the sum of all ranks' gradients.

    >>> import treadle as td
    >>> td.distributed.broadcast(td.asarray([1, 2], device="cpu")).tolist()
    [1, 2]
    """
    group = group_for("broadcast", x, group)
    check_rank("broadcast", "root", root, group)
    made: Tensor = _Broadcast.apply(x, group, root)
    return made


def all_to_all(x: Tensor, axis: int = 0, group: Group | None = None) -> Tensor:
    """Each rank's `x` is cut into as many equal parts along an axis as there are ranks; rank *r*
    gets the *r*-th part of every rank's, in the order of ranks, along the same axis.

    >>> import treadle as td
    >>> td.distributed.all_to_all(td.asarray([1, 2], device="cpu")).tolist()
    [1, 2]
    """
    group = group_for("all_to_all", x, group)
    parts = _parts("all_to_all", x, axis, group.size)
    return _joined(_Exchange.apply(parts, group), _axis("all_to_all", x, axis))


def barrier(group: Group | None = None) -> None:
    """Wait until every rank has called this, of all or of a group.

    >>> import treadle as td
    >>> td.distributed.barrier()
    """
    group = current() if group is None else group
    if group.engine is None:
        return
    if group.engine.on_host:
        group.wait(group.start(Request("barrier", dtypes.uint8, None), None, None))
    else:
        _all_reduced(group, zeros((1,), device=group.engine.device), "sum").numpy()


# --- what is given -------------------------------------------------------------------------------


def group_for(name: str, x: Any, group: Group | None) -> Group:
    """The group that a collective is of. TypeError if it is not given a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} takes a tensor, not {type(x).__name__}: td.asarray(…) makes one")
    if within.get() is not None:
        raise ShapeError(f"{name} has no rule for td.vmap: call it outside the mapped function")
    return current() if group is None else group


def _check_reduction(name: str, x: Tensor, op: str) -> None:
    if op not in REDUCTIONS:
        raise ValueError(f"the reductions of {name} are {', '.join(REDUCTIONS)}, not {op!r}")
    kind = x.dtype.kind
    if op == "mean" and kind not in ("float", "complex"):
        raise DtypeError(f"a mean of {x.dtype} is a fraction: cast it first, as x.to(td.float32)")
    if kind == "bool" and op in ("sum", "product"):
        raise DtypeError(
            f'a {op} of bool has another dtype: cast it first; "max" says whether any rank has '
            'True, "min" whether all have'
        )
    if kind == "complex" and op in ("min", "max"):
        raise DtypeError(f"complex numbers have no order for {op!r}")


def check_rank(name: str, what: str, rank: int, group: Group) -> None:
    """ValueError unless it is a rank of the group."""
    if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank < group.size:
        raise ValueError(f"{what} of {name} is a rank from 0 to {group.size - 1}, not {rank!r}")


def _axis(name: str, x: Tensor, axis: int) -> int:
    if not -len(x.shape) <= axis < len(x.shape):
        raise ShapeError(f"{name} along axis {axis} of a tensor of shape {x.shape}")
    return axis % len(x.shape)


def _parts(name: str, x: Tensor, axis: int, size: int) -> Tensor:
    """The parts of a tensor along an axis, as the first axis of another."""
    axis = _axis(name, x, axis)
    extent = x.shape[axis]
    if extent % size:
        raise ShapeError(
            f"{name} cuts axis {axis} into {size} equal parts, one for each rank, and it has "
            f"{extent} elements (shape {x.shape})"
        )
    split = x.reshape((*x.shape[:axis], size, extent // size, *x.shape[axis + 1 :]))
    return _moved(split, axis, 0)


def _joined(x: Tensor, axis: int) -> Tensor:
    """Parts along the first axis, one after the other along an axis of the parts."""
    count, *shape = x.shape
    shape[axis] *= count
    return _moved(x, 0, axis).reshape(tuple(shape))


def _moved(x: Tensor, source: int, target: int) -> Tensor:
    axes = [axis for axis in range(len(x.shape)) if axis != source]
    axes.insert(target, source)
    made: Tensor = x.permute(*axes)
    return made


# --- without histories ---------------------------------------------------------------------------


def gather_parts(group: Group, part: Tensor) -> Tensor:
    """All ranks' parts, as the first axis of a tensor, without a history."""
    request = Request("all_gather", part.dtype, part.shape)
    return _run(group, request, part, (group.size, *part.shape))


def scatter_mean(group: Group, parts: Tensor) -> Tensor:
    """This rank's part of the mean, of parts along the first axis, without a history."""
    return _reduced(group, "reduce_scatter", parts, "mean", parts.shape[1:])


# --- derivatives ---------------------------------------------------------------------------------


def _run(group: Group, request: Request, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A collective's result, under way. Of a single rank it is a copy."""
    if group.engine is None:
        return x.clone().reshape(shape)
    return from_node(transferred(group, request, x._node, shape, x.device))


def _reduced(group: Group, kind: str, x: Tensor, op: str, shape: Any, peer: Any = None) -> Tensor:
    """A reduction, in a dtype that backends compute with."""
    wide = x.dtype if group.engine is None else group.engine.wider.get(x.dtype.short, x.dtype)
    given = x if wide is x.dtype else x.to(wide)
    if op == "mean":
        made = _mean(group, kind, given, shape)
    elif op in ("min", "max") and wide.kind == "float" and group.engine is not None:
        made = _extreme(group, kind, given, op, shape)
    else:
        made = _run(group, Request(kind, wide, given.shape, op, peer), given, shape)
    return made if wide is x.dtype else made.to(x.dtype)


def _mean(group: Group, kind: str, x: Tensor, shape: Any) -> Tensor:
    """A mean, whose sum may be beyond the greatest float16."""
    is_narrow = x.dtype.itemsize < 4
    given = x / group.size if is_narrow else x
    made = _run(group, Request(kind, x.dtype, x.shape, "sum"), given, shape)
    return made if is_narrow else made / group.size


def _extreme(group: Group, kind: str, x: Tensor, op: str, shape: Any) -> Tensor:
    """A minimum or maximum of floats. Backends' own lose NaN, or have it on some ranks alone, so
    one operation takes numbers and marks of those that are NaN."""
    is_nan = FUNCTIONS["isnan"](x)
    mark = 1.0 if op == "max" else -1.0
    # Parts for the ranks are along the first axis.
    axis = int(kind == "reduce_scatter")
    both = stack([where(is_nan, 0.0, x), where(is_nan, mark, 0.0).to(x.dtype)], axis=axis)
    made = _run(group, Request(kind, x.dtype, both.shape, op), both, (2, *shape))
    return where(made[1] == 0, made[0], math.nan)


def _all_reduced(group: Group, x: Tensor, op: str) -> Tensor:
    if x._history is None:
        return _reduced(group, "all_reduce", x, op, x.shape)
    made: Tensor = _AllReduce.apply(x, group, op)
    return made


def _scattered(group: Group, parts: Tensor, op: str) -> Tensor:
    made: Tensor = _ReduceScatter.apply(parts, group, op)
    return made


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, op: str) -> Tensor:
        made = _reduced(group, "all_reduce", x, op, x.shape)
        ctx.group, ctx.op = group, op
        if op not in _LINEAR and ctx.needs_input_grad[0]:
            ctx.save_for_backward(x, made)
        return made

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        group: Group = ctx.group
        if ctx.op in _LINEAR:
            return _all_reduced(group, g, ctx.op), None, None
        total = _all_reduced(group, g, "sum")
        x, made = ctx.saved_tensors
        if ctx.op == "product":
            return total * _others_product(group, x), None, None
        # The ranks that have the minimum or maximum share its gradient.
        chosen = (x == made).to(x.dtype)
        return total * chosen / _all_reduced(group, chosen, "sum"), None, None


def _others_product(group: Group, x: Tensor) -> Tensor:
    """The product of the other ranks' elements, which may be 0."""
    every = _Gather.apply(x, group)
    made = None
    for rank in range(group.size):
        if rank != group.rank:
            made = every[rank] if made is None else made * every[rank]
    if made is None:
        return x.detach() * 0 + 1
    others: Tensor = made.conj() if x.dtype.is_complex else made
    return others


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        request = Request("all_gather", x.dtype, x.shape)
        return _run(group, request, x, (group.size, *x.shape))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _scattered(ctx.group, g, "sum"), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, parts: Tensor, group: Group, op: str) -> Tensor:
        ctx.group, ctx.op = group, op
        return _reduced(group, "reduce_scatter", parts, op, parts.shape[1:])

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if ctx.op not in _LINEAR:
            raise AutogradError(
                f"reduce_scatter of {ctx.op!r} has no gradient: use all_reduce, and take this "
                "rank's part"
            )
        every = _Gather.apply(g, ctx.group)
        return every / ctx.group.size if ctx.op == "mean" else every, None, None


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, root: int) -> Tensor:
        ctx.group, ctx.root = group, root
        return _run(group, Request("broadcast", x.dtype, x.shape, peer=root), x, x.shape)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Reduce.apply(g, ctx.group, ctx.root), None, None


class _Reduce(Function):
    """The sum on one rank, and zeros on the others."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, root: int) -> Tensor:
        ctx.group, ctx.root = group, root
        made = _reduced(group, "reduce", x, "sum", x.shape, root)
        return made if group.rank == root else zeros(x.shape, dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Broadcast.apply(g, ctx.group, ctx.root), None, None


class _Exchange(Function):
    @staticmethod
    def forward(ctx: Any, parts: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return _run(group, Request("all_to_all", parts.dtype, parts.shape), parts, parts.shape)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return _Exchange.apply(g, ctx.group), None
