"""Tensors from one rank to another, and their gradients the other way."""

from __future__ import annotations

from typing import Any

from treadle.autograd.function import Function
from treadle.core import dtypes
from treadle.core.errors import AutogradError
from treadle.distributed.collectives import check_rank, group_for
from treadle.distributed.group import current
from treadle.distributed.members import Group
from treadle.distributed.request import Request
from treadle.distributed.transfers import transferred
from treadle.graph.history import recording
from treadle.runtime.devices import Device, default_device
from treadle.runtime.devices import device as find_device
from treadle.tensor.creation import zeros
from treadle.tensor.dtypes import dtype_of
from treadle.tensor.tensor import Tensor, from_node


def send(x: Tensor, to: int, tag: int = 0, group: Group | None = None) -> Tensor:
    """Give `x` to the rank `to` (of a group), which calls `recv` for it. Nothing is waited for:
    several sends and receives may be under way.

    The result is 0. Where `x` requires gradients, it is how they come back: call its `backward()`,
    or add it to the loss, on each rank that sends; the receiver passes `requires_grad=True`.
    """
    group = group_for("send", x, group)
    check_rank("send", "to", to, group)
    _check_other("send", to, group)
    end: Tensor = _Send.apply(x, group, to, tag)
    return end


def recv(
    like: Tensor | tuple[int, ...],
    source: int,
    *,
    dtype: Any = None,
    device: str | Device | None = None,
    tag: int = 0,
    group: Group | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """What the rank `source` (of a group) sends: a tensor of the shape, dtype and device of `like`,
    or of a shape that is given with a dtype (float32 if it is None) and a device (the default one).

    With `requires_grad=True` a backward pass sends the gradient to the rank it came from, where
    the result of `send` waits for it.
    """
    if isinstance(like, Tensor):
        shape, kind, where = like.shape, like.dtype, like.device
    else:
        shape = tuple(like)
        kind = dtypes.float32 if dtype is None else dtype_of(dtype)
        where = default_device() if device is None else find_device(device)
    group = current() if group is None else group
    check_rank("recv", "source", source, group)
    _check_other("recv", source, group)
    request = Request("recv", kind, shape, peer=source, tag=tag)
    if not requires_grad:
        return received(group, request, where)
    source_of_histories = zeros((), dtype=kind, device=where).requires_grad_()
    made: Tensor = _Receive.apply(source_of_histories, group, request)
    return made


def _check_other(name: str, rank: int, group: Group) -> None:
    if rank == group.rank:
        raise ValueError(f"{name} is between two ranks, and rank {rank} is this one")


def received(group: Group, request: Request, device: Device) -> Tensor:
    """Start a receive, without a gradient."""
    assert request.shape is not None
    return from_node(transferred(group, request, None, request.shape, device))


def sent(group: Group, x: Tensor, to: int, tag: int = 0) -> None:
    """Start a send, without a gradient."""
    request = Request("send", x.dtype, x.shape, peer=to, tag=tag)
    transferred(group, request, x.detach()._node, (0,), x.device)


def _check_first() -> None:
    """The other rank does not know that a backward pass is to be differentiated."""
    if recording.get():
        raise AutogradError(
            "send and recv have first derivatives alone: call backward() without create_graph"
        )


class _Send(Function):
    """Its result stands for what the other rank makes of the tensor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, to: int, tag: int) -> Tensor:
        ctx.group, ctx.device = group, x.device
        ctx.request = Request("recv", x.dtype, x.shape, peer=to, tag=tag)
        sent(group, x, to, tag)
        return zeros((), dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        _check_first()
        return received(ctx.group, ctx.request, ctx.device), None, None, None


class _Receive(Function):
    @staticmethod
    def forward(ctx: Any, beginning: Tensor, group: Group, request: Request) -> Tensor:
        ctx.group, ctx.request = group, request
        return received(group, request, beginning.device)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        _check_first()
        sent(ctx.group, g, ctx.request.peer, ctx.request.tag)
        return None, None, None
