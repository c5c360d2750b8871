"""Graphs with `while_` and `if_`: bodies that run as often as an element of an array says."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import numpy as np
import pytest

import treadle as td
from treadle.drivers.base import Recording
from treadle.drivers.program import Branch, Condition, Loop, Work
from treadle.runtime.pace import Pace
from treadle.tensor.tensor import Tensor


def jacobi(matrix, right, x, tolerance):
    """Jacobi's iterations by NumPy, in float32: the result and how many there were."""
    diagonal = np.diag(matrix)
    rest = matrix - np.diag(diagonal)
    count = 0
    while True:
        new = ((right - rest @ x) / diagonal).astype(np.float32)
        change, x = np.abs(new - x).max(), new
        count += 1
        if change <= tolerance:
            return x, count


@pytest.fixture
def system(rng):
    matrix = rng.random((24, 24), np.float32) + 40 * np.eye(24, dtype=np.float32)
    return matrix, rng.random(24, np.float32)


def test_jacobi_until_a_residual(device, system):
    matrix, right = system
    diagonal, a = td.asarray(np.diag(matrix).copy()), td.asarray(matrix)
    rest = (a - td.asarray(np.diag(np.diag(matrix)))).realize()
    b, x, tolerance = td.asarray(right), td.zeros(24), td.asarray(np.float32(1e-5))
    change, more, count = td.zeros(()), td.ones((), dtype=td.bool), td.zeros((), dtype=td.int32)
    graph = td.Graph(device)
    with graph.capture():
        x[...] = 0
        more[...] = True
        count[...] = 0
        with graph.while_(more):
            new = (b - rest @ x) / diagonal
            change[...] = td.abs(new - x).max()
            x[...] = new
            more[...] = change > tolerance
            count += 1
    for scale in (1, 3):  # replays after the inputs changed
        b[...] = td.asarray(right * np.float32(scale))
        graph.replay()
        expected, iterations = jacobi(matrix, right * np.float32(scale), 0 * right, 1e-5)
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-5, atol=1e-6)
        assert abs(count.item() - iterations) <= 1  # where the last change is near the tolerance
        assert change.item() <= 1e-5
        assert not more.item()
    tolerance[...] = 1.0
    graph.replay()
    assert count.item() == jacobi(matrix, right * np.float32(3), 0 * right, 1.0)[1]


def test_newtons_method_with_kernels(device):
    """User kernels write the condition, which is a float of a larger array."""

    @td.kernel
    def newton(x: td.Array[td.f32], change: td.Array[td.f32], of: td.f32):
        new = 0.5 * (x[0] + of / x[0])
        change[2] = 0.0 if td.abs(new - x[0]) < 1e-4 else new - x[0]
        x[0] = new

    x, change = td.full(1, 8.0), td.zeros(4)
    graph = td.Graph(device)
    with graph.capture():
        change[2] = 1
        with graph.while_(change[2], limit=100):
            newton[1, 1](x, change, 2.0)
    graph.replay()
    assert abs(x.item() - 2**0.5) < 1e-6
    assert change.tolist() == [0] * 4


def test_bisection_with_branches(device):
    low, high, middle = td.zeros(()), td.full((), 2.0), td.zeros(())
    more, below, above = (td.ones((), dtype=td.bool) for _ in range(3))
    graph = td.Graph(device)
    with graph.capture():
        more[...] = True
        with graph.while_(more):
            middle[...] = 0.5 * (low + high)
            below[...] = middle * middle < 2
            above[...] = ~below
            with graph.if_(below):
                low[...] = middle
            with graph.if_(above):
                high[...] = middle
            more[...] = high - low > 1e-3
    graph.replay()
    a, b, count = np.float32(0), np.float32(2), 0
    while b - a > 1e-3:
        m = np.float32(0.5) * (a + b)
        a, b = (m, b) if m * m < 2 else (a, m)
        count += 1
    assert (low.item(), high.item()) == (a, b)
    assert count > 5


