"""A kernel as CUDA C++."""

from __future__ import annotations

from collections.abc import Mapping

from treadle.codegen.c_family import statements
from treadle.codegen.c_family.facts import find_facts
from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.parameters import parameter_text
from treadle.codegen.c_family.printer import (
    alignment,
    bind,
    function_names,
    function_text,
    head,
    made_function,
    scope_of,
    signature,
    slots_of,
)
from treadle.codegen.c_family.scope import MemoryText
from treadle.codegen.cuda.language import CUDA
from treadle.codegen.nvidia import LARGEST_STATIC, check_parameters
from treadle.codegen.records import KernelCode, ParameterLayout, Target
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.passes.access import Access, buffer_access
from treadle.ir.types import SCALARS, size_of


def print_kernel(
    kernel: n.Kernel, slots: Mapping[str, int], target: Target, *, folded: bool
) -> KernelCode:
    """The kernel as CUDA C++. It is inlined, has a block, returns nowhere before a
    barrier and has been through the passes of its target's record.

    Its parameters are a pointer for each binding, then the slots of the layout in order.
    """
    kernel, facts = find_facts(kernel)
    block = kernel.block or Dim3()
    module = Module(CUDA, kernel)
    module.print_function = made_function

    entry = module.names.fresh(kernel.name)
    access = buffer_access(kernel)
    layout = ParameterLayout.of(kernel.parameters)
    memories, bindings = bind(module, slots_of(kernel, slots), access)
    names = {slot.parameter.name: module.names.fresh(slot.parameter.name) for slot in layout.slots}
    functions = function_names(module, kernel)
    own = [(memory, module.names.fresh(memory.name)) for memory in kernel.memories]
    memories |= {m.name: MemoryText(name, m.element, m.space) for m, name in own}

    pointers = [memories[binding.buffers[0]] for binding in bindings]
    heads = [_pointer(module, memory) for memory in pointers]
    heads += [f"{module.scalar(SCALARS[s.stored])} {names[s.parameter.name]}" for s in layout.slots]
    declared, shared_bytes, dynamic = _declarations(module, own, access)
    texts = [
        function_text(module, module.names, functions[f.name], f, functions, facts)
        for f in kernel.functions
    ]
    parameters = {s.parameter.name: parameter_text(module, s, names) for s in layout.slots}
    scope = scope_of(
        module, module.names, kernel.body, facts, memories, functions, parameters, kernel.span.file
    )
    statements.block(scope, kernel.body)
    start = f'extern "C" __global__ void __launch_bounds__({block.count}) {entry}'
    sections = [
        "\n".join(head(kernel, entry, bindings, layout, folded=folded)),
        *module.types.values(),
        *module.helpers.values(),
        *texts,
        "\n".join([signature(start, heads), *declared, *scope.lines, "}"]),
    ]
    check_parameters(kernel, bindings, layout)
    return KernelCode(
        target="cuda",
        dialect=target.dialect,
        name=kernel.name,
        entry=entry,
        source="\n\n".join(sections) + "\n",
        block=block,
        workgroup=block,
        bindings=bindings,
        layout=layout,
        shared_bytes=shared_bytes,
        dynamic_shared=dynamic,
        folded=folded,
        requires=frozenset(module.required),
    )


def _pointer(module: Module, memory: MemoryText) -> str:
    const = "" if memory.writes else "const "
    return f"{const}{module.stored(memory.element)}* __restrict__ {memory.name}"


def _declarations(
    module: Module, own: list[tuple[n.Memory, str]], access: Mapping[str, Access]
) -> tuple[list[str], int, int]:
    """The lines that declare the kernel's memories, the bytes that the shared ones take, and how
    many of these a launch must ask for."""
    shared = [(memory, name) for memory, name in own if memory.space == "shared"]
    offsets: list[int] = []
    end = 0
    for memory, _ in shared:
        offsets.append(-(-end // 16) * 16)
        end = offsets[-1] + size_of(memory.element) * (memory.length or 0)
    lines = []
    if dynamic := end > LARGEST_STATIC:
        lines.append("    extern __shared__ __align__(16) unsigned char shared_memory[];")
    for memory, name in own:
        align = alignment(memory, access)
        attribute = f"__align__({align}) " if align else ""
        text = module.declaration(memory.element, f"{name}[{memory.length}]")
        if memory.space == "local":
            lines.append(f"    {attribute}{text};")
        elif not dynamic:
            lines.append(f"    __shared__ {attribute}{text};")
        else:
            at = offsets[[m.name for m, _ in shared].index(memory.name)]
            stored = module.stored(memory.element)
            lines.append(f"    {stored}* {name} = ({stored}*)(shared_memory + {at});")
    return lines, end, end if dynamic else 0
