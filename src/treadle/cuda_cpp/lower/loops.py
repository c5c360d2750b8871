"""Loops. Counted loops become `n.For`, which passes can unroll and analyze."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from treadle.core.errors import CompileError
from treadle.cuda_cpp.lower.arithmetic import constant, folded, plus, times
from treadle.cuda_cpp.lower.context import Context, LowerAgain, tree_made
from treadle.cuda_cpp.lower.conversions import common_type, convert, number, number_as, rvalue
from treadle.cuda_cpp.lower.dispatch import constant_rvalue, lower, lower_condition, type_of
from treadle.cuda_cpp.lower.initializers import fill
from treadle.cuda_cpp.lower.lifetimes import begin, whole_condition
from treadle.cuda_cpp.lower.names import is_auto, resolve
from treadle.cuda_cpp.lower.objects import subscript
from treadle.cuda_cpp.lower.storage import declare_object
from treadle.cuda_cpp.lower.tree_analysis import changed_names
from treadle.cuda_cpp.lower.values import ArrayValue, Lvalue, Rvalue, SplitArray, Value
from treadle.cuda_cpp.lower.variables import declare
from treadle.cuda_cpp.lower.variables import declare as declare_variable
from treadle.cuda_cpp.semantics.types import (
    CHAR,
    STRING,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    Pointer,
    decay,
    is_integer,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of, walk


@contextmanager
def loop_body(cx: Context) -> Iterator[None]:
    """A loop's body, in which `continue` is that of the loop."""
    cx.continue_flags.append(None)
    cx.loops.append(len(cx.endings) - 1)  # the block around the body is in the loop
    try:
        yield
    finally:
        cx.continue_flags.pop()
        cx.loops.pop()


def lower_body(cx: Context, node: tree.Statement) -> list[n.Statement]:
    """The body of a loop."""
    with cx.separate_block() as body, cx.inner_scope(), loop_body(cx):
        cx.rules.statement(cx, node)
    return body


# --- for -----------------------------------------------------------------------------------------


def lower_for(cx: Context, node: tree.For) -> None:
    """`for (…; …; …)`"""
    with cx.inner_scope():
        counted = _counted(cx, node)
        if counted is not None:
            _emit_counted(cx, node, counted)
            return
        if node.initializer is not None:
            cx.rules.statement(cx, node.initializer)
        body = lower_body(cx, node.body)
        with cx.separate_block() as update:
            _update(cx, node)
        _emit_while(cx, node.condition, body, tuple(update), node)


def _update(cx: Context, node: tree.For) -> None:
    """The expression after each iteration."""
    if node.update is not None:
        cx.unused = node.update
        with cx.lifetime():
            lower(cx, node.update)


def _emit_while(
    cx: Context, written: Any, body: list[n.Statement], update: n.Block, node: Any
) -> None:
    with cx.separate_block() as before:
        given = n.TRUE if written is None else whole_condition_of(cx, written)
        condition = folded(given)
    if before:
        leave = n.If(_not(condition), (n.Break(node.span),), (), node.span)
        cx.emit(n.While(n.TRUE, (*before, leave, *body), update, node.span))
    else:
        cx.emit(n.While(condition, tuple(body), update, node.span))


def _not(condition: n.Expression) -> n.Expression:
    return n.Unary("not", condition, ir.BOOL, condition.span)


