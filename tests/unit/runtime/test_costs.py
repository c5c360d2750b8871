"""Measured costs: estimates, and entries on disk that are damaged."""

from __future__ import annotations

import json
import math

import pytest

import treadle as td
from treadle.runtime import costs, disk_cache, settings
from treadle.runtime.costs import Costs, Work, estimate

COSTS = Costs(
    10e-6, 1e-6, 2e-6, 3e-6, 1e9, 2e9,
    {"product": ((1e3, 1e-6), (1e6, 1e-4)), "elementwise": ((8.0, 1e-9),)},
)  # fmt: skip


@pytest.fixture
def cpu(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path / "cache"))
    return td.device("cpu")


def test_curves_are_interpolated_and_extended():
    assert COSTS.seconds("product", 0) == 0
    assert COSTS.seconds("product", 1e3) == pytest.approx(1e-6)
    assert COSTS.seconds("product", 500) == pytest.approx(0.5e-6)
    assert COSTS.seconds("product", 1e6) == pytest.approx(1e-4)
    assert COSTS.seconds("product", 1e7) == pytest.approx(1e-3)
    middle = COSTS.seconds("product", math.sqrt(1e3 * 1e6))
    assert middle == pytest.approx(math.sqrt(1e-6 * 1e-4))
    steps = [COSTS.seconds("product", 10.0**k) for k in range(10)]
    assert steps == sorted(steps)
    assert COSTS.seconds("elementwise", 16) == pytest.approx(2e-9)
    with pytest.raises(KeyError):
        COSTS.seconds("sort", 1)
    assert COSTS.missing(["sort", "product"]) == ["sort"]
    more = COSTS.with_curves({"sort": ((1.0, 1.0),)})
    assert more.missing(["sort", "product"]) == []


def test_an_estimate_is_a_sum_by_what_it_is_for():
    work = Work((("product", 1e3), ("elementwise", 8.0), ("product", 1e6)), 3, 2, 4, 1000, 4000)
    found = dict(estimate(COSTS, work).parts)
    assert found["call"] == pytest.approx(10e-6 + 2 * 3e-6 + 1e-6 + 3 * 2e-6)
    assert found["upload"] == pytest.approx(1e-6)
    assert found["download"] == pytest.approx(2e-6)
    assert found["product"] == pytest.approx(1e-6 + 1e-4)
    assert estimate(COSTS, work).seconds == pytest.approx(sum(found.values()))
    assert work.kinds == ["product", "elementwise"]
    empty = estimate(COSTS, Work((), 0, 0, 0))
    assert empty.seconds == COSTS.call


def test_costs_come_back_from_disk(cpu):
    assert costs.load_costs(cpu, cpu) is None
    costs.save_costs(cpu, cpu, COSTS)
    assert costs.load_costs(cpu, cpu) == COSTS


DAMAGED = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "null": b"null",
    "without a rate": json.dumps({"call": 1}).encode(),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_entries_count_as_missing(cpu, content):
    key = costs._costs_key(cpu, cpu)
    disk_cache.save(key, content)
    assert costs.load_costs(cpu, cpu) is None
    costs.save_costs(cpu, cpu, COSTS)
    assert costs.load_costs(cpu, cpu) == COSTS


@pytest.mark.parametrize(
    ("where", "value"),
    [("call", 0), ("upload", -1.0), ("launch", math.nan), ("result", math.inf), ("call", "1"),
     ("kinds", []), ("kinds", {"sort": []}), ("kinds", {"sort": [[1.0]]}),
     ("kinds", {"sort": [[1.0, -1.0]]}), ("kinds", {"sort": [[2.0, 1.0], [1.0, 2.0]]})],
)  # fmt: skip
def test_costs_that_make_no_sense_count_as_missing(cpu, where, value):
    good = costs._values_of(COSTS)
    costs.save_entry(costs._costs_key(cpu, cpu), good | {where: value})
    found = costs.load_costs(cpu, cpu)
    assert found is None or (where == "call" and found.call == 1.0)


def test_kinds_of_another_version_are_dropped(cpu):
    good = costs._values_of(COSTS)
    good["kinds"]["juggling"] = [[1.0, 1.0]]
    costs.save_entry(costs._costs_key(cpu, cpu), good)
    assert costs.load_costs(cpu, cpu) == COSTS


def test_nothing_is_kept_without_a_cache(cpu, monkeypatch):
    costs.save_costs(cpu, cpu, COSTS)
    monkeypatch.setattr(settings, "disk_cache", False)
    assert costs.load_costs(cpu, cpu) is None
    monkeypatch.setattr(settings, "disk_cache", True)
    disk_cache.clear()
    monkeypatch.setattr(settings, "disk_cache", False)
    costs.save_costs(cpu, cpu, COSTS)
    assert disk_cache.usage().entries == 0
