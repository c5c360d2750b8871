"""What can be seen of an actor from outside, as records."""

from __future__ import annotations

import time
from dataclasses import dataclass

from treadle.actors import ring_code as code
from treadle.actors.core import Core
from treadle.actors.mailbox import Mailbox


@dataclass(frozen=True, slots=True)
class Status:
    """An actor's state and counts, as `Ref.status` gives them."""

    state: str
    """"created", "active", "paused", "draining", "terminated" or "failed"."""
    mode: str
    """"thread", "relaunch" or "persistent"."""
    is_active: bool
    should_terminate: bool
    has_terminated: bool
    messages_processed: int
    errors_encountered: int
    input_depth: int
    """Messages that wait for it, in the inbox or in the outbox of an actor that is piped to it."""
    output_depth: int
    """Replies that wait in the outbox."""
    restarts: int
    dropped: int
    """Messages that a policy or the actor's end dropped."""
    last_error: str | None
    """The last failure of the handler, with its message; else why the actor failed."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """An actor's counts and the times that messages took, from their sending to the end of the
    handler, as `Ref.telemetry` gives them; of a persistent actor those of replies that were taken,
    until then (from the sending to the first one, where another kernel took them). Times are
    seconds, exact to an eighth; None before the first message. `dropped_newest` were not accepted,
    and neither were those of `dropped_at_end` that other actors' pipes brought too late."""

    accepted: int
    processed: int
    errors: int
    replies: int
    received: int
    dropped_oldest: int
    dropped_newest: int
    dropped_at_end: int
    input_depth: int
    output_depth: int
    polls: int
    latency_min: float | None
    latency_median: float | None
    latency_p99: float | None


class Clock:
    """The rate of the processor's clock, by which rings note times."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._read = mailbox.functions.clock
        self._start = self._read(), time.perf_counter()

    def ticks(self) -> float:
        """Ticks a second; 0 on processors without such a clock."""
        seconds = time.perf_counter() - self._start[1]
        if seconds < 0.01:
            time.sleep(0.01)
            seconds = time.perf_counter() - self._start[1]
        return float(self._read() - self._start[0]) / seconds


def status_of(core: Core) -> Status:
    """The status of an actor."""
    words = core.mailbox.words
    return Status(
        state="draining" if core.draining and not core.ended else core.state,
        mode=core.mode,
        is_active=core.state == "active" and not core.ended,
        should_terminate=core.closed is not None,
        has_terminated=core.ended,
        messages_processed=words[code.PROCESSED],
        errors_encountered=words[code.ERRORS],
        input_depth=core.waiting,
        output_depth=core.mailbox.replies,
        restarts=core.restarted,
        dropped=sum(core.dropped.values()),
        last_error=core.last_error,
    )


def telemetry_of(core: Core, clock: Clock) -> Telemetry:
    """The counts and times of an actor."""
    mailbox = core.mailbox
    words, ticks = mailbox.words, clock.ticks()
    low, middle, high = quantiles(mailbox.counts_of_latencies(), (0.0, 0.5, 0.99), ticks)
    return Telemetry(
        accepted=words[code.TAIL] + words[code.PIPED],
        processed=words[code.PROCESSED],
        errors=words[code.ERRORS],
        replies=words[code.OUT_TAIL],
        received=words[code.OUT_HEAD],
        dropped_oldest=core.dropped["drop_oldest"],
        dropped_newest=core.dropped["drop_newest"],
        dropped_at_end=core.dropped["terminated"],
        input_depth=core.waiting,
        output_depth=mailbox.replies,
        polls=words[code.HEARTBEAT],
        latency_min=low,
        latency_median=middle,
        latency_p99=high,
    )


def quantiles(
    counts: list[int], wanted: tuple[float, ...], ticks: float
) -> tuple[float | None, ...]:
    """Quantiles of times in the buckets of the histogram, in seconds.

    >>> quantiles([0] * 83 + [1] + [0] * 428, (0.5,), 1.0)  # 2**10 × (1 + 3/8)
    (1408.0,)
    """
    total = sum(counts)
    if not total or not ticks:
        return tuple(None for _ in wanted)
    found: list[float | None] = []
    for each in wanted:
        left = each * (total - 1)
        for bucket, count in enumerate(counts):
            left -= count
            if left < 0:
                power, fine = divmod(bucket, 8)
                found.append(2.0**power * (1 + fine / 8) / ticks)
                break
    return tuple(found)
