"""The headers that are files of CUDA C++ in the folder `library`, by the names that include them.

They are compiled like the user's code; what they cannot say in C++ are built-in functions, types
and traits whose names begin with `__treadle_`.

nvcc's own headers and those of the host's library include parts of the standard library, so that
files use them without asking, and <cub/cub.cuh> has all of CUB. Reading all of that takes longer
than most kernels do. So each library is in parts, and a part is read if the file names what it
declares (`std::pair`, `cub::BlockReduce`), before all else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

_FOLDER = Path(__file__).parent / "library"

# The parts of each namespace, in their order in a file: each may include earlier ones.
_PARTS = {
    # what nvcc declares itself
    "": (
        "atomics.cuh", "heap.cuh", "launch.cuh", "ptx.cuh", "mbarrier.cuh", "ptx_halves.cuh",
        "raw_halves.cuh", "texture.cuh", "nan.cuh", "gcc.cuh",
    ),
    "std": (
        "type_traits.cuh", "concepts.cuh", "limits.cuh", "utility.cuh", "iterator.cuh", "array.cuh",
        "bit.cuh", "byte.cuh", "compare.cuh", "numbers.cuh", "sorting.cuh", "algorithm.cuh",
        "numeric.cuh", "complex.cuh", "functional.cuh", "tuple.cuh", "optional.cuh", "variant.cuh",
        "expected.cuh", "span.cuh", "span_bytes.cuh", "string_view.cuh", "mdspan.cuh",
        "bitset.cuh", "ratio.cuh", "chrono.cuh", "inplace_vector.cuh",
    ),
    "cub": (
        "cub_common.cuh", "cub_details.cuh", "cub_warp.cuh", "cub_block.cuh", "cub_exchange.cuh",
        "cub_sort.cuh", "cub_decode.cuh", "cub_rank.cuh",
    ),
    "thrust": (
        "thrust_tuple.cuh", "thrust_complex.cuh", "thrust_functional.cuh", "thrust_algorithm.cuh",
        "thrust_random.cuh",
    ),
}  # fmt: skip
PARTS = {file: space for space, files in _PARTS.items() for file in files}

# The file of each header. Several headers may be one file.
_STANDARD = {
    "algorithm": "algorithm.cuh",
    "iterator": "iterator.cuh",
    "mdspan": "mdspan.cuh",
    "numeric": "numeric.cuh",
    "array": "array.cuh",
    "bit": "bit.cuh",
    "bitset": "bitset.cuh",
    "chrono": "chrono.cuh",
    "compare": "compare.cuh",
    "concepts": "concepts.cuh",
    "numbers": "numbers.cuh",
    "complex": "complex.cuh",
    "functional": "functional.cuh",
    **dict.fromkeys(("initializer_list", "memory"), "utility.cuh"),
    "inplace_vector": "inplace_vector.cuh",
    "limits": "limits.cuh",
    "expected": "expected.cuh",
    "optional": "optional.cuh",
    "ratio": "ratio.cuh",
    "span": "span.cuh",
    "string_view": "string_view.cuh",
    "tuple": "tuple.cuh",
    "type_traits": "type_traits.cuh",
    "utility": "utility.cuh",
    "variant": "variant.cuh",
}
_FILES = {
    "cooperative_groups.h": "cooperative_groups.cuh",
    **dict.fromkeys(
        (f"cooperative_groups/{name}.h" for name in ("memcpy_async", "reduce", "scan")),
        "cooperative_groups.cuh",
    ),
    **dict.fromkeys(("cuda/atomic", "cuda/std/atomic", "cuda_atomic.cuh"), "cuda_atomic.cuh"),
    **dict.fromkeys(
        ("cuda/barrier", "cuda/pipeline", "cuda_pipeline.h", "cuda_pipeline_primitives.h"),
        "cuda_pipeline.cuh",
    ),
    **dict.fromkeys(
        ("curand_kernel.h", "curand_uniform.h", "curand_normal.h", "curand_philox4x32_x.h"),
        "curand.cuh",
    ),
    **dict.fromkeys(
        (
            "cuda/annotated_ptr",
            "cuda/cmath",
            "cuda/discard_memory",
            "cuda/functional",
            "cuda/memory",
        ),
        "cuda_more.cuh",
    ),
    **dict.fromkeys(("cuda/latch", "cuda/std/latch"), "latch.cuh"),
    "cuComplex.h": "cu_complex.cuh",
    "cuda/ptx": "cuda_ptx.cuh",
    **dict.fromkeys(("mma.h", "crt/mma.h"), "wmma.cuh"),
    **dict.fromkeys(("cuda_fp8.h", "cuda_fp8.hpp"), "cuda_fp8.cuh"),
    **dict.fromkeys(("cuda_fp4.h", "cuda_fp4.hpp"), "cuda_fp4.cuh"),
    **_STANDARD,
    **{f"cuda/std/{name}": file for name, file in _STANDARD.items()},
    **{file: file for file in PARTS},
}
# Folders whose headers are the parts of one namespace.
_FOLDERS = {
    "cub/": "cub.cuh",
    "thrust/": "thrust_tuple.cuh",
    **dict.fromkeys(("ATen/", "THC/", "c10/", "torch/"), "torch.cuh"),
}


def library_file(name: str) -> str | None:
    """The file of a header in the library, None for other headers."""
    for folder, file in _FOLDERS.items():
        if name.startswith(folder):
            return file
    return _FILES.get(name)


@cache
def library_text(file: str) -> str:
    """The text of a file of the library."""
    return (_FOLDER / file).read_text(encoding="utf-8")


def parts_for(texts: Sequence[str], asked: set[str], included: set[str]) -> list[str]:
    """The parts that a file needs, in order: those that other headers `asked` for, and those with
    names that occur in `texts`, its tokens. The parts of `included` namespaces count, and `std`.
    """
    wanted = set(asked)
    for space in ("", "std", *sorted(included - {"", "std"})):
        named = _named(texts, space)
        wanted |= {file for file in _PARTS[space] if not named.isdisjoint(_declared(file))}
    if not {"new", "delete"}.isdisjoint(texts):
        wanted.add("heap.cuh")
    if any(pair == ("<<", "<") for pair in pairwise(texts)):  # a launch
        wanted.add("launch.cuh")
    if "<=>" in texts:
        wanted.add("compare.cuh")
    if "asm" in texts:
        wanted.add("ptx.cuh")
        if any("f16" in text or ".e" in text for text in texts if text[:1] == '"'):
            wanted.add("ptx_halves.cuh")
        if any("mbarrier" in text or "bulk" in text for text in texts if text[:1] == '"'):
            wanted.add("mbarrier.cuh")
    for file in reversed(PARTS):
        if file in wanted:
            asks = re.findall(r"^#include <(.*)>", library_text(file), re.MULTILINE)
            wanted |= {part for name in asks if (part := library_file(name)) in PARTS}
    return [file for file in PARTS if file in wanted]


def _named(texts: Sequence[str], space: str) -> set[str]:
    """The names that follow `space::`, or another name that the namespace is given (`namespace b =
    cub;`); all names if there is a `using namespace` of it."""
    if not space:
        return set(texts)
    found: set[str] = set()
    spaces = {space}
    for at, text in enumerate(texts):
        if text in spaces:
            start = at - 2 if list(texts[max(at - 2, 0) : at]) == ["cuda", "::"] else at
            if list(texts[max(start - 2, 0) : start]) == ["using", "namespace"]:
                return set(texts)
            if start > 2 and texts[start - 1] == "=" and texts[start - 3] == "namespace":
                spaces.add(texts[start - 2])
            if list(texts[at + 1 : at + 2]) == ["::"]:
                found.update(texts[at + 2 : at + 3])
    return found


# What is declared at the beginning of a line: classes, aliases, variables, functions, enumerators,
# and what a macro that begins with `__treadle_` makes.
_DECLARED = (
    r"^(?:template <.*> )?(?:struct|enum) (\w+)",
    r"^struct (\w+)",
    r"^(?:template <.*> ?)?\n?using (?:\w+::)*(\w+)",
    r"^(?:template <.*> )?concept (\w+)",
    r"^namespace (?!std\b)(\w+)",
    r"^typedef [^;]*\b(\w+);",
    r"^(?:template <.*> )?constexpr \w+ (\w+) =",
    r"^(?:template <.*> )?(?:__host__ )?__device__ [^(\n]*?\b(\w+)\(",
    r"^__treadle_\w+\((\w+)",
)
# A part whose functions have names of CUDA's, or of other classes, is only needed with its own.
_ONLY = {
    "chrono.cuh": frozenset(("chrono", "chrono_literals", "literals")),
    "complex.cuh": frozenset(("complex",)),
    "mdspan.cuh": frozenset(
        ("mdspan", "extents", "dextents", "dims", "layout_right", "layout_left")
    ),
    "variant.cuh": frozenset(("variant", "monostate", "visit", "get_if", "holds_alternative")),
}


def names_in(space: str) -> list[str]:
    """The names that the parts of a namespace declare."""
    found = {name for file in _PARTS[space] for name in _declared(file)}
    return sorted(name for name in found if not name.startswith("__"))


@cache
def _declared(file: str) -> frozenset[str]:
    """The names that a part declares in its namespace."""
    if file in _ONLY:
        return _ONLY[file]
    text = library_text(file)
    found: set[str] = set()
    for pattern in _DECLARED:
        found.update(re.findall(pattern, text, re.MULTILINE))
    for enumerators in re.findall(r"^enum \w+ \{([^}]*)\}", text, re.MULTILINE):
        found.update(re.findall(r"\w+", enumerators))
    for end in ("_v", "_t"):
        if f"##{end}" in text:
            found.update([f"{name}{end}" for name in found])
    return frozenset(found)
