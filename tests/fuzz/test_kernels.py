"""Drawn kernels must do on every device what they do as plain Python, to the last bit."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import treadle as td
from tests.fuzz.programs import Program, program_from

_numbers = count()


def kernel_of(program: Program) -> Any:
    """The kernel that a program's source defines, with lines that errors can show."""
    file = f"<fuzzed {next(_numbers)}>"
    linecache.cache[file] = (len(program.source), None, program.source.splitlines(True), file)
    scope: dict[str, Any] = {"__name__": "fuzzed"}
    exec(compile(program.source, file, "exec"), scope)
    return scope["fuzzed"]


def launch(program: Program, kernel: Any, wholes: dict[str, Any]) -> None:
    """Run it on arrays, which are NumPy's or a device's."""
    arguments = dict(program.scalars)
    for array in program.arrays:
        arguments[array.name] = array.view(wholes[array.name])
    for twin, other in program.same:
        arguments[twin] = arguments[other]
    ordered = [arguments[name] for name in program.order]
    if program.threads is None:
        kernel[program.grid, program.block](*ordered)
    else:
        kernel.launch(program.threads, *ordered)


def interpreted(program: Program, kernel: Any) -> dict[str, np.ndarray[Any, Any]]:
    wholes = {array.name: array.whole() for array in program.arrays}
    with td.interpret():
        launch(program, kernel, wholes)
    return wholes


def run_on(device: td.Device, program: Program, kernel: Any) -> dict[str, np.ndarray[Any, Any]]:
    wholes = {array.name: td.asarray(array.whole(), device=device) for array in program.arrays}
    with td.use_device(device):
        launch(program, kernel, wholes)
    return {name: whole.numpy() for name, whole in wholes.items()}


@cache
def devices() -> tuple[td.Device, ...]:
    return td.device("cpu"), td.device("webgpu")


def differences(
    expected: dict[str, np.ndarray[Any, Any]], found: dict[str, np.ndarray[Any, Any]]
) -> Iterator[str]:
    for name, right in expected.items():
        for at in np.argwhere(np.atleast_1d(right != found[name]))[:3]:
            index = tuple(int(k) for k in at)
            yield f"{name}{list(index)} is {found[name][index]}, not {right[index]}"


def check(program: Program) -> None:
    kernel = kernel_of(program)
    try:
        expected = interpreted(program, kernel)
        for device in devices():
            wrong = list(differences(expected, run_on(device, program, kernel)))
            assert not wrong, f"{device.id}: {'; '.join(wrong)}"
    except Exception as error:
        error.add_note(f"\n{program}")
        raise


@given(st.binary(min_size=400, max_size=1600))
@example(b"")
def test_devices_agree_with_plain_python(tape: bytes) -> None:
    check(program_from(tape))
