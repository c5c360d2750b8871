"""A kernel: its parameters as buffers and numbers, then its body."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp import program as records
from treadle.cuda_cpp.builtins.doubles import OF_PAIRS
from treadle.cuda_cpp.lower.arithmetic import cast, constant, over, plus
from treadle.cuda_cpp.lower.assignment import (
    assign_pointer,
)
from treadle.cuda_cpp.lower.context import (
    Context,
    LowerAgain,
    Lowering,
    Returns,
    SlotKey,
    add_classes,
)
from treadle.cuda_cpp.lower.double_pairs import with_pairs
from treadle.cuda_cpp.lower.functions import value_object
from treadle.cuda_cpp.lower.guards import HEAP
from treadle.cuda_cpp.lower.images import NO_SAMPLING, Image
from treadle.cuda_cpp.lower.members import dereference
from treadle.cuda_cpp.lower.names import is_const, resolve
from treadle.cuda_cpp.lower.objects import subscript
from treadle.cuda_cpp.lower.parameter_values import remember, without_unread
from treadle.cuda_cpp.lower.parameters import parameter_type
from treadle.cuda_cpp.lower.passed_functions import distinct, functions_of_type
from treadle.cuda_cpp.lower.pointers import ZERO, follow, unit_of
from treadle.cuda_cpp.lower.recovery import Errors
from treadle.cuda_cpp.lower.slots import first_target, later_target
from treadle.cuda_cpp.lower.statements import lower_statement
from treadle.cuda_cpp.lower.storage import array_memory, declare_object, declare_pointer, new_memory
from treadle.cuda_cpp.lower.tree_analysis import assigned_names
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    Lvalue,
    MemoryTarget,
    NullTarget,
    ParameterPointer,
    PointerValue,
    SplitArray,
    SplitStruct,
    Target,
    as_const,
)
from treadle.cuda_cpp.semantics.scopes import Overload, Scope
from treadle.cuda_cpp.semantics.types import (
    IMAGE,
    PADDING,
    VOID,
    ArrayOf,
    ClassType,
    CppType,
    FunctionOf,
    Pointer,
    Reference,
    all_fields,
    count_of,
    holds_array,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.passes.lockstep import find_race, with_warp_barriers
from treadle.ir.passes.warp_guards import find_warp_race
from treadle.ir.signature import Argument, ArrayArgument, ScalarArgument, Signature
from treadle.ir.traverse import walk


def lower_once(
    lowering: Lowering,
    overload: Overload,
    scope: Scope,
    instance: records.KernelInstance,
    signature: Signature,
    types: Mapping[str, CppType],
    symbols: Mapping[str, records.Symbol],
    linked: Mapping[str, records.Linked],
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
    names = [one.name for one in instance.parameters]
    launch = list(zip(names, arguments, strict=False))
    layouts = instance.layouts or tuple(map(records.Direct, range(len(names))))
    for name_, _ in launch:
        label = f"{instance.name}({name_})"
        lowering.parameter_numbers[name_] = records.number_of_memory(label)
    for parameter, layout in zip(declaration.parameters, layouts, strict=False):
        _bind(cx, parameter, layout, launch, assigned)
    for variable in (*instance.symbols, *instance.linked):
        add_classes(lowering.of_variables, types[variable])
    for variable, layout in zip(
        instance.linked, layouts[len(declaration.parameters) :], strict=True
    ):
        _bind_linked(cx, linked[variable], layout, types[variable], launch)
    first = len(names) - len(instance.references)
    for reference, at in zip(instance.references, range(first, len(names)), strict=True):
        part = _Part(*launch[at], Pointer(IMAGE, True), None, declaration.span)
        lowering.references[reference] = _buffer(cx, part)
    hidden = arguments[len(instance.parameters) :]
    labels = records.symbol_labels(instance)
    for symbol, label, argument in zip(instance.symbols, labels, hidden, strict=True):
        assert isinstance(argument, ArrayArgument)
        lowering.symbols[symbol] = _symbol(cx, symbols[symbol], types[symbol], label, argument)
    for layout in layouts:
        _add_lasting(cx, layout)
    if HEAP in lowering.symbols:  # what other kernels stored there
        heap = lowering.symbols[HEAP].targets[0]
        assert isinstance(heap, MemoryTarget)
        later_target(cx, (heap.memory, ()), heap)
    assert declaration.body is not None
    cx.errors = errors = Errors()
    lower_statement(cx, declaration.body)
    errors.raise_found()
    if lowering.facts.changed:
        raise LowerAgain
    if lowering.unless_changed:
        raise lowering.unless_changed[0]
    body = without_unread(tuple(cx.blocks[0]), lowering)
    used = {node.name for node in walk(body) if isinstance(node, n.Variable)}
    # Unused `extern __shared__` memory needs no bytes of a launch.
    reached = {node.memory for node in walk(body) if isinstance(node, n.Element)}
    kernel = n.Kernel(
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
    if lowering.types.double_is_pair:
        sizes = {
            str(one.origin[1]): one
            for one in lowering.parameters.values()
            if one.origin[:1] == ("size",)
        }
        doubles, kernel = kernel, with_pairs(kernel, sizes, lowering.error)
        if kernel is not doubles:
            cx.note("emulated", "double", "a pair of floats, with 48 bits", declaration.span)
    if instance.warp_synchronous:
        stepping = with_warp_barriers(kernel)
        if stepping is not kernel and stepping != kernel:
            cx.note("emulated", "warps in step", "barriers of the warp", declaration.span)
        return stepping
    volatile = frozenset(lowering.volatile)
    plain = frozenset(one.name for one in kernel.memories if one.space == "shared") - volatile
    unsure = find_race(kernel.body, volatile) or find_warp_race(kernel.body, plain)
    if unsure is not None:
        cx.note("warned", "warp-synchronous code", _OUT_OF_STEP, unsure.span)
    return kernel


_OUT_OF_STEP = (
    "this reads shared memory that other threads of the warp write, without a barrier between: "
    "the threads of a warp are not in step, so results may be wrong. Put __syncwarp() between, or "
    "load the file with cuda_module(…, warp_synchronous=True)"
)


def _kernel_name(name: str) -> str:
    """The name of an instance as an identifier: "reduce<float, 256>" is reduce_float_256."""
    return re.sub(r"\W+", "_", name.rstrip("> "), flags=re.ASCII)


def _used_functions(body: n.Block, lowering: Lowering) -> tuple[n.Function, ...]:
    """The functions that the body calls, also indirectly: callees before callers."""
    wanted: set[str] = set()
    waiting: list[n.Block] = [body]
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, (n.Call, n.CallStatement)) and node.function not in wanted:
                wanted.add(node.function)
                if node.function not in OF_PAIRS:  # which are added with the pairs
                    waiting.append(lowering.functions[node.function].body)
    return tuple(one for name, one in lowering.functions.items() if name in wanted)


def _parameter(
    cx: Context, name: str, type: ir.Scalar, origin: tuple[str | int, ...]
) -> n.Variable:
    name = cx.lowering.unique(name)
    cx.lowering.parameters[name] = n.Parameter(name, type, origin, cx.span)
    return n.Variable(name, type, cx.span)


@dataclass(frozen=True, slots=True)
class _Part:
    """A parameter of the launch: a parameter of the kernel, or a part of one."""

    name: str  # of the parameter of the launch
    argument: Argument
    type: CppType
    key: Any
    span: Span


def _bind(
    cx: Context,
    parameter: tree.Parameter,
    layout: records.ArgumentLayout,
    launch: Sequence[tuple[str, Argument]],
    assigned: frozenset[str],
) -> None:
    """Bind the parameters of the launch to the name of a kernel's parameter."""
    type = parameter_type(cx, parameter)
    key = (cx.path, id(parameter))
    if isinstance(layout, records.Split):
        cx.note(
            "emulated",
            f"{layout.type} {parameter.name}".rstrip(),
            "each pointer in it is a buffer of its own",
            parameter.span,
        )
        bound = _split(cx, layout, type, launch, key, parameter.span)
    elif isinstance(layout, (records.Table, records.Within)):
        bound = _split(cx, layout, type, launch, key, parameter.span)
        if parameter.name in assigned and isinstance(type, Pointer):
            variable = declare_pointer(cx, parameter.name, type, key, parameter.span)
            assign_pointer(cx, variable, bound, parameter.span)
            bound = variable
    else:
        name, argument = launch[layout.position]
        part = _Part(name, argument, type, key, parameter.span)
        if isinstance(type, Pointer):
            bound = _pointer(cx, part)
            if parameter.name in assigned:
                variable = declare_pointer(cx, name, type, key, parameter.span)
                assign_pointer(cx, variable, bound, parameter.span)
                bound = variable
        else:
            if parameter.name in assigned and isinstance(argument, ScalarArgument):
                cx.lowering.facts.assigned.add(key)
            bound = _value(cx, part)
    written = resolve(cx, parameter.type)
    if isinstance(written, Reference) and not written.const and not written.rvalue:
        bound = dereference(cx, bound, parameter.span)
    if parameter.name:
        cx.scope.names[parameter.name] = as_const(bound) if is_const(parameter.type) else bound


