"""Printed code to machine code in a card's memory, and what a launch needs of it.

PTX goes through the driver's linker, which gives machine code (a cubin) that can be kept on disk;
CUDA C++ goes through NVRTC, NVIDIA's run-time compiler, if that is installed. Code is loaded at
once. Otherwise the driver would load it at the first launch and wait for all running work: for
ever, if a running kernel waits for this one.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treadle.codegen.records import MAP_BYTES, KernelCode
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError, TreadleError, refused_by_compiler
from treadle.core.folding import fit_grid
from treadle.core.once import once
from treadle.drivers.base import CompiledKernel
from treadle.drivers.cuda import errors
from treadle.drivers.cuda.calls import pack_record
from treadle.drivers.cuda.library import address_of
from treadle.drivers.cuda.memory import CudaBuffer
from treadle.drivers.tensor_maps import with_maps

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice

_MOST_RECORDS = 1024  # grids of a kernel that are remembered
_LOG_BYTES = 1 << 14
# Of CUjit_option: where the linker writes what it has to say, and how many bytes fit.
_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE = 3, 4, 5, 6
_VERBOSE = 12
_PTX = 1  # CU_JIT_INPUT_PTX
_MOVED = "setmaxnreg."  # in PTX whose threads hand registers to others
# Of CUfunction_attribute.
_MAX_THREADS, _REGISTERS, _DYNAMIC_SHARED = 0, 4, 8
_WIDE = ("i64", "u64", "f64")


class CudaKernel(CompiledKernel):
    """Machine code of a kernel, loaded."""

    __slots__ = (
        "_argument_bytes", "_device", "code", "device", "function", "image", "maps", "name",
        "pack", "records", "size",
    )  # fmt: skip
    device: CudaDevice

    def __init__(self, device: CudaDevice, code: KernelCode, image: bytes, function: int) -> None:
        self.device = device
        self.code = code
        self.name = code.name
        self.image = image
        self.function = function
        self.size = code.layout.size
        self.maps = self._map_places() if code.maps else ()
        self.pack = struct.Struct(f"<{len(code.bindings)}Q").pack
        self.records: dict[Dim3, bytes] = {}  # as a launch hands them on, by grid
        self._argument_bytes = self.maps[-1] + MAP_BYTES if self.maps else argument_bytes(code)

    def make_record(self, grid: Dim3) -> bytes | None:
        """What a launch of `grid` blocks hands on; None for a grid without blocks."""
        if min(grid) == 0:
            return None
        x, y, z = self._fit(grid)
        record = pack_record(
            self.function, self._argument_bytes, x, y, z, *self.code.workgroup,
            self.code.dynamic_shared,
        )  # fmt: skip
        if len(self.records) >= _MOST_RECORDS:
            self.records.clear()
        self.records[grid] = record
        return record

    def arguments(self, pointers: bytes, parameters: bytes) -> bytes:
        """What a launch with tensor maps hands over."""
        return with_maps(self.code, self.maps, pointers, parameters, self.device.tensor_maps)

    def _map_places(self) -> tuple[int, ...]:
        """Where the kernel's tensor maps lie among its parameters. The assembler aligns them where
        the parameters end up, which need not begin at such a multiple themselves."""
        code, found = self.code, []
        first = len(code.bindings) + len(code.layout.slots)
        place, size = ctypes.c_size_t(), ctypes.c_size_t()
        for number in range(first, first + len(code.maps)):
            self.device.do(
                "cuFuncGetParamInfo", self.function, number, ctypes.addressof(place),
                ctypes.addressof(size),
            )  # fmt: skip
            found.append(place.value)
        return tuple(found)

    def _fit(self, grid: Dim3) -> tuple[int, int, int]:
        """The grid itself, or if it is over a limit and the code allows, folded."""
        most = self.device.info.limits.max_grid
        fitting = fit_grid(grid, most, self.code.folded) if min(grid) > 0 else None
        if fitting is not None and fitting.x == grid.x:  # more does not come: x has 31 bits
            return fitting
        raise LaunchError(
            f"a grid of {tuple(grid)} blocks is not possible for kernel {self.name}: "
            f"{self.device.info.id} takes up to {tuple(most)}. Launch it in parts, or spread it "
            "over more axes"
        )

    def split(self, buffers: Sequence[CudaBuffer]) -> tuple[list[CudaBuffer], list[CudaBuffer]]:
        """The buffers that the kernel only reads, and those that it writes."""
        reads: list[CudaBuffer] = []
        writes: list[CudaBuffer] = []
        for binding, buffer in zip(self.code.bindings, buffers, strict=True):
            (writes if binding.writes else reads).append(buffer)
        return reads, writes

    def refusal(self, code: int, grid: Dim3) -> LaunchError | None:
        """The error for a launch that the driver refused, if it did."""
        if code not in (errors.INVALID_VALUE, errors.LAUNCH_OUT_OF_RESOURCES):
            return None
        threads = self.code.workgroup.count
        registers, most = self._attribute(_REGISTERS), self._attribute(_MAX_THREADS)
        return LaunchError(
            f"{self.device.info.id} ({self.device.info.name}) refused to launch `{self.name}` "
            f"({self.device.library.describe(code)}): {tuple(grid)} blocks of "
            f"{tuple(self.code.workgroup)} threads, {threads} threads × {registers} registers = "
            f"{threads * registers:,} in a block, of which the driver takes at most {most} threads "
            f"for this kernel, and {self.code.shared_bytes:,} bytes of shared memory: use a "
            "smaller block, or less shared memory"
        )

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.device.quietly("cuFuncGetAttribute", ctypes.addressof(value), number, self.function)
        return value.value


def argument_bytes(code: KernelCode) -> int:
    """The bytes that a kernel takes: its pointers and parameters, without padding at the end."""
    slots = code.layout.slots
    end = slots[-1].offset + (8 if slots[-1].stored in _WIDE else 4) if slots else code.layout.size
    return 8 * len(code.bindings) + end


def compile_kernel(device: CudaDevice, code: KernelCode, binary: bytes | None) -> CudaKernel:
    """A kernel, from the machine code that is known, else from its source."""
    _check_limits(device, code)
    if binary is not None:
        try:
            return _load(device, code, binary)
        except (CompileError, LaunchError):
            device.check()  # the driver refuses code that it made itself: it was updated
    return _load(device, code, _BUILDERS[code.target](device, code))


def _check_limits(device: CudaDevice, code: KernelCode) -> None:
    limits = device.info.limits
    if code.shared_bytes > limits.max_shared_memory:
        raise CompileError(
            f"`{code.name}` uses {code.shared_bytes} bytes of shared memory, and "
            f"{device.info.id} has {limits.max_shared_memory} for a block: use less"
        )


def _load(device: CudaDevice, code: KernelCode, image: bytes) -> CudaKernel:
    """Machine code into the card's memory."""
    module, function = ctypes.c_uint64(), ctypes.c_uint64()
    entry = code.entry.encode() + b"\0"
    try:
        device.do("cuModuleLoadData", ctypes.addressof(module), address_of(image))
        device.modules.append(module.value)
        device.do(
            "cuModuleGetFunction", ctypes.addressof(function), module.value, address_of(entry)
        )
        if device.calls.has("cuFuncLoad"):
            device.do("cuFuncLoad", function.value)
        if code.dynamic_shared:
            device.do("cuFuncSetAttribute", function.value, _DYNAMIC_SHARED, code.dynamic_shared)
    except LaunchError as error:
        if image == code.source.encode() + b"\0":
            link_ptx(device, code)  # says what is wrong
        raise CompileError(f"machine code of `{code.name}` could not be loaded: {error}") from None
    kernel = CudaKernel(device, code, image, function.value)
    kernel._attribute(_REGISTERS)  # older drivers than cuFuncLoad load a function to answer this
    return kernel


