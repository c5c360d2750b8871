"""A kernel as a PTX module.

The entry point's parameters are a pointer for each binding, then the kernel's scalars as
`ParameterLayout` lists them. Blocks are of the size that was printed for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from treadle.codegen.blocks import title
from treadle.codegen.nvidia import LARGEST_STATIC, check_parameters
from treadle.codegen.ptx import casts
from treadle.codegen.ptx import stages as ptx_stages
from treadle.codegen.ptx.accesses import Scope
from treadle.codegen.ptx.emitter import Emitter, Module
from treadle.codegen.ptx.memory import Storage
from treadle.codegen.ptx.ptxas_workarounds import FUSES_ADDITIONS, finds_constants_late
from treadle.codegen.ptx.spelling import KINDS, REGISTERS
from treadle.codegen.ptx.statements import Statements
from treadle.codegen.ptx.tensor_maps import TensorMaps
from treadle.codegen.ptx.values import Value
from treadle.codegen.records import Binding, KernelCode, ParameterLayout, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir.intervals import Interval, parameter_interval
from treadle.ir.passes.access import buffer_access
from treadle.ir.passes.roles import APART, FIRST, copiers_of, with_roles
from treadle.ir.traverse import statements_in
from treadle.ir.types import BOOL, F16, SCALARS, align_of, size_of

_ALIGNMENT = 16
_REGISTERS = 64 << 10  # of a multiprocessor
_PER_THREAD = 128
_FEWEST_WORDS, _MOST_WORDS = 24, 96
_MOST_BLOCKS = 16  # that the smallest of these multiprocessors holds
_ARCHITECTURE = re.compile(r"sm_(\d+)[a-z]?").fullmatch


def print_kernel(
    kernel: n.Kernel,
    slots: Mapping[str, int],
    target: Target,
    *,
    folded: bool = False,
    ranges: Mapping[str, Interval] | None = None,
) -> KernelCode:
    """The kernel as PTX for a device's architecture ("sm_90"; "" for the oldest). It is inlined,
    has a block, returns nowhere before a barrier and has been through the passes of its target's
    record. `slots` gives each buffer its binding. `ranges` is what is known
    of parameters and variables, beyond what follows from their values."""
    block = kernel.block
    if block is None:
        raise CompileError(f"`{kernel.name}` has no block size yet", kernel.span)
    copiers = copiers_of(kernel)
    if copiers:
        kernel = with_roles(kernel)
    threads = Dim3(block.count + copiers) if copiers else block
    layout = ParameterLayout.of(kernel.parameters)
    architecture = _architecture(target)
    late = architecture in FUSES_ADDITIONS and finds_constants_late(kernel)
    module = Module(architecture, kernel.fastmath, late)
    entry = module.names.fresh(kernel.name)
    bindings = _bindings(kernel, slots)
    shared, shared_bytes, dynamic = _shared_memories(module, kernel)

    body = Statements(Emitter(module), Scope(), block)
    body.setup(kernel.body, {function.name: function for function in kernel.functions})
    body.scope.memories.update(shared)
    body.ranges = ranges or {}
    parameters = _load_parameters(body, kernel, slots, bindings, layout)
    _local_memories(body, kernel)
    body.maps = TensorMaps(body.e, kernel, slots, layout)
    if copiers:
        body.scope.values[APART.name] = ptx_stages.copiers(body, "ge")
    if copiers > stages.COPIERS:
        body.scope.values[FIRST.name] = ptx_stages.copiers(body, "eq")
    if body.block(kernel.body):
        body.e.do("ret")
    parameters += body.maps.declared
    source = "\n".join((
        *_head(module, kernel, entry, threads),
        *_shared_declarations(shared, kernel, dynamic),
        f".visible .entry {entry}({','.join(parameters)}{chr(10) if parameters else ''})",
        f".reqntid {threads.x}, {threads.y}, {threads.z}",
        *_residence(body, block, kernel.registers, copiers),
        *_clusters(body.maps.cluster),
        "{",
        *body.e.declarations(),
        *body.locals,
        *body.e.text(),
        "}",
        "",
    ))  # fmt: skip
    check_parameters(kernel, bindings, layout)
    return KernelCode(
        target="ptx",
        dialect=target.dialect,
        name=kernel.name,
        entry=entry,
        source=source,
        block=block,
        workgroup=threads,
        bindings=bindings,
        layout=layout,
        shared_bytes=shared_bytes,
        dynamic_shared=dynamic,
        folded=folded,
        maps=body.maps.maps,
    )


def _architecture(target: Target) -> int:
    if not target.dialect:
        return 70
    found = _ARCHITECTURE(target.dialect)
    if not found or int(found[1]) < 70:
        raise CompileError(
            f"PTX is printed for sm_70 and newer, not for {target.dialect!r}; on such a device use "
            "WebGPU or the CPU"
        )
    return int(found[1])


def _head(module: Module, kernel: n.Kernel, entry: str, threads: Dim3) -> list[str]:
    major, minor = module.version
    return [
        f"// {title(kernel, entry, threads).encode('ascii', 'replace').decode()}",
        f".version {major}.{minor}",
        f".target sm_{module.target}{'a' if module.exact else ''}",
        ".address_size 64",
        "",
    ]


def _residence(body: Statements, block: Dim3, enough: int, copiers: int) -> list[str]:
    """Ask for as many blocks on a multiprocessor as leave a thread 128 registers, or those that the
    kernel says are enough, if the variables that change are many and fit in: ptxas would rather
    take a few more registers, and halve the threads that run. Where registers are moved from a
    group that copies, the threads of one block begin with as many as there are: without a word
    about residence ptxas at times does not know how many, and leaves them where they are."""
    if copiers > stages.COPIERS:
        return [".minnctapersm 1"]
    words = sum(2 if kind in ("b64", "f64") else 1 for kind in body.changing.values())
    blocks = _REGISTERS // (enough or _PER_THREAD) // block.count
    wanted = blocks > 1 and words >= _FEWEST_WORDS and (enough or words <= _MOST_WORDS)
    return [f".minnctapersm {min(blocks, _MOST_BLOCKS)}"] if wanted else []


def _clusters(blocks: int) -> list[str]:
    """Blocks that share boxes run side by side."""
    return [".explicitcluster", f".reqnctapercluster {blocks}, 1, 1"] if blocks > 1 else []


# --- parameters -----------------------------------------------------------------------------------


def _bindings(kernel: n.Kernel, slots: Mapping[str, int]) -> tuple[Binding, ...]:
    access = buffer_access(kernel)
    found = []
    for slot in sorted({slots[buffer.name] for buffer in kernel.buffers}):
        names = tuple(buffer.name for buffer in kernel.buffers if slots[buffer.name] == slot)
        found.append(Binding(names, any(access[name].writes for name in names)))
    return tuple(found)


def _load_parameters(
    body: Statements,
    kernel: n.Kernel,
    slots: Mapping[str, int],
    bindings: tuple[Binding, ...],
    layout: ParameterLayout,
) -> list[str]:
    """Load the kernel's parameters; how they are declared."""
    e, names = body.e, body.e.module.names
    declared = []
    volatile = {buffer.name for buffer in kernel.buffers if buffer.volatile}
    acquired = {buffer.name for buffer in kernel.buffers if buffer.acquired}
    for binding in bindings:
        name = names.fresh(binding.buffers[0])
        declared.append(f"\n    .param .u64 {name}")
        generic = e.first("b64", "ld.param.u64", f"[{name}]")
        pointer = e.first("b64", "cvta.to.global.u64", generic, name=binding.buffers[0])
        for buffer in binding.buffers:
            written_by_host = buffer in volatile
            body.scope.memories[buffer] = Storage(
                "global", pointer, not binding.writes and not written_by_host,
                volatile=written_by_host, acquired=buffer in acquired,
            )  # fmt: skip
    for slot in layout.slots:
        parameter, stored = slot.parameter, SCALARS[slot.stored]
        name, kind = names.fresh(parameter.name), KINDS[stored.name]
        declared.append(f"\n    .param .{kind} {name}")
        loaded = e.first(
            REGISTERS[stored.name],
            f"ld.param.{kind}",
            f"[{name}]",
            name=parameter.name if stored == parameter.type else "",
        )
        # A launch widens what is narrow, so that an integer or bf16 is in its register already.
        narrow = parameter.type in (BOOL, F16)
        value = casts.cast(e, stored, parameter.type, loaded) if narrow else loaded
        interval = body.ranges.get(parameter.name) or parameter_interval(parameter)
        body.scope.values[parameter.name] = Value((e.keep(value),), interval)
    return declared


