"""What the tests of `td.compile(f, device="auto")` share: a clock and costs by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import treadle as td
from treadle.runtime.costs import KINDS, Costs
from treadle.tensor.compiled import placement

SMALL = Costs(1e-6, 1e-6, 1e-6, 1e-6, 1e12, 1e12, dict.fromkeys(KINDS, ((1.0, 1e-12),)))


class FakeClock:
    """A clock by which each call takes `seconds` of the device that it runs on."""

    def __init__(self, seconds: Callable[[td.Device], float]) -> None:
        self.seconds = seconds
        self.now = 0.0

    def __call__(self) -> float:
        self.now += self.seconds(td.default_device())
        return self.now


@contextmanager
def fake_costs(costs: Callable[[td.Device], Costs] = lambda device: SMALL) -> Iterator[None]:
    """Within the block, devices have these costs, and are not measured."""
    before = placement.costs_of
    placement.costs_of = lambda device, host, kinds: costs(device)  # type: ignore[assignment]
    try:
        yield
    finally:
        placement.costs_of = before


def placed(
    function: Callable[..., Any], seconds: Callable[[td.Device], float], **options: Any
) -> Any:
    """A function that is placed by the fake clock."""
    made = td.compile(function, device="auto", **options)
    made._placement._clock = FakeClock(seconds)
    return made


def quick_on(device: td.Device) -> Callable[[td.Device], float]:
    """Seconds of calls: a device is quicker than the others."""
    return lambda each: 1.0 if each is device else 2.0


def kinds_of(function: Any) -> list[Any]:
    """The kinds of calls that a function has had."""
    found: list[Any] = function._placement.kinds
    return found


def runs_on(function: Any) -> list[str]:
    """Where the last kinds of calls run, by the names of devices."""
    return [
        (kind.other if kind.choice.is_best_away else kind.home).id for kind in kinds_of(function)
    ]
