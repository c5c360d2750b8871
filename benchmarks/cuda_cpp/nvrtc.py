"""The peer: the same source compiled by NVRTC and launched with cuda-bindings alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.cuda_cpp.workloads import Launch, NumPy, Problem, Results, Workload


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of cuda-bindings; RuntimeError if it fails."""
    status, *results = function(*arguments)
    if int(status):
        raise RuntimeError(f"{function.__name__} gave {status}")
    return results[0] if len(results) == 1 else tuple(results)


class Peer:
    """A problem's kernels, compiled for a card, its arrays there, and its launches.

    They go to treadle's own stream: events of it measure these launches too.
    """

    def __init__(self, card: td.Device, workload: Workload, problem: Problem) -> None:
        from cuda.bindings import driver

        self._driver = driver
        self._card = card
        self._stream = card.default_stream.handle.handle  # type: ignore[attr-defined]
        call(driver.cuInit, 0)
        device = call(driver.cuDeviceGet, 0)
        call(driver.cuCtxSetCurrent, call(driver.cuDevicePrimaryCtxRetain, device))
        card.synchronize()
        image, names = self._compile(workload, problem, device)
        self._module = call(driver.cuModuleLoadData, image)
        self._shapes = dict(problem.arrays)
        self._memory = {name: self._upload(array) for name, array in problem.arrays.items()}
        for name, values in problem.constants.items():
            address, size = call(driver.cuModuleGetGlobal, self._module, name.encode())
            assert size == values.nbytes
            call(driver.cuMemcpyHtoD, address, values.ctypes.data, size)
        self._outputs = problem.outputs
        self._kept: list[Any] = []
        self._launches = [
            self._prepare(launch, name)
            for launch, name in zip(problem.launches, names, strict=True)
        ]

    def _compile(
        self, workload: Workload, problem: Problem, device: Any
    ) -> tuple[bytes, list[bytes]]:
        """Machine code, and the names that the launches' kernels have in it."""
        from cuda.bindings import nvrtc

        attribute = self._driver.CUdevice_attribute
        major, minor = (
            call(self._driver.cuDeviceGetAttribute, one, device)
            for one in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        source = workload.path.read_bytes()
        program = call(nvrtc.nvrtcCreateProgram, source, workload.file.encode(), 0, [], [])
        expressions = [_expression(launch) for launch in problem.launches]
        for expression in expressions:
            call(nvrtc.nvrtcAddNameExpression, program, expression)
        options = [f"-arch=sm_{major}{minor}".encode(), b"--std=c++17"]
        try:
            call(nvrtc.nvrtcCompileProgram, program, len(options), options)
        except RuntimeError as error:
            log = bytearray(call(nvrtc.nvrtcGetProgramLogSize, program))
            call(nvrtc.nvrtcGetProgramLog, program, log)
            raise RuntimeError(f"NVRTC: {log.decode(errors='replace')}") from error
        image = bytearray(call(nvrtc.nvrtcGetCUBINSize, program))
        call(nvrtc.nvrtcGetCUBIN, program, image)
        names = [bytes(call(nvrtc.nvrtcGetLoweredName, program, one)) for one in expressions]
        call(nvrtc.nvrtcDestroyProgram, program)
        return bytes(image), names

    def _upload(self, array: NumPy) -> int:
        address = int(call(self._driver.cuMemAlloc, array.nbytes))
        data = np.ascontiguousarray(array)
        call(self._driver.cuMemcpyHtoD, address, data.ctypes.data, data.nbytes)
        return address

    def _prepare(self, launch: Launch, name: bytes) -> tuple[Any, ...]:
        """What the driver is called with."""
        function = call(self._driver.cuModuleGetFunction, self._module, name)
        values: list[Any] = []
        for argument in launch.arguments:
            if isinstance(argument, str):
                values.append(ctypes.c_uint64(self._memory[argument]))
            else:
                number = ctypes.c_int32 if isinstance(argument, int) else ctypes.c_float
                values.append(number(argument))
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self._kept += [values, pointers]
        grid, block = _two(launch.grid), _two(launch.block)
        return (
            function, *grid, 1, *block, 1, 0, self._stream, ctypes.addressof(pointers), 0,
        )  # fmt: skip

    def run(self) -> None:
        """Launch all, one after the other."""
        for arguments in self._launches:
            call(self._driver.cuLaunchKernel, *arguments)

    def results(self) -> Results:
        """What is in the outputs now."""
        self._card.synchronize()
        found = {}
        for name in self._outputs:
            back = np.empty_like(self._shapes[name])
            call(self._driver.cuMemcpyDtoH, back.ctypes.data, self._memory[name], back.nbytes)
            found[name] = back
        return found

    def close(self) -> None:
        """Give the memory back."""
        self._card.synchronize()
        for address in self._memory.values():
            call(self._driver.cuMemFree, address)
        call(self._driver.cuModuleUnload, self._module)


def _expression(launch: Launch) -> bytes:
    arguments = f"<{', '.join(map(str, launch.template))}>" if launch.template else ""
    return f"{launch.kernel}{arguments}".encode()


def _two(extent: int | tuple[int, int]) -> tuple[int, int]:
    return (extent, 1) if isinstance(extent, int) else extent
