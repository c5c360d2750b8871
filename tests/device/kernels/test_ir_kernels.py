"""What CUDA C++ asks of the IR, on every device: kernels written as IR."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.ir_kernels import ir_kernel
from treadle.runtime import settings

WILD = """
kernel wild trusting {
  buffer x: i32
  parameter x.size: i32 from ("size", "x")
  var i: i32 = thread_idx.x
  x[i; i in x.size] = x[i + 1; (i + 1) in x.size] + 1
}
"""


def test_a_trusting_kernel_reports_in_check_mode(
    device: td.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "check", True)
    x = td.asarray(np.arange(5, dtype=np.int32))
    with pytest.raises(td.errors.LaunchError, match="index 5 is outside x of extent 5"):
        ir_kernel(WILD)[1, 5](x)


def test_a_trusting_kernel_is_right_within_its_arrays(device: td.Device) -> None:
    x = td.asarray(np.arange(33, dtype=np.int32))
    ir_kernel(WILD.replace("i + 1; (i + 1) in", "i ^ 0; (i ^ 0) in"))[1, 33](x)
    np.testing.assert_array_equal(x.numpy(), np.arange(1, 34))


TALK = """
kernel talk {
  buffer x: f32
  buffer k: i32
  if (thread_idx.x < 3) {
    print "[", "%d"(thread_idx.x), "] ", "%8.3f"(x[thread_idx.x]), "|", "%08x"(k[0]) end ""
    print "%*u"(4, k[1]), " ", "%c"(k[2] + thread_idx.x), "%g"(x[3]), "%%"
  }
}
"""


def test_numbers_are_printed_as_c_formats_them(
    device: td.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    x = td.asarray(np.float32([1.5, -2.25, 1e6, np.inf]))
    k = td.asarray(np.int32([-2, 7, 65]))
    ir_kernel(TALK)[1, 5](x, k)
    printed = capsys.readouterr().out
    for thread, value in enumerate([1.5, -2.25, 1e6]):
        assert f"[{thread}] {value:8.3f}|fffffffe" in printed
        assert f"   7 {chr(65 + thread)}inf%%\n" in printed
    assert printed.count("\n") == 3


def test_a_thread_prints_in_its_order(
    device: td.Device, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
    kernel count {
      buffer x: i32
      for i: i32 in range(0, 20) {
        print "%d"(x[0] + i), "," end ""
      }
      print
    }
    """
    ir_kernel(text)[1, 1](td.asarray(np.int32([5])))
    assert capsys.readouterr().out == ",".join(map(str, range(5, 25))) + ",\n"


ASSERTING = """
kernel demand {
  buffer x: i32
  buffer out: i32
  parameter least: i32 from ("value", "least")
  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  for k: i32 in range(0, 3) {
    assert x[i] >= least, "x[i] >= least" always in "checked" !"file.cu":12:5-9
    out[i] = out[i] + 1
  }
}
"""


def test_a_failed_assertion_ends_its_thread(device: td.Device) -> None:
    kernel = ir_kernel(ASSERTING)
    x, out = td.asarray(np.arange(12, dtype=np.int32)), td.zeros(12, dtype=td.int32)
    with pytest.raises(td.errors.LaunchError) as caught:
        kernel[3, 4](x, out, 6)
    message = str(caught.value)
    assert message.startswith("file.cu:12: checked: block: [")
    assert "Assertion `x[i] >= least` failed (and 5 more)" in message
    np.testing.assert_array_equal(out.numpy(), [0] * 6 + [3] * 6)
    kernel[3, 4](x, out, 0)  # still usable
    np.testing.assert_array_equal(out.numpy(), [3] * 6 + [6] * 6)


def test_a_failed_assertion_before_a_barrier(device: td.Device) -> None:
    text = """
    kernel meet {
      buffer x: i32
      buffer out: i32
      shared part: i32[8]
      var i: i32 = thread_idx.x
      part[i] = 0
      barrier block
      assert x[i] != 3, "x[i] != 3" always
      part[i] = x[i]
      barrier block
      out[i] = part[7 - i]
    }
    """
    x, out = td.asarray(np.arange(8, dtype=np.int32)), td.full(8, -1, dtype=td.int32)
    with pytest.raises(td.errors.LaunchError, match=r"thread: \[3, 0, 0\] Assertion `x\[i\] != 3`"):
        ir_kernel(text)[1, 8](x, out)
    np.testing.assert_array_equal(out.numpy(), [7, 6, 5, -1, 0, 2, 1, 0])


