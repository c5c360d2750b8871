"""Going through candidates within a budget of seconds.

Each problem gets its share of the time that is left: most of it for candidates that differ much,
and the rest for what lies around the best of these. The first guess comes first, and its result is
what the others' are compared with: a candidate whose result differs is rejected, however fast it
is. What is known so far, because treadle ships it or an earlier run has found it, comes next and is
always measured, so that no run ends with less. The fastest few are measured again, interleaved with
the first guess, which stays unless another one is clearly faster. What is found for a problem is
kept before the next one begins.

A candidate that has begun is finished, so a tuner may go over its budget by what these take.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from treadle.core.errors import TreadleError
from treadle.runtime.devices import Device
from treadle.tuning import choices
from treadle.tuning.clock import Batch, medians
from treadle.tuning.records import Bench, Candidate, Family, Result, Workload

SECONDS = 60.0
"""The usual budget."""
_GAIN = 0.03  # a candidate is chosen if it takes less than the first guess by this part
_FINALISTS = 3
_FIRST_PART = 0.6  # of a problem's time for its candidates, the rest for those around the best
_REFINED = 2  # of the best
_AHEAD = 4  # candidates that are compiled while one is measured
_MOST_OF_ONE = 10.0  # seconds for a problem that comes up while a program runs
_log = logging.getLogger("treadle")


@dataclass(frozen=True)
class Outcome:
    """What became of a workload. `result` is None if not even the first guess could be computed,
    for the reason that `failure` has. `rejected` are candidates whose results were wrong."""

    workload: Workload
    result: Result | None
    first: Candidate | None = None
    candidates: int = 0
    rejected: tuple[Candidate, ...] = ()
    failure: str = ""

    @property
    def gain(self) -> float:
        """How many times as fast as the first guess."""
        return 1.0 if self.result is None else self.result.first_seconds / self.result.seconds


@dataclass
class Progress:
    """Where the tuner is, for who shows it: `show` is called when that changes."""

    show: Callable[[Progress], None] = lambda _: None
    problems: int = 0
    problem: int = 0
    label: str = ""
    candidates: int = 0
    candidate: int = 0
    gain: float = 1.0


@dataclass
class _Trial:
    """What is known of a problem while it is tuned."""

    times: dict[Candidate, float] = field(default_factory=dict)
    batches: dict[Candidate, Batch] = field(default_factory=dict)
    rejected: list[Candidate] = field(default_factory=list)
    tried: set[Candidate] = field(default_factory=set)


def workloads_of(
    device: Device, families: Sequence[Family], again: bool = False
) -> list[tuple[Family, Workload]]:
    """What there is to tune: those that have no complete result, or all of them. Families
    alternate, so that a short budget has something of each."""
    lists = [[(family, each) for each in family.workloads(device)] for family in families]
    longest = max(map(len, lists), default=0)
    found = [each[at] for at in range(longest) for each in lists if at < len(each)]
    if again:
        return found
    kept = ((pair, choices.result_of(device, pair[1].problem)) for pair in found)
    return [pair for pair, result in kept if result is None or not result.complete]


def tune(
    device: Device,
    workloads: Sequence[tuple[Family, Workload]],
    seconds: float = SECONDS,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Outcome]:
    """Tune a device for some workloads, within so many seconds; what was found of each, when it is
    kept. Those for which no time is left are left out."""
    progress = progress or Progress()
    progress.problems = len(workloads)
    end = clock() + seconds
    for at, (family, workload) in enumerate(workloads):
        now = clock()
        if now >= end:
            return
        progress.problem, progress.label = at + 1, workload.label
        until = now + (end - now) / (len(workloads) - at)
        earlier = choices.result_of(device, workload.problem)
        outcome = tune_one(device, family, workload, until, progress, clock, earlier)
        if outcome.result is not None:
            choices.keep(device, workload.problem, outcome.result)
        yield outcome


def tune_one(
    device: Device,
    family: Family,
    workload: Workload,
    until: float,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
    earlier: Result | None = None,
) -> Outcome:
    """Tune a device for a workload until a time. Of candidates that an earlier run has measured
    only the best is measured again."""
    try:
        bench = family.prepare(device, workload)
        is_right = _reference(device, bench)
    except (TreadleError, MemoryError) as error:
        return Outcome(workload, None, failure=_line(error))
    shipped = choices.shipped_for(choices.shipped_name(device), workload.problem)
    known = [bench.first] + ([shipped] if shipped is not None else [])
    candidates = list(dict.fromkeys((*known, *bench.candidates)))
    count = len(candidates)
    if earlier is not None and not earlier.complete:  # go on where that ended
        rest = candidates[min(earlier.tried, count) :]
        known.append(earlier.chosen)
        candidates = list(dict.fromkeys((*known, *rest)))
    skipped = count - len(candidates)
    trial = _Trial()
    progress.candidates, progress.gain = count, 1.0
    now = clock()
    ends = (now + _FIRST_PART * (until - now), until)
    done = 0
    for at, end in enumerate(ends):
        if at:
            candidates = _around(bench, trial)
            progress.candidates += len(candidates)
        begun = iter(candidates[1:])
        for number, each in enumerate(candidates):
            if clock() >= end and each not in known:
                break
            done += not at
            progress.candidate = skipped + number + 1 + at * count
            progress.show(progress)
            for coming in islice(begun, 1 if number else _AHEAD):
                bench.begin(coming)
            _try(device, bench, each, is_right, trial)
            if bench.first not in trial.times:
                why = "its first guess does not give the same result twice, or cannot be timed"
                return Outcome(workload, None, bench.first, count, failure=why)
            progress.gain = trial.times[bench.first] / min(trial.times.values())
        else:
            continue
        if at:
            done = min(done, count - skipped - 1)  # what is around the best was not all tried
    for each in trial.rejected:
        _log.warning("%s: %s computes %s wrongly: it is not used", device.id, each, workload.label)
    result = _decided(bench, trial, skipped + done, count)
    return Outcome(workload, result, bench.first, count, tuple(trial.rejected))


def _around(bench: Bench, trial: _Trial) -> list[Candidate]:
    """What lies around the best candidates and was not tried."""
    best = sorted(trial.times, key=trial.times.__getitem__)[:_REFINED]
    found = dict.fromkeys(each for one in best for each in bench.near(one))
    return [each for each in found if each not in trial.tried]


def _reference(device: Device, bench: Bench) -> Callable[[Candidate], bool]:
    """A function that computes by a candidate, and says whether the result is the first guess's."""
    bench.run(bench.first, 0)
    device.synchronize()
    reference = bench.result()

    def is_right(candidate: Candidate) -> bool:
        bench.clear()
        bench.run(candidate, 0)
        return bool(bench.agrees(reference, bench.result()))

    return is_right


