"""Drawn programs of loops, branches and writes, captured in a graph, beside NumPy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.runtime.pace import Pace

SIZE, ARRAYS = 6, 3
PROGRAMS = 16
Program = list[tuple[Any, ...]]


@td.kernel
def bump(x: td.Array[td.i32], y: td.Array[td.i32]):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] + (y[i] & 7)


def drawn(draw: random.Random, depth: int = 0) -> Program:
    """Statements: a name, arrays by their numbers, and for a body its own statements."""
    kinds = ["add", "increment", "shift", "kernel", "swap", "temporary", "part", "flip"]
    program: Program = []
    for _ in range(draw.randint(1, 4)):
        if depth < 3 and draw.random() < 0.3:
            body = drawn(draw, depth + 1)
            if draw.random() < 0.6:
                count, limit = draw.randint(0, 9), draw.choice([None, None, 3, 5])
                program.append(("while", count, limit, draw.random() < 0.5, body))
            else:
                program.append(("if", draw.randrange(ARRAYS), draw.randrange(SIZE), body))
        else:
            program.append((draw.choice(kinds), *draw.sample(range(ARRAYS), 2)))
    return program


def statement(kind: str, a: Any, b: Any) -> None:
    """A statement without a body, on two tensors or two NumPy arrays."""
    if kind == "add":
        a[...] = (a + b) & 1023
    elif kind == "increment":
        a += 3
    elif kind == "shift":
        a[1:] = b[:-1] + 0
    elif kind == "swap":
        old = a + 0
        a[...] = b
        b[...] = old
    elif kind == "temporary":
        made = a * 2 + 1
        if isinstance(made, td.Tensor):
            made.realize()
        made[:2] = 7
        b[...] = (made + b) & 1023
    elif kind == "part":
        a[2] = b.sum() & 255
    elif kind == "flip":
        a[...] = a[::-1] + 0
    elif isinstance(a, td.Tensor):
        bump.launch(SIZE, a, b)
    else:
        a += b & 7


def capture(
    program: Program, arrays: list[Any], graph: td.Graph, flags: Iterator[tuple[Any, Any]]
) -> None:
    """Record a program. `flags` are a counter and a condition for each loop."""
    for kind, *what in program:
        if kind == "while":
            count, limit, first, body = what
            counter, more = next(flags)
            counter[...] = 0
            more[...] = count > 0
            with graph.while_(more, limit):
                for early in (True, False):
                    if early is first:
                        counter += 1
                        more[...] = counter < count
                    if early:
                        capture(body, arrays, graph, flags)
        elif kind == "if":
            number, place, body = what
            with graph.if_(arrays[number][place]):
                capture(body, arrays, graph, flags)
        else:
            statement(kind, arrays[what[0]], arrays[what[1]])


def run(program: Program, arrays: list[Any]) -> None:
    """Run a program with NumPy."""
    for kind, *what in program:
        if kind == "while":
            count, limit, _, body = what
            for _ in range(count if limit is None else min(count, limit)):
                run(body, arrays)
        elif kind == "if":
            number, place, body = what
            if arrays[number][place]:
                run(body, arrays)
        else:
            statement(kind, arrays[what[0]], arrays[what[1]])


def loops(program: Program) -> int:
    bodies = [each for each in program if each[0] in ("while", "if")]
    return sum((each[0] == "while") + loops(each[-1]) for each in bodies)


@pytest.mark.parametrize("part", range(2))
def test_drawn_programs(device, rng, monkeypatch, part):
    """Three replays, the last after an array was written: the elements are those of NumPy."""
    monkeypatch.setattr(Pace, "_worthwhile", lambda _: 64)  # batches as large as possible
    for _ in range(PROGRAMS // 2):
        seed = int(rng.integers(1 << 31))
        draw = random.Random(seed)
        program = drawn(draw)
        host = [rng.integers(0, 4, SIZE).astype(np.int32) for _ in range(ARRAYS)]
        arrays = [td.asarray(each) for each in host]
        flags = [
            (td.zeros((), dtype=td.int32), td.zeros((), dtype=td.bool))
            for _ in range(loops(program))
        ]
        graph = td.Graph(device)
        with graph.capture():
            capture(program, arrays, graph, iter(flags))
        for replay in range(3):
            if replay == 2:
                arrays[0][...] = 1
                host[0][...] = 1
            graph.replay()
            run(program, host)
            found, expected = ([e.tolist() for e in each] for each in (arrays, host))
            assert found == expected, (seed, replay, program)
        graph.release()
