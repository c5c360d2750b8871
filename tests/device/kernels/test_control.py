"""Control flow, bounds, functions, local arrays, prints and checks."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.runtime import settings


@td.kernel
def collatz(out: td.Array[td.i32]):
    i = td.grid(1)
    if i < out.size:
        n = i + 1
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            steps += 1
        out[i] = steps


def test_while(device):
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    out = td.zeros(300, dtype=td.i32)
    collatz.launch(300, out)
    assert out.tolist() == [steps(n + 1) for n in range(300)]


def test_break_continue_and_nested_loops(device):
    @td.kernel
    def run(out: td.Array[td.i32]):
        i = td.grid(1)
        total = 0
        for a in range(10):
            if a == i:
                continue
            for b in range(20, 0, -3):
                if b < a:
                    break
                total += a * b
            if total > 500:
                break
        out[i] = total

    def model(i):
        total = 0
        for a in range(10):
            if a == i:
                continue
            for b in range(20, 0, -3):
                if b < a:
                    break
                total += a * b
            if total > 500:
                break
        return total

    out = td.zeros(12, dtype=td.i32)
    run[1, 12](out)
    assert out.tolist() == [model(i) for i in range(12)]


def test_range_with_a_step_from_the_call(device):
    @td.kernel
    def run(out: td.Array[td.i32], start: td.i32, stop: td.i32, step: td.i32):
        k = 0
        for value in range(start, stop, step):
            out[k] = value
            k += 1  # noqa: SIM113  kernels have no enumerate

    for start, stop, step in [(0, 10, 3), (10, 0, -4), (5, 5, 1), (0, -3, 2)]:
        out = td.full(8, -99, dtype=td.i32)
        run[1, 1](out, start, stop, step)
        expected = list(range(start, stop, step))
        assert out.tolist() == expected + [-99] * (8 - len(expected))


_END, _END64 = 1 << 31, 1 << 63

RANGES = {
    "u8": [(250, 255, 3), (250, 255, 255), (0, 255, 0)],
    "i8": [(-128, 127, 100), (127, -128, -100), (127, -128, -128), (5, 0, 3)],
    "u16": [(65000, 65535, 300)],
    "i16": [(32000, 32767, 400), (-32000, -32768, -500)],
    "i32": [
        (_END - 10, _END - 1, 4), (10 - _END, -_END, -4), (-_END, _END - 1, _END - 1),
        (_END - 1, -_END, -_END), (_END - 1, -_END, 1 - _END), (10, 0, -3), (0, 10, -3),
    ],
    "u32": [(2 * _END - 10, 2 * _END - 1, 4), (0, 2 * _END - 1, _END + 5)],
}  # fmt: skip


@pytest.mark.parametrize("dtype", RANGES)
def test_ranges_that_stop_at_the_end_of_their_type(device, dtype):
    type = getattr(td, dtype)

    @td.kernel
    def run(out: td.Array[type], turns: td.Array[td.i32], start: type, stop: type, step: type):
        k = 0
        for value in range(start, stop, step):
            out[k] = value
            k += 1
            if k > 8:
                break
        turns[0] = k

    for start, stop, step in RANGES[dtype]:
        out, turns = td.zeros(8, dtype=type), td.zeros(1, dtype=td.i32)
        run[1, 1](out, turns, start, stop, step)
        expected = list(range(start, stop, step)) if step else []
        assert out.tolist()[: turns.item()] == expected
        if not step:
            continue

        @td.kernel
        def known(out: td.Array[type], turns: td.Array[td.i32], start: type, stop: type):
            k = 0
            for value in range(start, stop, step):  # noqa: B023  captured: a constant
                out[k] = value
                k += 1
                if k > 8:
                    break
            turns[0] = k

        out = td.zeros(8, dtype=type)
        known[1, 1](out, turns, start, stop)
        assert out.tolist()[: turns.item()] == expected


@pytest.mark.parametrize(
    ("dtype", "end", "step"),
    [("i64", _END64 - 1, 4), ("i64", -_END64, -4), ("u64", 2 * _END64 - 1, 4)],
)
def test_ranges_of_64_bits_that_stop_at_the_end_of_their_type(device, dtype, end, step):
    type = getattr(td, dtype)

    @td.kernel
    def run(out: td.Array[td.i32], size: td.i32):
        last = type(end)
        by = type(size) if step > 0 else -type(size)
        k = 0
        for value in range(last - 2 * by - by // 2, last, by):
            out[k] = td.i32(value - last)
            k += 1
            if k > 8:
                break
        out[9] = k

    out = td.zeros(10, dtype=td.i32)
    run[1, 1](out, abs(step))
    assert out.tolist()[:3] == [-step * 5 // 2, -step * 3 // 2, -step // 2]
    assert out.tolist()[9] == 3


def test_a_grid_stride_loop_that_stops_at_the_end_of_its_type(device):
    @td.kernel
    def run(out: td.Array[td.i32], first: td.i32, stop: td.i32):
        last = -1
        turns = 0
        for i in range(first + td.grid(1), stop, td.grid_size(1)):
            last = i
            turns += 1
            if turns > 8:
                break
        at = 2 * td.grid(1)
        out[at] = last
        out[at + 1] = turns

    first, stop = _END - 100, _END - 1
    out = td.zeros(2 * 64, dtype=td.i32)
    run[2, 32](out, first, stop)
    for thread, found in enumerate(out.numpy().reshape(64, 2).tolist()):
        expected = range(first + thread, stop, 64)
        assert found == [expected[-1], len(expected)]


def test_functions_with_early_returns(device):
    @td.func
    def clamp(value, low, high):
        if value < low:
            return low
        if value > high:
            return high
        return value

    @td.func
    def first_at_least(x, limit):
        for k in range(x.size):
            if x[k] >= limit:
                return k
        return -1

    @td.kernel
    def run(x: td.Array[td.f32], out: td.Array[td.f32], found: td.Array[td.i32]):
        i = td.grid(1)
        out[i] = clamp(x[i], -1.0, 1.0)
        found[i] = first_at_least(x, td.f32(i))

    data = np.linspace(-3, 3, 20).astype(np.float32)
    out, found = td.zeros(20), td.zeros(20, dtype=td.i32)
    run[1, 20](td.asarray(data), out, found)
    np.testing.assert_array_equal(out.numpy(), np.clip(data, -1, 1))
    expected = [int(np.argmax(data >= i)) if (data >= i).any() else -1 for i in range(20)]
    assert found.tolist() == expected


@td.kernel
def bounds_once(out: td.Array[td.i32], first: td.i32, last: td.i32):
    """What a loop's body does to the variables that its bounds came from does not count."""
    i = td.grid(1)
    low = first
    high = last
    count = 0
    for k in range(low, high):
        low += 1
        high -= 1
        count += k
    for k in range(high, low, -3):
        high += 3
        low += 2
        count += 1000 * k
    out[i] = count


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 1), (-3, 7), (4, -2), (2, 9)])
def test_bounds_of_a_loop_are_taken_once(device, first, last):
    out = td.zeros(5, dtype=td.i32)
    bounds_once[1, 5](out, first, last)
    turns = max(last - first, 0)
    expected = sum(range(first, last)) + 1000 * sum(range(last - turns, first + turns, -3))
    assert out.tolist() == [expected] * 5


