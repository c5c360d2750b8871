"""Statements as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treadle.codegen.wgsl import access, opaque, places
from treadle.codegen.wgsl.atomics import atomic
from treadle.codegen.wgsl.scope import SHIFT, SUM, Scope
from treadle.codegen.wgsl.subgroups import subgroup
from treadle.codegen.wgsl.uniform import uniform_load
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.passes.choices import Choice, choice_of
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import U32, U64, Scalar, Void


def assigned_variables(block: n.Block) -> frozenset[str]:
    """The variables that a block assigns to after declaring them."""
    names: set[str] = set()
    for node in walk(block):
        if isinstance(node, n.Assign):
            root = root_of(node.place)
            if isinstance(root, n.Variable):
                names.add(root.name)
        elif isinstance(node, n.Receiving) and node.result is not None:
            names.add(node.result.name)
    return frozenset(names)


def block(scope: Scope, statements: n.Block) -> None:
    """Print statements, up to the first that leaves: compilers refuse what cannot be reached."""
    for statement in statements:
        _PRINTERS[type(statement)](scope, statement)
        if isinstance(statement, (n.Return, n.Break, n.Continue)):
            return


# --- values --------------------------------------------------------------------------------------


def _declare(scope: Scope, node: n.Declare) -> None:
    variable = node.variable
    if node.value is not None and variable.name not in scope.mutable:
        value = _value(scope, node, node.value)
        scope.emit(f"let {scope.name(variable.name)} = {value};")
        return
    register = scope.module.register(variable.type, node.span)
    # A declaration in a loop starts afresh in every iteration, so zero is said and not implied.
    if node.value is not None:
        value = _value(scope, node, node.value)
    else:
        value = scope.module.zero(variable.type)
    scope.emit(f"var {scope.name(variable.name)}: {register} = {value};")


def _value(scope: Scope, statement: n.Statement, value: n.Expression) -> str:
    if id(statement) in scope.uniform_loads:
        assert isinstance(value, n.Load)
        return uniform_load(scope, value)
    return scope.text(value)


def _assign(scope: Scope, node: n.Assign) -> None:
    root = root_of(node.place)
    if isinstance(root, n.Variable):
        checks = places.checks_of(node.place)
        line = f"{places.typed_path(scope, node.place)} = {_value(scope, node, node.value)};"
    else:
        checks = places.checks_of(node.place)
        line = ""
    if not checks:
        scope.emit(line or _store(scope, node.place, node.value))
        return
    place = _hold_index(scope, node.place)
    with scope.braces(f"if ({places.condition(scope, places.checks_of(place))}) {{"):
        scope.emit(line or _store(scope, place, node.value))


def _store(scope: Scope, place: Any, value: n.Expression) -> str:
    return access.store(scope, place, scope.text(value))


def _hold_index(scope: Scope, place: n.Place) -> n.Place:
    """The place with its index computed once, where check and access both need it."""
    if not isinstance(place, n.Element) or len(place.checks) != 1:
        return place
    (check,) = place.checks
    if check.index != place.index:
        return place
    index = scope.hold(place.index, "index")
    return replace(place, index=index, checks=(replace(check, index=index),))


# --- flow ----------------------------------------------------------------------------------------


def _if(scope: Scope, node: n.If) -> None:
    choice = _choice(node)
    if choice is not None:
        _switch(scope, choice)
        return
    scope.emit(f"if ({scope.text(node.condition)}) {{")
    while True:
        scope.depth += 1
        block(scope, node.then)
        scope.depth -= 1
        rest = node.otherwise
        if len(rest) == 1 and isinstance(rest[0], n.If) and _choice(rest[0]) is None:
            node = rest[0]
            before = len(scope.lines)
            condition = scope.text(node.condition)
            assert len(scope.lines) == before, "an expression printed statements"
            scope.emit(f"}} else if ({condition}) {{")
            continue
        if node.otherwise:
            scope.emit("} else {")
            scope.depth += 1
            block(scope, node.otherwise)
            scope.depth -= 1
        scope.emit("}")
        return


def _choice(node: n.If) -> Choice | None:
    """The choice to print as a switch, whose value must have 32 bits in WGSL."""
    choice = choice_of(node, breaks=False)
    if choice is None:
        return None
    assert isinstance(choice.value.type, Scalar)
    return choice if choice.value.type.bits <= 32 else None


def _switch(scope: Scope, choice: Choice) -> None:
    type = choice.value.type
    assert isinstance(type, Scalar)
    with scope.braces(f"switch ({scope.text(choice.value)}) {{"):
        for values, body in choice.cases:
            listed = ", ".join(scope.module.literal(value, type) for value in values)
            with scope.braces(f"case {listed}: {{"):
                block(scope, body)
        with scope.braces("default: {"):
            block(scope, choice.default)


def _for(scope: Scope, node: n.For) -> None:
    stop = node.stop if _is_fixed(scope, node.stop) else scope.keep(node.stop, "stop")
    name = scope.name(node.variable.name)
    register = scope.module.register(node.variable.type, node.span)
    if not _cannot_wrap(scope, node):
        _for_by_count(scope, node, name, stop)
        return
    sign, moved = ("<", "+=") if node.step > 0 else (">", "-=")
    step = scope.module.literal(abs(node.step), _scalar(node.variable))
    test = f"{name} {sign} {scope.text(stop, SHIFT)}"
    head = f"var {name}: {register} = {scope.text(node.start)}; {test}; {name} {moved} {step}"
    with scope.braces(f"for ({head}) {{"):
        block(scope, node.body)


def _for_by_count(scope: Scope, node: n.For, name: str, stop: n.Expression) -> None:
    """A loop whose variable might wrap around before it passes its bound: count the iterations.

    A counter is as fast as the plain loop. An exit for the wrapped variable is not: it took a
    quarter off a matrix product's speed.
    """
    start = node.start if _is_fixed(scope, node.start) else scope.keep(node.start, "start")
    wide = _scalar(node.variable).bits == 64
    unsigned, one = ("u64", "1lu") if wide else ("u32", "1u")
    low, high = (start, stop) if node.step > 0 else (stop, start)
    size = f"{abs(node.step)}{one[1:]}"
    near, far = scope.text(low), scope.text(high)
    distance = f"{_count_text(far, high, unsigned)} - {_count_text(near, low, unsigned)}"
    if isinstance(low, n.Constant) and low.value == 0:
        distance = _count_text(far, high, unsigned)
    any_at_all = f"{scope.argument(low)} < {scope.argument(high)}"
    trips, trip = scope.names.fresh("trips"), scope.names.fresh("trip")
    count = f"({distance} - {one}) / {size} + {one}"
    scope.emit(f"let {trips} = select(0{one[1:]}, {count}, ({any_at_all}));")
    with scope.braces(f"for (var {trip} = 0{one[1:]}; {trip} < {trips}; {trip} += {one}) {{"):
        register = scope.module.register(node.variable.type, node.span)
        moved = f"{register}({trip} * {size})"
        if isinstance(start, n.Constant) and start.value == 0 and node.step > 0:
            scope.emit(f"let {name} = {moved};")
        else:
            sign = "+" if node.step > 0 else "-"
            scope.emit(f"let {name} = {scope.text(start, SUM)} {sign} {moved};")
        block(scope, node.body)


def _count_text(text: str, bound: n.Expression, unsigned: str) -> str:
    """A bound as an unsigned number (of its bits: negative ones count from the top)."""
    if isinstance(bound, n.Constant):
        bits = int(bound.value) % (1 << (64 if unsigned == "u64" else 32))
        return f"{bits}{'lu' if unsigned == 'u64' else 'u'}"
    return text if bound.type == U32 or bound.type == U64 else f"{unsigned}({text})"


def _scalar(variable: n.Variable) -> Scalar:
    assert isinstance(variable.type, Scalar)
    return variable.type


def _is_fixed(scope: Scope, bound: n.Expression) -> bool:
    """Whether a loop's bound has one value throughout, however often it is looked at."""
    if isinstance(bound, (n.Constant, n.Builtin)):
        return True
    return isinstance(bound, n.Variable) and bound.name not in scope.mutable


