"""How memory is reached: numbers taken off indices, shared addresses, guards, bindings, spaces."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.printing import print_ptx
from treadle.codegen.records import Binding, KernelCode, Target
from treadle.core.errors import CompileError
from treadle.ir.parser import from_text


def code(body: str, head: str = "", architecture: str = "sm_70", **options: Any) -> KernelCode:
    """A kernel over the buffers x (f32) and y (f32), with these statements."""
    lines = "\n".join(f"  {line}" for line in body.strip().splitlines())
    text = f"kernel k block(64, 1, 1) {{\n  buffer x: f32\n  buffer y: f32\n{head}\n\n{lines}\n}}\n"
    kernel = from_text(text)
    slots = options.pop("slots", {"x": 0, "y": 1})
    return print_ptx(kernel, slots, Target("ptx", architecture), **options)


def source(body: str, head: str = "") -> str:
    return code(body, head).source


# --- indices --------------------------------------------------------------------------------------

N = '  parameter n: i32 from ("value", "n")\n'


@pytest.mark.parametrize(
    ("index", "place"),
    [
        ("n + 3", "+12"),
        ("3 + n", "+12"),
        ("n - 3", "+-12"),
        ("((n + 1) * 4) - 2", "+8"),
        ("(n + 1) << 2", "+16"),
        ("(2 + n) + (n + 1)", "+12"),
        ("(n - 7) + 7", ""),
        ("(n + 2147483647) + 2147483647", "+-8"),  # as it wraps
    ],
)
def test_the_number_in_an_index_moves_into_the_address(index, place):
    text = source(f"y[0] = x[{index}]", N)
    assert re.search(rf"ld\.global\.nc\.f32 %f\d+, \[%rd\d+{re.escape(place)}\];", text), text


@pytest.mark.parametrize("index", ["n - 2147483647", "(n + 1) >> 1", "(n + 1) & 7", "(n + 1) * n"])
def test_what_cannot_move_stays(index):
    assert re.search(r"ld\.global\.nc\.f32 %f\d+, \[%rd\d+\];", source(f"y[0] = x[{index}]", N))


def test_a_wide_sum_that_was_widened_before_stays():
    # i64(n + 1) wraps in 32 bits before it is widened; only at the top is it an index that exists.
    head = '  parameter n: i32 from ("value", "n")\n  parameter m: i64 from ("value", "m")\n'
    assert "+4]" not in source("y[0] = x[m + i64(n + 1)]", head)
    assert "+4]" in source("y[0] = x[i64(n + 1)]", head)
    assert "+4]" in source("y[0] = x[m + 1:i64]", head)


def test_accesses_that_differ_by_numbers_share_one_address():
    text = source(
        """
        var i: i32 = thread_idx.x + n
        var up: i32 = i + 1
        y[i] = (x[i] + x[up]) + x[up + 1]
        """,
        N,
    )
    assert text.count("mul.wide.s32") == 2
    assert re.findall(r"ld\.global\.nc.*\[(.*)\]", text) == ["%rd4", "%rd4+4", "%rd4+8"]


def test_an_address_is_forgotten_when_its_variable_changes():
    text = source(
        """
        var i: i32 = n
        y[i] = x[i]
        i = i + 5
        y[i] = 2.0
        if (n > 3) {
          i = 0
        }
        y[i] = 3.0
        """,
        N,
    )
    assert text.count("add.s64") == 4  # x once; y three times, for three values of i


def test_an_address_made_in_a_branch_is_not_known_after_it():
    text = source("if (n > 3) {\n  y[n] = 1.0\n}\ny[n] = 2.0", N)
    assert text.count("add.s64") == 2


def test_checks_become_one_comparison_where_the_bound_is_an_extent():
    extent = '  parameter n: i32 from ("size", "x")\n'
    text = source("y[0] = x[thread_idx.x; thread_idx.x in n]", extent)
    assert text.count("setp.") == 1
    assert "setp.lt.u32" in text
    text = source("y[0] = x[thread_idx.x; thread_idx.x in n]", N)
    assert text.count("setp.") == 2


def test_an_index_that_loads_waits_for_the_check_that_does_not():
    head = N.replace("\n", "\n  local z: i32[4]\n")
    text = source("y[0] = x[z[n & 3]; n in 4]", head)
    assert text.index("bra ") < text.index("ld.local")
    text = source("y[0] = x[z[n & 3]; z[n & 3] in n]", head)
    assert "bra " not in text


# --- bindings -------------------------------------------------------------------------------------


def test_only_what_nobody_writes_is_read_through_the_constant_cache():
    done = code("y[0] = x[0] + y[1]")
    assert done.bindings == (Binding(("x",), False), Binding(("y",), True))
    assert done.source.count("ld.global.nc.") == 1
    shared = code("y[0] = x[0] + y[1]", slots={"x": 0, "y": 0})
    assert shared.bindings == (Binding(("x", "y"), True),)
    assert "ld.global.nc." not in shared.source
    assert shared.source.count(".param .u64") == 1


def test_parameters_follow_the_pointers_as_the_layout_lists_them():
    head = """\
  parameter a: bool
  parameter b: i8
  parameter c: f16
  parameter d: u64
  parameter e: bf16
