"""What messages to actors cost, beside a launch for each: round trips, sending, many at once, and
a search in an index that is asked one query at a time."""

from __future__ import annotations

import functools
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, seconds
from treadle.actors import Ref

__all__ = ["about", "measurements"]

about = about_device
_ROUND_TRIPS = 3000
_BULK = 300_000


@td.struct
class Message:
    value: td.f32
    factor: td.f32


@td.actor(capacity=4096)
def scale(message: Message, hits: td.Array[td.i32]) -> td.f32:
    hits[0] += 1
    return message.value * message.factor


@td.kernel
def scale_once(value: td.f32, factor: td.f32, hits: td.Array[td.i32], out: td.Array[td.f32]):
    hits[0] += 1
    out[0] = value * factor


@dataclass(frozen=True)
class _Aims:
    """µs of a round trip, median and 99th percentile; million messages a second end to end."""

    median: float
    p99: float
    bulk: float


_AIMS = {"cpu": _Aims(20, 60, 1), "cuda": _Aims(6, 12, 2)}
_RELAUNCH = _Aims(60, 120, 5)
_SOFTWARE = _Aims(1000, 5000, 0.2)


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    parts = (_round_trip, _sending, _bulk, _mixed, _search)
    return [functools.partial(_on, spec, part) for part in parts]


def _on(spec: str, part: Callable[[str, _Aims], list[Figure]]) -> list[Figure]:
    with td.use_device(spec) as device:
        usual = _SOFTWARE if device.kind == "software" else _RELAUNCH
        return part(f"actors-{spec}", _AIMS.get(spec, usual))


@contextmanager
def _spawned() -> Iterator[Ref]:
    with scale.spawn(hits=td.zeros(1, dtype=td.int32)) as ref:
        assert ref.ask(Message(2.0, 3.0), timeout=60) == 6.0
        yield ref


def _launching() -> Callable[[], float]:
    """A launch for one message, and the read of its reply."""
    launch, hits, out = scale_once[1, 1], td.zeros(1, dtype=td.int32), td.zeros(1)

    def run() -> float:
        launch(2.0, 3.0, hits, out)
        return float(out.item())

    assert run() == 6.0
    return run


def _times(run: Callable[[], object], count: int) -> list[float]:
    times = []
    for _ in range(count):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times


def _round_trip(suite: str, aims: _Aims) -> list[Figure]:
    message = Message(2.0, 3.0)
    peer = _times(_launching(), 500)
    with _spawned() as ref:
        times = _times(lambda: ref.ask(message, timeout=60), _ROUND_TRIPS)
    at = [statistics.median, lambda each: float(np.quantile(each, 0.99))]
    return [
        Figure(
            suite, f"round trip, {name}", "µs", 1e6 * of(times), aim,
            peer="launch and read", peers=1e6 * of(peer),
        )
        for name, of, aim in zip(("median", "p99"), at, (aims.median, aims.p99), strict=True)
    ]  # fmt: skip


def _sending(suite: str, aims: _Aims) -> list[Figure]:
    message = Message(2.0, 3.0)
    records = np.zeros(2048, Message.dtype)
    with _spawned() as ref:

        def one() -> None:
            ref.send(message, reply=False)

        def settled() -> None:
            while ref.status().input_depth:
                time.sleep(0)

        # The actor is not waited for: both rings have room.
        slot = ref.prepare(message)

        def prepared() -> None:
            slot.send(reply=False)

        ready = seconds(prepared, settled, inner=1000, repeats=15)
        single = seconds(one, settled, inner=1000, repeats=15)
        times = []
        for _ in range(31):
            settled()
            began = time.perf_counter()
            ref.send_many(records, reply=False)
            times.append((time.perf_counter() - began) / len(records))
        many = statistics.median(times)
    return [
        Figure(suite, "send, of a new struct's bytes", "µs", 1e6 * single, 1.0),
        Figure(suite, "send, of a message that lies ready", "µs", 1e6 * ready, 0.35),
        Figure(suite, "send_many, a message", "ns", 1e9 * many, 20),
    ]


