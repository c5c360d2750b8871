"""`td.compile`: a function of tensors, traced once and replayed."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, overload

from treadle.core import forks
from treadle.core.errors import LaunchError
from treadle.graph.history import placing
from treadle.graph.placeholders import within
from treadle.graph.realize import watchers
from treadle.runtime import settings
from treadle.runtime.devices import Device, default_device
from treadle.runtime.devices import device as find_device
from treadle.tensor.compiled import gradients, tracing
from treadle.tensor.compiled.arguments import Arguments
from treadle.tensor.compiled.code_origin import is_package_file
from treadle.tensor.compiled.guards import (
    MISSING,
    PASSED,
    Guard,
    checker,
    is_alive,
    is_held,
    is_number,
    now,
)
from treadle.tensor.compiled.impure_functions import CLOCKS
from treadle.tensor.compiled.replay_check import checked, names_of
from treadle.tensor.compiled.structure import is_array, named_leaves
from treadle.tensor.compiled.trace import Trace
from treadle.tensor.compiled.tracing import Split, Tracing
from treadle.tensor.tensor import Tensor

_MOST_TRACES = 64  # of a function; the least recently used is dropped first
_MANY_VALUES = 8  # of a number, each with a trace of its own
_MANY_CHANGES = 3  # consecutive calls that changed what they read; caches are filled by then
_MOST_NAMES = 4  # in warnings after one trace

_ADVICE = "Pass it as an argument, or keep it as it is"

_locks: dict[Device, threading.RLock] = {}
_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def compile(
    function: _Function,
    /,
    *,
    dynamic: bool | None = None,
    strict: bool = False,
    device: str | Device | None = None,
) -> _Function: ...


@overload
def compile(
    function: None = None,
    /,
    *,
    dynamic: bool | None = None,
    strict: bool = False,
    device: str | Device | None = None,
) -> Callable[[_Function], _Function]: ...


def compile(
    function: Any = None,
    /,
    *,
    dynamic: bool | None = None,
    strict: bool = False,
    device: str | Device | None = None,
) -> Any:
    """Compile a function of tensors: its Python runs once, and later calls replay what it did.

    The first call with arguments of a kind records what the function does on the device; later
    calls replay that with the new elements, at the cost of a few copies, however many operations it
    has. Arguments and results may be nested tuples, lists, dicts, named tuples and dataclasses.
    Tensors are of the same kind if their shapes, dtypes and shared memory are the same; other
    arguments must be equal. So each value of a number is traced anew: pass it as a tensor.

    A trace has fixed sizes. With `dynamic=True` only the first shapes and integers among the
    arguments are traced; for others the function's Python runs, whose kernels and plans all sizes
    share. By default that is so from the ninth shape of an array, or value of an integer, on (a
    warning tells of it), with `dynamic=False` never.

    What the function and its callees read from outside (variables, closures, attributes, elements
    of containers) is guarded: it is checked before each replay, and if it has changed, the function
    is traced anew. Anything that cannot be checked is named in a warning. `strict` makes this an
    error, and everything else that prevents a replay or makes it wrong. `TREADLE_COMPILE_CHECK=1`
    compares each replay with what Python computes.

    Writes into arguments, and into tensors from outside (parameters of a model), are done by every
    replay, and random draws continue. Other effects of its Python (printing, appending to a list,
    `self.x = y`) happen only when it is traced. A function that reads a tensor's elements, or
    waits, cannot be replayed, nor one that changes what it reads itself (`self.calls += 1`); its
    Python then runs at every call, and `TREADLE_EXPLAIN=1` prints the line that is the cause.

    `device` is where the function runs if no argument is a tensor. TypeError for arguments that
    have no hash, LaunchError for tensors on two devices, and for what `strict` refuses.

    >>> import treadle as td
    >>> @td.compile
    ... def step(x, y):
    ...     for _ in range(3):
    ...         x = 0.5 * (x + y)
    ...     return x, x.sum()
    >>> x, total = step(td.ones(4, device="cpu"), td.zeros(4, device="cpu"))
    >>> total.item(), step.traces
    (0.5, 1)
    """
    if function is None:
        return functools.partial(compile, dynamic=dynamic, strict=strict, device=device)
    if not callable(function):
        raise TypeError(f"td.compile takes a function, not {type(function).__name__}")
    if isinstance(function, Compiled):
        return function
    for check, what in (
        (inspect.iscoroutinefunction, "an async function"),
        (inspect.isgeneratorfunction, "a generator"),
        (inspect.isasyncgenfunction, "an async generator"),
        (inspect.isclass, "a class"),
    ):
        if check(function):
            raise TypeError(
                f"td.compile takes an ordinary function, and {function.__name__} is {what}"
            )
    if dynamic is not None and type(dynamic) is not bool:
        raise TypeError(f"td.compile: dynamic is True, False or None, not {dynamic!r}")
    where = None if device is None else find_device(device)
    return Compiled(function, where, strict, dynamic)


class _Entry(NamedTuple):
    """A trace, or a `Split` that says why there is none, with the guards that must hold."""

    check: Callable[[], int]
    guards: list[Guard]
    found: Trace | Split

    def fits(self) -> bool:
        """Whether the guards hold and gradients are as they were."""
        found = self.found
        return self.check() == PASSED and (type(found) is Split or found.is_current())  # type: ignore[union-attr]

    def changed(self) -> Guard | None:
        """The guard that does not hold; None if a gradient has changed."""
        failed = self.check()
        return None if failed == PASSED else self.guards[failed]

    def held(self) -> int:
        """The number of guards before the first that does not hold."""
        failed = self.check()
        return len(self.guards) if failed == PASSED else failed

    def is_over(self) -> bool:
        """Whether it can never fit again, since a gradient or an object that it expects is gone."""
        changed = self.changed()
        if changed is None or not changed.is_replaced:
            return changed is None
        return changed.value is MISSING or not is_alive(changed, self.guards)

    def release(self) -> None:
        """Release the memory."""
        if isinstance(self.found, Trace):
            self.found.release()


class Compiled:
    """A function compiled by `td.compile`; it is called like the function."""

    _traced_inside = "_function"  # what traces of other functions look at in its place

    def __init__(
        self,
        function: Callable[..., Any],
        device: Device | None,
        strict: bool,
        dynamic: bool | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name: str = getattr(function, "__qualname__", type(function).__name__)
        self._device = device
        self._strict = strict
        self._most_sizes = 1 if dynamic else None if dynamic is False or strict else _MANY_VALUES
        self._warns_of_sizes = dynamic is None
        self._sizes: dict[str, set[Any]] = {}  # integers and shapes that were traced, by argument
        # By the key of arguments; the most recently used first.
        self._traces: OrderedDict[tuple[Any, ...], list[_Entry]] = OrderedDict()
        self._values: dict[str, set[Any]] = {}  # of numbers among the arguments
        self._unsteady: Counter[tuple[Any, ...]] = Counter()  # runs that changed what they read
        self._objects: dict[str, list[Any]] = {}  # of the arguments
        self._changes: Counter[str] = Counter()  # of values that are not numbers, by name
        self._warned = False
        self._warnings: set[str] = set()
        self._lock = forks.lock()

    @property
    def traces(self) -> int:
        """The number of traces, and of kinds of arguments without one because of a `Split`."""
        return sum(map(len, self._traces.values()))

    def clear(self) -> None:
        """Drop the traces and release their memory. The next call traces anew."""
        with self._lock:
            self._drop(0)
            for each in (
                self._unsteady, self._values, self._objects, self._changes, self._sizes
            ):  # fmt: skip
                each.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or replay its trace for such arguments."""
        if tracing.is_tracing.get() or within.get() is not None:
            return self._function(*args, **kwargs)
        arguments = Arguments(self._name, args, kwargs, self._device)
        device, key = arguments.device, arguments.key
        if device.default_stream.capturing is not None:  # it becomes a part of the user's graph
            return self._function(*args, **kwargs)
        if arguments.overlap():
            self._refuse("two of its arguments are the same memory of another library")
            return self._function(*args, **kwargs)
        if arguments.require_gradients():  # a replay makes no histories
            self._refuse("its arguments require gradients, which a replay does not go on with")
            return self._function(*args, **kwargs)
        lock = _locks.get(device) or _locks.setdefault(device, forks.lock())
        with lock, self._lock:
            entries = self._traces.get(key)
            found = None if entries is None else self._fitting(key, entries)
            if found is None and not self._has_new_size(arguments):
                return self._trace(arguments)
            if type(found) is Trace:
                if settings.check_compiled:
                    names = names_of(self._traces[key][0].guards)
                    return checked(self._name, found, self._function, arguments, names)
                return found.run(arguments)
        return self._function(*args, **kwargs)

    def _has_new_size(self, arguments: Arguments) -> bool:
        """Whether an argument has had so many sizes that for others Python runs."""
        most = self._most_sizes
        if most is None:
            return False
        for path, size in _sizes_of(arguments):
            seen = self._sizes.get(path)
            if seen is not None and len(seen) >= most and size not in seen:
                if self._warns_of_sizes:
                    what = "shapes" if type(size) is tuple else "values"
                    self._warn_of_many(
                        f"was traced for {len(seen)} {what} of its argument {path}: for others, "
                        f"such as {size!r}, its Python runs. dynamic=True makes it so from the "
                        "second on, dynamic=False traces all; a tensor without axes, "
                        "td.asarray(value), has one trace for all values"
                    )
                return True
        return False

    def _fitting(self, key: tuple[Any, ...], entries: list[_Entry]) -> Trace | Split | None:
        """The trace for such arguments whose guards hold."""
        self._traces.move_to_end(key)
        for entry in entries:
            if entry.fits():
                if entry is not entries[0]:
                    entries.remove(entry)
                    entries.insert(0, entry)
                return entry.found
        closest = max(entries, key=_Entry.held).changed()
        if closest is not None:
            self._notice_change(closest)
        for entry in list(entries):
            if entry.is_over():
                entries.remove(entry)
                entry.release()
        if not entries:
            del self._traces[key]
        return None

    def _trace(self, arguments: Arguments) -> Any:
        """Trace a call."""
        with tracing.lock:
            run = Tracing(self._name, self._function, arguments)
            result, found = run.run()
        try:
            if found is not None:
                self._keep(arguments, run, found)
        finally:
            run.dependencies.forget()
        return result

    def _keep(self, arguments: Arguments, run: Tracing, found: Trace | Split) -> None:
        """Keep a trace with its guards, if these still hold after the run."""
        key, dependencies = arguments.key, run.dependencies
        guards = [*dependencies.guards, *_always()]
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
            guards = _always()
            check = checker(guards)
        elif is_trace:
            self._unsteady.pop(key, None)
            self._warn_of_trace(run)
        if not is_trace:
            self._warn_of_python(found)
        self._notice(arguments)
        self._drop(_MOST_TRACES - 1)
        self._traces.setdefault(key, []).insert(0, _Entry(check, guards, found))
        self._traces.move_to_end(key)

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
        """Note the sizes among arguments that were traced, and warn of an argument that has a trace
        for each of its values."""
        for path, size in _sizes_of(arguments):
            self._sizes.setdefault(path, set()).add(size)
        for name, argument in arguments.named():
            for path, value in named_leaves(name, argument):
                kind = type(value)
                if kind is int and self._most_sizes is not None:
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

    def __repr__(self) -> str:
        count = len(self._traces)
        text = f"{count} trace{'' if count == 1 else 's'}"
        found = [each.found for entries in self._traces.values() for each in entries]
        splits = [each for each in found if isinstance(each, Split)]
        if splits:
            text += f", {len(splits)} of them run in Python: {splits[-1]}"
        return f"<compiled {self._name}: {text}>"


def _sizes_of(arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """The integers among the arguments, and the shapes of arrays, with their names."""
    for name, argument in arguments.named():
        for path, value in named_leaves(name, argument):
            if type(value) is int:
                yield path, value
            elif is_array(value):
                yield path, tuple(value.shape)


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
    return [
        Guard("{0}[0] == {1}", (structure, structure[0]), name, is_replaced=True),
        Guard("{0}() is {1}", (default_device, default_device()), "the default device"),
        Guard("{0}() is {1}", (placing.get, placing.get()), "anomaly detection"),
    ]
