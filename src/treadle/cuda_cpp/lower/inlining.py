"""Inlining: arguments are bound to parameters, and returns become structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded
from treadle.cuda_cpp.lower.assignment import (
    assign_pointer,
    initialize,
    put,
)
from treadle.cuda_cpp.lower.conditionals import lower_place
from treadle.cuda_cpp.lower.context import (
    MOST_CALLS,
    Context,
    Returns,
    key_of,
)
from treadle.cuda_cpp.lower.conversions import (
    IMPOSSIBLE,
    OBJECTS,
    binds_directly,
    convert,
    is_const_object,
    is_lvalue,
    rank_of,
    refuse_lost_const,
    rvalue,
)
from treadle.cuda_cpp.lower.copy_initialization import check_copy
from treadle.cuda_cpp.lower.dispatch import exact_type, lower, type_of
from treadle.cuda_cpp.lower.evaluation_order import bind_reference, with_fixed_place
from treadle.cuda_cpp.lower.fixed_parts import fixed_copy
from treadle.cuda_cpp.lower.initializers import from_list
from treadle.cuda_cpp.lower.lifetimes import begin, is_local, take, temporary
from treadle.cuda_cpp.lower.names import is_const, resolve
from treadle.cuda_cpp.lower.pointers import address
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.storage import declare_object, without_value
from treadle.cuda_cpp.lower.tree_analysis import assigned_names, note_volatile
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    Candidate,
    ChoiceLvalue,
    Lvalue,
    Rvalue,
    SplitStruct,
    Value,
    VoidValue,
    as_const,
    describe,
    is_prvalue,
    with_category,
)
from treadle.cuda_cpp.semantics.scopes import OWN, REFERENCE, KnownValue, Scope
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    ClassType,
    CppType,
    EnumType,
    Pointer,
    Reference,
    VectorType,
    Void,
    decay,
    holds_array,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.passes.returns import without_returns


def inline(
    cx: Context,
    chosen: Candidate,
    values: Sequence[Value],
    receiver: Value | None,
    result: CppType | None,
    instance: Any,
    span: Span,
) -> Value:
    """The result of a call, whose body is lowered in place."""
    cx.calls += 1
    cx.lowering.calls += 1
    declaration = chosen.declaration
    if cx.lowering.calls > MOST_CALLS:
        raise cx.error(
            f"the kernel inlines more than {MOST_CALLS} calls, the last one of "
            f"{declaration.name.text}: functions with pointers or references are inlined; call "
            "them in a loop, or pass values instead",
            span,
        )
    scope = Scope(chosen.scope, declaration.name.text, "function")
    inner = Context(
        cx.lowering,
        scope,
        path=(*cx.path, (instance, cx.calls)),
        returns=Returns(result, written=declaration.result),
        this=with_category(as_const(receiver) if declaration.const else receiver, "lvalue"),
        depth=cx.depth + 1,
        name=declaration.name.text,
        isolated=cx.isolated,
    )
    inner.changes_nothing = declaration.const
    inner.memories = cx.memories
    inner.recursion = cx.recursion
    inner.blocks = [cx.blocks[-1]]
    inner.span = span
    inner.called_at = _called_at(cx, declaration, span)
    assigned = assigned_names(cx, declaration)
    for parameter, type, value in zip(declaration.parameters, chosen.types, values, strict=False):
        bind_argument(inner, parameter, type, value, assigned, span)
    end_with_caller(cx, inner)
    found = run_body(inner, declaration, span)
    made: Value
    if isinstance(inner.returns.type, Reference):
        made = with_category(found, "xvalue" if inner.returns.type.rvalue else "lvalue")
        return made
    given = getattr(found, "type", None)
    made = temporary(cx, found, given) if isinstance(given, ClassType) else found
    if isinstance(made, Rvalue):
        made = with_category(made, "prvalue")
    return made


def _called_at(cx: Context, declaration: tree.FunctionDeclaration, span: Span) -> Span | None:
    """Where users call what leads to a function of one of our headers, if reports may name it."""
    if not cx.lowering.guarded or not declaration.span.is_of_header:
        return None
    return cx.called_at or span.as_called(declaration.name.text, declaration.span.file)


def end_with_caller(cx: Context, inner: Context) -> None:
    """The parameters of an inlined function end with the caller's full expression."""
    cx.endings[-1].extend(inner.endings[0])
    inner.endings[0].clear()


