"""Work on tiles in stages: what the verifier and the analysis of barriers refuse."""

from __future__ import annotations

import pytest

from treadle.core.errors import CompileError
from treadle.ir.parser import from_text
from treadle.ir.passes.stages import has_stages, without_stages
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.printer import to_text
from treadle.ir.verify import verify

SUMS = ", ".join(f"sums[{at}]" for at in range(8))
KERNEL = """\
kernel product block(128, 1, 1) {
  buffer a: f16
  buffer out: f32
  buffer four: vec4<f32>
  parameter rows: i32
  shared left: f16[4096]
  shared right: f16[4096]
  shared barriers: u64[4]
  local sums: vec4<f32>[8]

  staged prepare [2, 1, 1, 0] barriers[0]
  staged claim [16384] barriers[0] from 1
  staged copy [64, 1, 1] left[0], barriers[0] from a[0], 64, rows, 1, 64, 0, 0, 0, 0
  staged copy [64, 1, 1] right[0], barriers[0] from a[0], 64, rows, 1, 64, 0, 0, 0, 0
  staged wait [] barriers[0] from 0
  staged multiply [1, 0] SUMS from left[0], right[0]
  staged settle [0]
  staged release [] barriers[0]
  out[thread_idx.x] = (sums[0])->x
}
""".replace("SUMS", SUMS)


def test_a_kernel_is_right_as_it_stands():
    kernel = from_text(KERNEL)
    verify(kernel)
    check_barriers(kernel)
    assert to_text(from_text(to_text(kernel))) == to_text(kernel)


def test_at_once_there_are_barriers_and_loops():
    kernel = without_stages(from_text(KERNEL))
    verify(kernel)
    check_barriers(kernel)
    assert not has_stages(kernel)
    text = to_text(kernel)
    assert text.count("barrier block") == 2  # before the stage is filled, and behind that


WRONG = [
    ("staged claim [16384] barriers[0] from 1", "staged claim [] barriers[0] from 1", "1 numbers"),
    ("staged wait [] barriers[0] from 0", "staged wait [] left[0] from 0", "memory of u64"),
    ("staged wait [] barriers[0] from 0", "staged wait [] barriers[0] from 0:i64", "as i32"),
    ("staged copy [64, 1, 1] left", "staged copy [65, 1, 1] left", "a multiple of 8"),
    ("staged copy [64, 1, 1] left", "staged copy [64, 1, 3] left", "ranks apart"),
    ("staged copy [64, 1, 1] left", "staged copy [64, 3, 1] left", "shared by one of"),
    ("prepare [2, 1, 1, 0]", "prepare [2, 3, 1, 0]", "a cluster has"),
    ("prepare [2, 1, 1, 0]", "prepare [2, 2, 1, 0]", "wait for each other"),
    ("staged copy [64, 1, 1] left", "staged copy [64, 2, 1] left", "than the 1 that"),
    ("  staged claim", "  staged leave []\n  staged claim", "the last statement"),
    ("  staged claim", "  staged prepare [2, 1, 1, 0] barriers[0]\n  staged claim", "once"),
    ("  staged prepare [2, 1, 1, 0] barriers[0]\n", "", "once"),
    ("prepare [2, 1, 1, 0]", "prepare [2, 1, 1, 2]", "24 to 256 registers"),
    ("prepare [2, 1, 1, 0]", "prepare [2, 1, 1, 236]", "24 to 256 registers"),
    ("left[0], barriers[0] from a[0]", "left[0], barriers[0] from right[0]", "element of a buffer"),
    ("left[0], barriers[0] from a[0]", "sums[0], barriers[0] from a[0]", "of what is multiplied"),
    ("multiply [1, 0]", "multiply [1, 2]", "0 or 1"),
    ("from left[0], right[0]", "from a[0], right[0]", "elements of shared memory"),
    (SUMS, "sums[0]", "a multiple of 64 columns"),
    (SUMS, SUMS.replace("sums[7]", "out[0]"), "of the thread's own"),
    (SUMS, SUMS.replace("sums[7]", "four[0]"), "of the thread's own"),
    ("  staged settle [0]\n", "", "may not be done"),
    ("  staged settle [0]\n", "  staged settle [1]\n", "may not be done"),
    ("  staged settle [0]\n", "  if (rows > 0) {\n    staged settle [0]\n  }\n", "may not be done"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG)
def test_what_is_wrong_is_said(right, wrong, message):
    assert right in KERNEL
    with pytest.raises(CompileError, match=message):
        verify(from_text(KERNEL.replace(right, wrong, 1)))


BYTES = (
    KERNEL.replace("multiply [1, 0]", "multiply [1, 1]")
    .replace("a: f16", "a: i8")
    .replace("left: f16", "left: i8")
    .replace("right: f16", "right: i8")
    .replace("local sums: vec4<f32>", "local sums: vec4<i32>")
    .replace("(sums[0])->x", "f32((sums[0])->x)")
)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("right: i8", "right: f16", "goes from i8 to f16"),
        ("multiply [1, 1]", "multiply [1, 0]", "the inner axis near in both tiles"),
        ("sums: vec4<i32>", "sums: vec4<f32>", "adds to vec4<i32>s"),
        (SUMS, ", ".join(SUMS.split(", ")[:5]), "multiple of 16 columns, not 40"),
    ],
)
def test_bytes(right, wrong, message):
    """Sums of 32-bit integers, of tiles whose inner axis is near."""
    verify(from_text(BYTES))
    verify(from_text(BYTES.replace(SUMS, ", ".join(SUMS.split(", ")[:3]))))
    verify(without_stages(from_text(BYTES)))
    assert right in BYTES
    with pytest.raises(CompileError, match=message):
        verify(from_text(BYTES.replace(right, wrong, 1)))


