"""A kernel as a WGSL module."""

from __future__ import annotations

from treadle.codegen.blocks import check_threads, title
from treadle.codegen.records import Binding, KernelCode, ParameterLayout, Slot
from treadle.codegen.wgsl import expressions, plans, statements
from treadle.codegen.wgsl.helpers import HELPERS
from treadle.codegen.wgsl.module import Module
from treadle.codegen.wgsl.names import IN_ACCESSES, Names, mangle
from treadle.codegen.wgsl.options import WgslOptions
from treadle.codegen.wgsl.plans import Plan
from treadle.codegen.wgsl.scope import Scope
from treadle.codegen.wgsl.uniform import deciding_loads
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, TooManyArrays
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.passes.wide.layout import paired
from treadle.ir.prelude_names import PREFIX
from treadle.ir.traverse import walk
from treadle.ir.types import SCALARS, Void, size_of


def print_kernel(kernel: n.Kernel, options: WgslOptions | None = None) -> KernelCode:
    """The kernel as WGSL. It is inlined, has a block, and returns nowhere before a barrier.

    Raises UnsupportedOnTarget for what the device cannot do, CompileError for what asks too much
    of it (shared memory, threads, buffers), with numbers.
    """
    options = options or WgslOptions()
    if kernel.block is None:
        raise CompileError(f"{kernel.name} has no block yet: give one before printing", kernel.span)
    workgroup = options.workgroup or kernel.block
    module = Module(options, workgroup.x * workgroup.y * workgroup.z)
    check_threads(kernel, workgroup, options.limits)

    bodies = [kernel.body, *(function.body for function in kernel.functions)]
    # The user's names first: what the printer adds gives way to them.
    entry = module.names.fresh(kernel.name)
    slots = _slots(kernel, options)
    uses = plans.collect_uses(bodies)
    memories = [*kernel.memories, *(m for f in kernel.functions for m in f.memories)]
    layout = ParameterLayout.of(kernel.parameters)
    for name in IN_ACCESSES:
        module.names.avoid(name)
    variables = {name: module.names.fresh(name) for name in _memory_names(slots, memories)}
    for name in (*_local_names(bodies, kernel), "index", "start", "stop", "trip", "trips"):
        module.names.avoid(mangle(name))
    table, bindings, declarations = _bind_buffers(module, kernel, slots, uses, variables)
    shared_bytes = _bind_memories(module, memories, uses, variables, table, declarations)

    functions = {f.name: module.names.fresh(f.name.removeprefix(PREFIX)) for f in kernel.functions}
    outer = Names()  # what a local variable must not hide
    for name in (entry, *variables.values(), *functions.values(), *HELPERS):
        outer.avoid(name)
    fields = _parameter_fields(layout)
    parameters = {
        slot.parameter.name: _parameter_text(module, slot, fields) for slot in layout.slots
    }
    texts = [_function(module, outer, table, functions, f) for f in kernel.functions]
    main = _entry(module, outer, table, functions, parameters, kernel, entry, workgroup)

    parts = [_parameter_block(module, layout, fields), *declarations, *module.globals]
    own = [*texts, *module.functions.values()]
    helpers = module.fixed_helpers([*own, main])
    lanes = options.limits.subgroup_size if "subgroups" in module.required else 0
    sections = [
        "\n".join(module.headers()),
        _head(kernel, entry, bindings, layout, options, shared_bytes, lanes),
        "\n\n".join(module.struct_texts),
        "\n".join(part for part in parts if part),
        *helpers,
        *own,
        main,
    ]
    source = "\n\n".join(section for section in sections if section) + "\n"
    return KernelCode(
        target="wgsl",
        dialect=options.dialect,
        name=kernel.name,
        entry=entry,
        source=source,
        block=kernel.block,
        workgroup=workgroup,
        bindings=bindings,
        layout=layout,
        shared_bytes=shared_bytes,
        folded=options.folded,
        checked=options.checked,
        requires=frozenset(module.required),
    )


# --- names ---------------------------------------------------------------------------------------


