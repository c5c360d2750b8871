"""What is found in kernels of which it is known: barriers, tests of indices, banks, sectors."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support.flow_programs import draw
from treadle.codegen import pipeline
from treadle.codegen.records import Options, Target
from treadle.core.limits import Limits
from treadle.ir.parser import from_text
from treadle.ptx_analysis import KernelReport, report

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"


def report_of(body: str, block: tuple[int, int, int] = (64, 1, 1)) -> KernelReport:
    """Of a kernel with this body. `%t` is the thread's index, `%p` the parameter, `%n` a number,
    `s` an array in shared memory."""
    text = f"""{HEAD}
.shared .align 16 .b8 s[65536];
.visible .entry k(.param .u64 p, .param .u32 n)
{{
    .reg .pred %q<9>; .reg .b32 %r<99>; .reg .b64 %d<9>; .reg .f32 %f<9>;
    mov.u32 %t, %tid.x;
    ld.param.u32 %n, [n];
    ld.param.u64 %p, [p];
{body}
    ret;
}}"""
    (found,) = report(text, block)
    return found


def kinds(found: KernelReport) -> list[str]:
    return [each.kind for each in found.findings]


# --- barriers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        # a uniform branch, a loop with a uniform count: all threads come
        ("setp.lt.u32 %q1, %n, 4; @%q1 bra L; bar.sync 0; L: bar.sync 0;", None),
        (
            "mov.u32 %r1, 0; L: bar.sync 0; add.u32 %r1, %r1, 1;"
            "setp.lt.u32 %q1, %r1, %n; @%q1 bra L;",
            None,
        ),
        # a condition that differs
        ("setp.lt.u32 %q1, %t, 4; @%q1 bra L; bar.sync 0; L: bar.sync 0;", "different ways"),
        ("setp.lt.u32 %q1, %t, 4; @%q1 bar.sync 0;", "%q1 differs"),
        # a loop whose count differs
        (
            "mov.u32 %r1, %t; L: bar.sync 0; add.u32 %r1, %r1, 64;"
            "setp.lt.u32 %q1, %r1, %n; @%q1 bra L;",
            "different ways",
        ),
        # what was loaded differs if its address does
        (
            "shl.b32 %r1, %t, 2; ld.shared.u32 %r2, [%r1]; setp.lt.u32 %q1, %r2, 4;"
            "@%q1 bra L; bar.sync 0; L: bar.sync 0;",
            "different ways",
        ),
        (
            "ld.shared.u32 %r2, [s]; setp.lt.u32 %q1, %r2, 4; @%q1 bra L; bar.sync 0;"
            "L: bar.sync 0;",
            None,
        ),
        # threads that have returned are not waited for
        ("setp.ge.u32 %q1, %t, %n; @%q1 bra L; bar.sync 0; L:", "right only if"),
        ("setp.ge.u32 %q1, %t, %n; @%q1 ret; bar.sync 0;", "right only if"),
        # a variable that threads wrote on different ways differs
        (
            "mov.u32 %r1, 1; setp.lt.u32 %q1, %t, 4; @%q1 bra L; mov.u32 %r1, 2; L:"
            "setp.eq.u32 %q2, %r1, 2; @%q2 bra M; bar.sync 0; M: bar.sync 0;",
            "different ways",
        ),
    ],
)
def test_barriers(body, words):
    found = [each.text for each in report_of(body).findings if each.kind == "barrier"]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


def test_barriers_of_a_warp_and_arrivals_are_no_barriers_of_a_block():
    body = "setp.lt.u32 %q1, %t, 4; @%q1 bra L; bar.warp.sync -1; barrier.arrive 1, 64; L:"
    assert report_of(body).barriers == 0
    assert kinds(report_of(body)) == []


@pytest.mark.parametrize("seed", range(12))
def test_drawn_programs_whose_threads_all_meet(seed):
    pick = random.Random(seed).randrange
    drawn = draw(pick, (8, 3, 2), sync=True, warps=True, returns=seed % 2 == 0)
    kernel = from_text(drawn)
    slots = tuple((buffer.name, i) for i, buffer in enumerate(kernel.buffers))
    limits = Limits(max_shared_memory=48 << 10, max_threads_per_block=1024)
    options, target = Options(kernel.block, slots), Target("ptx", "sm_80", limits)
    text = pipeline.print_code(pipeline.lower(kernel, options, target), options, target).source
    (found,) = report(text)
    assert found.barriers == text.count("bar.sync")
    words = [each.text for each in found.findings if each.kind == "barrier"]
    assert all("right only if" in each for each in words), words


# --- accesses without a test ----------------------------------------------------------------------

INDEX = "mul.wide.u32 %d1, {}, 4; add.s64 %d2, %p, %d1;"


@pytest.mark.parametrize(
    ("body", "is_unchecked"),
    [
        (INDEX.format("%t") + "st.global.f32 [%d2], %f1;", True),
        (INDEX.format("%t") + "setp.lt.u32 %q1, %t, %n; @%q1 st.global.f32 [%d2], %f1;", False),
        (
            "setp.ge.u32 %q1, %t, %n; @%q1 bra L;"
            + INDEX.format("%t")
            + "ld.global.f32 %f1, [%d2]; L:",
            False,
        ),
        # a test of something else
        (
            "setp.ge.u32 %q1, %n, 5; @%q1 bra L;"
            + INDEX.format("%t")
            + "ld.global.f32 %f1, [%d2]; L:",
            True,
        ),
        # an index that was loaded and never tested
        (
            "setp.ge.u32 %q1, %t, %n; @%q1 bra L;"
            + INDEX.format("%t")
            + "ld.global.u32 %r1, [%d2]; mul.wide.u32 %d3, %r1, 4; add.s64 %d4, %p, %d3;"
            "st.global.f32 [%d4], %f1; L:",
            True,
        ),
        # kept within bounds
        ("min.u32 %r1, %t, %n;" + INDEX.format("%r1") + "st.global.f32 [%d2], %f1;", False),
        ("and.b32 %r1, %t, 31;" + INDEX.format("%r1") + "st.global.f32 [%d2], %f1;", False),
        # the same for all threads
        ("st.global.f32 [%p], %f1;", False),
    ],
)
def test_accesses_that_no_test_decides_on(body, is_unchecked):
    assert ("unchecked" in kinds(report_of(body))) == is_unchecked


# --- addresses of lanes ---------------------------------------------------------------------------


def wanted_passes(addresses: np.ndarray, width: int) -> int:
    """How often shared memory is accessed, counted lane by lane."""
    passes = 0
    for lanes in np.split(addresses, max(width // 4, 1)):
        words = {int(a + k) // 4 for a in lanes for k in range(0, max(width, 4), 4)}
        passes += max(np.bincount([word % 32 for word in words]))
    return passes


@pytest.mark.parametrize("seed", range(30))
def test_bank_conflicts_are_those_of_counted_addresses(seed):
    pick = random.Random(seed)
    width, type_ = pick.choice([(1, "u8"), (4, "f32"), (8, "v2.f32"), (16, "v4.f32"), (8, "f64")])
    block = pick.choice([(64, 1, 1), (8, 8, 1), (4, 4, 4), (32, 32, 1), (5, 7, 1)])
    a, b, c = (pick.randrange(0, 70) for _ in range(3))
    common = pick.randrange(2)  # an unknown sum that all lanes have in common
    value = {"v2.f32": "{%f1, %f2}", "v4.f32": "{%f1, %f2, %f3, %f4}"}.get(type_, "%f1")
    found = report_of(
        f"mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mul.lo.u32 %r3, %t, {a}; shl.b32 %r4, %r1, 3;"
        f"mad.lo.s32 %r5, %r4, {b}, %r3; mad.lo.s32 %r6, %r2, {c}, %r5;"
        f"mul.lo.s32 %r7, %r6, {width}; mov.u32 %r8, s; add.s32 %r9, %r7, %r8;"
        f"mul.lo.s32 %r10, %n, {common * 64}; add.s32 %r11, %r9, %r10;"
        f"ld.shared.{type_} {value}, [%r11+{width * 3}];",
        block,
    )
    lane = np.arange(32)
    x, y, z = lane % block[0], lane // block[0] % block[1], lane // (block[0] * block[1])
    wanted = wanted_passes((x * a + 8 * y * b + z * c) * width, width)
    words = [each.text for each in found.findings]
    least = max(width // 4, 1)
    expected = f"bank conflicts: {wanted} accesses for a warp instead of {least}"
    assert words == ([expected] if wanted > least else [])
    assert found.unknown == 0


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        # Each alone: 16 lanes of a row have even banks, and so have those of the next row.
        ("ld.shared.f32 %f1, [%r4];", ["2 accesses for a warp instead of 1"]),
        ("ld.shared.f32 %f1, [%r4]; ld.shared.f32 %f2, [%r4+4];", []),
        ("ld.shared.f32 %f2, [%r4+4]; mov.u32 %r9, 1; ld.shared.f32 %f1, [%r4];", []),
        ("ld.shared.f32 %f1, [%r4+4]; ld.shared.f32 %f2, [%r4+8];", ["2 accesses"]),
        ("ld.shared.f32 %f1, [%r5]; ld.shared.f32 %f2, [%r5+4];", ["2 accesses"]),
        ("ld.shared.f32 %f1, [%r4]; bar.warp.sync -1; ld.shared.f32 %f2, [%r4+4];", ["2 accesses"]),
        ("ld.volatile.shared.f32 %f1, [%r4]; ld.volatile.shared.f32 %f2, [%r4+4];", ["2 accesses"]),
        ("ld.shared.f32 %f1, [%r4]; @%q1 ld.shared.f32 %f2, [%r4+4];", ["2 accesses"]),
        (
            "ld.shared.f32 %f1, [%r6]; ld.shared.f32 %f2, [%r6+8];"
            "ld.shared.f32 %f3, [%r6+4]; ld.shared.f32 %f4, [%r6+12];",
            [],
        ),
    ],
)
def test_loads_of_neighbours_are_one_where_they_are_aligned(loads, expected):
    """As ptxas has them: from %r4 on pairs, from %r6 on fours; %r5 may begin anywhere."""
    found = report_of(
        "shr.u32 %r1, %t, 4; and.b32 %r2, %t, 15; mul.lo.u32 %r3, %r1, 144;"
        "mad.lo.u32 %r8, %r2, 8, %r3; mov.u32 %r7, s; add.u32 %r4, %r8, %r7; add.u32 %r5, %r8, %n;"
        f"mad.lo.u32 %r6, %t, 16, %r7; setp.eq.u32 %q1, %n, 0; {loads}"
    )
    texts = [each.text for each in found.findings]
    assert len(texts) == len(expected)
    assert all(words in text for words, text in zip(expected, texts, strict=True))


def test_an_index_that_a_loop_moves():
    walk = (
        "mul.lo.u32 %r1, %t, {}; mov.u32 %r2, 0; L: ld.shared.f32 %f1, [%r1+64];"
        "add.u32 %r1, %r1, {}; add.u32 %r2, %r2, 1; setp.lt.u32 %q1, %r2, %n; @%q1 bra L;"
    )
    assert kinds(report_of(walk.format(4, 256))) == []
    assert "8 accesses" in report_of(walk.format(32, 4)).findings[0].text
    moved_by_thread = report_of(walk.format(4, "%t"))
    assert (kinds(moved_by_thread), moved_by_thread.unknown) == ([], 1)


@pytest.mark.parametrize(("stride", "words"), [(4, None), (16, "16 sectors"), (128, "32 sectors")])
def test_sectors_of_global_memory(stride, words):
    body = (
        "setp.lt.u32 %q1, %t, %n; mul.wide.u32 %d1, %t, {}; add.s64 %d2, %p, %d1;"
        "@%q1 ld.global.nc.f32 %f1, [%d2];"
    )
    found = [each.text for each in report_of(body.format(stride)).findings]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]
