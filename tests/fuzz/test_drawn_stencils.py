"""Drawn stencils must do on every device, and in the interpreter, what NumPy's indexing says."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

import treadle as td
from tests.fuzz.stencils import (
    Drawn,
    after_steps,
    drawn_loops,
    drawn_stencils,
    expected,
    extents,
    found,
    grid_extents,
    refused,
    stencil_of,
)

MOST_INTERPRETED = 60  # cells


@cache
def _devices() -> tuple[td.Device, ...]:
    others = [td.device(name) for name in ("cuda", "dawn") if td.is_available(name)]
    return td.device("cpu"), td.device("webgpu"), *others


def check(drawn: Drawn) -> None:
    stencil = stencil_of(drawn)
    for shape in drawn.shapes:
        interpreted = np.prod(grid_extents(drawn, shape)) <= MOST_INTERPRETED
        for device in (*_devices(), *([None] if interpreted else [])):
            where = device.id if device else "the interpreter"
            if refused(drawn, shape):
                with pytest.raises(td.errors.ShapeError):
                    found(drawn, stencil, shape, device)
                continue
            want = expected(drawn, shape)
            got = found(drawn, stencil, shape, device)
            for number, (one, other) in enumerate(zip(want, got, strict=True)):
                where_from = [extents(place, shape) for place in (*drawn.inputs, *drawn.outputs)]
                what = f"output {number} on {where}, of arrays {where_from}"
                np.testing.assert_array_equal(other, one, err_msg=what)


@pytest.mark.timeout(3000)  # for all the examples together
@settings(max_examples=max(settings.default.max_examples // 12, 5))
@given(drawn_stencils())
def test_stencils_do_what_numpy_does(drawn: Drawn) -> None:
    try:
        check(drawn)
    except Exception as error:
        error.add_note(f"\n{drawn}\n{drawn.source()}")
        raise


@pytest.mark.timeout(3000)
@settings(max_examples=max(settings.default.max_examples // 12, 5))
@given(drawn_loops())
def test_loops_do_what_single_calls_do(case: tuple[Drawn, int, int]) -> None:
    drawn, steps, every = case
    stencil = stencil_of(drawn)
    for shape in drawn.shapes[:1]:
        if refused(drawn, shape):
            continue
        for device in _devices():
            looped, called = after_steps(drawn, stencil, shape, device, steps, every)
            for one, other in zip(looped, called, strict=True):
                what = f"{steps} steps, {every} at a time, on {device.id}\n{drawn.source()}"
                np.testing.assert_array_equal(one, other, err_msg=what)
