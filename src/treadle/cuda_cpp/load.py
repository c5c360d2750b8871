"""`td.cuda_module`: from text or a file to a module of kernels.

The front end is imported by the first call, so that `import treadle` stays quick.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treadle.core.errors import CompileError, TreadleError, shortened
from treadle.core.nesting import deep_nesting
from treadle.core.paths import as_path, no_file, no_folder
from treadle.cuda_cpp.program import LEVELS
from treadle.runtime import settings

if TYPE_CHECKING:
    from treadle.cuda_cpp.module import CudaModule
    from treadle.cuda_cpp.semantics.types import Double

HEAP_BYTES = 8 << 20  # as on CUDA
_NO_FILE = "<cuda source>"  # the file name of a source that is given as text
SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")


def is_cuda_text(file: Path) -> bool:
    """Whether a file's text has kernels of CUDA C++, whatever its name."""
    try:
        return b"__global__" in file.read_bytes()
    except OSError:
        return False


def cuda_module(
    source: str | Path,
    *,
    defines: Mapping[str, Any] | Sequence[str] | None = None,
    include: str | Path | Sequence[str | Path] = (),
    fastmath: bool = False,
    warp_synchronous: bool = False,
    skip_missing_headers: bool = False,
    double: Double = "double",
    heap_bytes: int = HEAP_BYTES,
    recursion: int = LEVELS,
) -> CudaModule:
    """The kernels of CUDA C++ source: a `str` is the text itself, a `pathlib.Path` a file.

    `defines` are macros, as with `nvcc -D` (True and None are 1), or a list as nvcc has it
    (`["BLOCK=128", "FAST"]`); `include` are the folders that
    `#include` searches after that of the file; `fastmath` uses the hardware's own mathematics
    (`nvcc --use_fast_math`). `warp_synchronous` synchronizes the threads of each warp where they
    access shared memory, as code written before `__syncwarp` expects; without it, compiling such
    code gives a WarpSynchronousWarning. Host code is skipped, and so are headers that are known to
    be for the host. Any other header that is not found is an error; `skip_missing_headers` skips
    it, too. CompileErrors lists all that C++ forbids in the file, whatever is launched of it.

    `double="float"` gives `double` the bits of a float, for devices without float64: in variables,
    literals, `sizeof`, structs and arrays, and in CUDA's functions. It stays a type of its own for
    overloads and templates. A `double *` then takes float32 arrays, and NumPy's float64 arrays,
    which are rounded on their way. `double="pair"` makes a double a pair of floats, with 48 bits
    and a float's range: a `double *` takes float32 arrays whose last axis is 2, and NumPy's float64
    arrays.

    `heap_bytes` is the memory that `malloc` and `new` of kernels have on each device, as
    `cudaLimitMallocHeapSize` on CUDA. `recursion` is how many calls of functions that call
    themselves may be open at a time, for which each thread has memory; a launch in which a thread
    needs more raises KernelAssertionError.

    >>> module = cuda_module('''
    ... __global__ void scale(float *x, float factor, int n) {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) x[i] *= factor;
    ... }''')
    >>> module.kernels
    ('scale',)
    """
    if double not in ("double", "float", "pair"):
        raise TreadleError(f'double is "double", "float" or "pair", not {double!r}')
    text, file = _text_of(source)
    if isinstance(recursion, bool) or not isinstance(recursion, int) or not 1 <= recursion <= 65536:
        raise TreadleError(f"recursion is a number of levels from 1 to 65,536, not {recursion!r}")
    macros = _defines(defines or {})
    if heap_bytes != HEAP_BYTES:
        macros[_HEAP_WORDS] = str(_heap_words(heap_bytes))
    if settings.check:
        macros[_GUARDED] = "1"
    folders = _folders((include,) if isinstance(include, (str, os.PathLike)) else include)

    from treadle.cuda_cpp import kept_files
    from treadle.cuda_cpp.lower import load, read
    from treadle.cuda_cpp.module import CudaModule

    try:
        with deep_nesting(file), _no_collections():
            entry = kept_files.entry_of(text, file, macros, folders, skip_missing_headers, double)
            parsed = kept_files.load(entry)
            kept = parsed is not None
            if parsed is None:
                parsed = read(text, file, macros, folders, skip_missing_headers, double)
            program = load(parsed, file, double, recursion, settings.check)
            if not kept:
                kept_files.save(entry, replace(parsed, checked=True, warnings=program.warnings))
            return CudaModule(program, file, fastmath, warp_synchronous)
    except CompileError as error:
        raise shortened(error)  # noqa: B904 - it is the same error


