"""What a group's program says of its sizes."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.graph.groups import groups_of
from treadle.graph.schedule import Plan


def program_of(tensor):
    (group,) = groups_of(Plan([tensor._node]))
    return group.program


@pytest.mark.parametrize(
    ("shape", "big"), [((786_432, 4096), True), ((1 << 19, 4095), False), ((1 << 31,), True)]
)
def test_results_beyond_32_bits_are_counted_in_64(shape, big):
    """Though no extent and no stride, and no array that is read, may be so large."""
    row = td.asarray([1], dtype=td.uint8, device="cpu")
    assert program_of(td.broadcast_to(row, shape) + 1).big == big


def test_sums_over_more_than_32_bits_are_counted_in_64():
    row = td.asarray([1.0], device="cpu")
    assert program_of(td.sum(td.broadcast_to(row, (70_000, 70_000)) * 2)).big
    assert not program_of(td.sum(td.broadcast_to(row, (7000, 7000)) * 2)).big
