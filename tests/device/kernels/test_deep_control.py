"""Flat code that compilers nest, and nested code: hundreds of levels, the same on all devices."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.deep_kernels import CASES, kernel_of


@pytest.mark.parametrize(("make", "count"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_deep_code(device, make, count, tmp_path):
    case = make(count)
    out = td.zeros(640, dtype=td.i32)
    kernel_of(case, tmp_path)[10, 64](out)
    assert out.tolist() == [case[2](i) for i in range(640)]


SWITCH = """
extern "C" __global__ void pick(int* o) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int t = 0;
    for (int r = 0; r < 2; r++) {
        switch (i + r) {
            %s
            default: t += 1000;
        }
        t += 7;
    }
    o[i] = t;
}
"""


def section(place: int) -> str:
    """Falls into the next one, leaves, leaves under a condition, or goes on with the loop."""
    ends = ("", "break;", f"if (r == {place % 2}) break;", "continue;", "")
    return f"case {place}: t += {place + 1}; {ends[place % 5]}\n"


def switched(i: int, count: int) -> int:
    t = 0
    for r in range(2):
        place, again = (i + r if i + r < count else count), False
        while place < count:
            t += place + 1
            again = place % 5 == 3
            if place % 5 in (1, 3) or (place % 5 == 2 and r == place % 2):
                break
            place += 1
        t += (place == count) * 1000 + (not again) * 7
    return t


def test_switches_of_cuda(device):
    count = 300
    through = td.cuda_module(SWITCH % "".join(map(section, range(count)))).pick
    alone = td.cuda_module(SWITCH % "".join(f"case {j}: t += {j}; break;\n" for j in range(count)))
    out = td.zeros(640, dtype=td.i32)
    through[10, 64](out)
    assert out.tolist() == [switched(i, count) for i in range(640)]
    alone.pick[10, 64](out)
    values = [j if j < count else 1000 for j in range(641)]
    assert out.tolist() == [values[i] + values[i + 1] + 14 for i in range(640)]