def _bulk(suite: str, aims: _Aims) -> list[Figure]:
    """From the first message sent to the last reply received; beside it as many launches, whose
    last result is read."""
    records = np.zeros(_BULK, Message.dtype)
    records["value"], records["factor"] = np.arange(_BULK), 2
    took = []
    with _spawned() as ref:
        for _ in range(5):
            got: list[np.ndarray] = []
            receiver = threading.Thread(
                target=lambda into=got: into.append(ref.receive_many(_BULK, timeout=120))
            )
            receiver.start()
            began = time.perf_counter()
            ref.send_many(records, timeout=120)
            receiver.join()
            took.append(time.perf_counter() - began)
            assert np.array_equal(got[0], records["value"] * 2)
    launch, hits, out = scale_once[1, 1], td.zeros(1, dtype=td.int32), td.zeros(1)

    def launches() -> None:
        for _ in range(1000):
            launch(2.0, 3.0, hits, out)

    peer = seconds(launches, lambda: out.item(), repeats=15) / 1000
    each = statistics.median(took) / _BULK
    return [
        Figure(suite, "messages end to end", "M/s", 1e-6 / each, aims.bulk, higher=True),
        Figure(
            suite, "messages end to end, each", "µs", 1e6 * each, peer="launch each",
            peers=1e6 * peer,
        ),
    ]  # fmt: skip


@td.func
def follow(command, x):
    """0: read; 1: inject; else a step."""
    i = td.thread_idx.x
    if command == 1:
        if i == 0:
            x[0] += 1.0
    elif command > 1:
        x[i] = 0.5 * x[i] + 0.25


@td.actor(capacity=512, block=256)
def simulate(command: td.i32, x: td.Array[td.f32]) -> td.f32:
    follow(command, x)
    return x[0]


@td.kernel
def simulate_once(command: td.i32, x: td.Array[td.f32], out: td.Array[td.f32]):
    follow(command, x)
    if td.thread_idx.x == 0:
        out[0] = x[0]


def _mixed(suite: str, aims: _Aims) -> list[Figure]:
    """300 commands: inject, read back, compute."""
    commands = [(1, 0, 2)[n % 3] for n in range(300)]
    launch, x, out = simulate_once[1, 256], td.zeros(256), td.zeros(1)

    def theirs() -> None:
        for command in commands:
            launch(command, x, out)
            if not command:
                out.item()

    with simulate.spawn(x=td.zeros(256)) as ref:

        def ours() -> None:
            for command in commands:
                if command:
                    ref.send(command, reply=False)
                else:
                    ref.ask(command, timeout=60)

        mine, peer = seconds(ours, repeats=15), seconds(theirs, repeats=15)
    name = "300 commands: inject, read, compute"
    return [
        Figure(suite, name, "ms", 1e3 * mine, 0.4, peer="launch each", peers=1e3 * peer, ratio=True)
    ]


POINTS, DIMENSIONS = 4096, 4


@td.actor(capacity=4096)
def search(query: td.vec4[td.f32], points: td.Array[td.vec4[td.f32]]) -> td.i32:
    """The nearest of some points."""
    best = 0
    least = td.f32(1e30)
    for k in range(points.size):
        apart = points[k] - query
        distance = td.dot(apart, apart)
        if distance < least:
            least = distance
            best = k
    return best


@td.kernel
def search_once(
    query: td.vec4[td.f32],
    points: td.Array[td.vec4[td.f32]],
    distances: td.Array[td.f32],
):
    k = td.grid(1)
    if k < points.size:
        apart = points[k] - query
        distances[k] = td.dot(apart, apart)


def _search(suite: str, aims: _Aims) -> list[Figure]:
    """Many clients ask one query at a time: beside launches for each, all threads on one query."""
    rng = np.random.default_rng(0)
    index = rng.random((POINTS, DIMENSIONS), np.float32)
    queries = rng.random((4000, DIMENSIONS), np.float32)
    points, distances = td.asarray(index), td.zeros(POINTS)

    def theirs() -> None:
        for query in queries[:200]:
            search_once.launch(POINTS, td.vec4[td.f32](*query), points, distances)
            int(td.argmin(distances))

    with search.spawn(points=points) as ref:

        def ours() -> None:
            ref.send_many(queries, timeout=120)
            ref.receive_many(len(queries), timeout=120)

        mine = seconds(ours, repeats=5) / len(queries)
        assert ref.ask(td.vec4[td.f32](*index[77]), timeout=60) == 77
    peer = seconds(theirs, repeats=5) / 200
    return [
        Figure(
            suite, f"nearest of {POINTS} points, a query", "µs", 1e6 * mine, 0.1,
            peer="launch each", peers=1e6 * peer, ratio=True,
        )
    ]  # fmt: skip
