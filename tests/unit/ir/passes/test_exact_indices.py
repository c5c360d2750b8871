"""Indices that are bytes divided: term by term where all are multiples, else as they were."""

from __future__ import annotations

import pytest

from treadle.ir.parser import from_text
from treadle.ir.passes.exact_indices import with_exact_indices
from treadle.ir.passes.fold import fold
from treadle.ir.printer import to_text
from treadle.ir.verify import verify

KERNEL = """
kernel tiles block(64, 1, 1) trusting {
  buffer x: f16
  parameter k: i32 from ("value", "k")
  shared tile: f16[4096]

  var t: i32 = thread_idx.x
  var row: i32 = INDEX
  var bytes: u32 = u32(row * 2)
  tile@vec4<u32>[i32(bytes) >> 4] = x@vec4<u32>[t]
}
"""


def changed(index: str, kernel: str = KERNEL) -> str:
    made = from_text(kernel.replace("INDEX", index))
    verify(made)
    made = fold(with_exact_indices(made))
    verify(made)
    return to_text(made)


@pytest.mark.parametrize(
    ("index", "part", "element"),
    [
        ("((t + 16) * 40) + 24", "t * 5", "row.8 + 83"),
        ("((t % 4) * 8) - (t * 16)", "(t % 4) - (t * 2)", "row.8"),
        ("(t << 3) + 8", "t", "t + 1"),
    ],
)
def test_multiples_are_divided(index, part, element):
    text = changed(index)
    assert f"tile@vec4<u32>[{element}]" in text
    assert part in text
    assert ">> 4" not in text


@pytest.mark.parametrize("index", ["(t * 40) + 4", "t * 4", "(t * k) + 8", "t"])
def test_others_stay(index):
    assert "tile@vec4<u32>[i32(bytes) >> 4]" in changed(index)


def test_a_variable_that_changes_is_no_sum():
    kernel = KERNEL.replace("  var bytes", "  row = row + 1\n  var bytes")
    assert "i32(bytes) >> 4" in changed("t * 8", kernel)


def test_only_an_element_of_so_many_bytes_is_meant():
    """Shifts to the left and back may cut bits off."""
    kernel = KERNEL.replace("tile@vec4<u32>[i32(bytes) >> 4] = x@vec4<u32>[t]",
                            "tile[i32(bytes) >> 4] = x[t]")  # fmt: skip
    assert "tile[i32(bytes) >> 4]" in changed("t * 8", kernel)


def test_kernels_that_check_their_accesses_stay():
    assert ">> 4" in changed("t * 8", KERNEL.replace(" trusting", ""))
