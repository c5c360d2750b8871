"""Device functions: each is lowered once for the types of its arguments, and then called.

Arrays are passed as a memory and their extents. Constant extents (of shared and local arrays),
Python objects (dtypes, functions) and literal tuples are a part of the specialization's key.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import FunctionType
from typing import Any

from treadle.core.errors import CompileError, DtypeError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.effects import ends
from treadle.ir.traverse import walk
from treadle.lang.definitions import DeviceFunction
from treadle.lang.fragments import FragmentKind
from treadle.lang.lower.arrays import copied, load, memory_variable
from treadle.lang.lower.context import Binding, Context, Specialization
from treadle.lang.lower.conversions import convert, typed
from treadle.lang.lower.expressions import in_order
from treadle.lang.lower.names import from_python, hides_function
from treadle.lang.lower.values import (
    ArrayView,
    FixedArrayPlace,
    FragmentMethod,
    Position,
    PositionMethod,
    PythonObject,
    Range,
    ShiftedPosition,
    TupleValue,
    Value,
    Zipped,
    contains_array,
    describe,
)
from treadle.lang.positions import GridPos
from treadle.lang.rules import Literal
from treadle.lang.source import Source, parameters_of, resolve_annotations
from treadle.lang.types import ArrayType, declared_type

_IMPURE = (
    n.Barrier, n.Fence, n.Atomic, n.Subgroup, n.OpaqueStore, n.Copies, n.Staged,
    n.CallStatement, n.Print,
    n.Assert, n.Element,
)  # fmt: skip


def call_function(
    cx: Context, function: FunctionType, source: Source, node: ast.Call, unused: bool
) -> Value:
    """A call in the source, with arguments by position, by name, and defaults."""
    check_parameters(cx, source, node)
    names = [parameter.arg for parameter in parameters_of(source.tree)]
    only = [parameter.arg for parameter in source.tree.args.kwonlyargs]
    by_position = names[: len(names) - len(only)]
    if len(node.args) > len(by_position):
        if only and len(node.args) <= len(names):
            last = only[len(node.args) - len(by_position) - 1]
            raise cx.error(f"{function.__name__} takes {last} by name: write {last}=…", node)
        raise arity_error(cx, function, names, len(node.args), node)
    given = dict(zip(by_position, node.args, strict=False))
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg not in names:
            raise cx.error(f"{function.__name__} has no parameter {keyword.arg}", keyword.value)
        if keyword.arg in given:
            raise cx.error(f"{keyword.arg} is given twice", keyword.value)
        given[keyword.arg] = keyword.value
    values: dict[str, Value] = dict(zip(given, in_order(cx, list(given.values())), strict=True))
    parameters = inspect.signature(function).parameters
    for name in names:
        if name not in values:
            default = parameters[name].default
            if default is inspect.Parameter.empty:
                raise arity_error(cx, function, names, len(given), node)
            values[name] = from_python(cx, default, name, node)
    return call_with(cx, function, source, [values[name] for name in names], node, unused=unused)


def arity_error(
    cx: Context, function: FunctionType, names: Sequence[str], given: int, node: ast.AST
) -> CompileError:
    """The error of a call with too many or too few arguments."""
    return cx.error(
        f"{function.__name__}({', '.join(names)}) takes {len(names)} "
        f"argument{'' if len(names) == 1 else 's'}, not {given}",
        node,
    )


def check_parameters(cx: Context, source: Source, node: ast.AST) -> None:
    """Refuse parameter lists that device functions can't have."""
    arguments = source.tree.args
    if arguments.vararg or arguments.kwarg:
        raise cx.refusal("star_parameters", node)


def call_device_function(
    cx: Context, function: DeviceFunction, values: list[Value], node: ast.AST
) -> Value:
    """A call of a device function with lowered arguments."""
    return call_with(cx, function.definition, function.source_code, values, node)


# --- arguments -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ArrayKey:
    element: t.Type
    extents: tuple[int | None, ...]  # None where it is a variable
    strided: bool
    offset: bool
    index_type: t.Scalar
    origin: str
    layer: tuple[int, ...]
    wrapped: bool
    fragment: FragmentKind | None
    constant: bool


