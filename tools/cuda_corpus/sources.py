"""Other people's files: which kernels are in them, and the same without host code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SUFFIXES = (".cu", ".cuh", ".h", ".hpp")
WHOLE = ("cuda-samples", "llm.c", "PolyBench-ACC")  # whose every kernel is listed
CHECKOUTS = (*WHOLE, "gpu-rodinia")
_LIBRARIES = r"(?:cublas|cufft|curand|cusparse|cudnn|nccl|nvtx|Nvtx|MPI_|GL|gl[A-Z]|EGL|fe::)"
_HEADERS = re.compile(
    r"\s*#\s*include\s*[<\"](?:(?:cublas|cufft|curand|cusparse|cudnn|nccl|nvtx|mpi|GL|EGL|thrust|"
    r"helper_gl|cuda_gl_interop|cuda_profiler|omp)|\w+\.c\b)",
)
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)")
_NAME = re.compile(r"[\s\w:<>,*&\[\]]*?(\w+)\s*\(")


def files(sources: Path) -> Iterator[Path]:
    """The files that may have kernels, below the checkouts."""
    for checkout in CHECKOUTS:
        for path in sorted((sources / checkout).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def read(path: Path) -> str:
    """A file's text, whatever its encoding."""
    return path.read_text(encoding="utf-8", errors="replace")


def kernels_in(text: str) -> list[str]:
    """The names of the kernels that a text defines, in order.

    >>> kernels_in("__global__ void a(int); __global__ __launch_bounds__(64) void b(int x) {}")
    ['b']
    """
    plain = _BOUNDS.sub("", _COMMENTS.sub(" ", text))
    found = []
    for match in re.finditer("__global__", plain):
        named = _NAME.match(plain, match.end())
        if named is None:
            continue
        end = _closing(plain, named.end())
        following = re.compile(r"[;{]").search(plain, end)
        if following and following[0] == "{":
            found.append(named[1])
    return found


def _closing(text: str, position: int) -> int:
    """Behind the parenthesis that ends what began before `position`."""
    depth = 1
    while position < len(text) and depth:
        depth += (text[position] == "(") - (text[position] == ")")
        position += 1
    return position


# --- without host code ---------------------------------------------------------------------------

_PIECE = re.compile(
    r"(?P<directive>^[ \t]*#(?:[^\n\\]|\\.|\\\n)*)|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')|(?P<mark>[;{}()])",
    re.DOTALL | re.MULTILINE,
)
_DEVICE = re.compile(r"__device__|__global__|__constant__")
_INSTANCE = re.compile(r"\s*template\s+(?!<)[^(]*\(")  # of a function, which is gone
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")
_BLOCK = re.compile(r'(?:^|[\s;}])(?:namespace\s*\w*|extern\s*"C")\s*$')


def without_host(text: str) -> str:
    """A file's text without the functions of the host, and what needs absent libraries.

    >>> without_host("int f() { return 1; } __device__ int g() { return 2; }")
    ' __device__ int g() { return 2; }'
    """
    kept: list[str] = []
    start, depth, parentheses, head = 0, 0, 0, ""
    for piece in _PIECE.finditer(text):
        if piece["directive"] is not None:
            if depth == 0 and not _COMMENTS.sub("", text[start : piece.start()]).strip():
                kept.append("" if _HEADERS.match(piece[0]) else text[start : piece.end()])
                start = piece.end()
            continue
        mark = piece["mark"]
        if mark is None:
            continue
        parentheses += (mark == "(") - (mark == ")")
        if mark == "{":
            if depth == 0 and parentheses == 0:
                head = _COMMENTS.sub(" ", text[start : piece.start()])
                if _BLOCK.search(head):
                    kept.append(text[start : piece.end()])
                    start = piece.end()
                    continue
            depth += 1
        elif mark == "}" and depth == 0:  # of a block that was entered
            kept.append(text[start : piece.end()])
            start = piece.end()
        elif mark == "}":
            depth -= 1
            if depth == 0 and parentheses == 0 and _is_function(head):
                if _DEVICE.search(head):
                    kept.append(text[start : piece.end()])
                start = piece.end()
        elif mark == ";" and depth == 0 and parentheses == 0:
            declaration = text[start : piece.end()]
            plain = _COMMENTS.sub(" ", declaration)
            of_host = _INSTANCE.match(plain) or re.search(rf"\b{_LIBRARIES}", plain)
            if _DEVICE.search(plain) or not of_host:
                kept.append(declaration)
            start = piece.end()
    return "".join([*kept, text[start:]])


def _is_function(head: str) -> bool:
    """Whether what stands before a brace begins a function, and no type or initial values."""
    before, parenthesis, _ = re.sub(r"<[^<>]*>", "", head).partition("(")
    return bool(parenthesis) and "=" not in before and not _TYPE.search(before)
