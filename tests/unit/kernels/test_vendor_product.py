"""Products as vendors' libraries are told of them: the same matrices, by pitch and step."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import treadle as td
from treadle.core.dtypes import float32
from treadle.kernels.factors import Factor, Product
from treadle.kernels.vendor_product import _aligned, _dense

MEMORY = np.arange(1000)


def seen(shape, strides, offset):
    """Elements of the memory, strides counted in elements."""
    return as_strided(MEMORY[offset:], shape, [8 * stride for stride in strides])


@pytest.mark.parametrize("first", [(11, 1), (1, 7), (6, 1)])  # strides of rows and the inner axis
@pytest.mark.parametrize("second", [(1, 9), (5, 1), (1, 8)])  # of columns and the inner axis
@pytest.mark.parametrize("step", [0, 60])
def test_factors(first, second, step):
    product = Product((3,), 7, 8, 5, Factor((step,), *first, 4), Factor((40,), *second, 8))
    dense = _dense(float32, product)
    assert dense is not None
    extents = ((7, 5), (5, 8))
    strides = (first, second[::-1])
    factors = (product.first, product.second)
    for operand, shape, moves, factor in zip(
        (dense.left, dense.right), extents, strides, factors, strict=True
    ):
        pitches = (1, operand.pitch) if operand.transposed else (operand.pitch, 1)
        told = seen((dense.batch, *shape), (operand.step, *pitches), factor.offset)
        right = seen((3, *shape), (*factor.batch, *moves), factor.offset)
        np.testing.assert_array_equal(told, right)


@pytest.mark.parametrize(
    "factor",
    [Factor((), -11, 1, 900), Factor((), 22, 2, 0), Factor((), 3, 1, 0), Factor((), 0, 1, 0)],
    ids=["reversed", "steps", "overlapping", "one row"],
)
def test_what_has_no_pitch(factor):
    assert _dense(float32, Product((), 7, 8, 5, factor, Factor((), 1, 8, 0))) is None


def test_stacks_of_two_axes_are_not_told():
    factor = Factor((80, 40), 8, 1, 0)
    assert _dense(float32, Product((2, 2), 4, 4, 4, factor, factor)) is None


def test_rows_and_columns_of_one():
    """Where nothing is stepped over, any stride will do."""
    dense = _dense(float32, Product((), 1, 8, 5, Factor((), 0, 1, 0), Factor((), 1, 8, 0)))
    assert dense is not None
    assert (dense.left.pitch, dense.left.transposed) == (5, False)


def test_what_lies_askew_is_copied():
    """A library would read its 16 bytes at once."""
    data = np.arange(40, dtype=np.float32)
    array = td.asarray(data, device="cpu")._array
    for whole, offset, first in ((array, 8, 8), (array.view((32,), (1,), 8), 4, 12)):
        found = _aligned(whole, offset)
        assert (found.buffer, found.offset) == (array.buffer, first)
    found = _aligned(array.view((38,), (1,), 2), 3)
    assert found.offset == 0
    np.testing.assert_array_equal(found.to_host(), data[5:])
