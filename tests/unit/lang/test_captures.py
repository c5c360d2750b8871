"""Constants from outside: what is captured, and when a kernel compiles anew."""

from __future__ import annotations

import enum
import math
import types

import numpy as np

import treadle.lang as td
from tests.support.kernels import array, body_text, lower

SCALE = 3
WEIGHTS = (0.25, 0.5)
KIND = td.f32
TYPED = np.float64(2.0)
settings = types.SimpleNamespace(depth=4)


class Mode(enum.IntEnum):
    FAST = 2


@td.func
def scaled(x):
    return x * SCALE


@td.kernel
def uses_globals(x):
    x[0] = KIND(SCALE) * WEIGHTS[1] + settings.depth + math.pi + Mode.FAST


@td.kernel
def calls(x):
    x[0] = scaled(x[0])


@td.kernel
def captures_nothing(x):
    i = td.grid(1)
    x[i] = td.sqrt(abs(x[i]))


def test_values_become_constants() -> None:
    assert body_text(lower(uses_globals, array())) == (
        "x[0; 0 in x.size] = (((3.0 * 0.5) + 4.0) + 3.1415927410125732) + 2.0"
    )


def test_a_kernel_without_captures_has_an_empty_key() -> None:
    assert captures_nothing.captured() == ()


def test_a_changed_value_changes_the_key(monkeypatch) -> None:
    before = uses_globals.captured()
    assert uses_globals.captured() is before
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert uses_globals.captured() != before, "3 and 3.0 are two constants"
    monkeypatch.undo()
    assert uses_globals.captured() == before
    monkeypatch.setattr(settings, "depth", 5)
    assert uses_globals.captured() != before


def test_a_called_functions_constants_count_too(monkeypatch) -> None:
    before = calls.captured()
    monkeypatch.setitem(globals(), "SCALE", 7)
    assert calls.captured() != before
    lowered = lower(calls, array())
    assert lowered.functions[0].body[0].value.right.value == 7.0


def test_a_replaced_function_is_called(monkeypatch) -> None:
    @td.func
    def halved(x):
        return x * 0.5

    before = calls.captured()
    monkeypatch.setitem(globals(), "scaled", halved)
    assert calls.captured() != before
    assert lower(calls, array()).functions[0].name == "halved"


def test_enclosing_names_are_captured() -> None:
    def make(factor):
        @td.kernel
        def k(x):
            x[0] = x[0] * factor

        return k

    two, three = make(2), make(3)
    assert two.captured() != three.captured()
    assert body_text(lower(three, array())) == "x[0; 0 in x.size] = x[0; 0 in x.size] * 3.0"


def test_a_numpy_number_has_its_type() -> None:
    @td.kernel
    def k(x):
        x[0] = td.f32(TYPED * x[0])

    assert body_text(lower(k, array())) == (
        "x[0; 0 in x.size] = f32(2.0:f64 * f64(x[0; 0 in x.size]))"
    )


def test_a_branch_on_a_constant_is_decided_when_lowered() -> None:
    bias = False

    @td.kernel
    def k(x):
        if bias:
            x[0] = undefined_name  # noqa: F821
        elif x.dtype == td.f32:
            x[0] = 1.0
        else:
            x[0] = 2.0

    assert body_text(lower(k, array())) == "x[0; 0 in x.size] = 1.0"
