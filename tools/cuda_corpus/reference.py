"""CUDA itself: a cubin's kernel launched through the driver, with nothing of treadle in it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from tools.cuda_corpus.spec import Argument, Array, Fields, NumPy, Record, Trial, Vector, dims

_MARGIN = 4096  # bytes around every array: what reads just outside of one must not end the context
_DYNAMIC_SHARED = 48 << 10  # what a kernel may use without being asked


class CudaError(RuntimeError):
    """A call of the driver that failed; after some of them the context is dead."""


def call(name: str, *arguments: Any) -> Any:
    """Call a function of the driver; CudaError if it fails."""
    from cuda.bindings import driver

    status, *results = getattr(driver, name)(*arguments)
    if int(status):
        _, text = driver.cuGetErrorName(status)
        raise CudaError(f"{name} gave {text.decode() if text else int(status)}")
    return results[0] if len(results) == 1 else tuple(results)


def open_card() -> None:
    """Make the first card's context current."""
    call("cuInit", 0)
    device = call("cuDeviceGet", 0)
    call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", device))


class Memory:
    """An array on the card, with a margin on both sides."""

    def __init__(self, data: NumPy) -> None:
        self.data = np.ascontiguousarray(data).reshape(data.shape)
        self.whole = call("cuMemAlloc", data.nbytes + 2 * _MARGIN)
        call("cuMemsetD8", self.whole, 0, data.nbytes + 2 * _MARGIN)
        self.address = int(self.whole) + _MARGIN
        if data.nbytes:
            call("cuMemcpyHtoD", self.address, self.data.ctypes.data, data.nbytes)

    def read(self) -> NumPy:
        """What is in it now."""
        back = np.empty_like(self.data)
        if back.nbytes:
            call("cuMemcpyDtoH", back.ctypes.data, self.address, back.nbytes)
        return back

    def free(self) -> None:
        """Give it back."""
        call("cuMemFree", self.whole)


def run(trial: Trial, cubin: Path, entry: str) -> list[NumPy]:
    """The outputs of a trial."""
    rng = trial.rng()
    module = call("cuModuleLoadData", cubin.read_bytes())
    memories: list[Memory] = []
    try:
        function = call("cuModuleGetFunction", module, entry.encode())
        outputs: list[Memory] = []

        def given(argument: Argument) -> bytes:
            if isinstance(argument, Fields):
                return _struct([given(one) for one in argument.values.values()])
            if not isinstance(argument, Array):
                return _bytes_of(argument)
            memory = Memory(argument.make(rng))
            memories.append(memory)
            outputs.extend([memory] * argument.output)
            return memory.address.to_bytes(8, "little")

        values = [given(argument) for argument in trial.arguments]
        _check_parameters(function, values)
        for name, constant in trial.constants.items():
            data = constant.make(rng) if isinstance(constant, Array) else constant.numpy()
            address, size = _global(module, cubin, name)
            data = np.ascontiguousarray(data)
            if data.nbytes > size:
                raise CudaError(f"{name} has {size} bytes, not {data.nbytes}")
            call("cuMemcpyHtoD", address, data.ctypes.data, data.nbytes)
        _launch(function, trial, values)
        found = [memory.read() for memory in outputs]
        for name, (dtype, shape) in trial.read_back.items():
            back = np.empty(shape, dtype)
            address, _ = _global(module, cubin, name)
            call("cuMemcpyDtoH", back.ctypes.data, address, back.nbytes)
            found.append(back)
        return found
    finally:
        for memory in memories:
            memory.free()
        call("cuModuleUnload", module)


def _struct(fields: list[bytes]) -> bytes:
    """A struct of numbers and pointers: each lies at a multiple of its size."""
    made = b""
    for one in fields:
        made += bytes(-len(made) % len(one)) + one
    return made + bytes(-len(made) % max(map(len, fields)))


def _bytes_of(argument: Any) -> bytes:
    """A parameter's bytes."""
    match argument:
        case None:
            return bytes(8)
        case Vector(dtype, values):
            return np.array(values, dtype).tobytes()
        case Record():
            return argument.numpy().tobytes()
        case np.generic():  # before Python's numbers: float64 is one of them too
            return argument.tobytes()
        case bool():
            return np.bool_(argument).tobytes()
        case int():
            return np.int32(argument).tobytes()
        case float():
            return np.float32(argument).tobytes()
        case _:
            raise TypeError(f"{argument!r} is no argument")


def _check_parameters(function: Any, values: list[bytes]) -> None:
    """CudaError unless the kernel's parameters have just these sizes."""
    from cuda.bindings import driver

    for position, value in enumerate(values):
        status, _, size = driver.cuFuncGetParamInfo(function, position)
        if int(status) or size != len(value):
            raise CudaError(f"argument {position + 1} has {len(value)} bytes, not {size}")
    if not int(driver.cuFuncGetParamInfo(function, len(values))[0]):
        raise CudaError(f"the kernel has more parameters than {len(values)}")


def _global(module: Any, cubin: Path, name: str) -> tuple[int, int]:
    """Address and size of a variable of a module; internal ones have longer names."""
    from cuda.bindings import driver

    names = [name.encode()]
    text = cubin.read_bytes()
    at = text.find(name.encode())
    while at >= 0:
        begin, end = text.rfind(b"\0", 0, at) + 1, text.find(b"\0", at)
        names.append(text[begin:end])
        at = text.find(name.encode(), end)
    for one in dict.fromkeys(names):
        status, address, size = driver.cuModuleGetGlobal(module, one)
        if not int(status):
            return int(address), int(size)
    raise CudaError(f"the cubin has no variable {name}")


def _launch(function: Any, trial: Trial, values: list[bytes]) -> None:
    """Launch, and wait for the end."""
    from cuda.bindings import driver

    if trial.shared > _DYNAMIC_SHARED:
        attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, attribute, trial.shared)
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    pointers = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
    configuration = (*dims(trial.grid), *dims(trial.block), trial.shared, 0)
    if trial.cooperative:
        call("cuLaunchCooperativeKernel", function, *configuration, ctypes.addressof(pointers))
    else:
        call("cuLaunchKernel", function, *configuration, ctypes.addressof(pointers), 0)
    call("cuCtxSynchronize")
