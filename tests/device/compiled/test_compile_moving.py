"""What gives another value each time is warned of when a trace has found something by it, and not
when it is merely named."""

from __future__ import annotations

import abc
import collections.abc
import csv
import datetime as dt
import functools
import io
import os
import pathlib
import random
import re
import secrets
import time
import types
import uuid
import warnings
from datetime import datetime
from os import getpid, listdir
from os.path import isfile
from time import perf_counter
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

import treadle as td

X = np.arange(3, dtype=np.float32)
HERE = pathlib.Path(__file__)
FILE = io.StringIO("2\n3\n")
GENERATOR, LEGACY = random.Random(1), np.random.RandomState(1)
HELD = types.SimpleNamespace(clock=time.time, exists=lambda: 2.0, stat=3.0, now=lambda: 1.0)
PID = functools.partial(os.getpid)
LOG: list[float] = []


class Part:
    pass


def _on_cpu(function):
    return td.compile(function, device="cpu")


def _called_thrice(function):
    """What other threads do may keep a call from being recorded."""
    for _ in range(3):
        function(X)


def _import_inside(x):
    from os import getppid as parent

    import numpy.random as drawing

    return x * drawing.rand() * parent()  # noqa: NPY002


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("datetime.now", lambda x: x * datetime.now().year),
        ("datetime.now", lambda x: x * dt.datetime.now().year),
        ("date.today", lambda x: x * dt.date.today().year),
        ("os.getpid", lambda x: x * os.getpid()),
        ("os.listdir", lambda x: x * len(os.listdir())),
        ("os.path.exists", lambda x: x * os.path.exists(__file__)),
        ("os.getpid", lambda x: x * getpid()),
        ("os.listdir", lambda x: x * len(listdir())),
        ("os.path.isfile", lambda x: x * isfile(__file__)),
        ("os.path.isfile", lambda x: x * sum(map(isfile, [__file__]))),
        ("os.stat", lambda x: x * len(list(map(os.stat, [__file__])))),
        ("os.getpid", lambda x: x * PID()),
        ("open", lambda x: x * open(__file__).close().__sizeof__()),
        ("StringIO.readline", lambda x: x * len(FILE.readline())),
        ("id", lambda x: x * (id(x) % 7)),
        ("id", lambda x: x * {id(Part()): 1.0}.popitem()[1]),
        (r"pathlib\.\S+\.exists", lambda x: x * HERE.exists()),
        (r"pathlib\.\S+\.is_file", lambda x: x * HERE.is_file()),
        (r"pathlib\.\S+\.stat", lambda x: x * HERE.stat().st_size),
        (r"pathlib\.\S+\.read_text", lambda x: x * len(HERE.read_text())),
        (r"pathlib\.\S+\.read_bytes", lambda x: x * len(HERE.read_bytes())),
        (r"pathlib\.\S+\.open", lambda x: x * HERE.open().close().__sizeof__()),
        (r"pathlib\.\S+\.iterdir", lambda x: x * len(list(HERE.parent.iterdir()))),
        (r"(pathlib|glob)\.\S+", lambda x: x * len(list(HERE.parent.glob("*.none")))),
        (r"\S+\.cwd|os.getcwd", lambda x: x * len(str(pathlib.Path.cwd()))),
        ("Random.random", lambda x: x * random.random()),
        ("random.Random.uniform", lambda x: x * random.uniform(1, 2)),
        ("random.Random.choice", lambda x: x * random.choice([1, 2])),
        ("Random.random", lambda x: x * GENERATOR.random()),
        ("random.Random.(__init__|seed)", lambda x: x * random.Random().random()),
        ("time.strftime", lambda x: x * len(time.strftime("%Y"))),
        ("np.random.rand", lambda x: x * np.random.rand()),  # noqa: NPY002
        ("drawing.rand|numpy.random.rand|rand", _import_inside),
        ("LEGACY", lambda x: x * LEGACY.rand()),
        ("secrets.token_bytes", lambda x: x * secrets.token_bytes(2)[0]),
        ("uuid.uuid4", lambda x: x * (uuid.uuid4().int % 5)),
        ("time.time", lambda x: x * time.time()),
        ("time.time", lambda x: x * HELD.clock()),
        ("time.perf_counter", lambda x: x if perf_counter() > 0 else -x),
    ],
)
def test_what_gives_another_value_each_time_is_told(name, body):
    str(HERE)  # paths keep their text from then on
    with pytest.warns(UserWarning, match="it uses ") as seen:
        _called_thrice(_on_cpu(body))
    told = [str(each.message) for each in seen]
    assert any(re.search(rf"it uses ({name}), (which|a) ", each) for each in told), told
    with pytest.raises(td.errors.LaunchError, match=r"it uses .*, (which|a) "):
        td.compile(body, strict=True, device="cpu")(X)


