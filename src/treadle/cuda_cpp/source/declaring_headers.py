"""Which of the built-in headers declares a name that a file uses without including it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.source.library_headers import PARTS, library_text
from treadle.cuda_cpp.source.tokens import Token

# The headers, the files of the library that they are, and the namespaces of their names.
_QUALIFIED = (
    ("cooperative_groups.h", ("cooperative_groups.cuh",), ("cooperative_groups", "cg")),
    ("mma.h", ("wmma.cuh",), ("nvcuda", "wmma")),
    ("cub/cub.cuh", tuple(file for file, space in PARTS.items() if space == "cub"), ("cub",)),
    ("thrust/tuple.h", ("thrust_tuple.cuh",), ("thrust",)),
    ("thrust/complex.h", ("thrust_complex.cuh",), ("thrust",)),
    ("thrust/functional.h", ("thrust_functional.cuh",), ("thrust",)),
    ("thrust/random.h", ("thrust_random.cuh",), ("thrust",)),
    ("cuda/atomic", ("cuda_atomic.cuh",), ("cuda",)),
    ("cuda/barrier", ("cuda_pipeline.cuh",), ("cuda",)),
    ("cuda/ptx", ("cuda_ptx.cuh",), ("cuda",)),
)
# Those whose names are not in a namespace, and how these begin.
_PLAIN = (
    ("curand_kernel.h", "curand.cuh", "curand"),
    ("cuda_fp8.h", "cuda_fp8.cuh", "__nv_"),
    ("cuda_fp4.h", "cuda_fp4.cuh", "__nv_"),
    ("cuComplex.h", "cu_complex.cuh", ("cu", "make_cu")),
    ("cuda_pipeline.h", "cuda_pipeline.cuh", "__pipeline_"),
)
# Namespaces that only their own header declares, the file of it, and others that include it.
_NAMESPACES = {
    "cooperative_groups": ("cooperative_groups.h", ("cooperative_groups.cuh",)),
    "nvcuda": ("mma.h", ("wmma.cuh",)),
    "cub": ("cub/cub.cuh", ("cub.cuh", "thrust_tuple.cuh", "torch.cuh")),
}


def declaring_header(name: str, read: Collection[str]) -> str:
    """What to include for a name, as a sentence; "" if none of the built-in headers declares it, or
    its header is among the files that were `read`."""
    *spaces, last = name.split("::")
    if spaces:
        rows = [(header, files) for header, files, names in _QUALIFIED if spaces[0] in names]
    else:
        rows = [(header, (file,)) for header, file, start in _PLAIN if last.startswith(start)]
    for header, files in rows:
        if any(f"<{file}>" not in read and last in _words(file) for file in files):
            return f"{name} is declared in <{header}>: write #include <{header}> above"
    return ""


@cache
def _words(file: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", library_text(file)))


def namespaces_without_header(
    tokens: Sequence[Token], file: str, read: Collection[str]
) -> list[CompileError]:
    """An error for each namespace of CUDA's that the user's files name without its header, at the
    first place."""
    found: dict[str, Token] = {}
    own: set[str] = set()  # those that a file declares itself
    for at, token in enumerate(tokens):
        text = token.text
        if text not in _NAMESPACES or (token.file != file and token.file.startswith("<")):
            continue
        found.setdefault(text, token)
        if at and tokens[at - 1].text == "namespace" and tokens[at + 1].text == "{":
            own.add(text)
    errors = []
    for text, one in found.items():
        header, files = _NAMESPACES[text]
        if text in own or any(f"<{each}>" in read for each in files):
            continue
        message = f"{text} is declared in <{header}>: write #include <{header}> above"
        span = Span(one.file, one.line, one.column, one.column + len(text))
        errors.append(CompileError(message, span))
    return errors
