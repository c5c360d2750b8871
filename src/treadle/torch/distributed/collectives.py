"""Collectives that write into tensors, with PyTorch's arguments, over `td.distributed`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from treadle.autograd.modes import no_grad
from treadle.core import dtypes
from treadle.distributed import collectives as inner
from treadle.distributed import messages
from treadle.tensor.assembly import concat
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.distributed.processes import ProcessGroup, get_group_rank, where, world
from treadle.torch.distributed.work import ReduceOp, Work, finished
from treadle.torch.tensors import Tensor

_BITWISE: dict[ReduceOp, Callable[[Inner, Inner], Inner]] = {
    ReduceOp.BAND: lambda x, y: x & y,
    ReduceOp.BOR: lambda x, y: x | y,
    ReduceOp.BXOR: lambda x, y: x ^ y,
}
# Of truth values: a sum says whether any is true, a product whether all are.
_OF_BOOL = {"sum": "max", "product": "min"}


def _outside(group: ProcessGroup | None) -> bool:
    """Whether this process takes no part: it is not in the group."""
    return (group or world()).rank() < 0


def _place(group: ProcessGroup | None, rank: int | None, group_rank: int | None, name: str) -> int:
    """The number in a group of the process that is named by its number among all, or in it."""
    if group_rank is not None:
        return group_rank
    if rank is None:
        raise ValueError(f"{name} says which rank, and is None")
    return get_group_rank(group or world(), rank)


def collective(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors without history, which processes outside the group do not run."""
    place = [*signature(function).parameters].index("group")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        group = args[place] if len(args) > place else kwargs.get("group")
        if group is not None and _outside(group):
            return None
        world()
        with no_grad():
            return function(*args, **kwargs)

    return call


def _given(x: Tensor, name: str) -> Inner:
    if type(x) is not Tensor:
        raise TypeError(f"{name} takes tensors, not {type(x).__name__}")
    return x._inner.detach()


def _in(group: ProcessGroup | None) -> Any:
    """Treadle's group."""
    return None if group is None else group.inner


def _reduced(x: Inner, op: ReduceOp, group: ProcessGroup | None) -> Inner:
    if op in _BITWISE:
        every = inner.all_gather(x.reshape((1, *x.shape)), group=_in(group))
        return functools.reduce(_BITWISE[op], [every[rank] for rank in range(every.shape[0])])
    return inner.all_reduce(x, _op(x, op), _in(group))


def _op(x: Inner, op: ReduceOp) -> str:
    name: str = ReduceOp(op).value
    return _OF_BOOL.get(name, name) if x.dtype.kind == "bool" else name


# --- of all ranks --------------------------------------------------------------------------------


@collective
def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Replace a tensor by the sum (mean, …) of all ranks'."""
    return finished([tensor], [_reduced(_given(tensor, "all_reduce"), op, group)], async_op)


@collective
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace the tensor of one rank by the sum (mean, …) of all ranks'."""
    target = _place(group, dst, group_dst, "dst")
    total = _reduced(_given(tensor, "reduce"), op, group)
    is_target = (group or world()).rank() == target
    return finished([tensor], [total if is_target else None], async_op)


@collective
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Replace a tensor by that of one rank."""
    root = _place(group, src, group_src, "src")
    return finished(
        [tensor], [inner.broadcast(_given(tensor, "broadcast"), root, _in(group))], async_op
    )


@collective
def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write each rank's tensor into one of a list. All have one shape."""
    _count("all_gather", "tensor_list", tensor_list, group)
    x = _given(tensor, "all_gather")
    every = inner.all_gather(x.reshape((1, *x.shape)), group=_in(group))
    return finished(tensor_list, [every[rank] for rank in range(len(tensor_list))], async_op)


@collective
def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write all ranks' tensors into one: one after the other along the first axis, or side by side
    along a new one."""
    every = inner.all_gather(
        _given(input_tensor, "all_gather_into_tensor").reshape((-1,)), group=_in(group)
    )
    return finished([output_tensor], [_shaped(every, output_tensor)], async_op)


@collective
def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write each rank's tensor into one of a list, on one rank."""
    target = _place(group, 0 if dst is None else dst, group_dst, "dst")
    x = _given(tensor, "gather")
    every = inner.all_gather(x.reshape((1, *x.shape)), group=_in(group))
    if (group or world()).rank() != target:
        return finished([], [], async_op)
    if gather_list is None:
        raise ValueError("gather_list has the results on the rank dst")
    _count("gather", "gather_list", gather_list, group)
    return finished(gather_list, [every[rank] for rank in range(len(gather_list))], async_op)


