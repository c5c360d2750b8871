"""A whole kernel as an LLVM module.

The entry point runs the blocks first <= block < last of a grid, counted with x fastest:

    void entry(ptr bindings, ptr parameters, ptr grid, i64 first, i64 last)

`bindings` holds a pointer for each binding, `parameters` is the block of bytes that
`ParameterLayout` describes, `grid` three i32. Distinct bindings never overlap: the runtime gives
one binding to parameters that are the same array, and says so in the options.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace

from treadle.codegen.llvm import casts
from treadle.codegen.llvm.accesses import Scope
from treadle.codegen.llvm.emitter import Emitter, Module
from treadle.codegen.llvm.functions import Functions
from treadle.codegen.llvm.memory import Storage
from treadle.codegen.llvm.spelling import global_name, value_type
from treadle.codegen.llvm.statements import Statements
from treadle.codegen.llvm.strips import print_strips
from treadle.codegen.llvm.values import Value
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.intervals import LARGEST_EXTENT, parameter_interval
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import SCALARS, size_of

# Bytes of shared and local memory that a block may have. They lie on the stack of the thread
# that runs the block, and threads have stacks of 8 MiB or more.
LARGEST_FRAME = 4 << 20


@dataclass(frozen=True, slots=True)
class LlvmOptions:
    """How a kernel is printed.

    `bindings` maps every buffer parameter to a binding (two that are one array share it); if
    empty, each gets its own, in order. `shared_bytes` is the launch's dynamic shared memory.
    `private` names the local memories that belong to one iteration of the parallel loop they are
    used in, as fission says (None: all of them). `lanes` is how many iterations of a parallel loop
    are printed as one vector; 1 leaves the loops to LLVM.
    """

    bindings: tuple[tuple[str, int], ...] = ()
    shared_bytes: int = 0
    private: frozenset[str] | None = None
    lanes: int = 16


_DEFAULTS = LlvmOptions()


def print_kernel(kernel: n.Kernel, options: LlvmOptions = _DEFAULTS) -> KernelCode:
    """LLVM assembly for a kernel whose threads are loops already (inlined and fissioned)."""
    block = kernel.block
    if block is None:
        raise CompileError(f"`{kernel.name}` has no block size yet", kernel.span)
    kernel, shared_bytes = _with_lengths(kernel, options.shared_bytes)
    slots = dict(options.bindings) or {b.name: i for i, b in enumerate(kernel.buffers)}
    module = Module(fast=kernel.fastmath)
    module.node("")  # !0, which `!invariant.load` takes
    named = {function.name: function for function in kernel.functions}
    functions = Functions(module, named, _constant_builtins(block))
    entry = f"treadle.kernel.{kernel.name}"
    _print_entry(module, kernel, entry, slots, functions, options)
    return KernelCode(
        target="llvm",
        dialect="",
        name=kernel.name,
        entry=entry,
        source=module.text(),
        block=block,
        workgroup=Dim3(1, 1, 1),
        bindings=_bindings(kernel, slots),
        layout=ParameterLayout.of(kernel.parameters),
        shared_bytes=shared_bytes,
    )


def _with_lengths(kernel: n.Kernel, dynamic_bytes: int) -> tuple[n.Kernel, int]:
    """The kernel with every memory's length known, and the bytes that are shared."""
    memories = tuple(
        replace(memory, length=dynamic_bytes // size_of(memory.element))
        if memory.length is None
        else memory
        for memory in kernel.memories
    )
    sizes = [(memory, size_of(memory.element) * (memory.length or 0)) for memory in memories]
    frame = sum(size for _, size in sizes)
    if frame > LARGEST_FRAME:
        largest, size = max(sizes, key=lambda pair: pair[1])
        raise UnsupportedOnTarget(
            f"a block of `{kernel.name}` needs {frame} bytes of shared and local memory (most of "
            f"it, {size}, for `{largest.name}`), and the cpu gives a block {LARGEST_FRAME}; use "
            "smaller blocks or arrays",
            largest.span,
        )
    shared = sum(size for memory, size in sizes if memory.space == "shared")
    return replace(kernel, memories=memories), shared


def _bindings(kernel: n.Kernel, slots: dict[str, int]) -> tuple[Binding, ...]:
    written: set[str] = set()
    for node in walk(kernel.body):
        if isinstance(node, (n.Assign, n.Atomic)):
            root = root_of(node.place)
            if isinstance(root, n.Element):
                written.add(root.memory)
    names = [
        tuple(b.name for b in kernel.buffers if slots[b.name] == slot)
        for slot in range(max(slots.values(), default=-1) + 1)
    ]
    return tuple(Binding(buffers, any(name in written for name in buffers)) for buffers in names)


# --- the entry point ------------------------------------------------------------------------------


def _print_entry(
    module: Module,
    kernel: n.Kernel,
    entry: str,
    slots: dict[str, int],
    functions: Functions,
    options: LlvmOptions,
) -> None:
    assert kernel.block is not None
    e, scope = Emitter(module), functions.scope()
    body = Statements(e, scope)
    private = {
        memory.name: memory
        for memory in kernel.memories
        if memory.space == "local" and (options.private is None or memory.name in options.private)
    }

    def in_lanes(outer: Statements, loop: n.For) -> bool:
        if any(isinstance(node, n.For) and node.parallel for node in walk(loop.body)):
            return False  # the loops in it are what counts
        printed = options.lanes > 1 and print_strips(outer, loop, options.lanes, private)
        module.loops.add("lanes" if printed else "plain")
        return printed

    body.print_lanes = in_lanes
    block_done = e.new_label()
    body.setup(kernel.body, lambda _: e.jump(block_done))
    _load_bindings(e, scope, kernel, slots)
    _load_parameters(body, kernel)
    _add_memories(body, kernel.memories, private)
    _block_loop(e, scope, kernel.block, block_done, lambda: body.block(kernel.body))
    header = (
        f"define void {global_name(entry)}(ptr noalias readonly %bindings, "
        "ptr noalias readonly %parameters, ptr noalias readonly %grid, i64 %first, i64 %last) "
        "nounwind {"
    )
    module.functions.append("\n".join((header, "entry:", *e.allocas, *e.lines, "}")))


def _load_bindings(e: Emitter, scope: Scope, kernel: n.Kernel, slots: dict[str, int]) -> None:
    used = sorted(set(slots.values()))
    marks = dict(zip(used, _alias_marks(e.module, len(used)), strict=True))
    pointers = {}
    for slot in used:
        place = e.op(f"getelementptr inbounds ptr, ptr %bindings, i64 {slot}")
        pointers[slot] = e.op(f"load ptr, ptr {place}, align 8, !invariant.load !0")
    for buffer in kernel.buffers:
        slot = slots[buffer.name]
        # What is loaded from the same array is in the caches already.
        unshared = sum(other == slot for other in slots.values()) == 1
        storage = Storage(
            pointers[slot], marks[slot], volatile=buffer.volatile, acquired=buffer.acquired,
            streamed=buffer.streamed and unshared,
        )  # fmt: skip
        scope.memories[buffer.name] = (storage, buffer.element)


def _alias_marks(module: Module, count: int) -> list[str]:
    """For each binding the metadata that says it overlaps no other."""
    if count < 2:
        return [""] * count
    domain = module.node("{self}", distinct=True)
    scopes = [module.node(f"{{self}}, {domain}", distinct=True) for _ in range(count)]
    marks = []
    for scope in scopes:
        own = module.node(scope)
        others = module.node(", ".join(other for other in scopes if other != scope))
        marks.append(f", !alias.scope {own}, !noalias {others}")
    return marks


def _load_parameters(body: Statements, kernel: n.Kernel) -> None:
    e = body.e
    for slot in ParameterLayout.of(kernel.parameters).slots:
        parameter, stored = slot.parameter, SCALARS[slot.stored]
        place = e.op(f"getelementptr inbounds i8, ptr %parameters, i64 {slot.offset}")
        llvm = value_type(stored)
        loaded = e.op(f"load {llvm}, ptr {place}, align {stored.bits // 8}, !invariant.load !0")
        value = casts.cast(e, stored, parameter.type, loaded, 1)
        variable = n.Variable(parameter.name, parameter.type)
        body.declare_value(variable, Value((value,), 1, parameter_interval(parameter)))


def _add_memories(body: Statements, memories: Iterable[n.Memory], private: Container[str]) -> None:
    for memory in memories:
        storage = body.frame_memory(memory.element, max(memory.length or 0, 1))
        storage = replace(storage, grouped=memory.name not in private)
        body.scope.memories[memory.name] = (storage, memory.element)


def _constant_builtins(block: Dim3) -> dict[tuple[str, int], Value]:
    values = {
        ("block_dim", axis): Value((str(extent),), 1, (extent, extent))
        for axis, extent in enumerate(block)
    }
    values["subgroup_size", 0] = Value(("32",), 1, (32, 32))
    return values


def _block_loop(
    e: Emitter, scope: Scope, block: Dim3, block_done: str, print_body: Callable[[], bool]
) -> None:
    """Run the body for each block; the index along each axis is carried on, not divided out."""
    extents = []
    for axis in range(3):
        place = e.op(f"getelementptr inbounds i32, ptr %grid, i64 {axis}")
        extents.append(e.op(f"load i32, ptr {place}, align 4, !invariant.load !0"))
        largest = LARGEST_EXTENT // block[axis]
        scope.builtins["grid_dim", axis] = Value((extents[axis],), 1, (1, largest))
    width, height = (e.op(f"zext i32 {extent} to i64") for extent in extents[:2])
    starts = [e.op(f"urem i64 %first, {width}")]
    rows = e.op(f"udiv i64 %first, {width}")
    starts += [e.op(f"urem i64 {rows}, {height}"), e.op(f"udiv i64 {rows}, {height}")]
    starts = [e.op(f"trunc i64 {start} to i32") for start in starts]
    test, run, done = (e.new_label() for _ in range(3))
    before = e.current
    e.jump(test)
    e.place(test)
    e.do(f"%block = phi i64 [ %first, %{before} ], [ %block.next, %{block_done} ]")
    for axis, start in enumerate(starts):
        name = "xyz"[axis]
        e.do(f"%block.{name} = phi i32 [ {start}, %{before} ], [ %next.{name}, %{block_done} ]")
        interval = (0, max(LARGEST_EXTENT // block[axis] - 1, 0))
        scope.builtins["block_idx", axis] = Value((f"%block.{name}",), 1, interval)
    e.branch(e.op("icmp ult i64 %block, %last"), run, done)
    e.place(run)
    if print_body():
        e.jump(block_done)
    e.place(block_done)
    e.do("%block.next = add nuw i64 %block, 1")
    carry = "true"
    for axis, extent in enumerate(extents):
        name = "xyz"[axis]
        step = e.op(f"zext i1 {carry} to i32")
        moved = e.op(f"add i32 %block.{name}, {step}")
        over = e.op(f"icmp eq i32 {moved}, {extent}")
        e.do(f"%next.{name} = select i1 {over}, i32 0, i32 {moved}")
        carry = over
    e.jump(test)
    e.place(done)
    if any(storage.streamed for storage, _ in scope.memories.values()):
        e.do("fence seq_cst")  # stores past the caches are ordered with nothing else
    e.do("ret void")
