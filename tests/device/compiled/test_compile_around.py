"""`td.compile` and what is around a function: tensors from outside, other libraries, threads."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import treadle as td
from tests.support.compiled import add_one, array, counted
from treadle.tensor.compiled import tracing

# --- tensors from outside ------------------------------------------------------------------------


class Model:
    def __init__(self):
        self.weight = td.ones(3)
        self.steps = td.zeros((), dtype=td.int32)

    @td.compile
    def step(self, x):
        self.weight -= 0.5 * x
        self.steps += 1
        return self.weight * 2


def test_tensors_from_outside_are_written_at_every_call(device):
    model, other = Model(), Model()
    for k in range(4):
        assert model.step(td.ones(3)).tolist() == [2 * (1 - 0.5 * (k + 1))] * 3
    assert model.weight.tolist() == [-1] * 3
    assert model.steps.item() == 4
    assert other.step(td.zeros(3)).tolist() == [2] * 3
    assert other.steps.item() == 1


def test_tensors_from_outside_are_read_as_they_are(device):
    weight = td.ones(3)
    f, runs = counted(lambda x: x * weight)
    x = td.full(3, 2.0)
    assert f(x).tolist() == [2, 2, 2]
    weight[0] = 5
    assert f(x).tolist() == [10, 2, 2]
    weight += 1  # a new array
    assert f(x).tolist() == [12, 4, 4]
    add_one.launch(3, weight)
    assert f(x).tolist() == [14, 6, 6]
    weight[...] = td.asarray([1.0, 2.0, 3.0]) * 2
    assert f(x).tolist() == [4, 8, 12]
    assert len(runs) == 1


def test_writes_outside_and_those_who_wait_to_read(device):
    weight = td.ones(3)
    seen = weight[1:]

    @td.compile
    def f(x):
        weight[1:] += x
        weight[0] = 7

    f(td.ones(2))
    early = weight * 10
    f(td.ones(2))
    assert early.tolist() == [70, 20, 20]
    late = weight * 10
    weight *= 2  # moves it
    f(td.ones(2))
    assert late.tolist() == [70, 30, 30]
    assert weight.tolist() == [7, 7, 7]
    assert seen.tolist() == [7, 7]
    f(td.ones(2))
    assert weight.tolist() == [7, 8, 8]


def test_parts_and_the_whole_are_written(device):
    weight = td.zeros((2, 3))

    def body(x):
        weight[0] = x
        seen = weight * 10
        weight.__iadd__(x)
        weight[1:] *= 2
        weight[...] = weight + 1
        weight[0, 0] = 7
        total = weight.sum()
        weight.realize()
        weight[0, 1] = 8
        return seen, total

    f = td.compile(body)
    found = []
    for function in (f, body):
        weight[...] = 0
        found.append([])
        for k in range(3):
            seen, total = function(td.full(3, k))
            found[-1] += [seen.tolist(), total.item(), weight.tolist()]
    assert found[0] == found[1]


def test_two_functions_share_what_is_outside(device):
    weight = td.zeros(2)

    def up(x):
        weight.__iadd__(x)

    def twice():
        weight.__imul__(2)
        return weight + 0

    up, twice = td.compile(up), td.compile(twice, device=device)
    for expected in (2, 6, 14):
        up(td.ones(2))
        assert twice().tolist() == [expected] * 2
        assert weight.tolist() == [expected] * 2


def test_what_is_pending_outside_stays(device):
    x = td.ones(3)
    pending = x * 3
    f = td.compile(lambda y: y + 1)
    f(x)
    assert pending.tolist() == [3, 3, 3]
    lazy = (x + 1) * 2
    assert f(lazy).tolist() == [5, 5, 5]
    assert f(td.zeros(3)).tolist() == [1, 1, 1]


def test_an_argument_that_is_outside_too(device):
    weight = td.ones(3)

    @td.compile
    def writes(x):
        weight[...] = 2
        return x + weight

    assert writes(td.ones(3)).tolist() == [3, 3, 3]
    with pytest.raises(td.errors.LaunchError, match="also has from outside"):
        writes(weight)
    other = td.compile(lambda x: x.__iadd__(weight))
    with pytest.raises(td.errors.LaunchError, match="also has from outside"):
        other(weight)
    reads = td.compile(lambda x: x + weight)
    for _ in range(2):
        assert reads(weight).tolist() == (weight * 2).tolist()


def test_a_tensor_that_is_kept_outside_is_warned_of(device):
    kept = []

    def body(x):
        y = x + 1
        kept.append(y)
        return y

    f = td.compile(body)
    with pytest.warns(UserWarning, match="keeps 1 of the tensors"):
        f(td.zeros(2))
    assert f(td.ones(2)).tolist() == [2, 2]
    assert [y.tolist() for y in kept] == [[1, 1]]


def test_variables_around_the_function(device):
    scale, weight = 2, td.full(2, 10.0)

    def body(x):
        return x * scale + weight

    f = td.compile(body)
    x = td.ones(2)
    for scale in (2, 3, 3, 2):
        assert f(x).tolist() == [10 + scale] * 2
    assert f.traces == 2
    weight = td.zeros(2)
    assert f(x).tolist() == [2, 2]
    assert f.traces == 3
    weight[...] = 1
    assert f(x).tolist() == [3, 3]
    assert f.traces == 3


def test_a_device_that_was_closed(device):
    if device.id != "cpu" and not device.id.startswith("webgpu"):
        return
    f = td.compile(lambda x: x * 2 + 1)
    assert f(td.ones(2)).tolist() == [3, 3]
    device.close()
    assert f(td.ones(2)).tolist() == [3, 3]
    assert f(td.zeros(2)).tolist() == [1, 1]
    f.clear()


def test_memory_of_others_that_overlaps():
    def body(x, y):
        x += 1
        return x + y

    f = td.compile(body)
    data, theirs = np.zeros(6, np.float32), np.zeros(6, np.float32)
    for _ in range(3):
        found = f(td.from_dlpack(data[:4]), td.from_dlpack(data[2:]))
        assert found.tolist() == body(theirs[:4], theirs[2:]).tolist()
        assert data.tolist() == theirs.tolist()
    assert f.traces == 0
    f(td.from_dlpack(data[:3]), td.from_dlpack(data[3:]))
    assert f.traces == 1


@pytest.fixture
def on_cpu():
    with td.use_device("cpu"):
        yield


def test_memory_that_others_see_is_read_there(on_cpu):
    """Only there NumPy reaches it without a copy, which would be a read like others."""
    w = td.asarray([1.0, 2.0])

    @td.compile
    def through_numpy(x):
        return td.asarray(np.asarray(x * 2) + np.asarray(w))

    for _ in range(3):
        assert through_numpy(td.asarray([3.0, 1.0])).tolist() == [7.0, 4.0]
    w[...] = 10.0
    assert through_numpy(td.asarray([30.0, 10.0])).tolist() == [70.0, 30.0]
    assert "another library" in repr(through_numpy)

    @td.compile
    def written(x):
        np.asarray(x)[...] += 1

    y = td.asarray([1.0])
    for turn in range(1, 4):
        written(y)
        assert y.item() == 1.0 + turn


def test_what_is_kept_outside_is_told_of(device):
    class Holder:
        @td.compile
        def double(self, x):
            self.w = self.w * 2
            return x

    holder = Holder()
    holder.w = td.ones(2)
    with pytest.warns(UserWarning, match="keeps 1 of the tensors"):
        holder.double(td.ones(1))
    assert holder.w.tolist() == [2.0, 2.0]


def test_a_tensor_that_is_replaced_in_an_object_is_found(device):
    class Model:
        def __init__(self):
            self.w = td.ones(2)
            self.parts = [{"b": td.zeros(2)}]
            self.calls = 0

        @td.compile
        def f(self, x):
            return self.w * x + self.parts[0]["b"]

    model, x = Model(), td.asarray([1.0, 2.0])
    assert model.f(x).tolist() == [1.0, 2.0]
    model.calls += 1
    assert model.f(x).tolist() == [1.0, 2.0]
    assert Model.f.traces == 1
    model.w = td.ones(2) * 5
    assert model.f(x).tolist() == [5.0, 10.0]
    model.parts[0]["b"] = td.ones(2)
    assert model.f(x).tolist() == [6.0, 11.0]
    model.parts.insert(0, {"b": td.ones(2) * 2})
    assert model.f(x).tolist() == [7.0, 12.0]
    model.w[...] = 0.0
    assert model.f(x).tolist() == [2.0, 2.0]
    del model.parts[0]  # which the trace before fits again
    assert model.f(x).tolist() == [1.0, 1.0]
    assert Model.f.traces == 2
    options = {"shift": td.ones(2)}
    shifted = td.compile(lambda y: y + options["shift"])
    assert shifted(x).tolist() == [2.0, 3.0]
    options["shift"] = td.zeros(2)
    assert shifted(x).tolist() == [1.0, 2.0]


# --- together with others ------------------------------------------------------------------------


def test_compiled_functions_inside(device):
    inner, runs = counted(lambda x: x * 2)

    def body(x, depth=2):
        return inner(x) + 1 if depth == 0 else outer(x, depth - 1) + inner(x)

    outer = td.compile(body)
    x = td.ones(2)
    assert [outer(x).tolist() for _ in range(3)] == [[7, 7]] * 3
    assert len(runs) == 3
    assert inner(x).tolist() == [2, 2]


def test_inside_a_graph_of_the_users(device):
    f = td.compile(lambda x: add_one.launch(2, x))
    x = td.ones(2)
    f(x)
    graph = td.Graph(device)
    with graph.capture():
        f(x)
    for _ in range(3):
        graph.replay()
    assert x.tolist() == [5, 5]


def test_sorts_kernels_and_data_inside(device):
    data = np.array([3.0, 1.0, 2.0], np.float32)

    def body(x):
        y = td.sort(x) * td.asarray(data)
        add_one.launch(3, y)
        z = td.cumulative_sum(y)
        return z, td.argsort(x), x @ x, td.zeros(2)

    f = td.compile(body)
    for k in range(3):
        x = array(5.0, 1.0 + k, 4.0)
        for one, other in zip(f(x), body(x), strict=True):
            assert one.tolist() == other.tolist()


def test_threads(device):
    f = td.compile(lambda x: (x * 2 + 1, x.sum()))
    errors = []

    def work(number):
        try:
            for k in range(20):
                x = td.full(8, number * 100 + k, device=device)
                y, total = f(x)
                assert y.tolist() == [(number * 100 + k) * 2 + 1] * 8
                assert total.item() == 8 * (number * 100 + k)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_another_thread_as_a_trace_begins(device, monkeypatch):
    other = td.ones(4).realize()

    def change() -> None:
        with td.use_device(device):
            other.__iadd__(1)

    def compute(nodes):
        realize(nodes)
        thread = threading.Thread(target=change)  # after the values are computed
        thread.start()
        thread.join()

    realize = tracing.realize
    monkeypatch.setattr(tracing, "realize", compute)
    f = td.compile(lambda x: x * 2)
    assert f(td.ones(3)).tolist() == [2.0] * 3
    monkeypatch.undo()
    assert f(td.full(3, 2.0)).tolist() == [4.0] * 3
    first, *rest = other.tolist()
    assert first >= 2
    assert rest == [first] * 3


@pytest.mark.parametrize("waits", [False, True])
def test_another_thread_during_a_trace(device, waits):
    """Also while a kernel is still compiled: the other thread then has it recorded."""
    number = float(np.random.default_rng().integers(1, 1 << 20)) if waits else 1.0
    source = f"def add(x: td.Array[td.f32]):\n    x[td.grid(1)] += {number}\n"
    add = td.kernel(source=source) if waits else add_one
    expected = [2 * (1 + number)] * 4
    reached, go_on = threading.Event(), threading.Event()
    x = td.ones(4)

    def body(y):
        y = y + 1
        add.launch(4, y)
        reached.set()
        assert go_on.wait(60)
        return y * 2

    def beside():
        reached.wait(60)
        seen.append((x * 3).tolist())
        go_on.set()

    seen = []
    thread = threading.Thread(target=beside)
    thread.start()
    f = td.compile(body)
    z = td.zeros(4)
    assert f(z).tolist() == expected
    thread.join()
    assert seen == [[3] * 4]
    assert f.traces == 0  # it is tried again
    assert f(z).tolist() == expected
    assert f.traces == 1


def test_a_profile_counts_replays(device):
    f = td.compile(lambda x: td.sort(x) + 1)
    x = td.ones(64)
    f(x)
    with td.profile() as p:
        f(x)
        f(x)
    rows = {row.kind: row.count for row in p.table().rows}
    assert rows["replay"] == 2


def test_memory_stays_flat_and_goes(device):
    weight = td.ones(1000).realize()

    def body(x):
        y = x * 2
        for _ in range(10):
            y = td.cumulative_sum(y * 0.5)
        weight.__imul__(1.0)
        return y, y.sum()

    f = td.compile(body)
    x = td.ones(1000).realize()
    gc.collect()
    device.synchronize()
    start = td.memory_stats(device)["used"]
    f(x)
    gc.collect()
    before = td.memory_stats(device)
    for _ in range(1000 if device.id in ("cpu", "cuda:0") else 300):
        y, total = f(x)
    del y, total
    after = td.memory_stats(device)
    assert after["used"] == before["used"]
    assert after["driver"]["buffers"] <= before["driver"]["buffers"] + 4
    f.clear()
    gc.collect()
    assert td.memory_stats(device)["used"] == start
    f(x)
    del f
    gc.collect()
    assert td.memory_stats(device)["used"] == start


def test_memory_of_a_trace_serves_its_later_steps(device):
    size = 1 << 16

    def body(x):
        for _ in range(40):
            x = td.cumulative_sum(x * 0.5)
        return x

    f = td.compile(body)
    x = td.ones(size)
    f(x)
    gc.collect()
    before = td.memory_stats(device)["used"]
    f.clear()
    gc.collect()
    assert before - td.memory_stats(device)["used"] < 8 * size * 4


def test_new_arrays_do_not_lie_in_a_traces_memory(device):
    f = td.compile(lambda x: (td.sort(x) * 2 + 1).sum())
    x = td.ones(5000)
    assert f(x).item() == 15000
    others = [td.full(5000, 7.0).realize() for _ in range(8)]
    assert f(x).item() == 15000
    assert all((other.numpy() == 7).all() for other in others)


def test_numpy_arrays_are_tensors_also_where_python_runs(device):
    """Where a function is not replayed, it gets tensors as well, and its writes come back."""

    def body(x, more):
        assert type(x) is td.Tensor
        assert type(more["y"]) is td.Tensor
        total = x.sum().item()  # ends the recording
        x += 1
        add_one.launch(3, more["y"])
        more["z"] = x * 2
        return x.relu() + total

    f = td.compile(body)
    x, y = np.zeros(3, np.float32), np.zeros(3, np.float32)
    for k in range(4):
        more = {"y": y}
        found = f(x, more)
        assert x.tolist() == y.tolist() == [k + 1] * 3
        assert more["z"].tolist() == [2 * k + 2] * 3
        assert found.tolist() == [4 * k + 1] * 3
    sized = td.compile(lambda x: x.relu(), dynamic=True)
    for n in (2, 3, 4):
        x = np.full(n, -1, np.float32)
        assert sized(x).tolist() == [0] * n
        x.flags.writeable = False
        assert sized(x).tolist() == [0] * n
