"""The launches that a kernel queued: the host reads their records and launches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treadle.core.errors import LaunchError
from treadle.cuda_cpp.pointer_records import Raw
from treadle.cuda_cpp.program import QueuedKernel
from treadle.ir.types import Type, leaves, size_of
from treadle.lang.types import numpy_dtype
from treadle.runtime.arrays import DeviceArray

COUNT, QUEUE = "__treadle_launch_count", "__treadle_launch_queue"
_WORDS = 64  # of a record, as in source/library/launch.cuh
_HEAD = 8

Launch = Callable[[QueuedKernel, Any, Any, int, list[Any]], None]


def launch_queued(
    name: str,
    count: DeviceArray,
    queue: DeviceArray,
    queued: Sequence[QueuedKernel],
    arrays: Sequence[Any],
    launch: Launch,
) -> None:
    """Launch what a kernel queued, in the order of its records, with pointers into `arrays`."""
    if count.device.default_stream.capturing is not None:
        raise LaunchError(
            f"kernel {name} launches kernels, which the host reads from memory, so a graph cannot "
            "record it"
        )
    number = int(count.to_host().reshape(-1)[0])
    if not number:
        return
    count.upload(np.zeros(count.shape, np.uint32))
    most = queue.size // _WORDS
    if number > most:
        raise LaunchError(f"kernel {name} launched {number:,} kernels, and {most:,} fit its queue")
    words = queue.view((number * _WORDS,), (1,), queue.offset).to_host().reshape(number, _WORDS)
    for record in words:
        kernel = queued[int(record[0])]
        grid, block = (tuple(int(one) for one in record[at : at + 3]) for at in (1, 4))
        launch(kernel, grid, block, int(record[7]), _arguments(kernel, record[_HEAD:], arrays))


def _arguments(kernel: QueuedKernel, words: Any, arrays: Sequence[Any]) -> list[Any]:
    made: list[Any] = []
    at = 0
    for type in kernel.types:
        if type is None:
            offset, which = int(words[at]), int(words[at + 1])
            made.append(_pointed(arrays[which - 1], offset) if which else None)
            at += 2
            continue
        made.append(_value(type, words[at:]))
        at += 2 * len(leaves(type))
    return made


def _value(type: Type, words: Any) -> Any:
    raw = np.zeros(size_of(type), np.uint8)
    for number, (offset, leaf) in enumerate(leaves(type)):
        pair = words[2 * number : 2 * number + 2]
        dtype = numpy_dtype(leaf)
        if leaf.bits == 64:
            one = np.frombuffer(pair.tobytes(), dtype)
        elif leaf.is_float:
            one = np.frombuffer(pair[:1].tobytes(), np.float32).astype(dtype)
        else:
            one = pair[:1].astype(dtype)
        raw[offset : offset + dtype.itemsize] = np.frombuffer(one.tobytes(), np.uint8)
    found = np.frombuffer(raw.tobytes(), numpy_dtype(type))
    return found[0].item() if found.dtype.names is None and found.ndim == 1 else found[0]


def _pointed(array: Any, offset: int) -> Any:
    """An array from a place on, in bytes."""
    if isinstance(array, Raw):
        return replace(array, array=_pointed(array.array, offset))
    if isinstance(array, np.ndarray):
        flat: Any = array.reshape(-1)
        return flat[_steps(offset, array.dtype.itemsize) :]
    whole = array.__treadle_array__()
    steps = _steps(offset, whole.dtype.itemsize)
    return whole.view((max(whole.size - steps, 0),), (1,), whole.offset + steps)


def _steps(offset: int, size: int) -> int:
    if offset % size:
        raise LaunchError(
            f"a kernel passed a pointer that is {offset} bytes into an array of {size}-byte "
            "elements to another one: it must point to an element"
        )
    return offset // size
