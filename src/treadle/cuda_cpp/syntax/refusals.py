"""C++ constructs that are not supported in device code: why, and what to write instead."""

from __future__ import annotations

import re
from typing import NamedTuple


class Refusal(NamedTuple):
    """A construct as it is called in a sentence, the reason, and the alternative."""

    construct: str
    reason: str
    alternative: str

    @property
    def message(self) -> str:
        """The three in one line."""
        return f"{self.construct}: {self.reason}; {self.alternative}"


_RUNTIME_LIBRARY = "it needs a run-time library that exists only on the host"

REFUSALS = {
    "asm": Refusal(
        "inline assembly",
        "only PTX instructions with a counterpart on all devices are translated",
        "use the intrinsic function of CUDA that does the same, or plain C++",
    ),
    "try": Refusal(
        "try and catch",
        "device code has no exceptions, not on CUDA either",
        "return an error value, or write it to memory",
    ),
    "throw": Refusal(
        "throw",
        "device code has no exceptions, not on CUDA either",
        "return an error value, or write it to memory; assert stops a kernel",
    ),
    "malloc": Refusal(
        "calloc, realloc and alloca in device code",
        "CUDA's device code has malloc and free only",
        "use malloc, or an array of constant size",
    ),
    "virtual": Refusal(
        "a second base class with virtual functions",
        "an object has one number that says of which class it is",
        "make it the first base, or make the base a member",
    ),
    "dynamic_parallelism": Refusal(
        "a kernel called as a function",
        "a kernel is launched, not called, on CUDA too",
        "write kernel<<<grid, block>>>(…), which is queued behind this kernel, or a __device__ "
        "function",
    ),
    "surface": Refusal(
        "a surface reference",
        "CUDA has none since version 12",
        "give the kernel a parameter of type cudaSurfaceObject_t",
    ),
    "dynamic_cast": Refusal(
        "dynamic_cast", _RUNTIME_LIBRARY, "use static_cast, or a tag that says what an object is"
    ),
    "typeid": Refusal("typeid", _RUNTIME_LIBRARY, "use a tag that says what an object is"),
    "coroutine": Refusal(
        "a coroutine", _RUNTIME_LIBRARY, "write the steps as functions, and their state as a struct"
    ),
    "wide_character": Refusal(
        "a character with a prefix (L, u, U)",
        "device code has characters of type char only",
        "write the character without the prefix, or its number",
    ),
    "wide_string": Refusal(
        "a string with a prefix (L, u, U)",
        "device code has strings of char only",
        "write the string without the prefix",
    ),
    "packed": Refusal(
        "a packed struct with a struct, array or vector at an address that its parts do not allow",
        "other GPUs read and write memory in aligned numbers",
        "order the members by size, or put explicit padding between them",
    ),
    "base_padding": Refusal(
        "a base class whose size is not a multiple of its members' sizes, followed by members",
        "compilers differ in whether these go into its padding",
        "put a member of that size at the end of the base, or make the base a member",
    ),
}


def markdown_table() -> str:
    """The constructs, reasons and alternatives as a table for the documentation."""
    head = ["| refused | because | instead |", "|---|---|---|"]
    rows = [f"| {' | '.join(map(_escaped, refusal))} |" for refusal in REFUSALS.values()]
    return "\n".join([*head, *rows]) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([*_|])", r"\\\1", text)


def refusal_message(construct: str, reason: str = "") -> str:
    """The message for a construct that is refused; `reason` replaces the general one."""
    refusal = REFUSALS[construct]
    return (refusal._replace(reason=reason) if reason else refusal).message
