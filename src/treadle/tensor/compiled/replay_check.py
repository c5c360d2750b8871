"""Checks of replays: a call is replayed and run by Python from the same state, and the results
compared.

For debugging, with `TREADLE_COMPILE_CHECK=1`: it reads all values at every call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from treadle.core.errors import LaunchError
from treadle.graph.realize import finish_readers, realize
from treadle.runtime.arrays import bytes_of
from treadle.tensor.cells import Cell
from treadle.tensor.compiled.arguments import Arguments, Content
from treadle.tensor.compiled.python_calls import in_python
from treadle.tensor.compiled.structure import is_array, named_leaves
from treadle.tensor.compiled.trace import Trace
from treadle.tensor.tensor import Tensor

Host = np.ndarray[Any, Any]


def checked(
    name: str,
    trace: Trace,
    replay: Callable[[], Any],
    function: Callable[..., Any],
    arguments: Arguments,
    names: Mapping[Cell, str],
) -> Any:
    """The function's result, if a replay computes the same; else LaunchError with the names of
    values that differ."""
    state = _State(trace, arguments, names)
    replayed = _leaves(replay()) | state.now()
    state.restore()
    result = in_python(function, arguments)
    computed = _leaves(result) | state.now()
    wrong = [each for each in computed if not _equal(replayed.get(each), computed[each])]
    wrong += [each for each in replayed if each not in computed]
    if wrong:
        raise LaunchError(
            f"{name} is compiled, and a replay does not compute what its Python does: "
            f"{', '.join(wrong[:8])} would differ. Something that the function "
            "reads has changed and has no guard; the arguments and tensors have Python's values now"
        )
    return result


class _State:
    """The state that a call may change: arguments, tensors from outside, gradients, generators."""

    def __init__(self, trace: Trace, arguments: Arguments, names: Mapping[Cell, str]) -> None:
        self._trace = trace
        self._arguments = arguments
        self._cells: dict[Cell, str] = {}
        for number, source in enumerate(arguments.sources):
            if source.data is None:
                self._cells[source.cell] = f"argument memory {number + 1}"
        for cell in trace.outside_cells:
            self._cells.setdefault(cell, names.get(cell, f"a tensor of shape {cell.value.shape}"))
        self._hosts = [(cell, _read(cell)) for cell in self._cells]
        self._data = [(s.data, s.data.copy()) for s in arguments.sources if s.data is not None]
        self._containers = [(each, Content(each)) for each in arguments.containers()]
        self._generators = [(each, each.get_state()) for each in trace.generators]
        self._gradients = [(each.leaf, each.leaf._gradient) for each in trace.gradients]

    def now(self) -> dict[str, Any]:
        """The current state, by name."""
        found: dict[str, Any] = {name: _read(cell) for cell, name in self._cells.items()}
        for number, (data, _) in enumerate(self._data):
            found[f"NumPy array {number + 1} of the arguments"] = data.copy()
        for number, (container, _) in enumerate(self._containers):
            found |= _leaves(container, f"container {number + 1} of the arguments")
        for number, (leaf, _) in enumerate(self._gradients):
            found |= _leaves(leaf._gradient, f"the gradient of leaf {number + 1}")
        for number, (generator, _) in enumerate(self._generators):
            found[f"the state of generator {number + 1}"] = generator.get_state()
        return found

    def restore(self) -> None:
        """Restore the state from before the call."""
        for cell, host in self._hosts:
            _write(cell, host)
        for data, before in self._data:
            data[...] = before
        for container, content in self._containers:
            content.put(container, content.values)
        for generator, position in self._generators:
            generator.set_state(position)
        for leaf, gradient in self._gradients:
            leaf._gradient = gradient


def _read(cell: Cell) -> Host:
    realize((cell.value,))
    return np.array(cell.value.whole_array.to_host())


def _write(cell: Cell, host: Host) -> None:
    realize((cell.value,))
    array = cell.value.whole_array
    if array.size:
        finish_readers(array.storage)
        offset = array.offset * array.dtype.itemsize
        array.device.default_stream.handle.write(array.buffer, offset, bytes_of(host))


def _leaves(value: Any, name: str = "the result") -> dict[str, Any]:
    """The leaves of a nested value, by path; tensors as NumPy arrays."""
    return {
        path: _host(each) if is_array(each) else each for path, each in named_leaves(name, value)
    }


def _host(array: Any) -> Host:
    return np.array(array.numpy() if isinstance(array, Tensor) else array)


def _equal(one: Any, other: Any) -> bool:
    if type(one) is int and type(other) is int:  # it may have been made of sizes
        return one == other
    if not isinstance(other, np.ndarray):
        return one is other or type(one) is type(other)
    if not isinstance(one, np.ndarray) or (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    return _are_close(one, other)


def _are_close(one: Host, other: Host) -> bool:
    """Whether floating numbers differ by no more than the rounding of another order of
    operations."""
    bits = one.dtype.itemsize * 8 // (2 if one.dtype.kind == "c" else 1)
    tolerance = {64: 1e-8, 32: 1e-4}.get(bits, 2e-2)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    left, right = one.astype(wide), other.astype(wide)
    finite = np.abs(right[np.isfinite(right)])
    most = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(left, right, tolerance, tolerance * most, equal_nan=True))


def names_of(guards: Iterable[Any]) -> dict[Cell, str]:
    """The names of the tensors that guards cover."""
    return {
        each: guard.name for guard in guards for each in guard.objects if isinstance(each, Cell)
    }
