"""Names that CUDA and the language declare: built-in variables and functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.builtins.tables import FUNCTIONS, OUTPUTS, REFUSED
from treadle.cuda_cpp.lower import (
    debugging,
    exchanges,
    heap,
    images,
    memory,
    shared_addresses,
    synchronization,
    tile_moves,
)
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.builtin_calls import Handler, call_function, call_with_outputs, vector
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.recovery import UNDECLARED
from treadle.cuda_cpp.lower.values import Rvalue, Value
from treadle.cuda_cpp.semantics.misspelled import is_nearly_one, nearest
from treadle.cuda_cpp.semantics.types import DIM3, INT, UINT3, UNSIGNED, VECTORS, ir_type
from treadle.cuda_cpp.source.declaring_headers import declaring_header
from treadle.cuda_cpp.source.headers import lacks_from_library
from treadle.cuda_cpp.source.library_headers import names_in
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.keywords import FUNDAMENTAL_WORDS
from treadle.cuda_cpp.syntax.likely_causes import OTHER_LANGUAGES
from treadle.cuda_cpp.syntax.refusals import REFUSALS, refusal_message
from treadle.ir import nodes as n
from treadle.ir import types as ir

_HANDLERS: dict[str, Handler] = {
    **exchanges.HANDLERS,
    **heap.HANDLERS,
    **images.HANDLERS,
    **memory.HANDLERS,
    **debugging.HANDLERS,
    **synchronization.HANDLERS,
    **shared_addresses.HANDLERS,
    **tile_moves.HANDLERS,
}

VARIABLES = {
    "threadIdx": "thread_idx",
    "blockIdx": "block_idx",
    "blockDim": "block_dim",
    "gridDim": "grid_dim",
    "warpSize": "",
    "__treadle_carry": "",
}
_REFUSED_FUNCTIONS = {
    **dict.fromkeys(("calloc", "realloc", "alloca"), "malloc"),
}


# --- variables -----------------------------------------------------------------------------------


def variable(cx: Context, node: tree.Name) -> Value:
    """A built-in variable such as threadIdx, as a vector."""
    if node.text == "warpSize":
        return Rvalue(constant(32, ir.I32, node.span), INT)
    if node.text == "__treadle_carry":
        return shared_addresses.carry(cx)
    parts = tuple(_part(node.text, axis, node.span) for axis in range(3))
    type = UINT3 if node.text in ("threadIdx", "blockIdx") else DIM3
    return Rvalue(n.Construct(parts, ir_type(type), node.span), type)


def component(cx: Context, base: tree.Name, name: str, span: Span) -> Value | None:
    """`threadIdx.x`; None if the base is not a built-in variable here."""
    if base.text not in VARIABLES or name not in ("x", "y", "z") or base.scope:
        return None
    if cx.scope.find(base.text) is not None:
        return None
    return Rvalue(_part(base.text, "xyz".index(name), span), UNSIGNED)


def _part(name: str, axis: int, span: Span) -> n.Expression:
    return n.Cast(n.Builtin(VARIABLES[name], axis, span=span), ir.U32, span)


# --- functions -----------------------------------------------------------------------------------


def is_function(name: str) -> bool:
    """Whether CUDA or the language declares a function of this name."""
    return (
        name in FUNCTIONS
        or name in OUTPUTS
        or name in _HANDLERS
        or name in _REFUSED_FUNCTIONS
        or name in REFUSED
        or (name.startswith("make_") and name.removeprefix("make_") in VECTORS)
    )


def is_known(name: str) -> bool:
    """Whether CUDA or the language declares a function or variable of this name."""
    return name in VARIABLES or is_function(name)


def is_surely_none(name: str, read: Collection[str] = ()) -> bool:
    """Whether a name is surely not declared: it is a misspelled one of CUDA's, or of a header that
    is not among the files that were `read`."""
    if declaring_header(name, read):
        return True
    return is_nearly_one(name, (*FUNCTIONS, *OUTPUTS, *_HANDLERS, *VARIABLES))


_WORDS = (*FUNDAMENTAL_WORDS, "else", "return", "const", "static", "struct", "while", "switch")


def unknown(name: str, declared: Iterable[str] = (), read: Collection[str] = ()) -> str:
    """The message for an undeclared name; `declared` are names that may have been meant, and `read`
    the files that were."""
    if header := declaring_header(name, read):
        return header
    own = name.removeprefix("::").removeprefix("std::")
    if own in _OF_THE_HOST and own not in declared:
        return f"{name} is for host code: {_OF_THE_HOST[own]}"
    if name.startswith("std::"):
        return (
            f"{name} is from the C++ standard library, of which kernels have a part (the guide to "
            f"CUDA C++ lists it){_of_library(name)}: write a __device__ function that does the same"
        )
    if "::" in name and (lacks := lacks_from_library(name, name.partition("::")[0])):
        return lacks
    if name.startswith("cuda") and name[4:5].isupper():
        return (
            f"{name} is from CUDA's host library, which a kernel can't call: call it before "
            "the launch"
        )
    known = (*declared, *FUNCTIONS, *OUTPUTS, *_HANDLERS, *VARIABLES, *_WORDS)
    other = OTHER_LANGUAGES.get(name, "") if name not in declared else ""
    qualified = other or next((one for one in declared if one.endswith(f"::{name}")), None)
    meant = qualified or nearest(name, known, 0.8 if len(name) > 5 else 0.75)
    hint = f" (did you mean {meant}?)" if meant and "__treadle" not in meant else ""
    return (
        f"{name} {UNDECLARED}{hint}: declare it, or include the file that does "
        "(include=[…] names folders to look in)"
    )


_PRINTS = "kernels print by printf"
_NUMBERS = "kernels draw numbers by curand_init and curand_uniform of <curand_kernel.h>"
_OF_THE_HOST = {
    **dict.fromkeys(("cout", "cerr", "clog", "endl", "puts", "putchar", "fprintf"), _PRINTS),
    **dict.fromkeys(("rand", "srand", "drand48", "srand48", "random"), _NUMBERS),
    **dict.fromkeys(("scanf", "fopen", "fclose", "fread", "fwrite", "cin", "getchar"), (
        "read files before the launch, and pass arrays"
    )),
    **dict.fromkeys(("strlen", "strcmp", "strncmp", "strcpy", "strcat", "memcmp", "memchr"), (
        "write a loop (memcpy, memmove and memset are for kernels, too)"
    )),
    "exit": "a thread ends by return, and __trap() stops a kernel",
    "abort": "a thread ends by return, and __trap() stops a kernel",
}  # fmt: skip


def _of_library(name: str) -> str:
    """The name of the standard library that may have been meant."""
    meant = nearest(name.removeprefix("std::"), (*names_in("std"), *FUNCTIONS), 0.65)
    return f" (did you mean std::{meant}?)" if meant and meant[0] != "_" else ""


def call_with(
    cx: Context,
    name: str,
    values: Sequence[Value],
    node: tree.Call,
    explicit: Sequence[Any] | None = None,
) -> Value:
    """A call of a built-in function with lowered arguments."""
    span = node.function.span
    refused = _REFUSED_FUNCTIONS.get(name)
    if refused is not None and refused in REFUSALS:
        raise cx.error(f"{name}: {refusal_message(refused)}", span)
    if name in REFUSED:
        raise cx.error(f"{name} {REFUSED[name]}", span)
    found = _HANDLERS.get(name)
    if found is not None:
        outer, cx.span = cx.span, span
        try:
            return found(cx, values, node)
        finally:
            cx.span = outer
    if name.startswith("make_") and name.removeprefix("make_") in VECTORS:
        return vector(cx, cx.lowering.types.vectors[name.removeprefix("make_")], values, span)
    if name in OUTPUTS and len(values) == _count(name):
        return call_with_outputs(cx, name, values, span)
    return call_function(cx, name, values, explicit, span)


def _count(name: str) -> int:
    overload = OUTPUTS[name][0]
    return len(overload.parameters) + len(overload.outputs)