def test_sums_of_a_loop():
    """What a loop has begun may not be done when it begins again."""
    inside = "  for k: i32 in range(0, rows) {\n    sums[0] = vec4<f32>{0.0, 0.0, 0.0, 0.0}\n"
    text = KERNEL.replace("  staged multiply", inside + "    staged multiply", 1)
    text = text.replace("  staged settle", "  }\n  staged settle", 1)
    with pytest.raises(CompileError, match="may not be done"):
        verify(from_text(text))


ZEROS = "vec4<u32>{0:u32, 0:u32, 0:u32, 0:u32}"
HELD = (
    """\
kernel held block(128, 1, 1) {
  buffer a: f16
  buffer out: f32
  parameter rows: i32
  shared left: f16[4096]
  shared right: f16[4096]
  shared barriers: u64[4]
  local sums: vec4<f32>[8]
  local others: vec4<f32>[8]
  local words: vec4<u32>[2]

  staged prepare [2, 1, 1, 0] barriers[0]
  staged claim [16384] barriers[0] from 1
  staged copy [64, 1, 1] left[0], barriers[0] from a[0], 64, rows, 1, 2, 64, 0, 0, 0, 0, 0, 0
  staged copy [64, 1, 1] right[0], barriers[0] from a[0], 64, rows, 1, 1, 1, 64, FIVE
  staged wait [] barriers[0] from 0
  staged multiply_held [0, 64] SUMS from words[0], words[1], right[0]
  staged product [1, 0] OTHERS from left[0], right[0]
  staged settle [1]
  words[0] = ZEROS
  out[0] = (sums[0])->x
  staged settle [0] from (sums[0])->x
  staged hand [] barriers[2]
  out[thread_idx.x] = (others[0])->x
}
""".replace("SUMS", SUMS)
    .replace("OTHERS", SUMS.replace("sums", "others"))
    .replace("ZEROS", ZEROS)
    .replace("FIVE", "0, 0, 0, 0, 0, 0, 0, 0")
)


def test_a_held_factor_and_the_age_of_multiplications():
    """What was begun before the newest one is done after a wait that leaves one."""
    kernel = from_text(HELD)
    verify(kernel)
    check_barriers(kernel)
    assert to_text(from_text(to_text(kernel))) == to_text(kernel)
    at_once = without_stages(kernel)
    verify(at_once)
    assert "multiply_f16" in to_text(at_once)


WRONG_HELD = [
    ("  staged settle [1]\n", "", "`words` belongs to a multiplication"),
    (f"  words[0] = {ZEROS}\n  out[0] = (sums[0])->x\n  staged settle [0]", "  staged settle [1]",
     "`others` belongs to a multiplication"),
    ("  staged settle [1]\n", "  staged settle [2]\n", "may not be done"),
    ("out[0] = (sums[0])->x", "out[0] = (others[0])->x", "may not be done"),
    ("settle [0] from (sums[0])->x", "settle [0] from (others[0])->x", "may not be done"),
    ("settle [0] from (sums[0])->x", "settle [0] from rows", "numbers of f32"),
    ("[0, 64]", "[0, 60]", "8 to 256 lines, a multiple of 8"),
    ("[0, 64]", "[0, 24]", "words of 1 to 24 elements, not 32"),
    ("from words[0], words[1], right[0]", "from right[0]", "of 1 to 64 elements, not 0"),
    ("from words[0], words[1]", "from sums[0], words[1]", "vec4<u32>s of the thread's own"),
    ("a[0], 64, rows, 1, 2, 64, 0, 0, 0, 0, 0, 0", "a[0], 64, rows, 1, 2, 64, 0, 0, 0, 0, 0",
     "three to five axes"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), WRONG_HELD)
def test_what_is_wrong_of_held_factors_is_said(right, wrong, message):
    assert right in HELD
    with pytest.raises(CompileError, match=message):
        verify(from_text(HELD.replace(right, wrong, 1)))


def test_sums_given_to_a_function():
    """Before what is done with them is known."""
    text = KERNEL.replace("  staged settle [0]\n", "  call touch(&sums)\n", 1)
    function = (
        "function touch(x: &vec4<f32>) -> void {\n  x[0] = vec4<f32>{0.0, 0.0, 0.0, 0.0}\n}\n"
    )
    with pytest.raises(CompileError, match="may not be done"):
        verify(from_text(function + text))


def test_all_threads_of_the_block_reach_it():
    text = KERNEL.replace(
        "  staged settle [0]", "  if (thread_idx.x < 32) {\n    staged settle [0]\n  }\n"
        "  staged settle [0]", 1,
    )  # fmt: skip
    with pytest.raises(CompileError, match="all threads of the block"):
        check_barriers(from_text(text))
