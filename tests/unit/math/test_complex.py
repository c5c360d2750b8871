"""The table of complex functions, and the functions in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support import complex_references as references
from treadle.lang.math.complex import COMPLEX, COMPLEX_BOUNDS


def test_every_function_has_both_types_and_a_bound() -> None:
    names = {name.rpartition("_")[0] for name in COMPLEX}
    assert {f"{name}_{type}" for name in names for type in ("c64", "c128")} == set(COMPLEX)
    assert set(COMPLEX_BOUNDS) == {*references.UNARY, *references.BINARY} <= names


@pytest.mark.parametrize("type", ["c64", "c128"])
def test_the_interpreter_has_them_too(type: str) -> None:
    z = references.pairs([0.5, 1], [1, -1e-4], type)
    names = ("exp", "log", "asin", "tanh")
    out = np.zeros((len(names), z.size), z.dtype)
    with td.interpret():
        references.kernel_of(names, type, 1).launch(z.size, z, out)
    for name, got in zip(names, out, strict=True):
        found = references.errors(got, references.reference(name, z))
        assert found.max() <= COMPLEX_BOUNDS[name], name