def _link_ptx(device: CudaDevice, code: KernelCode) -> bytes:
    """Machine code of PTX. Where registers are moved, the PTX itself: the linker's assembler leaves
    them where they are, since other parts of a program might not know of it (C7504), and the one
    that loads a whole program moves them. The driver remembers what it makes of that."""
    if _MOVED in code.source:
        return code.source.encode() + b"\0"
    return link_ptx(device, code)[0]


def link_ptx(device: CudaDevice, code: KernelCode) -> tuple[bytes, str]:
    """Machine code of PTX, by the driver's own assembler and linker, and what these said of it:
    registers, what was spilled, advice. Where registers are moved, the PTX itself."""
    source = code.source.encode() + b"\0"
    name = code.name.encode() + b"\0"
    info, complaints = (ctypes.create_string_buffer(_LOG_BYTES) for _ in range(2))
    asked = (_INFO_LOG, _INFO_LOG_SIZE, _ERROR_LOG, _ERROR_LOG_SIZE, _VERBOSE)
    options = (ctypes.c_int * len(asked))(*asked)
    values = (ctypes.c_uint64 * len(asked))(
        ctypes.addressof(info), _LOG_BYTES, ctypes.addressof(complaints), _LOG_BYTES, 1
    )
    if _MOVED in code.source:
        module = ctypes.c_uint64()
        try:
            device.do(
                "cuModuleLoadDataEx", ctypes.addressof(module), address_of(source), len(asked),
                ctypes.addressof(options), ctypes.addressof(values),
            )  # fmt: skip
        except TreadleError as error:
            raise _refused(device, code, complaints.value, error) from None
        device.quietly("cuModuleUnload", module.value)
        return source, info.value.decode(errors="replace")
    state, image, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
    device.do(
        "cuLinkCreate", len(asked), ctypes.addressof(options), ctypes.addressof(values),
        ctypes.addressof(state),
    )  # fmt: skip
    try:
        device.do(
            "cuLinkAddData", state.value, _PTX, address_of(source), len(source), address_of(name),
            0, 0, 0,
        )  # fmt: skip
        device.do("cuLinkComplete", state.value, ctypes.addressof(image), ctypes.addressof(size))
        remarks = info.value.decode(errors="replace")
        return ctypes.string_at(image.value, size.value), remarks
    except TreadleError as error:
        raise _refused(device, code, complaints.value, error) from None
    finally:
        device.quietly("cuLinkDestroy", state.value)