# --- memories -------------------------------------------------------------------------------------


def _shared_memories(module: Module, kernel: n.Kernel) -> tuple[dict[str, Storage], int, int]:
    """Where the kernel's shared memories are; the bytes they take; how many of these the launch
    asks for."""
    memories = [memory for memory in kernel.memories if memory.space == "shared"]
    sizes = [_size(memory) for memory in memories]
    tiles = _tiles(kernel)
    total = 0
    for memory, size in zip(memories, sizes, strict=True):
        alignment = _alignment(memory, tiles)
        total = -(-total // alignment) * alignment + size
    if total <= LARGEST_STATIC:
        return {m.name: Storage("shared", module.names.fresh(m.name)) for m in memories}, total, 0
    name, offset, found = module.names.fresh("dynamic_shared"), 0, {}
    for memory, size in zip(memories, sizes, strict=True):
        alignment = _alignment(memory, tiles)
        offset = -(-offset // alignment) * alignment
        found[memory.name] = Storage("shared", name, start=offset)
        offset += size
    return found, total, total


def _shared_declarations(
    shared: Mapping[str, Storage], kernel: n.Kernel, dynamic: int
) -> list[str]:
    memories = [memory for memory in kernel.memories if memory.space == "shared"]
    if not memories:
        return []
    tiles = _tiles(kernel)
    if dynamic:
        alignment = max(_alignment(memory, tiles) for memory in memories)
        name = shared[memories[0].name].base
        return [f".extern .shared .align {alignment} .b8 {name}[];", ""]
    lines = [
        f".shared .align {_alignment(memory, tiles)} .b8 "
        f"{shared[memory.name].base}[{_size(memory)}];"
        for memory in memories
    ]
    return [*lines, ""]


def _tiles(kernel: n.Kernel) -> frozenset[str]:
    """The shared memories that boxes of matrices are copied to."""
    return frozenset(
        node.places[0].memory
        for node in statements_in(kernel.body)
        if isinstance(node, n.Staged)
        and node.op == "copy"
        and isinstance(node.places[0], n.Element)
    )


def _local_memories(body: Statements, kernel: n.Kernel) -> None:
    for memory in kernel.memories:
        if memory.space == "local":
            body.scope.memories[memory.name] = body.local_memory(
                memory.name, _size(memory), align_of(memory.element)
            )


def _size(memory: n.Memory) -> int:
    if memory.length is None:
        raise CompileError(
            f"shared memory `{memory.name}` has no length yet (codegen.pipeline gives it one)",
            memory.span,
        )
    return size_of(memory.element) * memory.length


def _alignment(memory: n.Memory, tiles: Collection[str]) -> int:
    aligned = stages.ALIGNMENT if memory.name in tiles else _ALIGNMENT
    return max(align_of(memory.element), aligned)