"""
    done = code("y[0] = f32(e)", head)
    declared = re.findall(r"\.param \.(\w+) (\w+)", done.source)
    assert declared[:2] == [("u64", "x"), ("u64", "y")]
    kinds = {"u32": "u32", "i32": "s32", "f32": "f32", "u64": "u64"}
    assert declared[2:] == [(kinds[slot.stored], slot.parameter.name) for slot in done.layout.slots]
    assert done.layout.format == "<IifxxxxQfxxxx"


# --- spaces ---------------------------------------------------------------------------------------


def test_large_shared_memory_is_asked_for_at_the_launch():
    small = code("a[n] = b[n]", N + "  shared a: f32[4096]\n  shared b: f32[8192]\n")
    assert small.shared_bytes == 48 << 10
    assert small.dynamic_shared == 0
    assert ".shared .align 16 .b8 a[16384];" in small.source
    head = N + "  shared a: f32[4097]\n  shared b: vec4<f64>[2048]\n"
    large = code("a[n] = f32((b[n])->x)", head)
    assert large.shared_bytes == large.dynamic_shared == 16416 + 65536
    assert ".extern .shared .align 32 .b8 dynamic_shared[];" in large.source
    assert "+16416]" in large.source


def test_a_local_array_with_known_indices_is_registers():
    head = N + "  local own: f32[4]\n"
    assert ".local" not in source("own[1] = x[0]\ny[0] = own[1] + own[2]", head)
    text = source("own[n] = x[0]\ny[0] = own[1]", head)
    assert ".local .align 16 .b8 own[16];" in text
    assert "ld.local.f32 %f2, [own+4];" in text


@pytest.mark.parametrize(
    ("type", "count", "accesses"),
    [
        ("f32", 2, ["v2.f32"]),
        ("f32", 3, ["f32", "f32", "f32"]),
        ("f32", 4, ["v4.f32"]),
        ("f64", 4, ["v2.f64", "v2.f64"]),
        ("i8", 4, ["v4.s8"]),
        ("f16", 4, ["v4.b16"]),
        ("bf16", 2, ["v2.u16"]),
    ],
)
def test_vectors_travel_together(type, count, accesses):
    text = f"""\
kernel k block(64, 1, 1) {{
  buffer x: vec{count}<{type}>

  x[thread_idx.x] = x[thread_idx.x + 2]
}}
"""
    printed = print_ptx(from_text(text), {"x": 0}, Target("ptx")).source
    assert re.findall(r"ld\.global\.(\S+)", printed) == accesses
    assert len(re.findall(r"st\.global\.\S+", printed)) == len(accesses)


# --- refusals -------------------------------------------------------------------------------------


def test_refusals_say_what_is_wrong():
    kernel = from_text("kernel k {\n  buffer x: f32\n\n  x[0] = 1.0\n}\n")
    with pytest.raises(CompileError, match="no block size"):
        print_ptx(kernel, {"x": 0}, Target("ptx"))
    with pytest.raises(CompileError, match="sm_70 and newer, not for 'sm_60'"):
        code("y[0] = 1.0", architecture="sm_60")
