"""Printed CUDA C++ and Metal run on the CPU: g++ compiles them against a shim of the language.

Threads of a block are fibers, so barriers and subgroup operations work. What C++ leaves undefined
(signed overflow, shifts by the width, division by zero, casts that do not fit) traps, so a run
also says that the text never relies on it.

    batch = Batch("cuda", {"first": code, "second": other})   # one run of the compiler for all
    batch.run("first", grid=4, buffers={"x": x, "y": y}, parameters={"a": 2.0})
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from treadle.codegen.records import KernelCode
from treadle.core.dim3 import Dim3
from treadle.ir.nodes import Parameter

_HERE = Path(__file__).parent
_FLAGS = [
    "-std=c++14", "-O1", "-fPIC", "-shared", "-w", "-ffp-contract=off", "-fno-strict-aliasing",
    "-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero,float-cast-overflow",
    "-fsanitize-undefined-trap-on-error",
]  # fmt: skip
_ASM = {
    r'asm\("cvt\.f32\.f16 [^;]*;" : "=f"\((.*?)\) : "h"\((.*?)\)\);':
        r"\1 = shim::half_to_float(\2);",
    r'asm\("cvt\.rn\.f16\.f32 [^;]*;" : "=h"\((.*?)\) : "f"\((.*?)\)\);':
        r"\1 = shim::float_to_half(\2);",
    r'asm\("dp4a\.u32\.s32 [^;]*;" : "=r"\((.*?)\) : "r"\((.*?)\), "r"\((.*?)\), "r"\((.*?)\)\);':
        r"\1 = shim::dot_bytes<unsigned char, signed char>(\2, \3, \4);",
}  # fmt: skip


class Batch:
    """Kernels of one language, compiled together into one library."""

    def __init__(self, language: str, codes: Mapping[str, KernelCode]) -> None:
        self.codes = dict(codes)
        self._entries = {name: f"run_{number}" for number, name in enumerate(codes)}
        adapt = {"cuda": _cuda, "msl": _msl}[language]
        parts = [f'#include "{_HERE / f"{language}_shim.h"}"']
        for name, code in self.codes.items():
            parts.append(adapt(code, self._entries[name]))
        with tempfile.TemporaryDirectory(prefix="cpp_kernels") as folder:
            self._library = _compiled("\n\n".join(parts), Path(folder))

    def run(
        self,
        name: str,
        grid: int | Sequence[int],
        buffers: Mapping[str, np.ndarray[Any, Any]],
        parameters: Mapping[str, Any] | None = None,
        *,
        launched: int | Sequence[int] | None = None,
        pointers: Mapping[str, np.ndarray[Any, Any]] | None = None,
    ) -> None:
        """Run a kernel; arrays are changed in place. `launched` is another grid than the kernel's
        own (folded); `pointers` are the arrays that the buffers are views of."""
        code = self.codes[name]
        extent = Dim3.of(grid)
        arrays = buffers if pointers is None else pointers
        bound = (ctypes.c_void_p * max(len(code.bindings), 1))()
        for number, binding in enumerate(code.bindings):
            bound[number] = arrays[binding.buffers[0]].ctypes.data
        block = parameter_block(code, extent, buffers, parameters or {})
        launch = (ctypes.c_uint * 3)(*Dim3.of(launched if launched is not None else grid))
        threads = (ctypes.c_uint * 3)(*code.block)
        failed = self._library[self._entries[name]](bound, block, launch, threads)
        assert failed == 0, f"{name} does what C++ leaves undefined:\n{code.source}"


def _compiled(text: str, folder: Path) -> ctypes.CDLL:
    source, library = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(text)
    command = ["g++", *_FLAGS, str(source), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr[:4000]}\n{_failing(done.stderr, text)}"
    return ctypes.CDLL(str(library))  # which stays loaded when its file is gone


def _failing(errors: str, text: str) -> str:
    """The lines around the first error."""
    found = re.search(r"kernels\.cpp:(\d+)", errors)
    if not found:
        return ""
    line = int(found[1])
    return "\n".join(text.splitlines()[max(line - 15, 0) : line + 5])


def parameter_block(
    code: KernelCode,
    grid: Dim3,
    buffers: Mapping[str, np.ndarray[Any, Any]],
    given: Mapping[str, Any],
) -> bytes:
    """The kernel's scalars as a launch would pack them."""
    values = []
    for slot in code.layout.slots:
        parameter = slot.parameter
        value = given.get(parameter.name)
        value = _derived(parameter, grid, code.block, buffers) if value is None else value
        values.append(float(value) if parameter.type.is_float else int(value))
    return struct.pack(code.layout.format, *values)


