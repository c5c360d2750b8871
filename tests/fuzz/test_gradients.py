"""Drawn programs of array operations, views and writes in place: their gradients are PyTorch's, and
those of differences."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from treadle.core.errors import AutogradError
from treadle.runtime import settings as switches

try:
    import torch
except ImportError:  # there are machines that it has no wheel for
    torch = None

Shapes = tuple[tuple[int, ...], ...]
_SHAPES: Shapes = ((3, 4), (4,), (2, 3, 2))
_STEP = 1e-6


class Step(NamedTuple):
    """One operation on the arrays that there are; numbers say which arrays, axes and places."""

    what: int
    a: int
    b: int
    c: int


_numbers = st.integers(0, 999)
_programs = st.lists(st.builds(Step, _numbers, _numbers, _numbers, _numbers), max_size=14)


class Skipped(Exception):
    """A step does not fit the arrays that it is drawn for."""


class Program:
    """A drawn program in a namespace, Treadle's or PyTorch's. A step that PyTorch refuses is left
    out of both."""

    def __init__(self, space: Any, leaves: list[Any]) -> None:
        self.space = space
        self.pool = [leaf * 1.5 for leaf in leaves]

    def run(self, steps: list[Step], wanted: list[bool] | None = None) -> list[bool]:
        """Carry out the steps, or those that are wanted. Which were."""
        done = []
        for number, step in enumerate(steps):
            if wanted is not None and not wanted[number]:
                continue
            operation = _OPERATIONS[step.what % len(_OPERATIONS)]
            try:
                found = operation(self, self.pool[step.a % len(self.pool)], step)
            except (Skipped, RuntimeError):
                if wanted is not None:
                    raise
                done.append(False)
                continue
            done.append(True)
            if found is not None:
                self.pool.append(found)
        return done

    def other(self, x: Any, step: Step, to_its_shape: bool = False) -> Any:
        """Another array that broadcasts with x, or to x's shape."""
        y = self.pool[step.b % len(self.pool)]
        try:
            shape = np.broadcast_shapes(tuple(x.shape), tuple(y.shape))
        except ValueError:
            raise Skipped from None
        if to_its_shape and shape != tuple(x.shape):
            raise Skipped
        return y

    def axis(self, x: Any, step: Step) -> int:
        if not len(x.shape):
            raise Skipped
        return int(step.b % len(x.shape))

    def places(self, extent: int, step: Step) -> Any:
        drawn = np.random.default_rng(step.c).integers(0, extent, 3)
        return self.space.asarray(drawn, device="cpu")

    def total(self) -> Any:
        """A number that all arrays have a part in."""
        found: Any = 0.0
        for number, x in enumerate(self.pool):
            by = np.cos(np.arange(int(np.prod(x.shape))) + number).reshape(tuple(x.shape))
            found = found + (x * self.space.asarray(by, device="cpu")).sum()
        return found


def _function(program: Program, x: Any, step: Step) -> Any:
    return getattr(program.space, ("sin", "tanh", "square", "sigmoid")[step.c % 4])(x)


def _of_two(program: Program, x: Any, step: Step) -> Any:
    y = program.other(x, step)
    return (x * y, x + y, x - y, x / (y * y + 1))[step.c % 4]


