"""Plans and kernels are counted when they are made, not when they are found."""

from __future__ import annotations

import treadle as td
from treadle.runtime import counters


def _added(run):
    before = counters.counts()
    run()
    return counters.counts() - before


def test_what_is_made_is_counted_once(device):
    x = td.ones(37, device=device).realize()

    def run():
        # An expression that no other test has, so that its kernel is new to the device.
        (td.sinh(x * 3.0 - td.cos(x)) * x + td.cosh(td.sinh(x))).realize()

    first = _added(run)
    assert first.plans == 1
    assert first.kernels >= 1
    assert _added(run) == counters.Counts(0, 0)


def test_another_graph_is_another_plan(device):
    x = td.ones(5, device=device).realize()
    (x + 1.0).realize()
    assert _added(lambda: (x + 1.0).realize()).plans == 0
    assert _added(lambda: (td.sin(td.cosh(x + 1.0)) - td.sinh(x)).realize()).plans == 1


def test_a_kernel_is_counted_on_each_device_that_lacks_it(device):
    @td.kernel(
        source="""
def counted_kernel(x: td.Array[td.f32]):
    x[td.grid(1)] += 0.7373
"""
    )
    def counted_kernel(x): ...

    x = td.zeros(64, device=device).realize()
    assert _added(lambda: counted_kernel[1, 64](x)) == counters.Counts(0, 1)
    assert _added(lambda: counted_kernel[1, 64](x)) == counters.Counts(0, 0)
    assert _added(lambda: counted_kernel[2, 32](x)).kernels == 1  # for other blocks