def _key(value: Value) -> Any:
    """The part of a specialization's key for one argument."""
    match value:
        case ArrayView():
            extents = tuple(
                int(e.value) if isinstance(e, n.Constant) else None for e in value.extents
            )
            return _ArrayKey(
                value.element,
                extents,
                value.strides is not None,
                value.offset is not None,
                value.index_type,
                value.origin,
                value.layer,
                value.wrapped,
                value.fragment,
                value.constant,
            )
        case TupleValue():
            return tuple(_key(item) for item in value.items)
        case Literal():
            return ("literal", type(value.value), value.value)
        case PythonObject():
            return ("object", id(value.value))
        case Position():
            types = tuple(part.type for part in (*value.indices, *value.values))
            return ("position", value.rules, types)
        case _:
            return value.type  # type: ignore[union-attr]


def kind_of(value: Value) -> Any:
    """The kind of an argument, which determines the types in a function. The interpreter computes
    the same from its values, to find the types that the lowering gave to local variables."""
    match value:
        case ArrayView():
            return (value.element, value.ndim)
        case TupleValue():
            return tuple(kind_of(item) for item in value.items)
        case Literal():
            return (type(value.value).__name__, value.value)
        case PythonObject():
            return id(value.value)
        case Position():
            return value.rules
        case _:
            return value.type  # type: ignore[union-attr]


def call_with(
    cx: Context,
    function: FunctionType,
    source: Source,
    values: list[Value],
    node: ast.AST,
    *,
    unused: bool = False,
) -> Value:
    """A call with lowered arguments, in order of the parameters."""
    values = annotated(cx, function, source, values, node)
    if cx.is_kernel and any(isinstance(value, Position) for value in values):
        values = [
            replace(value, origin=value.memory) if isinstance(value, ArrayView) else value
            for value in values
        ]
    key = (function, tuple(_key(value) for value in values))
    if key in cx.lowering.active:
        name = function.__name__
        if hides_function(name):
            raise cx.refusal("hidden_function", node, name=name, kind="function")
        raise cx.refusal("recursion", node, name=function.__name__)
    specialization = cx.lowering.specializations.get(key)
    if specialization is None:
        cx.lowering.active.append(key)
        try:
            specialization = specialize(cx, function, source, values)
        except CompileError as error:
            if error.line:
                error.add_note(f"{function.__name__} is called at {cx.span(node)}")
            else:  # in a method of a fragment
                error.span, error.source_text = cx.span(node), cx.text
            raise
        finally:
            cx.lowering.active.pop()
        cx.lowering.specializations[key] = specialization
    arguments: list[n.Argument] = []
    for value in values:
        arguments += _passed(cx, value, node)
    return _call(cx, specialization, tuple(arguments), node, unused)


def annotated(
    cx: Context, function: FunctionType, source: Source, values: list[Value], node: ast.AST
) -> list[Value]:
    """Arguments converted to the annotations; other literals get their default type."""
    annotations = resolve_annotations(function)
    names = [parameter.arg for parameter in parameters_of(source.tree)]
    if len(values) != len(names):
        raise arity_error(cx, function, names, len(values), node)
    result: list[Value] = []
    storage = next((each.rules.storage for each in values if isinstance(each, Position)), None)
    for name, value in zip(names, values, strict=True):
        what = f"parameter {name} of {function.__name__}"
        annotation = annotations.get(name)
        if isinstance(annotation, ArrayType):
            wanted = annotation.declared
            if (
                not isinstance(value, ArrayView)
                or (
                    value.element != wanted.element
                    and not (value.element == storage and wanted.element == t.F32)
                )
                or value.ndim != wanted.ndim
            ):
                raise cx.error(f"{what} is {wanted}, and this is {describe(value)}", node)
        elif annotation is GridPos or isinstance(value, Position):
            if not isinstance(value, Position) or annotation not in (GridPos, None):
                raise cx.error(f"{what} is {annotation}, and this is {describe(value)}", node)
        elif annotation is not None:
            try:
                declared = declared_type(annotation)
            except DtypeError as error:
                raise cx.error(f"{what}: {error}", node) from None
            assert declared is not None
            value = convert(cx, value, declared, node, what)  # type: ignore[arg-type]
        else:
            value = _settled(cx, value, node)
        result.append(value)
    return result


def _settled(cx: Context, value: Value, node: ast.AST) -> Value:
    if isinstance(value, Literal):
        return typed(cx, value, node)
    if isinstance(value, TupleValue):
        # Numbers in a tuple stay constants, since tuples are often shapes or weights.
        return TupleValue(
            tuple(v if isinstance(v, Literal) else _settled(cx, v, node) for v in value.items)
        )
    if isinstance(value, FixedArrayPlace):
        raise cx.error("an array inside a struct can't be passed: pass the array of structs", node)
    if isinstance(value, Zipped):
        raise cx.error("enumerate and zip work in a for only: pass what they take", node)
    if isinstance(value, Range):
        raise cx.error("a range can't be passed: pass its bounds", node)
    if isinstance(value, (PositionMethod, ShiftedPosition)):
        raise cx.error("a neighbour can't be passed: pass the position", node)
    if isinstance(value, FragmentMethod):
        raise cx.error("a method can't be passed: pass the fragment", node)
    return value


