"""`td.stencil_loop`: steps of stencils whose arrays change places, recorded once and replayed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from treadle.core.errors import AutogradError, LaunchError, TreadleError, shortened
from treadle.graph.history import recording
from treadle.lang.interpreter_state import state
from treadle.runtime.arrays import ArrayClass
from treadle.runtime.convert import describe, device_of_arguments
from treadle.runtime.devices import Device, default_device
from treadle.runtime.graphs import Graph
from treadle.stencils.analysis import Analysis
from treadle.stencils.array_calls import has_history
from treadle.stencils.decorator import Stencil
from treadle.stencils.parts import Part, period_of, rotate_places
from treadle.stencils.several_steps import several_steps
from treadle.tensor.creation import asarray

_RECORDED = 32  # launches in a recording, about: more save little


class _Steps:
    """The arrays of a loop in their present places, and the launches that are recorded."""

    def __init__(
        self, parts: Sequence[Part], arrays: list[Any], device: Device, together: int | None
    ) -> None:
        self.parts = parts
        self.arrays = arrays
        self.device = device
        self.places = list(range(len(arrays)))  # for each number, which array has its place now
        self._start = list(self.places)
        self._graph: Graph | None = None
        self._unit = 0
        self._several = several_steps(parts, arrays, device, together)

    def array(self, number: int) -> Any:
        """The array that has a place now."""
        return self.arrays[self.places[number]]

    def one(self) -> None:
        """One step."""
        for part in self.parts:
            arguments = list(part.arguments)
            for position, number in part.slots:
                arguments[position] = self.array(number)
            part.stencil(*arguments)
            rotate_places(self.places, part.cycles)

    def run(self, count: int) -> None:
        """Some steps: replayed where there are enough, as they are recorded."""
        while count and self.places != self._start:
            self.one()
            count -= 1
        several = self._several
        last = 0 if several is None or several.keeps else 1  # leaves what was newest before
        size = 1 if several is None else several.steps
        launches = len(self.parts) if several is None else 2
        period = math.lcm(period_of(self.parts, len(self.arrays)), size)
        unit = self._unit or period * max(1, _RECORDED * size // (period * launches))
        # What a graph captures is recorded with it, and the interpreter records nothing.
        records = not state.active and not self.device.is_capturing
        if records and count - last >= (unit if self._graph else 2 * unit):
            if self._graph is None:
                self._record(unit)
            assert self._graph is not None
            while count - last >= unit:
                self._graph.replay()
                count -= unit
        self._some(count - last)
        self._one_by_one(min(last, count))

    def _some(self, count: int) -> None:
        """Some steps, several in a launch where that is faster."""
        several = self._several
        while several is not None and count >= several.steps:
            several.launch([self.array(number) for number in range(len(self.arrays))])
            for _ in range(several.steps):
                for part in self.parts:
                    rotate_places(self.places, part.cycles)
            count -= several.steps
        self._one_by_one(count)

    def _one_by_one(self, count: int) -> None:
        for _ in range(count):
            self.one()

    def _record(self, unit: int) -> None:
        graph = Graph(self.device)
        with graph.capture():
            self._some(unit)
        self._graph, self._unit = graph, unit


def stencil_loop(
    kernel: Stencil | Sequence[tuple[Any, ...]],
    /,
    *arguments: Any,
    steps: int,
    rotate: Sequence[str] | Sequence[Sequence[str]] | None = None,
    every: int | None = None,
    callback: Callable[..., None] | None = None,
    until: Callable[..., Any] | None = None,
    steps_per_launch: int | None = None,
) -> Any:
    """Run a stencil `steps` times, and return the array that was written last.

    After each step the array that was written and the one that was read change places: the first
    array of the call that the stencil does not write, the second one if it writes two, and so on.
    `rotate` names the parameters where there are more, the oldest first: with `rotate=("before",
    "now", "after")` what was `now` is `before` in the next step. A stencil that writes in place
    changes nothing. The steps are recorded once and replayed.

    Instead of a stencil and its arguments, a list of tuples `(stencil, *arguments)` runs one after
    the other in each step. What one of them writes and another one reads is handed on within the
    step, and keeps its place. With `rotate=()` all arrays keep their places; other names are those
    of parameters of one of the stencils, whose arrays change places at the end of the step.

    Every `every` steps (and after the last) `callback(step, array)` is called with the number of
    steps so far and what was written last, and `until(new, old)` with the arrays of the last two
    steps: the loop ends when it is true, as in `until=lambda new, old: td.max(td.abs(new - old)) <
    1e-4`, which is computed on the device. Stencils that write several arrays give them all:
    `callback(step, u, v)`, `until(u, v, old_u, old_v)`, and a tuple is returned.

    Where arrays are larger than the caches, several steps are computed in one launch, part by part,
    with the same results. `steps_per_launch` says how many, 1 for step by step.

    >>> import treadle as td
    >>> @td.stencil(boundary="wrap")
    ... def shift(u, out, pos):
    ...     out[pos] = pos.west(u)
    >>> a = td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")
    >>> td.stencil_loop(shift, a, td.zeros_like(a), steps=3).tolist()
    [2.0, 3.0, 4.0, 1.0]
    """
    steps = _integer("steps", steps, 0)
    every = None if every is None else _integer("every", every, 1)
    if steps_per_launch is not None:
        steps_per_launch = min(_integer("steps_per_launch", steps_per_launch, 1), max(steps, 1))
    for name, function in (("callback", callback), ("until", until)):
        if function is not None and not callable(function):
            raise TypeError(f"stencil_loop: {name} is a function, not {function!r}")
    if every is not None and callback is None and until is None:
        raise ValueError("stencil_loop: every= goes with callback= or until=")
    try:
        return _Loop(kernel, arguments, rotate, steps_per_launch).run(steps, every, callback, until)
    except TreadleError as error:
        raise shortened(error)  # noqa: B904 - it is the same error


def _integer(name: str, value: Any, least: int) -> int:
    """An integer of Python or NumPy from `least` on."""
    found = None if isinstance(value, bool) or not hasattr(value, "__index__") else index(value)
    if found is None or found < least:
        raise ValueError(f"stencil_loop: {name} is an integer from {least} on, not {value!r}")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A stencil with its arguments, of which the arrays are numbered."""

    stencil: Stencil
    arguments: tuple[Any, ...]
    numbers: dict[int, int]
    analysis: Analysis

    @property
    def read(self) -> set[int]:
        """The arrays that it reads before it writes them."""
        outputs = self.analysis.outputs
        return {number for position, number in self.numbers.items() if position not in outputs}