_HEAP_WORDS = "__treadle_heap_words"  # of source/library/heap.cuh: 32 blocks of 32 bytes each
_GUARDED = "__treadle_guarded"  # has it keep what `lower/guards.py` checks


def _heap_words(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or not 1024 <= size <= 1 << 30:
        raise TreadleError(f"heap_bytes is an integer from 1024 to {1 << 30:,}, not {size!r}")
    return -(-size // 1024)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Python looks for unreachable cycles again and again while the tokens and trees of a file
    grow, which takes two fifths of the time and finds none: it does so afterwards."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _text_of(source: str | Path) -> tuple[str, str]:
    """The text, and the name of its file in messages."""
    if isinstance(source, str):
        if _looks_like_a_file(source):
            raise CompileError(
                f"a str is the text of CUDA C++, and {source!r} looks like the name of a file: "
                f"write td.cuda_module(pathlib.Path({source!r}))"
            )
        return source, _NO_FILE
    if not isinstance(source, os.PathLike):
        raise TypeError(f"cuda_module takes text or a pathlib.Path, not {type(source).__name__}")
    path = as_path("cuda_module", source)
    if not os.path.isfile(path):
        raise TreadleError(no_file(path))
    from treadle.cuda_cpp.source.files import Undecodable, decoded

    try:
        return decoded(path.read_bytes()), str(path)
    except Undecodable as reason:
        raise CompileError(f"{path} {reason}") from None
    except OSError as error:
        raise TreadleError(f"{path} cannot be read: {error.strerror}") from None


def _looks_like_a_file(source: str) -> bool:
    name = source.strip()
    if not name or "\n" in name or any(sign in name for sign in "{};()"):
        return False
    return name.endswith(SUFFIXES) or (
        len(name) < 256 and "\0" not in name and os.path.exists(name)
    )


def _defines(defines: Mapping[str, Any] | Sequence[str]) -> dict[str, str]:
    """The text of each macro."""
    if not isinstance(defines, Mapping):
        given = [defines] if isinstance(defines, str) else list(defines)
        if not all(isinstance(one, str) for one in given):
            raise TypeError('defines are a dictionary, or a list of texts as nvcc -D has: "N=3"')
        parts = [one.removeprefix("-D").partition("=") for one in given]
        defines = {name: text if sign else True for name, sign, text in parts}
    return {name: _macro_text(name, value) for name, value in defines.items()}


def _macro_text(name: str, value: Any) -> str:
    if not name.partition("(")[0].isidentifier():
        raise CompileError(f"defines: {name!r} is not a name for a macro")
    if value is None or value is True:
        return "1"
    if value is False:
        return "0"
    if isinstance(value, (str, int, float)):
        return str(value)
    from treadle.cuda_cpp.template_arguments import as_written

    try:
        return as_written(value)  # a dtype, as in defines={"REAL": td.f32}
    except TreadleError:
        raise TypeError(
            f"defines: {name} is a {type(value).__name__}; a macro is text, a number or a dtype"
        ) from None


def _folders(include: Sequence[str | Path]) -> tuple[Path, ...]:
    if not isinstance(include, (list, tuple)):
        raise TypeError(f"include: folders are a list of paths, not {type(include).__name__}")
    folders = tuple(as_path("include", folder) for folder in include)
    for folder in folders:
        if not os.path.isdir(folder):
            raise TreadleError(f"include: {no_folder(folder)}")
    return folders
