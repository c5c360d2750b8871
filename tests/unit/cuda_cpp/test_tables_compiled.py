"""What the tables build, compiled by LLVM and as WGSL by naga, against the evaluator."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support import cpu_kernels, wgsl
from tests.support.cuda_builtins import Declaring, apply
from tests.support.printing import print_wgsl
from treadle.core.dim3 import Dim3
from treadle.cuda_cpp.builtins.overload import Overload
from treadle.cuda_cpp.builtins.tables import FUNCTIONS
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.types import numpy_dtype

ROWS = 6
# Relative errors that targets may add: they fuse, and divide a little wrongly.
TOLERANCES = {t.F64: 1e-13, t.F32: 3e-6, t.F16: 2e-3, t.BF16: 1.6e-2}
UNPROMISED = ("__powf", "__tanhf", "htanh_approx", "h2tanh_approx")  # of whatever accuracy


def element(type: t.Scalar | t.Vector) -> t.Scalar:
    return type.element if isinstance(type, t.Vector) else type


def drawn(rng: random.Random, type: t.Scalar | t.Vector) -> Any:
    if isinstance(type, t.Vector):
        return tuple(drawn(rng, type.element) for _ in range(type.count))
    if type.is_float:
        usual = (0.3, 1.5, -2.25, 7.0, -0.0, 0.0, math.nan, math.inf, 1e4, -3e-3)
        return arithmetic.round_float(rng.choice((*usual, rng.uniform(-9, 9))), type)
    low, high = arithmetic.lowest(type), arithmetic.highest(type)
    return rng.choice((0, 1, low, high, rng.randint(low, high), rng.randint(0, 60)))


def array(type: t.Scalar | t.Vector, values: list[Any]) -> np.ndarray[Any, Any]:
    return np.array(values, numpy_dtype(element(type)))


def compiled(overload: Overload) -> tuple[n.Kernel, t.Scalar | t.Vector]:
    """A kernel that applies an overload to a row of each buffer; the type of its results."""
    maker, row = Declaring(), n.Builtin("block_idx")
    operands = [
        maker.let(n.Load(n.Element(f"a{k}", row, type), type))
        for k, type in enumerate(overload.parameters)
    ]
    value, result = overload.build(maker, *operands), overload.result
    if result == t.BOOL:
        one, zero = n.Constant(1, t.I32), n.Constant(0, t.I32)
        value, result = n.Select(value, one, zero, t.I32), t.I32
    body = (*maker.statements, n.Assign(n.Element("out", row, result), value))
    buffers = [n.Buffer(f"a{k}", type) for k, type in enumerate(overload.parameters)]
    buffers.append(n.Buffer("out", result))
    functions = tuple(maker.functions.values())
    return n.Kernel("k", tuple(buffers), (), body, functions=functions, block=Dim3(1)), result


def same(got: Any, true: Any, type: t.Scalar) -> bool:
    if not type.is_float:
        return int(got) == int(true)
    got = float(got)
    if math.isnan(true) or math.isnan(got):
        return math.isnan(true) and math.isnan(got)
    tiny = 1e-37 if type == t.F32 else 0  # which may count as 0
    return got == true or abs(got - true) <= abs(true) * TOLERANCES[type] + tiny


def wrong(name: str, overload: Overload, target: str) -> Iterator[str]:
    rng = random.Random(name)
    rows = [[drawn(rng, type) for type in overload.parameters] for _ in range(ROWS)]
    kernel, result = compiled(overload)
    arrays = {
        f"a{k}": array(type, [row[k] for row in rows]) for k, type in enumerate(overload.parameters)
    }
    shape = (ROWS, result.count) if isinstance(result, t.Vector) else ROWS
    arrays["out"] = np.zeros(shape, numpy_dtype(element(result)))
    if target == "cpu":
        out = cpu_kernels.run(kernel, list(arrays.values()), (), ROWS)[-1]
    else:
        wgsl.run(print_wgsl(kernel, wgsl.options()), ROWS, arrays)
        out = arrays["out"]
    for row, got in zip(rows, out, strict=True):
        true = apply(overload, *row)
        pairs = zip(np.atleast_1d(got), true if isinstance(true, tuple) else (true,), strict=True)
        if not all(same(one, other, element(result)) for one, other in pairs):
            yield f"{name}{row} = {got}, not {true}"


def overloads(target: str, step: int) -> list[tuple[str, Overload]]:
    found = [
        (name, overload)
        for name, every in FUNCTIONS.items()
        for overload in every
        if not name.startswith("make_") and name not in UNPROMISED
    ]
    if target == "webgpu":  # not every adapter has 64 bits
        found = [
            (name, overload)
            for name, overload in found
            if all(element(type).bits < 64 for type in (*overload.parameters, overload.result))
        ]
    return found[::step]


@pytest.mark.parametrize("target", ["cpu", "webgpu"])
def test_some_functions_give_the_same_when_compiled(target: str) -> None:
    assert [each for pair in overloads(target, 29) for each in wrong(*pair, target)] == []


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "webgpu"])
def test_all_functions_give_the_same_when_compiled(target: str) -> None:
    assert [each for pair in overloads(target, 1) for each in wrong(*pair, target)] == []