def _passed(cx: Context, value: Value, node: ast.AST) -> list[n.Argument]:
    """The IR arguments that one value becomes, in the order of `_receive`."""
    match value:
        case ArrayView():
            parts: list[n.Argument] = [n.MemoryReference(value.memory, cx.span(node))]
            parts += [e for e in value.extents if not isinstance(e, n.Constant)]
            if value.ndim != 1 and not isinstance(value.size, n.Constant):
                parts.append(value.size)
            parts += value.strides or ()
            if value.offset is not None:
                parts.append(value.offset)
            return parts
        case TupleValue():
            return [part for item in value.items for part in _passed(cx, item, node)]
        case Position():
            return [*value.indices, *value.values]
        case Literal() | PythonObject():
            return []
        case n.Load() if contains_array(value.type):
            # Passed by value: the function may change its copy.
            copy = copied(cx, value, "passed", cx.span(node))
            assert isinstance(copy.place, n.Element)
            return [n.MemoryReference(copy.place.memory, cx.span(node))]
        case _:
            return [value]  # type: ignore[list-item]


class _Receiver:
    """Creates a function's parameters from the values that it is called with."""

    def __init__(self, cx: Context) -> None:
        self.cx = cx
        self.parameters: list[n.Variable | n.Buffer] = []

    def receive(self, name: str, value: Value) -> Value:
        match value:
            case ArrayView():
                return self._array(name, value)
            case TupleValue():
                return TupleValue(
                    tuple(self.receive(f"{name}.{at}", item) for at, item in enumerate(value.items))
                )
            case Literal() | PythonObject():
                return value
            case Position():
                indices = (
                    self._variable(f"{name}.{axis}", index.type)
                    for axis, index in enumerate(value.indices)
                )
                values = (self._variable(f"{name}.near", each.type) for each in value.values)
                return Position(value.rules, tuple(indices), tuple(values))
            case _:
                return self._variable(name, value.type)  # type: ignore[union-attr]

    def _variable(self, name: str, type: t.Type) -> n.Variable | n.Load:
        if contains_array(type):
            memory = self.cx.unique(name)
            self.parameters.append(n.Buffer(memory, type))
            return n.Load(n.Element(memory, n.Constant(0, t.I32), type), type)
        variable = n.Variable(self.cx.unique(name), type)
        self.parameters.append(variable)
        return variable

    def _array(self, name: str, view: ArrayView) -> ArrayView:
        memory = self.cx.unique(name)
        self.parameters.append(n.Buffer(memory, view.element))
        type = view.index_type
        extents: list[n.Expression] = []
        for axis, extent in enumerate(view.extents):
            label = f"{memory}.size" if view.ndim == 1 else f"{memory}.shape.{axis}"
            extents.append(
                extent if isinstance(extent, n.Constant) else self._variable(label, extent.type)
            )
        size = view.size
        if view.ndim == 1:
            size = extents[0]
        elif not isinstance(size, n.Constant):
            size = self._variable(f"{memory}.size", size.type)
        strides = None
        if view.strides is not None:
            strides = tuple(
                self._variable(f"{memory}.stride.{axis}", type) for axis in range(view.ndim)
            )
        offset = None if view.offset is None else self._variable(f"{memory}.offset", type)
        return replace(
            view, memory=memory, extents=tuple(extents), size=size, strides=strides, offset=offset
        )


# --- lowering a function -------------------------------------------------------------------------


def specialize(
    cx: Context, function: FunctionType, source: Source, values: list[Value]
) -> Specialization:
    """Lower a function for these arguments and add it to the kernel."""
    name = cx.lowering.unique_function(function.__name__)
    result = _declared_result(cx, function)
    inner, parameters = _attempt(cx, function, source, values, result)
    if result is None and inner.result is not None and not inner.tuple_result:
        # The first return may have been a literal, whose type a later one determines.
        inner, parameters = _attempt(cx, function, source, values, inner.result)
    body = inner.whole_body
    returns = inner.result if inner.result is not None else t.VOID
    in_memory = contains_array(returns)
    if returns != t.VOID and not ends(body):
        raise inner.refusal("missing_return", source.tree, name=function.__name__)
    if inner.result is not None:
        inner.types["return"] = inner.result
    cx.lowering.types[function, tuple(kind_of(value) for value in values)] = inner.types
    pure = not inner.memories and not any(isinstance(part, n.Buffer) for part in parameters)
    pure = pure and not any(isinstance(each, _IMPURE) for each in walk(body))
    cx.lowering.functions.append(
        n.Function(
            name,
            tuple(parameters),
            t.VOID if in_memory else returns,
            body,
            tuple(inner.memories),
            inner.span(source.tree),
        )
    )
    pure = pure and returns != t.VOID
    return Specialization(name, returns, pure, inner.tuple_result, in_memory)


