"""What was compiled for expressions that no longer come up is let go of."""

from __future__ import annotations

import gc
import weakref

import treadle as td
from treadle.core.recent import Recent
from treadle.graph import recipes


def test_kernels_of_many_expressions_are_let_go_of(monkeypatch):
    device = td.device("cpu")
    for owner, name in ((device, "programs"), (device, "compiled"), (recipes, "_recipes")):
        monkeypatch.setattr(owner, name, Recent(2))
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