@td.kernel
def decide_together(out: td.Array[td.i32], start: td.i32, stop: td.i32):
    """Decisions around barriers hang on `level`, which is the same for all until the end."""
    part = td.shared(300, td.i32)
    t = td.thread_idx.x
    level = start
    part[t] = level * t
    td.sync_threads()
    if level > 2:
        level += 1
        td.sync_threads()
    for _ in range(level):
        level += 1
        td.sync_threads()
    while level < stop:
        level += 2
        td.sync_threads()
    if level == 8:
        return
    level += part[299 - t]
    td.sync_threads()
    part[t] = level
    td.sync_threads()
    out[t] = part[299 - t]


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (1, 9), (3, 0), (4, 20), (2, 7)])
def test_blocks_decide_together(device, start, stop):
    level = start + (start > 2)
    level *= 2
    while level < stop:
        level += 2
    out = td.full(300, -1, dtype=td.i32)
    decide_together[1, 300](out, start, stop)
    expected = level + start * np.arange(300) if level != 8 else np.full(300, -1)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_local_arrays(device):
    @td.kernel
    def sort_rows(x: td.Array[td.f32, 2]):
        i = td.grid(1)
        if i < x.shape[0]:
            row = td.local(8, td.f32)
            for k in range(8):
                row[k] = x[i, k]
            for a in range(8):
                for b in range(7 - a):
                    if row[b] > row[b + 1]:
                        row[b], row[b + 1] = row[b + 1], row[b]
            for k in range(8):
                x[i, k] = row[k]

    data = np.random.default_rng().standard_normal((33, 8)).astype(np.float32)
    x = td.asarray(data)
    sort_rows.launch(33, x)
    np.testing.assert_array_equal(x.numpy(), np.sort(data, axis=1))


