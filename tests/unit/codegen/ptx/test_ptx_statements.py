"""Variables in registers, loops, functions, other threads, and what of the machine is asked for."""

from __future__ import annotations

import re
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.printing import print_ptx
from tests.support.ptx_machine.memory import GlobalMemory
from tests.support.ptx_machine.run import load
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.folding import fold_grid
from treadle.ir.parser import from_text

HEAD = """\
  buffer x: f32
  buffer y: i32
  parameter n: i32 from ("value", "n")
  parameter m: i32 from ("size", "x")
"""


def source(
    body: str, block: str = "64, 1, 1", architecture: str = "sm_70", before: str = "", **more: Any
) -> str:
    """The PTX of a kernel with these statements."""
    lines = "\n".join(f"  {line}" for line in body.strip().splitlines())
    fast = " fastmath" if more.pop("fastmath", False) else ""
    head = f"{HEAD}  {more.pop('memory', '')}\n"
    fast += more.pop("enough", "")
    text = f"{before}kernel {more.pop('name', 'k')} block({block}){fast} {{\n{head}\n{lines}\n}}\n"
    target = replace(find_target("ptx").generic, dialect=architecture)
    return print_ptx(from_text(text), {"x": 0, "y": 1}, target, **more).source


def instructions(text: str) -> list[str]:
    """The instructions of a kernel after its parameters are loaded, without remarks."""
    lines = [line.strip() for line in text[text.index("{\n") :].splitlines()]
    skipped = (".reg", "//", "ld.param", "cvta", "{", "}")
    return [line for line in lines if line and not line.startswith(skipped)]


# --- variables ------------------------------------------------------------------------------------


def test_results_go_into_their_variables_at_once():
    found = instructions(source("var a: f32 = x[0]\nvar b: f32 = a\nb = (b * a) + 2.0\nx[0] = b"))
    assert found == [
        "ld.global.f32 %a, [%x];",
        "mov.f32 %b, %a;",
        "mul.f32 %f2, %b, %a;",
        "add.f32 %b, %f2, 0f40000000;",
        "st.global.f32 [%x], %b;",
        "ret;",
    ]


def test_variables_that_trade_places_are_read_before_they_are_written():
    text = source(
        """
        var v: vec2<f32> = vec2<f32>{x[0], x[1]}
        v = vec2<f32>{v->y, v->x}
        v = vec2<f32>{v->y + 1.0, v->x}
        x[0] = v->x
        x[1] = v->y
        """
    )
    swap = instructions(text)[2:]
    copies = dict(re.match(r"mov\.f32 (%f\d+), (.*);", line).groups() for line in swap[:2])
    assert sorted(copies.values()) == ["%v_x", "%v_y"]
    back = [re.match(r"mov\.f32 (.*), (%f\d+);", line).groups() for line in swap[2:4]]
    assert {target: copies[register] for target, register in back} == {
        "%v_x": "%v_y", "%v_y": "%v_x",
    }  # fmt: skip


def test_a_variable_keeps_the_value_that_another_had():
    text = source("var a: f32 = x[0]\nvar kept: f32 = a\na = x[1]\nx[2] = kept\nx[3] = a")
    assert "mov.f32 %f2, %a;" in text
    assert "st.global.f32 [%x+8], %f2;" in text


def test_one_value_in_several_parts_is_made_once():
    text = source("var v: vec2<f32>\nv = vec2<f32>{x[0] + 1.0, 0.5}\nx[0] = v->x\nx[1] = v->y")
    assert "add.f32 %v_x, " in text
    text = source(
        "var s: f32 = x[0]\nvar v: vec2<f32>\nv = vec2<f32>{s, s}\nx[0] = v->x\nx[1] = v->y"
    )
    assert "mov.f32 %v_x, %s;" in text
    assert "mov.f32 %v_y, %s;" in text


