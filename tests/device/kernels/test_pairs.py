"""Loops over arrays, tuples, `enumerate` and `zip`, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.kernels import agree

TAPS = ((0.5, -1), (0.25, 0), (0.125, 1))


@td.kernel
def loops(x: td.Array[td.f32], y: td.Array[td.i32], out: td.Array[td.f32, 2]):
    i = td.grid(1)
    total = 0.0
    for v in x:
        total += v
    out[0, i] = total
    for k, v in enumerate(x):
        out[1, i] += k * v
    for a, b in zip(x, y, strict=False):
        b += i
        out[2, i] += a * b
    for k, (a, b) in enumerate(zip(x, y, strict=False), 3):
        if k == 5:
            continue
        out[3, i] += k * a + b
    for k, (weight, offset) in enumerate(TAPS, start=i):
        out[4, i] += k * weight * x[i + offset]
    for weight, k, c in zip((1, 2.5, 4), range(2, 9), td.vec3[td.f32](1, 2, 3), strict=False):
        out[5, i] += weight * k * c
    own = td.local(3, td.i32)
    for k in range(3):
        own[k] = i + k
    last = -1
    for k, w in zip(range(i, i + 9), own, strict=False):
        last = k * w
    out[6, i] = last
    for c in td.vec2[td.f32](x[i], 1):
        out[7, i] += c
    for a, _ in zip(y, range(-1, i), strict=False):
        out[8, i] += a


def expected(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.zeros((9, x.size))
    padded = np.concatenate([[0], x.astype(float), [0]])
    for i in range(x.size):
        a, b, k = x.astype(float), y.astype(float), np.arange(x.size)
        n = min(x.size, y.size)
        pairs = (k + 3)[:n] * a[:n] + b[:n]
        out[:, i] = (
            a.sum(),
            (k * a).sum(),
            (a[:n] * (b[:n] + i)).sum(),
            pairs.sum() - (pairs[2] if n > 2 else 0),
            sum((i + j) * w * padded[i + 1 + o] for j, (w, o) in enumerate(TAPS)),
            1 * 2 * 1 + 2.5 * 3 * 2 + 4 * 4 * 3,
            (i + 2) * (i + 2),
            x[i] + 1,
            b[: i + 1].sum(),
        )
    return out


@pytest.mark.parametrize(("n", "m"), [(13, 13), (5, 7), (7, 2), (1, 0)])
def test_loops(device, n: int, m: int) -> None:
    rng = np.random.default_rng()
    x, y = rng.normal(size=n).astype(np.float32), rng.integers(-9, 9, m).astype(np.int32)
    out = td.zeros((9, n))
    loops.launch(n, td.asarray(x), td.asarray(y), out)
    np.testing.assert_allclose(out.numpy(), expected(x, y), rtol=1e-5, atol=1e-4)


def test_the_interpreter_agrees() -> None:
    rng = np.random.default_rng()
    x, y = rng.normal(size=5).astype(np.float32), rng.integers(-9, 9, 4).astype(np.int32)
    *_, out = agree(loops, 1, 5, x, y, np.zeros((9, 5), np.float32))
    np.testing.assert_allclose(out, expected(x, y), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("for a, b in zip((1, 2), x): pass", "known at run time only"),
        ("for a in m: pass", "an array of one dimension, not over an array of f32 in 2"),
        ("for a, b in zip(x, range(0, 9, 2)): pass", "has the step 1"),
        ("for a, b, c in zip(x, x): pass", "3 names for 2 values"),
        ("pairs = zip(x, x)", "work in a for only"),
        ("for a in zip(x, strict=True): pass", "leave strict=True of zip out"),
        ("for a in enumerate(x, begin=1): pass", "by position"),
        ("for a in zip(): pass", "one argument or more"),
        ("for a in 3: pass", "not over the number 3"),
    ],
)
def test_what_no_loop_runs_over(loop: str, message: str) -> None:
    text = f"def kernel(x: td.Array[td.f32], m: td.Array[td.f32, 2]):\n    {loop}\n"
    with pytest.raises(td.errors.CompileError, match=message) as caught:
        td.kernel(source=text).source("ir")
    assert caught.value.line == 2