def _local_names(bodies: list[n.Block], kernel: n.Kernel) -> list[str]:
    found = {node.name for body in bodies for node in walk(body) if isinstance(node, n.Variable)}
    return sorted(found - {parameter.name for parameter in kernel.parameters})


def _memory_names(slots: dict[int, list[n.Buffer]], memories: list[n.Memory]) -> list[str]:
    return [buffers[0].name for buffers in slots.values()] + [memory.name for memory in memories]


# --- memory --------------------------------------------------------------------------------------


def _slots(kernel: n.Kernel, options: WgslOptions) -> dict[int, list[n.Buffer]]:
    """The buffers of each binding, in binding order, numbered without gaps."""
    chosen = {
        buffer.name: options.bindings.get(buffer.name, position)
        for position, buffer in enumerate(kernel.buffers)
    }
    slots: dict[int, list[n.Buffer]] = {}
    for number, slot in enumerate(sorted(set(chosen.values()))):
        slots[number] = [buffer for buffer in kernel.buffers if chosen[buffer.name] == slot]
    most = options.limits.max_buffers_per_kernel
    if len(slots) > most:
        raise TooManyArrays(
            f"{kernel.name} takes {len(slots)} arrays; this device binds at most {most} to a "
            "kernel, and they are too large to be copied to one: split the kernel",
            kernel.span,
            len(slots),
            most,
        )
    return slots


def _bind_buffers(
    module: Module,
    kernel: n.Kernel,
    slots: dict[int, list[n.Buffer]],
    uses: dict[str, plans.Uses],
    variables: dict[str, str],
) -> tuple[dict[str, Plan], tuple[Binding, ...], list[str]]:
    table: dict[str, Plan] = {}
    bindings: list[Binding] = []
    declarations: list[str] = []
    for number, buffers in slots.items():
        first = buffers[0]
        found = plans.merge(uses.get(buffer.name, plans.Uses()) for buffer in buffers)
        plan = plans.make_plan(module, variables[first.name], "storage", first.element, found)
        table.update({buffer.name: plan for buffer in buffers})
        bindings.append(Binding(tuple(buffer.name for buffer in buffers), plan.writes))
        access = "read_write" if plan.writes else "read"
        coherent = ""
        if plan.writes and any(buffer.coherent for buffer in buffers):
            module.require("device_fences", "memory that blocks exchange", first.span)
            coherent = "@coherent "
        declarations.append(
            f"@group(0) @binding({number}) {coherent}var<storage, {access}> {plan.variable}: "
            f"array<{plans.unit_text(module, plan)}>;"
        )
    return table, tuple(bindings), declarations


def _bind_memories(
    module: Module,
    memories: list[n.Memory],
    uses: dict[str, plans.Uses],
    variables: dict[str, str],
    table: dict[str, Plan],
    declarations: list[str],
) -> int:
    """Declare shared and local memories; the bytes that the shared ones take.

    If they do not fit as they are declared most readily, they are packed as C packs them.
    """
    shared = [memory for memory in memories if memory.space == "shared"]
    most = module.options.limits.max_shared_memory
    for packed in (False, True):
        chosen, total = _plan_shared(module, shared, uses, variables, packed)
        if total <= most:
            break
    else:
        raise CompileError(
            f"the kernel's shared memory takes {total} bytes; this device has {most} for a block: "
            "use smaller tiles",
            shared[0].span,
        )
    table.update(chosen)
    for memory in memories:
        if memory.space == "local":
            found = uses.get(memory.name, plans.Uses())
            table[memory.name] = plans.make_plan(
                module, variables[memory.name], "private", memory.element, found
            )
        plan = table[memory.name]
        count = plans.array_length(plan, memory.element, _length(module, memory))
        declarations.append(
            f"var<{plan.space}> {plan.variable}: array<{plans.unit_text(module, plan)}, {count}>;"
        )
    return total