@dataclass(frozen=True, slots=True)
class _Counted:
    """`for (T i = start; i < stop; i += step)` whose body changes neither i nor stop."""

    name: str
    type: CppType
    declaration: tree.VariableDeclaration
    start: tree.Expression
    stop: tree.Expression
    beyond: int  # added to stop: 1 for <=, -1 for >=
    step: int
    meets: bool  # the comparison is !=


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def _counted(cx: Context, node: tree.For) -> _Counted | None:
    declaration = _declared(node.initializer)
    if declaration is None or not isinstance(node.condition, tree.Binary):
        return None
    name, initializer = declaration.name, declaration.initializer
    if initializer is None or isinstance(initializer, tree.InitializerList):
        return None
    op, bound = _bound(node.condition, name)
    step = _step(cx, node.update, name)
    if bound is None or step is None:
        return None
    type = _type_of(cx, declaration)
    if type is None:
        return None
    meets = op == "!="
    if meets:
        if abs(step) != 1:
            return None
        op = "<" if step > 0 else ">"
    if (step > 0) != (op in ("<", "<=")):
        return None
    changed = changed_names(cx, node.body) | changed_names(cx, bound)
    if name in changed or not _is_fixed(bound, name, changed):
        return None
    beyond = {"<=": 1, ">=": -1}.get(op, 0)
    return _Counted(name, type, declaration, initializer, bound, beyond, step, meets)


def _declared(node: Any) -> tree.VariableDeclaration | None:
    if not isinstance(node, tree.DeclarationStatement) or len(node.declarations) != 1:
        return None
    declaration = node.declarations[0]
    return declaration if isinstance(declaration, tree.VariableDeclaration) else None


def _bound(condition: tree.Binary, name: str) -> tuple[str, Any]:
    if condition.op not in _MIRRORED:
        return "", None
    if isinstance(condition.left, tree.Name) and condition.left.text == name:
        return condition.op, condition.right
    if isinstance(condition.right, tree.Name) and condition.right.text == name:
        return _MIRRORED[condition.op], condition.left
    return "", None


def _step(cx: Context, update: Any, name: str) -> int | None:
    match update:
        case (
            tree.Unary(op=op, operand=tree.Name(text=text))
            | tree.Postfix(op=op, operand=tree.Name(text=text))
        ) if text == name and op in ("++", "--"):
            return 1 if op == "++" else -1
        case tree.Assign(op="+=" | "-=", target=tree.Name(text=text), value=value) if text == name:
            if isinstance(value, tree.InitializerList):
                return None
            try:
                with cx.separate_block():
                    found = constant_rvalue(cx, value, "a step").expression
            except CompileError:
                return None
            assert isinstance(found, n.Constant)
            step = int(found.value)
            if not isinstance(found.value, int) or not step:
                return None
            return step if update.op == "+=" else -step
    return None


def _type_of(cx: Context, declaration: tree.VariableDeclaration) -> CppType | None:
    if is_auto(declaration.type) or isinstance(declaration.type, tree.DefinedType):
        return None
    type = resolve(cx, declaration.type)
    return type if is_integer(type) else None


_FIXED = (
    tree.IntegerLiteral, tree.Name, tree.Binary, tree.Unary, tree.Cast, tree.Member, tree.SizeOf,
    tree.CharacterLiteral, tree.Conditional,
)  # fmt: skip


def _is_fixed(bound: tree.Expression, name: str, changed: frozenset[str]) -> bool:
    """Whether a bound is loop-invariant: made of numbers, and variables of this thread that the
    body does not change."""
    for node in walk_tree(bound):
        if isinstance(node, _TYPES_AND_NAMES):
            if isinstance(node, tree.Name) and (node.text == name or node.text in changed):
                return False
            continue
        if not isinstance(node, _FIXED):
            return False
        if isinstance(node, tree.Unary) and node.op not in ("+", "-", "~", "!"):
            return False
        if isinstance(node, tree.Member) and node.arrow:
            return False
    return True


_TYPES_AND_NAMES = (tree.Name, tree.BuiltinType, tree.NamedType, tree.ConstType)