@td.func
def update(place, at, value):
    """What a function does to any memory, a thread's own among it."""
    old = td.atomic_max(place, at, value)
    td.atomic_add(place, at, 100)
    swapped = td.atomic_cas(place, at, value + 100, -value)
    return old * 1000 + swapped


@td.kernel
def update_own(out: td.Array[td.i32], wide: td.Array[td.f32]):
    own = td.local(3, td.i32)
    floats = td.local(2, td.f32)
    i = td.grid(1)
    for k in td.static_range(3):
        own[k] = 5
    result = update(own, i % 4, i)  # 3 is outside
    td.atomic_xor(own, 1, 6)
    out[i] = result + own[0] * 7 + own[1] * 11 + own[2] * 13
    floats[0] = 1.5
    floats[1] = 0.0
    wide[i] = td.atomic_add(floats, 0, td.f32(i)) + td.atomic_exchange(floats, 1, 2.0) + floats[0]


def test_atomics_on_local_arrays(device):
    def expected(i):
        own = [5, 5, 5]
        old = swapped = 0
        if i % 4 < 3:
            old = own[i % 4]
            swapped = max(old, i) + 100
            own[i % 4] = -i if swapped == i + 100 else swapped
        own[1] ^= 6
        return old * 1000 + swapped + own[0] * 7 + own[1] * 11 + own[2] * 13

    out, wide = td.zeros(40, dtype=td.i32), td.zeros(40)
    update_own[5, 8](out, wide)
    np.testing.assert_array_equal(out.numpy(), [expected(i) for i in range(40)])
    np.testing.assert_array_equal(wide.numpy(), np.arange(40) + np.float32(3.0))


def test_static_range_and_captured_constants(device):
    weights = (1.0, 2.0, 4.0)

    @td.kernel
    def run(out: td.Array[td.f32]):
        total = 0.0
        for k in td.static_range(3):
            total += weights[k]
        out[0] = total

    out = td.zeros(1)
    run[1, 1](out)
    assert out.item() == 7.0
    weights = (1.0, 2.0, 5.0)
    run[1, 1](out)
    assert out.item() == 8.0


# --- bounds --------------------------------------------------------------------------------------


def test_reads_outside_give_zero_and_writes_are_dropped(device):
    @td.kernel
    def run(x: td.Array[td.f32], out: td.Array[td.f32], at: td.Array[td.i32]):
        i = td.grid(1)
        out[i] = x[at[i]] + 1.0
        x[at[i] + 1000] = 77.0

    at = np.array([0, 3, 4, -1, 1 << 30, -(1 << 31), (1 << 31) - 1, 2], np.int32)
    x = td.asarray(np.arange(10, 15, dtype=np.float32))
    guard = td.ones(1000)
    out = td.zeros(8)
    run[1, 8](x[:4], out, td.asarray(at))
    expected = [10 + 1, 13 + 1, 1, 1, 1, 1, 1, 12 + 1]
    assert out.tolist() == expected
    assert x.tolist() == [10, 11, 12, 13, 14]
    assert guard.numpy().sum() == 1000


