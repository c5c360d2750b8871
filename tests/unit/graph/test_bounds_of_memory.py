"""What was compiled for expressions that no longer come up is let go of."""

from __future__ import annotations

import gc
import weakref

import treadle as td
from treadle.core.recent_cache import RecentCache
from treadle.graph import recipes
from treadle.runtime import launch


def test_kernels_of_many_expressions_are_let_go_of(monkeypatch):
    device = td.device("cpu")
    for owner, name in ((device, "programs"), (device, "compiled"), (recipes, "_recipes")):
        monkeypatch.setattr(owner, name, RecentCache(2))
    x = td.asarray([1.0, 4.0, 9.0], device="cpu")
    seen = []

    def compute(number):
        y = td.sqrt(x)
        for place in range(3):
            y = td.negative(y) if number >> place & 1 else td.abs(y) + 1
        result = y.tolist()
        newest = next(reversed(device.programs._young.values()))
        seen.append(weakref.ref(newest._launchers[next(iter(newest._launchers))]))
        return result

    first = [compute(number) for number in range(6)]
    gc.collect()
    alive = [number for number, one in enumerate(seen) if one() is not None]
    assert 5 in alive
    assert len(alive) <= 4
    assert [compute(number) for number in range(6)] == first


def test_launches_with_numbers_that_change_are_let_go_of(monkeypatch):
    monkeypatch.setattr(launch, "_MOST_PREPARED", 4)
    factor = 0

    @td.kernel
    def scale(x: td.Array[td.f32]):
        i = td.grid(1)
        x[i] = factor * x[i]

    for factor in (1, 2, 3, 1, 4, 5, 6, 1):
        x = td.ones(4, device="cpu").realize()
        scale[1, 4](x)
        assert x.tolist() == [factor] * 4
    launcher = scale._launcher
    assert 2 <= len(launcher._prepared) <= 4
    assert not launcher._begun
