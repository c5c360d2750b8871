"""`td.compile`: a replay does what the function does, for every kind of function."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest

import treadle as td
from tests.support.compiled import add_one, array, counted
from treadle.tensor.compiled import function as compiling
from treadle.tensor.compiled import tracing

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
    for _ in range(2):
        assert f(x, a=td.full(2, 3.0), b=1).tolist() == f(x, b=1, a=td.full(2, 3.0)).tolist()
    assert len(runs) == 2  # one for each order


def test_keyword_arguments_come_in_the_order_of_the_call(device):
    def steps(x, **factors):
        for name, value in factors.items():
            x = x * value if name == "mul" else x + value
        return x

    f = td.compile(steps, strict=True)
    g = td.compile(functools.partial(steps, mul=2.0))
    for _ in range(2):
        assert f(td.ones(1), mul=2.0, add=3.0).tolist() == [5.0]
        assert f(td.ones(1), add=3.0, mul=2.0).tolist() == [8.0]
        assert g(td.ones(1), add=3.0).tolist() == [5.0]


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
    with pytest.raises(TypeError, match=r"argument 2\['b'\]\[0\] cannot be a key"):
        f(td.ones(1), {"a": 1, "b": [{1, 2}]})
    with pytest.raises(TypeError, match="argument options cannot be a key"):
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
    with pytest.raises(TypeError, match="compute before they return"):
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
        with pytest.raises(ValueError, match="this tensor is read-only"):
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
