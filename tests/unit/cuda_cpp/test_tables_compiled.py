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
from treadle.codegen.pipeline import with_near_functions
from treadle.core.dim3 import Dim3
from treadle.cuda_cpp.builtins.overload import Overload
from treadle.cuda_cpp.builtins.tables import FUNCTIONS
from treadle.ir import arithmetic
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.passes.fold import fold
from treadle.ir.passes.inline import inline
from treadle.lang.types import numpy_dtype

ROWS = 6
# Relative errors that targets may add: they fuse, and divide a little wrongly.
TOLERANCES = {t.F64: 1e-13, t.F32: 3e-6, t.F16: 2e-3, t.BF16: 1.6e-2}
MOST_BUFFERS, MOST_CASES = 8, 60  # of one kernel
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


def array(type: t.Scalar | t.Vector, values: list[Any]) -> Array:
    return np.array(values, numpy_dtype(element(type)))


Array = np.ndarray[Any, Any]
Case = tuple[str, Overload]
Rows = list[list[Any]]
Place = tuple[str, int]  # a buffer, and the first of its elements


def stored(type: t.Scalar | t.Vector) -> t.Scalar | t.Vector:
    """The type that a result has in a buffer."""
    return t.I32 if type == t.BOOL else type


def buffer_names(overload: Overload) -> set[str]:
    """The buffers that a case needs: one for all operands of a type, one for all results of it."""
    return {f"in_{type}" for type in overload.parameters} | {f"out_{stored(overload.result)}"}


def batches(cases: list[Case]) -> Iterator[list[Case]]:
    """The cases in a few kernels, each with no more buffers than every WebGPU device takes."""
    batch: list[Case] = []
    names: set[str] = set()
    for case in sorted(cases, key=lambda each: sorted(buffer_names(each[1]))):
        wanted = names | buffer_names(case[1])
        if len(wanted) > MOST_BUFFERS or len(batch) == MOST_CASES:
            yield batch
            batch, wanted = [], buffer_names(case[1])
        batch.append(case)
        names = wanted
    yield batch


def compiled(batch: list[Case], rows: list[Rows]) -> tuple[n.Kernel, dict[str, Array], list[Place]]:
    """A kernel that applies each overload to its rows, a row in each block; its buffers; and where
    each has its results."""
    maker, row = Declaring(), n.Builtin("block_idx")
    types: dict[str, t.Scalar | t.Vector] = {}
    contents: dict[str, list[Any]] = {}

    def element_of(name: str, type: t.Scalar | t.Vector, values: list[Any]) -> n.Element:
        held = contents.setdefault(name, [])
        types[name] = type
        index = ir.add(row, ir.constant(len(held), row.type))
        held += values
        return n.Element(name, index, type)

    places = []
    for (called, overload), drawn_rows in zip(batch, rows, strict=True):
        operands = [
            maker.let(n.Load(element_of(f"in_{type}", type, [r[k] for r in drawn_rows]), type))
            for k, type in enumerate(overload.parameters)
        ]
        value, result = overload.build(maker, *operands), stored(overload.result)
        assert value.type == overload.result, (
            f"{called}: the recipe gives {value.type}, the row in builtins says {overload.result}"
        )
        if overload.result == t.BOOL:
            value = n.Select(value, n.Constant(1, t.I32), n.Constant(0, t.I32), t.I32)
        name, count = f"out_{result}", result.count if isinstance(result, t.Vector) else 0
        places.append((name, len(contents.get(name, ()))))
        zero = (0,) * count if count else 0
        target = element_of(name, result, [zero] * ROWS)
        maker.statements.append(n.Assign(target, value))
    buffers = tuple(n.Buffer(name, type) for name, type in types.items())
    arrays = {name: array(type, contents[name]) for name, type in types.items()}
    functions = tuple(maker.functions.values())
    body = tuple(maker.statements)
    kernel = n.Kernel("k", buffers, (), body, functions=functions, block=Dim3(1))
    # Functions that are for other targets alone are left out.
    return inline(fold(with_near_functions(kernel, False))), arrays, places


def same(got: Any, true: Any, type: t.Scalar) -> bool:
    if not type.is_float:
        return int(got) == int(true)
    got = float(got)
    if math.isnan(true) or math.isnan(got):
        return math.isnan(true) and math.isnan(got)
    tiny = 1e-37 if type == t.F32 else 0  # which may count as 0
    return got == true or abs(got - true) <= abs(true) * TOLERANCES[type] + tiny


def wrong(batch: list[Case], target: str) -> Iterator[str]:
    """What the compiled kernel computes otherwise than the evaluator."""
    rows = []
    for name, overload in batch:
        rng = random.Random(name)
        rows.append([[drawn(rng, type) for type in overload.parameters] for _ in range(ROWS)])
    kernel, arrays, places = compiled(batch, rows)
    if target == "cpu":
        results = cpu_kernels.run(kernel, list(arrays.values()), (), ROWS)
        arrays = dict(zip(arrays, results, strict=True))
    else:
        wgsl.run(print_wgsl(kernel, wgsl.options()), ROWS, arrays)
    for (name, overload), operands, (buffer, start) in zip(batch, rows, places, strict=True):
        for row, got in zip(operands, arrays[buffer][start : start + ROWS], strict=True):
            true = apply(overload, *row)
            each = true if isinstance(true, tuple) else (true,)
            type = element(stored(overload.result))
            if not all(same(*pair, type) for pair in zip(np.atleast_1d(got), each, strict=True)):
                yield f"{name}{row} = {got}, not {true}"


def cases(target: str) -> list[Case]:
    """Every overload of the tables that a target has."""
    found = [
        (name, overload)
        for name, every in FUNCTIONS.items()
        for overload in every
        if name not in UNPROMISED
    ]
    if target == "webgpu":  # not every adapter has 64 bits
        found = [
            (name, overload)
            for name, overload in found
            if all(element(type).bits < 64 for type in (*overload.parameters, overload.result))
        ]
    return found


@pytest.mark.parametrize("target", ["cpu", "webgpu"])
def test_every_overload_gives_the_same_when_compiled(target: str) -> None:
    found = cases(target)
    assert len(found) > 700
    assert [each for batch in batches(found) for each in wrong(batch, target)] == []
