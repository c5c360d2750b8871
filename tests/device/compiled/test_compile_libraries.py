"""What changes in libraries around a compiled function: caches of functools, and names that are
replaced."""

from __future__ import annotations

import functools
import math
import pathlib
import types
from unittest import mock

import numpy as np
import pytest

import treadle as td
from treadle.nn import functional

SETTINGS = {"factor": 2.0}
SPACE = types.SimpleNamespace(library=math)
PATH = pathlib.Path("a", "b")


@functools.cache
def _cached():
    return SETTINGS["factor"]


@functools.lru_cache(maxsize=2)
def _bounded(number):
    return SETTINGS["factor"] * number


class Holder:
    @functools.cached_property
    def cached(self):
        return SETTINGS["factor"]

    @functools.lru_cache  # noqa: B019 - of one object, in a test
    def method(self):
        return SETTINGS["factor"]


HOLDER = Holder()


def _evict():
    for number in (7, 8, 9, 1):
        _bounded(number)


def _fill_anew():
    _cached.cache_clear()
    _cached()


# What reads a cached value, and what makes it be computed again.
CACHES = {
    "cache": (lambda x: x * _cached(), lambda: _cached.cache_clear()),
    "cache that is filled again": (lambda x: x * _cached(), _fill_anew),
    "lru_cache": (lambda x: x * _bounded(1), lambda: _bounded.cache_clear()),
    "lru_cache that was full": (lambda x: x * _bounded(1), _evict),
    "method": (lambda x: x * HOLDER.method(), lambda: Holder.method.cache_clear()),
    "property": (lambda x: x * HOLDER.cached, lambda: vars(HOLDER).pop("cached")),
}


@pytest.mark.parametrize("name", CACHES)
def test_a_cached_value_stays_until_it_is_cleared(device, monkeypatch, name):
    body, clear = CACHES[name]
    _cached.cache_clear()
    _bounded.cache_clear()
    Holder.method.cache_clear()
    vars(HOLDER).clear()
    monkeypatch.setitem(SETTINGS, "factor", 2.0)
    f, x = td.compile(body), td.ones(3)
    for _ in range(3):
        assert f(x).tolist() == [2.0] * 3
    monkeypatch.setitem(SETTINGS, "factor", 5.0)
    for _ in range(3):
        assert f(x).tolist() == [2.0] * 3, "Python has it from the cache"
    clear()
    for _ in range(3):
        assert f(x).tolist() == [5.0] * 3
    assert "Python" not in repr(f)


def test_a_cache_may_grow_without_another_trace(device):
    _bounded.cache_clear()
    _cached.cache_clear()
    grown = functools.cache(lambda n: n * 2.0)
    f, x = td.compile(lambda x: x * grown(1)), td.ones(3)
    for number in range(5):
        assert f(x).tolist() == [2.0] * 3
        grown(number + 10)
    assert f.traces <= 2  # with the empty cache, and with its result


class Registered:
    pass


def test_functions_that_are_registered_later(device):
    @functools.singledispatch
    def factor(value):
        return 2.0

    f, x, value = td.compile(lambda x: x * factor(value)), td.ones(3), Registered()
    for _ in range(3):
        assert f(x).tolist() == [2.0] * 3
    factor.register(Registered, lambda value: 5.0)
    for _ in range(3):
        assert f(x).tolist() == [5.0] * 3


def _imports_module(x):
    import math as module

    return x * module.e


def _imports_name(x):
    from math import tau

    return x * tau


def _by_local_variable(x):
    local = td.nn.functional
    return local.relu(x)


def _seven(x, *_):
    return x * 7


# A function, and the name that is replaced with a value.
REPLACED = {
    "function of td": (lambda x: td.exp(x), td, "exp", _seven),
    "function by getattr": (lambda x: getattr(td, "cosh")(x), td, "cosh", _seven),  # noqa: B009
    "function of layers": (lambda x: td.nn.functional.gelu(x), functional, "gelu", _seven),
    "function of a module": (lambda x: functional.silu(x), functional, "silu", _seven),
    "function by a local variable": (_by_local_variable, functional, "relu", _seven),
    "function of a submodule": (lambda x: td.linalg.vector_norm(x) * x, td.linalg, "vector_norm",
                                lambda x: 7.0),
    "method of tensors": (lambda x: x.exp(), td.Tensor, "exp", _seven),
    "property of tensors": (lambda x: x.T * x.ndim, td.Tensor, "ndim", property(lambda x: 7)),
    "constant": (lambda x: x * math.tau, math, "tau", 7.0),
    "constant of an imported module": (_imports_module, math, "e", 7.0),
    "imported constant": (_imports_name, math, "tau", 7.0),
    "constant of a held module": (lambda x: x * SPACE.library.pi, math, "pi", 7.0),
    "function of NumPy": (lambda x: x * float(np.mean([1.0, 2.0])), np, "mean", lambda x: 7.0),
    "method of a library's class": (lambda x: x * len(PATH.as_posix()), pathlib.PurePath,
                                    "as_posix", lambda path: "1234567"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLACED)
def test_a_name_of_a_library_that_is_replaced(device, name):
    body, owner, attribute, value = REPLACED[name]
    f, x = td.compile(body, strict=True), td.ones((2, 2))
    expected = body(x).tolist()
    for _ in range(2):
        assert f(x).tolist() == expected
    assert f.traces == 1
    with mock.patch.object(owner, attribute, value):
        for _ in range(2):
            assert f(x).tolist() == [[7.0, 7.0]] * 2
    assert f(x).tolist() == expected
    assert f.traces == 2
