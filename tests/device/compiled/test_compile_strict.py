"""What a compiled function does to what it reads, and what `strict=True` lets pass and refuses."""

from __future__ import annotations

import contextlib
import functools
import types
import weakref

import numpy as np
import pytest

import treadle as td

X = np.arange(3, dtype=np.float32)
mode = "slow"


def _on_cpu(function):
    return td.compile(function, strict=True, device="cpu")


# --- state that is set, and set back --------------------------------------------------------------


def test_modes_that_are_set_within():
    model = td.nn.Sequential(td.nn.Linear(3, 3, device="cpu"), td.nn.Dropout(0.5))
    runs = []

    def body(x):
        runs.append(1)
        model.train()
        first = model(x)
        model.eval()
        return first, model(x)

    f = _on_cpu(body)
    with td.no_grad(), td.use_device("cpu"):
        model.eval()
        for turn in range(4):
            td.manual_seed(turn)
            expected = [each.tolist() for each in body(X)]
            runs.clear()
            td.manual_seed(turn)
            assert [each.tolist() for each in f(X)] == expected
            assert len(runs) == (turn == 0)
        model.train()
        f(X)
        assert not model.training


def _read_mode(x):
    return x * (2 if mode == "fast" else 3)


@pytest.mark.parametrize("kind", ["global", "closure", "dict", "attribute", "context"])
def test_state_that_is_set_back(kind):
    options, held, state = {"fast": False}, types.SimpleNamespace(fast=False), False

    def set_state(value):
        nonlocal state
        state = value

    @contextlib.contextmanager
    def fast():
        held.fast = True
        try:
            yield
        finally:
            held.fast = False

    def read(x):
        return x * (2 if options["fast"] or held.fast or state else 3)

    def body(x):
        global mode
        if kind == "global":
            mode = "fast"
            y = _read_mode(x)
            mode = "slow"
        elif kind == "closure":
            set_state(True)
            y = read(x)
            set_state(False)
        elif kind == "dict":
            options["fast"] = True
            y = read(x)
            options["fast"] = False
        elif kind == "attribute":
            held.fast = True
            y = read(x)
            held.fast = False
        else:
            with fast():
                y = read(x)
        return y

    f = _on_cpu(body)
    assert [f(X).tolist() for _ in range(5)] == [[0.0, 2.0, 4.0]] * 5
    assert f.traces == 1


def test_a_mode_that_is_not_set_back():
    held = types.SimpleNamespace(fast=False)

    def read(x):
        return x * (2 if held.fast else 3)

    def body(x):
        held.fast = not held.fast
        return read(x)

    f = td.compile(body, device="cpu")
    with pytest.warns(UserWarning, match=r"changes held.fast.*Set it before the call, or back"):
        assert [f(X).tolist()[1] for _ in range(6)] == [2.0, 3.0] * 3


def test_what_functions_and_modules_say_of_themselves():
    module = types.ModuleType("module")
    module.__version__ = "1"

    def helper(x):
        """One."""
        return x * len(helper.__doc__) + len(helper.__name__)

    def body(x):
        return helper(x) * len(module.__version__) + len(helper.__annotations__)

    f = _on_cpu(body)
    for change in (
        lambda: None,
        lambda: setattr(helper, "__doc__", "More."),
        lambda: setattr(helper, "__name__", "other"),
        lambda: helper.__annotations__.update(x=int),
        lambda: setattr(module, "__version__", "1.0"),
    ):
        change()
        assert [f(X).tolist() for _ in range(2)] == [body(X).tolist()] * 2


def test_what_a_class_or_a_slot_does_not_have():
    class Scale:
        __slots__ = ("earlier", "held")

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def __getattr__(self, name):
            if name == "held":
                return 2.0
            raise AttributeError(name)

    scale = Scale()

    def body(x):
        with contextlib.ExitStack() as stack:  # which reads the class's `__qualname__`
            stack.enter_context(scale)
            x = x * getattr(scale, "held", 3.0)
        return x + getattr(scale, "earlier", 1.0)

    f = _on_cpu(body)
    assert [f(X).tolist() for _ in range(3)] == [[1.0, 3.0, 5.0]] * 3
    assert f.traces == 1
    scale.held = 4.0
    assert [f(X).tolist() for _ in range(2)] == [[1.0, 5.0, 9.0]] * 2


@pytest.mark.parametrize("is_large", [False, True])
def test_containers_that_are_set_back(is_large):
    count = 100 if is_large else 1
    stack, table, members = [1.0] * count, dict.fromkeys(range(count), 1.0), {"a"}

    def read(x):
        return x * len(stack) * stack[0] + sum(table.values()) + len(members)

    def body(x):
        stack.append(5.0)
        stack[0], table[0], table["b"] = 2.0, 3.0, 4.0
        members.add("b")
        y = read(x)
        stack.pop()
        stack[0], table[0] = 1.0, 1.0
        del table["b"]
        members.discard("b")
        return y

    f = _on_cpu(body)
    for change in (
        lambda: None,
        lambda: stack.append(7.0),
        lambda: table.update({count - 1: 2.0, "c": 8.0}),
        lambda: members.add("c"),
    ):
        change()
        assert [f(X).tolist() for _ in range(2)] == [body(X).tolist()] * 2
    assert f.traces == 4