def _part(call: _Call, arrays: Sequence[Any], rotate: Any, handed_on: set[int]) -> Part:
    """A stencil of a step, with the arrays that change places. `handed_on` are those that other
    stencils read."""
    stencil, numbers, analysis = call.stencil, call.numbers, call.analysis
    outputs = [at for at in analysis.outputs if numbers[at] not in handed_on]
    cycles = tuple(
        tuple(numbers[position] for position in cycle)
        for cycle in stencil_cycles(stencil, outputs, analysis.written, numbers, rotate)
    )
    for cycle in cycles:
        _check_alike(stencil, [arrays[number] for number in cycle])
    newest = tuple(_after(numbers[position], cycles) for position in analysis.written)
    return Part(stencil, analysis, call.arguments, tuple(numbers.items()), cycles, newest)


def _parts_of_a_step(calls: Sequence[_Call], arrays: Sequence[Any], rotate: Any) -> list[Part]:
    """Several stencils, after all of which arrays change places. `rotate` names parameters of those
    of the stencils that have all of these names and write the last of them."""
    cycles: list[tuple[int, ...]] = []
    for cycle in [rotate] if all(isinstance(name, str) for name in rotate) else rotate:
        found = []
        for call in calls:
            names, written = call.stencil.body.names, call.analysis.written
            if set(cycle) <= set(names) and names.index(cycle[-1]) in written:
                found += stencil_cycles(call.stencil, (), written, call.numbers, cycle)
                found[-1] = [call.numbers[position] for position in found[-1]]
                _check_alike(call.stencil, [arrays[number] for number in found[-1]])
        if not found:
            raise LaunchError(
                f"rotate={tuple(cycle)!r}: none of the stencils of the loop has all of these "
                f"parameters and writes {cycle[-1]}"
            )
        cycles += [each for each in map(tuple, found) if each not in cycles]
    moved = [number for cycle in cycles for number in cycle]
    if len(set(moved)) < len(moved):
        raise LaunchError("stencil_loop: an array changes places in one cycle of rotate= alone")
    return [
        Part(
            call.stencil, call.analysis, call.arguments, tuple(call.numbers.items()),
            tuple(cycles) if call is calls[-1] else (),
            tuple(_after(call.numbers[position], cycles) for position in call.analysis.written),
        )
        for call in calls
    ]  # fmt: skip