def _split(
    cx: Context,
    layout: records.ArgumentLayout,
    type: CppType,
    launch: Sequence[tuple[str, Argument]],
    key: Any,
    span: Span,
) -> Any:
    """A struct with pointers in it, or an array of pointers, from its parts."""
    if isinstance(layout, records.Direct):
        part = _Part(*launch[layout.position], type, key, span)
        if not isinstance(type, Pointer):
            return _value(cx, part)
        pointer = _pointer(cx, part)
        if key in cx.lowering.facts.assigned:
            variable = declare_pointer(cx, part.name, type, key, span)
            assign_pointer(cx, variable, pointer, span)
            return variable
        return ParameterPointer(
            pointer.targets,
            pointer.offset,
            pointer.unit,
            pointer.to,
            pointer.tag,
            type.const,
            key=key,
        )
    if isinstance(layout, records.Within):
        assert isinstance(type, Pointer)
        return _within(cx, layout, type, launch, key, span)
    if isinstance(layout, records.Table) and isinstance(type, ArrayOf):
        first = _table(cx, layout, Pointer(type.element, True), launch, key, span)
        cx.lowering.tables_by_value.add(cx.lowering.tables[layout.position].memory)
        return ArrayValue(replace(first, const=True), type)
    if isinstance(layout, records.Table):
        assert isinstance(type, Pointer)
        return _table(cx, layout, type, launch, key, span)
    if isinstance(type, ArrayOf):
        return SplitArray(
            type,
            tuple(
                _split(cx, one, type.element, launch, (key, at), span) for at, one in layout.parts
            ),
        )
    assert isinstance(type, ClassType)
    types = {field.name: field.type for field in all_fields(type)}
    return SplitStruct(
        type,
        {
            str(name): _split(cx, one, types[str(name)], launch, (key, name), span)
            for name, one in layout.parts
        },
    )