@collective
def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write one tensor of a list of one rank into each rank's."""
    root = _place(group, 0 if src is None else src, group_src, "src")
    here, size = (group or world()).rank(), (group or world()).size()
    x = _given(tensor, "scatter")
    if here == root:
        if scatter_list is None:
            raise ValueError("scatter_list has what each rank gets, on the rank src")
        _count("scatter", "scatter_list", scatter_list, group)
        rows = _stacked([_given(each, "scatter") for each in scatter_list])
    else:
        rows = zeros((size, *x.shape), dtype=x.dtype, device=x.device)
    return finished([tensor], [inner.broadcast(rows, root, _in(group))[here]], async_op)


@collective
def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write the sum (mean, …) of all ranks' r-th tensors into the tensor of rank r."""
    _count("reduce_scatter", "input_list", input_list, group)
    rows = _stacked([_given(each, "reduce_scatter") for each in input_list])
    return finished([output], [_scattered(rows, op, group).reshape(output._inner.shape)], async_op)


@collective
def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Write a part of the sum (mean, …) of all ranks' tensors into each rank's."""
    size = (group or world()).size()
    rows = _given(input, "reduce_scatter_tensor").reshape((size, *output._inner.shape))
    return finished([output], [_shaped(_scattered(rows, op, group), output)], async_op)


def _scattered(rows: Inner, op: ReduceOp, group: ProcessGroup | None) -> Inner:
    if op in _BITWISE:
        return _reduced(rows, op, group)[(group or world()).rank()]
    return inner.reduce_scatter(rows, 0, _op(rows, op), _in(group))


@collective
def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give the r-th tensor to rank r, and write what it gives into the r-th of the results. Shapes
    may differ."""
    _count("all_to_all", "output_tensor_list", output_tensor_list, group)
    _count("all_to_all", "input_tensor_list", input_tensor_list, group)
    given = [_given(each, "all_to_all").reshape((-1,)) for each in input_tensor_list]
    found = _exchanged(given, [each._inner.size for each in output_tensor_list], group)
    shaped = [
        each.reshape(place._inner.shape)
        for each, place in zip(found, output_tensor_list, strict=True)
    ]
    return finished(output_tensor_list, shaped, async_op)


@collective
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give the r-th part of a tensor along its first axis to rank r, and write the parts that come
    one after the other. Parts are equal, or as many rows long as the sizes say."""
    size = (group or world()).size()
    x = _given(input, "all_to_all_single")
    if not output_split_sizes and not input_split_sizes:
        return finished(
            [output], [_shaped(inner.all_to_all(x, group=_in(group)), output)], async_op
        )
    row = x.size // max(x.shape[0], 1)
    if not x.shape[0]:
        row = output._inner.size // max(output._inner.shape[0], 1)
    taken = [*(input_split_sizes or [x.shape[0] // size] * size)]
    wanted = [*(output_split_sizes or [output._inner.shape[0] // size] * size)]
    flat, pieces, start = x.reshape((-1,)), [], 0
    for count in taken:
        pieces.append(flat[start : start + count * row])
        start += count * row
    if start != x.size:
        raise ValueError(f"input_split_sizes {taken} are not the {x.shape[0]} rows of the input")
    found = concat(_exchanged(pieces, [count * row for count in wanted], group))
    return finished([output], [_shaped(found, output)], async_op)


def _exchanged(
    pieces: Sequence[Inner], wanted: Sequence[int], group: ProcessGroup | None
) -> list[Inner]:
    """Flat pieces for each rank, and how many elements come from each: pieces of any lengths, which
    are filled up to the longest."""
    most = max([each.size for each in pieces] + [*wanted])
    longest = int(
        inner.all_reduce(
            asarray(most, dtype=dtypes.int32, device=where()), "max", _in(group)
        ).item()
    )
    filled = []
    for each in pieces:
        rest = zeros(longest - each.size, dtype=each.dtype, device=each.device)
        filled.append(concat([each, rest]))
    rows = inner.all_to_all(_stacked(filled), group=_in(group))
    return [rows[rank, :count] for rank, count in enumerate(wanted)]


@collective
def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None
) -> Work | None:
    """Wait until every rank has called this."""
    if not async_op:
        inner.barrier(_in(group))
        return None
    done = inner.all_reduce(zeros(1, device=where()), group=_in(group))

    def wait() -> None:
        done.numpy()

    return Work(wait)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: Any = None, wait_all_ranks: bool = False
) -> None:
    """Wait until every rank has called this; the error names those that have not."""
    barrier(group=group)


# --- between two ranks ---------------------------------------------------------------------------


@collective
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Give a tensor to another rank. Nothing is waited for."""
    messages.send(_given(tensor, "send"), _place(group, dst, group_dst, "dst"), tag, _in(group))


