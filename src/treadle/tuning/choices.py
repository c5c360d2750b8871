"""What planners ask: the candidate that was found to be the fastest for a problem on a device.

Results of `treadle tune` are kept in the cache folder, an entry for each problem, by the device and
its driver, treadle's version and the edition of the problem's family. An entry is written as a
whole or not at all (`runtime.disk_cache`), so a tuner that is killed leaves what it has found.
Behind these come the results that are shipped, by backends and the names of devices
(`shipped.json`). An answer is looked up once a process and kept in memory.

TREADLE_TUNE chooses: "found" (usual) uses these results, "0" none, and "1" also measures problems
that have none when they are first planned.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from treadle.core.recent_cache import RecentCache
from treadle.core.version import __version__
from treadle.runtime import disk_cache, settings
from treadle.runtime.costs import identity, is_time, load_entry, save_entry
from treadle.runtime.devices import Device
from treadle.tuning.records import Candidate, Family, Problem, Result

SHIPPED = "shipped.json"
_SCHEMA = 1
_MOST_BYTES = 4096  # of a result on disk
_RECENT = 1024  # answers in memory, of each device
_MISSING = object()


class Choices:
    """The results for a device."""

    def __init__(self, device: Device | None = None) -> None:
        self._device = None if device is None else weakref.ref(device)
        self._known: dict[Problem, Candidate | None] = {}
        self.recent: RecentCache[Any, Any] = RecentCache(_RECENT)
        """For planners: what they made of an answer."""

    @property
    def device(self) -> Device | None:
        """The device; None if there are no results at all."""
        return None if self._device is None else self._device()

    def find(self, problem: Problem, sizes: Any) -> Candidate | None:
        """The candidate that was found to be the fastest, or None for the planner's first guess.
        `sizes` is what the family's `workload` takes, for problems that are measured now."""
        found = self._known.get(problem, _MISSING)
        if found is not _MISSING:
            return found  # type: ignore[return-value]
        device = self.device
        if device is None:
            return None
        if settings.tune == "0":
            self._known[problem] = None
            return None
        known = result_of(device, problem)
        candidate = shipped_for(shipped_name(device), problem) if known is None else known.chosen
        if candidate is None and settings.tune == "1":
            stream = device.default_stream
            if stream.capturing is not None or stream.interrupt is not None:
                return None  # nothing can be measured while a graph or a function is recorded
            self._known[problem] = None  # for what measuring itself plans
            for family in _families():
                if family.name == problem.family:
                    candidate = _measure(device, family, sizes)
        self._known[problem] = candidate
        return candidate

    def has_settled(self, problem: Problem) -> bool:
        """Whether `find` gives the same from here on."""
        return problem in self._known

    def forget(self) -> None:
        """Look everything up again: results have changed."""
        self._known.clear()
        self.recent.clear()


# While a candidate is measured: the family whose planner is to take it, and the candidate.
_forced: ContextVar[tuple[str, Candidate] | None] = ContextVar("forced", default=None)


def forced(family: str) -> Candidate | None:
    """The candidate that is measured now, if it is of this family."""
    found = _forced.get()
    return None if found is None or found[0] != family else found[1]


@contextlib.contextmanager
def forcing(family: str, candidate: Candidate) -> Iterator[None]:
    """Have a family's planner take a candidate, where the device has room for it."""
    token = _forced.set((family, candidate))
    try:
        yield
    finally:
        _forced.reset(token)


NO_CHOICES = Choices()
_of_devices: weakref.WeakKeyDictionary[Device, Choices] = weakref.WeakKeyDictionary()


def choices_of(device: Device) -> Choices:
    """The results for a device."""
    found = _of_devices.get(device)
    if found is None:
        found = _of_devices[device] = Choices(device)
    return found


# --- on disk --------------------------------------------------------------------------------------


def _key(device: Device, problem: Problem) -> str:
    return disk_cache.key_of("tuned", str(_SCHEMA), __version__, identity(device), problem.name)


def result_of(device: Device, problem: Problem) -> Result | None:
    """What `treadle tune` has found on this machine; None without an entry that can be used."""
    return _result_from(load_entry(_key(device, problem)))