def _emit_counted(cx: Context, node: tree.For, counted: _Counted) -> None:
    start, type = _as_type(cx, counted.start, counted.type)
    with cx.separate_block() as emitted:
        stop_value = rvalue(cx, lower(cx, counted.stop), node.span)
        expression = stop_value.expression
        bound, bound_type = number(cx, stop_value, node.span)
        wide = common_type(counted.type, bound_type)  # type: ignore[arg-type]
    key = (cx.path, id(counted.declaration))
    facts = cx.lowering.facts
    reads_memory = any(isinstance(x, n.Load) for x in walk(expression))
    # The comparison may be in another type (`int i < unsigned n`), or its bound not invariant.
    fits = wide.scalar == type or _same_order(wide.scalar, type, start, bound, counted.step)
    fits = fits and (counted.step > 0 or type.is_signed)  # `n.For` does not count an unsigned down
    if emitted or reads_memory or not fits or key in facts.assigned or key in facts.in_memory:
        _emit_plain(cx, node, counted, start, type)
        return
    stop = folded(number_as(bound, counted.type, node.span))  # type: ignore[arg-type]
    if counted.beyond:
        stop = folded(plus(stop, constant(counted.beyond, type)))
    if _wraps(type, start, stop, counted):
        _emit_plain(cx, node, counted, start, type)
        return
    variable = n.Variable(cx.lowering.unique(counted.name), type, counted.declaration.span)
    cx.lowering.parameter_keys[variable.name] = key
    cx.lowering.variable_keys[variable.name] = key
    cx.scope.names[counted.name] = Lvalue(variable, counted.type)
    body = lower_body(cx, node.body)
    if _read(stop) & _written(body):  # through a reference, or by a method
        facts.assigned.add(key)
        raise LowerAgain
    loop = n.For(variable, start, stop, counted.step, tuple(body), span=node.span)
    cx.emit(_unrolled(cx, loop, _unroll_factor(cx, node)))


