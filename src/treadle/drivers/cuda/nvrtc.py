"""CUDA C++ to machine code, by NVIDIA's run-time compiler, where it is installed.

It makes machine code for the card's architecture and not PTX: PTX of a newer compiler is refused
by an older driver.
"""

from __future__ import annotations

from typing import Any

from treadle.codegen.records import KernelCode
from treadle.core.errors import CompileError, refused_by_compiler
from treadle.core.once import once


def compile_source(code: KernelCode, architecture: int) -> bytes:
    """Machine code (a cubin) of a kernel's CUDA C++ source."""
    nvrtc = _library()
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
def _library() -> Any:
    """`cuda.bindings.nvrtc` with its library, or None."""
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except Exception:  # noqa: BLE001  # whatever the package raises where the library is not there
        return None
    return nvrtc