def test_names_are_spelled_as_ptx_has_them():
    names = ("größe", "tid", "r1", "if", "a.b", "WARP_SZ", "p2")
    body = "\n".join(f"var `{name}`: i32 = y[{i}] + n" for i, name in enumerate(names))
    body += "\n" + "\n".join(f"y[{i}] = `{name}`" for i, name in enumerate(names))
    text = source(body, name="`<lambda>`")
    assert ".visible .entry k_lambda_(" in text
    found = re.findall(r"st\.global\.u32 .*, (%\w+);", text)
    assert found == ["%gr_uf6_udfe", "%tid_", "%r1_", "%if", "%a_b", "%WARP_SZ_", "%p2_"]
    assert text.isascii()


def test_a_memory_may_be_called_as_a_label_would_be():
    body = "if (n > 0) {\n  end_1[0] = x[0]\n}\nx[0] = end_1[n]"
    text = source(body, memory="shared end_1: f32[4]")
    assert "mov.u32 %r1, end_1;" in text
    assert text.count("end_1_2") == 2  # the label, and the jump to it


# --- loops ----------------------------------------------------------------------------------------


def test_a_loop_is_tested_at_its_end_and_before_it_only_if_it_may_not_run():
    text = source("for k: i32 in range(0, n) {\n  y[k] = k\n}")
    assert instructions(text)[:3] == [
        "mov.u32 %k, 0;",
        "setp.ge.s32 %p1, %k, %n;",
        "@%p1 bra end_3;",
    ]
    text = source("for k: i32 in range(0, 1000) {\n  y[k] = k\n}")
    assert text.count("setp.") == 1


@pytest.mark.parametrize(
    ("loop", "wraps"),
    [("range(0, n, 3)", True), ("range(n, 0, -3)", False), ("range(0, n)", False),
     ("range(0, 2147483647, 3)", True), ("range(0, 4000, 3)", False)],
)  # fmt: skip
def test_a_step_that_might_leave_the_type_is_decided_by_what_is_left(loop, wraps):
    text = source(f"for k: i32 in {loop} {{\n  y[k] = k\n}}")
    assert bool(re.search(r"sub\.s32 .*\n.*setp\.gt\.u32 %p\d, %r\d+, 3;", text)) == wraps


def test_bounds_of_a_loop_are_evaluated_once():
    text = source("var e: i32 = y[0]\nfor k: i32 in range(0, e) {\n  e = e - 1\n}\ny[0] = e")
    assert re.search(r"mov\.u32 (%r\d+), %e;", text)
    assert "setp.lt.s32 %p2, %k, %e" not in text


# --- functions ------------------------------------------------------------------------------------

CLAMP = """\
function clamp(v: f32) -> f32 {
  if (v < 0.0) {
    return 0.0
  }
  return v
}

function twice(v: f32) -> f32 {
  return @clamp(v) + @clamp(v)
}

"""


def test_functions_are_printed_in_place_of_their_calls():
    text = source("x[0] = @twice(x[1])", before=CLAMP)
    assert "call" not in text
    assert text.count("setp.lt.f32") == 2
    assert instructions(text)[-4:-2] == ["end_3:", "add.f32 %f4, %f2, %f3;"]


# --- other threads --------------------------------------------------------------------------------


def test_atomics_are_native_where_there_is_an_instruction():
    text = source(
        """
        atomic sub y[0], n
        atomic min x[0], 1.5
        var o: i32
        o = atomic add y[n; n in 4], 1
        y[1] = o
        """
    )
    assert "neg.s32 %r1, %n;\n    red.global.add.u32 [%y], %r1;" in text.replace("// line 8\n", "")
    assert "atom.global.cas.b32" in text
    assert re.search(r"mov\.u32 %o, 0;\n    @%p\d atom\.global\.add\.u32 %o, \[%rd\d+\], 1;", text)


@pytest.mark.parametrize(
    ("block", "mask", "last"), [("64, 1, 1", "-1", "31"), ("5, 2, 1", "1023", "9")]
)
def test_masks_name_the_threads_that_exist(block, mask, last):
    text = source("var v: i32 = y[0]\nv = subgroup shuffle_xor v, 1\ny[0] = v", block)
    assert re.search(rf"shfl\.sync\.bfly\.b32 %v\|%p1, .*, 1, {last}, {mask};", text)


