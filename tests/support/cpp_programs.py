"""Kernels with the results they must have, for the printers that are run through g++."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.support import flow_programs, ir_programs, operations
from tests.support.cpp_kernels import Batch
from tests.support.ir_evaluator import run
from tests.support.memory_kernels import CASES
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options
from treadle.codegen.target import find_target
from treadle.ir import nodes as n
from treadle.ir import rules
from treadle.ir import types as t
from treadle.ir.parser import from_text

BLOCKS = [(1, 1, 1), (7, 1, 1), (32, 1, 1), (33, 1, 1), (64, 1, 1), (8, 4, 1), (4, 3, 2)]


def printed(kernel: n.Kernel, language: str, *, folded: bool = False) -> KernelCode:
    """A kernel's code, lowered as for a device that has everything its language has."""
    assert kernel.block is not None
    slots = tuple((buffer.name, i) for i, buffer in enumerate(kernel.buffers))
    options = Options(kernel.block, slots, folded=folded)
    lowered = pipeline.lower(kernel, options, find_target(language).generic)
    return pipeline.print_code(lowered, options, find_target(language).generic)


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


def vector_batch(
    language: str, types: list[t.Scalar]
) -> tuple[Batch, dict[str, list[n.Expression]]]:
    """The same on vectors, of two to four components in turn, in arrays of scalars."""
    codes, expressions = {}, {}
    of_scalars = rules.COUNTS | rules.BYTE_DOTS
    for number, type in enumerate(types):
        found = [
            expression
            for expression in operations.exact_operations(type, tuple(types))
            if not isinstance(expression, n.Select)
            and not (isinstance(expression.type, t.Scalar) and expression.type == t.BOOL)
            and not (isinstance(expression, n.Intrinsic) and expression.op in of_scalars)
        ]
        kernel = operations.operations_kernel(type, found, 2 + number % 3)
        codes[type.name], expressions[type.name] = printed(kernel, language), found
    return Batch(language, codes), expressions


def wrong_operations(
    batch: Batch, type: t.Scalar, found: list[n.Expression], count: int = 1
) -> list[str]:
    """Every operation that gives something else than it should, with an example."""
    left, right = (values[: len(values) // count * count] for values in operations.pairs(type))
    buffers: dict[str, Any] = {"left": left, "right": right}
    places = operations.rows(found)
    for name, _ in places:
        height = sum(other == name for other, _ in places)
        dtype = operations.DTYPES[name.removeprefix("out.")]
        buffers[name] = np.zeros((height, len(left)), dtype)
    batch.run(type.name, len(left) // count, buffers)
    wrong = []
    values = list(zip(left.tolist(), right.tolist(), strict=True))
    for (name, row), expression in zip(places, found, strict=True):
        exact = [operations.expected_value(expression, {"a": a, "b": b, "c": a}) for a, b in values]
        got = buffers[name][row]
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


# --- memory --------------------------------------------------------------------------------------


def memory_batch(language: str, lacking: frozenset[str] = frozenset()) -> Batch:
    """The kernels about memory, but those on types that the language lacks."""
    cases = {name: case for name, case in CASES.items() if not case.needs & lacking}
    codes = {name: printed(from_text(case.text), language) for name, case in cases.items()}
    return Batch(language, codes)


def wrong_memory(batch: Batch, name: str) -> list[str]:
    """The arrays that differ between the printed text and the evaluator."""
    case = CASES[name]
    expected = {key: array.copy() for key, array in case.arrays.items()}
    run(from_text(case.text), 1, expected, case.parameters)
    arrays = {key: array.copy() for key, array in case.arrays.items()}
    batch.run(name, 1, arrays, case.parameters)
    wrong = []
    elements = {buffer.name: buffer.element for buffer in from_text(case.text).buffers}
    for key, array in arrays.items():
        counts = _bytes_that_count(elements[key])
        size = t.size_of(elements[key])
        found, exact = (
            np.frombuffer(a.tobytes(), np.uint8).reshape(-1, size)[:, counts]
            for a in (array, expected[key])
        )
        if not np.array_equal(found, exact):
            wrong.append(f"{key} is {found.tolist()}, not {exact.tolist()}")
    return wrong


def _bytes_that_count(type: t.Type) -> list[int]:
    """The bytes of a value that are not padding."""
    return [at + i for at, leaf in t.leaves(type) for i in range(t.size_of(leaf))]
