"""The random kernels that the passes are tested with are themselves sound."""

from __future__ import annotations

import pytest

from tests.support.ir_programs import outputs, random_kernel
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.printer import to_text
from treadle.ir.traverse import walk
from treadle.ir.verify import verify


@pytest.mark.parametrize("seed", range(30))
def test_they_are_right_and_survive_the_text(seed: int) -> None:
    kernel = random_kernel(seed)
    verify(kernel)
    again = from_text(to_text(kernel))
    assert to_text(again) == to_text(kernel)
    assert outputs(again) == outputs(kernel)


def test_they_are_not_all_alike() -> None:
    kernels = [random_kernel(seed) for seed in range(40)]
    seen = {type(node) for k in kernels for f in (k, *k.functions) for node in walk(f.body)}
    assert {n.Call, n.CallStatement, n.While, n.Break, n.Continue, n.Return, n.Atomic} <= seen
    assert len({str(outputs(kernel)) for kernel in kernels}) > 20
