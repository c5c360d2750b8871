"""Kernels as plain Python: bounds, barriers, printing, debugging, errors."""

from __future__ import annotations

import bdb

import numpy as np
import pytest

import treadle
import treadle.lang as td
from treadle.core.errors import CompileError, DtypeError, LaunchError, TreadleError
from treadle.lang.interpreter_state import current_run, state


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@td.kernel
def reverse(x: td.Array[td.i32]):
    t = td.thread_idx.x
    tile = td.shared(td_block, td.i32)
    tile[t] = x[t]
    td.sync_threads()
    x[t] = tile[td_block - 1 - t]


td_block = 8


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_saxpy() -> None:
    y = f32(1, 2, 3, 4, 5)
    with td.interpret():
        saxpy[2, 4](2.0, f32(1, 1, 1, 1, 1), y)
    assert y.tolist() == [3, 4, 5, 6, 7]


def test_a_launch_by_threads_runs_exactly_those() -> None:
    @td.kernel
    def mark(out: td.Array[td.i32, 2]):
        i, j = td.grid(2)
        td.atomic_add(out, (i, j), i * 100 + j + 1)

    out = np.zeros((4, 5), np.int32)
    with td.interpret():
        mark.launch((3, 4), out)
    expected = np.zeros((4, 5), np.int32)
    expected[:3, :4] = np.arange(3)[:, None] * 100 + np.arange(4) + 1
    np.testing.assert_array_equal(out, expected)


def test_barriers() -> None:
    x = np.arange(8, dtype=np.int32)
    with td.interpret():
        reverse[1, 8](x)
    assert x.tolist() == list(range(8))[::-1]


