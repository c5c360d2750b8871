"""Python's objects through collectives: pickled, which is for ranks that trust each other."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.distributed import collectives as inner
from treadle.tensor.assembly import concat
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.tensor import Tensor as Inner
from treadle.tensor.tensor import from_numpy
from treadle.torch.distributed.processes import ProcessGroup, get_group_rank, where, world


def _pickled(value: Any) -> np.ndarray[Any, Any]:
    return np.frombuffer(pickle.dumps(value), np.uint8).copy()


def _exchanged(value: Any, members: ProcessGroup) -> list[Any]:
    """The objects of all ranks of a group."""
    own = _pickled(value)
    place = where()
    with no_grad():
        sizes = inner.all_gather(asarray([own.size], device=place), group=members.inner).tolist()
        rest = zeros(max(sizes) - own.size, dtype="uint8", device=place)
        filled = concat([from_numpy(own, place), rest])
        every = inner.all_gather(filled.reshape((1, -1)), group=members.inner).numpy()
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(every, sizes, strict=True)]


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Have each rank's object in a list."""
    members = group or world()
    if members.rank() >= 0:
        object_list[:] = _exchanged(obj, members)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Have each rank's object in a list, on one rank."""
    members = group or world()
    if members.rank() < 0:
        return
    found = _exchanged(obj, members)
    target = get_group_rank(members, dst or 0) if group_dst is None else group_dst
    if members.rank() == target:
        if object_gather_list is None:
            raise ValueError("object_gather_list has the results on the rank dst")
        object_gather_list[:] = found


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects of a list by those of one rank's."""
    members = group or world()
    if members.rank() < 0:
        return
    root = get_group_rank(members, src or 0) if group_src is None else group_src
    own = _pickled(object_list) if members.rank() == root else np.empty(0, np.uint8)
    place = where()
    with no_grad():
        size = int(inner.broadcast(asarray([own.size], device=place), root, members.inner).item())
        given: Inner = (
            from_numpy(own, place) if members.rank() == root
            else zeros(size, dtype="uint8", device=place)
        )  # fmt: skip
        found: Sequence[Any] = pickle.loads(
            inner.broadcast(given, root, members.inner).numpy().tobytes()
        )
    if len(found) != len(object_list):
        raise ValueError(
            f"rank {root} gives {len(found)} objects, for a list of {len(object_list)}"
        )
    object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Have one object of a list of one rank's first in each rank's list."""
    members = group or world()
    if members.rank() < 0:
        return
    root = get_group_rank(members, src or 0) if group_src is None else group_src
    given: list[Any] = [None]
    if members.rank() == root:
        given = [scatter_object_input_list]
    broadcast_object_list(given, group=group, group_src=root)
    found = given[0]
    if found is None or len(found) != members.size():
        raise ValueError(
            f"scatter_object_input_list has an object for each of {members.size()} ranks"
        )
    scatter_object_output_list[0] = found[members.rank()]