def _cannot_wrap(scope: Scope, node: n.For) -> bool:
    """Whether the variable passes its bound before it leaves the range of its type."""
    type = _scalar(node.variable)
    if abs(node.step) == 1 or type.bits < 32:
        return True
    if isinstance(node.stop, n.Variable) and node.stop.name in scope.lengths and node.step > 0:
        return node.step <= 1 << 30  # an array of two bytes an element or more, and under 2 GiB
    if not isinstance(node.stop, n.Constant):
        return False
    high = (1 << type.bits - type.is_signed) - 1
    low = -high - 1 if type.is_signed else 0
    return low <= int(node.stop.value) + node.step <= high


def _while(scope: Scope, node: n.While) -> None:
    if not node.update:
        with scope.braces(f"while ({scope.text(node.condition)}) {{"):
            block(scope, node.body)
        return
    if len(node.update) == 1 and isinstance(node.update[0], n.Assign):
        (step,) = node.update
        assert isinstance(step, n.Assign)
        if isinstance(root_of(step.place), n.Variable) and not places.checks_of(step.place):
            moved = f"{places.typed_path(scope, step.place)} = {scope.text(step.value)}"
            with scope.braces(f"for (; {scope.text(node.condition)}; {moved}) {{"):
                block(scope, node.body)
            return
    if any(isinstance(part, n.Return) for part in walk(node.update)) or _breaks(node.update):
        raise CompileError("a loop's update cannot leave the loop or return", node.span)
    with scope.braces("loop {"):
        with scope.braces(f"if (!({scope.text(node.condition)})) {{"):
            scope.emit("break;")
        block(scope, node.body)
        with scope.braces("continuing {"):
            block(scope, node.update)