def _declared_result(cx: Context, function: FunctionType) -> t.Type | None:
    annotation = resolve_annotations(function).get("return", inspect.Parameter.empty)
    if annotation is None:
        return t.VOID
    if annotation is inspect.Parameter.empty:
        return None
    try:
        found = declared_type(annotation)
    except DtypeError:
        return None  # for example, a tuple's annotation: the returns determine it
    return found if isinstance(found, (t.Scalar, t.Vector, t.Struct)) else None


def _attempt(
    cx: Context,
    function: FunctionType,
    source: Source,
    values: list[Value],
    result: t.Type | None,
) -> tuple[Context, list[n.Variable | n.Buffer]]:
    inner = Context(cx.lowering, function, source, is_kernel=False)
    inner.result = result
    inner.result_declared = result is not None
    receiver = _Receiver(inner)
    names = [parameter.arg for parameter in parameters_of(source.tree)]
    for name, value in zip(names, values, strict=True):
        bind_parameter(inner, name, receiver.receive(name, value), source.tree)
    inner.rules.body(inner, source.tree.body)
    if inner.result_place is not None:
        receiver.parameters.append(n.Buffer(inner.result_place.memory, inner.result_place.type))
    return inner, receiver.parameters


def bind_parameter(cx: Context, name: str, value: Value, node: ast.AST) -> None:
    """Bind a parameter to a local name. One that the function assigns becomes a variable."""
    if isinstance(value, n.Variable):
        value = replace(value, span=cx.span(node))
        if cx.scope.stores.get(name, 0) > 1 or assigns_parts(cx, name):
            variable = n.Variable(cx.unique(name), value.type, value.span)
            cx.emit(n.Declare(variable, value, value.span))
            value = variable
        cx.bindings[name] = Binding(value, value)
    else:
        cx.bindings[name] = Binding(value)


def assigns_parts(cx: Context, name: str) -> bool:
    """Whether a function assigns to components or fields of a local name."""
    return name in _names_with_assigned_parts(cx.source.tree)


@lru_cache(maxsize=16)
def _names_with_assigned_parts(tree: ast.AST) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            root: ast.AST = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name):
                names.add(root.id)
    return frozenset(names)


# --- the call itself -----------------------------------------------------------------------------


def _call(
    cx: Context,
    specialization: Specialization,
    arguments: tuple[n.Argument, ...],
    node: ast.AST,
    unused: bool,
) -> Value:
    span = cx.span(node)
    name, result = specialization.name, specialization.result
    if specialization.pure:
        value: n.Expression = n.Call(name, arguments, result, span)
        return _unpacked(cx, specialization, value, node)
    if specialization.in_memory:
        taken = memory_variable(cx, result, name, span)
        assert isinstance(taken.place, n.Element)
        arguments = (*arguments, n.MemoryReference(taken.place.memory, span))
        cx.emit(n.CallStatement(name, arguments, None, span))
        return _unpacked(cx, specialization, taken, node)
    if result == t.VOID or unused:
        cx.emit(n.CallStatement(name, arguments, None, span))
        return PythonObject(None, name.partition(".")[0])
    holder = cx.temporary(result, span, name)
    cx.emit(n.CallStatement(name, arguments, holder, span))
    return _unpacked(cx, specialization, holder, node)


def _unpacked(
    cx: Context, specialization: Specialization, value: n.Expression, node: ast.AST
) -> Value:
    if not specialization.tuple_result:
        return value
    assert isinstance(specialization.result, t.Struct)
    if isinstance(value, n.Load):
        places = (
            n.Member(value.place, field.name, field.type, cx.span(node))
            for field in specialization.result.fields
        )
        return TupleValue(tuple(load(cx, place, node) for place in places))
    holder = cx.spill(value, "result")
    return TupleValue(
        tuple(
            n.Extract(holder, field.name, field.type, cx.span(node))
            for field in specialization.result.fields
        )
    )
