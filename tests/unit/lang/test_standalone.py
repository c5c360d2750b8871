"""Functions of the math library without a kernel around them."""

from __future__ import annotations

import math

import pytest

from tests.support.ir_evaluator import evaluate
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.traverse import walk
from treadle.lang.lower.standalone import library_functions
from treadle.lang.math import FUNCTIONS, library


def test_names_say_the_type() -> None:
    name, functions = library_functions("exp", t.F32)
    assert name == functions[-1].name == "exp_f32"
    assert {function.name for function in functions} >= {"nearest_integer_f32", "exp_tail_f32"}
    assert library_functions("exp", t.F64)[0] == "exp_f64"
    assert library_functions("exp", t.F32) is library_functions("exp", t.F32)


def test_a_name_is_one_function_wherever_it_is_needed() -> None:
    seen: dict[str, str] = {}
    for key in library():
        name, _, type = key.rpartition("_")
        scalar = t.SCALARS.get(type)
        _, functions = library_functions(name if scalar else key, scalar or t.F32)
        known: set[str] = set()
        for function in functions:
            called = {node.function for node in walk(function.body) if isinstance(node, n.Call)}
            assert called <= known, "callees come first"
            known.add(function.name)
            assert "." not in function.name
            assert seen.setdefault(function.name, repr(function)) == repr(function)


@pytest.mark.parametrize("type", [t.F32, t.F64], ids=str)
def test_they_compute(type: t.Scalar) -> None:
    for name in ("exp", "sin", "lgamma"):
        assert FUNCTIONS[name].arity == 1
        function, functions = library_functions(name, type)
        called = n.Call(function, (n.Constant(0.75, type),), type)
        result = evaluate(called, functions)
        assert result == pytest.approx(getattr(math, name)(0.75), rel=3e-7)


def test_what_does_not_exist_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        library_functions("frobnicate", t.F32)