def _plan_shared(
    module: Module,
    shared: list[n.Memory],
    uses: dict[str, plans.Uses],
    variables: dict[str, str],
    packed: bool,
) -> tuple[dict[str, Plan], int]:
    chosen: dict[str, Plan] = {}
    total = 0
    for memory in shared:
        found = uses.get(memory.name, plans.Uses())
        plan = plans.make_plan(
            module, variables[memory.name], "workgroup", memory.element, found, packed
        )
        chosen[memory.name] = plan
        count = plans.array_length(plan, memory.element, _length(module, memory))
        total += -(-plans.workgroup_array_bytes(module, plan, count) // 16) * 16
    return chosen, total


def _length(module: Module, memory: n.Memory) -> int:
    if memory.length is not None:
        return memory.length
    available = module.options.dynamic_shared_bytes
    count = available // size_of(memory.element)
    if count < 1:
        raise CompileError(
            f"shared memory {memory.name!r} gets its size at launch, and the launch gives it "
            f"{available} bytes: kernel[grid, block, shared_bytes](…)",
            memory.span,
        )
    return count


# --- parameters ----------------------------------------------------------------------------------


def _parameter_fields(layout: ParameterLayout) -> dict[str, str]:
    """The names of the parameters as members of their struct."""
    names = Names()
    return {slot.parameter.name: names.fresh(slot.parameter.name) for slot in layout.slots}


def _parameter_block(module: Module, layout: ParameterLayout, fields: dict[str, str]) -> str:
    if not layout.slots:
        return ""
    pairs = "int64" not in module.available  # then 64-bit integers are two words here, too
    types = [SCALARS[slot.stored] for slot in layout.slots]
    members = [
        f"    {fields[slot.parameter.name]}: {module.register(paired(type) if pairs else type)},"
        for slot, type in zip(layout.slots, types, strict=True)
    ]
    module.struct_texts.append("\n".join(["struct Parameters {", *members, "}"]))
    return "@group(1) @binding(0) var<uniform> parameters: Parameters;"


def _parameter_text(module: Module, slot: Slot, fields: dict[str, str]) -> str:
    """A parameter as its type has it in a register."""
    text = f"parameters.{fields[slot.parameter.name]}"
    type = slot.parameter.type
    if type.kind == "bool":
        return f"({text} != 0u)"
    if type.name == "f16" and module.native_f16:
        module.scalar_register(type)
        return f"f16({text})"
    return text


# --- functions -----------------------------------------------------------------------------------


def _scope(
    module: Module,
    outer: Names,
    table: dict[str, Plan],
    functions: dict[str, str],
    body: n.Block,
    parameters: dict[str, str] | None = None,
) -> Scope:
    return Scope(
        module=module,
        plans=table,
        functions=functions,
        parameters=parameters or {},
        render=expressions.render,
        mutable=statements.assigned_variables(body),
        is_entry=parameters is not None,
        names=Names(outer),
    )


def _function(
    module: Module,
    outer: Names,
    table: dict[str, Plan],
    functions: dict[str, str],
    function: n.Function,
) -> str:
    scope = _scope(module, outer, table, functions, function.body)
    heads = []
    for parameter in function.parameters:
        if not isinstance(parameter, n.Variable):
            raise CompileError(
                f"{function.name} takes memory: WGSL needs it inlined first", function.span
            )
        register = module.register(parameter.type, parameter.span)
        name = scope.name(parameter.name)
        heads.append(f"{name}: {register}")
    statements.block(scope, function.body)
    is_void = isinstance(function.result, Void)
    if not is_void and not _always_returns(function.body):
        scope.emit(f"return {module.zero(function.result)};")
    arrow = "" if is_void else f" -> {module.register(function.result)}"
    head = f"fn {functions[function.name]}({', '.join(heads)}){arrow} {{"
    return "\n".join([head, *scope.lines, "}"])


def _always_returns(body: n.Block) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, n.If):
        return _always_returns(last.then) and _always_returns(last.otherwise)
    return isinstance(last, n.Return)