def _naming_modules(x):
    import uuid as unused

    assert unused
    return x * HELD.exists() * HELD.stat * HELD.now() * len(os.sep) * len(os.path.join("a", "b"))


def _seeding(x):
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    return x * random.random() * random.Random(4).uniform(1, 2)


def _files_in_memory(x):
    return x * len(io.BytesIO(b"abc").read()) * len(list(csv.reader(io.StringIO("a,b"))))


def _dates(x):
    return x * dt.date(2020, 1, 1).year * datetime.fromtimestamp(0, dt.UTC).year


def _not_called(x):
    if X[0] == 7:
        x = x * time.time() * os.getpid() * random.random() * uuid.uuid4().int
    return x


def _clock_unused(x):
    perf_counter()
    start = time.perf_counter()
    _stop = start
    return x + 0


def _told_apart(x):
    seen = set()
    for each in (HELD, HELD, HERE):
        if id(each) not in seen:
            seen.add(id(each))
            x = x + 1
    return x * len(sorted([HERE, HELD], key=id))


@pytest.mark.parametrize(
    "body",
    [_naming_modules, _seeding, _files_in_memory, _dates, _not_called, _clock_unused, _told_apart],
)
def test_what_is_merely_named_is_not_told(body):
    f = td.compile(body, strict=True, device="cpu")
    expected = np.asarray(body(X)).tolist()
    for _ in range(2):
        assert f(X).tolist() == expected
    assert f.traces == 1


def _printing_time(x):
    start = time.perf_counter()
    y = x * 2
    taken = time.perf_counter() - start
    print(f"{taken:.1e} s", round(taken * 1e3))
    return y


def _logging_time(x):
    LOG.append(perf_counter())
    return x * 2


