"""A function of tensors, traced once and replayed: what `td.compile` makes."""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from treadle.core import forks
from treadle.core.errors import LaunchError
from treadle.core.recent_cache import RecentCache
from treadle.graph.explain import Explanation
from treadle.graph.history import placing
from treadle.graph.placeholders import within
from treadle.graph.realize import watchers
from treadle.runtime import settings
from treadle.runtime.devices import Device, default_device, known_default
from treadle.tensor.compiled import gradients, tracing
from treadle.tensor.compiled.arguments import Arguments
from treadle.tensor.compiled.code_origin import is_package_file
from treadle.tensor.compiled.dependencies import asks_for_types
from treadle.tensor.compiled.entries import Entry, explained
from treadle.tensor.compiled.guards import (
    MISSING,
    PASSED,
    Guard,
    checker,
    is_held,
    is_number,
    now,
)
from treadle.tensor.compiled.impure_functions import CLOCKS
from treadle.tensor.compiled.python_calls import in_python
from treadle.tensor.compiled.replay_check import checked, names_of
from treadle.tensor.compiled.size_guards import Numbers, SizeGuards, Symbols
from treadle.tensor.compiled.sizes_seen import MOST_SIZES, SizesSeen, parameters_of
from treadle.tensor.compiled.structure import is_array, named_leaves
from treadle.tensor.compiled.trace import Trace
from treadle.tensor.compiled.tracing import SizesRefused, Split, Tracing
from treadle.tensor.tensor import Tensor

if TYPE_CHECKING:
    from treadle.tensor.compiled.placement import Placement

_MOST_TRACES = 64  # of a function; the least recently used is dropped first
_MOST_STRUCTURES = 128  # whose sizes are remembered
_MANY_VALUES = 8  # of a number, each with a trace of its own
_MANY_CHANGES = 3  # consecutive calls that changed what they read; caches are filled by then
_MOST_NAMES = 4  # in warnings after one trace

_ADVICE = "Pass it as an argument, or keep it as it is"

_locks: dict[Device, threading.RLock] = {}


