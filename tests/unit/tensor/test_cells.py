"""Cells of arrays."""

from __future__ import annotations

import gc

import treadle as td
from treadle.tensor.cells import cells_of


def test_cells_are_listed_while_the_collector_frees_some():
    """Python 3.11 collects within any allocation, also between the steps of copying a set."""
    device = td.device("cpu")
    kept = [td.zeros(1, device=device) for _ in range(20)]
    before, enabled = gc.get_threshold(), gc.isenabled()
    try:
        for number in range(200):
            gc.disable()
            cycle: list[object] = [td.zeros(1, device=device)]
            cycle.append(cycle)
            del cycle
            gc.set_threshold(gc.get_count()[0] + number % 8)  # an allocation soon
            gc.enable()
            assert len(cells_of(device)) >= len(kept)
            gc.disable()
    finally:
        gc.set_threshold(*before)
        if enabled:
            gc.enable()
