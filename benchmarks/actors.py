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
from treadle.actors.ring_code import ASKED_AT

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
    parts = (_round_trip, _sending, _bulk, _mixed, _search, _pipe, _many, _telemetry, _beside)
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


@td.actor(capacity=4096)
def halve(value: td.f32, hits: td.Array[td.i32]) -> td.f32:
    hits[0] += 1
    return 0.5 * value


def _pipe(suite: str, aims: _Aims) -> list[Figure]:
    """A message through two actors; beside it the host takes the reply of the first one and sends
    it to the second one."""
    message = Message(2.0, 3.0)
    records = np.zeros(_BULK // 10, Message.dtype)
    records["value"], records["factor"] = np.arange(len(records)), 2

    def hits() -> td.Tensor:
        return td.zeros(1, dtype=td.int32)

    with scale.spawn(hits=hits()) as first, halve.spawn(hits=hits()) as second:
        theirs = _times(
            lambda: second.ask(first.ask(message, timeout=60), timeout=60), _ROUND_TRIPS
        )
        first.pipe(second)

        def through() -> None:
            first.send(message)
            assert second.receive(timeout=60) == 3.0

        through()
        times = _times(through, _ROUND_TRIPS)

        def receive() -> None:
            got.append(second.receive_many(len(records), timeout=120))

        took = []
        for _ in range(5):
            got: list[np.ndarray] = []
            receiver = threading.Thread(target=receive)
            receiver.start()
            began = time.perf_counter()
            first.send_many(records, timeout=120)
            receiver.join()
            took.append(time.perf_counter() - began)
            assert np.array_equal(got[0], records["value"])
    rate = len(records) / statistics.median(took)
    return [
        Figure(
            suite, "through two actors by a pipe, median", "µs", 1e6 * statistics.median(times),
            peer="two asks", peers=1e6 * statistics.median(theirs),
        ),
        Figure(suite, "through two actors by a pipe", "M/s", 1e-6 * rate, higher=True),
    ]  # fmt: skip


def _many(suite: str, aims: _Aims) -> list[Figure]:
    """One of 300 actors, and all of them."""
    message, records = Message(2.0, 3.0), np.ones(64, Message.dtype)
    refs = [scale.spawn(hits=td.zeros(1, dtype=td.int32)) for _ in range(300)]
    try:
        for ref in refs:
            assert ref.ask(message, timeout=60) == 6.0
        times = _times(lambda: refs[-1].ask(message, timeout=60), _ROUND_TRIPS)
        took = []
        for _ in range(5):
            began = time.perf_counter()
            for ref in refs:
                ref.send_many(records, timeout=60)
            for ref in refs:
                assert len(ref.receive_many(len(records), timeout=60)) == len(records)
            took.append(time.perf_counter() - began)
    finally:
        for ref in refs:
            ref.terminate(timeout=60)
    rate = len(refs) * len(records) / statistics.median(took)
    return [
        Figure(suite, "round trip to one of 300, median", "µs", 1e6 * statistics.median(times)),
        Figure(suite, "messages to 300 in turn", "M/s", 1e-6 * rate, higher=True),
    ]


def _telemetry(suite: str, aims: _Aims) -> list[Figure]:
    """Round trips with and without the times that telemetry is made of, one kind after the other.
    Elsewhere than in persistent actors they are part of the loop in machine code."""
    message = Message(2.0, 3.0)
    with _spawned() as ref:
        mailbox = ref._mailbox
        asked_at = mailbox.words[ASKED_AT]
        if not asked_at:
            return []
        times: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(40):
            counted = turn % 2 == 0
            mailbox.words[ASKED_AT] = asked_at if counted else 0
            times[counted] += _times(lambda: ref.ask(message, timeout=60), 300)
        mailbox.words[ASKED_AT] = asked_at
    with_it, without = (statistics.median(times[counted]) for counted in (True, False))
    cost = 100 * (with_it / without - 1)
    return [Figure(suite, "telemetry, of a round trip", "%", cost, 2)]


@contextmanager
def _nearly_idle() -> Iterator[Ref]:
    """An actor that is asked just often enough to stay where it is."""
    stop = threading.Event()
    with _spawned() as ref:

        def ask() -> None:
            while not stop.wait(0.05):
                ref.ask(Message(1.0, 1.0), timeout=60)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield ref
        finally:
            stop.set()
            thread.join()


def _beside(suite: str, aims: _Aims) -> list[Figure]:
    """Other work beside an idle actor: the part of its speed that is left."""
    small = td.default_device().kind == "software" or suite.endswith("cpu")
    side, count = (256, 1 << 16) if small else (4096, 1 << 26)
    left, right = td.random.uniform((side, side)), td.random.uniform((side, side))
    data, host = td.ones(count), np.ones(count // 2, np.float32)

    def multiply() -> None:
        (left @ right).realize()

    def add() -> None:
        (data + 1.0).realize()

    def upload() -> None:
        td.asarray(host).realize()

    works = {"a matmul": multiply, "an addition": add, "an upload": upload}
    alone: dict[str, list[float]] = {name: [] for name in works}
    beside: dict[str, list[float]] = {name: [] for name in works}
    settle = td.default_device().synchronize
    polls = 0.0

    def measured(work: Callable[[], None]) -> float:
        # Enough of them that the wait for their end is nothing beside.
        return seconds(work, settle, inner=5 if small or work is upload else 50, repeats=7)

    for _ in range(3):  # in turns, since clocks change
        for name, work in works.items():
            alone[name].append(measured(work))
        with _nearly_idle() as ref:
            for name, work in works.items():
                beside[name].append(measured(work))
            polls = _polls_a_second(ref)
    figures = [
        Figure(
            suite, f"{name} beside an idle actor, of its speed", "",
            statistics.median(alone[name]) / statistics.median(beside[name]), 0.98, higher=True,
        )
        for name in works
    ]  # fmt: skip
    if suite.endswith("cuda"):
        # Each poll reads two lines of 64 bytes; a bus of the fifth generation carries 63 GB/s.
        share = 100 * polls * 128 / 63e9
        figures.append(Figure(suite, "polls of an idle actor, of the bus", "%", share, 1))
    return figures


def _polls_a_second(ref: Ref) -> float:
    before, began = ref.telemetry().polls, time.perf_counter()
    time.sleep(0.5)
    return (ref.telemetry().polls - before) / (time.perf_counter() - began)
