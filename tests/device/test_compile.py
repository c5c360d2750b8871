"""`td.compile`: a replay does what the function does, for every kind of function."""

from __future__ import annotations

import dataclasses
import gc
import threading
from typing import NamedTuple

import numpy as np
import pytest

import treadle as td
from treadle.tensor.compiled import function as compiling
from treadle.tensor.compiled import tracing


@td.kernel
def add_one(x: td.Array[td.f32]):
    i = td.grid(1)
    x[i] += 1.0


def counted(function):
    """A compiled function, and how often its Python ran."""
    runs = []

    def inner(*args, **kwargs):
        runs.append(1)
        return function(*args, **kwargs)

    inner.__qualname__ = function.__name__
    return td.compile(inner), runs


def array(*values, dtype=td.float32):
    return td.asarray(np.array(values), dtype=dtype)


# --- what is traced when -------------------------------------------------------------------------


def test_python_runs_once(device):
    f, runs = counted(lambda x, y: (x * 2 + y, (x - y).sum()))
    for k in range(5):
        x, y = array(1.0 + k, 2.0), array(10.0, k)
        a, b = f(x, y)
        assert a.tolist() == [2 * (1.0 + k) + 10, 4 + k]
        assert b.item() == 3.0 + k - 10 - k
    assert len(runs) == 1
    assert f.traces == 1


def test_earlier_results_stay(device):
    f = td.compile(lambda x: x + 1)
    results = [f(td.full(3, k)) for k in range(4)]
    assert [r.tolist() for r in results] == [[k + 1.0] * 3 for k in range(4)]


def test_what_is_traced_anew(device):
    f, runs = counted(lambda x, k=1: x * k)
    x = td.ones((2, 3))
    for value, k, shape in ((x, 1, 1), (x, 1, 1), (td.ones((3, 2)), 1, 2), (x, 2, 3), (x, 2.0, 4),
                            (x, True, 5), (x.to(td.int32), 1, 6), (x, 1, 6)):  # fmt: skip
        assert f(value, k).tolist() == (value * k).tolist()
        assert len(runs) == shape
    assert f.traces == 6
    f.clear()
    assert f.traces == 0
    f(x, 1)
    assert len(runs) == 7


def test_special_floats_are_values(device):
    f, runs = counted(lambda x, k: x * k)
    x = td.ones(1)
    assert np.signbit(f(x, -0.0).numpy()).all()
    assert not np.signbit(f(x, 0.0).numpy()).any()
    for _ in range(3):
        assert np.isnan(f(x, float("nan")).item())
    assert len(runs) == 3


def test_keyword_arguments_in_any_order(device):
    f, runs = counted(lambda x, *, a, b: x * a - b)
    x = td.ones(2)
    assert f(x, a=td.full(2, 3.0), b=1).tolist() == f(x, b=1, a=td.full(2, 3.0)).tolist()
    assert len(runs) == 1