def run_body(inner: Context, declaration: tree.FunctionDeclaration, span: Span) -> Value:
    """Lower a body whose parameters are bound, in place of its call."""
    assert declaration.body is not None
    single = single_return(declaration)
    if single is not None:
        with inner.lifetime():
            for statement in declaration.body.body[:-1]:
                inner.rules.statement(inner, statement)
            with inner.lifetime():
                given = _single_value(inner, single)
                if any(inner.endings):
                    given = _kept(inner, given, single.span)
            return given
    outer = inner.blocks[-1]
    inner.returns.elided = _named_result(declaration.body)
    if _returns(declaration.body):
        prepare_result(inner, declaration.body, span)
        with inner.separate_block() as body:
            inner.rules.statement(inner, declaration.body)
        flag = n.Variable(inner.lowering.unique(f"{inner.name}.returned"), ir.BOOL, span)
        outer.extend(without_returns(tuple(body), None, flag))
    else:
        inner.rules.statement(inner, declaration.body)
    return _result(inner)


def _single_value(cx: Context, node: tree.Return) -> Value:
    """The value of the only return."""
    if node.value is None:
        return VoidValue(VOID)
    if isinstance(node.value, tree.InitializerList):
        assert cx.returns.type is not None
        value = from_list(cx, cx.returns.type, node.value, node.span)
        take(cx, value)
        return value
    if cx.returns.type is None and is_exact(cx.returns.written):
        value = lower_place(cx, node.value)
        if isinstance(value, (*OBJECTS, Rvalue)):
            cx.returns.type = _exact_result(cx, node, node.value, value)
        return _given(cx, _as_result(cx, node, value), node.span)
    deduced = cx.returns.type is None and isinstance(cx.returns.written, tree.ReferenceType)
    refers = deduced or isinstance(cx.returns.type, Reference)
    value = (lower_place if refers else lower)(cx, node.value)
    if deduced and is_lvalue(value):
        cx.returns.type = _reference_to(cx, value.type)  # type: ignore[union-attr]
    return _given(cx, value if refers else _as_result(cx, node, value), node.span)


def _as_result(cx: Context, node: tree.Return, value: Value) -> Value:
    """A returned value: a local variable is the result, unless that is a reference."""
    if not isinstance(node.value, tree.Name) or isinstance(cx.returns.type, Reference):
        return value
    value = _moved(cx, node.value, value)
    own = is_local(cx, value) or _is_own(cx, node.value)
    return with_category(value, "prvalue") if own else value


def _is_own(cx: Context, name: tree.Name) -> bool:
    """Whether a name is that of a variable of this function, or of a parameter by value."""
    scope: Scope | None = cx.scope
    while scope is not None and name.text not in scope.names:
        scope = scope.parent
    return not name.scope and scope is not None and OWN + name.text in scope.names


def is_exact(written: tree.TypeTree | None) -> bool:
    """Whether a result type is `decltype(auto)`."""
    return isinstance(written, tree.AutoType) and written.exact


def _exact_result(
    cx: Context, node: tree.Return, written: tree.Expression, value: Value
) -> CppType:
    """The type that `decltype(auto)` is for a returned value."""
    if not node.parentheses and isinstance(written, (tree.Name, tree.Member)):
        return resolve(cx, tree.DecltypeType(written, node.span))
    return exact_type(value)


def _moved(cx: Context, name: tree.Name, value: Value) -> Value:
    """A returned variable or parameter, from which the result is moved."""
    is_parameter = name.text in cx.by_value and cx.scope.find(name.text) is value
    return with_category(value, "xvalue") if is_parameter or is_local(cx, value) else value


def _kept(cx: Context, value: Value, span: Span) -> Value:
    """A value that the destructors of local variables do not change any more."""
    if isinstance(value, Rvalue):
        return replace(value, expression=cx.copied(value.expression))
    return with_fixed_place(cx, value, span)


def _named_result(body: tree.Statement) -> str | None:
    """The variable that all returns of a function name: it is the result, and is not copied."""
    names = {
        node.value.text if isinstance(node.value, tree.Name) else None
        for node in walk_tree(body)
        if isinstance(node, tree.Return)
    }
    return names.pop() if len(names) == 1 else None


