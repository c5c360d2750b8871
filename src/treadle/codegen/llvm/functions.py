"""The pure functions of a kernel: printed when first called, once for each way of calling them.

A function is printed for scalars, or for lanes: then the arguments that differ among lanes are
vectors, and the first one is the mask of lanes that call. They are inlined into their callers, but
for those that would make too much code of a kernel that calls them many times (`emitter.Module`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from treadle.codegen.leaves import leaf_types
from treadle.codegen.llvm.accesses import Scope
from treadle.codegen.llvm.divergence import analyze
from treadle.codegen.llvm.emitter import INLINED, Emitter, Module
from treadle.codegen.llvm.expressions import result_type
from treadle.codegen.llvm.lane_values import lane_memories
from treadle.codegen.llvm.lanes import Lanes
from treadle.codegen.llvm.spelling import global_name, value_type
from treadle.codegen.llvm.statements import Statements
from treadle.codegen.llvm.values import Value, zero
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.types import Scalar, Type


@dataclass(slots=True)
class Functions:
    """The functions of a module."""

    module: Module
    functions: dict[str, n.Function]
    builtins: dict[tuple[str, int], Value]
    names: dict[tuple[str, tuple[int, ...], int], str] = field(default_factory=dict)

    def name(self, function: n.Function, widths: tuple[int, ...], width: int) -> str:
        """The name to call a function by, with arguments of these widths, in `width` lanes."""
        key = (function.name, widths, width)
        if key not in self.names:
            suffix = "".join(f".{w}" for w in widths) if width > 1 else ""
            self.names[key] = global_name(f"treadle.function.{function.name}{suffix}")
            self._print(function, widths, width, self.names[key])
        return self.names[key]

    def scope(self) -> Scope:
        """A new function's scope."""
        return Scope(
            functions=self.functions, function_name=self.name, builtins=dict(self.builtins)
        )

    def _print(self, function: n.Function, widths: tuple[int, ...], width: int, name: str) -> None:
        e, scope = Emitter(self.module), self.scope()
        arguments: list[str] = []
        values: list[tuple[n.Variable, Value]] = []
        for parameter, own in zip(function.parameters, widths, strict=True):
            if isinstance(parameter, n.Buffer):
                raise CompileError(
                    f"`{function.name}` takes the memory `{parameter.name}`: such functions are "
                    "inlined (ir.passes.inline) before a kernel is printed",
                    function.span,
                )
            scalars = leaf_types(parameter.type)
            leaves = tuple(f"%a{len(arguments) + i}" for i in range(len(scalars)))
            arguments += [
                f"{value_type(scalar, own)} {leaf}"
                for scalar, leaf in zip(scalars, leaves, strict=True)
            ]
            values.append((parameter, Value(leaves, own)))
        if width == 1:
            _scalar_body(e, scope, function, values)
        else:
            arguments.insert(0, f"<{width} x i1> %mask")
            _lane_body(e, scope, function, values, width)
        header = (
            f"define internal {result_type(function.result, width)} {name}"
            f"({', '.join(arguments)}) {INLINED} nounwind {{"
        )
        self.module.functions.append("\n".join((header, "entry:", *e.allocas, *e.lines, "}")))


def _scalar_body(
    e: Emitter, scope: Scope, function: n.Function, values: list[tuple[n.Variable, Value]]
) -> None:
    body = Statements(e, scope)

    def returns(node: n.Return) -> None:
        value = zero(function.result) if node.value is None else body.value(node.value)
        return_leaves(e, function.result, value)

    body.setup(function.body, returns)
    for parameter, value in values:
        body.declare_value(parameter, value)
    for memory in function.memories:
        storage = body.frame_memory(memory.element, max(memory.length or 0, 1))
        scope.memories[memory.name] = (storage, memory.element)
    if body.block(function.body):
        e.do("ret void" if not leaf_types(function.result) else "unreachable")
        e.open = False


def _lane_body(
    e: Emitter,
    scope: Scope,
    function: n.Function,
    values: list[tuple[n.Variable, Value]],
    width: int,
) -> None:
    varying = [parameter.name for parameter, value in values if value.width > 1]
    private = frozenset(memory.name for memory in function.memories)
    divergence = analyze(function.body, varying, private)
    end = e.new_label()
    body = Lanes(e, scope, width, divergence, "%mask", end)
    body.setup(function.body, lambda node: None)
    scope.memories.update(lane_memories(body, function.memories, width))
    for parameter, value in values:
        body.declare_value(parameter, value)
    body.begin(function.result)
    body.block(function.body)
    if e.open:
        e.jump(end)
    e.place(end)
    return_leaves(e, function.result, body.result(), width)


def return_leaves(e: Emitter, type: Type, value: Value, width: int = 1) -> None:
    """End a function with a value."""
    e.open = False
    result = result_type(type, width)
    if result == "void":
        e.do("ret void")
        return
    if isinstance(type, Scalar):
        e.do(f"ret {result} {value.leaves[0]}")
        return
    whole = "poison"
    for i, (scalar, leaf) in enumerate(zip(leaf_types(type), value.leaves, strict=True)):
        whole = e.op(f"insertvalue {result} {whole}, {value_type(scalar, width)} {leaf}, {i}")
    e.do(f"ret {result} {whole}")
