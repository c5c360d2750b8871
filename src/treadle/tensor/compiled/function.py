"""`td.compile`: a function of tensors, traced once and replayed."""

from __future__ import annotations

import functools
import inspect
import threading
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar, overload

from treadle.core import forks
from treadle.graph.placeholders import within
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.compiled import tracing
from treadle.tensor.compiled.arguments import Arguments
from treadle.tensor.compiled.structure import named_leaves
from treadle.tensor.compiled.surroundings import Surroundings
from treadle.tensor.compiled.trace import Trace
from treadle.tensor.compiled.tracing import Split, Tracing

_MOST_TRACES = 64  # of a function; the one that was used longest ago goes first
_MANY_VALUES = 8  # of a number, each of which had a trace of its own

_locks: dict[Device, threading.RLock] = {}
_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def compile(function: _Function, /, *, device: str | Device | None = None) -> _Function: ...


@overload
def compile(
    function: None = None, /, *, device: str | Device | None = None
) -> Callable[[_Function], _Function]: ...


def compile(function: Any = None, /, *, device: str | Device | None = None) -> Any:
    """Make a function of tensors one that runs its Python once and is replayed from then on.

    The first call with arguments of a kind records what the function does on the device; later
    calls replay that with the new elements, at the price of a few copies, however many operations
    it has. Arguments and results may be nested tuples, lists, dicts, named tuples and dataclasses.
    Tensors are of one kind if shape, dtype and the memory they share are the same; everything else
    has to be equal. So a number that changes is traced anew: pass it as a tensor.

    Writes into arguments, and into tensors that the function has from outside (parameters of a
    model), are done by every replay, and random draws go on. Other effects of its Python (printing,
    appending to a list, `self.x = y`) happen when it is traced. A function that reads a tensor, or
    waits, cannot be replayed; its Python then runs at every call, and `TREADLE_EXPLAIN=1` tells
    which line it is.

    `device` is where the function runs if no argument is a tensor. TypeError for arguments that
    have no hash, LaunchError for tensors on two devices.

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
        return functools.partial(compile, device=device)
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
    return Compiled(function, None if device is None else find_device(device))


class Compiled:
    """What `td.compile` makes of a function; it is called like the function."""

    def __init__(self, function: Callable[..., Any], device: Device | None) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._name: str = getattr(function, "__qualname__", type(function).__name__)
        self._device = device
        self._around = Surroundings(function)
        self._traces: OrderedDict[tuple[Any, ...], Trace | Split] = OrderedDict()
        self._values: dict[str, set[Any]] = {}  # of numbers among the arguments
        self._warned = False
        self._lock = forks.lock()

    @property
    def traces(self) -> int:
        """For how many kinds of arguments there is a trace, or the knowledge that there is none."""
        return len(self._traces)

    def clear(self) -> None:
        """Forget the traces and let their memory go. The next call traces anew."""
        with self._lock:
            self._drop(0)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or replay what it did for such arguments."""
        if tracing.is_tracing.get() or within.get() is not None:
            return self._function(*args, **kwargs)
        arguments = Arguments(self._name, args, kwargs, self._device, self._around.tell)
        device, key = arguments.device, arguments.key
        if device.default_stream.keeping is not None or arguments.overlap():
            # It is a part of a graph of the user's, or has another library's memory twice.
            return self._function(*args, **kwargs)
        if arguments.require_gradients():  # they go on behind it: a replay has no histories
            return self._function(*args, **kwargs)
        lock = _locks.get(device) or _locks.setdefault(device, forks.lock())
        with lock, self._lock:
            known = self._traces.get(key)
            if known is None:
                return self._trace(arguments)
            self._traces.move_to_end(key)
            if type(known) is Trace:
                if known.is_current():
                    return known.run(arguments)
                known.release()
                del self._traces[key]
                return self._trace(arguments)
        return self._function(*args, **kwargs)

    def _trace(self, arguments: Arguments) -> Any:
        """A first call."""
        with tracing.lock:
            run = Tracing(self._name, self._function, arguments, self._around)
            result, found = run.run()
        if found is not None:
            if isinstance(found, Trace):
                found.watch(run.roots())
            self._drop(_MOST_TRACES - 1)
            self._traces[arguments.key] = found
            self._notice(arguments)
        return result

    def _drop(self, most: int) -> None:
        while len(self._traces) > most:
            _, old = self._traces.popitem(last=False)
            if isinstance(old, Trace):
                old.release()

    def _notice(self, arguments: Arguments) -> None:
        """Warn of a number that has a trace for each of its values."""
        for name, argument in arguments.named():
            for path, value in named_leaves(name, argument):
                if type(value) is int or type(value) is float:
                    self._count(f"its argument {path}", value)
        for name, value in self._around.numbers():
            self._count(f"the variable {name}", value)

    def _count(self, what: str, value: float) -> None:
        seen = self._values.setdefault(what, set())
        if len(seen) < _MANY_VALUES:
            seen.add(value)
            if len(seen) == _MANY_VALUES and not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self._name} is compiled, and was traced for {len(seen)} values of {what}, "
                    f"the last one {value}: each takes a trace of its own. Use a tensor without "
                    "axes, td.asarray(value)",
                    stacklevel=5,
                )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        count = len(self._traces)
        told = f"{count} trace{'' if count == 1 else 's'}"
        splits = [each for each in self._traces.values() if isinstance(each, Split)]
        if splits:
            told += f", {len(splits)} of them run in Python: {splits[-1]}"
        return f"<compiled {self._name}: {told}>"
