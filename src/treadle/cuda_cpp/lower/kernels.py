"""A kernel: its parameters as buffers and numbers, then its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from treadle.cuda_cpp import program as records
from treadle.cuda_cpp.lower.arithmetic import constant
from treadle.cuda_cpp.lower.context import Context, Lowering, Returns
from treadle.cuda_cpp.lower.functions import assigned_names, bind_value
from treadle.cuda_cpp.lower.memory import ZERO, follow, unit_of
from treadle.cuda_cpp.lower.names import resolve
from treadle.cuda_cpp.lower.operators import assign_pointer
from treadle.cuda_cpp.lower.statements import lower_statement
from treadle.cuda_cpp.lower.values import Lvalue, MemoryTarget, PointerValue
from treadle.cuda_cpp.lower.variables import declare_pointer, new_memory
from treadle.cuda_cpp.meaning.scopes import Overload, Scope
from treadle.cuda_cpp.meaning.types import (
    PADDING,
    VOID,
    ArrayOf,
    CppType,
    Pointer,
    holds_array,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import walk
from treadle.runtime.signature import (
    Argument,
    ArrayArgument,
    ScalarArgument,
    Signature,
    ValueArgument,
)


def lower_once(
    lowering: Lowering,
    overload: Overload,
    scope: Scope,
    instance: records.KernelInstance,
    signature: Signature,
    types: Mapping[str, CppType],
    symbols: Mapping[str, records.Symbol],
) -> n.Kernel:
    """One run of the lowering of a kernel."""
    declaration = overload.declaration
    arguments = signature.arguments
    big = any(isinstance(one, ArrayArgument) and one.big for one in arguments)
    lowering.index_type = ir.I64 if big else ir.I32
    name = declaration.name.text
    cx = Context(lowering, Scope(scope, name, "function"), returns=Returns(VOID), name=name)
    cx.span = declaration.span
    assigned = assigned_names(cx, declaration)
    for parameter, argument, declared in zip(
        declaration.parameters, arguments, instance.parameters, strict=False
    ):
        _bind(cx, parameter, declared.name, argument, assigned)
    for symbol, argument in zip(
        instance.symbols, arguments[len(instance.parameters) :], strict=True
    ):
        assert isinstance(argument, ArrayArgument)
        lowering.symbols[symbol] = _symbol(cx, symbols[symbol], types[symbol], argument)
    assert declaration.body is not None
    lower_statement(cx, declaration.body)
    body = tuple(cx.blocks[0])
    used = {node.name for node in walk(body) if isinstance(node, n.Variable)}
    # `extern __shared__` that nobody touches asks nothing of a launch.
    reached = {node.memory for node in walk(body) if isinstance(node, n.Element)}
    return n.Kernel(
        name=_kernel_name(instance.name),
        buffers=tuple(lowering.buffers),
        parameters=tuple(p for p in lowering.parameters.values() if p.name in used),
        body=body,
        memories=tuple(m for m in lowering.memories if m.name in reached),
        functions=_used_functions(body, lowering),
        fastmath=lowering.fastmath,
        trusting=True,
        span=declaration.span,
    )


def _kernel_name(name: str) -> str:
    """The name of an instance as an identifier: "reduce<float, 256>" is reduce_float_256."""
    return re.sub(r"\W+", "_", name.rstrip("> "), flags=re.ASCII)


def _used_functions(body: n.Block, lowering: Lowering) -> tuple[n.Function, ...]:
    """The functions that are called in the end, callees before callers."""
    wanted: set[str] = set()
    waiting: list[n.Block] = [body]
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, (n.Call, n.CallStatement)) and node.function not in wanted:
                wanted.add(node.function)
                waiting.append(lowering.functions[node.function].body)
    return tuple(one for name, one in lowering.functions.items() if name in wanted)


def _parameter(
    cx: Context, name: str, type: ir.Scalar, origin: tuple[str | int, ...]
) -> n.Variable:
    name = cx.lowering.unique(name)
    cx.lowering.parameters[name] = n.Parameter(name, type, origin, cx.span)
    return n.Variable(name, type, cx.span)


def _bind(
    cx: Context,
    parameter: tree.Parameter,
    name: str,
    argument: Argument,
    assigned: frozenset[str],
) -> None:
    """Make one argument what its parameter's name means."""
    type = resolve(cx, parameter.type)
    if isinstance(type, ArrayOf):
        type = Pointer(type.element)
    match argument:
        case ArrayArgument():
            assert isinstance(type, Pointer)
            pointer = _buffer(cx, name, type, argument, parameter)
            key = (cx.path, id(parameter))
            if parameter.name in assigned:
                variable = declare_pointer(cx, name, type, key, parameter.span)
                assign_pointer(cx, variable, pointer, parameter.span)
                cx.scope.names[parameter.name] = variable
            else:
                cx.scope.names[parameter.name] = pointer
        case ScalarArgument():
            scalar = ir_type(type)
            assert isinstance(scalar, ir.Scalar)
            value = _parameter(cx, name, scalar, ("value", name))
            bind_value(cx, parameter, value, type, assigned)
        case ValueArgument():
            _bind_object(cx, parameter, name, type, assigned)


