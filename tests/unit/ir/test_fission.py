"""A kernel whose block runs on few lanes does what it did with a thread for everyone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.flow_programs import draw
from tests.support.ir_evaluator import run
from treadle.core.errors import CompileError
from treadle.ir.parser import from_text
from treadle.ir.passes.fission import FissionOptions, FissionResult, fission
from treadle.ir.passes.predicate import predicate_returns
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.printer import to_text
from treadle.ir.verify import verify

BLOCKS = [
    (1, 1, 1),
    (7, 1, 1),
    (32, 1, 1),
    (33, 1, 1),
    (64, 1, 1),
    (8, 4, 1),
    (4, 3, 2),
    (1, 40, 1),
]
LANES = [1, 16, 64]


def results(kernel, count, *, invocations=None, reverse=False):
    grid = 2 if count < 16 else 1
    rng = np.random.default_rng(5)
    buffers = {
        "x": rng.integers(-50, 50, count * grid + 64).astype(np.int32),
        "few": np.array([3, 0, 2, 1, -1, 5, 2, 4], np.int32),
        "out": np.zeros(count * grid, np.int32),
        "fout": np.zeros(count * grid, np.float32),
        "counts": np.zeros(4, np.int32),
    }
    run(kernel, grid, buffers, {"n": 3, "k": 2}, invocations=invocations, reverse=reverse)
    return {name: array.tobytes() for name, array in buffers.items()}


@settings(max_examples=settings.default.max_examples // 4)
@given(
    data=st.data(),
    block=st.sampled_from(BLOCKS),
    lanes=st.sampled_from(LANES),
    sync=st.booleans(),
    warps=st.booleans(),
    returns=st.booleans(),
    reverse=st.booleans(),
)
def test_drawn_kernels_do_the_same_on_fewer_lanes(
    data, block, lanes, sync, warps, returns, reverse
) -> None:
    def pick(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    text = draw(pick, block, sync=sync, warps=warps, returns=returns)
    kernel = from_text(text)
    verify(kernel)
    count = kernel.block.count
    expected = results(kernel, count)
    predicated = predicate_returns(kernel)
    verify(predicated)
    check_barriers(predicated)
    assert results(predicated, count) == expected, text
    split = fission(predicated, FissionOptions(lanes))
    verify(split.kernel)
    assert split.workgroup.count <= max(lanes, 1)
    got = results(split.kernel, count, invocations=split.workgroup, reverse=reverse)
    assert got == expected, text + to_text(split.kernel)


# --- the shape of the result, on small kernels ---


def divided(text: str, lanes: int = 1, width: int = 32) -> FissionResult:
    kernel = from_text(text)
    verify(kernel)
    result = fission(kernel, FissionOptions(lanes, width))
    verify(result.kernel)
    return result


def names(result: FissionResult) -> set[str]:
    return {memory.name for memory in result.kernel.memories}


def body(result: FissionResult) -> str:
    text = to_text(result.kernel)
    return text[text.index("\n\n") + 2 : -3]


def test_loops_run_over_z_y_and_x_without_axes_of_extent_one() -> None:
    text = "kernel k block({}) {{\n  buffer y: i32\n  y[{}] = 1\n}}\n"
    everything = divided(text.format("4, 3, 2", "thread_idx.x"))
    assert body(everything) == (
        "  for thread.z: i32 in range(0, 2) parallel {\n"
        "    for thread.y: i32 in range(0, 3) parallel {\n"
        "      for thread.x: i32 in range(0, 4) parallel {\n"
        "        y[thread.x] = 1\n      }\n    }\n  }"
    )
    flat = divided(text.format("1, 3, 1", "thread_idx.y + thread_idx.x"))
    assert body(flat) == (
        "  for thread.y: i32 in range(0, 3) parallel {\n    y[thread.y + 0] = 1\n  }"
    )
    single = divided(text.format("1, 1, 1", "thread_idx.z"))
    assert body(single) == "  y[0] = 1"
    assert single.workgroup == (1, 1, 1)


def test_lanes_take_every_other_thread_and_barriers_stay() -> None:
    text = (
        "kernel k block(10, 1, 1) {\n  buffer y: i32\n"
        "  y[thread_idx.x] = 1\n  barrier block\n  y[thread_idx.x] = block_dim.x\n}\n"
    )
    result = divided(text, 4)
    assert result.workgroup == (4, 1, 1)
    assert body(result) == (
        "  for iteration: i32 in range(0, 3) parallel {\n"
        "    var thread: i32 = (iteration * 4) + thread_idx.x\n"
        "    if (thread < 10) {\n      y[thread] = 1\n    }\n  }\n"
        "  barrier block\n"
        "  for iteration.1: i32 in range(0, 3) parallel {\n"
        "    var thread.1: i32 = (iteration.1 * 4) + thread_idx.x\n"
        "    if (thread.1 < 10) {\n      y[thread.1] = 10\n    }\n  }"
    )


def test_no_more_lanes_are_used_than_there_is_work_for() -> None:
    text = "kernel k block(100, 1, 1) {\n  buffer y: i32\n  y[thread_idx.x] = 1\n}\n"
    assert divided(text, 64).workgroup == (50, 1, 1)
    assert divided(text, 512).workgroup == (100, 1, 1)
    warps = text.replace("  y[", "  barrier subgroup\n  y[")
    assert divided(warps, 64).workgroup == (4, 1, 1)


REDUCTION = """\
kernel k block(64, 1, 1) {
  buffer x: f32
  buffer y: f32
  parameter n: i32 from ("value", "n")
  shared t: f32[64]

  var tid: i32 = thread_idx.x
  var i: i32 = (block_idx.x * block_dim.x) + tid
  var mine: f32 = x[i; i in n]
  t[tid] = mine
  barrier block
  var step: i32 = 32
  while (step > 0) {
    if (tid < step) {
      t[tid] = t[tid] + t[tid + step]
    }
    barrier block
    step = step // 2
  }
  y[i] = t[0] - mine
}
"""


def test_only_what_threads_really_carry_gets_an_array() -> None:
    result = divided(REDUCTION)
    assert names(result) == {"t", "mine.threads"}
    assert "while (step > 0) {" in body(result)
    assert "barrier" not in body(result)


def test_a_value_overwritten_before_it_is_read_is_not_carried() -> None:
    text = (
        "kernel k block(8, 1, 1) {\n  buffer y: i32\n  var a: i32 = y[thread_idx.x]\n"
        "  y[thread_idx.x] = a\n  barrier block\n  a = y[7 - thread_idx.x]\n"
        "  y[a] = a\n}\n"
    )
    assert "a.threads[" not in body(divided(text))


USED_AGAIN = """
kernel k block(8, 1, 1) {
  buffer y: i32
  parameter n: i32 from ("value", "n")
  var a: i32 = 0
  for j: i32 in range(0, n) {
    FIRST
    y[thread_idx.x] = a
    barrier block
    SECOND
    y[thread_idx.x] = y[a] + 1
    barrier block
  }
}
"""


@pytest.mark.parametrize(
    ("first", "second", "carried"),
    [
        ("a = y[j]", "a = y[j + 1]", False),
        ("a = y[j]", "a = a + 1", True),
        ("a = a + y[j]", "a = y[j + 1]", True),
        ("a = y[j]", "if (j > 2) {\na = y[j + 1]\n}", True),
        ("a = y[j]", "if (j > 2) {\na = y[j + 1]\n} else {\na = 2\n}", False),
        ("a = y[j]", "for i: i32 in range(0, n) {\na = i\n}", True),
        ("a = y[j]", "a = 0\nfor i: i32 in range(0, n) {\na = a + i\n}", False),
        ("a = y[j]", "while (a < 3) {\na = 3\n}", True),
    ],
)
def test_a_name_that_is_used_again_is_a_variable_of_each_region(first, second, carried) -> None:
    """Unless a region reads what another one has assigned."""
    result = divided(USED_AGAIN.replace("FIRST", first).replace("SECOND", second))
    assert ("a.threads" in names(result)) == carried


def test_a_uniform_condition_is_decided_once() -> None:
    text = (
        "kernel k block(8, 1, 1) {\n  buffer x: i32\n  buffer y: i32\n"
        "  if (x[block_idx.x] > 0) {\n    y[thread_idx.x] = 1\n    barrier block\n  }\n}\n"
    )
    assert body(divided(text)).startswith("  if (x[block_idx.x] > 0) {\n    for thread.x")


def test_a_uniform_variable_of_a_plain_loop_is_taken_from_the_first_thread() -> None:
    text = (
        'kernel k block(8, 1, 1) {\n  buffer y: i32\n  parameter n: i32 from ("value", "n")\n'
        "  var s: i32 = 0\n  for j: i32 in range(0, n) {\n"
        "    s = s + j\n    y[thread_idx.x] = j\n  }\n"
        "  if (s > 3) {\n    y[thread_idx.x] = s\n    barrier block\n  }\n}\n"
    )
    assert "if (s.threads[0] > 3) {" in body(divided(text))
    pure = text.replace("    y[thread_idx.x] = j\n", "")
    assert names(divided(pure)) == set()


def test_several_lanes_agree_on_what_each_knows_from_its_threads() -> None:
    text = (
        'kernel k block(8, 1, 1) {\n  buffer y: i32\n  parameter n: i32 from ("value", "n")\n'
        "  var s: i32 = n * 2\n  y[s] = 0\n  barrier block\n"
        "  HEAD {\n    s = s + 1\n    barrier block\n  }\n"
        "  s = s + y[thread_idx.x]\n  barrier block\n  y[thread_idx.x] = s\n}\n"
    )
    agreement = (
        "  if (thread_idx.x == 0) {{\n    agreed[0] = {}\n  }}\n"
        "  barrier block\n  var decision: {} = agreed[0]\n  barrier block\n"
    )
    shown = body(divided(text.replace("HEAD", "if (s > 3)"), 4))
    assert agreement.format("s.threads[0] > 3", "bool") + "  if (decision) {\n" in shown
    shown = body(divided(text.replace("HEAD", "for j: i32 in range(0, s)"), 4))
    assert agreement.format("s.threads[0]", "i32").replace("agreed[0]", "agreed[1]") in shown
    assert "  for j: i32 in range(0, decision) {\n" in shown
    shown = body(divided(text.replace("HEAD", "while (s < 9)"), 4))
    again = agreement.format("s.threads[0] < 9", "bool").replace("\n  ", "\n    ")
    assert "  while (true) {\n  " + again.rstrip(" ") in shown
    assert "    if (!decision) {\n      break\n    }\n" in shown
    # One lane has nobody to agree with, and what all lanes compute alike needs no agreement.
    assert "agreed" not in body(divided(text.replace("HEAD", "if (s > 3)"), 1))
    assert "agreed" not in body(divided(text.replace("HEAD", "if (n > 3)"), 4))


def test_local_memories_of_one_region_stay_and_are_named_private() -> None:
    text = (
        "kernel k block(8, 1, 1) {\n  buffer y: i32\n  local a: i32[3]\n  local b: i32[3]\n"
        "  a[0] = thread_idx.x\n  y[thread_idx.x] = a[0]\n  b[1] = 5\n  barrier block\n"
        "  y[thread_idx.x] = b[1]\n}\n"
    )
    result = divided(text)
    lengths = {memory.name: memory.length for memory in result.kernel.memories}
    assert lengths == {"a": 3, "b": 24}
    assert result.private == {"a"}
    assert "b[(thread.x * 3) + 1] = 5" in body(result)


def test_a_local_memory_seen_as_another_type_keeps_its_parts_apart() -> None:
    text = (
        "kernel k block(2, 1, 1) {\n  buffer y: u64\n  local a: u32[3]\n"
        "  a@u64[0] = u64(thread_idx.x)\n  barrier block\n  y[thread_idx.x] = a@u64[0]\n}\n"
    )
    result = divided(text)
    assert result.kernel.memories[0].length == 8  # 16 bytes a thread
    y = np.full(2, 9, np.uint64)
    run(result.kernel, 1, {"y": y}, invocations=1)
    assert y.tolist() == [0, 1]


def test_structs_are_carried_and_zeroed() -> None:
    text = """\
