"""What expressions take: no arrays in between, none longer than it is read, nothing forgotten."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import treadle as td
from treadle.cli.bench.arrays import peak_beyond
from treadle.runtime.memory import size_class

# A full sum has at most 1024 partial sums (what keeps a GPU busy, in blocks of 256 threads), and
# what joins them is one kernel.
_PARTIALS = size_class(4 * 1024)


@pytest.fixture(params=["cpu", "webgpu"])
def device(request) -> Iterator[td.Device]:
    try:
        found = td.device(request.param)
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    gc.collect()  # what earlier tests left would be freed while memory is counted
    with td.use_device(found):
        yield found


def integers(*shape):
    """Small whole numbers, whose sums are exact."""
    return td.asarray(np.random.default_rng(3).integers(-3, 4, shape).astype(np.float32))


@pytest.mark.parametrize("count", [1, 1009, 1 << 20])
def test_a_sum_takes_its_result_and_partial_sums(device, count):
    a, b, c, d = (integers(count) for _ in range(4))
    found = []
    peak = peak_beyond(device, lambda: found.append(((a * b + c) * d).sum().realize()))
    expected = ((a.numpy().astype(np.float64) * b.numpy() + c.numpy()) * d.numpy()).sum()
    assert found[0].item() == expected
    assert size_class(4) <= peak <= size_class(4) + _PARTIALS


def test_a_chain_of_kernels_takes_two_arrays(device):
    x = integers(1 << 16, 4)
    turned = td.asarray(np.eye(4, dtype=np.float32)[[1, 2, 3, 0]])
    y = x
    for _ in range(7):
        y = y @ turned  # each a kernel of its own: it reads what it reads four times
    assert str(td.explain(y)).startswith("7 kernels")
    assert peak_beyond(device, y.realize) == 2 * x.nbytes
    np.testing.assert_array_equal(y.numpy(), np.roll(x.numpy(), 7, axis=1))


def test_inputs_that_nobody_else_has_are_reused(device):
    """The first input's memory goes back after its last reader was launched, not at the end."""
    numbers = np.random.default_rng(4).integers(-3, 4, (1 << 16, 4)).astype(np.float32)
    turned = td.asarray(np.eye(4, dtype=np.float32)[[1, 2, 3, 0]])
    gc.collect()
    y = td.asarray(numbers)
    for _ in range(7):
        y = y @ turned
    assert peak_beyond(device, y.realize) == numbers.nbytes
    np.testing.assert_array_equal(y.numpy(), np.roll(numbers, 7, axis=1))


def test_a_long_elementwise_chain_takes_two_arrays(device):
    x = integers(1 << 16)
    y = x

    def run():
        nonlocal y
        for _ in range(300):  # more than one kernel holds
            y = y * 0.5 + 1.0
        y.realize()

    peak = peak_beyond(device, run)
    np.testing.assert_array_equal(y.numpy(), np.full(1 << 16, 2.0, np.float32))
    assert x.nbytes <= peak <= 2 * x.nbytes


def test_a_dropped_expression_takes_nothing(device):
    x = integers(1 << 16)

    def run():
        for _ in range(10):
            td.sum(x * 2.0)

    assert peak_beyond(device, run) == 0


def _step(array, fixed, lazy, y, at):
    """Elementwise, a reduction, a write to a slice, a read now and then."""
    y = td.minimum(array * 0.5 + lazy, y + fixed)
    y[at % 7 : at % 7 + 5] = td.sum(y)
    greatest = td.max(y - lazy, axis=0)
    if at % 100 == 0:
        assert greatest.item() <= 8.0
    return y % 4.0


@pytest.mark.parametrize("iterations", [1500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_counts_stay_flat(device, iterations):
    """Of objects and of memory, with inputs of which one is never computed by itself."""
    array, fixed, y = integers(64), td.full(64, 0.125), td.zeros(64)
    lazy = array * 2.0

    def counts():
        device.synchronize()
        gc.collect()
        stats = device.memory_stats()
        return sys.getallocatedblocks(), stats["used"], stats["driver"]["allocated"]

    first = 700  # turns: places of writes and reads come together anew until then
    for at in range(first):
        y = _step(array, fixed, lazy, y, at)
    blocks, used, allocated = counts()
    for at in range(first, iterations):
        y = _step(array, fixed, lazy, y, at)
    later, used_later, allocated_later = counts()
    assert used_later <= used + 64 * 1024
    assert allocated_later <= allocated
    assert later - blocks < max(iterations // 10, 300)
