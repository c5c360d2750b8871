"""Both compilers of WGSL accept what the printer writes: every operation on every type."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cut_kernels import LIFE
from tests.support.operations import all_operations
from tests.support.printing import print_wgsl
from tests.support.tint import tint_error
from tests.support.wgsl import LIMITS, naga_error
from treadle.codegen.wgsl import WgslOptions
from treadle.cuda_cpp.load import cuda_module
from treadle.ir import types as t

# The types that Tint has, and float16 both native and emulated.
CASES = [
    *((name, frozenset[str]()) for name in t.SCALARS if name not in ("i64", "u64", "f64")),
    ("f16", frozenset({"float16"})),
]


@pytest.mark.parametrize(("name", "features"), CASES)
def test_every_operation_is_accepted(name, features):
    kernel = all_operations(t.SCALARS[name])
    for_tint = print_wgsl(kernel, WgslOptions("tint", features, LIMITS))
    assert tint_error(for_tint.source) is None
    for_naga = print_wgsl(kernel, WgslOptions("naga", features, LIMITS))
    assert naga_error(for_naga.source, for_naga.entry) is None


def test_each_part_of_a_kernel_with_barriers_of_the_grid_is_accepted():
    texts = cuda_module(LIFE).life.texts("wgsl", block=64)
    assert list(texts) == ["life_1", "life_2", "life_3"]
    for name, text in texts.items():
        assert naga_error(text, name) is None


VECTORS: list[Any] = [("i32", ()), ("u32", ()), ("f32", ()), ("f16", ("float16",)), ("f16", ()),
                      ("i8", ()), ("bf16", ())]  # fmt: skip


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(("name", "features"), VECTORS)
def test_every_operation_on_vectors_is_accepted(name, features, count):
    kernel = all_operations(t.SCALARS[name], count)
    for_tint = print_wgsl(kernel, WgslOptions("tint", frozenset(features), LIMITS))
    assert tint_error(for_tint.source) is None
    for_naga = print_wgsl(kernel, WgslOptions("naga", frozenset(features), LIMITS))
    assert naga_error(for_naga.source, for_naga.entry) is None


@pytest.mark.parametrize("name", ["i64", "u64", "f64"])
def test_wide_types_are_accepted_by_naga(name):
    features = frozenset({"int64", "float64"})
    code = print_wgsl(all_operations(t.SCALARS[name]), WgslOptions("naga", features, LIMITS))
    assert naga_error(code.source, code.entry) is None