def _buffer(
    cx: Context, name: str, type: Pointer, argument: ArrayArgument, parameter: tree.Parameter
) -> PointerValue:
    lowering = cx.lowering
    buffer = n.Buffer(lowering.unique(name), argument.element, parameter.span)
    lowering.buffers.append(buffer)
    index = ir.I64 if argument.big else ir.I32
    size = _parameter(cx, f"{name}.size", index, ("size", name))
    target = MemoryTarget(buffer.name, "global", argument.element, size, type.const)
    lowering.memory_targets[buffer.name] = target
    offset: n.Expression = ZERO
    bound: n.Expression = size
    if argument.has_offset:
        offset = _parameter(cx, f"{name}.offset", index, ("offset", name))
        bound = n.Binary("add", offset, size, index)
        target = MemoryTarget(buffer.name, "global", argument.element, bound, type.const)
        lowering.memory_targets[buffer.name] = target
    return PointerValue((target,), offset, ir.size_of(argument.element), type.to)


def _bind_object(
    cx: Context, parameter: tree.Parameter, name: str, type: CppType, assigned: frozenset[str]
) -> None:
    """A vector or struct by value: its numbers are parameters, put together at the start."""
    made = ir_type(type)
    key = (cx.path, id(parameter))
    in_memory = holds_array(type) or key in cx.lowering.facts.in_memory
    if in_memory:
        target = new_memory(cx, name, "local", made, 1, parameter.span)
        place = follow(cx, PointerValue((target,), ZERO, unit_of(type), type), parameter.span)
        assert isinstance(place, Lvalue)
        _fill(cx, place.place, (name,))
        cx.scope.names[parameter.name] = place
        return
    variable = cx.let_as(name, _assembled(cx, made, (name,)), parameter.span)
    cx.lowering.variable_keys[variable.name] = key
    cx.scope.names[parameter.name] = Lvalue(variable, type)


def _assembled(cx: Context, type: ir.Type, path: tuple[str | int, ...]) -> n.Expression:
    match type:
        case ir.Scalar():
            return _parameter(cx, ".".join(map(str, path)), type, ("leaf", *path))
        case ir.Vector():
            parts: Any = [(part, type.element) for part in ir.COMPONENTS[: type.count]]
        case ir.Struct():
            parts = [(field.name, field.type) for field in type.fields]
        case _:
            raise AssertionError(type)
    operands = tuple(
        constant(0, inner) if part.startswith(PADDING) else _assembled(cx, inner, (*path, part))
        for part, inner in parts
    )
    return n.Construct(operands, type, cx.span)


def _fill(cx: Context, place: n.Place, path: tuple[str | int, ...]) -> None:
    type = place.type
    if isinstance(type, ir.Array):
        for at in range(type.length):
            _fill(cx, n.Item(place, constant(at, ir.I32), type.element), (*path, at))
    elif isinstance(type, ir.Struct):
        for field in type.fields:
            _fill(cx, n.Member(place, field.name, field.type), (*path, field.name))
    else:
        cx.emit(n.Assign(place, _assembled(cx, type, path), cx.span))


def _symbol(
    cx: Context, symbol: records.Symbol, type: CppType, argument: ArrayArgument
) -> PointerValue:
    """A variable of the file: one more buffer, whose size is known."""
    lowering = cx.lowering
    name = lowering.unique(symbol.name.replace("::", "_"))
    lowering.buffers.append(n.Buffer(name, argument.element, symbol.span))
    count = 1
    for extent in symbol.shape:
        count *= extent
    space = "constant" if symbol.space == "constant" else "global"
    size = constant(count, ir.I32)
    target = MemoryTarget(name, space, argument.element, size, symbol.space == "constant")
    lowering.memory_targets[name] = target
    return PointerValue((target,), ZERO, unit_of(innermost(type)), type)
