"""Computing nodes: memory for the results, launches in order, and what a write must wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from treadle.graph import node as kinds
from treadle.graph.fused import Fused
from treadle.graph.groups import Group
from treadle.graph.node import Node
from treadle.graph.program import Program
from treadle.graph.schedule import Plan, pending_readers
from treadle.runtime import memory
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.memory import Storage

_lock = threading.RLock()
_programs: dict[Device, dict[Program, Fused]] = {}
# Called with each group before it runs, for those who want to see (`TREADLE_EXPLAIN`).
watchers: list[Callable[[Group], None]] = []


def realize(nodes: Iterable[Node]) -> None:
    """Compute nodes, and forget what they were made of. Launches only; nothing is waited for."""
    with _lock:
        pending = [node for node in nodes if node.array is None]
        if not pending:
            return
        groups = Plan(pending).groups()
        groups.reverse()
        while groups:
            # Nothing else may hold a group while it runs: what its sources need goes back to the
            # pool as soon as their last reader was launched.
            _run(groups.pop())


def _run(group: Group) -> None:
    node = group.node
    if node.array is not None:
        return
    for watch in watchers:
        watch(group)
    arrays = [leaf.whole_array for leaf in group.leaves]
    if group.program is None:
        compute: Any = node.detail
        node.become(compute(*arrays))
        return
    if node.op == kinds.WRITE:
        target = arrays[-1]
        if target.key.read_only:
            raise ValueError("this tensor is memory that may only be read: copy it first")
    else:
        target = DeviceArray.allocate(node.device, node.dtype, node.shape)
        arrays.append(target)
    if group.integers and 0 not in _kept_extents(group):
        fused_for(node.device, group.program).run(arrays, group.integers, _flat(group.scalars))
    node.become(target)


def _kept_extents(group: Group) -> tuple[int, ...]:
    assert group.program is not None
    return group.integers[: group.program.kept]


def _flat(scalars: tuple[Any, ...]) -> tuple[Any, ...]:
    """Complex numbers as two."""
    if not any(isinstance(value, complex) for value in scalars):
        return scalars
    found: list[Any] = []
    for value in scalars:
        found += [value.real, value.imag] if isinstance(value, complex) else [value]
    return tuple(found)


def fused_for(device: Device, program: Program) -> Fused:
    """A program's kernels on a device."""
    known = _programs.get(device)
    if known is None:
        known = _programs[device] = {}
    found = known.get(program)
    if found is None:
        found = known[program] = Fused(program, device)
    return found


def finish_readers(storage: Storage) -> None:
    """Compute what still has to read memory that is about to be written."""
    found: list[Node] = []
    for reference in storage.readers or ():
        reader = reference()
        if reader is None or reader.array is not None:
            continue
        found += pending_readers(reader) if reader.op == kinds.VIEW else [reader]
    storage.readers = None
    if found:
        realize(found)


memory.finish_readers = finish_readers
