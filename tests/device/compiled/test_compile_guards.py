"""What changes around a compiled function, however it is held, is seen by the next call."""

from __future__ import annotations

import contextvars
import cProfile
import ctypes
import enum
import functools
import os
import pstats
import sys
import types
import weakref
from array import array

import numpy as np
import pytest

import treadle as td
from tests.support.holders import HOLDERS
from tests.support.holders.base import Plain
from treadle.runtime import settings
from treadle.tensor.compiled import function as compiling


@pytest.mark.parametrize("name", HOLDERS)
def test_a_value_that_is_held_is_seen(device, name):
    if device.id not in ("cpu", "cuda:0") and name != "in_an_attribute":
        return  # what is found does not depend on the device
    three = td.full(3, 3.0, device=device)
    values = [2.0, 3.0, three, td.full(3, 4.0, device=device), None, three, -0.0]
    read, change = HOLDERS[name](values[0])
    runs = []

    def body(x):
        runs.append(1)
        held = read()
        return x if held is None else x * held

    f = td.compile(body)
    x = td.arange(3, device=device, dtype=td.float32)
    for turn, value in enumerate(values):
        if turn:
            change(value)
        expected = str(body(x).tolist())  # with the sign of a zero
        assert str(f(x).tolist()) == expected
        runs.clear()
        assert str(f(x).tolist()) == expected
        assert not runs, "it is replayed"


# --- what is not a single place -------------------------------------------------------------------


def _on_cpu(function):
    """For what does not depend on the device."""
    return td.compile(function, device="cpu")


X = np.arange(3, dtype=np.float32)


def test_numpy_arrays_around():
    data, table = np.ones(3, np.float32), {"a": [np.full(3, 2.0, np.float32)]}
    objects = np.array([1.0, None], dtype=object)
    f = _on_cpu(lambda x: x * td.asarray(data) + td.asarray(table["a"][0]) * objects[0])
    for change in (
        lambda: None,
        lambda: data.__setitem__(1, 5.0),
        lambda: table["a"].__setitem__(0, np.zeros(3, np.float32)),
        lambda: table["a"][0].__iadd__(3.0),
        lambda: objects.__setitem__(0, 4.0),
    ):
        change()
        expected = (X * data + table["a"][0] * objects[0]).tolist()
        assert [f(X).tolist() for _ in range(2)] == [expected] * 2


def test_what_is_behind_a_hundred_thousand_others():
    class Held:
        pass

    held = Held()
    held.value = 2.0
    values = [object() for _ in range(100_001)] + [held]
    f = _on_cpu(lambda x: x * values[-1].value)
    assert f(X).tolist() == [0.0, 2.0, 4.0]
    held.value = 3.0
    assert f(X).tolist() == [0.0, 3.0, 6.0]
    other = values[-1] = Held()
    other.value = 5.0
    assert f(X).tolist() == [0.0, 5.0, 10.0]


def test_what_is_behind_a_long_chain():
    first = last = types.SimpleNamespace(next=None, value=1.0)
    for _ in range(3000):
        last.next = types.SimpleNamespace(next=None, value=1.0)
        last = last.next

    @_on_cpu
    def f(x):
        each = first
        while each.next is not None:
            each = each.next
        return x * each.value

    for value in (2.0, td.full(3, 3.0, device="cpu")):
        last.value = value
        assert f(X).tolist() == (X * np.asarray(value)).tolist()


def test_bytes_and_arrays_of_numbers_around():
    data, numbers = bytearray([1, 2]), array("d", [1.0, 2.0])
    f = _on_cpu(lambda x: x * data[1] * numbers[0])
    assert f(X).tolist() == [0.0, 2.0, 4.0]
    data[1] = 3
    assert f(X).tolist() == [0.0, 3.0, 6.0]
    numbers[0] = 2.0
    assert f(X).tolist() == [0.0, 6.0, 12.0]


def test_the_environment_is_looked_at(monkeypatch):
    f = _on_cpu(lambda x: x * float(os.environ["SCALE_OF_A_TEST"]))
    for scale in (2.0, 3.0):
        monkeypatch.setenv("SCALE_OF_A_TEST", str(scale))
        assert f(X).tolist() == (X * scale).tolist()


scale_of_kernels = 2.0


@td.kernel
def _scaling(x: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] * scale_of_kernels


@td.elementwise
def _scaled(x):
    return x * scale_of_kernels


@functools.lru_cache
def _from_cache(factor):
    return factor * scale_of_kernels


