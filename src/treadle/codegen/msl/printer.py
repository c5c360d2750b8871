"""A kernel in the Metal Shading Language."""

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
from treadle.codegen.msl.language import MSL
from treadle.codegen.records import Binding, KernelCode, ParameterLayout, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.passes.access import Access, buffer_access
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import SCALARS, size_of

_FAST_MATH = "// Compile without fast math: it takes for granted that there is no NaN."
_MOST_BUFFERS = 31


def print_kernel(
    kernel: n.Kernel, slots: Mapping[str, int], target: Target, *, folded: bool
) -> KernelCode:
    """The kernel as Metal has it. It is inlined, has a block, returns nowhere before a
    barrier and has been through the passes of its target's record.

    Binding n is [[buffer(n)]]; the parameter block, if there is one, comes behind the last.
    Raises UnsupportedOnTarget for what Metal does not have.
    """
    kernel, facts = find_facts(kernel)
    block = kernel.block or Dim3()
    module = Module(MSL, kernel)
    module.print_function = made_function

    entry = module.names.fresh(kernel.name)
    access = buffer_access(kernel)
    layout = ParameterLayout.of(kernel.parameters)
    memories, bindings = bind(module, slots_of(kernel, slots), access)
    module.exchanges = _reads_what_is_written(kernel, bindings)
    fields = module.names.inner()
    names = {slot.parameter.name: fields.fresh(slot.parameter.name) for slot in layout.slots}
    functions = function_names(module, kernel)
    own = [(memory, module.names.fresh(memory.name)) for memory in kernel.memories]
    memories |= {m.name: MemoryText(name, m.element, m.space) for m, name in own}

    if len(bindings) + bool(layout.slots) > _MOST_BUFFERS:
        raise UnsupportedOnTarget(
            f"{kernel.name} takes {len(bindings)} arrays; Metal binds {_MOST_BUFFERS} buffers with "
            "the one for numbers: pack arrays into one",
            kernel.span,
        )
    heads = [
        _pointer(module, memories[binding.buffers[0]], number)
        for number, binding in enumerate(bindings)
    ]
    if layout.slots:
        members = [
            f"    {module.scalar(SCALARS[slot.stored])} {names[slot.parameter.name]};"
            for slot in layout.slots
        ]
        module.types["parameters"] = "\n".join(["struct Parameters {", *members, "};"])
        heads.append(f"constant Parameters& parameters [[buffer({len(bindings)})]]")
    texts = [
        function_text(module, module.names, functions[f.name], f, functions, facts)
        for f in kernel.functions
    ]
    paths = {name: f"parameters.{field}" for name, field in names.items()}
    parameters = {s.parameter.name: parameter_text(module, s, paths) for s in layout.slots}
    scope = scope_of(
        module, module.names, kernel.body, facts, memories, functions, parameters, kernel.span.file
    )
    statements.block(scope, kernel.body)
    heads += module.builtins.values()
    start = f"[[max_total_threads_per_threadgroup({block.count})]]\nkernel void {entry}"
    declared = _declarations(module, own, access)
    sections = [
        "\n".join([*head(kernel, entry, bindings, layout, folded=folded), _FAST_MATH]),
        "#include <metal_stdlib>\nusing namespace metal;",
        *module.types.values(),
        *module.helpers.values(),
        *texts,
        "\n".join([signature(start, heads), *declared, *scope.lines, "}"]),
    ]
    return KernelCode(
        target="msl",
        dialect=target.dialect,
        name=kernel.name,
        entry=entry,
        source="\n\n".join(sections) + "\n",
        block=block,
        workgroup=block,
        bindings=bindings,
        layout=layout,
        shared_bytes=sum(
            size_of(m.element) * (m.length or 0) for m, _ in own if m.space == "shared"
        ),
        folded=folded,
        requires=frozenset(module.required),
    )


def _reads_what_is_written(kernel: n.Kernel, bindings: tuple[Binding, ...]) -> bool:
    """Whether threads may read from device memory what others of their block wrote there."""
    buffers = {name for binding in bindings if binding.writes for name in binding.buffers}
    roots = (root_of(node.place) for node in walk(kernel.body) if isinstance(node, n.Load))
    return any(isinstance(root, n.Element) and root.memory in buffers for root in roots)


def _pointer(module: Module, memory: MemoryText, number: int) -> str:
    const = "" if memory.writes else "const "
    return f"device {const}{module.stored(memory.element)}* {memory.name} [[buffer({number})]]"


def _declarations(
    module: Module, own: list[tuple[n.Memory, str]], access: Mapping[str, Access]
) -> list[str]:
    """The lines that declare the kernel's memories."""
    lines = []
    for memory, name in own:
        align = alignment(memory, access)
        attribute = f"alignas({align}) " if align else ""
        space = "threadgroup " if memory.space == "shared" else ""
        text = module.declaration(memory.element, f"{name}[{memory.length}]")
        lines.append(f"    {attribute}{space}{text};")
    return lines
