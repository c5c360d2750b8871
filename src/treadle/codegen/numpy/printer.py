"""A kernel as a module of Python.

    def kernel(c, buffers, parameters): …

runs a chunk of blocks: `c` says where its threads are, `buffers` are the bytes of the bindings and
`parameters` the numbers. The functions it calls (`load`, `both`, `merge`, …) are the driver's.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.numpy.emitter import Constants, stored
from treadle.codegen.numpy.expressions import Memories
from treadle.codegen.numpy.statements import Statements, print_function
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.access import buffer_access
from treadle.ir.types import SCALARS, size_of

ENTRY = "kernel"
LOCAL = "LOCAL_BYTES"
"""The variable of a module that says how much memory a thread has for itself."""


def print_kernel(kernel: n.Kernel, slots: Mapping[str, int], workgroup: Dim3) -> KernelCode:
    """The Python of a kernel whose functions with effects are inlined."""
    if kernel.block is None:
        raise CompileError(f"{kernel.name} has no block yet", kernel.span)
    strides = {memory.name: _stride(memory) for memory in kernel.memories}
    memories, constants = Memories(strides), Constants()
    functions: list[str] = []
    for function in kernel.functions:
        functions += ["", *print_function(function, constants, memories)]
    body = Statements(constants, memories)
    parameters = [
        name
        for parameter in kernel.parameters
        for name in body.emitter.parts(n.Variable(parameter.name, parameter.type))
    ]
    body.body(kernel.body)
    lines = [
        f"# {kernel.name}: blocks of {' x '.join(map(str, kernel.block))} threads",
        f"{LOCAL} = {sum(strides[m.name] for m in kernel.memories if m.space == 'local')}",
        *constants.lines(),
        *functions,
        "",
        f"def {ENTRY}(c, buffers, parameters):",
        "    m = True",
        *_memories(kernel, slots, memories, strides),
    ]
    if parameters:
        lines.append(f"    ({', '.join(parameters)},) = parameters")
    lines += [*body.emitter.lines, "    return"]
    access = buffer_access(kernel)
    names = [
        tuple(b.name for b in kernel.buffers if slots[b.name] == slot)
        for slot in range(max(slots.values(), default=-1) + 1)
    ]
    shared = [memory for memory in kernel.memories if memory.space == "shared"]
    return KernelCode(
        target="numpy",
        dialect="",
        name=kernel.name,
        entry=ENTRY,
        source="\n".join(lines) + "\n",
        block=kernel.block,
        workgroup=workgroup,
        bindings=tuple(
            Binding(buffers, any(access[name].writes for name in buffers)) for buffers in names
        ),
        layout=ParameterLayout.of(kernel.parameters),
        shared_bytes=sum(size_of(memory.element) * (memory.length or 0) for memory in shared),
    )


def _stride(memory: n.Memory) -> int:
    """Bytes from the memory of a block (or thread) to that of the next one."""
    size = size_of(memory.element) * (memory.length or 0)
    return max(-(-size // 8) * 8, 8)


def _memories(
    kernel: n.Kernel, slots: Mapping[str, int], memories: Memories, strides: Mapping[str, int]
) -> list[str]:
    """What defines the arrays that the body uses."""
    lines = []
    spaces = {memory.name: memory.space for memory in kernel.memories}
    used = {memory for memory, _ in memories.views}
    for name in dict.fromkeys((*(b.name for b in kernel.buffers), *spaces)):
        if name not in used:
            continue
        stem = memories.stem(name)
        if name in spaces:
            lines.append(f"    {stem} = c.{spaces[name]}({strides[name]})  # {name}")
        else:
            lines.append(f"    {stem} = buffers[{slots[name]}]  # {name}")
    for (memory, dtype), view in memories.views.items():
        lines.append(f"    {view} = view({memories.stem(memory)}, {dtype})")
        if memory in strides:
            step = strides[memory] // _SIZES[dtype]
            each = "blocks" if spaces[memory] == "shared" else "threads"
            lines.append(f"    {view}_at = c.{each} * {step}")
    return lines


_SIZES = {stored(type): size_of(type) for type in SCALARS.values()}