class _Loop:
    """A loop with its arguments on one device."""

    def __init__(
        self, kernel: Any, arguments: tuple[Any, ...], rotate: Any, together: int | None
    ) -> None:
        several = isinstance(kernel, Sequence)
        given = list(kernel) if several else [(kernel, *arguments)]
        if not given or not all(
            isinstance(each, (tuple, list)) and each and isinstance(each[0], Stencil)
            for each in given
        ):
            raise LaunchError(
                "stencil_loop takes a @td.stencil and its arguments, or a list of tuples of these, "
                "as in [(update_h, h, e), (update_e, e, h)]"
            )
        if several and arguments:
            raise LaunchError(
                "stencil_loop: of several stencils each has its arguments in its own tuple"
            )
        every = [value for each in given for value in each[1:]]
        if recording.get() and any(map(has_history, every)):
            raise AutogradError(
                "stencil_loop writes into its arrays, and such steps have no derivative: call the "
                "stencil without its outputs in a loop of Python, as in u = step(u), or run the "
                "loop within td.no_grad() if no gradient is wanted"
            )
        self.device = device_of_arguments(tuple(every)) or default_device()
        self.hosts: dict[int, np.ndarray[Any, Any]] = {}
        self.arrays: list[Any] = []
        self._numbers: dict[int, int] = {}
        calls = [self._call(each[0], tuple(each[1:])) for each in given]
        if several and rotate:
            parts = _parts_of_a_step(calls, self.arrays, rotate)
        else:
            parts = []
            for call in calls:
                # What another stencil reads is handed on to it within the step, and keeps its
                # place.
                read = {number for other in calls if other is not call for number in other.read}
                parts.append(_part(call, self.arrays, rotate, read))
        self.steps = _Steps(parts, self.arrays, self.device, together)

    def _call(self, stencil: Stencil, arguments: tuple[Any, ...]) -> _Call:
        stencil.check_count(arguments)
        placed = list(arguments)
        numbers = {}
        for position, value in enumerate(arguments):
            if isinstance(describe(value)[0], ArrayClass):
                numbers[position] = self._number(value)
                placed[position] = self.arrays[numbers[position]]
        analysis = stencil.analysis_of([describe(value) for value in placed])
        return _Call(stencil, tuple(placed), numbers, analysis)

    def _number(self, value: Any) -> int:
        """The number of an array among those of the loop. NumPy's are copied to the device."""
        known = self._numbers.get(id(value))
        if known is not None:
            return known
        number = self._numbers[id(value)] = len(self.arrays)
        if isinstance(value, np.ndarray) and not state.active:
            self.hosts[number] = value
            value = asarray(value, device=self.device)
        self.arrays.append(value)
        return number

    def run(self, steps: int, every: int | None, callback: Any, until: Any) -> Any:
        """All steps, and what was written last."""
        done = 0
        segment = every or (1 if callback is not None or until is not None else steps)
        while done < steps:
            count = min(segment, steps - done)
            self.steps.run(count)
            done += count
            if callback is not None:
                callback(done, *self._newest())
            if until is not None:
                stops = until(*self._newest(), *self._older())
                if stops is None:
                    raise TypeError("stencil_loop: until returned None: True stops, False goes on")
                if bool(stops):
                    break
        for number, host in self.hosts.items():
            if host.flags.writeable:
                np.copyto(host, self.arrays[number].numpy())
        found = tuple(
            self.hosts.get(self.steps.places[number], self.steps.array(number))
            for number in self._newest_numbers()
        )
        return found[0] if len(found) == 1 else found

    def _newest_numbers(self) -> list[int]:
        return list(dict.fromkeys(number for part in self.steps.parts for number in part.newest))

    def _newest(self) -> list[Any]:
        return [self.steps.array(number) for number in self._newest_numbers()]

    def _older(self) -> list[Any]:
        """What the arrays of cycles were one step before, in the order of the newest."""
        found = []
        for number in self._newest_numbers():
            for part in self.steps.parts:
                for cycle in part.cycles:
                    if number in cycle:
                        older = cycle[(cycle.index(number) + 1) % len(cycle)]
                        found.append(self.steps.array(older))
        return found


