"""Drawn programs, run: as plain Python, and on devices."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

import treadle as td
from tests.fuzz.programs import Program

Arrays = dict[str, np.ndarray[Any, Any]]
_numbers = count()


def kernel_of(program: Program) -> Any:
    """The kernel that a program's source defines, with lines that errors can show."""
    file = f"<fuzzed {next(_numbers)}>"
    linecache.cache[file] = (len(program.source), None, program.source.splitlines(True), file)
    scope: dict[str, Any] = {"__name__": "fuzzed"}
    exec(compile(program.source, file, "exec"), scope)
    return scope["fuzzed"]


def arguments_of(program: Program, wholes: dict[str, Any]) -> list[Any]:
    """The arguments in order; arrays are NumPy's or a device's."""
    arguments = dict(program.scalars)
    for array in program.arrays:
        arguments[array.name] = array.view(wholes[array.name])
    for twin, other in program.same:
        arguments[twin] = arguments[other]
    return [arguments[name] for name in program.order]


def launch(program: Program, kernel: Any, wholes: dict[str, Any]) -> None:
    """Run a kernel once; the arrays are changed."""
    arguments = arguments_of(program, wholes)
    if program.threads is None:
        kernel[program.grid, program.block](*arguments)
    else:
        kernel.launch(program.threads, *arguments)


def interpreted(program: Program, kernel: Any) -> Arrays:
    """The arrays after a run as plain Python."""
    wholes = {array.name: array.whole() for array in program.arrays}
    with td.interpret():
        launch(program, kernel, wholes)
    return wholes


def run_on(device: td.Device, program: Program, kernel: Any) -> Arrays:
    """The arrays after a run on a device."""
    wholes = {array.name: td.asarray(array.whole(), device=device) for array in program.arrays}
    with td.use_device(device):
        launch(program, kernel, wholes)
    return {name: whole.numpy() for name, whole in wholes.items()}


def differences(expected: Arrays, found: Arrays) -> Iterator[str]:
    """Where two runs' arrays differ, in words, a few places an array."""
    for name, right in expected.items():
        for at in np.argwhere(np.atleast_1d(right != found[name]))[:3]:
            index = tuple(int(k) for k in at)
            yield f"{name}{list(index)} is {found[name][index]}, not {right[index]}"