def _given(cx: Context, value: Value, span: Span) -> Value:
    """A returned value, converted to the return type."""
    type = cx.returns.type
    if type is None and acts(getattr(value, "type", VOID)):
        type = value.type  # type: ignore[union-attr]
    if isinstance(type, Reference):
        return as_const(value) if type.const else value
    given = getattr(value, "type", None)
    if type is None and isinstance(given, (Arithmetic, EnumType, VectorType, ClassType)):
        type = given  # the result is a copy
    if type is None:
        return value
    if isinstance(type, Void):
        return VoidValue(VOID)
    converted = convert(cx, value, type, span)
    if acts(type) or (holds_array(type) and not isinstance(converted, Rvalue)):
        if is_prvalue(converted):
            take(cx, converted)
            return converted
        key = (cx.path, "returned")
        made: Value = declare_object(cx, f"{cx.name}.result", type, key, converted, span)
        return made
    if isinstance(converted, SplitStruct) and not is_prvalue(converted):
        return fixed_copy(cx, converted, (cx.path, "returned"), span)
    if isinstance(converted, Lvalue) and not holds_array(type):
        return rvalue(cx, converted, span)
    if isinstance(converted, Rvalue) and not isinstance(converted.expression, n.Variable):
        return Rvalue(cx.let(folded(converted.expression)), converted.type)
    return converted


def prepare_result(cx: Context, body: tree.Statement, span: Span) -> None:
    """Prepare the variable that several returns assign to."""
    type = cx.returns.type
    if type is None:
        type = deduced_result(cx, body)
        if isinstance(cx.returns.written, tree.ReferenceType) and not isinstance(type, Void):
            type = _reference_to(cx, type)
        cx.returns.type = type
        cx.returns.deduced = True
    key = (cx.path, "result")
    if isinstance(type, Void):
        return
    if isinstance(type, Reference):  # which of several objects
        count = sum(isinstance(node, tree.Return) for node in walk_tree(body))
        if count > 1:
            cx.returns.place = cx.variable(f"{cx.name}.result", ir.I32, span)
        return
    cx.returns.place = without_value(cx, f"{cx.name}.result", type, key, span)


def _reference_to(cx: Context, type: CppType) -> Reference:
    """What `auto &` or `const auto &` is, as the result of a function that returns an lvalue."""
    return Reference(type, is_const(cx.returns.written.to))


class _FirstReturn(Exception):
    """The type of the first value that a function returns."""

    def __init__(self, type: CppType) -> None:
        self.type = type


_DEDUCING = object()


def deduced_result(cx: Context, body: tree.Statement) -> CppType:
    """The type that `auto` stands for as a result: that of the first return that is lowered."""
    count = len(cx.memories)
    cx.returns.place = _DEDUCING
    try:
        with cx.separate_block(), cx.inner_scope():
            cx.rules.statement(cx, body)
    except _FirstReturn as found:
        return found.type
    finally:
        cx.returns.place = None
        del cx.memories[count:]
    return VOID


def bind_result(
    cx: Context, name: str, type: CppType, key: Any, span: Span
) -> tuple[Value, Callable[[Value], None]]:
    """A value that one of several branches gives, and what assigns it in a branch."""
    place = without_value(cx, name, type, key, span)

    def assign(value: Value) -> None:
        initialize(cx, place, convert(cx, value, type, span), span)

    if isinstance(place, Lvalue) and isinstance(place.place, n.Variable):
        return Rvalue(place.place, type), assign
    return place, assign


def _result(cx: Context) -> Value:
    place = cx.returns.place
    if isinstance(cx.returns.type, Reference):
        if place is not None:
            found: Value = ChoiceLvalue(place, tuple(cx.returns.choices), cx.returns.type.to)
        elif cx.returns.reference is None:
            raise cx.error(f"{cx.name} does not return a reference")
        else:
            found = cx.returns.reference
        return as_const(found) if cx.returns.type.const else found
    if place is None:
        return VoidValue(VOID)
    if isinstance(place, Lvalue) and isinstance(place.place, n.Variable):
        return Rvalue(place.place, place.type)
    made: Value = place
    return made


