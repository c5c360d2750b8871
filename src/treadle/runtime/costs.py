"""What work costs on a device of this machine, as measured, and what it is expected to take.

`Costs` are measured once for a device and its driver (`tensor/compiled/calibration.py`) and kept on
disk. `Work` is what a call has to do, in amounts that do not depend on the device. The estimate is
a sum: what a call costs by itself, each further array and launch, the bytes that are copied, and
for each kind of computation the time that its amount takes by the measured curve.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from treadle.core.version import __version__
from treadle.runtime import disk_cache, settings
from treadle.runtime.devices import Device

_SCHEMA = 1

# The kinds of computation, with the unit of their amounts.
KINDS = {
    "elementwise": "bytes",
    "reduction": "bytes",
    "arithmetic": "operations",
    "product": "operations",
    "convolution": "operations",
    "sort": "elements",
}

Curve = tuple[tuple[float, float], ...]  # amounts, with the seconds that they took, both rising


@dataclass(frozen=True)
class Costs:
    """Measured costs of a device. Seconds: of a call of a compiled function with one small NumPy
    array and one result, of each further array, result and launch. Bytes a second: of uploads and
    downloads. `kinds` has the curves of the kinds of computation that were measured."""

    call: float
    argument: float
    result: float
    launch: float
    upload: float
    download: float
    kinds: Mapping[str, Curve] = field(default_factory=dict)

    def seconds(self, kind: str, amount: float) -> float:
        """The time that an amount of a kind takes, beyond that of its launches. Between measured
        amounts it is interpolated, beyond them it is proportional."""
        curve = self.kinds[kind]
        if amount <= 0:
            return 0.0
        low, high = curve[0], curve[-1]
        if amount <= low[0]:
            return low[1] * amount / low[0]
        if amount >= high[0]:
            return high[1] * amount / high[0]
        low, high = next(pair for pair in pairwise(curve) if amount <= pair[1][0])
        share = math.log(amount / low[0]) / math.log(high[0] / low[0])
        return math.exp(math.log(low[1]) * (1 - share) + math.log(high[1]) * share)

    def missing(self, kinds: Sequence[str]) -> list[str]:
        """The kinds that have no curve yet."""
        return [kind for kind in kinds if kind not in self.kinds]

    def with_curves(self, curves: Mapping[str, Curve]) -> Costs:
        """The same with further curves."""
        return replace(self, kinds={**self.kinds, **curves})


@dataclass(frozen=True)
class Work:
    """What a call has to do. `amounts` are pairs of a kind and its amount."""

    amounts: tuple[tuple[str, float], ...] = ()
    launches: int = 1
    arguments: int = 1
    results: int = 1
    uploaded: int = 0
    downloaded: int = 0

    @property
    def kinds(self) -> list[str]:
        """The kinds of computation in it."""
        return list(dict.fromkeys(kind for kind, _ in self.amounts))


@dataclass(frozen=True)
class Estimate:
    """The seconds that a call is expected to take, by what they are for. `doubt` is the factor by
    which an estimate made in the same way was wrong elsewhere: from 1 up."""

    parts: tuple[tuple[str, float], ...]
    doubt: float = 1.0

    @property
    def seconds(self) -> float:
        """The sum."""
        return sum(seconds for _, seconds in self.parts)


def estimate(costs: Costs, work: Work) -> Estimate:
    """What a call whose arrays are the host's is expected to take on a device."""
    further = (
        max(work.launches - 1, 0) * costs.launch
        + max(work.arguments - 1, 0) * costs.argument
        + max(work.results - 1, 0) * costs.result
    )
    parts = [
        ("call", costs.call + further),
        ("upload", work.uploaded / costs.upload),
        ("download", work.downloaded / costs.download),
    ]
    computed: dict[str, float] = {}
    for kind, amount in work.amounts:
        computed[kind] = computed.get(kind, 0.0) + costs.seconds(kind, amount)
    return Estimate((*parts, *computed.items()))


# --- on disk --------------------------------------------------------------------------------------


def identity(device: Device) -> str:
    """What measured times of a device depend on: the device, its driver, and the host."""
    return f"{device.handle.cache_key()} {device.handle.threads} threads"


def load_costs(device: Device, host: Device) -> Costs | None:
    """The costs of a device as they were measured by an earlier process; None if there are none
    that can be used."""
    return _costs_of(load_entry(_costs_key(device, host)))


def save_costs(device: Device, host: Device, costs: Costs) -> None:
    """Keep the costs of a device."""
    save_entry(_costs_key(device, host), _values_of(costs))


def _costs_key(device: Device, host: Device) -> str:
    return disk_cache.key_of("costs", str(_SCHEMA), __version__, identity(device), identity(host))


def load_entry(key: str) -> Any:
    """The content of an entry that `save_entry` wrote; None if it is missing or damaged."""
    data = disk_cache.load(key) if settings.disk_cache else None
    if data is None:
        return None
    try:
        return json.loads(data)
    except ValueError:
        disk_cache.discard(key)
        return None


def save_entry(key: str, content: Any) -> None:
    """Keep content that JSON can write."""
    if settings.disk_cache:
        disk_cache.save(key, json.dumps(content).encode())


_NUMBERS = ("call", "argument", "result", "launch", "upload", "download")


def _values_of(costs: Costs) -> dict[str, Any]:
    return {name: getattr(costs, name) for name in _NUMBERS} | {"kinds": dict(costs.kinds)}


def _costs_of(values: Any) -> Costs | None:
    """Costs from an entry's content; None if that is not what `_values_of` gave."""
    try:
        numbers = {name: float(values[name]) for name in _NUMBERS}
        kinds = {
            str(kind): tuple((float(amount), float(seconds)) for amount, seconds in curve)
            for kind, curve in values["kinds"].items()
            if kind in KINDS
        }
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    flat = [number for curve in kinds.values() for point in curve for number in point]
    rising = all(one[0] < other[0] for curve in kinds.values() for one, other in pairwise(curve))
    if not rising or not all(kinds.values()) or not all(map(is_time, [*numbers.values(), *flat])):
        return None
    return Costs(**numbers, kinds=kinds)


def is_time(number: Any) -> bool:
    """Whether a number can be a measured time or rate."""
    return type(number) in (int, float) and 0 < number < math.inf
