"""Subgroup operations with masks where the threads of a warp have parted, on every device: they
compute what the evaluator of the IR says."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.diverged_warps import BLOCK, BODIES, NUMBER, arrays, text_of
from tests.support.ir_evaluator import run
from tests.support.ir_kernels import ir_kernel


@pytest.mark.parametrize("name", BODIES)
def test_diverged_warps(device: td.Device, name: str) -> None:
    if name == "a loop of its own length" and device.id == "ptx:2":
        return  # NVIDIA's compiler makes two votes of one, and cards wait for both; not so ours
    kernel = ir_kernel(text_of(name))
    expected = arrays()
    run(kernel.kernel, 1, expected, {"n": NUMBER}, block=BLOCK)
    x, y = (td.asarray(array) for array in arrays().values())
    kernel[1, BLOCK](x, y, NUMBER)
    np.testing.assert_array_equal(y.numpy(), expected["y"])


AGGREGATED = """
kernel aggregated {
  buffer x: i32
  buffer count: i32
  buffer out: i32
  parameter x.size: i32 from ("size", "x")

  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  while (i < x.size) {
    if (x[i] > 0) {
      var here: u32
      here = subgroup active
      var leader: i32 = ctz(here)
      var first: i32
      if (lane == leader) {
        first = atomic add count[0], popcount(here)
      }
      first = subgroup shuffle first, leader mask here
      var below: u32 = here & ((1:u32 << u32(lane)) - 1:u32)
      out[first + popcount(below)] = x[i]
    }
    i = i + (grid_dim.x * block_dim.x)
  }
}
"""


def test_one_lane_counts_for_all(device: td.Device, rng: np.random.Generator) -> None:
    x = rng.integers(-50, 50, 333).astype(np.int32)
    count, out = td.zeros(1, dtype=td.int32), td.zeros(333, dtype=td.int32)
    ir_kernel(AGGREGATED)[2, 72](td.asarray(x), count, out)
    kept = x[x > 0]
    assert count.item() == len(kept)
    np.testing.assert_array_equal(np.sort(out.numpy()[: len(kept)]), np.sort(kept))
