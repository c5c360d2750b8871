"""Cross products, lengths and directions of vectors, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.kernels import agree


@td.kernel
def compute(x: td.Array[td.vec3[td.f32]], y: td.Array[td.vec3[td.f32]], out: td.Array[td.f32, 2]):
    i = td.grid(1)
    a, b = x[i], y[i]
    c = td.cross(a, b)
    out[0, i], out[1, i], out[2, i] = c
    out[3, i] = td.length(a)
    unit = td.normalize(b)
    out[4, i], out[5, i], out[6, i] = unit
    out[7, i] = td.length(td.vec2[td.i32](3 + i - i, 60000))
    h = td.normalize(td.vec4[td.f16](a.x, a.y, a.z, 200))
    out[8, i] = td.length(td.vec2[td.f16](3, 4)) + td.f32(h.w)
    out[9, i] = np.linalg.norm(np.cross(a, b)) - np.dot(a, b)


def expected(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = x.astype(np.float64), y.astype(np.float64)
    crosses = np.cross(x, y)
    fours = np.concatenate([x, np.full((len(x), 1), 200)], axis=1)
    return np.concatenate(
        [
            crosses.T,
            [np.linalg.norm(x, axis=1)],
            (y / np.linalg.norm(y, axis=1)[:, None]).T,
            [np.full(len(x), np.hypot(3, 60000))],
            [5 + 200 / np.linalg.norm(fours, axis=1)],
            [np.linalg.norm(crosses, axis=1) - (x * y).sum(axis=1)],
        ]
    )


def test_vectors(device) -> None:
    x, y = np.random.default_rng().normal(size=(2, 37, 3)).astype(np.float32)
    out = td.full((10, len(x)), 77.0)
    compute.launch(len(x), td.asarray(x), td.asarray(y), out)
    np.testing.assert_allclose(out.numpy(), expected(x, y), rtol=2e-3, atol=2e-6)
    np.testing.assert_allclose(out.numpy()[:8], expected(x, y)[:8], rtol=1e-5, atol=2e-6)


def test_the_interpreter_agrees() -> None:
    x, y = np.random.default_rng().normal(size=(2, 5, 3)).astype(np.float32)
    *_, out = agree(compute, 1, 5, x, y, np.zeros((10, 5), np.float32))
    np.testing.assert_allclose(out, expected(x, y), rtol=2e-3, atol=2e-6)


def test_zeros_and_infinities(device) -> None:
    @td.kernel
    def special(x: td.Array[td.f32], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        v = td.vec2[td.f32](x[i], 0)
        out[0, i] = td.length(v)
        out[1, i] = td.normalize(v).x

    values = np.array([0, -0.0, 2, -3, np.inf, np.nan], np.float32)
    out = td.full((2, values.size), 77.0)
    special.launch(values.size, td.asarray(values), out)
    with np.errstate(all="ignore"):
        lengths = np.abs(values)
        # WGSL's division is right to 2.5 units in the last place.
        np.testing.assert_allclose(out.numpy(), [lengths, values / lengths], rtol=3e-7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("td.length(x[0])", "takes a vector"),
        ("td.cross(td.vec2[td.f32](1), td.vec2[td.f32](1)).x", "two vectors of three numbers"),
        ("td.normalize(3)", "takes a vector"),
        ("np.linalg.norm(x)", "an array can't be used as a number"),
    ],
)
def test_what_is_no_vector_is_refused(call: str, message: str) -> None:
    text = f"def kernel(x: td.Array[td.f32]):\n    x[0] = {call}\n"
    with pytest.raises(td.errors.CompileError, match=message) as caught:
        td.kernel(source=text).source("ir")
    assert (caught.value.line, caught.value.column) == (2, 12)
