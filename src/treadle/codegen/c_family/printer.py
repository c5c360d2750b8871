"""What the printers of the family share: functions, memories, the head of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treadle.codegen.blocks import title
from treadle.codegen.c_family import expressions, statements
from treadle.codegen.c_family.comments import Comments
from treadle.codegen.c_family.facts import Facts
from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.names import Names
from treadle.codegen.c_family.scope import MemoryText, Scope
from treadle.codegen.records import Binding, ParameterLayout
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.access import Access
from treadle.ir.prelude_names import PREFIX
from treadle.ir.types import Type, Void, align_of

_LINE = 100  # characters


# --- memory --------------------------------------------------------------------------------------


def slots_of(kernel: n.Kernel, chosen: Mapping[str, int]) -> list[list[n.Buffer]]:
    """The buffers of each binding, in binding order, numbered without gaps."""
    slots = {buffer.name: chosen.get(buffer.name, i) for i, buffer in enumerate(kernel.buffers)}
    return [
        [buffer for buffer in kernel.buffers if slots[buffer.name] == slot]
        for slot in sorted(set(slots.values()))
    ]


def bind(
    module: Module, slots: Sequence[list[n.Buffer]], access: Mapping[str, Access]
) -> tuple[dict[str, MemoryText], tuple[Binding, ...]]:
    """The pointers of the bindings, and what drivers must know of them."""
    memories: dict[str, MemoryText] = {}
    bindings: list[Binding] = []
    for buffers in slots:
        writes = any(access[buffer.name].writes for buffer in buffers)
        name = module.names.fresh(buffers[0].name, hides=True)
        # Where several types share an array, its pointer is to bytes of the first one's.
        memory = MemoryText(name, buffers[0].element, "global", writes)
        memories.update({buffer.name: memory for buffer in buffers})
        bindings.append(Binding(tuple(buffer.name for buffer in buffers), writes))
    return memories, tuple(bindings)


def alignment(memory: n.Memory, access: Mapping[str, Access]) -> int:
    """The alignment that a memory needs, 0 if its own type has it."""
    types: set[Type] = {memory.element}
    if memory.name in access:
        types |= access[memory.name].elements
    most = max(align_of(type) for type in types)
    return most if most > align_of(memory.element) else 0


# --- functions -----------------------------------------------------------------------------------


def scope_of(
    module: Module,
    outer: Names,
    body: n.Block,
    facts: Facts,
    memories: Mapping[str, MemoryText] | None = None,
    functions: Mapping[str, str] | None = None,
    parameters: Mapping[str, tuple[str, int]] | None = None,
    file: str = "",
) -> Scope:
    """A scope to print a body in; `file` is its source file, if comments are printed."""
    return Scope(
        module=module,
        memories=memories or {},
        functions=functions or {},
        parameters=parameters or {},
        render=expressions.render,
        facts=facts,
        names=outer.inner(),
        comments=Comments(file),
        mutable=statements.assigned_variables(body),
    )


def function_text(
    module: Module,
    outer: Names,
    name: str,
    function: n.Function,
    functions: Mapping[str, str],
    facts: Facts,
) -> str:
    """A device function."""
    file = function.span.file
    scope = scope_of(module, outer, function.body, facts, functions=functions, file=file)
    heads = []
    for parameter in function.parameters:
        if not isinstance(parameter, n.Variable):
            raise CompileError(f"{function.name} takes memory: inline it first", function.span)
        register = module.register(parameter.type, parameter)
        heads.append(f"{register} {scope.name(parameter.name)}")
    result = module.register(function.result)
    statements.block(scope, function.body)
    if not isinstance(function.result, Void) and not always_returns(function.body):
        scope.emit(f"return {module.zero(function.result)};")
    head = f"{module.language.function} {result} {name}({', '.join(heads)}) {{"
    return "\n".join([head, *scope.lines, "}"])


def made_function(module: Module, name: str, function: n.Function) -> str:
    """A function that the printer made, of which nothing is known."""
    return function_text(module, module.names, name, function, {}, Facts({}))


def always_returns(body: n.Block) -> bool:
    """Whether the end of a body is never reached."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, n.If):
        return always_returns(last.then) and always_returns(last.otherwise)
    return isinstance(last, n.Return)


def function_names(module: Module, kernel: n.Kernel) -> dict[str, str]:
    """What the kernel's functions are called."""
    return {f.name: module.names.fresh(f.name.removeprefix(PREFIX)) for f in kernel.functions}


def signature(start: str, heads: Sequence[str]) -> str:
    """The line that begins the kernel, cut if it is long."""
    inside = ", ".join(heads)
    line = f"{start}({inside}) {{"
    if len(line.rsplit("\n", 1)[-1]) <= _LINE:
        return line
    cut = inside if len(inside) + 4 <= _LINE else ",\n    ".join(heads)
    return f"{start}(\n    {cut}\n) {{"


# --- the head ------------------------------------------------------------------------------------


def head(
    kernel: n.Kernel,
    entry: str,
    bindings: Sequence[Binding],
    layout: ParameterLayout,
    *,
    folded: bool,
) -> list[str]:
    """The comment above a kernel: what it is launched with."""
    block = kernel.block
    assert block is not None
    lines = [f"// {title(kernel, entry, block)}"]
    if folded:
        lines.append("// The grid may be folded: the block comes from the grid in the parameters.")
    for number, binding in enumerate(bindings):
        names = ", ".join(binding.buffers)
        lines.append(f"// array {number}: {names}{' (written)' if binding.writes else ''}")
    if layout.slots:
        names = ", ".join(slot.parameter.name for slot in layout.slots)
        lines.append(f"// parameters: {names}")
    return lines
