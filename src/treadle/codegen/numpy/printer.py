"""A kernel as a module of Python.

    def kernel(c, buffers, parameters): …

runs a chunk of blocks: `c` says where its threads are, `buffers` are the bytes of the bindings and
`parameters` the numbers. The functions it calls (`load`, `both`, `merge`, …) are the driver's.
"""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.numpy.emitter import Constants, stored
from treadle.codegen.numpy.expressions import Memories
from treadle.codegen.numpy.functions import called_functions
from treadle.codegen.numpy.statements import Statements, print_function
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.access import Access, buffer_access
from treadle.ir.traverse import walk
from treadle.ir.types import SCALARS, size_of

ENTRY = "kernel"
SPLITS = "SPLITS"
"""The variable of a module with numbers that divide the index of a thread in its block."""
LOCAL = "LOCAL_BYTES"
"""The variable of a module that says how much memory a thread has for itself."""


def print_kernel(kernel: n.Kernel, slots: Mapping[str, int], workgroup: Dim3) -> KernelCode:
    """The Python of a kernel whose functions with effects are inlined."""
    if kernel.block is None:
        raise CompileError(f"{kernel.name} has no block yet", kernel.span)
    strides = {memory.name: _stride(memory) for memory in kernel.memories}
    access = buffer_access(kernel)
    memories, constants = Memories(strides, _constant(kernel, slots, access)), Constants()
    functions: list[str] = []
    for function in called_functions(kernel):
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
        f"{SPLITS} = {splits(kernel)}",
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


def splits(kernel: n.Kernel) -> tuple[int, ...]:
    """Divisors of the block's extent along x, each of the next one, by which the kernel divides
    numbers. Where a thread's index is split by them, such quotients and remainders of it grow
    evenly too."""
    assert kernel.block is not None
    extent, found = kernel.block.x, set()
    for node in walk(kernel.body):
        if isinstance(node, n.Binary) and isinstance(node.right, n.Constant):
            value = node.right.value
            if node.op in ("div", "rem", "floordiv", "mod"):
                found.add(value)
            elif node.op == "and":
                found.add(value + 1)
            elif node.op == "shr" and 0 <= value < 16:
                found.add(1 << int(value))
    chain = [1]
    for value in sorted(one for one in found if isinstance(one, int) and 1 < one < extent):
        if extent % value == 0 and value % chain[-1] == 0:
            chain.append(value)
    return tuple(chain[1:])


def _constant(
    kernel: n.Kernel, slots: Mapping[str, int], access: Mapping[str, Access]
) -> frozenset[str]:
    """The buffers whose memory the kernel does not write to, by whatever name."""
    written = {slots[b.name] for b in kernel.buffers if access[b.name].writes}
    return frozenset(b.name for b in kernel.buffers if slots[b.name] not in written)


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
