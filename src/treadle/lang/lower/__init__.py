"""Lowers a kernel's Python source to IR, for the argument types of one call."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

from treadle.core.errors import CompileError
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions
from treadle.ir.signature import Argument, ArrayArgument, ScalarArgument, Signature, ValueArgument
from treadle.ir.traverse import walk
from treadle.lang.lower.arrays import memory_variable
from treadle.lang.lower.calls import global_index
from treadle.lang.lower.context import Binding, Context, Lowering
from treadle.lang.lower.functions import bind_parameter, check_parameters
from treadle.lang.lower.rules import RULES
from treadle.lang.lower.statements import lower_body
from treadle.lang.lower.values import ArrayView, Value, contains_array
from treadle.lang.source import Source, parameters_of


def lower_kernel(
    function: FunctionType, source: Source, signature: Signature, options: KernelOptions
) -> n.Kernel:
    """The IR of a kernel for a signature. A CompileError has the position in the source."""
    return lower_in_full(function, source, signature, options)[0]


def lower_in_full(
    function: FunctionType,
    source: Source,
    signature: Signature,
    options: KernelOptions,
    *,
    asserts: bool = False,
) -> tuple[n.Kernel, Lowering]:
    """The IR, with the `types` of local names and the `sources` of functions.

    With `asserts`, operations without a defined value fail when they are executed (check mode).
    """
    big = any(isinstance(a, ArrayArgument) and a.big for a in signature.arguments)
    index_type = t.I64 if big else t.I32
    lowering = Lowering(RULES, options.fastmath, options.checked, index_type, asserts)
    cx = Context(lowering, function, source, is_kernel=True)
    check_parameters(cx, source, source.tree)
    names = [parameter.arg for parameter in parameters_of(source.tree)]
    if len(names) != len(signature.arguments):
        raise CompileError(
            f"{function.__name__} takes {len(names)} arguments, not {len(signature.arguments)}",
            cx.span(source.tree),
            source.text,
        )
    buffers: list[n.Buffer] = []
    if signature.threads:
        _return_outside(cx, signature.threads)
    for argument, name, node in zip(
        signature.arguments,
        names,
        parameters_of(source.tree),
        strict=True,
    ):
        _bind(cx, name, argument, buffers, node)
    lower_body(cx, source.tree.body)
    body = cx.whole_body
    used = {node.name for node in walk(body) if isinstance(node, n.Variable)}
    lowering.types[function, tuple(_kind(a) for a in signature.arguments)] = cx.types
    kernel = n.Kernel(
        name=function.__name__,
        buffers=tuple(buffers),
        parameters=tuple(p for p in cx.parameters.values() if p.name in used),
        body=body,
        memories=tuple(cx.memories),
        functions=tuple(lowering.functions),
        block=None,
        fastmath=options.fastmath,
        span=cx.span(source.tree),
    )
    return kernel, lowering


def _kind(argument: Argument) -> Any:
    """The kind of an argument, as `functions.kind_of` gives it."""
    if isinstance(argument, ArrayArgument):
        return (argument.element, argument.ndim)
    return argument.type


def _return_outside(cx: Context, axes: int) -> None:
    """Emit the early return of threads outside the extents of a launch."""
    span = cx.span(cx.source.tree)
    test: n.Expression | None = None
    for axis in range(axes):
        extent = _parameter(cx, f"threads.{axis}", cx.lowering.index_type, ("threads", axis))
        outside = n.Binary("ge", global_index(cx, axis, cx.source.tree), extent, t.BOOL, span)
        test = outside if test is None else n.Binary("logical_or", test, outside, t.BOOL, span)
    assert test is not None
    cx.emit(n.If(test, (n.Return(None, span),), (), span))


def _parameter(
    cx: Context,
    name: str,
    type: t.Scalar,
    origin: tuple[str | int, ...],
    node: ast.AST | None = None,
) -> n.Variable:
    """A scalar that the launch passes. It stays in the kernel only if it is used."""
    name = cx.unique(name)
    span = cx.span(node or cx.source.tree)
    cx.parameters[name] = n.Parameter(name, type, origin, span)
    return n.Variable(name, type, span)


def _bind(cx: Context, name: str, argument: Argument, buffers: list[n.Buffer], node: Any) -> None:
    """Bind one argument to a local name."""
    match argument:
        case ScalarArgument():
            value: Value = _parameter(cx, name, argument.type, ("value", name), node)
            bind_parameter(cx, name, value, node)
        case ArrayArgument():
            memory = cx.unique(name)
            buffers.append(n.Buffer(memory, argument.element, cx.span(node)))
            cx.bindings[name] = Binding(_view(cx, name, memory, argument))
        case ValueArgument():
            _bind_struct(cx, name, argument, node)


def _view(cx: Context, name: str, memory: str, argument: ArrayArgument) -> ArrayView:
    type = t.I64 if argument.big else t.I32
    axes = range(argument.ndim)
    size = _parameter(cx, f"{memory}.size", type, ("size", name))
    if argument.ndim == 1:
        extents: tuple[n.Expression, ...] = (size,)
    else:
        extents = tuple(
            _parameter(cx, f"{memory}.shape.{axis}", type, ("shape", name, axis)) for axis in axes
        )
    strides = None
    if not argument.contiguous:
        strides = tuple(
            _parameter(cx, f"{memory}.stride.{axis}", type, ("stride", name, axis)) for axis in axes
        )
    offset = None
    if argument.has_offset:
        offset = _parameter(cx, f"{memory}.offset", type, ("offset", name))
    return ArrayView(memory, argument.element, extents, size, strides, offset, type)


def _bind_struct(cx: Context, name: str, argument: ValueArgument, node: Any) -> None:
    """A vector or struct by value: its leaves are parameters, assembled at the kernel's start."""
    span = cx.span(node)
    if contains_array(argument.type):
        place = memory_variable(cx, argument.type, name, span)
        cx.bindings[name] = Binding(place)
        _fill(cx, place.place, (name,), node)
        return
    variable = n.Variable(cx.unique(name), argument.type, span)
    cx.emit(n.Declare(variable, _assemble(cx, argument.type, (name,)), span))
    cx.bindings[name] = Binding(variable, variable)


def _assemble(cx: Context, type: t.Type, path: tuple[str | int, ...]) -> n.Expression:
    span = cx.span(cx.source.tree)
    match type:
        case t.Scalar():
            return _parameter(cx, ".".join(map(str, path)), type, ("leaf", *path))
        case t.Vector():
            parts = t.COMPONENTS[: type.count]
            operands = tuple(_assemble(cx, type.element, (*path, part)) for part in parts)
        case t.Struct():
            operands = tuple(_assemble(cx, f.type, (*path, f.name)) for f in type.fields)
        case _:
            raise AssertionError(type)
    return n.Construct(operands, type, span)


def _fill(cx: Context, place: n.Place, path: tuple[str | int, ...], node: Any) -> None:
    """Fill a struct in memory from its leaves."""
    span = cx.span(node)
    type = place.type
    if isinstance(type, t.Array):
        for at in range(type.length):
            item = n.Item(place, n.Constant(at, t.I32), type.element, (), span)
            _fill(cx, item, (*path, at), node)
    elif isinstance(type, t.Struct) and contains_array(type):
        for field in type.fields:
            member = n.Member(place, field.name, field.type, span)
            _fill(cx, member, (*path, field.name), node)
    else:
        cx.emit(n.Assign(place, _assemble(cx, type, path), span))


__all__ = ["lower_in_full", "lower_kernel"]
