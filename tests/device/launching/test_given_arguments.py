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
