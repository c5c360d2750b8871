"""The parts of the NumPy route: numbers that grow evenly, masks, arithmetic that NumPy lacks."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest

import treadle as td
from treadle.core.dim3 import Dim3
from treadle.drivers.cpu_numpy import masks, numbers
from treadle.drivers.cpu_numpy.atomics import atomic_number
from treadle.drivers.cpu_numpy.chunks import Affine, Chunk, Layout, affine, chunks
from treadle.ir import arithmetic
from treadle.ir import types as t

LAYOUT = Layout(Dim3(24, 2), (4, 12), Dim3(3))
OPERATIONS = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_,
    operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le,
    operator.gt, operator.ge, operator.eq, operator.ne, np.fmod,
]  # fmt: skip


def plain(value):
    return value.array if isinstance(value, Affine) else value


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.__name__)
def test_numbers_that_grow_evenly_are_those_of_arrays(operation, dtype):
    """Blocks, rows, parts of rows and threads in them; what wraps around becomes an array."""
    low = 0 if dtype is np.uint32 else -40
    steps = [(48, 24, 12, 4, 1), (0, 0, 12, 4, 1), (5, 0, 0, 0, 0), (0, 3, 0, 8, 2)]
    left = [affine(LAYOUT, start, own, dtype) for own in steps for start in (low, 0, 1 << 30)]
    others = [dtype(value) for value in (1, 3, 4, 7, 12, 48)]
    with np.errstate(all="ignore"):
        for number in left:
            assert number.array.dtype == dtype
            for other in (*others, number, left[0]):
                found = plain(operation(number, other))
                expected = operation(number.array, plain(other))
                np.testing.assert_array_equal(np.broadcast_to(found, expected.shape), expected)
                found = plain(operation(other, number))
                expected = operation(plain(other), number.array)
                np.testing.assert_array_equal(np.broadcast_to(found, expected.shape), expected)


def test_chunks_have_each_thread_once():
    grid, block = Dim3(700, 3, 2), Dim3(64, 2)
    seen = []
    for c in chunks(grid, block, (32,), memory=0):
        assert isinstance(c, Chunk)
        parts = [np.broadcast_to(plain(index), c.lanes) for index in (*c.block_idx, *c.thread_idx)]
        seen.append(np.stack(parts))
    rows = np.concatenate(seen, axis=1).T
    assert len(rows) == grid.count * block.count
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert rows.max(0).tolist() == [699, 2, 1, 63, 1, 0]


def test_masks_say_all_and_none_by_name():
    some = np.array([True, False])
    assert masks.both(True, ~some | some) is True
    assert masks.both(some, ~some) is False
    assert masks.either(some, ~some) is True
    assert masks.minus(some, some) is False
    assert masks.without(True, some).tolist() == [False, True]
    assert masks.inside(np.array([-1, 0, 2]), np.int32(2)).tolist() == [False, True, False]


@pytest.mark.parametrize("type", [t.F32, t.F64, t.F16], ids=str)
def test_products_and_sums_are_rounded_once(type):
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[type.name]
    rng = np.random.default_rng(5)
    a, b = (rng.normal(size=400).astype(kind) for _ in range(2))
    c = np.where(rng.random(400) < 0.5, -a * b, rng.normal(size=400)).astype(kind)
    found = numbers.NUMBERS[f"fma_{type.name}"](a, b, c)
    exact = [
        arithmetic.round_exact(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), type)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    assert found.dtype == kind
    assert found.tolist() == exact


@pytest.mark.parametrize("source", [np.float64, np.int64, np.float32])
def test_bfloat16_is_rounded_once(source):
    rng = np.random.default_rng(6)
    values = (rng.normal(size=500) * 2.0 ** rng.integers(0, 60, 500)).astype(source)
    if source is np.int64:
        near = (1 << 62) + (1 << 54)  # the middle between two, and its neighbours
        values[:3] = near, near + 1, near - 1
    name = "integer_to_bf16" if source is np.int64 else "round_bf16"
    found = numbers.NUMBERS[name](values)
    exact = [
        arithmetic.round_exact(Fraction(value), t.SCALARS["bf16"]) for value in values.tolist()
    ]
    assert found.tolist() == exact


def test_atomics_take_turns_in_the_order_of_threads():
    c = next(iter(chunks(Dim3(1), Dim3(6), (), 0)))
    at = np.array([0, 1, 0, 0, 1, 0], np.int32)
    memory = np.array([10, 20], np.int32)
    ones = np.ones(6, np.int32)
    old = atomic_number(c, "add", memory, at, (ones,), True, True, True)
    assert (old.tolist(), memory.tolist()) == ([10, 20, 11, 12, 21, 13], [14, 22])
    swap = atomic_number(c, "cas", memory, at, (old * 0 + 14, ones), True, True, True)
    assert (swap.tolist(), memory.tolist()) == ([14, 22, 1, 1, 22, 1], [1, 22])


def test_the_device_says_what_it_is():
    device = td.device("numpy")
    assert device.name.startswith("NumPy on ")
    assert device.id == "numpy"
    assert device is not td.device("cpu")
    assert td.default_device() is not device
    assert device not in td.devices()