def _derived(
    parameter: Parameter, grid: Dim3, block: Dim3, buffers: Mapping[str, np.ndarray[Any, Any]]
) -> int:
    match parameter.origin:
        case ("size", str(name)):
            return buffers[name].size
        case ("shape", str(name), int(axis)):
            return int(buffers[name].shape[axis])
        case ("stride", str(name), int(axis)):
            return buffers[name].strides[axis] // buffers[name].itemsize
        case ("grid", int(axis)):
            return grid[axis]
        case ("threads", int(axis)):
            return grid[axis] * block[axis]
    raise KeyError(f"no value for the parameter {parameter.name}")


# --- the text as C++ -----------------------------------------------------------------------------


def _cuda(code: KernelCode, entry: str) -> str:
    source = code.source.replace('extern "C" __global__', "static")
    for pattern, text in _ASM.items():
        source = re.sub(pattern, text, source)
    source = source.replace(
        "extern __shared__ __align__(16) unsigned char shared_memory[];",
        f"alignas(16) static unsigned char shared_memory[{max(code.dynamic_shared, 1)}];",
    )
    head = re.search(rf"\b{code.entry}\((.*?)\) {{", source, re.DOTALL)
    assert head is not None
    types = [part.rsplit(" ", 1)[0].replace("__restrict__", "") for part in _split(head[1])]
    arguments = [
        f"({type.strip()})buffers[{i}]" for i, type in enumerate(types[: len(code.bindings)])
    ]
    arguments += [
        f"*({type.strip()}*)(block + {slot.offset})"
        for type, slot in zip(types[len(code.bindings) :], code.layout.slots, strict=True)
    ]
    return _wrapped(source, entry, f"{code.entry}({', '.join(arguments)})")


def _msl(code: KernelCode, entry: str) -> str:
    source = code.source.replace("#include <metal_stdlib>\n", "")
    # Shared memory is declared as a kernel's own, and belongs to all threads.
    source = re.sub(r"^    (alignas\(\d+\) )?threadgroup ", r"    \1static ", source, flags=re.M)
    source = _without_twins(source)
    head = re.search(rf"\bkernel void {code.entry}\((.*?)\) {{", source, re.DOTALL)
    assert head is not None
    arguments = []
    for part in _split(head[1]):
        declared, attribute = part.split(" [[")
        type, name = declared.rsplit(" ", 1)
        number = re.match(r"buffer\((\d+)\)", attribute)
        if number is None:
            arguments.append(_METAL_INPUTS[attribute.rstrip("]")])
        elif name == "parameters":
            arguments.append("*(Parameters*)block")
        else:
            arguments.append(f"({type})buffers[{number[1]}]")
    return _wrapped(source, entry, f"{code.entry}({', '.join(arguments)})")


def _without_twins(source: str) -> str:
    """The text without functions that differ from another only in the spaces they point into."""
    found: dict[str, str] = {}
    for part in source.split("\n\n"):
        first = next((line for line in part.split("\n") if not line.startswith("//")), part)
        found.setdefault(re.sub(r"\b(device|threadgroup|thread) ", "", first), part)
    return "\n\n".join(found.values())


def _index(name: str) -> str:
    return f"uint3({', '.join(f'{name}.{axis}' for axis in 'xyz')})"


_METAL_INPUTS = {
    "thread_position_in_threadgroup": _index("shim::now().current->index"),
    "threadgroup_position_in_grid": _index("shim::now().block"),
    "threadgroups_per_grid": _index("shim::now().blocks"),
    "thread_index_in_simdgroup": "shim::now().current->number % 32",
    "thread_index_in_threadgroup": "shim::now().current->number",
}


def _split(heads: str) -> list[str]:
    return [part.strip() for part in heads.split(",") if part.strip()]


def _wrapped(source: str, entry: str, call: str) -> str:
    return (
        f"namespace of_{entry} {{\n{source}\n}}\n"
        f'extern "C" int {entry}(void** buffers, char* block, unsigned* grid, unsigned* threads)\n'
        "{\n"
        f"    using namespace of_{entry};\n"
        f"    return shim::launch(grid, threads, [=] {{ {call}; }});\n}}"
    )
