"""Statements as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treadle.codegen.c_family import expressions, places
from treadle.codegen.c_family.scope import PRODUCT, SUM, Scope
from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir.passes.choices import Choice, choice_of
from treadle.ir.passes.private_atomics import updated
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import Scalar, Void

_COMPOUND = {
    "add": "+=", "sub": "-=", "mul": "*=", "div": "/=", "rem": "%=", "and": "&=", "or": "|=",
    "xor": "^=", "shl": "<<=", "shr": ">>=", "floordiv": "/=", "mod": "%=",
}  # fmt: skip


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
    """Print statements, up to the first that leaves."""
    filled: n.Statement | None = None
    for position, statement in enumerate(statements):
        if statement is filled:
            continue
        for comment in scope.comments.before(statement.span.file, statement.span.line):
            scope.emit(f"// {comment}")
        filled = _filling(scope, statement, statements[position + 1 : position + 2])
        if filled is None:
            _PRINTERS[type(statement)](scope, statement)
        if isinstance(statement, (n.Return, n.Break, n.Continue)):
            return


def _filling(scope: Scope, node: n.Statement, following: n.Block) -> n.Statement | None:
    """Print a declaration together with the statement right behind it that fills the variable, if
    there is one, and give that."""
    if not isinstance(node, n.Declare) or node.value is not None or not following:
        return None
    (other,) = following
    if not isinstance(other, n.Receiving):
        return None
    if other.result is None or other.result.name != node.variable.name:
        return None
    taken: tuple[n.Argument, ...] = ()
    if not isinstance(other, n.Clock):
        taken = other.arguments if isinstance(other, n.CallStatement) else other.operands
    place = (other.place,) if isinstance(other, n.Atomic) else ()
    if any(part == other.result for root in (*taken, *place) for part in walk(root)):
        return None
    if isinstance(other, n.Atomic) and (
        places.open_checks(scope, other.place) or _is_own(scope, other.place)
    ):
        return None
    before = len(scope.lines)
    _PRINTERS[type(other)](scope, other)
    register = scope.module.register(node.variable.type, node.variable)
    pad = "    " * scope.depth
    scope.lines[before] = f"{pad}{register} {scope.lines[before].removeprefix(pad)}"
    return other


# --- values --------------------------------------------------------------------------------------


def _declare(scope: Scope, node: n.Declare) -> None:
    variable = node.variable
    register = scope.module.register(variable.type, variable)
    value = scope.module.zero(variable.type) if node.value is None else _value(scope, node.value)
    scope.emit(f"{register} {scope.name(variable.name)} = {value};")


def _value(scope: Scope, value: n.Expression) -> str:
    """A value that goes into a variable of its type."""
    if isinstance(value.type, Scalar) and value.type.is_integer and value.type.bits == 32:
        return expressions.unsigned_text(scope, value)[0]
    return scope.text(value)


def _copies(scope: Scope, node: n.Copies | n.Assign) -> None:
    copies = scope.module.language.copies
    assert copies is not None
    scope.emit(copies(scope, node) + ";")


def _assign(scope: Scope, node: n.Assign) -> None:
    if node.later:
        _copies(scope, node)
        return
    checks = places.open_checks(scope, node.place)
    if not checks:
        scope.emit(_store(scope, node.place, node.value) + ";")
        return
    place = _hold_index(scope, node.place, checks)
    checks = places.open_checks(scope, place)
    with scope.braces(f"if ({places.condition(scope, checks)[0]}) {{"), scope.knowing(checks):
        scope.emit(_store(scope, place, node.value) + ";")


def _store(scope: Scope, place: n.Place, value: n.Expression) -> str:
    """`place = value`, or `place += other` where the value is that sum."""
    target = places.place_text(scope, place)
    sign = _compound(scope, place, value)
    if sign is not None:
        assert isinstance(value, n.Binary)
        return f"{target} {sign} {scope.text(value.right)}"
    return f"{target} = {_value(scope, value)}"


def _compound(scope: Scope, place: n.Place, value: n.Expression) -> str | None:
    """The sign of the compound assignment that says the same as `place = value`."""
    if not isinstance(value, n.Binary) or value.op not in _COMPOUND:
        return None
    own = value.left.place if isinstance(value.left, n.Load) else value.left
    if own != place or not isinstance(value.type, Scalar):
        return None
    if isinstance(own, (n.Element, n.Member, n.Item)) and places.open_checks(scope, own):
        return None
    type, sign = value.type, _COMPOUND[value.op]
    if type.kind == "bool" or type.bits < 32 or scope.module.differs_in_memory(type):
        return None
    # Only where the operator is what the operation is printed as.
    text, _ = scope.render(scope, value)
    left = scope.text(value.left, PRODUCT if sign in ("*=", "/=", "%=") else SUM)
    return sign if text.startswith(f"{left} {sign[:-1]} ") else None


def _hold_index(scope: Scope, place: n.Place, checks: tuple[n.Check, ...]) -> n.Place:
    """The place with its index computed once, where check and access both need it."""
    if not isinstance(place, n.Element) or len(place.checks) != 1 or place.checks != checks:
        return place
    (check,) = checks
    if check.index != place.index or places.is_repeatable(place.index):
        return place
    index = scope.hold(place.index, "index")
    held = replace(check, index=index)
    if scope.facts.plain(check):
        scope.facts.nodes[id(held)] = held
    return replace(place, index=index, checks=(held,))


# --- flow ----------------------------------------------------------------------------------------


def _if(scope: Scope, node: n.If) -> None:
    choice = choice_of(node, breaks=False)
    if choice is not None:
        _switch(scope, choice)
        return
    scope.emit(f"if ({_condition(scope, node.condition)}) {{")
    while True:
        scope.depth += 1
        block(scope, node.then)
        scope.depth -= 1
        rest = node.otherwise
        if (
            len(rest) == 1
            and isinstance(rest[0], n.If)
            and choice_of(rest[0], breaks=False) is None
        ):
            node = rest[0]
            scope.emit(f"}} else if ({_condition(scope, node.condition)}) {{")
            continue
        if node.otherwise:
            scope.emit("} else {")
            scope.depth += 1
            block(scope, node.otherwise)
            scope.depth -= 1
        scope.emit("}")
        return


def _switch(scope: Scope, choice: Choice) -> None:
    type = choice.value.type
    assert isinstance(type, Scalar)
    with scope.braces(f"switch ({scope.text(choice.value)}) {{"):
        for values, body in choice.cases:
            for value in values[:-1]:
                scope.emit(f"case {scope.module.literal(value, type)}:")
            _case(scope, f"case {scope.module.literal(values[-1], type)}", body)
        if choice.default:
            _case(scope, "default", choice.default)


def _case(scope: Scope, label: str, body: n.Block) -> None:
    with scope.braces(f"{label}: {{"):
        block(scope, body)
        if not body or not isinstance(body[-1], (n.Return, n.Continue)):
            scope.emit("break;")


def _for(scope: Scope, node: n.For) -> None:
    stop = node.stop if _is_fixed(scope, node.stop) else scope.keep(node.stop, "stop")
    name = scope.name(node.variable.name)
    register = scope.module.register(node.variable.type, node.variable)
    if node.unroll:
        scope.emit("#pragma unroll")
    if not _cannot_wrap(scope, node):
        _for_by_count(scope, node, name, stop)
        return
    sign = "<" if node.step > 0 else ">"
    if abs(node.step) == 1:
        moved = f"{name}++" if node.step > 0 else f"{name}--"
    else:
        moved = f"{name} {'+=' if node.step > 0 else '-='} {abs(node.step)}"
    start, end = _value(scope, node.start), scope.text(stop, SUM)
    with scope.braces(f"for ({register} {name} = {start}; {name} {sign} {end}; {moved}) {{"):
        block(scope, node.body)


def _for_by_count(scope: Scope, node: n.For, name: str, stop: n.Expression) -> None:
    """A loop whose variable might overflow before it passes its bound: count the iterations."""
    module = scope.module
    start = node.start if _is_fixed(scope, node.start) else scope.keep(node.start, "start")
    type = node.variable.type
    assert isinstance(type, Scalar)
    unsigned = Scalar(f"u{max(type.bits, 32)}", "uint", max(type.bits, 32))
    counter, register = module.scalar(unsigned), module.scalar(type)
    one, size = module.literal(1, unsigned), module.literal(abs(node.step), unsigned)
    low, high = (start, stop) if node.step > 0 else (stop, start)
    near, far = scope.text(low, 1), scope.text(high, 1)
    trips, trip = scope.names.fresh("trips"), scope.names.fresh("trip")
    distance = f"({counter}){far} - ({counter}){near}"
    zero = module.literal(0, unsigned)
    scope.emit(
        f"{counter} {trips} = {scope.text(low, SUM)} < {scope.text(high, SUM)} ? "
        f"({distance} - {one}) / {size} + {one} : {zero};"
    )
    sign = "+" if node.step > 0 else "-"
    with scope.braces(f"for ({counter} {trip} = {zero}; {trip} < {trips}; {trip}++) {{"):
        scope.emit(
            f"{register} {name} = ({register})(({counter}){scope.text(start, 1)} {sign} "
            f"{trip} * {size});"
        )
        block(scope, node.body)


def _is_fixed(scope: Scope, bound: n.Expression) -> bool:
    """Whether a loop's bound has one value throughout, however often it is looked at."""
    if isinstance(bound, (n.Constant, n.Builtin)):
        return True
    return isinstance(bound, n.Variable) and bound.name not in scope.mutable


