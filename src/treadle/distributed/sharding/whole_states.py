"""Whole states of sharded models, put together from all ranks' parts, and cut again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treadle.autograd.modes import no_grad
from treadle.core.dtypes import DType
from treadle.distributed.collectives import gather_parts
from treadle.distributed.sharding.gathered import Unit
from treadle.distributed.sharding.parts import Flat, Member
from treadle.nn import state
from treadle.nn.module import Module
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor


def members_of(units: Sequence[Unit]) -> Iterator[tuple[Flat, Member]]:
    """All parameters of a sharded model."""
    for unit in units:
        for flat in unit.flats:
            for member in flat.members:
                yield flat, member


def on_host(tensor: Tensor) -> Tensor:
    """A copy in the host's memory."""
    return tensor.to("cpu").clone().realize()


def wholes(flat: Flat, rank: int, pieces: Sequence[Tensor], unit: Unit) -> list[Tensor]:
    """Tensors of which each rank has pieces, as those of the flat array's parameters."""
    dtype = pieces[0].dtype
    assert isinstance(dtype, DType)
    with no_grad():
        own = flat.joined([each.detach() for each in pieces], rank, dtype)
        return flat.wholes(gather_parts(unit.group, own))


def whole_state(
    module: Module, units: Sequence[Unit], kept: Callable[[Tensor], Any]
) -> dict[str, Any]:
    """What `kept` gives for each whole parameter and persistent buffer, by names. One flat array
    after the other is gathered."""
    found: dict[int, Any] = {}
    for unit in units:
        for flat in unit.flats:
            pieces = [each.piece for each in flat.members]
            for member, whole in zip(
                flat.members, wholes(flat, unit.group.rank, pieces, unit), strict=True
            ):
                found[id(member.piece)] = kept(whole)
    parts = state.state_of(module, {}, "", True)
    return {
        name: found[id(value)] if id(value) in found else _kept(value, kept)
        for name, value in parts.items()
    }


def _kept(value: Any, kept: Callable[[Tensor], Any]) -> Any:
    return kept(value.detach()) if isinstance(value, Tensor) else value


def load_whole_state(
    module: Module, units: Sequence[Unit], given: Mapping[str, Any], strict: bool
) -> state.IncompatibleKeys:
    """Take this rank's pieces of whole parameters, and buffers. StateDictError, and nothing was
    changed, if something does not fit."""
    stands = _stand_ins(units)
    before = [[each._cell.value for each in same] for same in stands]
    with _seen(units, stands):
        found = state.load(module, given, strict, False)
    with no_grad():
        flats = [(unit, flat) for unit in units for flat in unit.flats]
        for (unit, flat), same, old in zip(flats, stands, before, strict=True):
            for member, value, was in zip(flat.members, same, old, strict=True):
                if value._cell.value is not was:
                    take(flat, member, unit.group.rank, member.piece, value)
    return found


def load_others(
    module: Module,
    units: Sequence[Unit],
    shapes: Mapping[str, Sequence[int]],
    others: Mapping[str, Any],
) -> None:
    """Take on what a state has besides the parameters. StateDictError, and nothing was changed, if
    it, or parameters of these shapes, do not fit the model."""
    parameters = {name: zeros(tuple(shape), device="cpu") for name, shape in shapes.items()}
    with _seen(units, _stand_ins(units)):
        state.load(module, {**parameters, **others}, True, False)


def _stand_ins(units: Sequence[Unit]) -> list[list[Tensor]]:
    """Whole parameters without elements in memory, for each flat array."""
    return [
        [zeros(each.shape, dtype=flat.dtype, device="cpu") for each in flat.members]
        for unit in units
        for flat in unit.flats
    ]


@contextmanager
def _seen(units: Sequence[Unit], stands: Sequence[Sequence[Tensor]]) -> Iterator[None]:
    """Have the modules see these as their parameters within the block."""
    todo = iter(stands)
    before = [(unit, unit.put([x for _ in unit.flats for x in next(todo)])) for unit in units]
    try:
        yield
    finally:
        for unit, parameters in before:
            unit.put(parameters)


def take(flat: Flat, member: Member, rank: int, piece: Tensor, value: Tensor) -> None:
    """Write a rank's piece of a whole."""
    begin, end = flat.piece(member, rank)
    own = value.detach().reshape((-1,))[begin:end]
    piece.detach()[...] = own.to(device=piece.device, dtype=piece.dtype)