def _table(
    cx: Context,
    layout: records.Table,
    type: Pointer,
    launch: Sequence[tuple[str, Argument]],
    key: Any,
    span: Span,
) -> PointerValue:
    """A pointer to an array with pointers in it, which point into other arrays of the launch."""
    pointer = _buffer(cx, _Part(*launch[layout.position], type, key, span))
    target = pointer.targets[0]
    assert isinstance(target, MemoryTarget)
    cx.note("emulated", layout.type, "each pointer in memory is an offset in an array", span)
    lowering = cx.lowering
    lowering.tables[layout.position] = target
    lowering.memory_numbers[target.memory] = layout.number
    for slot in layout.slots:
        if isinstance(slot.layout, records.Again):
            into = lowering.tables[slot.layout.position]
        else:
            inner = _slot_type(innermost(type.to), slot.path)
            pointed = _split(cx, slot.layout, inner, launch, (key, slot.path), span)
            into = pointed.targets[0]
            lowering.memory_numbers[into.memory] = slot.number
        first_target(cx, _slot_key(target.memory, slot), into)
    return pointer


def _within(
    cx: Context,
    layout: records.Within,
    type: Pointer,
    launch: Sequence[tuple[str, Argument]],
    key: Any,
    span: Span,
) -> Any:
    """A pointer to an element of the table of an earlier argument."""
    name, _ = launch[layout.position]
    place = _parameter(cx, name, ir.I32, ("value", name))
    zero = constant(0, ir.I32)
    exists = n.Binary("ge", place, zero, ir.BOOL, span)
    tag = n.Select(exists, constant(1, ir.I32), zero, ir.I32)
    target = cx.lowering.tables[layout.table.position]
    size = ir.size_of(target.element)
    offset: n.Expression = over(place, size)
    if target.memory in cx.lowering.starts:
        offset = plus(offset, cast(cx.lowering.starts[target.memory], ir.I32))
    pointer = ParameterPointer(
        (NullTarget(), target), cx.let(offset), size, type.to, cx.let(tag), type.const, key=key
    )
    if key in cx.lowering.facts.assigned:
        variable = declare_pointer(cx, name, type, key, span)
        assign_pointer(cx, variable, pointer, span)
        return variable
    return pointer


