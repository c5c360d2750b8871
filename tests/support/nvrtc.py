"""NVRTC, NVIDIA's compiler of CUDA C++, as a checker: it needs no GPU and no driver."""

from __future__ import annotations


def nvrtc_error(source: str, architecture: str) -> str | None:
    """What NVRTC says against a source when it makes machine code of it; None if nothing."""
    from cuda.bindings import nvrtc

    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    assert error == nvrtc.nvrtcResult.NVRTC_SUCCESS, error
    options = [f"--gpu-architecture={architecture}".encode()]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = bytes(size + 2)  # which is written to: never one of Python's shared objects of one byte
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(program)
    if error == nvrtc.nvrtcResult.NVRTC_SUCCESS:
        return None
    return f"{log[:size].decode(errors='replace')}\n{source}"