def stencil_cycles(
    stencil: Stencil,
    outputs: Sequence[int],
    written: Sequence[int],
    arrays: dict[int, int],
    rotate: Any,
) -> list[list[int]]:
    """The parameters that change places, each cycle with what is written first, then from the
    newest to the oldest."""
    names = stencil.body.names
    if rotate is not None and not isinstance(rotate, (list, tuple)):
        raise TypeError(
            f'rotate= is a tuple of names of arrays, as ("old", "u", "new"), not {rotate!r}'
        )
    if rotate is not None and not rotate:
        return []
    if rotate is None:
        others = [at for at in arrays if at not in written]
        if len(others) < len(outputs):
            raise LaunchError(
                f"{stencil.body.name} writes {len(outputs)} arrays and reads {len(others)} others: "
                "stencil_loop pairs them; say with rotate= which change places"
            )
        return [[at, other] for at, other in zip(outputs, others, strict=False)]
    cycles = [rotate] if all(isinstance(name, str) for name in rotate) else list(rotate)
    found = []
    for cycle in cycles:
        unknown = [name for name in cycle if name not in names or names.index(name) not in arrays]
        if unknown or len(cycle) < 2 or len(set(cycle)) < len(cycle):
            raise LaunchError(
                f"rotate= names arrays of {stencil.body.name}({', '.join(names)}) that change "
                f"places, the oldest first and the one that is written last: not {tuple(cycle)!r}"
            )
        numbers = [names.index(name) for name in reversed(cycle)]
        if numbers[0] not in written:
            raise LaunchError(
                f"rotate={tuple(cycle)!r}: the last one is written, and {stencil.body.name} "
                f"does not write {cycle[-1]}"
            )
        found.append(numbers)
    return found


def _after(number: int, cycles: Sequence[Sequence[int]]) -> int:
    """The place that an array has after a step."""
    for cycle in cycles:
        if number in cycle:
            return cycle[(cycle.index(number) + 1) % len(cycle)]
    return number


def _check_alike(stencil: Stencil, arrays: Sequence[Any]) -> None:
    """Refuse arrays that cannot take each other's places."""
    kinds = {(str(array.dtype), tuple(array.shape)) for array in arrays}
    if len(kinds) > 1:
        texts = " and ".join(sorted(f"{dtype}{list(shape)}" for dtype, shape in kinds))
        raise LaunchError(
            f"the arrays of {stencil.body.name} that change places have one dtype and shape, and "
            f"these are {texts}"
        )