def _unrolled(cx: Context, loop: n.For, factor: int) -> n.For:
    """The loop unrolled by the factor of `#pragma unroll`: 0 is full unrolling, 1 none. A factor
    that divides the trip count gives larger steps, with an unrolled loop inside."""
    if factor == 1:
        return loop
    start, stop = loop.start, loop.stop
    if not isinstance(start, n.Constant) or not isinstance(stop, n.Constant):
        return replace(loop, unroll=factor == 0)
    rounds = max(-(-(int(stop.value) - int(start.value)) // loop.step), 0)
    if factor == 0 or rounds <= factor:
        return replace(loop, unroll=True)
    if rounds % factor:
        return loop
    type = loop.variable.type
    assert isinstance(type, ir.Scalar)
    first = n.Variable(cx.lowering.unique(f"{loop.variable.name}.first"), type, loop.span)
    place = n.Variable(cx.lowering.unique(f"{loop.variable.name}.round"), type, loop.span)
    value = n.Binary("add", first, times(place, loop.step), type, loop.span)
    inner = n.For(
        place,
        constant(0, type),
        constant(factor, type),
        1,
        (n.Declare(loop.variable, value, loop.span), *loop.body),
        unroll=True,
        span=loop.span,
    )
    return n.For(first, start, stop, loop.step * factor, (inner,), span=loop.span)


def _same_order(
    wide: ir.Scalar, own: ir.Scalar, start: n.Expression, bound: n.Expression, step: int
) -> bool:
    """Whether a comparison in the loop's own type has the same result: the bound is a small
    constant, and no negative number is converted to unsigned."""
    if not isinstance(bound, n.Constant) or wide.is_float:
        return False
    if not wide.is_signed and own.is_signed:
        never_negative = isinstance(start, n.Constant) and start.value >= 0 and step > 0
        if not never_negative:
            return False
    return 0 <= int(bound.value) < 1 << (own.bits - 1)


def _wraps(type: ir.Scalar, start: n.Expression, stop: n.Expression, counted: _Counted) -> bool:
    """Whether an unsigned loop relies on wrapping."""
    if type.is_signed or not isinstance(stop, n.Constant):
        return False
    if counted.beyond:
        return stop.value == (0 if counted.beyond > 0 else (1 << type.bits) - 1)
    if not counted.meets:
        return False
    known = isinstance(start, n.Constant)
    return not known or (start.value > stop.value) == (counted.step > 0)  # type: ignore[union-attr]


def _read(expression: n.Expression) -> set[str]:
    return {node.name for node in walk(expression) if isinstance(node, n.Variable)}


def _written(body: list[n.Statement]) -> set[str]:
    """The variables that statements and those nested in them assign to."""
    found = set()
    for node in walk(tuple(body)):
        if isinstance(node, n.Assign):
            root = root_of(node.place)
            if isinstance(root, n.Variable):
                found.add(root.name)
        elif isinstance(node, n.Receiving) and node.result is not None:
            found.add(node.result.name)
    return found


def _emit_plain(
    cx: Context, node: tree.For, counted: _Counted, start: n.Expression, type: ir.Scalar
) -> None:
    key = (cx.path, id(counted.declaration))
    cx.scope.names[counted.name] = declare_object(
        cx, counted.name, counted.type, key, Rvalue(start, counted.type), node.span
    )
    body = lower_body(cx, node.body)
    with cx.separate_block() as update:
        _update(cx, node)
    _emit_while(cx, node.condition, body, tuple(update), node)


def _as_type(
    cx: Context, expression: tree.Expression, type: CppType
) -> tuple[n.Expression, ir.Scalar]:
    value = rvalue(cx, convert(cx, lower(cx, expression), type, expression.span), expression.span)
    made = folded(value.expression)
    assert isinstance(made.type, ir.Scalar)
    return made, made.type


def _unroll_factor(cx: Context, node: tree.For) -> int:
    """The factor of `#pragma unroll`: 0 for full unrolling, 1 without a pragma."""
    if node.unroll is None:
        return 1
    if isinstance(node.unroll, int):
        return node.unroll
    factor = constant_rvalue(cx, node.unroll, "the factor of #pragma unroll").expression
    assert isinstance(factor, n.Constant)
    return max(int(factor.value), 1)


# --- while and do --------------------------------------------------------------------------------


def lower_while(cx: Context, node: tree.While) -> None:
    """`while (…)`"""
    if not isinstance(node.condition, tree.VariableDeclaration):
        body = lower_body(cx, node.body)
        _emit_while(cx, node.condition, body, (), node)
        return
    with cx.separate_block() as inside, cx.inner_scope(), loop_body(cx):
        condition = whole_condition_of(cx, node.condition)
        cx.emit(n.If(_not(condition), (n.Break(node.span),), (), node.span))
        cx.rules.statement(cx, node.body)
    cx.emit(n.While(n.TRUE, tuple(inside), (), node.span))


def lower_do(cx: Context, node: tree.DoWhile) -> None:
    """`do … while (…);`: the condition is evaluated after the body, and after `continue`."""
    body = lower_body(cx, node.body)
    if not _continues(body):
        with cx.separate_block() as tail:
            condition = folded(whole_condition_of(cx, node.condition))
            never = isinstance(condition, n.Constant) and not condition.value
            if never and not _breaks(body):
                cx.blocks[-2].extend([*body, *tail])
                return
            cx.emit(n.If(_not(condition), (n.Break(node.span),), (), node.span))
        cx.emit(n.While(n.TRUE, (*body, *tail), (), node.span))
        return
    again = cx.let_as("again", n.TRUE, node.span)
    with cx.separate_block() as update:
        cx.emit(n.Assign(again, whole_condition_of(cx, node.condition), node.span))
    cx.emit(n.While(again, tuple(body), tuple(update), node.span))


def _continues(body: Any) -> bool:
    return any(_leaves(statement, n.Continue) for statement in body)


def _breaks(body: Any) -> bool:
    return any(_leaves(statement, n.Break) for statement in body)


def _leaves(statement: n.Statement, kind: type) -> bool:
    if isinstance(statement, kind):
        return True
    if isinstance(statement, n.If):
        return any(_leaves(one, kind) for one in (*statement.then, *statement.otherwise))
    return False


def lower_range_for(cx: Context, node: tree.RangeFor) -> None:
    """`for (T x : array)`"""
    with cx.inner_scope():
        if isinstance(node.range, tree.InitializerList):
            _over(cx, node, _listed(cx, node, node.range))
        else:
            _over(cx, node, lower(cx, node.range))


def _listed(cx: Context, node: tree.RangeFor, items: tree.InitializerList) -> Value:
    """The items of `for (T x : {a, b})` as an array."""
    if not items.items or isinstance(items.items[0], tree.InitializerList):
        raise cx.error("the range of a range-based for is a list of values of one type", node.span)
    element = decay(type_of(cx, items.items[0]))
    type = ArrayOf(Pointer(CHAR, True) if element == STRING else element, len(items.items))
    made: Value = declare_object(cx, "list", type, (cx.path, id(node)), None, node.span)
    with cx.lifetime():
        fill(cx, made, type, items, node.span)
    begin(cx, made, type)
    return made


def _over(cx: Context, node: tree.RangeFor, value: Value) -> None:
    if isinstance(getattr(value, "type", None), ClassType):
        _iterate(cx, node, value)
        return
    if not isinstance(value, (ArrayValue, SplitArray)) or value.type.length is None:
        type = getattr(value, "type", None)
        error = cx.wrong if isinstance(type, (Arithmetic, Pointer)) else cx.error
        raise error("the range of a range-based for must be an array of known length", node.span)
    variable = n.Variable(cx.lowering.unique("item"), ir.I32, node.span)
    with cx.separate_block() as body, cx.inner_scope(), loop_body(cx):
        cx.scope.names["<item>"] = subscript(cx, value, variable, node.span)
        declare(cx, _bound_to(cx, node, tree.Name("<item>", span=node.span)))
        cx.rules.statement(cx, node.body)
    stop = constant(value.type.length, ir.I32)
    cx.emit(n.For(variable, constant(0, ir.I32), stop, 1, tuple(body), span=node.span))


def _bound_to(cx: Context, node: tree.RangeFor, item: tree.Expression) -> tree.VariableDeclaration:
    """The variable of a range-based for, which an item initializes."""
    made: tree.VariableDeclaration = tree_made(
        cx, "item", node, lambda: replace(node.variable, initializer=item)
    )
    return made


def _iterate(cx: Context, node: tree.RangeFor, value: Value) -> None:
    """`for (T x : object)`: from its begin() to its end()."""
    span = node.span

    def name(text: str) -> tree.Name:
        return tree.Name(text, span=span)

    type = getattr(value, "type", None)
    assert isinstance(type, ClassType)
    has_methods = type.scope is None or type.scope.own("begin") is not None

    def end_of_range(which: str) -> tree.Expression:
        if has_methods:
            return tree.Call(tree.Member(name("<range>"), name(which), span=span), (), span=span)
        return tree.Call(name(which), (name("<range>"),), span=span)

    def made() -> tree.Statement:
        ends = tuple(
            tree.VariableDeclaration(
                f"<{which}>", tree.AutoType(span), end_of_range(which), span=span
            )
            for which in ("begin", "end")
        )
        item = tree.Unary("*", name("<begin>"), span)
        variable = _bound_to(cx, node, item)
        body = tree.Compound((tree.DeclarationStatement((variable,), span), node.body), span)
        loop = tree.For(
            None,
            tree.Binary("!=", name("<begin>"), name("<end>"), span),
            tree.Unary("++", name("<begin>"), span),
            body,
            span=span,
        )
        return tree.Compound((tree.DeclarationStatement(ends, span), loop), span)

    with cx.inner_scope() as scope:
        if isinstance(value, Rvalue):
            value = declare_object(cx, "range", value.type, (cx.path, id(node)), value, span)
        scope.names["<range>"] = value
        cx.rules.statement(cx, tree_made(cx, ("range", has_methods), node, made))


def whole_condition_of(cx: Context, node: Any) -> n.Expression:
    """The condition of an if or loop: an expression or a declaration."""
    if isinstance(node, tree.VariableDeclaration):
        declare_variable(cx, node)
        node = tree.Name(node.name, span=node.span)
    return whole_condition(cx, lambda: lower_condition(cx, node))
