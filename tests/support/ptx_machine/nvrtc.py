"""CUDA C++ to PTX, by NVIDIA's run-time compiler: the machine runs what is printed as CUDA, too."""

from __future__ import annotations

from cuda.bindings import nvrtc

from treadle.codegen.records import KernelCode


def ptx_of(code: KernelCode) -> str:
    """The PTX of a kernel that is printed as CUDA C++, with the options that the driver uses."""
    virtual = code.dialect.replace("sm", "compute")
    options = [f"-arch={virtual}".encode(), b"--std=c++17", b"--fmad=true"]
    program = _checked(nvrtc.nvrtcCreateProgram(code.source.encode(), b"kernel.cu", 0, [], []))
    try:
        if int(nvrtc.nvrtcCompileProgram(program, len(options), options)[0]):
            log = bytearray(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
            _checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise AssertionError(f"{log.decode(errors='replace')}\n{code.source}")
        text = bytearray(_checked(nvrtc.nvrtcGetPTXSize(program)))
        _checked(nvrtc.nvrtcGetPTX(program, text))
        return text.rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(answer: tuple[object, ...]) -> object:
    status, *results = answer
    assert int(status) == 0, f"NVRTC: {status}"
    return results[0] if results else None