@collective
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Give a tensor to another rank. It may be changed at once: what is sent is a copy."""
    messages.send(_given(tensor, "isend"), _place(group, dst, group_dst, "dst"), tag, _in(group))
    return Work(lambda: None, [tensor])


@collective
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Write what another rank sends into a tensor; the number of that rank, which is named."""
    source = _source("recv", group, src, group_src)
    found = messages.recv(_given(tensor, "recv"), source, tag=tag, group=_in(group))
    finished([tensor], [found], False)
    return (group or world()).ranks[source]


@collective
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Have what another rank sends in a tensor after `wait`."""
    source = _source("irecv", group, src, group_src)
    return finished(
        [tensor], [messages.recv(_given(tensor, "irecv"), source, tag=tag, group=_in(group))], True
    )


def _source(name: str, group: ProcessGroup | None, src: int | None, group_src: int | None) -> int:
    if src is None and group_src is None:
        raise ValueError(
            f"{name} names the rank that sends, src: from any rank it does not receive"
        )
    return _place(group, src, group_src, "src")


@dataclass(slots=True)
class P2POp:
    """A send or a receive, for `batch_isend_irecv`."""

    op: Callable[..., Work]
    tensor: Tensor
    peer: int | None = None
    group: ProcessGroup | None = None
    tag: int = 0
    group_peer: int | None = None


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start sends and receives. They are in an order in which no two ranks wait for each other."""
    if not p2p_op_list:
        raise ValueError("batch_isend_irecv takes at least one operation")
    found: list[Work | None] = [None] * len(p2p_op_list)
    here = world().rank()

    def turn(number: int) -> tuple[int, int, bool]:
        # By pairs of ranks, in the same order on both; the lower one sends first.
        each = p2p_op_list[number]
        peer = _place(each.group, each.peer, each.group_peer, "peer")
        sends = each.op is isend
        return min(here, peer), max(here, peer), sends != (here < peer)

    for number in sorted(range(len(p2p_op_list)), key=turn):
        each = p2p_op_list[number]
        where = {"group": each.group} if each.group is not None else {}
        found[number] = each.op(
            each.tensor, each.peer, tag=each.tag, **where,
            **({} if each.group_peer is None else {
                "group_dst" if each.op is isend else "group_src": each.group_peer
            }),
        )  # fmt: skip
    return [each for each in found if each is not None]


# --- shapes --------------------------------------------------------------------------------------


def _count(function: str, name: str, given: Sequence[Any], group: ProcessGroup | None) -> None:
    size = (group or world()).size()
    if len(given) != size:
        raise ValueError(f"{name} of {function} has {len(given)} tensors, for {size} ranks")


def _shaped(found: Inner, place: Tensor) -> Inner:
    shape = place._inner.shape
    if found.size != place._inner.size:
        raise ValueError(
            f"the result has {found.size} elements, and the tensor for it {place._inner.size} "
            f"(shape {list(shape)})"
        )
    return found.reshape(shape)


def _stacked(tensors: Sequence[Inner]) -> Inner:
    if len({each.shape for each in tensors}) > 1:
        shapes = sorted({str(list(each.shape)) for each in tensors})
        raise ValueError(f"the tensors have one shape, not {' and '.join(shapes)}")
    made: Inner = concat([each.reshape((1, *each.shape)) for each in tensors])
    return made
