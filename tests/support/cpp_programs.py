"""Kernels with the results they must have, for the printers that are run through g++."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.support import flow_programs, ir_programs, operations
from tests.support.cpp_kernels import Batch
from tests.support.ir_evaluator import run
from treadle.codegen import lowering
from treadle.codegen.records import KernelCode, Options
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text
from treadle.runtime.build import _GENERIC

BLOCKS = [(1, 1, 1), (7, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (8, 4, 1), (4, 3, 2)]


def printed(kernel: n.Kernel, language: str, *, folded: bool = False) -> KernelCode:
    """A kernel's code, lowered as for a device that has everything its language has."""
    assert kernel.block is not None
    slots = tuple((buffer.name, i) for i, buffer in enumerate(kernel.buffers))
    options = Options(kernel.block, slots, folded=folded)
    lowered = lowering.lower(kernel, options, _GENERIC[language])
    return lowering.print_code(lowered, options, _GENERIC[language])


# --- every operation -----------------------------------------------------------------------------


def operation_batch(
    language: str, types: list[t.Scalar]
) -> tuple[Batch, dict[str, list[n.Expression]]]:
    """A kernel for each type with every operation, and the expressions that it computes."""
    expressions = {
        type.name: list(operations.exact_operations(type, tuple(types))) for type in types
    }
    codes = {
        name: printed(operations.operations_kernel(t.SCALARS[name], found), language)
        for name, found in expressions.items()
    }
    return Batch(language, codes), expressions


def wrong_operations(batch: Batch, type: t.Scalar, found: list[n.Expression]) -> list[str]:
    """Every operation that gives something else than it should, with an example."""
    left, right = operations.pairs(type)
    buffers: dict[str, Any] = {"left": left, "right": right}
    for number, expression in enumerate(found):
        assert isinstance(expression.type, t.Scalar)
        dtype = operations.DTYPES[expression.type.name]
        buffers[f"out.{number}"] = np.zeros(len(left), dtype)
    batch.run(type.name, len(left), buffers)
    wrong = []
    values = list(zip(left.tolist(), right.tolist(), strict=True))
    for number, expression in enumerate(found):
        exact = [operations.expected_value(expression, {"a": a, "b": b, "c": a}) for a, b in values]
        got = buffers[f"out.{number}"]
        assert isinstance(expression.type, t.Scalar)
        same = operations.same_bits(got, exact, expression.type)
        if not same.all():
            at = int(np.argmin(same))
            what = getattr(expression, "op", type_of(expression))
            wrong.append(f"{what} of {values[at]} is {got[at]!r}, not {exact[at]!r}")
    return wrong


def type_of(expression: n.Expression) -> str:
    """What an expression without a name for itself is."""
    return f"{type(expression).__name__} to {expression.type}"


# --- random programs -----------------------------------------------------------------------------


def random_batch(language: str, seeds: range) -> tuple[Batch, dict[str, n.Kernel]]:
    """Random kernels without barriers, as tests of the passes use them."""
    kernels = {str(seed): ir_programs.random_kernel(seed) for seed in seeds}
    return Batch(language, {s: printed(k, language) for s, k in kernels.items()}), kernels


def random_outputs(batch: Batch, name: str) -> dict[str, bytes]:
    """What `ir_programs.outputs` gives, from the printed text."""
    length = ir_programs.LENGTH
    arrays: dict[str, Any] = {
        "x": np.arange(length, dtype=np.int32) - 2,
        "y": np.linspace(-3, 3, length, dtype=np.float32),
        "z": np.arange(length, dtype=np.uint32) * 7,
    }
    batch.run(name, 2, arrays, {"p": 3})
    arrays["y"][np.isnan(arrays["y"])] = np.nan
    return {name: array.tobytes() for name, array in arrays.items()}


def flow_kernels(seeds: range) -> dict[str, n.Kernel]:
    """Random kernels whose threads meet at barriers, exchange values and return early."""
    kernels = {}
    for seed in seeds:
        pick = random.Random(seed).randrange
        text = flow_programs.draw(
            pick, BLOCKS[seed % len(BLOCKS)], sync=seed % 3 > 0, warps=seed % 2 > 0,
            returns=seed % 5 > 2,
        )  # fmt: skip
        kernels[str(seed)] = from_text(text)
    return kernels


def flow_batch(language: str, seeds: range) -> tuple[Batch, dict[str, n.Kernel]]:
    """These kernels, compiled."""
    kernels = flow_kernels(seeds)
    return Batch(language, {s: printed(k, language) for s, k in kernels.items()}), kernels


def flow_arrays(kernel: n.Kernel) -> tuple[int, dict[str, Any]]:
    """The grid and the arrays of such a kernel."""
    assert kernel.block is not None
    count = kernel.block.count
    grid = 2 if count < 16 else 1
    rng = np.random.default_rng(5)
    return grid, {
        "x": rng.integers(-50, 50, count * grid + 64).astype(np.int32),
        "few": np.array([3, 0, 2, 1, -1, 5, 2, 4], np.int32),
        "out": np.zeros(count * grid, np.int32),
        "fout": np.zeros(count * grid, np.float32),
        "counts": np.zeros(4, np.int32),
    }


def wrong_flow(batch: Batch, name: str, kernel: n.Kernel) -> list[str]:
    """The arrays that differ between the printed text and the evaluator."""
    grid, expected = flow_arrays(kernel)
    run(kernel, grid, expected, {"n": 3, "k": 2})
    grid, arrays = flow_arrays(kernel)
    batch.run(name, grid, arrays, {"n": 3, "k": 2})
    return [k for k in arrays if not np.array_equal(arrays[k], expected[k], equal_nan=True)]
