"""Warps kept in step: where barriers come, what is warned of."""

from __future__ import annotations

import pytest

from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.lockstep import find_race, with_warp_barriers
from treadle.ir.traverse import statements_in
from treadle.ir.verify import verify

KERNEL = """
kernel k {
  buffer x: i32
  shared s: i32[64]

  var t: i32 = thread_idx.x
%s
}
"""


def kernel(body: str) -> n.Kernel:
    return from_text(KERNEL % "\n".join(f"  {line}" for line in body.strip().splitlines()))


def barriers(found: n.Kernel) -> int:
    verify(found)
    return sum(isinstance(node, n.Barrier) for node in statements_in(found.body))


CASES = {
    # name: the code, barriers that it gets, whether it is warned of
    "steps": ("s[t] = s[t] + s[t + 16]\ns[t] = s[t] + s[t + 8]", 3, True),
    "its own element": ("s[t] = x[t]\ns[t] = s[t] * 2", 2, False),
    "a barrier": ("s[t] = x[t]\nbarrier block\nx[t] = s[t + 1]", 1, False),
    "other elements": ("s[0] = x[0]\nx[t] = s[1]", 1, False),
    "one for all": ("if (t == 0) {\ns[0] = x[0]\n}\nx[t] = s[0]", 1, True),
    "a changed index": ("s[t] = x[t]\nt = t + 1\nx[t] = s[t]", 1, True),
    "a loop": ("for by: i32 in range(1, 4) {\ns[t] = x[t]\nx[t] = s[t - by]\n}", 2, True),
    "a loop's second turn": (
        "for by: i32 in range(1, 4) {\nx[t] = s[t + 1]\ns[t] = by\n}",
        2,
        True,
    ),
    "a second turn of two loops": (
        "for i: i32 in range(1, 4) {\nfor j: i32 in range(1, 4) {\nx[t] = s[t + i]\n}\ns[t] = i\n}",
        2,
        True,
    ),
    "barriers in loops": (
        "for i: i32 in range(1, 4) {\ns[t] = i\nbarrier block\nfor j: i32 in range(1, 4) {\n"
        "x[t] = s[t + j]\n}\nbarrier block\n}",
        3,
        False,
    ),
    "reads alone": ("x[t] = s[t] + s[t + 1]\nx[t + 1] = s[t]", 0, False),
    "memory of the device": ("x[t] = x[t + 1]\nx[t] = x[t + 2]", 0, False),
}


@pytest.mark.parametrize("name", CASES)
def test_barriers_and_warnings(name: str) -> None:
    body, count, warned = CASES[name]
    given = kernel(body)
    verify(given)
    found = find_race(given.body, frozenset({"s"}))
    assert (found is not None) == warned
    assert barriers(with_warp_barriers(given)) == count


def test_those_that_are_here_wait_where_a_warp_may_part() -> None:
    found = with_warp_barriers(
        kernel("if (x[t] > 0) {\ns[t] = s[t + 1]\n}\nif (t < 32) {\ns[t] = s[t + 2]\n}")
    )
    masks = [node.mask for node in statements_in(found.body) if isinstance(node, n.Barrier)]
    assert [isinstance(mask, n.Constant) for mask in masks] == [False, True, True]


def test_without_shared_memory_nothing_changes() -> None:
    given = from_text("kernel k {\n  buffer x: i32\n\n  x[0] = x[1]\n}\n")
    assert with_warp_barriers(given) is given