def _returned_type(cx: Context, node: tree.Return) -> CppType:
    if node.value is None:
        return VOID
    if isinstance(node.value, tree.InitializerList):
        raise cx.error(f"{cx.name} returns {{…}}: declare its return type", node.span)
    if is_exact(cx.returns.written):
        return resolve(cx, tree.DecltypeType(node.value, node.span, node.parentheses))
    return decay(type_of(cx, node.value))


def lower_return(cx: Context, node: tree.Return) -> None:
    """`return value;` in a function or kernel."""
    type = cx.returns.type
    if cx.returns.dependent:
        if node.value is not None and not isinstance(node.value, tree.InitializerList):
            lower(cx, node.value)
        return
    if cx.returns.place is _DEDUCING:
        raise _FirstReturn(_returned_type(cx, node))
    if node.value is None:
        if type is not None and not isinstance(type, Void):
            raise cx.wrong(f"{cx.name} returns {type}, so a return needs a value", node.span)
        cx.end_from(1)
        cx.emit(n.Return(None, node.span))
        return
    if cx.returns.deduced and isinstance(type, Arithmetic):
        other = _returned_type(cx, node)
        if isinstance(other, Arithmetic) and other != type:
            name = "this lambda" if cx.name == "operator()" else cx.name
            raise cx.wrong(
                f"{name} returns {type} before and {other} here: its type is deduced, so all must "
                "be the same; write the type, or convert",
                node.span,
            )
    with cx.lifetime():
        _return_value(cx, node, node.value, type)


def _return_value(cx: Context, node: tree.Return, written: Any, type: CppType | None) -> None:
    kept = None
    if isinstance(written, tree.InitializerList):
        assert type is not None
        value = from_list(cx, type, written, node.span)
    else:
        value = (lower_place if isinstance(type, Reference) else lower)(cx, written)
        if isinstance(written, tree.Name) and not isinstance(type, Reference):
            value = _moved(cx, written, value)
            if written.text == cx.returns.elided and is_local(cx, value):
                kept = value
    check_copy(cx, value, type, node.span)
    if isinstance(type, Void):
        if not isinstance(getattr(value, "type", VOID), Void):
            raise cx.wrong(f"{cx.name} returns void, so a return has no value", node.span)
        cx.end_from(1)
        cx.emit(n.Return(None, node.span))
    elif isinstance(type, Reference):
        if cx.lowering.checking and not (type.const or type.rvalue):
            _refuse_other_reference(cx, type, value, node)
        with cx.outermost():
            if cx.returns.address is not None:
                _return_address(cx, cx.returns.address, value, node)
            elif cx.returns.place is not None:
                _add_choice(cx, type, value, node)
            else:
                cx.returns.reference = with_fixed_place(cx, value, node.span)
        cx.end_from(1)
        cx.emit(n.Return(None, node.span))
    elif cx.returns.place is None:  # a function of the IR
        assert type is not None
        given = rvalue(cx, convert(cx, value, type, node.span), node.span)
        if any(cx.endings):
            given = Rvalue(cx.copied(given.expression), given.type)
        cx.end_from(1)
        cx.emit(n.Return(given.expression, node.span))
    else:
        if kept is not None:
            put(cx, cx.returns.place, kept, type or VOID, node.span)
        else:
            initialize(cx, cx.returns.place, value, node.span)
        cx.end_from(1, kept)
        cx.emit(n.Return(None, node.span))


def _return_address(cx: Context, place: Any, value: Value, node: tree.Return) -> None:
    """Return a reference as a pointer, from a function that calls itself."""
    assign_pointer(cx, place, address(cx, value, node.span), node.span)


def _refuse_other_reference(cx: Context, type: Reference, value: Value, node: tree.Return) -> None:
    """CompileError for a result that a reference cannot refer to."""
    if rank_of(cx, with_category(value, "lvalue"), type) == IMPOSSIBLE:
        raise cx.unfit(
            f"{cx.name} returns {type}, which cannot refer to {describe(value)}", value, node.span
        )
    deduced = cx.returns.deduced or cx.is_in_instance()
    if not deduced and getattr(value, "type", None) == type.to and is_const_object(value):
        raise cx.wrong(
            f"{cx.name} returns {type}, which cannot refer to a const {type.to}: return a "
            "reference to const",
            node.span,
        )


