"""`td.compile`: what it takes, and what it refuses."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, overload

from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.compiled.function import Compiled

AUTO = "auto"  # the device that is chosen by measurement

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
    Tensors are of the same kind if their dtypes, axes and shared memory are the same; other
    arguments than integers must be equal. So each value of a float is traced anew: pass it as a
    tensor.

    Shapes of tensors and integers among the arguments that had a second value are symbols of the
    next trace, with `dynamic=True` all of them from the first call on. Such a trace is replayed for
    all sizes for which its guards hold: comparisons that the function and treadle made
    (`td.explain(f)` shows them). Where the function uses a value otherwise, as in `range(n)`, that
    is a guard, too. After 16 traces for other sizes its Python runs, and a warning says so. With
    `dynamic=False` each size has a trace of its own.

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

    `device` is where the function runs if no argument is a tensor. With "auto" a call runs on the
    host or on the default device, where it is sooner done, transfers included, as measured; results
    of NumPy arrays are then NumPy arrays, those of tensors on their device. `td.explain(f)` says
    where calls run and why; what only one device does right stays there. TypeError for arguments
    that have no hash, LaunchError for tensors on two devices, and for what `strict` refuses.

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
    if isinstance(device, str) and device.lower() == AUTO:
        return Compiled(function, None, strict, dynamic, places=True)
    where = None if device is None else find_device(device)
    return Compiled(function, where, strict, dynamic)


def recorded(function: _Function, device: Device) -> _Function:
    """The same for a function of this package, whose surroundings its owner keeps as they are: they
    are neither observed nor guarded. So a model of a thousand tensors is traced in a fraction of
    the time, and nothing is compared before a replay. Tensors from outside may still be written,
    and move: a replay brings their elements to where they were. As in any trace, kernels are
    compiled side by side, and waited for at the end."""
    made: Any = Compiled(function, device, False, False, guarded=False)
    return made  # type: ignore[no-any-return]