def test_a_loop_in_a_loop(device):
    """Sums of 1 to i for i from 1 to 5: the inner loop begins anew each time."""
    i, j, total, outer, inner = (td.zeros(1, dtype=td.int32) for _ in range(5))
    graph = td.Graph(device)
    with graph.capture():
        for each in (i, total):
            each[...] = 0
        outer[...] = 1
        with graph.while_(outer):
            i += 1
            j[...] = 0
            inner[...] = 1
            with graph.while_(inner):
                j += 1
                total += j
                inner[...] = j < i
            outer[...] = i < 5
    for _ in range(2):
        graph.replay()
        assert total.item() == sum(n * (n + 1) // 2 for n in range(1, 6))
        assert (i.item(), j.item()) == (5, 5)


def test_a_loop_in_a_branch(device):
    flag, n, more = (td.zeros((), dtype=td.int32) for _ in range(3))
    graph = td.Graph(device)
    with graph.capture():
        more[...] = 1
        with graph.if_(flag), graph.while_(more):
            n += 2
            more[...] = n < 7
        n += 100
    graph.replay()
    assert n.item() == 100
    n[...] = 0
    flag[...] = -3
    graph.replay()
    assert n.item() == 108


def test_no_iteration_and_the_limit(device):
    n, more = td.zeros((), dtype=td.int32), td.zeros((), dtype=td.uint8)
    graph = td.Graph(device)
    with graph.capture(), graph.while_(more, limit=37):
        n += 1
    graph.replay()
    assert n.item() == 0
    more[...] = 1
    graph.replay()
    assert (n.item(), more.item()) == (37, 1)
    none = td.Graph(device)
    with none.capture(), none.while_(more, limit=0):
        n += 1
    none.replay()
    assert n.item() == 37


@pytest.mark.parametrize(
    ("dtype", "value", "holds"),
    [
        (td.bool, True, True), (td.bool, False, False), (td.int8, -1, True), (td.uint16, 0, False),
        (td.int32, 1 << 30, True), (td.float32, np.nan, True), (td.float32, -0.0, False),
        (td.float32, 2e-38, True), (td.float16, -0.0, False), (td.float16, 0.5, True),
        (td.complex64, 1j, True), (td.complex64, complex(0, -0.0), False),
    ],
)  # fmt: skip
def test_what_is_true(device, dtype, value, holds):
    flags = td.asarray(np.array([1, value, 1], dtype.numpy))
    n = td.zeros((), dtype=td.int32)
    graph = td.Graph(device)
    with graph.capture(), graph.if_(flags[1]):
        n += 1
    graph.replay()
    assert n.item() == holds == bool(flags.numpy()[1])


def test_iterations_after_the_condition_change_nothing(device, monkeypatch):
    """Batches that go too far are undone, whatever their size; a body with copies and clearing."""
    monkeypatch.setattr(Pace, "_worthwhile", lambda _: 64)
    x, log = td.zeros(300), td.zeros(300, dtype=td.int32)
    n, last, more = td.zeros((), dtype=td.int32), td.zeros(()), td.ones(1, dtype=td.bool)
    graph = td.Graph(device)
    with graph.capture():
        n[...] = 0
        more[...] = True
        with graph.while_(more):
            x += 1
            log[n] = n
            n += 1
            made = td.zeros(300) + x
            x[...] = made
            more[...] = x[0] < last
    for end in (1, 2, 3, 7, 64, 130):
        x[...] = 0
        log[...] = 0
        last[...] = end
        graph.replay()
        assert n.item() == end
        assert (x.numpy() == end).all()
        assert log.tolist() == [*range(end), *[0] * (300 - end)]


@pytest.fixture
def host_decides(device, monkeypatch):
    """The host reads the conditions on all devices."""
    monkeypatch.setattr(type(device.handle), "compose", lambda _device, _items: None)


def counting(device):
    """A loop that counts to 11, with batches of 1, 1, 2, 4 and 8 iterations."""
    n, more = td.zeros((), dtype=td.int32), td.ones((), dtype=td.int32)
    graph = td.Graph(device)
    with graph.capture(), graph.while_(more):
        n += 1
        more[...] = n < 11
    return graph, n


def test_a_batch_that_takes_another_way_the_second_time(device, host_decides, monkeypatch):
    """The conditions of iterations that are run again are read again."""
    monkeypatch.setattr(Pace, "_worthwhile", lambda _: 64)
    graph, n = counting(device)
    decided, ends = graph._decided, []
    logged = decided._logged

    def later_at_first(*arguments):
        end = yield from logged(*arguments)
        ends.append(end)
        return end + 2 if ends == [None, None, 3] else end

    decided._logged = later_at_first
    graph.replay()
    assert n.item() == 11
    assert ends == ([] if device.traits.host_memory else [None, None, 3, 3, 3])


def test_an_interrupted_batch_is_undone(device, host_decides, monkeypatch):
    monkeypatch.setattr(Pace, "_worthwhile", lambda _: 64)
    graph, n = counting(device)
    stream = type(device.default_stream.handle)
    read, reads = stream.read, []

    def interrupted(self, *arguments):
        read(self, *arguments)
        reads.append(arguments)
        # Where the host reads each condition, after 8 iterations; else after 8 and a batch of 8.
        if len(reads) == (9 if device.traits.host_memory else 6):
            raise KeyboardInterrupt

    monkeypatch.setattr(stream, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        graph.replay()
    assert n.item() == 8
    graph.replay()
    assert n.item() == 11


def test_swapped_arrays(device):
    """Each iteration reads what the last one has written, also crosswise and through views."""
    a, b, n, more = (td.asarray(v) for v in ([1.0, 2.0], [30.0, 40.0], [0], [True]))
    graph = td.Graph(device)
    with graph.capture(), graph.while_(more):
        old = a + 0
        a[...] = b
        b[...] = old
        b[:1] += 1
        n += 1
        more[...] = n < 3
    graph.replay()
    x, y = np.array([1.0, 2.0]), np.array([30.0, 40.0])
    for _ in range(3):
        x, y = y.copy(), x.copy()
        y[0] += 1
    assert (a.tolist(), b.tolist()) == (x.tolist(), y.tolist())


def test_a_capture_goes_on_from_what_it_has_written(device):
    """Writes to tensors are carried from replay to replay without a body, too."""
    x, total = td.ones(5), td.zeros(())
    graph = td.Graph(device)
    with graph.capture():
        x *= 2
        total += x.sum()
    assert x.tolist() == [1] * 5
    graph.replay()
    graph.replay()
    assert x.tolist() == [4] * 5
    assert total.item() == 10 + 20
    x[...] = 1
    graph.replay()
    assert x.tolist() == [2] * 5


def test_graphs_share_arrays_that_move(device):
    """Each graph knows another memory of an array; one is replayed in the other's capture, too."""
    x, y = td.ones(3), td.zeros(3)
    inner, outer, other = td.Graph(device), td.Graph(device), td.Graph(device)
    with inner.capture():
        x += 1
    x[...] = 5
    with outer.capture():
        inner.replay()
        y += x
    assert (x.tolist(), y.tolist()) == ([5] * 3, [0] * 3)
    outer.replay()
    outer.replay()
    assert (x.tolist(), y.tolist()) == ([7] * 3, [13] * 3)
    inner.replay()
    x[...] = x * 10
    with other.capture():
        x[...] = x - 1
        inner.replay()
        x *= 2
    other.replay()
    assert x.tolist() == [160] * 3
    outer.replay()
    other.replay()
    assert (x.tolist(), y.tolist()) == ([322] * 3, [174] * 3)


def test_a_graph_in_the_body_of_another(device, monkeypatch):
    """Batches save what the inner graph writes, too."""
    monkeypatch.setattr(Pace, "_worthwhile", lambda _: 64)
    x, n, more = td.zeros(3), td.zeros((), dtype=td.int32), td.ones((), dtype=td.bool)
    step, graph = td.Graph(device), td.Graph(device)
    with step.capture():
        x += 2
    with graph.capture(), graph.while_(more):
        step.replay()
        n += 1
        more[...] = n < 11
    graph.replay()
    assert (n.item(), x.tolist()) == (11, [22] * 3)


def test_what_a_body_has_made_is_not_used_after_it(device):
    x, flag = td.ones(4), td.zeros((), dtype=td.bool)
    graph = td.Graph(device)
    with graph.capture():
        with graph.if_(flag):
            made = x * 2
            kept = (x * 3).realize()
            x[...] = made + kept
        with pytest.raises(td.errors.TreadleError, match="made in the body"):
            (made + 1).realize()
    with pytest.raises(td.errors.TreadleError, match="before the body, and write"):
        kept.numpy()
    graph.replay()
    assert x.tolist() == [1] * 4
    flag[...] = True
    graph.replay()
    assert x.tolist() == [5] * 4
    with pytest.raises(td.errors.TreadleError, match="made in the body"), graph.capture():
        x[...] = kept
    assert x.tolist() == [5] * 4


def test_what_conditions_are_refused(device):
    x, n = td.ones(2), td.zeros(())
    graph = td.Graph(device)
    with pytest.raises(td.errors.LaunchError, match="for captures"), graph.while_(n):
        pass
    cases = [
        (lambda: graph.while_(x), td.errors.ShapeError, r"one element, not 2.*any"),
        (lambda: graph.if_(True), TypeError, "not bool"),
        (lambda: graph.if_(np.ones(1)), TypeError, "not ndarray"),
        (lambda: graph.while_(n, limit=-1), td.errors.LaunchError, "limit"),
        (lambda: graph.while_(n, limit=1.5), td.errors.LaunchError, "limit"),
    ]
    with graph.capture():
        for body, error, match in cases:
            with pytest.raises(error, match=match), body():
                pass
        x += 1
    graph.replay()
    assert x.tolist() == [2, 2]
    with (
        pytest.raises(td.errors.LaunchError, match="would not end"),
        graph.capture(),
        graph.while_(n),
    ):
        x += 1
    x += 1
    assert x.tolist() == [3, 3]


def test_a_condition_on_another_device(device):
    other = td.ones((), device="webgpu" if device.id == "cpu" else "cpu")
    graph = td.Graph(device)
    with (
        pytest.raises(td.errors.LaunchError, match="the condition of if_ is on"),
        graph.capture(),
        graph.if_(other),
    ):
        pass


def test_captures_and_replays_within_a_capture(device):
    n, more = td.zeros((), dtype=td.int32), td.ones((), dtype=td.bool)
    graph, other = td.Graph(device), td.Graph(device)
    with graph.capture(), graph.while_(more):
        n += 1
        more[...] = n < 3
    with other.capture():
        with pytest.raises(td.errors.LaunchError, match="captured already"), other.capture():
            pass
        with pytest.raises(td.errors.LaunchError, match="captured already"), graph.capture():
            pass
        with pytest.raises(td.errors.LaunchError, match="another capture"):
            graph.replay()
        n += 10
    other.replay()
    graph.replay()
    assert n.item() == 11


def test_an_exception_in_a_body(device):
    x, more = td.ones(3), td.ones((), dtype=td.bool)
    graph = td.Graph(device)

    def fail():
        nonlocal x
        x += 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), graph.capture(), graph.while_(more):
        fail()
    assert x.tolist() == [1, 1, 1]
    with (
        pytest.raises(td.errors.LaunchError, match="recorded in part"),
        graph.capture(),
        contextlib.suppress(ZeroDivisionError),
        graph.if_(more),
    ):
        fail()
    with pytest.raises(td.errors.LaunchError, match="nothing was captured"):
        graph.replay()
    with pytest.raises(td.errors.LaunchError), graph.capture(), graph.if_(more):
        x.numpy()
    x += 1
    assert x.tolist() == [2, 2, 2]


def test_gradients_are_not_lost_unseen(device):
    weights = td.ones(3).requires_grad_()
    x, more = td.ones(3), td.ones((), dtype=td.bool)
    graph = td.Graph(device)
    with (
        pytest.raises(td.errors.AutogradError, match="the body of if_ writes"),
        graph.capture(),
        graph.if_(more),
    ):
        x[...] = weights * 2
    assert x.tolist() == [1, 1, 1]
    with graph.capture(), td.no_grad(), graph.if_(more):
        weights *= 3
    graph.replay()
    graph.replay()
    assert weights.tolist() == [9, 9, 9]
    assert weights.requires_grad


def test_other_streams_and_awaiting(device):
    n, more = td.zeros((), dtype=td.int32), td.ones((), dtype=td.bool)
    graph = td.Graph(device)
    with graph.capture():
        n[...] = 0
        more[...] = True
        with graph.while_(more):
            n += 1
            more[...] = n < 20
    graph.replay(device.stream())
    assert n.item() == 20
    n[...] = 0
    asyncio.run(graph.replay_async())
    assert n.item() == 20


def test_replays_at_once(device):
    """Of two that await in one thread, the second is refused where the first has to wait."""
    graph, n = counting(device)

    async def both():
        return await asyncio.gather(
            graph.replay_async(), graph.replay_async(), return_exceptions=True
        )

    first, second = asyncio.run(both())
    assert first is None
    assert second is None or "being replayed already" in str(second)
    assert n.item() == 11


def test_a_released_graph_gives_its_memory_back(device):
    def used():
        gc.collect()
        return device.memory_stats()["used"]

    x, more, n = td.zeros(5000), td.ones((), dtype=td.bool), td.zeros((), dtype=td.int32)
    for each in (x, more, n):
        each.realize()
    before = used()
    graph = td.Graph(device)
    with graph.capture():
        n[...] = 0
        more[...] = True
        with graph.while_(more):
            x += 1
            n += 1
            more[...] = n < 20
    graph.replay()
    assert n.item() == 20
    graph.release()
    assert used() == before
    with pytest.raises(td.errors.LaunchError, match="nothing was captured"):
        graph.replay()


def test_a_profile_shows_the_replays(device):
    n, more = td.zeros((), dtype=td.int32), td.ones((), dtype=td.bool)
    graph = td.Graph(device)
    with graph.capture(), graph.while_(more):
        n += 1
        more[...] = n < 5
    with td.profile() as profile:
        graph.replay()
    assert n.item() == 5
    assert "add" in str(profile.table())


def test_programs_name_what_a_loop_carries(device, host_decides):
    """Of the memory that a body writes, what it has allocated itself is not carried."""
    x, more = td.ones(1000), td.ones((), dtype=td.bool)
    graph = td.Graph(device)
    with graph.capture(), graph.while_(more):
        part = (x * 2).realize()
        x[...] = part + part.sum()
        more[...] = x[0] < 1e6
    (loop,) = [item for item in graph._decided._items if isinstance(item, Loop)]
    assert isinstance(loop.condition, Condition)
    assert isinstance(x, Tensor)
    assert set(loop.carried) == {x._array.buffer, more._array.buffer}


def test_a_device_that_decides_by_itself(device, monkeypatch):
    """Where a driver makes one recording of the whole, the host reads nothing."""
    programs, replays = [], []

    class Composed(Recording):
        def replay(self, stream):
            replays.append(stream)

        def release(self):
            programs.clear()

    def compose(_device, items):
        programs.append(items)
        return Composed()

    monkeypatch.setattr(type(device.handle), "compose", compose)
    n, more = td.zeros((), dtype=td.int32), td.ones((), dtype=td.bool)
    graph = td.Graph(device)
    with graph.capture():
        with graph.while_(more, limit=7):
            n += 1
            with graph.if_(n):
                n += 1
        n += 1
    ((loop, after),) = programs
    assert (loop.limit, after.launches[0].definition.name) == (7, "add")
    assert [type(item) for item in loop.body] == [Work, Branch, Work]  # n goes to its place last
    assert loop.condition.buffer is more._array.buffer
    graph.replay()
    assert replays == [device.default_stream.handle]
    other = td.Graph(device)
    with other.capture(), pytest.raises(td.errors.LaunchError, match="another capture"):
        graph.replay()
    graph.release()
    assert programs == []