def _breaks(statements: n.Block) -> bool:
    return any(
        isinstance(part, (n.Break, n.Continue))
        or (isinstance(part, n.If) and (_breaks(part.then) or _breaks(part.otherwise)))
        for part in statements
    )


def _return(scope: Scope, node: n.Return) -> None:
    scope.emit("return;" if node.value is None else f"return {scope.text(node.value)};")


# --- threads -------------------------------------------------------------------------------------


def _barrier(scope: Scope, node: n.Barrier) -> None:
    if node.scope == "subgroup":
        raise UnsupportedOnTarget(
            "WGSL has no barrier of a subgroup: use sync_threads(), or exchange values by shuffles",
            node.span,
        )
    spaces = {plan.space for plan in scope.plans.values() if plan.exchanges}
    if "workgroup" in spaces or "storage" not in spaces:
        scope.emit("workgroupBarrier();")
    if "storage" in spaces:
        scope.emit("storageBarrier();")


def _fence(scope: Scope, node: n.Fence) -> None:
    del scope
    if node.scope == "block":
        raise UnsupportedOnTarget(
            "WGSL has no memory fence for the block but a barrier, and not all threads of the "
            "block come by here: use sync_threads() where they do",
            node.span,
        )
    raise UnsupportedOnTarget(
        f"WGSL has no memory fence for the {node.scope}; between the threads of a block use "
        "sync_threads(), between blocks use atomics, a second kernel, or a device with the feature "
        "'device_fences', where all threads of the block come by the fence",
        node.span,
    )


def _call(scope: Scope, node: n.CallStatement) -> None:
    call = n.Call(
        node.function, node.arguments, node.result.type if node.result else Void(), node.span
    )
    text = scope.text(call)
    scope.emit(f"{scope.name(node.result.name)} = {text};" if node.result else f"{text};")


def _print(scope: Scope, node: n.Print) -> None:
    del scope
    raise CompileError("print() was not turned into stores before printing WGSL", node.span)


def _nothing(scope: Scope, node: n.Statement) -> None:
    """An assertion outside of check mode."""
    del scope, node


_PRINTERS: dict[type, Callable[[Scope, Any], None]] = {
    n.Declare: _declare, n.Assign: _assign, n.If: _if, n.For: _for, n.While: _while,
    n.Break: lambda scope, _: scope.emit("break;"),
    n.Continue: lambda scope, _: scope.emit("continue;"),
    n.Return: _return, n.Barrier: _barrier, n.Fence: _fence, n.Atomic: atomic,
    n.Subgroup: subgroup, n.OpaqueStore: opaque.store, n.CallStatement: _call, n.Print: _print,
    n.Assert: _nothing,
}  # fmt: skip