def _refused(
    device: CudaDevice, code: KernelCode, complaints: bytes, error: TreadleError
) -> CompileError:
    """The error for PTX that the driver's assembler refused."""
    device.check()
    words = complaints.decode(errors="replace").strip() or str(error)
    return refused_by_compiler("the NVIDIA driver", code.name, words, code.source)


def compile_source(code: KernelCode, architecture: int) -> bytes:
    """Machine code (a cubin) of a kernel's CUDA C++ source.

    It is for the card's architecture, and not PTX: PTX of a newer compiler is refused by an older
    driver.
    """
    nvrtc = _nvrtc()
    if nvrtc is None:
        raise CompileError(
            f"`{code.name}` was printed as CUDA C++, which NVIDIA's run-time compiler compiles, "
            "and that is not installed: pip install nvidia-cuda-nvrtc; or let kernels be printed "
            "as PTX, which the driver takes itself (TREADLE_CUDA_LANGUAGE=ptx)"
        )
    options = [f"-arch=sm_{architecture}".encode(), b"--std=c++17", b"--fmad=true"]
    program = _ask(nvrtc, code, "nvrtcCreateProgram", code.source.encode(), b"kernel.cu", 0, [], [])
    try:
        failed = int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0])
        if failed:
            words = _log(nvrtc, code, program) or f"error {failed}"
            raise refused_by_compiler("NVIDIA's compiler", code.name, words, code.source)
        image = bytearray(_ask(nvrtc, code, "nvrtcGetCUBINSize", program))
        _ask(nvrtc, code, "nvrtcGetCUBIN", program, image)
        return bytes(image)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, code: KernelCode, program: Any) -> str:
    text = bytearray(_ask(nvrtc, code, "nvrtcGetProgramLogSize", program))
    _ask(nvrtc, code, "nvrtcGetProgramLog", program, text)
    return text.rstrip(b"\0").decode(errors="replace").strip()


def _ask(nvrtc: Any, code: KernelCode, name: str, *arguments: Any) -> Any:
    status, *results = getattr(nvrtc, name)(*arguments)
    if int(status):
        raise CompileError(f"NVIDIA's compiler failed at `{code.name}`: {name} gave {status}")
    return results[0] if results else None


@once
def _nvrtc() -> Any:
    """`cuda.bindings.nvrtc` with its library, or None."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception:  # noqa: BLE001  # whatever the package raises where the library is not there
        return None
    return nvrtc


def _compile_cuda(device: CudaDevice, code: KernelCode) -> bytes:
    return compile_source(code, device.architecture)


_BUILDERS = {"ptx": _link_ptx, "cuda": _compile_cuda}