def _cannot_wrap(scope: Scope, node: n.For) -> bool:
    """Whether the variable passes its bound before it leaves the range of its type."""
    type = node.variable.type
    assert isinstance(type, Scalar)
    return abs(node.step) == 1 or scope.facts.plain(node)


def _condition(scope: Scope, condition: n.Expression) -> str:
    """A condition as printed after `if` and `while`. One that starts as a cast, `half(x) < y`,
    gets parentheses: compilers first take it for a declaration there, and g++ does not recover."""
    text = scope.text(condition)
    start, bracket, _ = text.partition("(")
    cast = bracket and start in scope.module.language.scalars.values()
    return f"({text})" if cast else text


def _while(scope: Scope, node: n.While) -> None:
    moved = [_step(scope, part) for part in node.update]
    if all(moved):
        steps = ", ".join(text for text in moved if text)
        condition = _condition(scope, node.condition)
        head = f"for (; {condition}; {steps})" if steps else f"while ({condition})"
        with scope.braces(f"{head} {{"):
            block(scope, node.body)
        return
    # An update of several statements comes before every iteration but the first: so a `continue`
    # runs it as well.
    first = scope.names.fresh("first")
    with scope.braces(f"for (bool {first} = true;; {first} = false) {{"):
        with scope.braces(f"if (!{first}) {{"):
            block(scope, node.update)
        with scope.braces(f"if (!({scope.text(node.condition)})) {{"):
            scope.emit("break;")
        block(scope, node.body)


