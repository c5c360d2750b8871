"""Kernels that NVIDIA's compiler does not take from the project's files either, and why.

They are counted apart. The rules are few and narrow: a name that nothing declares must not look
like one of CUDA's or of a library that kernels use, since those may be missing here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNDECLARED = re.compile(r"^(\w+) is not (?:declared|a known type)")
_REMOVED = re.compile(r"^(\w+) was removed from CUDA")
_ELSEWHERE = re.compile(r"^(\w+) is declared here, but not defined in any included file")
_OF_LIBRARIES = re.compile(
    r"_|cu[A-Z]|cu(?:da|b|rand|blas|fft|sparse|dnn|Complex)|CU|nv|NV|tex|surf|thrust|std|at$|c10|"
    r"torch|half|bfloat|cg$|wmma|atomic|uint|int\d|float|double|dim3|TORCH|AT_|C10"
)


def why_not_compiled(message: str, line: str, missing_headers: Sequence[str]) -> str:
    """The reason, "" for kernels that nvcc would take as far as is known; `line` is the line of the
    source that the message is about.

    >>> why_not_compiled("Tmax is not declared: declare it", "", [])
    'nothing that its file includes declares Tmax'
    >>> why_not_compiled("cudaFoo is not declared: declare it", "", [])
    ''
    """
    if found := _REMOVED.match(message):
        return f"CUDA has no {found[1]} any more"
    if (found := _ELSEWHERE.match(message)) and "::" not in line:
        return f"{found[1]} is of another file, which its Makefile compiles by itself"
    if found and missing_headers:
        return f"{found[1]} needs a header that the project does not have: {missing_headers[0]}"
    if message.startswith("#error"):
        return "its own #error: its program does not compile the file by itself"
    found = _UNDECLARED.match(message)
    if not found or _OF_LIBRARIES.match(found[1]):
        return ""
    if missing_headers:
        return f"{found[1]} is of a header that the project does not have: {missing_headers[0]}"
    return f"nothing that its file includes declares {found[1]}"
