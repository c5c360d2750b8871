"""What is known of types without going through their arrays."""

from __future__ import annotations

import pytest

from treadle.codegen.pipeline import lower, print_code
from treadle.codegen.records import Options, Target
from treadle.core.dim3 import Dim3
from treadle.ir import types as t
from treadle.ir.parser import from_text

PAIR = t.Struct("Pair", (t.Field("a", t.Vector(t.F32, 3)), t.Field("b", t.U8)))
MANY = t.Struct("Many", (t.Field("pairs", t.Array(PAIR, 5)), t.Field("n", t.I64)))


@pytest.mark.parametrize("type", [t.I8, t.Vector(t.F16, 4), t.Array(t.I32, 9), PAIR, MANY, t.VOID])
def test_scalars_and_their_number(type: t.Type) -> None:
    leaves = t.leaves(type)
    assert t.scalars_in(type) == {leaf for _, leaf in leaves}
    assert t.leaf_count(type) == len(leaves)


@pytest.mark.parametrize("language", ["wgsl", "llvm", "ptx", "cuda", "msl"])
def test_a_struct_with_an_array_of_a_hundred_million_elements(language: str) -> None:
    """No printer goes through its elements, which would take minutes and gigabytes."""
    kernel = from_text("""
struct Big {
  a: array<u8, 100000000>
  n: i32
}

kernel k block(64, 1, 1) {
  buffer b: Big
  buffer o: i32

  o[thread_idx.x] = i32(b[0]->a[thread_idx.x; thread_idx.x in 100000000]) + b[0]->n
}
""")
    options = Options(Dim3(64, 1, 1), (("b", 0), ("o", 1)))
    target = Target(language, "tint" if language == "wgsl" else "")
    code = print_code(lower(kernel, options, target), options, target)
    assert "k" in code.source
