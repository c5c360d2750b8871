"""Where in a user's source a type comes from that a target lacks."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.ir.types import Array, Scalar, Struct, Type, Vector


def origin_of(name: str, kernel: n.Kernel) -> Span | None:
    """Where values of the scalar type `name` come into a kernel first: by a parameter, an array or
    a memory; else by a cast or a variable, or else by a constant; at last where any is."""
    for span, type in _declared(kernel):
        if span.line and _holds(type, name):
            return span
    found = [(node, span) for node, span, type in _values(kernel) if _holds(type, name)]
    casts = [span for node, span in found if isinstance(node, (n.Cast, n.Bitcast))]
    for kinds in ((n.Declare, n.Cast, n.Bitcast), (n.Constant,), (object,)):
        spans = [span for node, span in found if isinstance(node, kinds)]
        if spans:  # of a variable and the cast that it is assigned, the cast
            line = spans[0].file, spans[0].line
            return next((span for span in casts if (span.file, span.line) == line), spans[0])
    return None


def _declared(kernel: n.Kernel) -> Iterator[tuple[Span, Type]]:
    for parameter in kernel.parameters:
        yield parameter.span, parameter.type
    for buffer in kernel.buffers:
        yield buffer.span, buffer.element
    for memory in kernel.memories:
        yield memory.span, memory.element


def _values(kernel: n.Kernel) -> Iterator[tuple[object, Span, Type]]:
    """Expressions and declarations with a place in the source, callees first."""
    for body in (*(function.body for function in kernel.functions), kernel.body):
        for node in walk(body):
            of = node.variable if isinstance(node, n.Declare) else node
            span, type = getattr(node, "span", None), getattr(of, "type", None)
            if span is not None and span.line and type is not None:
                yield node, span, type


def _holds(type: Type, name: str) -> bool:
    """Whether a type is the scalar type of this name, or has it in it."""
    match type:
        case Scalar():
            return type.name == name
        case Vector() | Array():
            return _holds(type.element, name)
        case Struct():
            return any(_holds(field.type, name) for field in type.fields)
    return False
