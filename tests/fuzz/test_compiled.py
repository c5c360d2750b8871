"""Drawn array programs, compiled: every call must do what the program itself does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.fuzz.arrays import USUAL, Instruction, NumPy, Run, Sizes, Treadle, shapes_of
from treadle.runtime.counters import counts

_READ = 22  # in `arrays._DO`: what ends a recording
_DRAW = 24
_SLICE = 25  # what uses the integer among the arguments
_WINDOW = 30  # in `arrays._DO`: rows from a position on the device on

_EXAMPLES = settings.default.max_examples // 8  # each is several runs, with kernels of its own

_numbers = st.integers(0, 9999)
_programs = st.lists(
    st.builds(Instruction, st.integers(0, _SLICE) | st.just(_WINDOW), _numbers, _numbers, _numbers),
    max_size=30,
)
_MOST_DRAWN = 16  # instructions of a program that is traced for many sizes


class _Given(Run):
    """A program that runs on arrays that it is given."""

    def __init__(self, space: NumPy, arrays: Sequence[Any]) -> None:
        self.space = space
        self.shapes = shapes_of(arrays[3].shape)
        self.arrays, self.writable, self.outputs = [], [], []
        for array in arrays:
            self.keep(array, True)


def _body(device: td.Device, program: Sequence[Instruction], outside: td.Tensor) -> Any:
    def body(arrays: list[td.Tensor], scale: int, n: int) -> list[Any]:
        run = _Given(Treadle(device), [*arrays, outside])
        for instruction in program:
            if instruction.what == _DRAW:
                x = run.arrays[run.pick(instruction.a)]
                drawn = td.random.integers(x.shape, -9, 9, dtype=td.int32, device=device)
                run.keep(x + drawn * scale, True)
            elif instruction.what == _SLICE:
                _slice(run, instruction, n)
            else:
                run.step(instruction)
        return [*run.arrays, *run.outputs]

    return body


def _slice(run: Run, instruction: Instruction, n: int) -> None:
    """Read or write a part whose place depends on an integer."""
    at = run.pick(instruction.a)
    x = run.arrays[at]
    if not x.ndim:
        return
    parts = (slice(n), slice(n, None), slice(n, n + 2), slice(None, None, n + 1), slice(-n, None))
    part = parts[instruction.b % len(parts)]
    if instruction.c % 2 and run.writable[at]:
        x[part] = n * 3
    elif instruction.c % 4 == 0 and n < x.shape[0]:
        run.keep(x[n] * n, True)
    else:
        run.keep(x[part] + n, True)


def _calls(
    device: td.Device,
    program: Sequence[Instruction],
    seed: int,
    sizes: Sequence[Sizes],
    compiled: bool,
    dynamic: bool | None = None,
) -> Any:
    """All that calls with arguments of these sizes leave: results, the arguments afterwards, what
    is outside."""
    random = np.random.default_rng(seed)
    td.manual_seed(seed)

    def new(shape: tuple[int, ...]) -> td.Tensor:
        return td.asarray(random.integers(-99, 99, shape).astype(np.int32), device=device)

    outside = new((4, 6))
    body = _body(device, program, outside)
    function = td.compile(body, dynamic=dynamic) if compiled else body
    found: list[Any] = []
    wholes: dict[Sizes, td.Tensor] = {}
    for call, each in enumerate(sizes):
        row, matrix = shapes_of(each)[:2]
        if each not in wholes:
            wholes[each] = new((matrix[0] + 4, matrix[1]))
        whole = wholes[each]
        arguments = [new(shape) for shape in (matrix, row, matrix, each)]
        arguments[2] = whole[call : call + matrix[0]]  # a view, from another place each time
        found += function(arguments, 2, 1 + (seed + call // 2) % 3)
        found += [*arguments, whole]
        if call == 1:
            outside += 1  # is seen by the next call
    found.append(outside)
    return [array.numpy() if isinstance(array, td.Tensor) else array for array in found]


def _compare(
    program: Sequence[Instruction],
    seed: int,
    sizes: Sequence[Sizes] = (USUAL,) * 3,
    dynamic: bool | None = None,
    names: Sequence[str] = ("cpu", "webgpu"),
) -> None:
    for name in (*names, *(["cuda"] if td.is_available("cuda") else [])):
        device = td.device(name)
        expected = _calls(device, program, seed, sizes, compiled=False)
        found = _calls(device, program, seed, sizes, True, dynamic)
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            np.testing.assert_array_equal(other, one, err_msg=f"array {number} on {name}")


@pytest.mark.timeout(3000)
@settings(max_examples=_EXAMPLES)
@given(_numbers, _programs)
def test_a_replay_does_what_the_program_does(seed: int, program: list[Instruction]) -> None:
    _compare([each for each in program if each.what != _READ], seed)


@pytest.mark.timeout(3000)
@settings(max_examples=_EXAMPLES // 4)
@given(_numbers, _programs)
def test_so_does_a_program_that_reads(seed: int, program: list[Instruction]) -> None:
    _compare([*program[:5], Instruction(_READ, 1, 2, 3), *program[5:]], seed)


_sizes = st.sampled_from(
    [USUAL, (1, 2, 3), (3, 2, 7), (2, 4, 1), (0, 3, 2), (5, 5, 5), (2, 3, 9), (3, 3, 4)]
)
_near = st.sampled_from([(2, 5, 11), (2, 5, 12), (2, 5, 13), (2, 5, 18)])


@pytest.mark.timeout(3000)
@settings(max_examples=_EXAMPLES // 2)
@given(
    _numbers,
    _programs,
    st.lists(_sizes, min_size=6, max_size=6) | st.lists(_near, min_size=6, max_size=6),
    st.sampled_from([None, True]),
    st.sampled_from(["cpu", "webgpu", "dawn"]),
)
def test_sizes_may_change_from_call_to_call(
    seed: int,
    program: list[Instruction],
    sizes: list[Sizes],
    dynamic: bool | None,
    name: str,
) -> None:
    program = [each for each in program[:_MOST_DRAWN] if each.what != _READ]
    _compare(program, seed, sizes, dynamic, [name if td.is_available(name) else "cpu"])


def test_traces_with_symbols_are_replayed_for_other_sizes() -> None:
    """That the fuzzer above compares what it is to compare."""
    program = [Instruction(each, 5, 3, 2) for each in (0, 1, 2, 3, 6, 13, 14, _DRAW)]
    before = counts()
    _compare(program, 7, [(2, 5, n) for n in (11, 12, 13, 17, 18, 19, 20)], names=["cpu"])
    added = counts() - before
    assert added.resized >= 3
    devices = 1 + td.is_available("cuda")  # that `_compare` runs it on
    assert added.traces <= 5 * devices
