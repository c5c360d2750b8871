"""Grids that a device does not take as they are: every block once, in numbers of 32 bits."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from treadle.core.dim3 import Dim3
from treadle.core.folding import fold_grid


def block_of(place: tuple[int, int, int], device: Dim3, grid: Dim3) -> Dim3 | None:
    """What folded code computes."""
    x, y, z = place
    chunks = (grid.x - 1) // device.x + 1
    row = z * device.y + y
    assert row < 1 << 32
    assert grid.y * grid.z < 1 << 32
    at, line = row % chunks * device.x + x, row // chunks
    if at >= grid.x or line >= grid.y * grid.z:
        return None
    return Dim3(at, line % grid.y, line // grid.y)


@pytest.mark.parametrize("most", [Dim3(7, 7, 7), Dim3(100, 5, 9)])
def test_every_block_is_run_once(most: Dim3) -> None:
    for grid in itertools.starmap(Dim3, itertools.product((1, 3, 8, 13, 15), (1, 2, 9), (1, 8))):
        device = fold_grid(grid, most)
        rows = -(-grid.x // most.x) * grid.y * grid.z
        if device is None:
            assert rows > most.y * most.z - most.y
            continue
        assert all(a <= b for a, b in zip(device, most, strict=True))
        found = Counter(
            block_of(place, device, grid) for place in itertools.product(*map(range, device))
        )
        del found[None]
        assert set(found.values()) == {1}
        assert len(found) == grid.count


def test_grids_of_2_to_the_32_blocks() -> None:
    most = Dim3(65535, 65535, 65535)
    grid = Dim3(70_000, 70_000)
    device = fold_grid(grid, most)
    assert device == Dim3(35_000, 46_667, 3)
    assert block_of((34_999, 46_665, 2), device, grid) == Dim3(69_999, 69_999, 0)
    assert fold_grid(Dim3(1, 70_000, 70_000), most) is None
    assert fold_grid(Dim3(1, 1 << 31, 4), Dim3((1 << 31) - 1, 1 << 31, 65535)) is None