# --- caches -----------------------------------------------------------------------------------


def _filled_dict(cache):
    def body(x):
        if x.shape not in cache:
            cache[x.shape] = td.arange(x.shape[0], dtype=td.float32, device="cpu") + x * 0
        return x * cache[x.shape]

    return body


def _filled_attribute(cache):
    held = types.SimpleNamespace(table=None)

    def body(x):
        if held.table is None:
            held.table = x * 0 + 2
        return x * held.table

    return body


def _filled_property(cache):
    class Tables:
        @functools.cached_property
        def table(self):
            return td.full(3, 2.0, device="cpu") * td.ones(3, device="cpu")

    tables = Tables()
    return lambda x: x * tables.table


def _filled_function(cache):
    @functools.cache
    def table(size):
        return td.arange(size, dtype=td.float32, device="cpu") * 2

    return lambda x: x * table(x.shape[0])


@pytest.mark.parametrize(
    "make", [_filled_dict, _filled_attribute, _filled_property, _filled_function]
)
def test_a_cache_that_the_function_fills(make):
    body, other = make({}), make({})
    f = _on_cpu(body)
    for size in (3, 3, 3):
        x = np.arange(size, dtype=np.float32)
        assert f(x).tolist() == other(td.asarray(x, device="cpu")).tolist()
    assert f.traces == 1


# --- what keeps needing new traces --------------------------------------------------------------


def _fresh_lambda(turn):
    return lambda x: x * turn


def _fresh_partial(turn):
    return functools.partial(td.multiply, turn)


class _Scale:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by


class _Equal(_Scale):
    def __eq__(self, other):
        return self.by == other.by

    def __hash__(self):
        return 3


@pytest.mark.parametrize("make", [_fresh_lambda, _fresh_partial, _Scale, _Equal])
def test_objects_that_are_made_for_each_call(make):
    f = td.compile(lambda x, options: options["by"](x), device="cpu")

    def call():
        assert f(X, {"by": make(2.0)}).tolist() == [0.0, 2.0, 4.0]

    for _ in range(7):
        call()
    with pytest.warns(UserWarning, match=r"8 objects as its argument 2\['by'\].*Make it once"):
        call()
    for _ in range(20):  # once
        call()
    strict = _on_cpu(lambda x, by: by(x))
    for _ in range(7):
        strict(X, make(2.0))
    with pytest.raises(td.errors.LaunchError, match="8 objects as its argument 2"):
        strict(X, make(2.0))


def test_objects_that_are_kept_are_fine():
    layers, f = [_Scale(float(at)) for at in range(20)], _on_cpu(lambda x, by: by(x))
    for _ in range(2):
        for each in layers:
            assert f(X, each).tolist() == (X * each.by).tolist()
    assert f.traces == 20


def test_a_trace_does_not_keep_its_first_arguments():
    f, options = _on_cpu(lambda x, options: x * options["by"].by), {"by": _Scale(2.0)}
    x, held = td.arange(3, dtype=td.float32, device="cpu"), weakref.ref(options["by"])
    cell = weakref.ref(x._cell)
    for _ in range(2):
        f(x, options)
    f.clear()
    del options, x
    assert held() is None
    assert cell() is None

    g, x = _on_cpu(lambda x: x * 2), td.arange(3, dtype=td.float32, device="cpu")
    cell = weakref.ref(x._cell)
    g(x)
    del x
    assert cell() is None  # though the trace is there


def test_many_values_are_refused():
    f = _on_cpu(lambda x, by: x * (len(by) if isinstance(by, str) else by))
    for values in ([float(at) for at in range(8)], [str(at) for at in range(8)]):
        for each in values[:-1]:
            f(X, each)
        with pytest.raises(td.errors.LaunchError, match="traced for 8 values of its argument 2"):
            f(X, values[-1])
        f.clear()
    held = types.SimpleNamespace(by=0.0, of=None)
    g = _on_cpu(lambda x: x * held.by if held.of is None else x)
    for held.by in range(7):
        g(X)
    held.by = 7.0
    with pytest.raises(td.errors.LaunchError, match=r"8 values of the variable held\.by"):
        g(X)
    h = _on_cpu(lambda x: x if held.of else -x)
    for at in range(8):
        held.of = str(at)
        h(X)
    held.of = "last"
    with pytest.raises(td.errors.LaunchError, match=r"8 times because held\.of had changed"):
        h(X)


# --- what is not replayed -----------------------------------------------------------------------


def test_what_runs_in_python_is_refused():
    model = td.nn.Linear(3, 1, device="cpu")
    with pytest.raises(td.errors.LaunchError, match="gives tensors that require gradients"):
        _on_cpu(model)(X)
    with td.no_grad():
        _on_cpu(model)(X)
    with pytest.raises(td.errors.LaunchError, match=r"cannot be replayed: .*is read at .*strict"):
        _on_cpu(lambda x: x * x.sum().item())(X)
    weight = td.ones(3, device="cpu").requires_grad_()
    with pytest.raises(td.errors.LaunchError, match="its arguments require gradients"):
        _on_cpu(lambda x: x * 2)(weight)
    with pytest.raises(td.errors.LaunchError, match="leaves gradients"):
        _on_cpu(lambda x: (x * weight).sum().backward())(X)
