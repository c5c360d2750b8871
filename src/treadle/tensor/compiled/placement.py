"""Where the calls of a compiled function run: `td.compile(f, device="auto")`.

Calls of one kind (of about the same shapes, and equal dtypes and other arguments) have a *home*:
the host for NumPy arrays, the device of the tensors for tensors. The first calls run there. Their
trace shows what the function does, and so whether it may run on the other device (the default one,
or the host) without a difference; `choice.py` decides when it does. `docs/design/compile.md` has
the reasons.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from treadle.core import forks
from treadle.core.dtypes import BY_SHORT_NAME, DType
from treadle.core.errors import LaunchError, TreadleError
from treadle.core.recent_cache import RecentCache
from treadle.graph import calls
from treadle.graph.explain import Explanation
from treadle.graph.history import recording
from treadle.graph.placeholders import within
from treadle.graph.realize import watchers
from treadle.runtime.costs import Costs, Estimate, Work, estimate
from treadle.runtime.devices import Device, default_device, is_available, scoped
from treadle.runtime.devices import device as find_device
from treadle.tensor.compiled import kept_choices
from treadle.tensor.compiled.calibration import costs_of
from treadle.tensor.compiled.choice import Choice
from treadle.tensor.compiled.kinds_of_calls import (
    Kind,
    class_of,
    key_of,
    leaves_of,
    representative,
    text_of,
)
from treadle.tensor.compiled.moving import moved, numpy_leaves, on_device, settle_containers
from treadle.tensor.compiled.placement_text import described, explained
from treadle.tensor.compiled.structure import is_nested
from treadle.tensor.compiled.surroundings import devices_around
from treadle.tensor.compiled.trace import Trace
from treadle.tensor.compiled.tracing import Split, is_tracing
from treadle.tensor.compiled.work import CallObserver, Recorded, recorded, size_of
from treadle.tensor.dtypes import supports
from treadle.tensor.generator import Generator
from treadle.tensor.tensor import Tensor

_MOST_KEYS = 512  # of calls of the same sizes
_MOST_KINDS = 512  # of calls of about the same sizes
_CORRECTION = 4.0  # times an estimate at most, by what other calls took
_WIDE = 64  # bits
_WIDE_INTEGERS = frozenset({"i64", "u64"})


class Function(Protocol):
    """A compiled function, as it is used here."""

    def run(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call or replay it on the default device, or on that of the tensors."""

    def trace_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Trace | Split | None:
        """What a call would replay; a `Split` if its Python would run, None without a trace."""


class _Trace:
    """What a trace of a call showed."""

    __slots__ = ("generators", "impure")

    def __init__(self) -> None:
        self.impure = ""  # what must not run away from home
        self.generators: list[tuple[Generator, Any]] = []  # with their states before the trace