def _step(scope: Scope, part: n.Statement) -> str | None:
    """A statement as a part of a loop's head, if it can be one."""
    if not isinstance(part, n.Assign) or places.root_variable(part.place) is None:
        return None
    if places.open_checks(scope, part.place):
        return None
    return _store(scope, part.place, part.value)


def _return(scope: Scope, node: n.Return) -> None:
    scope.emit("return;" if node.value is None else f"return {scope.text(node.value)};")


# --- threads -------------------------------------------------------------------------------------


def _atomic(scope: Scope, node: n.Atomic) -> None:
    checks = places.open_checks(scope, node.place)
    result = scope.name(node.result.name) if node.result is not None else None

    def update(place: n.MemoryPlace) -> None:
        if _is_own(scope, place):
            _update_own(scope, node, place)
            return
        call = scope.module.language.atomic(scope, node, places.place_text(scope, place))
        scope.emit(f"{result} = {call};" if result else f"{call};")

    if not checks:
        update(node.place)
        return
    place: Any = _hold_index(scope, node.place, checks)
    checks = places.open_checks(scope, place)
    with scope.braces(f"if ({places.condition(scope, checks)[0]}) {{"), scope.knowing(checks):
        update(place)
    if node.result is not None:
        scope.lines.pop()
        with scope.braces("} else {"):
            scope.emit(f"{result} = {scope.module.zero(node.result.type)};")


def _is_own(scope: Scope, place: n.MemoryPlace) -> bool:
    """Whether a place is in memory of the thread's own."""
    root = root_of(place)
    return isinstance(root, n.Element) and scope.memories[root.memory].space == "local"


def _update_own(scope: Scope, node: n.Atomic, place: n.MemoryPlace) -> None:
    """An update of memory that no other thread reaches, in which no GPU has atomics."""
    type = place.type
    operands = [scope.hold(operand, "value") for operand in node.operands]
    old = scope.hold(n.Load(place, type), "old")
    new = updated(node.op, old, tuple(operands))
    with scope.knowing(places.checks_of(place)):
        scope.emit(_store(scope, place, new) + ";")
    if node.result is not None:
        scope.emit(f"{scope.name(node.result.name)} = {scope.text(old)};")


def _subgroup(scope: Scope, node: n.Subgroup) -> None:
    value = scope.module.language.subgroup(scope, node)
    scope.emit(f"{scope.name(node.result.name)} = {value};")


def _opaque_store(scope: Scope, node: n.OpaqueStore) -> None:
    store = scope.module.language.opaque_store
    assert store is not None
    scope.emit(store(scope, node) + ";")


def _clock(scope: Scope, node: n.Clock) -> None:
    value = scope.module.language.clock(scope, node)
    scope.emit(f"{scope.name(node.result.name)} = {value};")


def _call(scope: Scope, node: n.CallStatement) -> None:
    result = node.result.type if node.result else Void()
    text = scope.text(n.Call(node.function, node.arguments, result, node.span))
    scope.emit(f"{scope.name(node.result.name)} = {text};" if node.result else f"{text};")


def _print(scope: Scope, node: n.Print) -> None:
    del scope
    raise CompileError("print() was not turned into stores before printing", node.span)


def _nothing(scope: Scope, node: n.Statement) -> None:
    """An assertion outside of check mode."""
    del scope, node


_PRINTERS: dict[type, Callable[[Scope, Any], None]] = {
    n.Declare: _declare, n.Assign: _assign, n.If: _if, n.For: _for, n.While: _while,
    n.Break: lambda scope, _: scope.emit("break;"),
    n.Continue: lambda scope, _: scope.emit("continue;"),
    n.Return: _return,
    n.Barrier: lambda scope, node: scope.module.language.barrier(scope, node),
    n.Fence: lambda scope, node: scope.module.language.fence(scope, node),
    n.Atomic: _atomic, n.Subgroup: _subgroup, n.OpaqueStore: _opaque_store,
    n.Clock: _clock, n.Copies: _copies, n.CallStatement: _call,
    n.Print: _print, n.Assert: _nothing,
}  # fmt: skip