def test_reads_outside_give_zero_and_writes_are_dropped() -> None:
    @td.kernel
    def shift(x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        y[i - 1] = x[i + 2]

    y = f32(9, 9, 9)
    with td.interpret():
        shift[1, 5](f32(1, 2, 3), y)
    assert y.tolist() == [0, 0, 0]


def test_check_mode_reports_the_index(monkeypatch) -> None:
    from treadle.runtime import settings

    monkeypatch.setattr(settings, "check", True)
    with td.interpret(), pytest.raises(LaunchError, match="index 3 is outside axis 0"):
        saxpy_unguarded[1, 4](f32(1, 2, 3))


@td.kernel
def saxpy_unguarded(x: td.Array[td.f32]):
    x[td.grid(1)] += 1.0


def test_print(capsys) -> None:
    @td.kernel
    def show(x):
        i = td.grid(1)
        print("x", i, x[i], f"twice {x[i] * 2}", (i, 0.5), td.vec2[td.f32](x[i], 1))

    with td.interpret():
        show[1, 2](f32(0.1, 3))
    assert capsys.readouterr().out == (
        "x 0 0.1 twice 0.2 (0, 0.5) (0.1, 1.0)\nx 1 3.0 twice 6.0 (1, 0.5) (3.0, 1.0)\n"
    )


def test_assert() -> None:
    @td.kernel
    def positive(x):
        assert x[td.grid(1)] > 0, "x must be positive"

    with td.interpret():
        positive[1, 2](f32(1, 2))
        with pytest.raises(AssertionError, match="x must be positive"):
            positive[1, 2](f32(1, -2))


def test_a_debugger_sees_the_users_lines() -> None:
    seen = []

    class Debugger(bdb.Bdb):
        def user_line(self, frame) -> None:
            if frame.f_code.co_name == "saxpy":
                names = {k: v for k, v in frame.f_locals.items() if not k.startswith("_")}
                seen.append((frame.f_code.co_filename, frame.f_lineno, sorted(names)))
            self.set_step()

    with td.interpret():
        Debugger().runcall(lambda: saxpy[1, 1](2.0, f32(1), f32(1)))
    first = saxpy.definition.__code__.co_firstlineno
    assert seen[0][:2] == (__file__, first + 2)
    assert seen[-1] == (__file__, first + 4, ["a", "i", "x", "y"])


def test_a_failing_thread_of_a_block_ends_the_others() -> None:
    @td.kernel
    def fail(x):
        t = td.thread_idx.x
        assert t != 2, "two"
        td.sync_threads()
        x[t] = 1.0

    x = f32(0, 0, 0, 0)
    with td.interpret():
        with pytest.raises(AssertionError, match="two"):
            fail[1, 4](x)
        saxpy[1, 4](1.0, x, x)
    assert x.tolist() == [0, 0, 0, 0]


def test_threads_that_wait_at_different_barriers() -> None:
    @td.kernel
    def diverge(x):
        if td.thread_idx.x == 0:
            td.sync_threads()
        else:
            td.sync_threads()

    with td.interpret(), pytest.raises(LaunchError, match="different barriers"):
        diverge[1, 2](f32(0))


def test_subgroups() -> None:
    @td.kernel
    def exchange(out: td.Array[td.i32, 2]):
        t = td.thread_idx.x
        out[0, t] = td.shuffle_down(t, 1)
        out[1, t] = td.shuffle_xor(t, 1)
        out[2, t] = td.shuffle(t, 3)
        out[3, t] = td.subgroup_prefix_sum(t)
        out[4, t] = td.subgroup_max(t)
        out[5, t] = td.i32(td.ballot(t % 2 == 0))
        out[6, t] = td.i32(td.vote_any(t == 5)) + 2 * td.i32(td.vote_all(t < 8))
        if t < 4:
            out[7, t] = td.subgroup_sum(1)

    out = np.zeros((8, 6), np.int32)
    with td.interpret():
        exchange[1, 6](out)
    t = np.arange(6)
    expected = [
        [1, 2, 3, 4, 5, 5], t ^ 1, [3] * 6, np.cumsum(t) - t, [5] * 6, [0b10101] * 6, [3] * 6,
        [4, 4, 4, 4, 0, 0],
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


@td.struct
class Body:
    place: td.vec3[td.f32]
    mass: td.f32
    history: td.i32[3]


@td.func
def heavier(body, by=1.0):
    body.mass += by
    return body.mass


def test_structs_are_values_and_array_elements_places() -> None:
    @td.kernel
    def change(bodies: td.Array[Body], out: td.Array[td.f32]):
        b = bodies[0]
        b.mass = 7.0
        b.place.x = 1.0
        bodies[1] = b
        bodies[1].place.y += 2.5
        bodies[0].history[2] += 4
        bodies[0].history[9] = 1
        out[0] = bodies[0].mass
        out[1] = td.f32(bodies[0].history[2] + bodies[0].history[td.grid(1) - 1])

    bodies = np.zeros(2, Body.dtype)
    out = f32(9, 9)
    with td.interpret():
        change[1, 1](bodies, out)
    assert out.tolist() == [0, 4]
    assert bodies[1]["mass"] == 7
    assert bodies[1]["place"].tolist() == [1, 2.5, 0]
    assert bodies["history"].tolist() == [[0, 0, 4], [0, 0, 0]]


def test_arguments_are_checked_as_on_a_device() -> None:
    with td.interpret():
        with pytest.raises(LaunchError, match="takes 3 arguments"):
            saxpy[1, 1](f32(1), f32(1))
        with pytest.raises(DtypeError, match="argument 2 \\(x\\)"):
            saxpy[1, 1](1.0, np.zeros(3), f32(1))
        with pytest.raises(DtypeError, match="an array was given"):
            saxpy[1, 1](f32(1), f32(1), f32(1))
        with pytest.raises(DtypeError, match="does not take a list"):
            saxpy[1, 1](1.0, [1.0], f32(1))
        with pytest.raises(LaunchError, match="has 1 dimensions"):
            saxpy[1, 1](1.0, np.zeros((2, 2), np.float32), f32(1))


def test_grids_and_blocks_are_checked_as_on_a_device() -> None:
    one = f32(1)
    with td.interpret():
        with pytest.raises(LaunchError, match="must be at least 1"):
            saxpy[0, 1](1.0, one, one)
        with pytest.raises(LaunchError, match="block"):
            saxpy[1, 2048](1.0, one, one)
        with pytest.raises(LaunchError, match="negative number"):
            saxpy.launch(-1, 1.0, one, one)
        with pytest.raises(LaunchError, match=r"saxpy.launch .*: \(1, 2, 3, 4\)$"):
            saxpy.launch((1, 2, 3, 4), 1.0, one, one)
        saxpy.launch(0, 1.0, one, one)
        saxpy[0, 1](1.0, one, f32())
    assert one.tolist() == [1]


def test_what_a_device_refuses_is_refused_here_too() -> None:
    @td.kernel
    def mixed(x, n):
        x[0] = td.u32(n) + n

    with td.interpret(), pytest.raises(CompileError, match=r"do not mix"):
        mixed[1, 1](f32(1), 3)


def test_device_functions_outside_of_a_kernel() -> None:
    with pytest.raises(TreadleError, match="device function"):
        heavier(1)


def test_nothing_stays_active_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), td.interpret():
        raise ZeroDivisionError
    assert not state.active
    assert current_run() is None


def test_memory_that_no_device_has() -> None:
    @td.func
    def shared_in_a_function(x):
        s = td.shared(1 << 17, td.f32)
        s[0] = x
        return s[0]

    @td.kernel
    def shared(out: td.Array[td.f32]):
        out[0] = shared_in_a_function(3.0)

    @td.kernel
    def local(out: td.Array[td.f32]):
        own = td.local(1 << 20, td.f32)
        out[0] = own[0]

    @td.kernel
    def dynamic(out: td.Array[td.f32]):
        out[0] = td.shared(None, td.f32).size

    out = np.zeros(1, np.float32)
    with td.interpret():
        with pytest.raises(LaunchError, match="no device has more than 232448"):
            shared[1, 1](out)
        with pytest.raises(CompileError, match="local arrays of kernel local take"):
            local[1, 1](out)
        with pytest.raises(LaunchError, match="needs to know of how many bytes"):
            dynamic[1, 1](out)
        dynamic[1, 1, 64](out)
    assert out[0] == 16


def test_memory_that_the_arrays_device_does_not_have() -> None:
    @td.kernel
    def k(out: td.Array[td.f32]):
        s = td.shared(1 << 15, td.f32)
        out[0] = s[0]

    with td.interpret():
        k[1, 1](np.zeros(1, np.float32))
        with pytest.raises(LaunchError, match="the device has 65536 for a block"):
            k[1, 1](treadle.zeros(1, device="cpu"))