def _slice(x: Any, axis: int, number: int) -> Any:
    extent = x.shape[axis]
    start = number % extent if extent else 0
    return (slice(None),) * axis + (slice(start, None, 1 + number // 7 % 2),)


def _part(program: Program, x: Any, step: Step) -> Any:
    axis = program.axis(x, step)
    return x[_slice(x, axis, step.c)] if step.c % 3 else x[(slice(None),) * axis + (0,)]


def _swapped(program: Program, x: Any, step: Step) -> Any:
    return program.space.swapaxes(x, program.axis(x, step), -1)


def _reshaped(program: Program, x: Any, step: Step) -> Any:
    return x.reshape(-1)


def _spread(program: Program, x: Any, step: Step) -> Any:
    return program.space.broadcast_to(x, (2, *tuple(x.shape)))


def _write(program: Program, x: Any, step: Step) -> None:
    where = _slice(x, program.axis(x, step), step.c)
    x[where] = program.other(x[where], step._replace(b=step.c), True)


def _in_place(program: Program, x: Any, step: Step) -> None:
    y = program.other(x, step, True)
    if step.c % 2:
        x *= y
    else:
        x += y


def _taken(program: Program, x: Any, step: Step) -> Any:
    axis = program.axis(x, step)
    return x[(slice(None),) * axis + (program.places(x.shape[axis], step),)]


def _put(program: Program, x: Any, step: Step) -> None:
    axis = program.axis(x, step)
    if program.space is not td and 0 in x.stride():  # it was broadcast
        raise Skipped
    # Each once: of values for one element PyTorch gives all that are dropped a gradient, too.
    chosen = np.random.default_rng(step.c).permutation(x.shape[axis])[:2]
    where = (slice(None),) * axis + (program.space.asarray(chosen, device="cpu"),)
    x[where] = program.pool[step.c % len(program.pool)].sum()


def _reduced(program: Program, x: Any, step: Step) -> Any:
    axis = program.axis(x, step)
    return x.cumsum(axis) if step.c % 3 == 0 else x.sum(axis) if step.c % 3 == 1 else x.mean(axis)


def _joined(program: Program, x: Any, step: Step) -> Any:
    return program.space.stack([x, x * 2])


def _rolled(program: Program, x: Any, step: Step) -> Any:
    axis, by = program.axis(x, step), step.c % 7 - 3
    if program.space is td:
        return td.roll(x, by, axis=axis) - x * td.roll(x, -by, axis=axis)
    return torch.roll(x, by, axis) - x * torch.roll(x, -by, axis)


def _put_together(program: Program, x: Any, step: Step) -> Any:
    axis = program.axis(x, step)
    parts = [x[_slice(x, axis, step.c)], x * 3]
    return (td.concat(parts, axis=axis) if program.space is td else torch.cat(parts, axis))[
        _slice(x, axis, step.c // 5)
    ]


def _copied(program: Program, x: Any, step: Step) -> Any:
    return x.detach() * x if step.c % 2 else x.clone()


def _written_unrecorded(program: Program, x: Any, step: Step) -> None:
    with program.space.no_grad():
        x *= 0.5


_OPERATIONS: list[Callable[[Program, Any, Step], Any]] = [
    _function, _of_two, _part, _swapped, _reshaped, _spread, _write, _in_place, _taken, _put,
    _reduced, _joined, _copied, _part, _in_place, _function, _written_unrecorded,
    _rolled, _put_together,
]  # fmt: skip


def _arrays(shapes: Shapes = _SHAPES) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape) for shape in shapes]


def _of_sizes(rows: int, columns: int, depth: int) -> Shapes:
    return (rows, columns), (columns,), (2, rows, depth)


_shapes = st.builds(_of_sizes, st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))


if torch is not None:

    @pytest.mark.timeout(3000)  # for all the examples together
    @settings(max_examples=25)
    @given(_programs, st.integers(0, 7).map(bool))  # most one by one, in few kernels
    def test_gradients_of_drawn_programs(steps: list[Step], eager: bool) -> None:
        _compare(steps, eager, _SHAPES)

    @pytest.mark.timeout(3000)
    @settings(max_examples=8)
    @given(_programs, st.lists(_shapes, min_size=3, max_size=3))
    def test_gradients_of_changing_sizes(steps: list[Step], sizes: list[Shapes]) -> None:
        for shapes in sizes:
            _compare(steps, False, shapes)

    def _compare(steps: list[Step], eager: bool, shapes: Shapes) -> None:
        """The gradients of a program beside PyTorch's."""
        theirs = [torch.as_tensor(x).requires_grad_() for x in _arrays(shapes)]
        program = Program(torch, theirs)
        done = program.run(steps)
        switches.eager = eager
        try:
            mine = [td.asarray(x, device="cpu").requires_grad_() for x in _arrays(shapes)]
            again = Program(td, mine)
            again.run(steps, done)
            assert [tuple(x.shape) for x in again.pool] == [tuple(x.shape) for x in program.pool]
            try:
                program.total().backward()
            except RuntimeError:  # a value that it needs was changed in place: x[:] = x is none
                with suppress(AutogradError):
                    again.total().backward()
                return
            again.total().backward()
            for x, y in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-9, atol=1e-9)
        finally:
            switches.eager = False


@pytest.mark.timeout(3000)
@settings(max_examples=8)
@given(_programs)
def test_gradients_are_those_of_differences(steps: list[Step]) -> None:
    steps = [step for step in steps if _OPERATIONS[step.what % len(_OPERATIONS)] in _EXACT]
    switches.eager = True
    try:
        leaves = [td.asarray(x, device="cpu").requires_grad_() for x in _arrays()]
        program = Program(td, leaves)
        done = program.run(steps)
        slopes = td.autograd.grad(program.total(), leaves)
        ways = [np.sin(np.arange(x.size)).reshape(x.shape) for x in _arrays()]

        def value(step: float) -> float:
            moved = [x + step * way for x, way in zip(_arrays(), ways, strict=True)]
            with td.no_grad():
                again = Program(td, [td.asarray(x, device="cpu") for x in moved])
                again.run(steps, done)
                return float(again.total().item())

        found = sum((x.numpy() * way).sum() for x, way in zip(slopes, ways, strict=True))
        expected = (value(_STEP) - value(-_STEP)) / (2 * _STEP)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    finally:
        switches.eager = False


# What is recorded, and is not refused because it overwrites what another one needs.
_EXACT = {_function, _of_two, _part, _swapped, _reshaped, _spread, _taken, _reduced, _joined}
