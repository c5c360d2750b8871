"""Results larger than the caches, which a CPU stores past them: here with small caches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from treadle.drivers.cpu import backend
from treadle.graph.emit.maps import MapVariant, map_strategy
from treadle.graph.groups import groups_of
from treadle.graph.schedule import Plan
from treadle.runtime.devices import Device

CACHE = 4000  # bytes


@pytest.fixture(scope="module")
def device():
    info = td.device("cpu").info
    info = replace(info, traits=replace(info.traits, streamed_bytes=CACHE))
    device = Device(backend(), info)
    with td.use_device(device):
        yield device
    device.close()


def variant_of(result, device):
    (group,) = groups_of(Plan([result._node]))
    extents = group.integers[: group.program.kept]
    (stage,) = map_strategy(group.program, extents, device).stages
    return stage.variant


def test_the_cpu_knows_its_caches():
    assert td.device("cpu").traits.streamed_bytes >= 0


def test_only_large_results_in_one_piece_are_streamed(device):
    x = td.zeros((1000,), dtype=td.float32).realize()
    y = td.zeros((1001,), dtype=td.float32).realize()
    z = td.zeros((40, 101), dtype=td.float32).realize()
    assert variant_of(x + 1, device) == MapVariant.POINTS
    assert variant_of(y + 1, device) == MapVariant.STREAM
    assert variant_of((y + 1).astype(td.float16), device) == MapVariant.POINTS
    assert variant_of(z + 1, device) == MapVariant.STREAM  # one axis in memory
    assert variant_of(z.T + z.T[0, 0], device) in MapVariant
    assert variant_of(z + z[0], device) == MapVariant.POINTS


@pytest.mark.parametrize("size", [1009, 1024, 70001])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "int8"])
def test_streamed_values(device, name, size):
    x = np.random.default_rng().integers(-50, 50, 3 * size + 5).astype(name)
    a, b = td.asarray(x, device=device), td.asarray(x, device=device)
    wanted = x[1 : size + 1] * 2 - 1
    np.testing.assert_array_equal((a[1 : size + 1] * 2 - 1).numpy(), wanted)
    for start in (0, 1, 5):  # results that begin anywhere
        b[start : start + 2 * size] = a[3 : 3 + 2 * size] + 1
        wanted = x.copy()
        wanted[start : start + 2 * size] = x[3 : 3 + 2 * size] + 1
        np.testing.assert_array_equal(b.numpy(), wanted)
        b[:] = a


def test_the_next_kernel_sees_what_other_threads_streamed(device):
    x = np.random.default_rng().integers(-50, 50, 2_000_003).astype(np.float32)
    y, wanted = td.asarray(x, device=device), x
    for step in range(9):
        y, wanted = (td.flip(y, 0) * 2 - step).realize(), wanted[::-1] * 2 - step
    np.testing.assert_array_equal(y.numpy(), wanted)