struct Pair {
  a: i32
  b: array<f32, 2>
}

kernel k block(4, 1, 1) {
  buffer y: f32
  for k: i32 in range(0, 2) {
    var p: Pair
    if (thread_idx.x > k) {
      p->a = thread_idx.x
      p->b[1] = 0.5
    }
    barrier block
    y[thread_idx.x] = y[thread_idx.x] + f32(p->a)
    barrier block
  }
}
"""
    y = np.zeros(4, np.float32)
    run(divided(text).kernel, 1, {"y": y}, invocations=1)
    assert y.tolist() == [0.0, 1.0, 4.0, 6.0]


def test_warp_operations_under_a_warps_condition() -> None:
    text = """\
kernel k block(80, 1, 1) {
  buffer y: i32
  var tid: i32 = thread_idx.x
  var total: i32 = -1
  if ((tid // 32) != 1) {
    total = subgroup sum tid
    var other: i32
    other = subgroup shuffle tid, 20
    total = total + other
  }
  y[tid] = total
}
"""
    result = divided(text)
    assert "if (((warp * 32) // 32) != 1) {" in body(result)
    y = np.zeros(80, np.int32)
    run(result.kernel, 1, {"y": y}, invocations=1)
    last = sum(range(64, 80))  # the third warp has 16 lanes: lane 20 is outside
    assert y.tolist() == [
        *[sum(range(32)) + 20] * 32, *[-1] * 32, *[last + tid for tid in range(64, 80)]
    ]  # fmt: skip


def test_narrower_warps() -> None:
    text = (
        "kernel k block(8, 1, 1) {\n  buffer y: i32\n  var s: i32\n"
        "  s = subgroup sum thread_idx.x\n"
        "  y[thread_idx.x] = ((s * 100) + (lane * 10)) + subgroup_size\n}\n"
    )
    y = np.zeros(8, np.int32)
    run(divided(text, width=4).kernel, 1, {"y": y}, invocations=1)
    assert y.tolist() == [604, 614, 624, 634, 2204, 2214, 2224, 2234]


@pytest.mark.parametrize("lanes", [1, 3, 64])
def test_lanes_are_known_without_warp_operations(lanes: int) -> None:
    text = (
        "kernel k block(20, 2, 1) {\n  buffer y: i32\n"
        "  y[thread_idx.x + (thread_idx.y * 20)] = lane\n}\n"
    )
    result = divided(text, lanes)
    y = np.zeros(40, np.int32)
    run(result.kernel, 1, {"y": y}, invocations=result.workgroup)
    assert y.tolist() == [*range(32), *range(8)]


def test_a_function_that_asks_for_its_thread_is_refused() -> None:
    text = (
        "function f() -> i32 {\n  return thread_idx.x\n}\n"
        "kernel k block(8, 1, 1) {\n  buffer y: i32\n  y[0] = @f()\n}\n"
    )
    with pytest.raises(CompileError, match="f asks for thread_idx"):
        fission(from_text(text))