def keep(device: Device, problem: Problem, result: Result) -> None:
    """Keep what was found, at once and as a whole."""
    of = {"tuned": problem.name, "device": identity(device), "version": __version__}
    save_entry(_key(device, problem), of | dataclasses.asdict(result))
    choices_of(device).forget()


def results_of(device: Device) -> dict[Problem, Result]:
    """All that was found on this machine, by this version of treadle, also for problems that came
    up in programs. It reads the whole cache folder."""
    found: dict[Problem, Result] = {}
    for content in disk_cache.small_entries(_MOST_BYTES):
        if not content.startswith(b"{"):
            continue
        try:
            values = json.loads(content)
            of = values["device"], values["version"]
            problem = _problem_from(values["tuned"])
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # an entry of another kind
        result = _result_from(values)
        if of == (identity(device), __version__) and result is not None:
            found[problem] = result
    return found


def _problem_from(name: str) -> Problem:
    """The problem of a name. ValueError if there is none."""
    family, edition, *facts = name.split(" ")
    numbers = (int(fact) if fact.lstrip("-").isdigit() else fact for fact in facts)
    return Problem(family, int(edition), tuple(numbers))


def _result_from(values: Any) -> Result | None:
    try:
        chosen = _candidate_from(values["chosen"]["kind"], values["chosen"]["numbers"])
        times = values["seconds"], values["first_seconds"]
        if not all(map(is_time, times)):
            return None
        return Result(chosen, *times, int(values["tried"]), bool(values["complete"]))
    except (TypeError, KeyError, ValueError):
        return None


def _candidate_from(kind: Any, numbers: Any) -> Candidate:
    if not isinstance(kind, str) or not all(type(each) is int for each in numbers):
        raise ValueError("not a candidate")
    return Candidate(kind, tuple(numbers))


# --- shipped --------------------------------------------------------------------------------------


@cache
def shipped() -> dict[str, dict[str, Candidate]]:
    """The results that come with treadle: by the beginnings of devices' names, then by problems."""
    found: dict[str, dict[str, Candidate]] = {}
    for entry in _shipped_devices():
        choices = {
            name: _candidate_from(kind, numbers)
            for name, (kind, *numbers) in entry["choices"].items()
        }
        for name in entry["names"]:
            found[name] = choices
    return found


class Shipped(NamedTuple):
    """A result that comes with treadle; how many times as fast as the first guess it was, if that
    was noted."""

    chosen: Candidate
    gain: float | None


def shipped_results(name: str) -> dict[Problem, Shipped]:
    """All results that come with treadle for a device of a name."""
    for entry in _shipped_devices():
        if any(name.startswith(beginning) for beginning in entry["names"]):
            gains = entry.get("gains", {})
            return {
                _problem_from(problem): Shipped(_candidate_from(kind, numbers), gains.get(problem))
                for problem, (kind, *numbers) in entry["choices"].items()
            }
    return {}


def _shipped_devices() -> list[dict[str, Any]]:
    text = resources.files("treadle.tuning").joinpath(SHIPPED).read_text(encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(text)["devices"]
    return found


def shipped_name(device: Device) -> str:
    """The name of a device there: "cuda NVIDIA H200"."""
    return f"{device.id.partition(':')[0]} {device.name}"


def shipped_for(name: str, problem: Problem) -> Candidate | None:
    """The shipped result for a device of a name."""
    for beginning, choices in shipped().items():
        if name.startswith(beginning):
            return choices.get(problem.name)
    return None


# --- measured as problems come up -----------------------------------------------------------------

Measure = Callable[[Device, Family, Any], Candidate | None]


def _no_families() -> Sequence[Family]:
    return ()


def _no_measure(device: Device, family: Family, sizes: Any) -> Candidate | None:
    del device, family, sizes
    return None


_families: Callable[[], Sequence[Family]] = _no_families
_measure: Measure = _no_measure


def install(families: Callable[[], Sequence[Family]], measure: Measure) -> None:
    """Set what finds the families, and what measures a problem of one: `treadle/__init__.py` does
    where TREADLE_TUNE may ask for it, since both stand above the planners that ask here."""
    global _families, _measure
    _families, _measure = families, measure