def _slot_key(memory: str, slot: records.PointerSlot) -> SlotKey:
    return memory, () if slot.in_union else slot.path


def _slot_type(type: CppType, path: tuple[str, ...]) -> Pointer:
    """The type of the pointers that members lead to."""
    for name in path:
        type = innermost(type)
        assert isinstance(type, ClassType)
        type = next(one.type for one in all_fields(type) if one.name == name)
    type = innermost(type)
    assert isinstance(type, Pointer)
    return type


def _add_lasting(cx: Context, layout: records.ArgumentLayout | records.Again) -> None:
    """Note the variables of the file that pointers in an array of the launch may point into."""
    if isinstance(layout, records.Split):
        for _, part in layout.parts:
            _add_lasting(cx, part)
    if not isinstance(layout, records.Table):
        return
    memory = cx.lowering.tables[layout.position].memory
    for slot in layout.slots:
        for name in slot.lasting:
            variable = cx.lowering.symbols[name].targets[0]
            later_target(cx, _slot_key(memory, slot), variable)
        _add_lasting(cx, slot.layout)


def _bind_linked(
    cx: Context,
    variable: records.Linked,
    layout: records.ArgumentLayout,
    type: CppType,
    launch: Sequence[tuple[str, Argument]],
) -> None:
    """A variable of the file with pointers in it."""
    name, constant = variable.name, variable.space == "constant"
    if isinstance(layout, records.Table):
        pointer = _table(cx, layout, Pointer(type, constant), launch, name, cx.span)
        cx.lowering.symbols[name] = replace(pointer, to=type)
    else:  # a constant in its parts
        cx.lowering.linked[name] = as_const(_split(cx, layout, type, launch, name, cx.span))


def _pointer(cx: Context, part: _Part) -> PointerValue:
    """A pointer to an array, or to the function of which a number was passed."""
    assert isinstance(part.type, Pointer)
    to = part.type.to
    if not isinstance(to, FunctionOf):
        return _buffer(cx, part)
    cx.note("emulated", part.name, "a number of a function of the file", part.span)
    number = _parameter(cx, part.name, ir.I32, ("value", part.name))
    targets: tuple[Target, ...] = (NullTarget(), *distinct(functions_of_type(cx, to)))
    return PointerValue(targets, ZERO, 1, to, number)


def _buffer(cx: Context, part: _Part) -> PointerValue:
    """A pointer to the start of an array."""
    lowering, argument, type = cx.lowering, part.argument, part.type
    assert isinstance(argument, ArrayArgument)
    assert isinstance(type, Pointer)
    known = argument.ndim > 0
    if not known:  # an image without a launch
        element, ndim = lowering.facts.images.get(part.name, (ir.U8, 1))
        argument = ArrayArgument(element, ndim)
    buffer = n.Buffer(lowering.unique(part.name), argument.element, part.span)
    lowering.buffers.append(buffer)
    index = ir.I64 if argument.big else ir.I32
    if type.to == IMAGE:
        extents = tuple(
            _parameter(cx, f"{part.name}.extent{axis}", index, ("shape", part.name, axis))
            for axis in range(argument.ndim)
        )
        sampling = lowering.sampling.get(part.name, NO_SAMPLING)
        lowering.images[buffer.name] = Image(part.name, extents, sampling, known)
    size = _parameter(cx, f"{part.name}.size", index, ("size", part.name))
    offset, bound = _start(cx, part.name, argument, size)
    target = MemoryTarget(buffer.name, "global", argument.element, bound, type.const)
    lowering.memory_targets[buffer.name] = target
    lowering.memory_numbers[buffer.name] = lowering.parameter_numbers[part.name]
    lowering.arrays[buffer.name] = part.name
    if argument.has_offset:
        lowering.starts[buffer.name] = offset
    size_ = ir.size_of(argument.element)
    if type.to == IMAGE and lowering.images[buffer.name].sampling.null:
        return PointerValue((NullTarget(),), ZERO, 1, IMAGE)
    return PointerValue((target,), offset, size_, type.to, const=type.const)


def _start(
    cx: Context, name: str, argument: ArrayArgument, size: n.Expression
) -> tuple[n.Expression, n.Expression]:
    """Where the elements of an array begin in its buffer, and where they end."""
    if not argument.has_offset:
        return ZERO, size
    index = ir.I64 if argument.big else ir.I32
    offset = _parameter(cx, f"{name.lstrip(':')}.offset", index, ("offset", name))
    return offset, n.Binary("add", offset, size, index)


