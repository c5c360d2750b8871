"""The built-in headers, and why others are not among them."""

from __future__ import annotations

import difflib

from treadle.cuda_cpp.source import c_headers, cuda_headers
from treadle.cuda_cpp.source.library_headers import library_file, library_text

_TEXTS = {**c_headers.C_HEADERS, **cuda_headers.CUDA_HEADERS}
_SAME_AS = {**c_headers.SAME_AS, **cuda_headers.SAME_AS}


def header_name(name: str) -> str | None:
    """The name of a built-in header, which may have several; None for other headers."""
    name = _SAME_AS.get(name, name)
    return name if name in _TEXTS else library_file(name)


def near_header(name: str) -> str:
    """The built-in header whose name is nearly this one; "" if there is none."""
    close = difflib.get_close_matches(name, [*_TEXTS, *_SAME_AS], 1, 0.85)
    return close[0] if close else ""


def header_text(name: str) -> str:
    """The text of a built-in header, by the name that `header_name` gives."""
    return _TEXTS[name] if name in _TEXTS else library_text(name)


_FOR_THE_HOST = "is for the host, whose code is not compiled here"
_STANDARD_LIBRARY = (
    "is a part of the C++ standard library that device code cannot use: write what the kernel "
    "needs of it in the file"
)
_COOPERATIVE_GROUPS = (
    "declares a part of cooperative groups that is not supported: use thread_block and its tiles, "
    "or __syncthreads and the __shfl_*_sync functions"
)
_TENSOR_CORES = (
    "is a library of tensor-core products in templates for nvcc only: use nvcuda::wmma (mma.h), or "
    "treadle's matmul"
)
_NARROW_FLOATS = (
    "declares floating types of less than 8 bits, which are not supported: keep them as unsigned "
    "char and convert"
)
_VENDOR_LIBRARY = "is a CUDA library that the host calls: host code is not compiled here"

# What a header is and what to do instead, by its name.
_MISSING = {
    "curand.h": _VENDOR_LIBRARY,
    "curand_mtgp32_kernel.h": (
        "declares a generator of cuRAND that is not supported: use XORWOW or Philox "
        "(curand_kernel.h), or pass random numbers in (td.random)"
    ),
    "cuda_fp6.h": _NARROW_FLOATS,
    **dict.fromkeys(
        ("cuda_awbarrier.h", "cuda_awbarrier_primitives.h"),
        "declares split barriers in an old form, which is not supported: use cuda::barrier",
    ),
    **dict.fromkeys(
        ("cuda/semaphore", "cuda/std/semaphore"),
        "declares libcu++'s semaphores, which wait for threads that devices need not run: use "
        "__syncthreads, cuda::barrier or atomics",
    ),
}

_MISSING_FOLDERS = {
    "cooperative_groups/": _COOPERATIVE_GROUPS,
    "cuda/": "is a part of libcu++, which is not supported: use CUDA's plain functions",
    "cute/": _TENSOR_CORES,
    "cutlass/": _TENSOR_CORES,
    "nvtx3/": _VENDOR_LIBRARY,
    "sys/": _FOR_THE_HOST,
    "arpa/": _FOR_THE_HOST,
    "netinet/": _FOR_THE_HOST,
    "GLFW/": _FOR_THE_HOST,
    "GL/": _FOR_THE_HOST,
    "EGL/": _FOR_THE_HOST,
    "GLES2/": _FOR_THE_HOST,
    "GLES3/": _FOR_THE_HOST,
    "X11/": _FOR_THE_HOST,
    "vulkan/": _FOR_THE_HOST,
    "boost/": _FOR_THE_HOST,
    "opencv2/": _FOR_THE_HOST,
    "pybind11/": _FOR_THE_HOST,
}

_VENDOR_LIBRARIES = (
    "cublas_api.h", "cudalibxt.h", "cufftw.h", "nvJitLink.h",
    "cublas.h", "cublasLt.h", "cublasXt.h", "cublas_v2.h", "cuda_egl_interop.h",
    "cuda_gl_interop.h", "cuda_profiler_api.h", "cudnn.h", "cudnn_frontend.h", "cusolverDn.h",
    "cusolverSp.h", "cusparse.h", "cusparse_v2.h", "nccl.h", "npp.h",
    "nppi.h", "nvToolsExt.h", "nvgraph.h", "nvjpeg.h", "nvml.h", "nvrtc.h",
)  # fmt: skip

