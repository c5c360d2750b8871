"""Deep control flow made shallow: the same values, at most so many levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.flow_programs import draw
from tests.support.ir_evaluator import run
from tests.support.ir_programs import outputs, random_kernel
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.passes.choices import choice_of
from treadle.ir.passes.inline import inline
from treadle.ir.passes.nesting import _Depths, unnest
from treadle.ir.passes.predicate import predicate_returns
from treadle.ir.passes.uniformity import check_barriers
from treadle.ir.verify import verify


def depth(block: n.Block) -> int:
    return _Depths(switches=False, most=0).block(block)


@pytest.mark.parametrize("most", [3, 5])
@pytest.mark.parametrize("seed", range(60))
def test_random_programs_compute_the_same(seed: int, most: int) -> None:
    kernel = inline(random_kernel(seed, size=30))
    shallow = unnest(kernel, switches=False, most=most)
    verify(shallow)
    assert outputs(shallow) == outputs(kernel)


def with_body(*lines: str, memory: str = "") -> n.Kernel:
    body = "\n".join(lines)
    return from_text(
        "kernel k block(4, 1, 1) {\n  buffer x: i32\n  buffer y: f32\n  buffer z: u32\n"
        '  parameter p: i32 from ("value", "p")\n'
        f"  {memory}\n  var i: i32 = thread_idx.x\n{body}\n}}\n"
    )


def nested(count: int, inside: str, between: str = "", after: str = "") -> list[str]:
    opened = [f"if (i >= {k % 3}) {{ {between}" for k in range(count)]
    return [*opened, inside, *(f"{after} }}" for _ in range(count))]


BODIES = {
    "returns": [f"if (i == {k}) {{ x[i] = {k}\n return }}" for k in range(100)] + ["x[i] = -1"],
    "two sided": [
        f"if (i == {k}) {{ x[i] = 5 }} else {{ if (p > {k + 9}) {{ return }} }}" for k in range(90)
    ],
    "continues": [
        "for j: i32 in range(0, 5) {",
        *(f"if ((j + i) == {k}) {{ x[j] = x[j] + {k}\n continue }}" for k in range(100)),
        "x[j] = -1", "}",
    ],
    "breaks": [
        "while (x[0; 0 in 6] < 9) {",
        *(f"if ((x[0] * 2) == {k}) {{ x[1] = {k}\n break }}" for k in range(100)),
        "} update { x[0] = x[0] + 1 }",
    ],
    "returns in loops": [
        "for j: i32 in range(0, 5) { for l: i32 in range(0, 3) {",
        *(f"if (((j * l) + i) == {k}) {{ x[j] = {k}\n return }}" for k in range(2, 70)),
        "}", *(f"if ((j + i) == {k}) {{ break }}" for k in range(4, 40)), "}", "x[5] = 7",
    ],
    "deep": nested(100, "x[i] = x[i] + 1"),
    "deep with work around": nested(
        70, "x[i] = x[i] * 3", "x[i] = x[i] + 1", "x[i] = x[i] - (i * 2)"
    ),
    "deep loops": nested(
        40, "for j: i32 in range(0, 2) {\n" + "\n".join(nested(40, "x[j] = x[j] + i")) + "\n}"
    ),
    "variables": [
        "if (i < 4) { var a: i32 = i + 7", *nested(60, "x[i] = a\n a = a + 1"), "x[5] = a }",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_deep_programs(name: str) -> None:
    kernel = with_body(*BODIES[name])
    verify(kernel)
    assert depth(kernel.body) > 38
    shallow = unnest(kernel, switches=False)
    verify(shallow)
    assert depth(shallow.body) <= (34 if name == "deep loops" else 26)
    assert outputs(shallow) == outputs(kernel)
    assert unnest(shallow, switches=False) is shallow or name == "deep loops"


def test_what_is_shallow_is_left_alone() -> None:
    kernel = with_body(*nested(20, "x[i] = 1"), *BODIES["returns"][:3])
    assert unnest(kernel, switches=False) is kernel


def test_functions_with_values() -> None:
    lines = "\n".join(f"if (v == {k}) {{ return {k * 2} }}" for k in range(100))
    kernel = from_text(
        f"function pick(v: i32) -> i32 {{\n{lines}\nreturn -1\n}}\n"
        "kernel k block(4, 1, 1) {\n  buffer x: i32\n  buffer y: f32\n  buffer z: u32\n"
        '  parameter p: i32 from ("value", "p")\n  x[thread_idx.x] = @pick(thread_idx.x * 3)\n}\n'
    )
    verify(kernel)
    shallow = unnest(kernel, switches=False)
    verify(shallow)
    assert depth(shallow.functions[0].body) <= 26
    assert outputs(shallow) == outputs(kernel)


def test_barriers_stay_where_all_threads_come_by() -> None:
    """`p` is one number for all: so are the flags behind conditions on it."""
    returns = "\n".join(f"if (p == {k + 5}) {{ x[i] = {k}\n return }}" for k in range(90))
    body = "\n".join([
        returns, "s[i] = i", "barrier block",
        *nested(50, "barrier block\nx[i] = s[3 - i]"),
    ]).replace("i >=", "p >=")  # fmt: skip
    kernel = with_body(body, memory="shared s: i32[4]")
    verify(kernel)
    check_barriers(kernel)
    shallow = unnest(kernel, switches=False)
    verify(shallow)
    check_barriers(shallow)
    assert depth(shallow.body) <= 26
    assert outputs(shallow) == outputs(kernel)


def flow_results(kernel: n.Kernel) -> dict[str, bytes]:
    count = kernel.block.count if kernel.block else 1
    buffers = {
        "x": np.arange(count + 64, dtype=np.int32) % 17 - 5,
        "few": np.array([3, 0, 2, 1, -1, 5, 2, 4], np.int32),
        "out": np.zeros(count, np.int32),
        "fout": np.zeros(count, np.float32),
        "counts": np.zeros(4, np.int32),
    }
    run(kernel, 1, buffers, {"n": 3, "k": 2})
    return {name: array.tobytes() for name, array in buffers.items()}


@settings(max_examples=settings.default.max_examples // 4)
@given(data=st.data(), warps=st.booleans(), returns=st.booleans())
def test_drawn_kernels_with_barriers(data: st.DataObject, warps: bool, returns: bool) -> None:
    def pick(below: int) -> int:
        return data.draw(st.integers(0, below - 1))

    kernel = from_text(draw(pick, (33, 1, 1), sync=True, warps=warps, returns=returns))
    verify(kernel)
    kernel = predicate_returns(kernel)
    try:
        check_barriers(kernel)
    except CompileError:
        return
    shallow = unnest(kernel, switches=False, most=3)
    verify(shallow)
    check_barriers(shallow)
    assert flow_results(shallow) == flow_results(kernel)


def chain(*conditions: str) -> n.If:
    text = " else ".join(f"if ({one}) {{ x[{k % 6}] = 1 }}" for k, one in enumerate(conditions))
    kernel = with_body(text + " else { x[0] = 9 }")
    found = kernel.body[-1]
    assert isinstance(found, n.If)
    return found


def test_choices() -> None:
    nine = [f"i == {k}" for k in range(9)]
    found = choice_of(chain(*nine))
    assert found is not None
    assert [values for values, _ in found.cases] == [(k,) for k in range(9)]
    assert len(found.default) == 1
    assert choice_of(chain(*nine[:7])) is None
    several = choice_of(chain("(i == 40) || (i == 41)", "i == 3", "i == 40", *nine))
    assert several is not None
    assert [values for values, _ in several.cases][:3] == [(40, 41), (3,), (0,)]
    mixed = choice_of(chain(*nine, "i > 7", "i == 20"))
    assert mixed is not None
    assert len(mixed.cases) == 9
    assert choice_of(chain("p == 1", *nine)) is None
    assert choice_of(chain(*(f"x[0] == {k}" for k in range(9)))) is None
