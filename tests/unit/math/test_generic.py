"""Functions that are written once for f32 and f64."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import treadle as td
from tests.support.ir_evaluator import evaluate
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.printer import to_text
from treadle.lang import math
from treadle.lang.lower.standalone import lower_function
from treadle.lang.math import bits, exponential, polynomials
from treadle.lang.math.generic import Either, Generic, of_width
from treadle.lang.math.horner import Polynomial
from treadle.lang.source import source_of

MODULES = [
    importlib.import_module(each.name)
    for each in pkgutil.iter_modules(math.__path__, f"{math.__name__}.")
]
GENERIC = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Generic)
}


@pytest.mark.parametrize("width", ["f32", "f64"])
def test_names_in_a_version_are_of_its_width_and_one_function_each(width: str) -> None:
    assert len(GENERIC) > 200
    for value in GENERIC.values():
        if width in value.widths and not isinstance(value, Polynomial):
            names = value.version(width).__globals__
            for name, known in vars(sys.modules[names["__name__"]]).items():
                if isinstance(known, Generic) and width in known.widths:
                    assert names[name] is known.version(width), name
                assert not isinstance(names[name], Either), name


def test_versions_say_their_width() -> None:
    for key, value in GENERIC.items():
        name = key.rpartition(".")[2]
        assert value.f32.__name__ == name
        if "f64" in value.widths:
            assert value.f64.__name__ == f"{name}_f64"
            assert value.f64.__doc__
        assert value.f32 is value.f32


def test_one_source_or_one_for_each_width() -> None:
    assert bits.exact_root.f32.__code__ is bits.exact_root.f64.__code__
    assert exponential.exp_sum.f32.__code__ is not exponential.exp_sum.f64.__code__
    assert of_width(exponential.LN2_HIGH, "f64") == 0.6931471805598903
    assert of_width(1.5, "f64") == 1.5


def test_a_width_that_is_left_out_does_not_exist() -> None:
    assert polynomials.erfc_exponent.widths == {"f32"}
    with pytest.raises(KeyError):
        _ = polynomials.erfc_exponent.f64


def lowered(polynomial: Polynomial, type: t.Scalar) -> n.Function:
    definition = polynomial.version(type.name)
    (function,) = lower_function(definition, source_of(definition), [type])
    return function


def test_polynomials_are_written_out() -> None:
    function = lowered(Polynomial("p", f32=(0.5, -2.0, -3.0, 4.0)), t.F32)
    assert to_text(n.Kernel("k", (), (), (), functions=(function,))).startswith(
        "function p(x: f32) -> f32 {\n"
        "  var p: f32 = (4.0 * x) - 3.0\n"
        "  p = (p * x) - 2.0\n"
        "  return (p * x) + 0.5\n"
        "}\n"
    )


@pytest.mark.parametrize("type", [t.F32, t.F64], ids=str)
@pytest.mark.parametrize("coefficients", [(1.0, 2.0, 3.0), (-1.0, 0.5, -0.25, -7.0, 2.0)])
def test_polynomials_have_their_constant_term_first(
    type: t.Scalar, coefficients: tuple[float, ...]
) -> None:
    function = lowered(Polynomial("p", f32=coefficients, f64=coefficients), type)
    called = n.Call(function.name, (n.Constant(0.75, type),), type)
    expected = np.polynomial.Polynomial(coefficients)(0.75)
    assert evaluate(called, (function,)) == pytest.approx(expected, rel=1e-6)


def test_threads_get_the_same_versions() -> None:
    code = """
import threading
from treadle.lang.math import bessel, library
start = threading.Barrier(8)
seen = []
def ask():
    start.wait()
    seen.append((bessel.jn.f64, library()["erf_f64"]))
threads = [threading.Thread(target=ask) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert len(seen) == 8 and len(set(seen)) == 1, seen
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_near_functions_are_those_of_targets_that_have_them() -> None:
    @td.kernel
    def curve(x: td.Array[td.f32], y: td.Array[td.f64]):
        i = td.grid(1)
        x[i] = td.exp(x[i]) + td.tanh(x[i])
        y[i] = td.exp(y[i])

    arrays = [np.zeros(9, np.float32), np.zeros(9)]
    text = curve.source("ptx", *arrays)
    assert text.count("ex2.approx.ftz.f32") == 2
    assert "rcp.approx.ftz.f32" in text
    assert "has_near_functions" in curve.source("ir", *arrays)
    for target in ("cuda", "llvm", "numpy"):
        assert "near_" not in curve.source(target, *arrays).replace("nearest_", "")
