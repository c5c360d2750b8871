"""Having the kernels of a plan compiled side by side, before the first of them runs.

The tasks are gone through in order with imagined arrays, which have no memory: whatever would
launch a kernel then only has it compiled, in a thread of its own, and goes on. So a plan with many
new kernels waits about as long as Python needs to lower them, or as one processor's share of the
compilers' time, whichever is longer. The launches themselves, later, wait for their own kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treadle.core import background
from treadle.graph.node import CALL, Node
from treadle.runtime.arrays import DeviceArray

if TYPE_CHECKING:
    from treadle.graph.recipes import Task


def compile_all(tasks: Sequence[Task]) -> None:
    """Begin to compile the kernels of all tasks, of which the last one runs first. What fails here
    fails again where it runs, and raises there."""
    known: dict[Node, DeviceArray] = {}  # the imagined results
    memory: dict[int, DeviceArray] = {}  # and arrays for the buffers of those that are computed

    def imagine(node: Node) -> DeviceArray:
        found = known.get(node)
        if found is None:
            array = node.array
            if array is None:  # what a function of the kernel library will give
                found = DeviceArray.imagined(node.device, node.dtype, node.shape)
            else:
                whole = memory.setdefault(
                    id(array.buffer), DeviceArray.imagined(array.device, array.dtype, ())
                )
                found = DeviceArray(
                    array.device, whole.storage, array.dtype, array.shape, array.strides,
                    array.offset, array.key.read_only,
                )  # fmt: skip
            known[node] = found
        return found

    try:
        for task in reversed(tasks):
            _compile(task, [imagine(leaf) for leaf in task[1]], known)
            background.show_notice()
    finally:
        background.hide_notice()


def _compile(task: Task, arrays: list[DeviceArray], known: dict[Node, DeviceArray]) -> None:
    node, _, constants, integers, _, runner, target, _ = task
    try:
        if node.op == CALL:
            if arrays:
                node.detail.imagine(node, arrays, known)
            return
        if target is None:
            known[node] = arrays[-1]
        else:
            known[node] = DeviceArray.imagined(node.device, node.dtype, node.shape)
            arrays.append(known[node])
        if runner is not None:
            runner.run(arrays, integers, [each.detail for each in constants], [])
    except Exception:  # noqa: BLE001  it reads memory that is not there yet, or cannot be compiled
        return
