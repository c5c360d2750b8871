"""The work of a trace by kinds, and the properties that decide whether it may run elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.sizes import valued
from treadle.graph.fused import FusedKernel
from treadle.graph.node import Node
from treadle.graph.program import Kind
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.launch_records import LaunchRecord
from treadle.runtime.profile.records import amount_of
from treadle.runtime.traced_graph import LibraryWork

_DENSE = 2.0  # operations for each byte, from which on they count

Amounts = list[tuple[str, float]]


class ObservedCall(NamedTuple):
    """A call of the kernel library: its amounts, if its kind is known, the dtypes of its arrays,
    and the launches that it made: from one number to another."""

    amounts: Amounts
    dtypes: frozenset[str]
    first: int
    end: int


class CallObserver:
    """Runs calls of the kernel library while a function is traced, and records what they do."""

    def __init__(self) -> None:
        self.calls: list[ObservedCall] = []

    def __call__(self, node: Node, arrays: Sequence[DeviceArray]) -> None:
        """Run a call."""
        launches = node.device.default_stream.capturing
        first = 0 if launches is None else len(launches)
        name = node.detail.name
        amounts_of = _CALLS.get(name) or _CALLS.get(name.partition("_")[0], _unknown)
        amounts = amounts_of(node)
        dtypes = frozenset(each.dtype.short for each in (node, *node.sources))
        node.detail.run(node, arrays)
        if launches is not None:
            self.calls.append(ObservedCall(amounts, dtypes, first, len(launches)))


def _unknown(node: Node) -> Amounts:
    """Nothing: the launches tell."""
    return []


def _sort(node: Node) -> Amounts:
    return [("sort", _elements(node.sources[0]))]


def _convolution(node: Node) -> Amounts:
    return [("convolution", 2.0 * _elements(node) * _window(node.sources[1]))]


def _transposed(node: Node) -> Amounts:
    return [("convolution", 2.0 * _elements(node.sources[0]) * _window(node.sources[1]))]


def _convolution_weights(node: Node) -> Amounts:
    return [("convolution", 2.0 * _elements(node.sources[1]) * _window(node))]


def _attention(node: Node) -> Amounts:
    p = node.detail.options[-1]
    *shape, queries, keys, depth, width = valued((*p.shape, p.queries, p.keys, p.depth, p.width))
    return [("product", 2.0 * math.prod(shape) * queries * keys * (depth + width))]


def _elements(node: Node) -> float:
    return float(math.prod(valued(node.shape)))


def _window(weight: Node) -> float:
    """The elements of a convolution's weights for one channel."""
    return float(math.prod(valued(weight.shape)[1:]))


# By the names of the library's functions, or by the first words of these.
_CALLS: dict[str, Callable[[Node], Amounts]] = {
    "sort": _sort,
    "argsort": _sort,
    "convolve": _convolution,
    "convolve_transposed": _transposed,
    "weight_gradient": _convolution_weights,
    "attend": _attention,
}


class Recorded(NamedTuple):
    """What recorded launches on a device do: amounts by kinds, their number, and the short names of
    the dtypes that they compute with. `size` is the arguments' bytes."""

    amounts: Amounts
    launches: int
    dtypes: frozenset[str]
    device: Device
    size: int


def recorded(
    used: Sequence[object], calls: Sequence[ObservedCall], device: Device, size: int
) -> Recorded:
    """What the launches of a recording do."""
    amounts: Amounts = []
    dtypes: set[str] = set()
    within: set[int] = set()  # launches of calls, with arrays of the library's own
    known: set[int] = set()  # those whose amounts are the call's
    for call in calls:
        dtypes |= call.dtypes
        within.update(range(call.first, call.end))
        if call.amounts:
            amounts += call.amounts
            known.update(range(call.first, call.end))
    launches = 0
    for number, each in enumerate(used):
        if isinstance(each, LibraryWork):
            found = _of_library(each)
        elif isinstance(each, LaunchRecord):
            found = _of_launch(each)
            if number not in within:
                dtypes |= _dtypes_of(each)
        else:
            continue
        launches += 1
        if number not in known:
            amounts += found
    return Recorded(amounts, launches, frozenset(dtypes), device, size)


def _of_library(work: LibraryWork) -> Amounts:
    if work.operations is not None:
        return [("product", float(work.operations))]
    return [("elementwise", float(work.bytes or 0))]


def _of_launch(launch: LaunchRecord) -> Amounts:
    amount = amount_of(launch)
    definition = launch.definition
    moved, operations = float(amount.bytes or 0), float(amount.operations or 0)
    if not isinstance(definition, FusedKernel):
        return [("elementwise", moved)]
    if definition.program.kind == Kind.PRODUCT:
        return [("product", operations)]
    kind = "elementwise" if definition.program.kind == Kind.MAP else "reduction"
    if operations < _DENSE * moved:  # the memory decides
        return [(kind, moved)]
    return [(kind, moved), ("arithmetic", operations)]


def _dtypes_of(launch: LaunchRecord) -> set[str]:
    arrays = [each for each in launch.values if isinstance(each, DeviceArray)]
    found = {each.dtype.short for each in arrays if isinstance(each.dtype, DType)}
    if isinstance(launch.definition, FusedKernel):
        found.update(step.type for step in launch.definition.program.steps)
    return found


def size_of(arrays: Sequence[Any]) -> int:
    """The bytes of arrays: NumPy's, tensors or a device's."""
    return sum(math.prod(each.shape) * each.dtype.itemsize for each in arrays)
