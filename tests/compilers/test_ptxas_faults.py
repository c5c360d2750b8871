"""ptxas, taken at its output: what it makes of the texts that are printed around its faults.

`codegen.faults` says which versions have a fault; the installed one may be mended. So the text is
looked at, too; and the plain text, through a version that has the fault, shows that it is seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.compilers.test_ptx import printed
from tests.support.ptxas import disassembled, version
from treadle.codegen.ptx import printer, ptxas_workarounds
from treadle.ir import nodes as n
from treadle.ir.builder import Builder, add, binary, constant, equal, intrinsic, sub
from treadle.ir.types import I32, I64

LARGEST = (1 << 31) - 1
K = constant(LARGEST, I32)


def negating(value_of: Callable[[n.Variable, n.Variable], n.Expression]) -> n.Kernel:
    """`c = 0; if m == 1: c = value_of(n, c)`: ptxas sees late that c is 0 there."""
    b = Builder("negating", block=1)
    out = b.buffer("out", I32)
    number, m = b.parameter("number", I32), b.parameter("m", I32)
    c = b.variable("c", I32)
    with b.when(equal(m, 1)):
        b.assign(c, value_of(number, c))
    b.store(out, constant(0, I32), c)
    return b.kernel()


# Each is number - 2147483647, or that without the number, if c is 0.
NEGATIONS = {
    "sum": lambda number, c: sub(number, add(K, c)),
    "sum, turned": lambda number, c: sub(number, add(c, K)),
    "difference": lambda number, c: sub(number, sub(K, c)),
    "of a negative number": lambda number, c: sub(number, sub(c, constant(-LARGEST, I32))),
    "exclusive or": lambda number, c: sub(number, binary("xor", c, K)),
    "negative": lambda number, c: n.Unary("neg", add(K, c), I32),
}


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("value_of", NEGATIONS.values(), ids=NEGATIONS.keys())
def test_the_largest_number_keeps_its_sign(value_of, architecture):
    source = printed(negating(value_of), architecture).source
    assert not re.search(r"(add|sub|xor)\S+ .*[ ,]-?2147483647[,;]", source)
    code = " | ".join(disassembled(source, architecture))
    assert re.search(r"-0x7fffffff|0x80000001", code), code
    assert not re.search(r"[^-]0x7fffffff", code), code


def larger(fold_late: bool) -> n.Kernel:
    """The larger of a number and the difference of 19 and another; 19 from bits of 64, or not."""
    b = Builder("larger", block=1)
    out = b.buffer("out", I32)
    number, m = b.parameter("number", I32), b.parameter("m", I32)
    late = b.variable("late", I64)
    b.assign(late, constant(29, I64))
    b.assign(late, binary("xor", late, constant(14, I64)) if fold_late else constant(19, I64))
    difference = sub(n.Cast(late, I32), m)
    b.store(out, constant(0, I32), intrinsic("max", number, difference))
    return b.kernel()


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_a_difference_keeps_its_sign_beside_another_number(architecture):
    source = printed(larger(fold_late=True), architecture).source
    fuses = int(architecture[3:]) in ptxas_workarounds.FUSES_ADDITIONS
    assert ("not.b32" in source) == fuses
    code = " | ".join(disassembled(source, architecture))
    assert "0xffffffed" not in code, code  # -19, added to what should be taken off


def test_kernels_that_fold_in_time_are_printed_plainly():
    assert "not.b32" not in printed(larger(fold_late=False), "sm_90").source


def test_the_plain_text_shows_the_fault(monkeypatch):
    monkeypatch.setattr(printer, "FUSES_ADDITIONS", range(0))
    source = printed(larger(fold_late=True), "sm_90").source
    code = " | ".join(disassembled(source, "sm_90"))
    # 19 - m, or what the versions that are known to be wrong make of it: m - 19.
    assert ("0xffffffed" if version() <= (13, 5) else "0x13") in code, code


def test_an_absolute_value_may_be_negative():
    b = Builder("size", block=1)
    out = b.buffer("out", I32)
    size = intrinsic("abs", b.parameter("number", I32))
    b.store(out, constant(0, I32), n.Select(binary("lt", size, constant(0, I32)), K, size, I32))
    source = printed(b.kernel(), "sm_90").source
    assert "abs.s32" not in source  # which ptxas 13.0 takes for not negative
    code = disassembled(source, "sm_90")
    assert any(line.startswith(("ISETP", "@")) for line in code), code