def test_what_kernels_and_caches_capture(monkeypatch):
    def body(x):
        y = x + 0
        _scaling.launch(3, y)
        return y, _scaled(x), x * _from_cache(1.0)

    f = _on_cpu(body)
    for scale in (2.0, 3.0, 2.0):
        monkeypatch.setattr(sys.modules[__name__], "scale_of_kernels", scale)
        _from_cache.cache_clear()
        for found in f(X):
            assert found.tolist() == (X * scale).tolist()
    assert f.traces == 2


def test_hooks_are_looked_at():
    layer = td.nn.Linear(3, 1, device="cpu")
    optimizer, seen = td.optim.SGD(layer.parameters(), lr=0.0), []

    @_on_cpu
    def step(x):
        optimizer.zero_grad()
        loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    x = np.ones((2, 3), np.float32)
    step(x)
    first = layer.bias.grad.item()
    handle = layer.bias.register_hook(lambda gradient: gradient * 10)
    step(x)
    assert layer.bias.grad.item() == 10 * first
    handle.remove()
    step(x)
    assert layer.bias.grad.item() == first
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    step(x)
    assert seen == [1]


def test_switches_and_schedules():
    def curve(is_compiled, is_inside):
        td.manual_seed(0)
        layer = td.nn.Linear(3, 1, device="cpu")
        optimizer = td.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        schedule = td.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

        def step(x):
            optimizer.zero_grad()
            loss = (layer(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            if is_inside:
                schedule.step()
            return loss

        run = _on_cpu(step) if is_compiled else step
        losses = []
        for turn in range(8):
            if turn == 6:
                optimizer.param_groups[0]["nesterov"] = True
            losses.append(run(td.ones((2, 3), device="cpu")).item())
        return losses

    np.testing.assert_allclose(curve(True, False), curve(False, False), rtol=1e-5)
    with pytest.warns(UserWarning, match=r"it changes self\.\w+, which it reads"):
        found = curve(True, True)
    np.testing.assert_allclose(found, curve(False, True), rtol=1e-5)


def test_modes_have_a_trace_each():
    model = td.nn.Sequential(td.nn.Linear(3, 3, device="cpu"), td.nn.Dropout(0.5))
    runs = []

    @_on_cpu
    def forward(x):
        runs.append(1)
        return model(x)

    with td.no_grad():
        for _ in range(12):  # without a warning of what changes often
            for mode in (True, False):
                model.train(mode)
                forward(X)
    assert len(runs) == 2
    model.train()
    model[1].p = 0.9
    with td.no_grad():
        forward(X)
    assert len(runs) == 3


def test_the_default_device_is_looked_at():
    f = td.compile(lambda: td.ones(2))
    for name in ("cpu", "webgpu", "cpu"):
        with td.use_device(name):
            assert f().device is td.device(name)


def test_a_list_that_becomes_a_number():
    options = {"scale": [2.0]}
    g = _on_cpu(lambda x: x * len(str(options["scale"])))
    g(X)
    options["scale"] = 3.0
    assert g(X).tolist() == (X * 3).tolist()


class Equal:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Equal

    def __hash__(self):
        return 1


def test_attributes_of_arguments():
    f = _on_cpu(lambda x, held, *, other: x * held.value * other["a"][0].value)
    one, two, other = Equal(2.0), Equal(3.0), Equal(1.0)
    for held in (one, two, one):
        assert f(X, held, other={"a": [other]}).tolist() == (X * held.value).tolist()
    assert f.traces == 2
    one.value = td.full(3, 7.0, device="cpu")
    other.value = 2.0
    assert f(X, one, other={"a": [other]}).tolist() == (X * 14).tolist()


def test_numbers_of_ctypes_around():
    numbers, pair = (ctypes.c_float * 2)(1.0, 2.0), ctypes.c_int(3)
    f = _on_cpu(lambda x: x * numbers[1] * pair.value)
    assert f(X).tolist() == (X * 6).tolist()
    numbers[1] = 3.0
    assert f(X).tolist() == (X * 9).tolist()
    pair.value = 1
    assert f(X).tolist() == (X * 3).tolist()


@functools.lru_cache(maxsize=4)
def _configuration(name):
    return types.SimpleNamespace(scale=2.0, table=td.full(3, 1.0, device="cpu").realize())


def test_results_in_a_cache():
    _configuration("a")
    f = _on_cpu(lambda x: x * _configuration("a").scale * _configuration("a").table)
    assert f(X).tolist() == (X * 2).tolist()
    _configuration("a").scale = 3.0
    assert f(X).tolist() == (X * 3).tolist()
    _configuration("a").table = td.full(3, 2.0, device="cpu")
    assert f(X).tolist() == (X * 6).tolist()


# --- what changes what it reads, and what no guard reaches ---------------------------------------


class Counting:
    def __init__(self):
        self.calls = 0
        self.history = []

    def counted(self, x):
        self.calls += 1
        return x * self.calls

    def remembering(self, x):
        self.history.append(x.shape[0])
        return x * len(self.history)

    def cached(self, x):
        if not self.history:
            self.history.append(td.full(3, 2.0, device="cpu"))
        return x * self.history[0]


@pytest.mark.parametrize("name", ["counted", "remembering"])
def test_a_function_that_changes_what_it_reads(name):
    one, other = Counting(), Counting()
    f = _on_cpu(getattr(one, name))
    place = "self.calls" if name == "counted" else "the length of self.history"
    with pytest.warns(UserWarning, match=f"it changes {place}, which it reads"):
        found = [f(X).tolist() for _ in range(5)]
    assert found == [getattr(other, name)(X).tolist() for _ in range(5)]
    strict = td.compile(getattr(Counting(), name), strict=True, device="cpu")
    assert [strict(X).tolist() for _ in range(2)] == found[:2]  # it may be a cache that fills
    with pytest.raises(td.errors.LaunchError, match=place):
        strict(X)


def test_a_cache_that_is_filled_once():
    holder = Counting()
    f = _on_cpu(holder.cached)
    assert f(X).tolist() == [0.0, 2.0, 4.0]
    assert f.traces == 0  # Python's effects are in it
    assert f(X).tolist() == [0.0, 2.0, 4.0]
    assert f.traces == 1
    holder.history[0] = td.ones(3, device="cpu")
    assert f(X).tolist() == [0.0, 1.0, 2.0]


def test_what_no_guard_reaches_is_told_by_name():
    numbers = iter(range(1, 100))

    def body(x):
        return x * next(numbers)

    with pytest.warns(UserWarning, match="it uses numbers, a range_iterator"):
        _on_cpu(body)(X)
    with pytest.raises(td.errors.LaunchError, match="numbers, a range_iterator"):
        td.compile(body, strict=True, device="cpu")(X)

    kept = []

    def keeping(x):
        kept.append(x + 1)
        return x

    with pytest.raises(td.errors.LaunchError, match="keeps 1 of the tensors"):
        td.compile(keeping, strict=True, device="cpu")(X)

    variable = contextvars.ContextVar("variable")
    context = contextvars.copy_context()
    context.run(variable.set, td.ones(3, device="cpu").realize())
    with pytest.warns(UserWarning, match=r"a tensor of shape \(3,\) .* which no name leads to"):
        _on_cpu(lambda x: x * context[variable])(X)


def test_what_cannot_be_looked_at_is_told():
    class Hiding:
        def __init__(self):
            self.value = 2.0

        def __getattribute__(self, name):
            if name == "__class__":
                raise RuntimeError("no")
            return object.__getattribute__(self, name)

    hiding = Hiding()
    f = _on_cpu(lambda x: x * hiding.value)
    with pytest.warns(UserWarning, match="reads, which could not be looked at"):
        f(X)


def test_what_changes_often_is_warned_of():
    weights, options = [td.ones(3, device="cpu")], {"rate": 0.0}
    f = _on_cpu(lambda x: x * weights[0])
    g = _on_cpu(lambda x: x * options["rate"])

    def change(turn):
        weights[0], options["rate"] = td.full(3, turn, device="cpu"), float(turn)
        assert f(X).tolist() == g(X).tolist() == (X * turn).tolist()

    f(X)
    for turn in range(7):
        change(turn)
    with pytest.warns(UserWarning, match="is compiled, and") as seen:
        change(7)
    said = [str(each.message) for each in seen]
    assert any("another trace 8 times because weights[0] had changed" in each for each in said)
    assert any("8 values of the variable options['rate']" in each for each in said)
    assert f.traces == 1


class _Kind(enum.Enum):
    ONE = 1.0
    TWO = 2.0


@pytest.mark.parametrize(
    "values",
    [
        [_Kind.ONE, _Kind.TWO], [Plain(1.0), Plain(2.0)], [td.exp, td.sin],
        [lambda x: x + 1, lambda x: x + 2], [[1.0], [1.0, 2.0]], [{"a": 1.0}, {"b": 2.0}],
        [{}, {"b": 2.0}], [[1.0] * 70, [2.0] * 71],
    ],
    ids=["members", "objects", "functions", "lambdas", "lists", "dicts", "an empty dict", "long"],
)  # fmt: skip
def test_what_goes_back_and_forth_has_a_trace_each(values):
    owner = Plain(values[0])

    def body(x):
        held = owner.held
        if isinstance(held, _Kind):
            return x * held.value
        if isinstance(held, Plain):
            return x * held.held
        if callable(held):
            return held(x)
        return x * sum(held.values() if isinstance(held, dict) else held)

    f = _on_cpu(body)
    for turn in range(20):
        owner.held = values[turn % 2]
        assert f(X).tolist() == body(X).tolist()
    assert f.traces == 2


def test_a_container_that_grows_and_shrinks_has_a_trace_each():
    numbers, table = [1.0], {"a": 1.0}
    f = _on_cpu(lambda x: x * sum(numbers) * sum(table.values()))
    for turn in range(20):
        if turn % 2:
            numbers.append(2.0)
            table["b"] = 4.0
        elif turn:
            numbers.pop()
            del table["b"]
        assert f(X).tolist() == (X * (15.0 if turn % 2 else 1.0)).tolist()
    assert f.traces == 2


def test_traces_of_objects_that_are_gone_are_dropped():
    owner = Plain()
    f = _on_cpu(lambda x: x * owner.held.held)
    made = []
    for turn in range(4):
        owner.held = Plain(float(turn))
        made.append(weakref.ref(owner.held))
        assert f(X).tolist() == (X * turn).tolist()
    assert f.traces == 1
    assert [each() is None for each in made] == [True, True, True, False]


def test_advice_fits_what_changes():
    owner = Plain()
    f = _on_cpu(lambda x: x * owner.held.held)

    def change():
        owner.held = Plain(2.0)
        f(X)

    for _ in range(8):
        change()
    with pytest.warns(UserWarning, match=r"owner\.held had changed\. Pass it as an argument, or"):
        change()

    def naming(x):
        owner.held = owner.held + "a"
        return x

    owner.held = "a"
    strict = td.compile(naming, strict=True, device="cpu")
    strict(X)
    strict(X)
    with pytest.raises(
        td.errors.LaunchError, match=r"every call\. Pass it as an argument, or keep"
    ):
        strict(X)

    def counting(x):
        owner.held = owner.held + 1
        return x * owner.held

    owner.held = 1
    strict = td.compile(counting, strict=True, device="cpu")
    strict(X)
    strict(X)
    with pytest.raises(td.errors.LaunchError, match=r"every call\. Let it be a tensor, and write"):
        strict(X)


def test_a_change_is_explained(monkeypatch, capsys):
    monkeypatch.setattr(compiling, "watchers", [lambda group: None])
    options = {"rate": 1.0}
    f = _on_cpu(lambda x: x * options["rate"])
    f(X)
    options["rate"] = 2.0
    f(X)
    assert "needs another trace: options['rate'] has changed" in capsys.readouterr().err


# --- beside Python -------------------------------------------------------------------------------


def test_replays_beside_python(monkeypatch):
    monkeypatch.setattr(settings, "check_compiled", True)
    hidden = iter([2.0, 2.0, 3.0])
    weight = td.ones(3, device="cpu")

    def body(x, noise):
        weight.__iadd__(x)
        x += 1
        return {"sum": x * next(hidden), "noise": noise + td.random.uniform(3, device="cpu")}

    f = _on_cpu(body)
    with pytest.warns(UserWarning, match="hidden"):
        f(td.asarray(X, device="cpu"), X)
    x = td.asarray(X, device="cpu")
    f(x, X)
    assert x.tolist() == (X + 1).tolist()
    assert weight.tolist() == (1 + 2 * X).tolist()
    with pytest.raises(td.errors.LaunchError, match=r"does: the result\['sum'\] would differ"):
        f(x, X)
    assert x.tolist() == (X + 2).tolist()
    assert weight.tolist() == (2 + 3 * X).tolist()


# --- profilers -----------------------------------------------------------------------------------


def test_profilers_go_on():
    seen = []
    sys.setprofile(lambda frame, event, value: seen.append(frame.f_code.co_name))
    try:
        f = _on_cpu(lambda x: _from_cache.__wrapped__(1.0) * x)
        f(X)
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert "_from_cache" in seen
    profiler = cProfile.Profile()
    with profiler:
        _on_cpu(lambda x: x * scale_of_kernels)(X)
        X.sum()
    assert any("Compiled" in str(name) or "__call__" in str(name) for name in
               pstats.Stats(profiler).stats)  # fmt: skip