def test_a_failed_assertion_where_no_thread_can_end_alone(device: td.Device) -> None:
    text = """
    kernel round {
      buffer x: i32
      while (true) {
        assert x[thread_idx.x] < 100, "below" always
        barrier block
        if (block_idx.x == 0) {
          return
        }
      }
    }
    """
    with pytest.raises(td.errors.LaunchError, match="and 1 more"):
        ir_kernel(text)[1, 4](td.asarray(np.arange(98, 102, dtype=np.int32)))


TIMED = """
kernel timed {
  buffer x: f32
  buffer took: i32
  var before: u64
  var after: u64
  before = clock
  var sum: f32
  for k: i32 in range(0, 100) {
    sum = sum + x[(k + thread_idx.x) % 64]
  }
  x[64 + thread_idx.x] = sum
  after = clock
  took[thread_idx.x] = i32(after - before)
}
"""


def test_a_clock_counts_on(device: td.Device) -> None:
    x, took = td.ones(128, dtype=td.float32), td.zeros(64, dtype=td.int32)
    if device.backend == "webgpu":
        with pytest.raises(td.errors.UnsupportedOnTarget, match="cannot read a clock"):
            ir_kernel(TIMED)[1, 64](x, took)
        return
    ir_kernel(TIMED)[1, 64](x, took)
    assert np.all(took.numpy() > 0)
    np.testing.assert_array_equal(x.numpy()[64:], np.full(64, 100, np.float32))


def test_two_readings_of_a_clock_stay_two() -> None:
    for language, read in (("ptx", "%clock64"), ("cuda", "clock64()"), ("llvm", "call i64")):
        source = ir_kernel(TIMED).source(language)
        assert source.count(read) == 2, source
    with pytest.raises(td.errors.UnsupportedOnTarget, match="Metal cannot read a clock"):
        ir_kernel(TIMED).source("msl")


FENCED = """
kernel fenced {
  buffer x: i32
  shared part: i32[64]
  shared count: i32[1]
  var i: i32 = thread_idx.x
  var before: i32
  if (i == 0) {
    count[0] = 0
  }
  barrier block
  if (i >= 50) {
    return
  }
  part[i] = i * i
  fence block
  before = atomic add count[0], 1
  if (before == 49) {
    var sum: i32 = 0
    for k: i32 in range(0, 50) {
      sum = sum + part[k]
    }
    x[0] = sum
  }
}
"""


def test_a_fence_orders_what_a_block_sees(device: td.Device) -> None:
    x = td.zeros(1, dtype=td.int32)
    ir_kernel(FENCED)[1, 64](x)
    assert x.numpy()[0] == sum(k * k for k in range(50))


def test_fences_that_barriers_cannot_stand_for() -> None:
    apart = FENCED.replace("fence block", "if (part[i] > 4) {\n    fence block\n  }")
    for language in ("wgsl", "msl"):
        with pytest.raises(td.errors.UnsupportedOnTarget, match="not all threads of the block"):
            ir_kernel(apart).source(language)
        with pytest.raises(td.errors.UnsupportedOnTarget, match="no memory fence for the device"):
            ir_kernel(FENCED.replace("fence block", "fence device")).source(language)
    system = ir_kernel(FENCED.replace("fence block", "fence system"))
    assert "fence.acq_rel.sys" in system.source("ptx")
    sequential = ir_kernel(FENCED.replace("fence block", "fence system sequential"))
    assert "fence.sc.sys" in sequential.source("ptx")
    assert "__threadfence_system();" in system.source("cuda")
    with pytest.raises(td.errors.UnsupportedOnTarget, match="no memory fence for the system"):
        system.source("wgsl")
    assert "fence.acq_rel.cta" in ir_kernel(apart).source("ptx")
    assert "__threadfence_block();" in ir_kernel(apart).source("cuda")