def _entry(
    module: Module,
    outer: Names,
    table: dict[str, Plan],
    functions: dict[str, str],
    parameters: dict[str, str],
    kernel: n.Kernel,
    entry: str,
    workgroup: Dim3,
) -> str:
    scope = _scope(module, outer, table, functions, kernel.body, parameters)
    scope.lengths = _lengths(kernel)
    if module.dialect.checks_uniformity:
        scope.uniform_loads = deciding_loads(kernel)
    statements.block(scope, kernel.body)
    opening = _opening(module)
    inputs = "".join(f"\n    {declaration}," for declaration in module.builtins.values())
    inputs += "\n" if inputs else ""
    head = (
        f"@compute @workgroup_size({workgroup.x}, {workgroup.y}, {workgroup.z})\n"
        f"fn {entry}({inputs}) {{"
    )
    return "\n".join([head, *opening, *scope.lines, "}"])


def _lengths(kernel: n.Kernel) -> frozenset[str]:
    """Parameters that cannot be near the top of their range: extents of arrays whose elements
    take two bytes or more, since an array takes less than 2 GiB."""
    sizes = {buffer.name: size_of(buffer.element) for buffer in kernel.buffers}
    return frozenset(
        parameter.name
        for parameter in kernel.parameters
        if parameter.origin[:1] in (("size",), ("shape",))
        and sizes.get(str(parameter.origin[1]), 0) >= 2
    )


def _opening(module: Module) -> list[str]:
    """The lines that give the built-in values their names."""
    lines: list[str] = []
    texts = {
        "local_id": ("thread_idx", "vec3<i32>(local_id)"),
        "subgroup_lane": ("lane", "i32(subgroup_lane)"),
        "subgroup_width": ("subgroup_size", "i32(subgroup_width)"),
        "workgroup_id": ("block_idx", "vec3<i32>(workgroup_id)"),
        "num_workgroups": ("grid_dim", "vec3<i32>(num_workgroups)"),
    }
    for source, (name, text) in texts.items():
        if source not in module.builtins:
            continue
        if name in module.private_builtins:
            register = "vec3<i32>" if text.startswith("vec3") else "i32"
            module.globals.append(f"var<private> {name}: {register};")
            lines.append(f"    {name} = {text};")
        else:
            lines.append(f"    let {name} = {text};")
    if module.ones:
        # Not a choice between two numbers, after which compilers do the sums for either.
        one = "vec2<f64>(1u + workgroup_id.xy / num_workgroups.xy)"
        if "function" in module.ones:
            module.globals.append("var<private> unknown_one: vec2<f64>;")
            lines.append(f"    unknown_one = {one};")
        else:
            lines.append(f"    let unknown_one = {one};")
    if "subgroup_present" in module.private_builtins:
        pinned = module.options.limits.subgroup_size
        width = f"{pinned}u" if pinned else "subgroup_width"
        module.globals.append("var<private> subgroup_present: u32;")
        lines.append(
            f"    subgroup_present = min({width}, {module.threads}u - "
            "(local_index - subgroup_lane));"
        )
    return lines


# --- the head ------------------------------------------------------------------------------------


def _head(
    kernel: n.Kernel,
    entry: str,
    bindings: tuple[Binding, ...],
    layout: ParameterLayout,
    options: WgslOptions,
    shared_bytes: int,
    lanes: int,
) -> str:
    block = kernel.block
    assert block is not None
    lines = [f"// {title(kernel, entry, block)}"]
    if options.workgroup and options.workgroup != block:
        w = options.workgroup
        lines[0] += f", run by {w.x} x {w.y} x {w.z} invocations"
    if options.folded:
        lines.append("// The grid may be folded: block_idx comes from the grid in the parameters.")
    for number, binding in enumerate(bindings):
        names = ", ".join(binding.buffers)
        if len(binding.buffers) > 1:
            names += ", in one buffer, each from its offset on"
        written = " (written)" if binding.writes else ""
        lines.append(f"// group 0, binding {number}: {names}{written}")
    if layout.slots:
        names = ", ".join(slot.parameter.name for slot in layout.slots)
        lines.append(f"// group 1, binding 0: {layout.size} bytes of parameters: {names}")
    if shared_bytes > Limits().max_shared_memory:
        lines.append(f"// requiredLimits: maxComputeWorkgroupStorageSize {shared_bytes}")
    if lanes:
        lines.append(f"// for devices whose subgroupMinSize and subgroupMaxSize are {lanes}")
    return "\n".join(lines)
