"""Division by numbers is multiplication: exact for every dividend, at the edges above all."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.ptx_device import ptx_device
from treadle.codegen.ptx.division import multiplier

DIVISORS = [1, 2, 3, 5, 6, 7, 10, 14, 25, 28, 64, 100, 125, 127, 641, 1000, 4096, 7919, 32767]
WIDE = [65537, 10**6, 10**9 + 7, 2**31 - 1]
LARGEST = [2**31, 2**31 + 1, 3 * 2**30, 2**32 - 2, 2**32 - 1]


@pytest.mark.parametrize("bits", [6, 7, 8])
def test_a_multiplier_is_exact_for_all_small_numbers(bits):
    missing = 0
    for divisor in range(2, 1 << bits):
        for most in (1, divisor, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1):
            found = multiplier(divisor, bits, most)
            if found is None:
                missing += 1
                assert most > 1 << bits - 1  # with a bit to spare there always is one
                continue
            factor, shift = found
            assert 0 < factor < 1 << bits
            for a in range(most + 1):
                assert a // divisor == a * factor >> bits + shift
    assert missing


@pytest.fixture(scope="module", autouse=True)
def machine():
    with ptx_device("sm_90") as device, td.use_device(device):
        yield device


def dividends(dtype, divisors) -> np.ndarray:
    info = np.iinfo(dtype)
    edges = {info.min, info.min + 1, -1, 0, 1, info.max - 1, info.max}
    for d in divisors:
        for multiple in (d, 2 * d, info.max // d * d, -d, info.min // d * d):
            edges.update((multiple - 1, multiple, multiple + 1))
    rng = np.random.default_rng(3)
    edges.update(int(v) for v in rng.integers(info.min, info.max, 64, dtype))
    return np.array(sorted(v for v in edges if info.min <= v <= info.max), dtype)


CASES = {
    "i8": DIVISORS[:14], "u8": DIVISORS[:14], "i16": DIVISORS, "u16": DIVISORS,
    "i32": DIVISORS + WIDE, "u32": DIVISORS + WIDE + LARGEST,
    "i64": DIVISORS + WIDE + LARGEST + [2**32 + 1, 2**62, 2**63 - 1],
    "u64": DIVISORS + WIDE + LARGEST + [2**32 + 1, 2**63, 2**63 + 1, 2**64 - 1],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_dividend_at_an_edge(name):
    divisors, type = CASES[name], getattr(td, name)
    dtype = np.dtype(f"{'int' if name[0] == 'i' else 'uint'}{name[1:]}")
    lines = [
        f"def divide(x: td.Array[td.{name}], "
        f"q: td.Array[td.{name}, 2], r: td.Array[td.{name}, 2]):",
        "    i = td.grid(1)",
        "    if i < x.size:",
    ]
    for k, divisor in enumerate(divisors):
        lines.append(f"        q[{k}, i] = x[i] // td.{name}({divisor})")
        lines.append(f"        r[{k}, i] = x[i] % td.{name}({divisor})")
    kernel = td.kernel(source="\n".join(lines))
    x = dividends(dtype, divisors)
    quotients, rests = (td.zeros((len(divisors), len(x)), dtype=type) for _ in range(2))
    assert "div." not in kernel.source("ptx", x, quotients, rests, block=64)
    kernel.launch(len(x), td.asarray(x), quotients, rests)
    for k, divisor in enumerate(divisors):
        wanted = [divmod(int(v), divisor) for v in x]
        assert quotients.numpy()[k].tolist() == [q for q, _ in wanted], divisor
        assert rests.numpy()[k].tolist() == [r for _, r in wanted], divisor
