"""Tables of C++ expressions and their values, computed by one kernel each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import treadle as td

# An expression of C++, and what it is.
Case = tuple[str, int]


def wrapped(value: int, bits: int = 32) -> int:
    """A number as a signed integer of so many bits holds it.

    >>> wrapped(1 << 31), wrapped(200, 8)
    (-2147483648, -56)
    """
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def quotient(left: int, right: int) -> int:
    """C's division, which truncates."""
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def remainder(left: int, right: int) -> int:
    """C's remainder, which has the sign of the dividend."""
    return left - right * quotient(left, right)


def table_source(declarations: str, cases: Sequence[Case], result: str = "int") -> str:
    """A kernel `table(in, out)` that writes the value of each expression.

    A result of 64 bits takes two elements, the lower half first.
    """
    if result == "int":
        writes = [f"    out[{at}] = {written};" for at, (written, _) in enumerate(cases)]
    else:
        writes = [f"    put(out, {2 * at}, {written});" for at, (written, _) in enumerate(cases)]
    return "\n".join([
        "__device__ void put(int *out, int at, long long value)",
        "{",
        "    out[at] = (int)(value & 0xffffffff);",
        "    out[at + 1] = (int)(value >> 32);",
        "}",
        "__global__ void table(const int *in, int *out)",
        "{",
        declarations,
        *writes,
        "}",
    ])  # fmt: skip


def check_table(
    device: td.Device,
    declarations: str,
    cases: Sequence[Case],
    inputs: Sequence[int] = (0,),
    result: str = "int",
    before: str = "",
) -> None:
    """Compute the expressions on a device and compare them with their values."""
    module = td.cuda_module(before + "\n" + table_source(declarations, cases, result))
    width = 1 if result == "int" else 2
    out = td.zeros(len(cases) * width, dtype=td.int32, device=device)
    module.table[1, 1](td.asarray(np.array(inputs, np.int32), device=device), out)
    found = out.numpy()
    if width == 2:
        found = found.view(np.int64)
    wrong = [
        f"{written}: {value} came, not {wrapped(expected, 32 * width)}"
        for (written, expected), value in zip(cases, found.tolist(), strict=True)
        if value != wrapped(expected, 32 * width)
    ]
    assert not wrong, "\n".join(wrong)