_HOST_HEADERS = (
    "barrier", "cfenv", "clocale", "csetjmp", "cuchar", "cuda_occupancy.h", "cwctype", "fenv.h",
    "latch", "semaphore", "source_location", "stop_token", "syncstream", "tgmath.h", "version",
    "condition_variable", "csignal", "cstdarg", "ctime", "ctype.h", "cctype", "dirent.h",
    "dlfcn.h", "errno.h", "cerrno", "exception", "fcntl.h", "filesystem", "fstream", "future",
    "getopt.h", "glob.h", "helper_cuda.h", "helper_cuda_drvapi.h", "helper_cuda_gl.h",
    "helper_functions.h", "helper_gl.h", "helper_image.h", "helper_string.h", "helper_timer.h",
    "iomanip", "ios", "iosfwd", "iostream", "istream", "locale", "locale.h",
    "mpi.h", "mutex", "new", "omp.h", "ostream", "pthread.h", "random", "regex", "sched.h",
    "semaphore.h", "setjmp.h", "shared_mutex", "signal.h", "sstream", "stdarg.h", "stdexcept",
    "streambuf", "strings.h", "system_error", "thread", "time.h", "typeinfo", "unistd.h", "wchar.h",
    "cwchar", "windows.h",
)  # fmt: skip

_STANDARD_HEADERS = (
    "any", "atomic", "charconv", "codecvt", "complex.h", "deque",
    "forward_list", "list", "map", "memory_resource", "queue", "ranges",
    "scoped_allocator", "set", "stack", "string", "typeindex",
    "unordered_map", "unordered_set", "valarray", "vector",
)  # fmt: skip

_MISSING |= dict.fromkeys(_VENDOR_LIBRARIES, _VENDOR_LIBRARY)
_MISSING |= dict.fromkeys(_HOST_HEADERS, _FOR_THE_HOST)
_MISSING |= dict.fromkeys(_STANDARD_HEADERS, _STANDARD_LIBRARY)


# Of a header that may be the user's, and may define what the code tests.
NOT_FOUND = (
    "is neither in the folder of the file nor in one of include=[…], nor one of CUDA's or C's "
    "headers that come with treadle: name the folder that holds it"
)


LIBRARIES = {
    "at": "PyTorch (ATen)", "boost": "Boost", "c10": "PyTorch (c10)", "cg": "cooperative groups",
    "cooperative_groups": "cooperative groups", "cub": "CUB", "cuco": "cuCollections",
    "cuda": "libcu++", "cute": "CuTe", "cutlass": "CUTLASS", "Eigen": "Eigen", "glm": "GLM",
    "nvcuda": "CUDA's mma.h", "raft": "RAFT", "thrust": "Thrust", "torch": "PyTorch",
    "wmma": "CUDA's mma.h",
}  # fmt: skip
"""Libraries by their namespaces."""


def lacks_from_library(name: str, space: str) -> str:
    """Why a name of a library's namespace is not known, and what to do; "" of other namespaces."""
    library = LIBRARIES.get(space)
    if library is None:
        return ""
    if space in _READ_FROM_HEADERS:
        return f"{name} is from {library}: name the folder of its headers in include=[…]"
    return (
        f"{name} is from {library}, of which kernels have no more here than the guide to CUDA C++ "
        "lists: write what it does in the file"
    )


_READ_FROM_HEADERS = frozenset(("glm",))  # and headers that the front end reads
_HOST_NAMES = frozenset((*_HOST_HEADERS, *_STANDARD_HEADERS))


def declares_only_host_names(name: str) -> bool:
    """Whether device code takes no plain name (one without `std::`) from a header that is not
    built in."""
    return name in _HOST_NAMES or name.startswith("sys/")


def why_missing(name: str) -> str:
    """Why a header is not found, and what to do: a sentence that follows its name."""
    if name in _MISSING:
        return _MISSING[name]
    for folder, reason in _MISSING_FOLDERS.items():
        if name.startswith(folder):
            return reason
    return NOT_FOUND
