"""Prints, assertions and failed checks come back from the report buffer as what they were."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ir_evaluator import run
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir.parser import from_text
from treadle.ir.passes.fission import FissionOptions, fission
from treadle.ir.passes.instrument import (
    REPORT,
    decode_report,
    format_entry,
    instrument,
    lost_words,
)
from treadle.ir.verify import verify

HEAD = """\
kernel talk block(4, 2, 1) {
  buffer x: f32
  buffer out: f32
  parameter x.size: i32 from ("size", "x")

  var tid: i32 = thread_idx.x + (4 * thread_idx.y)
"""


def report_of(
    body: str, *, check: bool = True, words: int = 4096, lanes: int | None = None, grid=1
):
    kernel = from_text(HEAD + body + "}\n")
    verify(kernel)
    kernel, sites = instrument(kernel, check)
    verify(kernel)
    report = np.zeros(words, np.uint32)
    report[1] = words
    buffers = {"x": np.arange(16, dtype=np.float32), "out": np.zeros(64, np.float32)}
    if sites:
        buffers[REPORT] = report
    workgroup = None
    if lanes is not None:
        result = fission(kernel, FissionOptions(lanes))
        kernel, workgroup = result.kernel, result.workgroup
    run(kernel, grid, buffers, invocations=workgroup)
    return report, sites, buffers["out"]


def lines_of(body: str, *, grid=1, **options: object) -> list[str]:
    report, sites, _ = report_of(body, grid=grid, **options)
    return [
        format_entry(entry, "talk", Dim3(4, 2), Dim3.of(grid))
        for entry in decode_report(report, sites)
    ]


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("-3", "-3"),
        ("4294967295:u32", "4294967295"),
        ("-5:i8", "-5"),
        ("-9000000000:i64", "-9000000000"),
        ("18446744073709551615:u64", "18446744073709551615"),
        ("0.10000000149011612", "0.1"),
        ("-inf", "-inf"),
        ("0.1:f64", "0.1"),
        ("1.5:f16", "1.5"),
        ("true", "True"),
    ],
)
def test_printed_values_keep_their_type(value: str, spelled: str) -> None:
    lines = lines_of(f'  if (tid == 5) {{\n    print "v ", {value}, " end"\n  }}\n', check=False)
    assert lines == [f"v {spelled} end"]


@pytest.mark.parametrize(
    ("part", "spelled"),
    [
        ('"%5.2f"(x[3])', " 3.00"),
        ('"%-6d|"(tid)', None),
        ('"%+e"(1.5:f64)', "+1.500000e+00"),
        ('"%08x"(-1:i16)', "ffffffff"),
        ('"%lld"(-9000000000:i64)', "-9000000000"),
        ('"%*.*f"(7, 1, 2.25)', "    2.2"),
        ('"%c"(tid + 60)', "A"),
        ('"%i"(true)', "1"),
        ('"%g"(inf:f16)', "inf"),
        ('"%p"(0:u64)', "(nil)"),
    ],
)
def test_values_formatted_as_c_does(part: str, spelled: str | None) -> None:
    body = f'  if (tid == 5) {{\n    print "<", {part}, ">" end ""\n  }}\n'
    if spelled is None:
        with pytest.raises(CompileError, match="not one conversion"):
            lines_of(body)
        return
    report, sites, _ = report_of(body)
    (entry,) = decode_report(report, sites)
    assert format_entry(entry, "talk", Dim3(4, 2), Dim3(1)) == f"<{spelled}>"
    assert entry.site.end == ""


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ('"%d"(1.5)', "%d prints an integer, not f32"),
        ('"%f"(3)', "%f prints a floating-point number, not i32"),
        ('"%s"(3)', "%s prints a string"),
        ('"%*d"(3)', "takes 1"),
        ('"%*d"(1.0, 3)', r"a \* of %\*d"),
    ],
)
def test_values_that_a_conversion_does_not_take(part: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        verify(from_text(f"kernel k {{\n  print {part}\n}}\n"))


@pytest.mark.parametrize("lanes", [None, 1, 3])
def test_an_access_outside_names_index_extent_and_thread(lanes: int | None) -> None:
    body = "  var i: i32 = (block_idx.x * 8) + tid\n  out[i] = x[i + 3; (i + 3) in x.size]\n"
    lines = lines_of(body, grid=2, lanes=lanes)
    assert sorted(lines) == [
        f"kernel talk, line 8: index {16 + k} is outside x of extent 16 (axis 0), "
        f"block (1, 0, 0), thread ({1 + k}, 1, 0)"
        for k in range(3)
    ]


def test_without_checking_the_kernel_is_the_very_same() -> None:
    kernel = from_text(HEAD + "  out[tid] = x[tid; tid in x.size]\n}\n")
    assert instrument(kernel, False) == (kernel, ())
    assert instrument(kernel, False)[0] is kernel


def test_assertions_disappear_without_checking_and_speak_with_it() -> None:
    body = '  assert tid < 7, "small"\n'
    assert lines_of(body, check=False) == []
    assert lines_of(body) == [
        "kernel talk, line 7: assertion failed: small, block (0, 0, 0), thread (3, 1, 0)"
    ]


def test_what_is_not_evaluated_is_not_reported() -> None:
    body = (
        "  if ((tid < 2) && (x[tid + 15; (tid + 15) in x.size] > 0.0)) {\n  }\n"
        "  out[tid] = select(tid == 3, x[-1; -1 in x.size], 1.0)\n"
        "  if ((tid != 4) || (x[99; 99 in x.size] > 0.0)) {\n  }\n"
    )
    report, sites, out = report_of(body)
    found = [(e.thread, e.values[0]) for e in decode_report(report, sites)]
    assert sorted(found) == [(1, 16), (3, -1), (4, 99)]
    assert out[:5].tolist() == [1.0, 1.0, 1.0, 0.0, 1.0]


def test_a_loops_condition_is_checked_in_every_round() -> None:
    body = (
        "  var i: i32 = 14\n"
        "  while (x[i; i in x.size] > 0.0) {\n"
        "    if (i == 14) {\n      i = i + 1\n      continue\n    }\n"
        "    i = i + 1\n"
        "  }\n"
        "  out[tid] = f32(i)\n"
    )
    report, sites, out = report_of(body)
    entries = decode_report(report, sites)
    assert [e.values for e in entries] == [(16, 16)] * 8
    assert out[:8].tolist() == [16.0] * 8


def test_both_axes_and_stores_and_atomics_report() -> None:
    body = (
        "  if (tid == 0) {\n"
        "    out[9; 9 in 8, axis 1: 3 in 2] = 1.0\n"
        "    atomic add out[70; 70 in 64], 1.0\n"
        "  }\n"
    )
    report, sites, out = report_of(body)
    found = [(e.site.memory, e.site.axis, *e.values) for e in decode_report(report, sites)]
    assert found == [("out", 0, 9, 8), ("out", 1, 3, 2), ("out", 0, 70, 64)]
    assert not out.any()


def test_records_that_do_not_fit_are_counted() -> None:
    report, sites, _ = report_of("  print tid\n", words=2 + 4 * 3 + 2)
    entries = decode_report(report, sites)
    assert len(entries) == 3
    assert lost_words(report, sites) == 4 * 5
    assert report[2 + 4 * 3 :].tolist() == [0, 0]


def test_a_buffer_with_room_for_everything_has_lost_nothing() -> None:
    report, sites, _ = report_of("  print tid\n", words=2 + 4 * 8)
    assert sorted(e.values[0] for e in decode_report(report, sites)) == list(range(8))
    assert lost_words(report, sites) == 0


def test_functions_that_print_must_be_inlined_before() -> None:
    text = 'function f() -> void {\n  print "x"\n}\n' + HEAD + "  call f()\n}\n"
    with pytest.raises(CompileError, match="f prints or asserts"):
        instrument(from_text(text), False)