def test_newer_machines_are_asked_for_only_if_they_are_there_and_of_use():
    reduce = "var v: i32 = y[0]\nv = subgroup sum v\ny[0] = v"
    old, new = source(reduce), source(reduce, architecture="sm_90")
    assert ".version 6.0\n.target sm_70\n" in old
    assert "redux" not in old
    assert ".version 7.0\n.target sm_80\n" in new
    assert "redux.sync.add.s32" in new
    assert ".target sm_70\n" in source("x[0] = x[1] / x[2]", architecture="sm_90")


def test_minimum_and_maximum_hand_on_nan():
    smaller = "x[0] = min(x[1], x[2])"
    assert "min.NaN.f32" in source(smaller, architecture="sm_80")
    assert "setp.nan.f32" in source(smaller)
    fast = source(smaller, fastmath=True)
    assert "min.f32" in fast
    assert "nan" not in fast


def test_fastmath_takes_the_machines_own():
    text = source("x[0] = fast_exp(x[1]) / sqrt(x[2])", fastmath=True)
    for opcode in ("ex2.approx.ftz.f32", "div.full.f32", "sqrt.approx.f32"):
        assert opcode in text
    exact = source("x[0] = (1.0 / x[1]) / sqrt(x[2])")
    for opcode in ("rcp.rn.f32", "div.rn.f32", "sqrt.rn.f32"):
        assert opcode in exact


def test_division_of_indices_is_shifts_and_masks():
    text = source("y[m // 8] = thread_idx.x %% 8\ny[n // 4] = m / 16\ny[0] = (n & 7) / 2")
    assert "div" not in text
    assert text.count("shr.s32") == 2  # flooring is shifting, whatever the sign
    assert text.count("shr.u32") == 2  # truncating is, where there is no sign
    assert "div.s32" in source("y[0] = n / y[1]")


def test_a_folded_grid_counts_the_kernels_own_blocks():
    text = source("y[block_idx.y] = grid_dim.x", folded=True)
    assert re.findall(r"\.param \.s32 (\w+)", text) == ["n", "m", "grid_0", "grid_1", "grid_2"]
    assert "%nctaid.y" in text
    assert "st.global.u32 [%rd4], %grid_0;" in text


def test_blocks_behind_the_first_2_to_the_32():
    """One block that is placed there: launching all before it takes too long."""
    text = source(
        "y[0] = block_idx.x\ny[1] = block_idx.y\ny[2] = block_idx.z", "1, 1, 1", folded=True
    )
    device = fold_grid(Dim3(70_000, 70_000), Dim3((1 << 31) - 1, 65535, 65535))
    assert device == (70_000, 35_000, 2)
    memory = GlobalMemory()
    pointer = memory.allocate(12)
    for place, value in zip("xyz", (69_999, 34_999, 1), strict=True):
        text = text.replace(f"%ctaid.{place}", str(value))
    text = text.replace("%nctaid.y", str(device.y))
    block = struct.pack("<QQ5i", pointer, pointer, 0, 0, 70_000, 70_000, 1)
    load(text, "k", memory).launch((1, 1, 1), (1, 1, 1), block)
    assert memory.slice(pointer, 12).view(np.int32).tolist() == [69_999, 69_999, 0]


def test_a_print_needs_the_instrumented_kernel():
    with pytest.raises(UnsupportedOnTarget, match="instrument"):
        source('print "n", n')


def test_blocks_that_should_fit_a_multiprocessor_follow_from_registers():
    many = "".join(f"var a{k}: f32 = x[{k}]\na{k} = a{k} + 1.0\nx[{k}] = a{k}\n" for k in range(30))
    assert ".minnctapersm 2" in source(many, block="256, 1, 1")
    assert ".minnctapersm 4" in source(many, block="256, 1, 1", enough=" registers(64)")