class Pair(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    scale: float


@dataclasses.dataclass
class State:
    x: object
    step: object
    name: str = "state"


def test_nested_arguments_and_results(device):
    def build(pair, options, items):
        total = pair.x + pair.y * options["scale"]
        for item in items:
            total = total + item[0].x * item[0].scale
        return {"total": total, "pair": Pair(total * 2, 7), "items": [Frozen(total, 2.0), None]}

    f, runs = counted(build)
    for k in range(3):
        arguments = (
            Pair(td.full(2, 1.0 + k), td.full(2, 2.0)), {"scale": td.full((), 3.0)},
            [(Frozen(td.full(2, k), 2.0), "x"), (Frozen(td.full(2, 1.0), 4.0), "x")],
        )  # fmt: skip
        found, expected = f(*arguments), build(*arguments)
        assert list(found) == list(expected)
        assert type(found["pair"]) is Pair
        assert found["pair"].y == 7
        assert type(found["items"][0]) is Frozen
        assert found["items"][1] is None
        for one, other in ((found["total"], expected["total"]),
                           (found["pair"].x, expected["pair"].x),
                           (found["items"][0].x, expected["items"][0].x)):  # fmt: skip
            assert one.tolist() == other.tolist()
    assert len(runs) == 1


def test_lists_and_dicts_that_the_function_changes(device):
    def step(parameters, state, log):
        for name in list(parameters):
            parameters[name] = parameters[name] * 0.5
        parameters["new"] = state.x + 1
        state.x = state.x + state.step
        log.append(parameters["new"])
        return parameters

    f = td.compile(step)
    for k in range(3):
        mine = {"a": td.full(2, 8.0 + k)}, State(td.full(2, k), td.ones(2)), [1]
        theirs = {"a": td.full(2, 8.0 + k)}, State(td.full(2, k), td.ones(2)), [1]
        assert f(*mine) is mine[0]
        step(*theirs)
        assert {n: v.tolist() for n, v in mine[0].items()} == {
            n: v.tolist() for n, v in theirs[0].items()
        }
        assert mine[1].x.tolist() == theirs[1].x.tolist()
        assert mine[2][0] == 1
        assert mine[2][1].tolist() == theirs[2][1].tolist()


def test_numpy_arrays_are_uploaded(device):
    f, runs = counted(lambda x, y: x * 2 + y)
    for k in range(3):
        x = np.full((2, 3), k, np.float32)
        assert f(x, td.ones((2, 3))).tolist() == (x * 2 + 1).tolist()
        assert f(x.T, td.ones((3, 2))).tolist() == (x.T * 2 + 1).tolist()
    assert len(runs) == 2
    double = td.compile(lambda x: x.__imul__(2))
    x = np.arange(4, dtype=np.float32)
    double(x)
    double(x)
    assert x.tolist() == [0, 4, 8, 12]


def test_the_device_of_what_has_no_tensors(device):
    f = td.compile(lambda n: td.arange(n) * 2, device=device)
    assert f(3).device is device
    assert f(3).tolist() == [0, 2, 4]
    assert td.compile(lambda: td.ones(2))().device is device


def test_what_has_no_hash(device):
    f = td.compile(lambda x, options: x)
    with pytest.raises(TypeError, match=r"argument 2\['b'\]\[0\] cannot be told"):
        f(td.ones(1), {"a": 1, "b": [{1, 2}]})
    with pytest.raises(TypeError, match="argument options cannot be told"):
        f(td.ones(1), options=bytearray(3))


def test_tensors_on_two_devices():
    f = td.compile(lambda x, y: x)
    with pytest.raises(td.errors.LaunchError, match="one tensor is on"):
        f(td.ones(1, device="cpu"), td.ones(1, device="webgpu"))


def test_what_is_no_function():
    async def waits():
        pass

    def gives():
        yield 1

    for wrong, words in ((waits, "async"), (gives, "a generator"), (State, "a class"), (3, "int")):
        with pytest.raises(TypeError, match=words):
            td.compile(wrong)
    with pytest.raises(TypeError, match="after it has returned"):
        td.compile(lambda: (x for x in range(3)), device="cpu")()


def test_a_number_that_changes_is_warned_of(device):
    f = td.compile(lambda x, rate: x * rate)
    x = td.ones(1)
    for k in range(7):
        f(x, rate=k / 10)
    with pytest.warns(UserWarning, match="8 values of its argument rate, the last one 0.7"):
        f(x, rate=0.7)
    f(x, rate=0.8)


def test_old_traces_go(device, monkeypatch):
    monkeypatch.setattr(compiling, "_MOST_TRACES", 3)
    f, runs = counted(lambda x, k: x)
    x = td.ones(1)
    for k, ran in (("a", 1), ("b", 2), ("a", 2), ("c", 3), ("d", 4), ("a", 4), ("b", 5)):
        f(x, k)
        assert len(runs) == ran
        assert f.traces <= 3


# --- writes --------------------------------------------------------------------------------------


def test_arguments_are_written_for_the_caller(device):
    def body(x, y):
        x += y
        y[1:] = 5.0
        add_one.launch(2, y)
        return x * 1

    f, runs = counted(body)
    x, y = array(1.0, 2.0), array(3.0, 4.0)
    seen = x[1:]
    waiting = x * 10
    assert f(x, y).tolist() == [4, 6]
    assert x.tolist() == [4, 6]
    assert y.tolist() == [4, 6]
    assert seen.tolist() == [6]
    assert waiting.tolist() == [10, 20]
    z = array(1.0, 1.0)
    waiting = z + 1
    f(z, y)
    assert waiting.tolist() == [2, 2]
    assert z.tolist() == [5, 7]
    assert len(runs) == 1


def test_arguments_that_are_views_of_one_array(device):
    def body(x, y):
        x += y
        y *= 2

    f, runs = counted(body)
    for first in range(3):
        data = np.arange(12, dtype=np.float32)
        base = td.asarray(data)
        f(base[first : first + 4], base[first + 2 : first + 6])
        body(data[first : first + 4], data[first + 2 : first + 6])
        assert base.tolist() == data.tolist()
    assert len(runs) == 1
    x = array(1.0, 2.0, 3.0, 4.0)
    f(x, x)
    assert x.tolist() == [4, 8, 12, 16]
    assert len(runs) == 2
    f(x[:2], x[2:])
    assert x.tolist() == [16, 24, 24, 32]
    assert len(runs) == 3


def test_strided_arguments(device):
    def body(x):
        x *= 2
        return x + 1

    f = td.compile(body)
    for _ in range(3):
        data = np.arange(24, dtype=np.float32).reshape(4, 6)
        base = td.asarray(data)
        for index in (np.s_[:, 1], np.s_[::-1, ::2], np.s_[1:3]):
            part, theirs = base[index], data[index]
            assert f(part).tolist() == body(theirs).tolist()
            assert base.tolist() == data.tolist()
        assert f(base.T).tolist() == body(data.T).tolist()
        assert base.tolist() == data.tolist()


@pytest.mark.parametrize("dtype", [td.uint8, td.int16])
def test_odd_numbers_of_bytes(device, dtype):
    def body(x):
        x += 1
        return x * 2

    f = td.compile(body)
    for k in range(3):
        base = td.arange(16, dtype=dtype)
        assert f(base[k : k + 3]).tolist() == [2 * (k + 1), 2 * (k + 2), 2 * (k + 3)]
        expected = [i + (k <= i < k + 3) for i in range(16)]
        assert base.tolist() == expected


def test_results_that_are_arguments(device):
    def body(x, y, z):
        return x, x[1:], (y * 2, y), z.T, [x, x]

    f = td.compile(body)
    for k in range(2):
        x, y, z = td.full(3, k), td.ones(2), td.ones((2, 3))
        a, b, (c, d), e, twice = f(x, y, z)
        assert a is x
        assert d is y
        assert twice[0] is twice[1] is x
        assert e.shape == (3, 2)
        b[...] = 9
        e[0, 0] = 7
        assert x.tolist() == [k, 9, 9]
        assert z[0, 0].item() == 7
        assert c.tolist() == [2, 2]


def test_one_result_twice(device):
    def body(x):
        y = x + 1
        return y, y, y[1:]

    f = td.compile(body)
    for _ in range(2):
        a, b, c = f(td.zeros(3))
        assert a is b
        a[1] = 8
        assert c.tolist() == [8, 1]


def test_memory_that_may_only_be_read(device):
    if device.id != "cpu":
        return
    data = np.ones(3, np.float32)
    data.flags.writeable = False
    x = td.from_dlpack(data)
    f = td.compile(lambda x: x * 2)
    assert f(x).tolist() == [2, 2, 2]
    g = td.compile(lambda x: x.__imul__(2))
    for _ in range(2):
        with pytest.raises(ValueError, match="only be read"):
            g(x)


def test_empty_tensors_and_constants(device):
    def body(x, y):
        y[...] = 3
        return x * 2, x.sum(), y + 1

    f = td.compile(body)
    for _ in range(2):
        y = td.zeros(2)
        a, b, c = f(td.zeros((0, 3)), y)
        assert a.shape == (0, 3)
        assert b.item() == 0
        assert c.tolist() == [4, 4]
        assert y.tolist() == [3, 3]


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


# --- random draws --------------------------------------------------------------------------------


def test_draws_go_on_as_without(device):
    own = td.Generator(5)

    def body(x):
        mask = td.random.bernoulli(x.shape, 0.5)
        noise = td.random.integers(x.shape, 0, 1000, generator=own)
        fresh = td.random.uniform(3, generator=td.Generator(9))
        order = td.random.permutation(5) if device.id == "cpu" else x  # many kernels
        return td.where(mask, x, noise), order, fresh, td.random.uniform(2)

    f, runs = counted(body)
    x = td.zeros(20)

    def calls(function):
        td.manual_seed(3)
        own.manual_seed(7)
        found = [[t.tolist() for t in function(x)] for _ in range(3)]
        td.manual_seed(2**63 + 5)
        own.set_state((2**40, 2**64 - 1))
        found += [[t.tolist() for t in function(x)] for _ in range(2)]
        return found, own.get_state(), td.random.uniform(1).item()

    assert calls(f) == calls(body)
    assert len(runs) == 1


def test_draws_after_a_seed_inside(device):
    def body():
        a = td.random.uniform(2)
        td.manual_seed(11)
        return a, td.random.uniform(2)

    f = td.compile(body)
    for function in (f, body):
        td.manual_seed(1)
        found = [[t.tolist() for t in function()] for _ in range(3)]
        if function is f:
            expected = found
    assert found == expected


def test_many_draws(device):
    f = td.compile(lambda: [td.random.integers(2, 0, 99) for _ in range(300)])
    found = []
    for function in (f, f.__wrapped__):
        td.manual_seed(0)
        found.append([[x.tolist() for x in function()[::7]] for _ in range(2)])
    assert found[0] == found[1]


# --- what ends a recording -----------------------------------------------------------------------


def test_a_read_inside(device):
    weight = td.zeros(2)
    runs = []

    def body(x, y):
        runs.append(1)
        x += 1
        y[0] = 5
        drawn = td.random.integers(2, 0, 1000)
        if x.sum().item() > 3:
            weight.__iadd__(x)
            y *= 2
        return x, y + 0, drawn, x[1:]

    f = td.compile(body)
    weights = []
    for function in (f, body):
        td.manual_seed(4)
        weight[...] = 0
        del runs[:]
        found = []
        for k in range(3):
            x, y = td.full(2, k), td.ones(2)
            a, b, c, d = function(x, y)
            assert a is x
            d[...] = 8
            found += [x.tolist(), y.tolist(), b.tolist(), c.tolist()]
        weights.append((found, weight.tolist(), len(runs)))
    assert weights[0] == weights[1]
    assert "a tensor is read at" in repr(f)
    assert "test_compile.py" in repr(f)


def test_a_read_is_explained_once(device, capsys, monkeypatch):
    monkeypatch.setattr(tracing, "watchers", [lambda group: None])
    f = td.compile(lambda x: float(x.sum()))
    assert [f(td.ones(3)) for _ in range(3)] == [3, 3, 3]
    said = capsys.readouterr().err
    assert said.count("runs at every call") == 1
    assert "test_compile.py" in said


@pytest.mark.parametrize("what", ["wait", "event", "graph", "other", "stream", "print"])
def test_other_things_that_no_recording_has(device, what, capsys):
    @td.kernel
    def shout(x: td.Array[td.f32]):
        print(x[0])

    graph, held = td.Graph(device), td.zeros(2)
    with graph.capture():
        add_one.launch(2, held)

    def body(x):
        x += 1
        if what == "wait":
            device.synchronize()
        elif what == "event":
            td.Event().record()
        elif what == "graph":
            graph.replay()
        elif what == "other":
            x = x + td.ones(2, device=other).to(device)
        elif what == "stream":
            add_one[1, 2, 0, stream](x)
        else:
            shout[1, 1](x)
        return x * 2

    other = "webgpu" if device.id == "cpu" else "cpu"
    stream = device.stream()
    f = td.compile(body)
    found = []
    for function in (f, body):
        held[...] = 0
        x = td.zeros(2)
        for _ in range(3):
            y = function(x)
        found.append((x.tolist(), y.tolist(), held.tolist()))
    assert found[0] == found[1]
    assert "in Python" in repr(f)


def test_an_error_inside(device):
    def body(x, fails):
        x += 1
        if fails:
            raise ZeroDivisionError
        return x * 2

    f = td.compile(body)
    x = td.zeros(2)
    for k in range(2):
        with pytest.raises(ZeroDivisionError):
            f(x, True)
        assert x.tolist() == [k + 1.0] * 2
    assert f.traces == 0
    assert f(x, False).tolist() == [6, 6]
    assert f(x, False).tolist() == [8, 8]
    with pytest.raises(KeyboardInterrupt):
        td.compile(lambda x: _raise(KeyboardInterrupt))(x)
    assert (x + 1).tolist() == [5, 5]


def _raise(error):
    raise error


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


def test_another_thread_during_a_trace(device):
    reached, go_on = threading.Event(), threading.Event()
    x = td.ones(4)

    def body(y):
        y = y + 1
        add_one.launch(4, y)
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
    assert f(z).tolist() == [4] * 4
    thread.join()
    assert seen == [[3] * 4]
    assert f.traces == 0  # it is tried again
    assert f(z).tolist() == [4] * 4
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


def test_dropout_in_attention_draws_anew(device):
    x = td.ones((1, 6, 4))
    v = td.arange(24, dtype=td.float32).reshape(1, 6, 4)

    def attended(q):
        return td.nn.functional.scaled_dot_product_attention(q, q, v, dropout_p=0.5)

    compiled = td.compile(attended)
    for function in (attended, compiled):
        td.manual_seed(3)
        drawn = [function(x).numpy() for _ in range(3)]
        if function is attended:
            wanted = drawn
    np.testing.assert_array_equal(drawn, wanted)
    assert (drawn[1] != drawn[2]).any()


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
    assert Model.f.traces == 1
    options = {"shift": td.ones(2)}
    shifted = td.compile(lambda y: y + options["shift"])
    assert shifted(x).tolist() == [2.0, 3.0]
    options["shift"] = td.zeros(2)
    assert shifted(x).tolist() == [1.0, 2.0]
