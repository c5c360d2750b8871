"""Drawn kernels must do on every device what they do as plain Python, to the last bit.

Kernels with barriers also run with few invocations a workgroup, where a lane runs many threads.
Tint, the stricter of WGSL's compilers, has to accept every kernel. An evaluator of PTX runs what is
printed for one of two generations of GPUs, or the PTX that NVIDIA's compiler makes of CUDA C++.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import treadle as td
from tests.fuzz.programs import Program, program_from
from tests.fuzz.running import arguments_of, differences, interpreted, kernel_of, run_on
from tests.support.ptx_device import ptx_device
from tests.support.ptx_machine.driver import NAMES as MACHINES
from tests.support.small_devices import small_device
from tests.support.tint import tint_error


@cache
def devices() -> tuple[td.Device, ...]:
    others = [td.device(name) for name in ("cuda", "dawn") if td.is_available(name)]
    return td.device("cpu"), td.device("webgpu"), *others


def devices_for(program: Program) -> tuple[td.Device, ...]:
    """Kernels with barriers run with few invocations, too."""
    together = "sync_threads" in program.source or "td.lane" in program.source
    if not together:
        return devices()
    small = [small_device(16, name) for name in ("webgpu", "dawn") if td.is_available(name)]
    return (*devices(), *small)


def refusal(program: Program, kernel: Any) -> str | None:
    """What Tint has against the kernel's WGSL. (Without a device, that is for eight arrays.)"""
    if len(program.order) - len(program.scalars) > 8:
        return None
    arguments = arguments_of(program, {array.name: array.whole() for array in program.arrays})
    return tint_error(kernel.source("wgsl", *arguments, block=program.block))


@contextmanager
def all_devices_for(program: Program) -> Iterator[list[td.Device]]:
    """The devices there are; and where no card runs PTX, an evaluator that does."""
    if td.is_available("cuda"):
        yield [*devices_for(program)]
        return
    with ptx_device(MACHINES[len(program.source) % len(MACHINES)]) as machine:
        yield [*devices_for(program), machine]


def check(program: Program) -> None:
    kernel = kernel_of(program)
    try:
        expected = interpreted(program, kernel)
        faults = []
        with all_devices_for(program) as found:
            for device in found:
                wrong = list(differences(expected, run_on(device, program, kernel)))
                faults += [f"{device.id} ({device.name}): {'; '.join(wrong)}"] if wrong else []
        assert not faults, "\n".join(faults)
        refused = refusal(program, kernel)
        assert refused is None, f"Tint: {refused}"
    except Exception as error:
        error.add_note(f"\n{program}")
        raise


@pytest.mark.timeout(3000)  # for all the examples together
@settings(max_examples=settings.default.max_examples * 3 // 10)
@given(st.binary(min_size=400, max_size=1600))
@example(b"")
def test_devices_agree_with_plain_python(tape: bytes) -> None:
    check(program_from(tape))
