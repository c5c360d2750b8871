"""Parts of placement: kinds of calls, tensors around a function, entries on disk, calibration."""

from __future__ import annotations

import functools
import gc
import threading
import types
import weakref

import numpy as np
import pytest

import treadle as td
from treadle.runtime import costs, disk_cache
from treadle.runtime.costs import KINDS, Costs, Estimate, Work
from treadle.tensor.compiled import calibration, kept_choices
from treadle.tensor.compiled.choice import CLEAR, Choice, Mean
from treadle.tensor.compiled.kinds_of_calls import (
    Kind,
    class_of,
    key_of,
    representative,
    size_class,
    text_of,
)
from treadle.tensor.compiled.placement import expected
from treadle.tensor.compiled.placement_text import explained, shown
from treadle.tensor.compiled.surroundings import devices_around


@pytest.fixture
def cpu(tmp_path, monkeypatch):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path / "cache"))
    return td.device("cpu")


# --- kinds of calls -------------------------------------------------------------------------------


def key(*args, **kwargs):
    return key_of(args, kwargs, td.device("cpu"))[0]


def test_calls_of_one_kind():
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)
    assert key(x, 1, k="a") == key(y, 1, k="a")
    assert key([x, y]) == key([y, x])
    different = [
        key(x, 1), key(x, 2), key(x, 1.0), key(x, True), key(x.T, 1), key(x.astype(np.float64), 1),
        key(x), key([x]), key((x,)), key({"a": x}), key(k=x), key(td.asarray(x)), key(td.ones(3)),
        key(), key(x, 0.0), key(x, -0.0), key(x, None),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    with pytest.raises(TypeError):
        key({1, 2})


def test_autocast_is_another_kind():
    before = key(np.ones(2))
    with td.autocast(td.float16):
        assert key(np.ones(2)) != before


def test_calls_of_about_the_same_sizes():
    def of(*args):
        return class_of(key(*args))

    assert of(np.ones(1000), 1000) == of(np.ones(1001), 1010) == of(np.ones(1010), 1000)
    different = [
        of(np.ones(1000), 1000), of(np.ones(1100), 1000), of(np.ones(1000), 1100),
        of(np.ones((1000, 1)), 1000), of(np.ones(1000, np.float32), 1000), of(np.ones(1000), 1e3),
        of(np.ones(0)), of(np.ones(1)), of(np.ones(15)), of(np.ones(16)), of(np.ones(17)),
        of(np.ones(1000), True), of(np.ones(1000), 1), of(np.ones(1000), -1000),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    classes = [size_class(n) for n in range(-3, 5000)]
    assert classes == sorted(classes)
    assert all(abs(representative(n) - n) <= 0.05 * n + 1 for n in range(5000))


def test_a_key_keeps_no_object_alive():
    class Thing:
        pass

    thing = Thing()
    gone = weakref.ref(thing)
    made = key(thing, [thing, np.ones(2)])
    assert made == key(thing, [thing, np.zeros(2)])
    assert made != key(Thing(), [thing, np.zeros(2)])
    del thing
    gc.collect()
    assert gone() is None


def test_tensors_that_require_gradients_are_another_kind():
    x = td.ones(2)
    y = td.ones(2).requires_grad_()
    assert key(x) != key(y)
    with td.no_grad():
        assert key(x) == key(y)


def test_the_text_of_arguments():
    def f(x, n, *more, mode=None):
        return x

    x = np.ones((2, 3), np.float32)
    text = text_of(f, (x, 2, object()), {"mode": {"a": "b" * 100}})
    assert text.startswith("x float32[2, 3], n 2, argument 3 (object), mode['a'] 'bbb")
    assert len(text) < 120
    assert text_of(f, (), {}) == "no arguments"
    assert text_of(abs, (td.ones(2, device="cpu"),), {}) == "argument 1 float32[2] on cpu"


# --- tensors around a function --------------------------------------------------------------------

TABLE = td.ones(3, device="cpu")
module = types.ModuleType("users_module")
module.weights = {"a": [TABLE]}


def uses_a_global(x):
    return x + TABLE


def calls_another(x):
    return uses_a_global(x)


class Model:
    __slots__ = ("weight",)

    def __init__(self, weight):
        self.weight = weight

    def helper(self, x):
        return calls_another(x)

    def __call__(self, x):
        return self.helper(x)


def around(function, *values):
    return [each.id for each in devices_around(function, values)]


def test_tensors_that_a_function_leads_to():
    closed = td.zeros(2, device="cpu")
    made = {
        "a global": uses_a_global,
        "through another function": calls_another,
        "a closure": lambda x: x + closed,
        "a function within": lambda x: [y + TABLE for y in x],
        "a default": lambda x, y=closed: x + y,
        "a keyword's default": lambda x, *, y=closed: x + y,
        "a bound method": Model(closed).__call__,
        "a slot": Model(closed),
        "a class's functions": Model(None),
        "a partial": functools.partial(lambda a, b: a + b, closed),
        "a module of nn": td.nn.Linear(2, 2, device="cpu"),
        "an optimizer": td.optim.SGD([td.nn.Parameter(td.ones(1, device="cpu"))], lr=0.1),
        "a compiled function": td.compile(uses_a_global),
        "a user's module": lambda x: x + module.weights["a"][0],
    }
    for what, function in made.items():
        assert around(function) == ["cpu"], what
    assert around(lambda m, x: m(x), Model(closed)) == ["cpu"]


def test_objects_that_refuse_to_be_looked_at():
    class Proxy:
        @property
        def __dict__(self):
            raise RuntimeError("not bound")

        @property
        def __class__(self):
            raise RuntimeError("not bound")

    proxy, closed = Proxy(), td.zeros(2, device="cpu")
    assert around(lambda x: (proxy, closed)) == ["cpu"]


def test_functions_without_tensors():
    class Empty:
        pass

    late = None

    def f(x):
        return np.sin(x) + td.sin(x) + (late or 0)

    for each in (f, Empty(), lambda x: x, functools.partial(f, 1), len, np.sin):
        assert around(each) == [], each


# --- on disk --------------------------------------------------------------------------------------


def test_means_come_back_from_disk(cpu):
    entry = kept_choices.entry_of(calls_another, "x float32[3]", cpu, cpu)
    others = [
        kept_choices.entry_of(uses_a_global, "x float32[3]", cpu, cpu),
        kept_choices.entry_of(calls_another, "x float32[4]", cpu, cpu),
        kept_choices.entry_of(Model(None), "x float32[3]", cpu, cpu),
        kept_choices.entry_of(abs, "x float32[3]", cpu, cpu),
    ]
    assert len({entry, *others}) == 5
    choice = Choice()
    choice.home, choice.away = Mean(2.0, 5), Mean(1.0, 5)
    kept_choices.save(entry, choice)
    found = Choice()
    kept_choices.load(entry, found)
    assert found.is_recalled
    assert found.is_best_away
    assert found.is_settled
    missing = Choice()
    kept_choices.load(others[0], missing)
    assert not missing.is_settled


def test_means_are_written_again_only_if_they_changed(cpu, monkeypatch):
    written = []
    monkeypatch.setattr(kept_choices, "save_entry", lambda key, content: written.append(content))
    choice = Choice()
    choice.home, choice.away = Mean(2.0, 5), Mean(1.0, 5)
    for seconds in (1.0, 1.1, 0.9, 1.5, 1.6, 2.1, 2.0, 1.9):
        choice.away.seconds = seconds
        kept_choices.save("key", choice)
    assert [each["away"] for each in written] == [1.0, 1.5, 2.1, 1.9]
    kept_choices.save("", choice)


@pytest.mark.parametrize(
    "content", [b"", b"nothing", b"[]", b'{"home": 1}', b'{"home": 1, "away": -1}',
                b'{"home": "a", "away": 1}', b'{"home": NaN, "away": 1}']
)  # fmt: skip
def test_damaged_means_are_not_taken(cpu, content):
    disk_cache.save("ab" * 32, content)
    choice = Choice()
    kept_choices.load("ab" * 32, choice)
    assert not choice.home.count
    assert not choice.is_recalled


# --- estimates ------------------------------------------------------------------------------------

OWN = Costs(1.0, 1.0, 1.0, 1.0, 10.0, 10.0, {"product": ((1.0, 2.0),)})
OTHER = Costs(5.0, 1.0, 2.0, 1.0, 10.0, 20.0, {"product": ((1.0, 0.5),)})
WORK = Work((("product", 4.0),), 1, 1, 1, 100, 200)


def test_an_estimate_is_corrected_by_what_home_took():
    # At home: 1 for the call, 30 for copies, 8 for the product.
    found = dict(expected(WORK, OWN, OTHER, False, 39.0, 1.0).parts)
    assert found == {"call": 5.0, "upload": 10.0, "download": 10.0, "product": 2.0}
    found = dict(expected(WORK, OWN, OTHER, False, 31.0 + 16.0, 1.0).parts)
    assert found["product"] == 4.0  # it took twice as long as expected
    assert found["upload"] == 10.0
    for measured, product in ((1e9, 8.0), (31.0 + 0.001, 0.5), (3.0, 2.0)):
        assert dict(expected(WORK, OWN, OTHER, False, measured, 1.0).parts)["product"] == product
    assert expected(WORK, OWN, OTHER, False, 39.0, 2.0).seconds == 2 * 27.0


@pytest.mark.parametrize(
    ("measured", "doubt"), [(39.0, 1.0), (78.0, 2.0), (13.0, 3.0), (1e9, 4.0), (1e-9, 4.0)]
)
def test_an_estimate_is_doubted_as_far_as_that_for_home_was_wrong(measured, doubt):
    assert expected(WORK, OWN, OTHER, False, measured, 1.0).doubt == pytest.approx(doubt)


def test_a_device_whose_copies_are_estimated_too_slow_is_tried():
    """A dot product of 10,000,000 elements, whose copies took longer where they were measured. Home
    takes longer than estimated, so the estimate for the device does not decide alone."""
    memory = {"elementwise": ((1e8, 3e-3),)}
    host = Costs(2e-5, 5e-6, 5e-6, 2e-6, 2e10, 2e10, memory)
    card = Costs(5e-5, 1e-5, 1e-5, 4e-6, 0.7e9, 5e9, {"elementwise": ((1e8, 1e-4),)})
    work = Work((("elementwise", 8e7),), 1, 2, 1, 80_000_000, 4)
    choice = Choice()
    times = []
    for _ in range(40):
        if choice.needs_estimate:
            choice.estimated = expected(work, host, card, False, choice.home.seconds, 1.0)
        away = choice.next_settled()
        if away is None:
            away = choice.next_considered()
        times.append(5.5e-3 if away else 14.3e-3)
        choice.took(away, times[-1])
    assert choice.estimated.seconds > CLEAR * 14.3e-3
    assert times == [14.3e-3] * 2 + [5.5e-3] * 38


def test_memory_that_drivers_allocate_first_is_not_measured(cpu, monkeypatch):
    """Drivers pin memory for the first large copies, which takes longer than these."""
    now, large = [0.0], [0]
    copied = calibration.asarray

    def slow_at_first(array):
        large[0] += array.nbytes > 1 << 20
        now[0] += 8e-3 if array.nbytes > 1 << 20 and large[0] <= 5 else 1e-6 + array.nbytes / 1e10
        return copied(array, device=cpu)

    monkeypatch.setattr(calibration, "asarray", slow_at_first)
    upload, _ = calibration._rates(cpu, lambda: now[0])
    assert upload == pytest.approx(1e10, rel=0.01)


def test_arrays_of_another_device_are_moved_there_and_back():
    found = dict(expected(WORK, OWN, OTHER, True, 39.0, 1.0).parts)
    assert found["moves"] == 1 + 1 + 10 + 20


# --- calibration ----------------------------------------------------------------------------------


class Ticks:
    """A clock that goes on by a step at each look."""

    def __init__(self, step):
        self.step = step
        self.looks = 0

    def __call__(self):
        self.looks += 1
        return self.looks * self.step


def test_costs_are_measured_once(cpu):
    calibration.forget()
    clock = Ticks(3e-3)
    found = calibration.costs_of(cpu, cpu, ["elementwise"], clock)
    assert found.call == pytest.approx(3e-3)
    assert found.launch > 0
    assert list(found.kinds) == ["elementwise"]
    looks = clock.looks
    assert calibration.costs_of(cpu, cpu, ["elementwise"], clock) is found
    calibration.forget()
    assert calibration.costs_of(cpu, cpu, ["elementwise"], clock) == found
    assert clock.looks == looks
    more = calibration.costs_of(cpu, cpu, ["sort"], clock)
    assert set(more.kinds) == {"elementwise", "sort"}
    assert more.call == found.call
    calibration.forget()
    assert costs.load_costs(cpu, cpu) == more


def test_modes_do_not_change_what_is_measured(cpu, monkeypatch):
    def prepare(size):
        made.append((td.ones((2, 2)) @ td.ones((2, 2))).dtype)
        return 1.0, lambda: td.ones(1)

    made = []
    program = calibration._Program(prepare, (1,))
    monkeypatch.setitem(calibration._PROGRAMS, "product", program)
    calibration.forget()
    with td.autocast(td.float16), td.no_grad():
        assert (td.ones((2, 2)) @ td.ones((2, 2))).dtype == td.float16
        calibration.costs_of(cpu, cpu, ["product"], Ticks(1.0))
    assert made == [td.float32]
    calibration.forget()


def test_every_kind_has_a_curve(cpu):
    calibration.forget()
    found = calibration.costs_of(cpu, cpu, list(KINDS), Ticks(1.0))  # as slow as can be
    assert set(found.kinds) == set(KINDS)
    assert all(len(curve) == 1 for curve in found.kinds.values())
    calibration.forget()


def test_amounts_that_do_not_fit_end_a_curve(cpu, monkeypatch):
    def prepare(size):
        if size > most[0]:
            raise td.errors.OutOfMemory("too large")
        return float(size), lambda: td.ones(size, device="cpu")

    program = calibration._Program(prepare, (10, 100, 1000, 10_000))
    monkeypatch.setitem(calibration._PROGRAMS, "sort", program)
    for most[0], points in ((100_000, 4), (100, 2)):
        assert len(calibration._curve("sort", cpu, Ticks(1e-5))) == points
    most[0] = 1
    with pytest.raises(td.errors.OutOfMemory):
        calibration._curve("sort", cpu, Ticks(1e-5))


most = [0]


def test_threads_measure_one_after_the_other(cpu):
    calibration.forget()
    clock = Ticks(1.0)
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(calibration.costs_of(cpu, cpu, ["elementwise"], clock))
        )
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({id(each) for each in found}) == 1
    calibration.forget()


# --- texts ----------------------------------------------------------------------------------------


def kind(**attributes):
    made = Kind("x float32[3]", td.device("cpu"), FakeDevice(), True, False)
    for name, value in attributes.items():
        setattr(made.choice, name, value)
    return made


class FakeDevice:
    id = "gpu:0"


def test_reasons_as_text():
    home, away = Mean(2e-3, 3), Mean(0.5e-3, 4)
    doubted = Estimate((("call", 1e-3),), 2.0)
    estimate = Estimate((("call", 1e-3), ("upload", 0.0), ("sort", 2e-6)))
    for made, words in (
        ({}, "on cpu, where its calls begin"),
        ({"home": home}, "on cpu, since its work is not known yet"),
        ({"home": home, "estimated": estimate}, "on cpu, and gpu:0 is tried next"),
        ({"home": Mean(1e-6, 2), "estimated": estimate},
         "since gpu:0 is estimated to take 5 times as long or longer"),
        ({"home": Mean(1e-6, 2), "estimated": doubted},
         "since gpu:0 is estimated to take 10 times as long or longer"),
        ({"home": home, "away": away}, "on gpu:0, which is 4 times as fast as cpu"),
        ({"home": away, "away": home}, "on cpu, which is 4 times as fast as gpu:0"),
        ({"pinned": "it writes"}, "on cpu, since it writes"),
    ):  # fmt: skip
        assert words in explained("f", [kind(**made)]), made
    text = explained("f", [kind(home=home, away=away, estimated=estimate), kind()])
    assert repr(text).startswith('f, device="auto": 2 kinds of calls\n1. x float32[3]')
    assert "measured: cpu 2 ms (3 calls), gpu:0 500 µs (4 calls)" in text
    assert "estimated on gpu:0: 1 ms = call 1 ms + sort 2 µs" in text
    assert "not called yet" in explained("f", [])
    assert shown(2.5) == "2.5 s"
