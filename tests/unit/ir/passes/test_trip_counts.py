"""Steps known at run time: loops with trip counts, on the evaluator beside Python's range."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import ir_evaluator
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.fold import fold, specialize
from treadle.ir.passes.trip_counts import has_runtime_steps, with_trip_counts
from treadle.ir.printer import to_text
from treadle.ir.traverse import statements_in
from treadle.ir.verify import verify

TEXT = """
kernel visit block(1, 1, 1) {
  buffer out: TYPE
  parameter start: TYPE from ("value", "start")
  parameter stop: TYPE from ("value", "stop")
  parameter step: TYPE from ("value", "step")

  var k: i32 = 0
  for i: TYPE in range(start, stop, by STEP) {
    out[k; k in 12] = i
    k = k + 1
    if (i == 77:TYPE) {
      continue
    }
  }
  out[k; k in 12] = 42:TYPE
}
"""

CASES = {
    "i8": [
        (-128, 127, 100),
        (127, -128, -100),
        (127, -128, -128),
        (0, 9, 0),
        (0, 9, -1),
        (9, 0, -2),
    ],
    "u8": [(250, 255, 3), (250, 255, 255), (0, 255, 0), (255, 0, 9)],
    "i32": [(2**31 - 9, 2**31 - 1, 4), (-(2**31), 2**31 - 1, 2**31 - 1), (70, 80, 7)],
    "u64": [(2**64 - 9, 2**64 - 1, 4)],
}


def kernel(type: str, step: str = "step") -> n.Kernel:
    text = TEXT.replace(":TYPE from", f": {type} from").replace("STEP", step)
    text = text.replace(":TYPE", "" if type == "i32" else f":{type}").replace("TYPE", type)
    made = from_text(text)
    verify(made)
    assert from_text(to_text(made)) == made
    return made


@pytest.mark.parametrize("type", CASES)
def test_the_values_are_those_of_range(type: str) -> None:
    made = kernel(type)
    assert has_runtime_steps(made)
    counted = with_trip_counts(made)
    assert not has_runtime_steps(counted)
    for start, stop, step in CASES[type]:
        expected = [*(range(start, stop, step) if step else ()), 42]
        for one in (made, counted, fold(counted)):
            out = np.zeros(12, np.dtype(f"{'int' if type[0] == 'i' else 'uint'}{type[1:]}"))
            ir_evaluator.run(
                one, buffers={"out": out}, parameters={"start": start, "stop": stop, "step": step}
            )
            assert out.tolist()[: len(expected)] == expected


def test_a_step_that_is_known_after_all_is_a_plain_loop() -> None:
    made = kernel("i32", "block_dim.x - 4")
    counted = with_trip_counts(fold(specialize(made, Dim3(1, 1, 1))))
    loops = [node for node in statements_in(counted.body) if isinstance(node, n.For)]
    assert [(loop.step, loop.by) for loop in loops] == [(-3, None)]


def test_a_step_of_0_runs_nothing() -> None:
    assert not any(
        isinstance(node, n.For) for node in statements_in(with_trip_counts(kernel("i32", "0")).body)
    )