def _try(
    device: Device,
    bench: Bench,
    candidate: Candidate,
    is_right: Callable[[Candidate], bool],
    trial: _Trial,
) -> None:
    """Compute, compare and measure. A candidate that a device refuses is left out."""
    trial.tried.add(candidate)
    try:
        if not is_right(candidate):
            trial.rejected.append(candidate)
            return
        batch = Batch(device, lambda number: bench.run(candidate, number), bench.sets)
        trial.times[candidate] = min(batch.seconds() for _ in range(min(batch.rounds, 2)))
    except (TreadleError, MemoryError) as error:
        _log.debug("%s is left out: %s", candidate, error)
        return
    trial.batches[candidate] = batch
    # Graphs keep memory: only those of candidates that may win are kept.
    best = sorted(trial.times, key=trial.times.__getitem__)[:_FINALISTS]
    for each in [one for one in trial.batches if one not in best and one != bench.first]:
        del trial.batches[each]


def _decided(bench: Bench, trial: _Trial, tried: int, count: int) -> Result:
    times = trial.times
    if len(trial.batches) > 1:
        seconds = medians(list(trial.batches.values()))
        times = dict(zip(trial.batches, seconds, strict=True))
    first = times[bench.first]
    chosen = min(times, key=times.__getitem__)
    if times[chosen] > (1 - _GAIN) * first:
        chosen = bench.first
    return Result(chosen, times[chosen], first, tried, tried == count)


def measure(device: Device, family: Family, sizes: object) -> Candidate | None:
    """Tune a device for a problem that comes up while a program runs (TREADLE_TUNE=1)."""
    workload = family.workload(device, sizes)
    if workload is None:
        return None
    until = time.monotonic() + _MOST_OF_ONE
    _log.info("%s: %s is tuned", device.id, workload.label)
    outcome = tune_one(device, family, workload, until, Progress())
    if outcome.result is None:
        return None
    choices.keep(device, workload.problem, outcome.result)
    return outcome.result.chosen


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