class Compiled:
    """A function compiled by `td.compile`; it is called like the function."""

    _traced_inside = "_function"  # what traces of other functions look at in its place

    def __init__(
        self,
        function: Callable[..., Any],
        device: Device | None,
        strict: bool,
        dynamic: bool | None,
        places: bool = False,
        guarded: bool = True,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name: str = getattr(function, "__qualname__", type(function).__name__)
        self._device = device
        self._strict = strict
        self._dynamic = dynamic
        self._guarded = guarded
        # Why sizes get no symbols.
        code = getattr(function, "__code__", None)
        self._fixed = f"{self._name} asks whether a type is int" if asks_for_types(code) else ""
        # By the structure of arguments.
        self._sizes: RecentCache[tuple[Any, ...], SizesSeen] = RecentCache(_MOST_STRUCTURES)
        # By the key of arguments, or by their structure for traces with symbols; the most recently
        # used first.
        self._traces: OrderedDict[tuple[Any, ...], list[Entry]] = OrderedDict()
        self._values: dict[str, set[Any]] = {}  # of numbers among the arguments
        self._unsteady: Counter[tuple[Any, ...]] = Counter()  # runs that changed what they read
        self._objects: dict[str, list[Any]] = {}  # of the arguments
        self._changes: Counter[str] = Counter()  # of values that are not numbers, by name
        self._warned = False
        self._warnings: set[str] = set()
        self._lock = forks.lock()
        self._placement: Placement | None = None
        if places:  # 70 modules that no other function needs
            from treadle.tensor.compiled.placement import Placement

            self._placement = Placement(function, self._name)

    @property
    def traces(self) -> int:
        """The number of traces, and of kinds of arguments without one because of a `Split`."""
        return sum(map(len, self._traces.values()))

    def clear(self) -> None:
        """Drop the traces and release their memory. The next call traces anew."""
        with self._lock:
            self._drop(0)
            self._sizes.clear()
            for each in (self._unsteady, self._values, self._objects, self._changes):
                each.clear()
            if self._placement is not None:
                self._placement.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or replay its trace for such arguments."""
        if self._placement is not None:
            return self._placement.call(self, args, kwargs)
        return self.run(args, kwargs)

    def trace_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Trace | Split | None:
        """What a call would replay on the default device, or on that of the tensors; a `Split` if
        its Python would run, None if it would be traced."""
        arguments = Arguments(self._name, args, kwargs, self._device)
        for entry in list(self._traces.get(arguments.key, ())):
            if entry.fits():
                return entry.found
        for entry in list(self._traces.get(arguments.structure, ())):
            sizes = entry.sizes
            if sizes is not None and sizes.numbers(arguments.sizes) is not None and entry.fits():
                return entry.found
        return None

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function, or replay its trace, on the device of the arguments."""
        if tracing.is_tracing.get() or within.get() is not None:
            return self._function(*args, **kwargs)
        arguments = Arguments(self._name, args, kwargs, self._device)
        device, key = arguments.device, arguments.key
        if device.is_capturing:  # it becomes a part of the user's graph
            return self._function(*args, **kwargs)
        if device.default_stream.capturing is not None:  # another thread traces a function
            return in_python(self._function, arguments)
        if arguments.overlap():
            self._refuse("two of its arguments are the same memory of another library")
            return in_python(self._function, arguments)
        if arguments.require_gradients():  # a replay makes no histories
            self._refuse("its arguments require gradients, which a replay does not go on with")
            return in_python(self._function, arguments)
        lock = _locks.get(device) or _locks.setdefault(device, forks.lock())
        with lock, self._lock:
            entries = self._traces.get(key)
            found = None if entries is None else self._fitting(key, entries)
            numbers: Numbers = ((), ())
            if found is None:
                symbols: Symbols | None = None
                if self._dynamic is not False:
                    key = arguments.structure
                    other = self._fitting_sizes(key, arguments.sizes)
                    if other is None:
                        seen = self._seen(arguments)
                        symbols = self._symbols(seen, arguments)
                        if seen.is_over:
                            return self._in_python(arguments)
                    else:
                        found, numbers = other
                if found is None:
                    return self._trace(arguments, symbols)
            if type(found) is Trace:
                if settings.check_compiled:
                    names = names_of(self._traces[key][0].guards)
                    replay = functools.partial(found.run, arguments, numbers=numbers)
                    return checked(self._name, found, replay, self._function, arguments, names)
                return found.run(arguments, numbers=numbers)
        return self._in_python(arguments)

    def _in_python(self, arguments: Arguments) -> Any:
        """Call the function's Python, if that may run on this device."""
        if self._placement is not None:
            self._placement.running_python()
        return in_python(self._function, arguments)

    def _seen(self, arguments: Arguments) -> SizesSeen:
        """What sizes such arguments had in calls for which there was no trace."""
        seen = self._sizes.get(arguments.structure)
        if seen is None:
            seen = self._sizes[arguments.structure] = SizesSeen(self._dynamic is True)
        seen.add(arguments.sizes)
        return seen

    def _symbols(self, seen: SizesSeen, arguments: Arguments) -> Symbols | None:
        """Symbols for the sizes that vary; None where none does, or where there are to be none."""
        positions = seen.varying(arguments.sizes)
        if not positions:
            return None
        why = self._fixed or (
            "" if arguments.device.traits.changes_recordings
            else f"recordings of {arguments.device.id} do not change"
        )  # fmt: skip
        if why:
            self._count_sizes(seen, why)
            return None
        parameters = parameters_of(self._function)
        return Symbols(arguments.sizes, positions, seen.earlier, arguments.size_names(parameters))

    def _fitting_sizes(
        self, structure: tuple[Any, ...], sizes: tuple[int, ...]
    ) -> tuple[Trace | Split, Numbers] | None:
        """The trace with symbols for such arguments whose guards hold, and the numbers that it
        needs."""
        entries = self._traces.get(structure)
        if entries is None:
            return None
        self._traces.move_to_end(structure)
        near: list[Entry] = []
        for entry in entries:
            assert entry.sizes is not None
            numbers = entry.sizes.numbers(sizes)
            if numbers is None:
                continue
            if entry.fits():
                if entry is not entries[0]:
                    entries.remove(entry)
                    entries.insert(0, entry)
                return entry.found, numbers
            near.append(entry)
        if near:
            self._drop_over(structure, near)
        else:
            self._notice_sizes(structure, entries[0], sizes)
        return None

    def _notice_sizes(
        self, structure: tuple[Any, ...], entry: Entry, sizes: tuple[int, ...]
    ) -> None:
        """Count the traces that sizes needed; explain why the most recently used does not fit."""
        assert entry.sizes is not None
        why = entry.sizes.why_not(sizes)
        if watchers:
            sys.stderr.write(
                f"treadle: {self._name}, which is compiled, needs another trace: its guard {why} "
                "does not hold\n"
            )
        seen = self._sizes.get(structure)
        if seen is not None and not entry.sizes.is_for_less_memory(sizes):
            self._count_sizes(seen, f"the guard {why} does not hold")

    def _count_sizes(self, seen: SizesSeen, why: str) -> None:
        """Count a trace that other sizes needed."""
        seen.traces += 1
        if seen.is_over and self._dynamic is None:
            self._warn_of_many(
                f"was traced {MOST_SIZES} times for other sizes: for more of them its Python "
                f"runs ({why}). dynamic=True does the same without a warning, dynamic=False "
                "traces all; a tensor without axes, td.asarray(value), has one trace for all values"
            )

    def _fitting(self, key: tuple[Any, ...], entries: list[Entry]) -> Trace | Split | None:
        """The trace for such arguments whose guards hold."""
        self._traces.move_to_end(key)
        for entry in entries:
            if entry.fits():
                if entry is not entries[0]:
                    entries.remove(entry)
                    entries.insert(0, entry)
                return entry.found
        self._drop_over(key, list(entries))
        return None

    def _drop_over(self, key: tuple[Any, ...], near: list[Entry]) -> None:
        """Explain why none of some traces fits, and drop those that never will again."""
        entries = self._traces[key]
        closest = max(near, key=Entry.held).changed()
        if closest is not None:
            self._notice_change(closest)
        for entry in near:
            if entry.is_over():
                entries.remove(entry)
                entry.release()
        if not entries:
            del self._traces[key]

    def _trace(self, arguments: Arguments, symbols: Symbols | None) -> Any:
        """Trace a call."""
        placement, found = self._placement, None
        started = None if placement is None else placement.starting()
        try:
            with tracing.lock:
                run = Tracing(self._name, self._function, arguments, symbols, self._guarded)
                try:
                    result, found = run.run()
                except SizesRefused as refused:
                    self._fix(str(refused))
                else:
                    if run.dependencies.asks_for_types:
                        self._fix(f"{run.dependencies.asks_for_types} asks whether a type is int")
        finally:
            if placement is not None:
                placement.traced(started, found)
        if self._fixed and symbols is not None:
            run.dependencies.forget()
            return self._in_python(arguments)
        try:
            if found is not None:
                self._keep(arguments, run, found)
        finally:
            run.dependencies.forget()
        return result

    def _fix(self, why: str) -> None:
        """Trace with the sizes of calls from here on, not with symbols."""
        if not self._fixed:
            self._fixed = why
            if watchers:
                sys.stderr.write(
                    f"treadle: {self._name}, which is compiled, has a trace for each size: {why}\n"
                )

    def _keep(self, arguments: Arguments, run: Tracing, found: Trace | Split) -> None:
        """Keep a trace with its guards, if these still hold after the run."""
        key = arguments.key if run.sizes is None else arguments.structure
        dependencies = run.dependencies
        always = _always() if self._guarded else []
        guards = [*dependencies.guards, *always]
        check = checker(guards)
        failed = check()
        is_trace = isinstance(found, Trace)
        if failed != PASSED or (run.escaped and dependencies.fills_caches):
            self._unsteady[key] += 1
            changed = guards[failed] if failed != PASSED else None
            if isinstance(found, Trace):
                found.release()
                if self._unsteady[key] < _MANY_CHANGES:
                    if changed is not None and isinstance(changed.value, Tensor):
                        self._warn_of_kept(run.escaped)  # that is not how caches fill
                    return
                why = f"it changes {changed.name if changed else 'a cache'}, which it reads"
                found = Split(why, "")
                advice = _ADVICE if changed is None else _advice(changed)
                self._warn(f"{why}: its Python runs at every call. {advice}")
            guards = always
            check = checker(guards)
        elif is_trace:
            self._unsteady.pop(key, None)
            self._warn_of_trace(run)
        if not is_trace:
            self._warn_of_python(found)
        self._notice(arguments)
        if run.sizes is not None:
            self._drop_smaller(key, run.sizes)
        self._drop(_MOST_TRACES - 1)
        self._traces.setdefault(key, []).insert(0, Entry(check, guards, found, run.sizes))
        self._traces.move_to_end(key)

    def _drop_smaller(self, structure: tuple[Any, ...], sizes: SizeGuards) -> None:
        """Drop traces in whose place another is, which has more room."""
        entries = self._traces.get(structure)
        for entry in list(entries or ()):
            assert entries is not None
            assert entry.sizes is not None
            if entry.sizes.is_for_less_memory(sizes.sizes) and sizes.numbers(entry.sizes.sizes):
                entries.remove(entry)
                entry.release()
        if entries == []:
            del self._traces[structure]

    def _warn_of_trace(self, run: Tracing) -> None:
        """Warn of effects that replays do not repeat, and of values that they do not read again."""
        self._warn_of_kept(run.escaped)
        for name, what in list(run.dependencies.unreachable.items())[:_MOST_NAMES]:
            advice = "Pass what it needs of it as an argument, or as a tensor"
            if name.removeprefix("time.") in CLOCKS:
                advice = "Take the time around the call, or pass it as a tensor"
            self._warn(
                f"it uses {name}, {what}: a replay goes on with what was found there when it "
                f"was traced. {advice}"
            )
        for name, where in run.dependencies.measured.items():
            self._warn(
                f"it takes the time by {name} at {where}: a replay does not. Take it around the "
                "call",
                is_refused=False,
            )

    def _warn_of_kept(self, count: int) -> None:
        if not count:
            return
        self._warn(
            f"keeps {count} of the tensors that it makes outside of itself, as in "
            "self.x = y: a replay does not do that again. Return them, or write into tensors "
            "that exist: self.x[...] = y"
        )

    def _warn_of_python(self, split: Trace | Split) -> None:
        """Warn of a function that is not replayed."""
        if isinstance(split, Split) and split.why == gradients.RESULTS:
            self._warn(
                "gives tensors that require gradients, which a replay would not have: its Python "
                "runs at every call. Compile the whole step, with backward() and the optimizer, "
                "or call it within td.no_grad()"
            )
        self._refuse(str(split))

    def _refuse(self, why: str) -> None:
        """LaunchError if strict, for a function that is not replayed."""
        if self._strict:
            raise LaunchError(
                f"{self._name} is compiled, and cannot be replayed: {why} (strict=True refuses it)"
            )

    def _warn(self, what: str, is_refused: bool = True) -> None:
        """Warn once of a fact that makes replays impossible or doubtful; LaunchError if strict."""
        text = f"{self._name} is compiled, and {what}"
        if self._strict and is_refused:
            raise LaunchError(f"{text} (strict=True refuses it)")
        if what not in self._warnings:
            self._warnings.add(what)
            warnings.warn(text, stacklevel=_users_level())

    def _warn_of_many(self, what: str) -> None:
        """Warn of a value that repeatedly needs new traces, but only of the first one."""
        if self._strict or not self._warned:
            self._warned = True
            self._warn(what)

    def _drop(self, most: int) -> None:
        while self.traces > most:
            key, entries = next(iter(self._traces.items()))
            entries.pop().release()
            if not entries:
                del self._traces[key]

    def _notice_change(self, guard: Guard) -> None:
        """Explain why the most recently used trace does not fit, and warn of a value that changes
        often."""
        value = now(guard)
        if watchers:
            sys.stderr.write(
                f"treadle: {self._name}, which is compiled, needs another trace: "
                f"{guard.name} has changed\n"
            )
        if type(value) is int or type(value) is float:
            for each in (guard.value, value):
                if type(each) is int or type(each) is float:
                    self._count(f"the variable {guard.name}", each)
            return
        self._changes[guard.name] += 1
        if self._changes[guard.name] >= _MANY_VALUES:
            self._warn_of_many(
                f"needed another trace {self._changes[guard.name]} times because {guard.name} had "
                f"changed. {_advice(guard)}"
            )

    def _notice(self, arguments: Arguments) -> None:
        """Warn of an argument that has a trace for each of its values."""
        symbolic = self._dynamic is not False and arguments.device.traits.changes_recordings
        for name, argument in arguments.named():
            for path, value in named_leaves(name, argument):
                kind = type(value)
                if kind is int and symbolic:
                    continue
                if kind is int or kind is float or kind is str:
                    self._count(f"its argument {path}", value)
                elif kind is not bool and value is not None and not is_array(value):
                    self._count_objects(path, value)

    def _count(self, what: str, value: float | str) -> None:
        seen = self._values.setdefault(what, set())
        if len(seen) < _MANY_VALUES or self._strict:
            seen.add(value)
            if len(seen) >= _MANY_VALUES:
                advice = "Use a tensor without axes, td.asarray(value)"
                if isinstance(value, str):
                    advice = "Leave it out of what is compiled, or keep to few"
                self._warn_of_many(
                    f"was traced for {len(seen)} values of {what}, the last one {value!r}: each "
                    f"takes a trace of its own. {advice}"
                )

    def _count_objects(self, path: str, value: Any) -> None:
        """Count an object that has a trace; warn if there are many and each was made for one call.
        (Objects such as a model's layers are held by others.)"""
        seen = self._objects.setdefault(path, [])
        if self._warned and not self._strict:
            seen.clear()
            return
        if any(each is value for each in seen):
            return
        seen.append(value)
        if len(seen) < _MANY_VALUES:
            return
        objects, self._objects[path] = seen, []
        gone = [at for at in range(len(objects) - 1) if not is_held(objects[at], objects)]
        if len(gone) >= _MANY_VALUES // 2:
            name = getattr(value, "__qualname__", None) or type(value).__name__
            self._warn_of_many(
                f"was traced for {len(objects)} objects as its argument {path}, the last one "
                f"{name}, which were made for a call each: each takes a trace of its own. "
                "Make it once, outside of the call"
            )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def _explained(self) -> Explanation:
        """The traces and their guards of sizes, for `td.explain`."""
        traces = explained(repr(self)[1:-1], self._fixed, self._traces)
        if self._placement is None:
            return traces
        return Explanation(f"{self._placement.explained()}\n{traces}")

    def __repr__(self) -> str:
        count = self.traces
        text = f"{count} trace{'' if count == 1 else 's'}"
        found = [each.found for entries in self._traces.values() for each in entries]
        splits = [each for each in found if isinstance(each, Split)]
        if splits:
            text += f", {len(splits)} of them run in Python: {splits[-1]}"
        return f"<compiled {self._name}: {text}>"


def _users_level() -> int:
    """The `stacklevel` of the first frame of the user's code."""
    level, frame = 1, sys._getframe(2)
    found: types.FrameType | None = frame
    while found is not None and is_package_file(found.f_code.co_filename):
        level, found = level + 1, found.f_back
    return level + 1


def _advice(guard: Guard) -> str:
    """Advice for a value that changes."""
    kept = guard.objects[0] if guard.value is MISSING else guard.value
    if isinstance(kept, Tensor):
        return "Keep the tensor, and write into it (x[...] = y)"
    if type(kept) is bool:
        return "Set it before the call, or back at the end of the function"
    if is_number(kept):
        return "Let it be a tensor, and write into that (x[...] = y)"
    return _ADVICE


def _always() -> list[Guard]:
    """Guards that every trace has."""
    name, structure = "an optimizer or a scaler", tracing.training_structure
    found = [
        Guard("{0}[0] == {1}", (structure, structure[0]), name, is_replaced=True),
        Guard("{0}() is {1}", (placing.get, placing.get()), "anomaly detection"),
    ]
    default = known_default()
    if default is not None:  # else the function has not asked for it
        found.append(Guard("{0}() is {1}", (default_device, default), "the default device"))
    return found