def _value(cx: Context, part: _Part) -> Any:
    """A number, vector, struct or array by value."""
    match part.argument:
        case ArrayArgument():
            return _uploaded(cx, part)
        case ScalarArgument():
            scalar = ir_type(part.type)
            assert isinstance(scalar, ir.Scalar)
            value = _parameter(cx, part.name, scalar, ("value", part.name))
            return value_object(cx, part.name, value, part.type, part.key, part.span)
    return _object(cx, part)


def _uploaded(cx: Context, part: _Part) -> Any:
    """A large object, which the launch uploads. If it is assigned to, it is copied first."""
    lowering, type = cx.lowering, part.type
    assert isinstance(part.argument, ArrayArgument)
    element = part.argument.element
    cx.note(
        "emulated",
        f"{part.name} by value",
        f"{ir.size_of(ir_type(type)):,} bytes, in a buffer of their own",
        part.span,
    )
    buffer = n.Buffer(lowering.unique(part.name), element, part.span)
    lowering.buffers.append(buffer)
    offset, bound = _start(cx, part.name, part.argument, constant(count_of(type), ir.I32))
    target = MemoryTarget(buffer.name, "constant", element, bound, True)
    lowering.memory_targets[buffer.name] = target
    lowering.parameter_keys[buffer.name] = part.key
    place = follow(cx, PointerValue((target,), offset, unit_of(type), type), part.span)
    facts = lowering.facts
    if part.key in facts.assigned or part.key in facts.in_memory:
        return declare_object(cx, part.name, type, part.key, place, part.span)
    return place


def _object(cx: Context, part: _Part) -> Any:
    """A vector, struct or small array by value: its scalars are parameters, and it is constructed
    from them at the start."""
    type, path = part.type, (part.name,)
    if isinstance(type, ArrayOf):
        array = array_memory(cx, part.name, type, "local", part.span)
        with cx.separate_block() as filling:
            _fill_items(cx, array, path)
        cx.emit(*filling)
        target = array.first.targets[0]
        assert isinstance(target, MemoryTarget)
        remember(cx, target.memory, part.key, filling)
        return array
    made = ir_type(type)
    in_memory = holds_array(type) or part.key in cx.lowering.facts.in_memory
    if in_memory:
        target = new_memory(cx, part.name, "local", made, 1, part.span)
        place = follow(cx, PointerValue((target,), ZERO, unit_of(type), type), part.span)
        assert isinstance(place, Lvalue)
        with cx.separate_block() as filling:
            _fill(cx, place.place, path)
        cx.emit(*filling)
        remember(cx, target.memory, part.key, filling)
        return place
    variable = cx.let_as(part.name, _assembled(cx, made, path), part.span)
    cx.lowering.variable_keys[variable.name] = part.key
    return Lvalue(variable, type)


def _fill_items(cx: Context, array: ArrayValue, path: tuple[str | int, ...]) -> None:
    for at in range(array.type.length or 0):
        item = subscript(cx, array, constant(at, ir.I32), cx.span)
        if isinstance(item, ArrayValue):
            _fill_items(cx, item, (*path, at))
        else:
            assert isinstance(item, Lvalue)
            _fill(cx, item.place, (*path, at))


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
            if not field.name.startswith(PADDING):
                _fill(cx, n.Member(place, field.name, field.type), (*path, field.name))
    else:
        cx.emit(n.Assign(place, _assembled(cx, type, path), cx.span))


def _symbol(
    cx: Context, symbol: records.Symbol, type: CppType, label: str, argument: ArrayArgument
) -> PointerValue:
    """A variable of the file: one more buffer, whose size is known."""
    lowering = cx.lowering
    name = lowering.unique(symbol.name.replace("::", "_"))
    lowering.buffers.append(n.Buffer(name, argument.element, symbol.span))
    count = 1
    for extent in symbol.shape:
        count *= extent
    space = "constant" if symbol.space == "constant" else "global"
    offset, bound = _start(cx, label, argument, constant(count, ir.I32))
    target = MemoryTarget(name, space, argument.element, bound, symbol.space == "constant")
    lowering.memory_targets[name] = target
    lowering.memory_numbers[name] = records.number_of_memory(f"variable {symbol.name}")
    lowering.arrays[name] = label
    if symbol.of_template:
        lowering.variable_instances.add(name)
    if argument.has_offset:
        lowering.starts[name] = offset
    return PointerValue((target,), offset, unit_of(innermost(type)), type)