def _add_choice(cx: Context, type: Reference, value: Value, node: tree.Return) -> None:
    """Add an object to those that the returns of a function refer to."""
    bound = bind_reference(cx, type, value, node.span)
    known: Value = bound.value if isinstance(bound, KnownValue) else bound
    if isinstance(known, Rvalue):  # a parameter whose argument is a number
        known = Lvalue(cx.let_as("value", known.expression, node.span), known.type)
    if not isinstance(known, (*OBJECTS, ArrayValue)):
        raise cx.error(
            f"{cx.name} returns references to objects with pointers from several places: return "
            "the object, or an index",
            node.span,
        )
    tag = constant(len(cx.returns.choices), ir.I32)
    cx.emit(n.Assign(cx.returns.place, tag, node.span))
    cx.returns.choices.append(known)


def _referred(cx: Context, type: Reference, value: Value, key: Any, span: Span) -> Any:
    """What a parameter refers to. A temporary is an object with a place only if that is used."""
    value = with_category(value, "lvalue")
    if binds_directly(value, type):
        return bind_reference(cx, type, value, span)
    facts = cx.lowering.facts
    # Pointers to it are known by its name, which is the same in all runs.
    number = facts.temporaries.setdefault(key, len(facts.temporaries) + 1)
    name = f"referred.{number}.object"
    converted = convert(cx, value, type.to, span)
    if not isinstance(converted, Rvalue):
        return with_fixed_place(cx, converted, span)
    if key in facts.addressed or key in facts.in_memory:
        return declare_object(cx, name, converted.type, key, converted, span)
    if isinstance(converted.expression, n.Constant):
        return KnownValue(converted, key if type.const else None)  # a key: a const variable
    place = cx.let_as(name, converted.expression, span)
    cx.lowering.variable_keys[place.name] = key
    return Lvalue(place, converted.type)


def bind_argument(
    cx: Context,
    parameter: tree.Parameter,
    type: CppType,
    value: Value,
    assigned: frozenset[str],
    span: Span,
) -> None:
    """Bind an argument to the name of a parameter in an inlined body."""
    if isinstance(type, Reference):
        bound = _referred(cx, type, value, key_of(cx, parameter), span)
    else:
        refuse_lost_const(cx, parameter.type, value, span)
        converted = convert(cx, value, type, span)
        if isinstance(converted, Rvalue):
            converted = replace(converted, expression=folded(converted.expression))
        key = (cx.path, id(parameter))
        written = parameter.name in assigned or key in cx.lowering.facts.in_memory
        cx.by_value.add(parameter.name)
        if acts(type):
            own = is_prvalue(converted)
            bound = (
                converted
                if own
                else declare_object(cx, parameter.name or "unused", type, key, converted, span)
            )
            bound = with_category(bound, "lvalue")
            if not own:
                begin(cx, bound, type)
        elif isinstance(type, Pointer) and not written:
            bound = with_fixed_place(cx, converted, span)
        elif isinstance(converted, SplitStruct) and not written:
            own = is_prvalue(converted)
            fixed = converted if own else fixed_copy(cx, converted, key, span)
            bound = with_category(fixed, "lvalue")
        elif (
            isinstance(converted, Rvalue)
            and isinstance(converted.expression, n.Constant)
            and not written
        ):
            bound = KnownValue(converted)
        else:
            bound = declare_object(cx, parameter.name or "unused", type, key, converted, span)
            cx.scope.names[OWN + parameter.name] = type
    if parameter.name:
        note_volatile(cx, parameter.type, bound)
        const = type.const if isinstance(type, Reference) else is_const(parameter.type)
        cx.scope.names[parameter.name] = as_const(bound) if const else bound
        if isinstance(type, Reference):
            cx.scope.names[REFERENCE + parameter.name] = type


def single_return(declaration: tree.FunctionDeclaration) -> tree.Return | None:
    """The return at the end of a body, if it is the only one."""
    assert declaration.body is not None
    body = declaration.body.body
    if not body or not isinstance(body[-1], tree.Return):
        return None
    if any(isinstance(one, tree.Label) for one in body):
        return None
    return None if any(map(_returns, body[:-1])) else body[-1]


def _returns(statement: tree.Statement) -> bool:
    """Whether a statement contains a return."""
    return any(isinstance(node, tree.Return) for node in walk_tree(statement))