@pytest.mark.parametrize("body", [_printing_time, _logging_time])
def test_time_that_is_only_measured_is_no_reason_to_refuse(body, capsys):
    f = td.compile(body, strict=True, device="cpu")
    with pytest.warns(UserWarning, match=r"takes the time by time.perf_counter at .*: a replay"):
        f(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert f(X).tolist() == [0.0, 2.0, 4.0]
    assert f.traces == 1


def _through_a_list(x):
    times = []
    times.append(perf_counter())
    return x * times[0]


def _through_an_object(x):
    held = types.SimpleNamespace()
    held.start = perf_counter()
    return x * held.start


def _through_a_function(x):
    start = perf_counter()

    def scaled():
        return x * start

    return scaled()


def _through_a_branch(x):
    start = perf_counter()
    for _ in range(3):
        if perf_counter() - start > 100:
            break
        x = x + 1
    return x


@pytest.mark.parametrize(
    "body", [_through_a_list, _through_an_object, _through_a_function, _through_a_branch]
)
def test_time_that_enters_is_refused(body):
    with pytest.raises(td.errors.LaunchError, match=r"it uses time.perf_counter, which gives"):
        td.compile(body, strict=True, device="cpu")(X)


# --- classes that others are registered with -----------------------------------------------------


@pytest.mark.parametrize("is_asked", ["isinstance", "issubclass", "match"])
def test_classes_that_are_registered_later(is_asked):
    class Shape(abc.ABC):  # noqa: B024
        pass

    class Square:
        pass

    square = Square()

    def body(x):
        if is_asked == "isinstance":
            return x * (2 if isinstance(square, (int, Shape)) else 3)
        if is_asked == "issubclass":
            return x * (2 if issubclass(Square, Shape) else 3)
        match square:
            case Shape():
                return x * 2
        return x * 3

    f = td.compile(body, strict=True, device="cpu")
    assert [f(X).tolist() for _ in range(2)] == [[0.0, 3.0, 6.0]] * 2
    Shape.register(type("Other", (), {}))
    assert f(X).tolist() == [0.0, 3.0, 6.0]
    assert f.traces == 1  # what is registered does not matter here
    Shape.register(Square)
    assert [f(X).tolist() for _ in range(2)] == [[0.0, 2.0, 4.0]] * 2


def test_classes_that_the_standard_library_asks_for():
    class Items:
        pass

    items = Items()

    @functools.singledispatch
    def factor(value):
        return 1.0

    @factor.register
    def _(value: collections.abc.Sequence):
        return 2.0

    def body(x):
        return x * factor(items) * (3.0 if isinstance(items, collections.abc.Sized) else 5.0)

    f = td.compile(body, strict=True, device="cpu")
    assert [f(X).tolist() for _ in range(3)] == [(X * 5).tolist()] * 3
    assert f.traces == 1
    collections.abc.Sized.register(Items)
    assert [f(X).tolist() for _ in range(2)] == [(X * 3).tolist()] * 2
    collections.abc.Sequence.register(Items)
    assert [f(X).tolist() for _ in range(2)] == [(X * 6).tolist()] * 2
    factor.register(Items, lambda value: 7.0)
    assert [f(X).tolist() for _ in range(2)] == [(X * 21).tolist()] * 2


@runtime_checkable
class Scaling(Protocol):
    scale: float

    def apply(self): ...


def test_protocols_look_at_attributes():
    class One:
        def apply(self):
            return 1

    one = One()
    f = td.compile(lambda x: x * (2 if isinstance(one, Scaling) else 3), strict=True, device="cpu")
    for _ in range(2):
        assert f(X).tolist() == [0.0, 3.0, 6.0]
        one.scale = 1.0
        assert [f(X).tolist() for _ in range(2)] == [[0.0, 2.0, 4.0]] * 2
        del one.scale
    assert f.traces == 2


def test_attributes_of_subclasses_and_bases():
    class Base:
        factor = 2.0

    class One(Base):
        factor = 3.0

    def body(x):
        for each in sorted(Base.__subclasses__(), key=str):
            x = x * each.factor
        for each in One.__mro__[:2]:
            x = x + each.factor
        return x

    f = td.compile(body, strict=True, device="cpu")
    for kind, factor in ((One, 3.0), (One, 5.0), (Base, 7.0)):
        kind.factor = factor
        assert [f(X).tolist() for _ in range(2)] == [body(X).tolist()] * 2


def test_subclasses_that_are_made_later():
    class Base:
        factor = 2.0

    def all_of(kind):
        return [kind, *(each for inner in kind.__subclasses__() for each in all_of(inner))]

    def body(x):
        for each in all_of(Base):
            x = x * each.factor
        return x

    f = td.compile(body, strict=True, device="cpu")
    assert [f(X).tolist() for _ in range(2)] == [[0.0, 2.0, 4.0]] * 2

    class One(Base):
        factor = 3.0

    assert [f(X).tolist() for _ in range(2)] == [[0.0, 6.0, 12.0]] * 2

    class Two(One):
        factor = 0.5

    assert [f(X).tolist() for _ in range(2)] == [[0.0, 3.0, 6.0]] * 2
    assert f.traces == 1
