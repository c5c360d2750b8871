"""Drawn array programs whose calls run on the host or on a device: results, arguments and random
draws are the same wherever a call runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import treadle as td
from tests.fuzz.arrays import USUAL, Instruction, Treadle, shapes_of
from tests.fuzz.test_compiled import _DRAW, _READ, _Given, _numbers, _programs
from tests.support.placing import fake_costs, placed, quick_on
from treadle.tensor.compiled import kept_choices

_EXAMPLES = settings.default.max_examples // 8  # each is several runs, with kernels of its own
_CALLS = 8


def _body(program: Sequence[Instruction], writes: bool) -> Any:
    def body(arrays: list[td.Tensor], scale: int) -> list[Any]:
        mine = arrays if writes else [td.asarray(each, copy=True) for each in arrays]
        device = td.default_device()
        run = _Given(Treadle(device), mine)
        for instruction in program:
            if instruction.what == _DRAW:
                x = run.arrays[run.pick(instruction.a)]
                drawn = td.random.integers(x.shape, -9, 9, dtype=td.int32, device=device)
                run.keep(x + drawn * scale, True)
            else:
                run.step(instruction)
        return [*run.arrays[len(mine) :], *run.outputs]

    return body


def _calls(function: Any, seed: int, make: Any) -> list[np.ndarray[Any, Any]]:
    """All that some calls leave: results, and the arguments afterwards."""
    random = np.random.default_rng(seed)
    td.manual_seed(seed)
    found: list[Any] = []
    for _ in range(_CALLS):
        row, matrix = shapes_of(USUAL)[:2]
        shapes = (matrix, row, matrix, USUAL)
        arguments = [make(random.integers(-99, 99, shape).astype(np.int32)) for shape in shapes]
        found += function(arguments, 2)
        found += arguments
    return [np.asarray(each.numpy() if isinstance(each, td.Tensor) else each) for each in found]


def _compare(program: Sequence[Instruction], seed: int, writes: bool) -> None:
    host = td.device("cpu")
    body = _body(program, writes)
    with td.use_device(host):
        expected = _calls(body, seed, td.asarray)
    for name in ("webgpu", *(["cuda"] if td.is_available("cuda") else [])):
        device = td.device(name)
        with td.use_device(device):
            for make, quick in ((np.array, device), (td.asarray, host)):
                found = _calls(placed(body, quick_on(quick)), seed, make)
                for number, (one, other) in enumerate(zip(expected, found, strict=True)):
                    what = f"array {number} of {make.__name__} on {name}"
                    assert one.dtype == other.dtype, what
                    np.testing.assert_array_equal(other, one, err_msg=what)


@pytest.fixture(autouse=True, scope="module")
def _stated():
    patch = pytest.MonkeyPatch()
    patch.setattr(kept_choices, "load", lambda key, choice: None)
    patch.setattr(kept_choices, "save", lambda key, choice: None)
    with fake_costs():
        yield
    patch.undo()


@pytest.mark.timeout(3000)
@settings(max_examples=_EXAMPLES)
@given(_numbers, _programs)
def test_calls_do_the_same_on_both_devices(seed: int, program: list[Instruction]) -> None:
    _compare([each for each in program if each.what != _READ], seed, writes=False)


@pytest.mark.timeout(3000)
@settings(max_examples=_EXAMPLES // 2)
@given(_numbers, _programs)
def test_so_do_calls_that_write_and_read(seed: int, program: list[Instruction]) -> None:
    _compare(program, seed, writes=True)
