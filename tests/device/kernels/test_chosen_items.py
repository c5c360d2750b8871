"""Tuples and vectors at indices that are known at run time only, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.kernels import agree
from treadle.runtime import settings

POWERS = tuple(3**k % 101 for k in range(23))
MIXED = (1, 2.5, -3, True)
ROWS = ((1, 0.5), (2, 0.25), (3, 0.125))


@td.func
def chosen(items, k):
    return items[k]


@td.kernel
def choose(x: td.Array[td.i32], out: td.Array[td.f32, 2]):
    i = td.grid(1)
    k = x[i]
    out[0, i] = MIXED[k]
    out[1, i] = POWERS[k] * 2 + POWERS[i]
    own = (k * 2, k + 1, 7, k, i, 1, 2, 3, k * k, -k)
    out[2, i] = own[k]
    count, weight = ROWS[k]
    out[3, i] = count + weight * ROWS[td.u8(i)][0]
    out[4, i] = chosen(out.shape, k) + chosen((5, 6), k)
    vectors = (td.vec2[td.f32](1, 2), td.vec2[td.f32](k, 4), td.vec2[td.f32](5))
    v = vectors[k]
    out[5, i] = v.x * 10 + v.y
    w = td.vec4[td.f32](1, 2, 3, 4)
    w[k] = w[3 - k] * 10
    w[k + 1] += 0.5
    out[6, i] = w[0] + 100 * w.y + 10000 * w.z + 1000000 * w.w
    total = 0
    for j in range(i):
        total += POWERS[j] + (1, 2, 4)[j % 3]
    out[7, i] = total


def at(items, k, nothing=0):
    return items[k] if 0 <= k < len(items) else nothing


def expected(x: np.ndarray) -> np.ndarray:
    rows = np.zeros((8, x.size))
    for i, k in enumerate(x.tolist()):
        w = np.zeros(4)
        w[:] = (1, 2, 3, 4)
        if 0 <= k < 4:
            w[k] = at(w, 3 - k) * 10
        if 0 <= k + 1 < 4:
            w[k + 1] += 0.5
        own = (k * 2, k + 1, 7, k, i, 1, 2, 3, k * k, -k)
        rows[:, i] = (
            at(MIXED, k),
            at(POWERS, k) * 2 + at(POWERS, i),
            at(own, k),
            at(ROWS, k, (0, 0))[0] + at(ROWS, k, (0, 0))[1] * at(ROWS, i, (0, 0))[0],
            at(rows.shape, k) + at((5, 6), k),
            at(((1, 2), (k, 4), (5, 5)), k, (0, 0)) @ np.array([10, 1]),
            w @ np.array([1, 100, 10000, 1000000]),
            sum(at(POWERS, j) + (1, 2, 4)[j % 3] for j in range(i)),
        )
    return rows


def indices() -> np.ndarray:
    drawn = np.random.default_rng().integers(0, 4, 30)
    return np.concatenate([[-1, 0, 1, 2, 3, 4, 9, 22, 23, -(2**31), 2**31 - 1], drawn])


def test_items_are_chosen_and_zero_outside(device) -> None:
    x = indices().astype(np.int32)
    x[9:11] = 1000, -1000  # their doubles and squares are exact in float32
    out = td.full((8, x.size), 77.0)
    choose.launch(x.size, td.asarray(x), out)
    np.testing.assert_allclose(out.numpy(), expected(x), rtol=1e-6)


def test_the_interpreter_agrees() -> None:
    x = indices()[:9].astype(np.int32)
    *_, out = agree(choose, 1, x.size, x, np.zeros((8, x.size), np.float32))
    np.testing.assert_allclose(out, expected(x), rtol=1e-6)


@pytest.mark.parametrize("items", ["(1, 2, 3)", "POWERS", "td.vec3[td.i32](1, 2, 3)"])
def test_check_mode_finds_an_index_outside(items: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "check", True)
    kernel = td.kernel(
        source=f"def kernel(x: td.Array[td.i32]):\n    items = {items}\n    x[0] = items[x[0]]\n"
    )
    x = td.asarray([2], dtype=td.int32, device="cpu")
    kernel.launch(1, x)
    assert x.item() == (POWERS[2] if items == "POWERS" else 3)
    x[0] = 100
    with pytest.raises(td.errors.LaunchError, match=r"index 100|index outside the vector"):
        kernel.launch(1, x)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("(1, (2, 3))", "is not a number"),
        ("((1, 2), (3,))", "have one length"),
        ("(td.vec2[td.i32](1), 2)", "vectors of one type"),
        ("()", "no items"),
    ],
)
def test_what_has_no_common_type_is_refused(items: str, message: str) -> None:
    text = f"def kernel(x: td.Array[td.i32]):\n    items = {items}\n    x[0] = items[x[0]]\n"
    with pytest.raises(td.errors.CompileError, match=message) as caught:
        td.kernel(source=text).source("ir")
    assert (caught.value.line, caught.value.column) == (3, 12)