@pytest.mark.parametrize("dtype", [td.i8, td.u16, td.f16, td.f32], ids=str)
def test_bounds_of_two_axes(device, dtype):
    @td.kernel
    def run(x: td.Array[dtype, 2], out: td.Array[dtype, 2]):
        i, j = td.grid(2)
        out[i, j] = x[i - 1, j - 1]
        x[i + 100, j] = dtype(9)

    data = np.arange(12).reshape(3, 4).astype(dtype.numpy)
    x, out = td.asarray(data), td.full((5, 6), 50, dtype=dtype)
    run[1, (8, 8)](x, out)
    expected = np.zeros((5, 6))
    expected[1:4, 1:5] = data
    np.testing.assert_array_equal(out.numpy().astype(float), expected)
    np.testing.assert_array_equal(x.numpy(), data)


def test_atomics_outside_are_dropped(device):
    @td.kernel
    def run(x: td.Array[td.i32], out: td.Array[td.i32]):
        i = td.grid(1)
        out[i] = td.atomic_add(x, i - 1, 5)

    x, out = td.ones(3, dtype=td.i32), td.full(8, -1, dtype=td.i32)
    run[1, 8](x, out)
    assert x.tolist() == [6, 6, 6]
    assert out.tolist() == [0, 1, 1, 1, 0, 0, 0, 0]


def test_shared_and_local_bounds(device):
    @td.kernel
    def run(out: td.Array[td.i32], shift: td.i32):
        part = td.shared(8, td.i32)
        mine = td.local(4, td.i32)
        t = td.thread_idx.x
        for k in range(4):
            mine[k] = k + 1
        part[t] = t + 1
        part[t + 1000] = -1
        mine[shift] = -1
        td.sync_threads()
        out[t] = part[t - shift] + mine[t]

    out = td.zeros(8, dtype=td.i32)
    run[1, 8](out, 100)
    assert out.tolist() == [1, 2, 3, 4, 0, 0, 0, 0]
    run[1, 8](out, -1)
    assert out.tolist() == [3, 5, 7, 9, 6, 7, 8, 0]


def test_check_mode_names_line_and_index(device, monkeypatch):
    monkeypatch.setattr(settings, "check", True)

    @td.kernel
    def run(x: td.Array[td.f32]):
        i = td.grid(1)
        x[i + 3] = 1.0

    run[1, 2](td.zeros(10))
    with pytest.raises(td.errors.LaunchError, match=r"kernel run, line \d+.*\bx\b.*extent 4"):
        run[1, 2](td.zeros(4))
    monkeypatch.setattr(settings, "check", False)
    run[1, 2](td.zeros(4))


def test_assert_in_check_mode(device, monkeypatch):
    @td.kernel
    def run(x: td.Array[td.i32]):
        assert x[0] > 0, "x must be positive"
        x[0] = x[0] - 1

    x = td.zeros(1, dtype=td.i32)
    run[1, 1](x)
    assert x.item() == -1
    monkeypatch.setattr(settings, "check", True)
    with pytest.raises(td.errors.LaunchError, match="x must be positive"):
        run[1, 1](x)


def test_print(device, capfd):
    @td.kernel
    def run(x: td.Array[td.f32]):
        i = td.grid(1)
        if i == 2:
            print("thread", i, "has", x[i], x[i] > 1.0)

    run[1, 4](td.asarray(np.array([0, 1, 2.5, 3], np.float32)))
    assert capfd.readouterr().out == "thread 2 has 2.5 True\n"


def test_local_arrays_that_no_device_takes(device):
    @td.kernel
    def run(x: td.Array[td.i32]):
        mine = td.local(1 << 28, td.i32)
        mine[x[0]] = 1
        x[0] = mine[1]

    with pytest.raises(td.errors.UnsupportedOnTarget, match="local arrays") as caught:
        run[1, 1](td.zeros(1, dtype=td.i32))
    assert caught.value.line > 0
