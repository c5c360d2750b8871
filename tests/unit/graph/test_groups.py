"""What a group's program says of its sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import treadle as td
from treadle.drivers import offline
from treadle.graph.groups import groups_of
from treadle.graph.schedule import Plan
from treadle.runtime.devices import Device, use_device
from treadle.runtime.graphs import Graph


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


def _hopper() -> Device:
    info = offline.nvidia_card(90)
    groups = replace(info.traits, group_products=frozenset({"bf16"}), multiprocessors=132)
    info = replace(info, dialect="sm_90a", traits=groups)
    return Device(offline.Backend(info), info)


def test_groups_of_threads_have_no_long_epilogues():
    functional = td.nn.functional
    device = _hopper()
    usual = offline.nvidia_card(90)
    for on, apart in ((device, True), (Device(offline.Backend(usual), usual), False)):
        with use_device(on), Graph(on).capture():  # where the planner tries nothing
            x, y = (td.empty((4096, 4096), dtype=td.bfloat16, device=on) for _ in range(2))
            leaf = td.empty((4096, 4096), dtype=td.bfloat16, device=on).requires_grad_()
            (long,) = td.autograd.grad(functional.gelu(leaf), leaf, x @ y)
            text = str(td.explain(long))
            assert ("its epilogue takes longer than storing it" in text) == apart
            assert text.startswith("2 kernels" if apart else "1 kernel\n")
            for short in (functional.relu(x @ y), functional.gelu(x @ y + x[0]), x @ y + x):
                assert str(td.explain(short)).startswith("1 kernel\n")
