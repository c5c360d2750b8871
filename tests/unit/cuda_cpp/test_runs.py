"""How often a kernel is lowered: what one run finds, the next one has, all of it."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.cuda_cpp.lower import program

CLASSES = """
struct A { short a, b; };
struct B { int c; };
struct D : A, B { char d; };
struct Kept { int *value, number; };
"""
# Objects that need a memory, the largest number of runs, and what is written, for `at` from 0 to 5.
FEATURES = {
    "bytes": (
        "A a{at} = {{(short)({at} + n), 7}}; unsigned char *p{at} = (unsigned char *)&a{at}; "
        "out[{at}] = p{at}[0] + 256 * p{at}[2];",
        2, lambda at: at + 3 + 256 * 7,
    ),
    "numbers": (
        "int a{at} = {at} + 256 * n; out[{at}] = ((char *)&a{at})[1] * 100 + *(short *)&a{at};",
        2, lambda at: 300 + 3 * 256 + at,
    ),
    "bases": (
        "D d{at}; d{at}.a = {at}; d{at}.c = n; B *b{at} = &d{at}; b{at}->c++; "
        "out[{at}] = 10 * d{at}.c + ((D *)b{at})->a;",
        2, lambda at: 40 + at,
    ),
    "kept addresses": (
        "int z{at} = n + {at}; kept[(n + {at}) % 6].value = &z{at}; z{at}++; "
        "out[{at}] = *kept[(n + {at}) % 6].value - 1;",
        4, lambda at: 3 + at,
    ),
    "addresses as numbers": (
        "int z{at} = n + {at}; unsigned long long v{at} = (unsigned long long)&z{at}; "
        "out[{at}] = *(int *)v{at} + (v{at} % 4 == 0);",
        4, lambda at: 4 + at,
    ),
    "one pointer": (  # which also has to be found to point to memory
        "A a{at} = {{(short)({at} + n), 7}}; p = &a{at}; out[{at}] = ((int *)p)[0];",
        4, lambda at: at + 3 + 65536 * 7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FEATURES)
def test_all_objects_that_need_a_memory_are_found_at_once(name, monkeypatch):
    body, most, wanted = FEATURES[name]
    runs, lower_once = [], program.lower_once
    monkeypatch.setattr(
        program, "lower_once", lambda *given: runs.append(given) or lower_once(*given)
    )
    inside = "\n".join(body.format(at=at) for at in range(6))
    start = "__global__ void k(int *out, int n) { A *p = nullptr; Kept kept[6];"
    source = f"{CLASSES}{start}\n{inside}\n}}"
    out = td.full(6, -1, dtype=td.int32, device="cpu")
    td.cuda_module(source).k[1, 1](out, 3)
    assert out.tolist() == [wanted(at) for at in range(6)]
    assert len(runs) <= most
