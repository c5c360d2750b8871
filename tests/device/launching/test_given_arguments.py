"""Launches with arguments by name, and with default values, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


@td.struct
class Line:
    slope: td.f32
    offset: td.f32


FACTOR, OFFSET, LINE = np.float32(3.0), td.vec2[td.f32](1, 2), Line(0.5, 0.25)


@td.kernel
def scaled(
    x: td.Array[td.f32],
    factor=FACTOR,
    offset: td.vec2[td.f32] = OFFSET,
    line: Line = LINE,
):
    i = td.grid(1)
    x[i] = x[i] * factor + offset.x - offset.y + line.slope + line.offset


def test_names_and_default_values(device) -> None:
    drawn = np.random.default_rng().normal(size=13).astype(np.float32)
    n, zero, line = len(drawn), td.vec2[td.f32](), Line(1, 2)
    cases = [
        (lambda x: scaled.launch(n, x), drawn * 3 - 0.25),
        (lambda x: scaled.launch(n, x, 2.0), drawn * 2 - 0.25),
        (lambda x: scaled.launch(n, factor=2.0, x=x), drawn * 2 - 0.25),
        (lambda x: scaled[1, n](x, offset=zero), drawn * 3 + 0.75),
        (lambda x: scaled[1, n](x, 4.0, zero, line=line), drawn * 4 + 3),
        (lambda x: scaled[1, n](x, line=line, factor=np.float32(1)), drawn + 2),
    ]
    for launch, expected in cases:
        x = td.asarray(drawn)
        launch(x)
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-5, atol=1e-6)
        host = drawn.copy()
        with td.interpret():
            launch(host)
        np.testing.assert_allclose(host, expected, rtol=1e-5, atol=1e-6)


def test_the_source_with_names() -> None:
    x = np.zeros(2, np.float32)
    assert scaled.source("ir", x) == scaled.source("ir", line=Line(1, 2), x=x)


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {}, r"takes 4 arguments .*, not 0: x is not given"),
        ((), {"factor": 1.0}, "x is not given"),
        ((1, 2, 3, 4, 5), {}, "takes 4 arguments .*, not 5"),
        ((1,), {"x": 1}, "x is given twice"),
        ((1,), {"factors": 1}, "has no parameter factors: its parameters are x, factor, offset"),
    ],
)
def test_wrong_arguments(arguments, keywords, message) -> None:
    with pytest.raises(td.errors.LaunchError, match=message):
        scaled.launch(1, *arguments, **keywords)
    with pytest.raises(td.errors.LaunchError, match=message):
        scaled[1, 1](*arguments, **keywords)


def test_a_parameter_by_position_only() -> None:
    kernel = td.kernel(source="def kernel(x, /, by=2.0):\n    x[td.grid(1)] *= by\n")
    x = td.ones(1, device="cpu")
    kernel.launch(1, x, by=3.0)
    assert x.item() == 3
    with pytest.raises(td.errors.LaunchError, match="by that name"):
        kernel.launch(1, x=x)


@td.func
def between(x, *, low=0.0, high):
    return td.clip(x, low, high)


@td.kernel
def clipped(x: td.Array[td.f32], factor: td.f32 = 1.0, *, high: td.f32, low=-1.0):
    i = td.grid(1)
    x[i] = between(x[i] * factor, high=high, low=low) + between(x[i], high=0.0)


def test_parameters_by_name_only(device) -> None:
    drawn = np.random.default_rng().normal(size=13).astype(np.float32)
    low = np.clip(drawn, 0, 0)
    cases = [
        (lambda x: clipped.launch(13, x, high=0.5), np.clip(drawn, -1, 0.5) + low),
        (lambda x: clipped[1, 13](x, 2.0, high=0.5), np.clip(drawn * 2, -1, 0.5) + low),
        (lambda x: clipped[1, 13](x, low=0.0, high=1.0), np.clip(drawn, 0, 1) + low),
    ]
    for launch, expected in cases:
        x, host = td.asarray(drawn), drawn.copy()
        launch(x)
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
        with td.interpret():
            launch(host)
        np.testing.assert_allclose(host, expected, rtol=1e-6)
    for given, named, message in (
        ((1, 1.0, 2.0), {}, "takes high by name: write high="),
        ((1, 1.0, 2.0, 3.0), {}, "takes low by name"),
        ((1, 1.0), {}, "high is not given"),
        ((1, 1.0, 2.0, 3.0, 4.0), {}, "takes 4 arguments"),
        ((1,), {"high": 1.0, "lower": 2.0}, "no parameter lower"),
    ):
        with pytest.raises(td.errors.LaunchError, match=message):
            clipped[1, 1](*given, **named)


def test_calls_in_kernels_that_lack_the_name() -> None:
    @td.kernel
    def wrong(x: td.Array[td.f32]):
        x[0] = between(x[0], 1.0, high=2.0)

    with pytest.raises(td.errors.CompileError, match="between takes low by name: write low="):
        wrong.source("ir")


def test_functions_of_tensors_by_name_only(device) -> None:
    @td.elementwise
    def blended(x, y, *, share=0.5):
        return x * share + y * (1 - share)

    x, y = td.asarray([1.0, 2.0]), td.asarray([[3.0], [5.0]])
    assert blended(x, y).tolist() == [[2, 2.5], [3, 3.5]]
    assert blended(x, y, share=td.asarray([1.0, 0.0])).tolist() == [[1, 3], [1, 5]]
    with pytest.raises(td.errors.LaunchError, match=r"share|positional"):
        blended(x, y, 0.5)