class _Run:
    """One call that runs, and what its trace showed if there was one."""

    __slots__ = ("args", "away", "function", "kind", "kwargs", "trace")

    def __init__(
        self,
        kind: Kind,
        away: bool,
        function: Function,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self.kind = kind
        self.away = away
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.trace: _Trace | None = None


class _Elsewhere(Exception):
    """A call must run elsewhere; nothing of it has happened. `home` is the device, if it is not
    the home that the kind of calls has now."""

    def __init__(self, home: Device | None = None) -> None:
        self.home = home


class _Running(threading.local):
    """The call that runs in a thread."""

    run: _Run | None = None


class Placement:
    """The places of a function's calls."""

    def __init__(
        self,
        function: Any,
        name: str,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._function = function
        self._name = name
        self._clock = clock
        self._kinds: RecentCache[tuple[Any, ...], Kind] = RecentCache(_MOST_KEYS)
        self._classes: RecentCache[tuple[Any, ...], Kind] = RecentCache(_MOST_KINDS)
        self._impure: set[Device] = set()  # where a trace must not replace one at home
        self._corrections: dict[Device, float] = {}  # of estimates, by calls that were measured
        self._running = _Running()
        self._lock = forks.lock()
        self._host: Device | None = None

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of calls, the most recent one last."""
        with self._lock:
            return self._classes.values()

    def explained(self) -> Explanation:
        """Where calls run, and why."""
        return explained(self._name, self.kinds)

    def clear(self) -> None:
        """Forget all kinds of calls."""
        with self._lock:
            self._kinds.clear()
            self._classes.clear()

    # ------------------------------------------------------------------ a call

    def call(self, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function where it is sooner done."""
        default = default_device()
        if is_tracing.get() or within.get() is not None or default.is_capturing:
            return function.run(args, kwargs)  # it becomes a part of something
        try:
            key, leaves = key_of(args, kwargs, default)
        except TypeError:
            return function.run(args, kwargs)  # which says what has no hash
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._begin(key, leaves, args, kwargs, default)
        if kind.home is not default and kind.home.is_capturing:
            return function.run(args, kwargs)
        away = kind.choice.next_settled()
        if away is None:
            away = self._consider(kind, function, args, kwargs)
        run = _Run(kind, away, function, args, kwargs)
        if away:
            try:
                return self._run_away(run)
            except _Elsewhere:
                run.away, run.trace = False, None
        try:
            while True:
                try:
                    return self._run_home(run)
                except _Elsewhere as elsewhere:
                    self._move_home(kind, elsewhere.home)
        except LaunchError as error:
            if run.trace is not None and kind.is_numpy and kind.other is not None:
                error.add_note(
                    f'{self._name} ran on {kind.home.id}, by device="auto": if it uses tensors '
                    "that are elsewhere, name their device instead"
                )
            raise

    def _consider(
        self, kind: Kind, function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bool:
        """Whether the next call runs away from home, after an estimate if that depends on one."""
        choice = kind.choice
        if choice.needs_estimate:
            if kind.facts is None:  # it was traced as another kind of calls
                with _at(kind.home):
                    found = function.trace_of(args, kwargs)
                if found is not None:
                    self._learn(kind, found, args, kwargs)
            self._compare(kind, args, kwargs)
        with self._lock:
            away = choice.next_considered()
        if watchers and choice.is_settled and kind.shown is not choice.is_best_away:
            kind.shown = choice.is_best_away
            text = "\n".join(described(kind))
            sys.stderr.write(f"treadle: {self._name}, which is compiled: {text}\n")
        return away

    def _run_home(self, run: _Run) -> Any:
        kind, running = run.kind, self._running
        choice, home = kind.choice, kind.home
        before, running.run = running.run, run
        token = scoped.set(home)
        measured = not choice.pinned and (
            choice.is_quick_sample if kind.is_numpy else choice.is_sample
        )
        is_single = kind.running is None
        kind.running = run
        try:
            began = self._watch(kind, home) if measured else None
            result = run.function.run(run.args, run.kwargs)
            if kind.is_numpy:
                if kind.has_containers:
                    settle_containers((*run.args, *run.kwargs.values()))
                result = result.numpy() if type(result) is Tensor else numpy_leaves(result)
            if began is not None and is_single:
                self._took(run, began)
        finally:
            if kind.running is run:
                kind.running = None
            scoped.reset(token)
            running.run = before
        return result

    def _watch(self, kind: Kind, device: Device) -> float:
        """The time when a call begins that is measured."""
        if not kind.is_numpy:
            kind.home.synchronize()
            device.synchronize()
        return self._clock()

    def _took(self, run: _Run, began: float) -> None:
        """Add what a call took that has ended, unless it was traced or was not the only one."""
        kind = run.kind
        if not kind.is_numpy:
            kind.home.synchronize()
        if run.trace is None and kind.running is run:
            kind.choice.took(run.away, self._clock() - began)

    def _run_away(self, run: _Run) -> Any:
        """Run a call on the other device. `_Elsewhere` if it has to run at home, and nothing has
        happened."""
        kind, running = run.kind, self._running
        function, args, kwargs = run.function, run.args, run.kwargs
        choice, home, other = kind.choice, kind.home, kind.other
        assert other is not None
        before, running.run = running.run, run
        token = scoped.set(other)
        measured = choice.is_quick_sample if kind.is_numpy else choice.is_sample
        is_single = kind.running is None
        kind.running = run
        try:
            began = self._watch(kind, other) if measured else None
            if not kind.is_numpy:
                args, kwargs = moved(args, kwargs, other)
            if other in self._impure:
                self._check(kind, function.trace_of(args, kwargs))
            result = function.run(args, kwargs)
            if kind.is_numpy:
                result = numpy_leaves(result)
            else:
                result = on_device(result, home)
                if run.trace is not None and run.trace.impure:
                    raise _Elsewhere  # the copies may have been written
            if began is not None and is_single:
                self._took(run, began)
        except _Elsewhere:
            _restore(run.trace)
            raise
        except Exception as error:
            _restore(run.trace)
            choice.pin(f"it raised {type(error).__name__} on {other.id}: {_first_line(error)}")
            raise _Elsewhere from error
        finally:
            if kind.running is run:
                kind.running = None
            scoped.reset(token)
            running.run = before
        if measured and run.trace is None and choice.is_sample:
            self._compared(kind)
        return result

    # ------------------------------------------------------------------ kinds of calls

    def _begin(
        self,
        key: tuple[Any, ...],
        leaves: list[Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        default: Device,
    ) -> Kind:
        """The kind of calls whose sizes have not come up yet; mostly a new one."""
        host = self._host
        if host is None:
            host = self._host = find_device("cpu") if is_available("cpu") else default
        of_class = class_of(key)
        with self._lock:
            known = self._classes.get(of_class)
            if known is not None:
                self._kinds[key] = known
                return known
        tensors = [each for each in leaves if isinstance(each, Tensor)]
        is_numpy = bool(leaves) and all(type(each) is np.ndarray for each in leaves)
        home = tensors[0].device if tensors else host if is_numpy else default
        other = default if home is host else host
        containers = any(map(is_nested, (*args, *kwargs.values())))
        kind = Kind(
            text_of(self._function, args, kwargs), home, None if other is home else other,
            is_numpy, containers,
        )  # fmt: skip
        self._pin_to_only(kind)
        if any(type(each) not in (np.ndarray, Tensor) for each in leaves):
            kind.choice.pin("an argument is a parameter, or an array of another library")
        elif recording.get() and any(each._history is not None for each in tensors):
            kind.choice.pin("arguments require gradients")
        with self._lock:
            self._kinds[key] = self._classes[of_class] = kind
        return kind

    def _move_home(self, kind: Kind, home: Device | None) -> None:
        """Give a kind of calls another home: the device of tensors that the function uses."""
        assert home is not None
        host = self._host
        other = default_device() if home is host else host
        kind.home, kind.other = home, None if other is home else other
        kind.choice, kind.facts, kind.work, kind.key = Choice(), None, None, ""
        self._pin_to_only(kind)

    def _pin_to_only(self, kind: Kind) -> None:
        if kind.other is None:
            kind.choice.pin(f"{kind.home.id} is the only device: the default one is the host")

    def _check(self, kind: Kind, found: Trace | Split | None) -> None:
        """`_Elsewhere` if what a call would replay must not run away from home: it was traced for
        calls of another kind, which have their home there."""
        impure = "" if found is None else self._impurity(kind, found)
        if impure:
            kind.choice.pin(impure)
            raise _Elsewhere

    def _learn(self, kind: Kind, found: Trace | Split, args: Any, kwargs: Mapping[str, Any]) -> str:
        """Take what a trace shows of a kind of calls. Returns what must not run away from home."""
        impure = _impurity(found, kind.is_numpy)
        if impure:
            kind.choice.pin(impure)
        elif isinstance(found, Trace) and kind.facts is None and found.recorded is not None:
            kind.facts = found.recorded
            kind.work = _work_of(found.recorded, found.results, leaves_of(args, kwargs))
        return impure

    def _impurity(self, kind: Kind, found: Trace | Split) -> str:
        """What of a trace must not run away from home, on the device that it was made on."""
        impure = _impurity(found, kind.is_numpy)
        if impure or kind.other is None or not isinstance(found, Trace) or found.recorded is None:
            return impure
        return _unlike(found.recorded, kind.home, kind.other)

    def _compare(self, kind: Kind, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Compare home with the other device, which is opened only now: by what an earlier process
        measured, or by an estimate."""
        choice, facts, other = kind.choice, kind.facts, kind.other
        if choice.pinned or facts is None or other is None:
            return
        try:
            unlike = _unlike(facts, kind.home, other)
            if unlike:
                choice.pin(unlike)
                return
            text = text_of(self._function, args, kwargs, representative)
            kind.key = kept_choices.entry_of(self._function, text, kind.home, other)
            kept_choices.load(kind.key, choice)
            if choice.needs_estimate:
                self._estimate(kind)
        except (TreadleError, MemoryError) as error:
            choice.pin(f"the costs of {other.id} could not be measured: {_first_line(error)}")

    def _compared(self, kind: Kind) -> None:
        """After a call away from home was measured: correct estimates, and keep the means."""
        choice = kind.choice
        if not (choice.home.is_known and choice.away.is_known):
            return
        estimated = choice.estimated
        if estimated is not None and not choice.is_corrected and kind.other is not None:
            choice.is_corrected = True
            ratio = choice.away.seconds / max(estimated.seconds, 1e-9)
            with self._lock:
                before = self._corrections.get(kind.other, 1.0)
                self._corrections[kind.other] = _limited(before * ratio**0.5)
        kept_choices.save(kind.key, choice)

    def _estimate(self, kind: Kind) -> None:
        """Estimate what a kind of calls takes on the other device."""
        work, other, host = kind.work, kind.other, self._host
        if work is None or other is None or host is None:
            return
        costs = costs_of(other, host, work.kinds)
        own = costs_of(kind.home, host, work.kinds)
        correction = self._corrections.get(other, 1.0)
        moves = kind.home is not host and not kind.is_numpy
        kind.choice.estimated = expected(
            work, own, costs, moves, kind.choice.home.seconds, correction
        )

    # ------------------------------------------------------------------ traces

    def starting(self) -> Any:
        """Before a function is traced: `_Elsewhere` if it must be traced elsewhere. Returns what
        records calls of the kernel library."""
        run = self._running.run
        if run is not None:
            found = _Trace()
            if run.away:
                found.generators = _checked_home(run)
            elif not any(isinstance(each, Tensor) for each in leaves_of(run.args, run.kwargs)):
                values = (*run.args, *run.kwargs.values())
                around = devices_around(self._function, values)
                if around and run.kind.home not in around:
                    default = default_device()
                    raise _Elsewhere(default if default in around else around[0])
            run.trace = found
        observer = CallObserver()
        return observer, calls.observer.set(observer)

    def running_python(self) -> None:
        """Before Python runs without a trace: `_Elsewhere` if that must be at home."""
        run = self._running.run
        if run is not None and run.away:
            run.trace = _Trace()
            run.trace.generators = _checked_home(run)

    def traced(self, started: Any, found: Any) -> None:
        """After a function was traced: what that shows. `found` is a `Trace`, a `Split` or None."""
        observer, token = started
        calls.observer.reset(token)
        run = self._running.run
        trace = None if run is None else run.trace
        if run is None or trace is None or found is None:
            return
        if isinstance(found, Trace):
            size = size_of(leaves_of(run.args, run.kwargs))
            facts = recorded(found.used, observer.calls, default_device(), size)
            made = [each.dtype for each in found.results]  # what is uploaded has no launch
            dtypes = frozenset(each.short for each in made if isinstance(each, DType))
            found.recorded = facts._replace(dtypes=facts.dtypes | dtypes)
        if not run.away:
            trace.impure = self._learn(run.kind, found, run.args, run.kwargs)
        else:
            trace.impure = self._impurity(run.kind, found)
            if trace.impure:
                run.kind.choice.pin(trace.impure)
        if trace.impure:
            self._impure.add(default_device())


def _work_of(facts: Recorded, results: Sequence[Any], leaves: Sequence[Any]) -> Work:
    """The work of a call. If its trace was made for arguments of another size, all amounts are
    taken to be in proportion to that."""
    size = size_of(leaves)
    scale = size / facts.size if facts.size else 1.0
    return Work(
        tuple([(kind, amount * scale) for kind, amount in facts.amounts]),
        facts.launches, len(leaves), len(results), size, round(size_of(results) * scale),
    )  # fmt: skip


def _checked_home(run: _Run) -> list[tuple[Generator, Any]]:
    """`_Elsewhere` unless a call is traced at home: away from home only such calls are traced. Else
    the generators that the trace draws from, with their states."""
    with _at(run.kind.home):
        found = run.function.trace_of(run.args, run.kwargs)
    if not isinstance(found, Trace):
        raise _Elsewhere
    return [(each, each.get_state()) for each in found.generators]


@contextlib.contextmanager
def _at(device: Device) -> Iterator[None]:
    token = scoped.set(device)
    try:
        yield
    finally:
        scoped.reset(token)


def _restore(trace: _Trace | None) -> None:
    """Set generators back to their states before a trace that does not count."""
    for generator, state in () if trace is None else trace.generators:
        generator.set_state(state)


def _impurity(trace: Trace | Split, is_numpy: bool) -> str:
    """What a trace does that only a run at home does right; empty if there is nothing."""
    if not isinstance(trace, Trace):
        return f"its Python runs at every call: {trace}"
    if trace.outside_cells:
        return "it uses tensors that are not arguments, which stay where they are"
    if trace.gradients:
        return "it changes gradients"
    if trace.changes_arguments:
        return "it writes to its arguments"
    if is_numpy:
        return ""
    if not trace.makes_results:
        return "results are arguments or views, of them or of each other"
    return ""


def _unlike(facts: Recorded, home: Device, other: Device) -> str:
    """Why a plan may have other results on another device; empty if it has not.

    Python's integers may be int64 on one and int32 on the other. A plan without integers of 64 bits
    where they are int64 does not depend on that."""
    for short in sorted(facts.dtypes):
        dtype = BY_SHORT_NAME.get(short)
        if dtype is not None and not (supports(other, dtype) and supports(home, dtype)):
            lacking = home if supports(other, dtype) else other
            return f"{lacking.id} has no {dtype}"
    one, two = home.traits.default_integer, other.traits.default_integer
    own = facts.device.traits.default_integer
    if one is not two and own.bits == _WIDE and facts.dtypes & _WIDE_INTEGERS:
        return f"it computes with integers, which are {one} on {home.id} and {two} on {other.id}"
    return ""


def expected(
    work: Work, own: Costs, other: Costs, moves: bool, measured: float, correction: float
) -> Estimate:
    """What a call is expected to take away from home, where it took `measured` seconds.

    If the computation at home took longer than estimated, or shorter, so it will elsewhere; and
    the more the estimate for home is wrong, the less the other is trusted.
    `moves`: the arrays are a device's, and are moved to the host and back."""
    own_work = replace(work, uploaded=0, downloaded=0) if moves else work
    at_home, away = estimate(own, own_work), estimate(other, work)
    computed = sum(seconds for kind, seconds in at_home.parts if kind in own.kinds)
    remaining = measured - (at_home.seconds - computed)
    factor = _limited(remaining / computed) if computed and remaining > 0 else 1.0
    parts = [
        (what, correction * seconds * (factor if what in other.kinds else 1.0))
        for what, seconds in away.parts
    ]
    if moves:
        seconds = work.arguments * own.result + work.results * own.argument
        seconds += work.uploaded / own.download + work.downloaded / own.upload
        parts.append(("moves", seconds))
    ratio = max(measured, 1e-9) / max(at_home.seconds, 1e-9)
    return Estimate(tuple(parts), _limited(max(ratio, 1 / ratio)))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _limited(factor: float) -> float:
    return min(max(factor, 1 / _CORRECTION), _CORRECTION)
