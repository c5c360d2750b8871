"""Memory, control flow, barriers and warps of the PTX machine."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.ptx_machine.memory import MachineFault
from tests.support.ptx_machine.records import PtxError
from tests.unit.ptx_machine.snippets import launch

FULL = "0xffffffff"
PLACE = "mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0;"
STORE = "st.global.u32 [%rd1], %r1;"
ZEROS = np.zeros(32, np.uint32)


# --- control flow --------------------------------------------------------------------------------


def test_loops_of_different_lengths():
    body = f"""
        {PLACE} mov.u32 %r1, 0; mov.u32 %r2, 0;
    again:
        setp.ge.u32 %p1, %r2, %r0;
        @%p1 bra out;
        add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1;
        bra again;
    out:
        {STORE}
    """
    i = np.arange(300)
    assert launch(body, np.zeros(300, np.uint32), block=300).tolist() == (i * (i - 1) // 2).tolist()


def test_guards_choose_by_thread():
    body = f"""
        {PLACE} setp.lt.u32 %p1, %r0, 3; mov.u32 %r1, 7;
        @%p1 mov.u32 %r1, 5;
        @!%p1 add.u32 %r1, %r1, %r0;
        @%p1 st.global.u32 [%rd1], %r1;
    """
    assert launch(body, ZEROS).tolist() == [5, 5, 5] + [0] * 29


def test_a_copied_register_keeps_its_value():
    body = f"""
        {PLACE} mov.u32 %r2, 1; mov.u32 %r1, %r2;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 bra skip;
        mov.u32 %r2, 9;
    skip:
        add.u32 %r1, %r1, %r2;
        {STORE}
    """
    assert launch(body, ZEROS[:4], block=4).tolist() == [2, 10, 10, 10]


def test_functions_are_called_with_registers_and_with_parameters():
    outside = """
    .func (.reg .u32 %out) twice(.reg .u32 %in)
    { .reg .pred %q; setp.gt.u32 %q, %in, 2; @%q bra big; add.u32 %out, %in, %in; ret;
      big: mov.u32 %out, 100; ret; }
    .func (.param .b32 out) next(.param .b32 in)
    { .reg .u32 %r<3>; ld.param.u32 %r1, [in]; call.uni (%r2), twice, (%r1);
      add.u32 %r2, %r2, 1; st.param.u32 [out+0], %r2; ret; }
    """
    body = f"""
        {PLACE}
        {{ .param .b32 p0; .param .b32 q0; st.param.u32 [p0+0], %r0;
           call.uni (q0), next, (p0); ld.param.u32 %r1, [q0+0]; }}
        {STORE}
    """
    assert launch(body, ZEROS[:4], block=4, outside=outside).tolist() == [1, 3, 5, 101]


def test_special_registers_of_a_block_of_several_axes():
    body = """
        mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.z; mov.u32 %r4, %laneid;
        mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ntid.y; mov.u32 %r7, %nctaid.x;
        mad.lo.u32 %r8, %r1, 3, %r2; mad.lo.u32 %r8, %r3, 12, %r8; mad.lo.u32 %r9, %r5, 48, %r8;
        mad.wide.u32 %rd1, %r9, 16, %rd0;
        st.global.v4.u32 [%rd1], {%r8, %r4, %r6, %r7};
    """
    found = launch(body, np.zeros(4 * 96, np.uint32), block=(3, 4, 4), grid=2).reshape(96, 4)
    i = np.arange(96) % 48
    assert (found == np.stack([i, i % 32, np.full(96, 4), np.full(96, 2)], 1)).all()


# --- what may not be -----------------------------------------------------------------------------


def test_reading_a_register_that_was_never_written():
    body = f"{PLACE} setp.eq.u32 %p1, %r0, 5; @%p1 bra skip; mov.u32 %r1, 1; skip: {STORE}"
    with pytest.raises(MachineFault, match=r"%r1 was never written by thread 5"):
        launch(body, ZEROS)
    assert launch(body, ZEROS[:4], block=4).tolist() == [1, 1, 1, 1]
    with pytest.raises(MachineFault, match=r"%r3 was never written by thread 0"):
        launch(f"{PLACE} mov.u32 %r1, %r3; {STORE}", ZEROS)


def test_a_guarded_read_counts_where_the_guard_holds():
    body = f"""
        {PLACE} setp.lt.u32 %p1, %r0, 4; mov.u32 %r1, 0;
        @%p1 mov.u32 %r2, 3;
        @%p1 add.u32 %r1, %r1, %r2;
        selp.b32 %r1, %r2, 8, %p1;
        {STORE}
    """
    assert launch(body, ZEROS).tolist() == [3] * 4 + [8] * 28
    with pytest.raises(MachineFault, match=r"%r2 was never written by thread 4"):
        launch(body.replace("@%p1 add", "add"), ZEROS)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ("ld.global.u32 %r1, [%rd1+4];", "in no buffer"),
        ("ld.global.u32 %r1, [%rd0+-4];", "in no buffer"),
        ("st.global.v2.u32 [%rd0+4], {%r0, %r0};", "aligned to 8"),
        ("ld.global.u32 %r1, [%rd0+2];", "aligned to 4"),
        ("atom.global.add.u32 %r1, [%rd0+128], 1;", "in no buffer"),
        ("ld.u32 %r1, [%rd0+128];", "in no buffer"),
        ("st.shared.u32 [tile+64], %r0;", "outside of the 64 bytes of shared"),
        ("ld.shared.u32 %r1, [tile+63];", "outside"),
        ("ld.shared.u16 %h1, [tile+3];", "aligned to 2"),
        ("st.local.u32 [mine+8], %r0;", "outside of the 8 bytes of local"),
        ("ld.shared.u32 %r1, [%r0];", "thread 1 is not aligned"),
    ],
)
def test_accesses_that_fault(access, words):
    outside = ".shared .align 4 .b8 tile[64];"
    with pytest.raises(MachineFault, match=words):
        launch(f".local .align 4 .b8 mine[8]; {PLACE} {access}", ZEROS, outside=outside)


def test_read_only_loads_of_what_is_written():
    body = f"{PLACE} ld.global.nc.u32 %r1, [%rd1]; {STORE}"
    with pytest.raises(MachineFault, match="nc reads memory"):
        launch(body, ZEROS)


def test_loops_without_end(monkeypatch):
    monkeypatch.setattr("tests.support.ptx_machine.schedule._MOST_STEPS", 1000)
    with pytest.raises(MachineFault, match="does not come to an end"):
        launch("again: bra again;", ZEROS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bra nowhere;", "no label nowhere"),
        ("mov.u32 %r1, %nothing;", "unknown"),
        ("here: here: mov.u32 %r1, 0;", "stands twice"),
        ("call.uni missing, (%r1);", "no function missing"),
        ("ld.global.u32 %r1, %rd0;", "address in brackets"),
        ("ld.global.u32 {%r1, %r2}, [%rd0];", "registers are needed"),
        ("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd0];", "at most 16 bytes"),
        ("atom.global.add.s64 %rd1, [%rd0], 1;", "no atomic"),
        ("mov.u32 %r1, 0 ?", "no PTX"),
    ],
)
def test_text_that_is_wrong(text, words):
    with pytest.raises(PtxError, match=words):
        launch(text, ZEROS)


# --- memory --------------------------------------------------------------------------------------


def test_widths_and_signs_of_loads():
    body = """
        .reg .b32 %w<9>;
        ld.global.s8 %w1, [%rd0]; ld.global.u8 %w2, [%rd0]; ld.global.s16 %w3, [%rd0+2];
        ld.global.u16 %w4, [%rd0+2]; st.global.u8 [%rd0+1], %w1;
        st.global.v4.u32 [%rd0+16], {%w1, %w2, %w3, %w4};
    """
    out = np.array([0x80FF0081, 0, 0, 0, 0, 0, 0, 0], np.uint32)
    found = launch(body, out, block=1)
    assert found[0] == 0x80FF8181
    assert found[4:].tolist() == [0xFFFFFF81, 0x81, 0xFFFF80FF, 0x80FF]


def test_each_thread_has_its_local_and_each_block_its_shared_memory():
    body = """
        .local .align 8 .b8 mine[8];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 2, %r0;
        mov.u32 %r3, mine; mov.u32 %r5, tile; mad.lo.u32 %r5, %r0, 4, %r5;
        st.local.u32 [%r3+4], %r2; st.shared.u32 [%r5], %r2;
        mov.u64 %rd1, mine; cvta.local.u64 %rd1, %rd1; ld.u32 %r6, [%rd1+4];
        ld.shared.u32 %r7, [%r5]; add.u32 %r7, %r7, %r6;
        mad.wide.u32 %rd2, %r2, 4, %rd0; st.global.u32 [%rd2], %r7;
    """
    outside = ".shared .align 4 .b8 tile[8];"
    found = launch(body, np.zeros(6, np.uint32), block=2, grid=3, outside=outside)
    assert found.tolist() == [0, 2, 4, 6, 8, 10]


def test_dynamic_shared_memory_is_as_large_as_the_launch_says():
    body = f"{PLACE} mov.u32 %r2, all; mad.lo.u32 %r2, %r0, 4, %r2; st.shared.u32 [%r2], %r0;"
    outside = ".extern .shared .align 16 .b8 all[];"
    launch(body, ZEROS, outside=outside, dynamic_shared=128)
    with pytest.raises(MachineFault, match="outside of the 124 bytes"):
        launch(body, ZEROS, outside=outside, dynamic_shared=124)


def test_constants_of_the_module():
    body = f"{PLACE} ld.const.u32 %r1, [table+4]; {STORE}"
    outside = ".const .align 4 .u32 table[3] = {5, 6};"
    assert launch(body, ZEROS[:1], block=1, outside=outside).tolist() == [6]


@pytest.mark.parametrize(
    ("operation", "operand", "start", "end"),
    [
        ("add.u32", "%r0", 5, 5 + 496), ("min.s32", "%r3", 7, -31 % 2**32),
        ("max.u32", "%r0", 7, 31),
        ("or.b32", "%r0", 32, 63), ("and.b32", "%r0", 0xFF, 0), ("xor.b32", "1", 4, 4),
        ("inc.u32", "9", 0, 2), ("dec.u32", "9", 0, 8),
    ],
)  # fmt: skip
def test_atomics_of_many_threads_on_one_word(operation, operand, start, end):
    body = f"{PLACE} neg.s32 %r3, %r0; red.global.{operation} [%rd0], {operand};"
    out = ZEROS.copy()
    out[0] = start
    assert launch(body, out)[0] == end


def test_old_values_of_atomics_are_each_somebodys():
    body = f"{PLACE} atom.global.add.u32 %r1, [%rd0+128], 2; {STORE}"
    found = launch(body, np.zeros(33, np.uint32))
    assert sorted(found[:32]) == list(range(0, 64, 2))
    assert found[32] == 64
    body = f"{PLACE} atom.global.cas.b32 %r1, [%rd0+128], 0, 7; {STORE}"
    found = launch(body, np.zeros(33, np.uint32))
    assert sorted(found[:32]) == [0] + [7] * 31
    body = f"{PLACE} atom.global.exch.b32 %r1, [%rd0+128], %r0; {STORE}"
    found = launch(body, np.full(33, 99, np.uint32))
    assert sorted(found) == [*range(32), 99]


def test_atomic_sums_of_floats():
    body = "red.global.add.f32 [%rd0], 0f3F000000;"
    assert launch(body, np.ones(1, np.float32)).tolist() == [17.0]


# --- threads together ----------------------------------------------------------------------------


def test_barriers_order_shared_memory():
    body = f"""
        {PLACE} mov.u32 %r2, tile; mad.lo.u32 %r3, %r0, 4, %r2;
        st.shared.u32 [%r3], %r0;
        bar.sync 0;
        xor.b32 %r4, %r0, 63; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r1, [%r4];
        {STORE}
    """
    outside = ".shared .align 4 .b8 tile[256];"
    found = launch(body, np.zeros(64, np.uint32), block=64, outside=outside)
    assert found.tolist() == list(range(63, -1, -1))


def test_a_barrier_that_is_missing_shows():
    body = f"""
        {PLACE} mov.u32 %r2, tile; mad.lo.u32 %r3, %r0, 4, %r2;
        mov.u32 %r1, 99; st.shared.u32 [%r3], %r1;
        bar.sync 0;
        st.shared.u32 [%r3], %r0;
        xor.b32 %r4, %r0, 32; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r1, [%r4];
        {STORE}
    """
    outside = ".shared .align 4 .b8 tile[256];"
    found = launch(body, np.zeros(64, np.uint32), block=64, outside=outside)
    assert 99 in found.tolist()
    none = body.replace("bar.sync 0;", "")
    assert launch(none, np.zeros(64, np.uint32), block=64, outside=outside)[0] != 32
    fixed = body.replace("xor.b32", "bar.sync 0; xor.b32")
    found = launch(fixed, np.zeros(64, np.uint32), block=64, outside=outside)
    assert found.tolist() == [i ^ 32 for i in range(64)]


def test_blocks_may_pass_a_barrier_different_times():
    body = """
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, 0; mad.wide.u32 %rd1, %r0, 4, %rd0;
    again:
        add.u32 %r1, %r1, 1;
        bar.sync 0;
        setp.le.u32 %p1, %r1, %r0;
        @%p1 bra again;
        st.global.u32 [%rd1], %r1;
    """
    assert launch(body, np.zeros(3, np.uint32), block=40, grid=3).tolist() == [1, 2, 3]


def test_a_barrier_that_part_of_a_block_reaches():
    body = (
        f"{PLACE} setp.gt.u32 %p1, %r0, 30; @%p1 bra other; bar.sync 0; bra.uni out; "
        "other: bar.sync 0; out: mov.u32 %r1, 0;"
    )
    with pytest.raises(MachineFault, match="31 of 32 threads"):
        launch(body, ZEROS)


def test_a_barrier_does_not_wait_for_threads_that_returned():
    body = f"{PLACE} setp.gt.u32 %p1, %r0, 30; @%p1 ret; bar.sync 0; mov.u32 %r1, 7;"
    assert launch(body + STORE, ZEROS).tolist() == [7] * 31 + [0]


@pytest.mark.parametrize(
    ("shuffle", "values", "flags"),
    [
        (f"up.b32 %r1|%p1, %r0, 2, 0, {FULL}", [0, 1, *range(30)], [0, 0] + [1] * 30),
        (f"down.b32 %r1|%p1, %r0, 30, 31, {FULL}", [30, 31, *range(2, 32)], [1, 1] + [0] * 30),
        (f"bfly.b32 %r1|%p1, %r0, 1, 31, {FULL}", [i ^ 1 for i in range(32)], [1] * 32),
        (f"idx.b32 %r1|%p1, %r0, 5, 31, {FULL}", [5] * 32, [1] * 32),
        (f"idx.b32 %r1|%p1, %r0, 37, 31, {FULL}", [5] * 32, [1] * 32),  # five bits count
        # Segments of 8 lanes: 8192 - 256 * 8 in bits 8 to 12, and a clamp of 5 inside of each.
        (f"idx.b32 %r1|%p1, %r0, 2, 0x1805, {FULL}", [i // 8 * 8 + 2 for i in range(32)], [1] * 32),
        (
            f"down.b32 %r1|%p1, %r0, 1, 0x1807, {FULL}",
            [i + (i % 8 < 7) for i in range(32)], [int(i % 8 < 7) for i in range(32)],
        ),
    ],
)  # fmt: skip
def test_shuffles(shuffle, values, flags):
    body = f"{PLACE} shfl.sync.{shuffle}; {STORE} selp.b32 %r2, 1, 0, %p1;"
    assert launch(body, ZEROS).tolist() == values
    assert launch(body + "st.global.u32 [%rd1], %r2;", ZEROS).tolist() == flags


def test_shuffles_do_not_leave_the_warp():
    body = f"{PLACE} shfl.sync.idx.b32 %r1, %r0, 3, 31, {FULL}; {STORE}"
    assert (
        launch(body, np.zeros(70, np.uint32), block=70).tolist() == [3] * 32 + [35] * 32 + [67] * 6
    )


def test_a_shuffle_from_a_lane_that_is_not_there_gives_junk():
    body = f"{PLACE} shfl.sync.idx.b32 %r1, %r0, 9, 31, {FULL}; {STORE}"
    assert set(launch(body, ZEROS[:8], block=8)) - set(range(9)) != set()


def test_votes_and_friends():
    def result(line: str) -> list[int]:
        body = f"""
            {PLACE} setp.lt.u32 %p1, %r0, 3; mov.u32 %r1, 0; {line}; {STORE}
        """
        return launch(body, ZEROS).tolist()

    picked = "; selp.b32 %r1, 1, 0, %p2"
    assert result(f"vote.sync.ballot.b32 %r1, %p1, {FULL}") == [7] * 32
    assert result(f"vote.sync.any.pred %p2, %p1, {FULL}{picked}") == [1] * 32
    assert result(f"vote.sync.all.pred %p2, %p1, {FULL}{picked}") == [0] * 32
    assert result(f"vote.sync.uni.pred %p2, %p1, {FULL}{picked}") == [0] * 32
    assert result(f"redux.sync.add.u32 %r1, %r0, {FULL}") == [496] * 32
    assert result(f"redux.sync.min.s32 %r1, %r0, {FULL}") == [0] * 32
    assert result(f"match.any.sync.b32 %r1, %r0, {FULL}") == [1 << i for i in range(32)]
    assert result("activemask.b32 %r1") == [2**32 - 1] * 32


def test_masks_of_warps_must_fit():
    half = f"{PLACE} setp.lt.u32 %p1, %r0, 16; mov.u32 %r1, 0; @!%p1 bra out;"
    fine = f"{half} vote.sync.ballot.b32 %r1, %p1, 0xffff; out: {STORE}"
    assert launch(fine, ZEROS).tolist() == [0xFFFF] * 16 + [0] * 16
    with pytest.raises(MachineFault, match="names lanes that are elsewhere"):
        launch(fine.replace("0xffff;", f"{FULL};"), ZEROS)
    with pytest.raises(MachineFault, match="is not in its mask"):
        launch(fine.replace("0xffff;", "0xff;"), ZEROS)
    with pytest.raises(MachineFault, match="names lanes that are elsewhere"):
        launch(f"{half} bar.warp.sync {FULL}; out: {STORE}", ZEROS)


def test_threads_that_returned_need_not_come():
    body = f"""
        {PLACE} setp.ge.u32 %p1, %r0, 16; @%p1 ret;
        vote.sync.ballot.b32 %r1, !%p1, {FULL}; {STORE}
    """
    assert launch(body, ZEROS).tolist() == [0xFFFF] * 16 + [0] * 16
