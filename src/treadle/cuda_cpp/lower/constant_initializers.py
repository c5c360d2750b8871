"""Constant initialization of a file's variables: initializers as the initial bytes of memory.

Elements without an initializer are zero, so the cost of a long array is that of its initializers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.core.dtypes import BY_SHORT_NAME
from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import constant, folded, holds
from treadle.cuda_cpp.lower.constant_evaluation import TooLong, evaluate, evaluate_object
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import convert, rvalue
from treadle.cuda_cpp.lower.dispatch import lower, type_of
from treadle.cuda_cpp.lower.expressions import lower_float, lower_integer
from treadle.cuda_cpp.lower.initializers import (
    from_list,
    refuse_narrowing,
    without_base_braces,
)
from treadle.cuda_cpp.lower.special_members import (
    has_bits,
    has_constructors,
    member_defaults,
    members_of,
    own_constructors,
    takes_nothing,
)
from treadle.cuda_cpp.lower.values import Lvalue, Rvalue
from treadle.cuda_cpp.semantics.scopes import Overload
from treadle.cuda_cpp.semantics.types import (
    BOOL,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    Field,
    VectorType,
    all_fields,
    count_of,
    holds_array,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def first_bytes(cx: Context, declaration: tree.VariableDeclaration, type: CppType) -> bytes | None:
    """The bytes of a variable of this type; None for zeros. CompileError for an initializer that is
    not constant."""
    inner = innermost(type)
    initializer: Any = declaration.initializer
    if initializer is None:
        if not _has_defaults(inner):
            return None
        initializer = tree.InitializerList((), (), declaration.span)
    memory = _Image(cx, bytearray(ir.size_of(ir_type(inner)) * count_of(type)))
    memory.initialize(type, 0, initializer)
    return bytes(memory.made)


@dataclass(slots=True)
class _RemainingItems:
    """The remaining items of a list, which subaggregates without braces share ([dcl.init.aggr])."""

    items: Sequence[Any]
    taken: int = 0

    @property
    def empty(self) -> bool:
        return self.taken >= len(self.items)

    @property
    def next(self) -> Any:
        return self.items[self.taken]

    def take(self) -> Any:
        self.taken += 1
        return self.items[self.taken - 1]


@dataclass(slots=True)
class _Image:
    """The bytes of a variable while they are initialized."""

    cx: Context
    made: bytearray = field(repr=False)

    def initialize(
        self, type: CppType, offset: int, initializer: Any, listed: bool = False
    ) -> None:
        """Write the value of an initializer at an offset. Lists do not allow narrowing."""
        while (
            isinstance(initializer, tree.InitializerList)
            and len(initializer.items) == 1
            and not _has_parts(type)
        ):
            initializer, listed = initializer.items[0], initializer.braces
        if isinstance(initializer, tree.StringLiteral) and _is_text(type):
            assert isinstance(type, ArrayOf)
            text = initializer.data
            self._fits(len(text), type.length or 0, type, initializer.span)
            self.made[offset : offset + len(text)] = text
        elif not isinstance(initializer, tree.InitializerList):
            self._expression(type, offset, initializer, listed)
        elif isinstance(type, ClassType) and has_bits(type) and not has_constructors(type):
            self._with_bits(type, offset, initializer)
        elif isinstance(type, ClassType) and _runs_code(type) and holds_array(type):
            with self._constant_block() as emitted:
                made = from_list(self.cx, type, initializer, initializer.span)
            self._object(made, type, offset, emitted, initializer.span)
        elif isinstance(type, ClassType) and _runs_code(type):
            with self._constant_block() as emitted:
                value = rvalue(
                    self.cx,
                    from_list(self.cx, type, initializer, initializer.span),
                    initializer.span,
                )
            self._constant(value.expression, ir_type(type), offset, emitted, initializer.span)
        elif _has_parts(type):
            self._list(type, offset, initializer)
        elif initializer.items:
            raise self.cx.wrong(f"{len(initializer.items)} values for one {type}", initializer.span)

    def _with_bits(self, type: ClassType, offset: int, node: tree.InitializerList) -> None:
        """A class with bit fields, each from an item of its own."""
        members, defaults, struct = members_of(type), member_defaults(type), ir_type(type)
        assert isinstance(struct, ir.Struct)
        names = [one.name for one in members]
        if len(node.items) > len(members) or not set(node.names) <= {None, *names}:
            raise self.cx.wrong(f"{type} has no members for these values", node.span)
        given = dict(zip(names, node.items, strict=False))
        if any(node.names):
            given = {name or "": one for name, one in zip(node.names, node.items, strict=True)}
        for one in members:
            item = given.get(one.name, defaults.get(one.name))
            if item is None:
                continue
            if isinstance(one, Field):
                start = offset + ir.field_offset(struct, one.name)
                self.initialize(one.type, start, item, True)
                continue
            image = _Image(self.cx, bytearray(8))
            image.initialize(one.type, 0, item, True)
            value = int.from_bytes(image.made, "little")
            for piece in one.pieces:
                start = offset + ir.field_offset(struct, piece.word)
                bits = (value >> piece.position & ((1 << piece.count) - 1)) << piece.shift
                for at in range(4):
                    if byte := bits >> 8 * at & 255:
                        self.made[start + at] |= byte

    def _list(self, type: CppType, offset: int, node: tree.InitializerList) -> None:
        node = without_base_braces(self.cx, type, node)
        one = node.items[0] if len(node.items) == 1 else None
        if one is not None and (
            (isinstance(one, tree.StringLiteral) and _is_text(type)) or self._is_whole(type, one)
        ):
            self.initialize(type, offset, one, True)
            return
        if any(node.names):
            self._by_name(type, offset, node)
            return
        rest = _RemainingItems(node.items)
        self._parts(type, offset, rest)
        if not rest.empty:
            raise self.cx.wrong(
                f"{len(node.items)} values for {type}, which has room for {rest.taken}", node.span
            )

    def _parts(self, type: CppType, offset: int, rest: _RemainingItems) -> None:
        """Initialize the parts of a type from items, then by default member initializers."""
        defaulted = _has_defaults(type)
        for part, place, default in self._places(type, offset):
            if rest.empty:
                if not defaulted:
                    return  # zeros from here on
                if default is not None:
                    self.initialize(part, place, default)
                elif isinstance(part, ClassType) and _runs_code(part):
                    self.initialize(part, place, tree.InitializerList((), (), self.cx.span))
                elif _has_parts(part):
                    self._parts(part, place, rest)
                continue
            item = rest.next
            if (
                isinstance(item, tree.InitializerList)
                or not _has_parts(part)
                or (isinstance(item, tree.StringLiteral) and _is_text(part))
                or self._is_whole(part, item)
            ):
                self.initialize(part, place, rest.take(), True)
            else:
                self._parts(part, place, rest)  # brace elision

    def _by_name(self, type: CppType, offset: int, node: tree.InitializerList) -> None:
        fields = all_fields(type) if isinstance(type, ClassType) else ()
        given = dict(zip(node.names, node.items, strict=True))
        for name in given:
            if name not in [one.name for one in fields]:
                raise self.cx.wrong(f"{type} has no field {name or 'without a name'}", node.span)
        for one, (part, place, default) in zip(fields, self._places(type, offset), strict=False):
            item = given.get(one.name, default)
            if item is not None:
                self.initialize(part, place, item, one.name in given)

    def _places(self, type: CppType, offset: int) -> Any:
        """The parts of a type: their types, offsets, and default member initializers."""
        if isinstance(type, ArrayOf):
            step = ir.size_of(ir_type(type.element))
            for at in range(type.length or 0):
                yield type.element, offset + at * step, None
        elif isinstance(type, VectorType):
            step = ir.size_of(type.element.scalar)
            for at in range(type.count):
                yield type.element, offset + at * step, None
        elif isinstance(type, ClassType):
            struct, defaults = ir_type(type), member_defaults(type)
            assert isinstance(struct, ir.Struct)
            for one in all_fields(type)[: 1 if type.is_union else None]:
                start = 0 if type.is_union else ir.field_offset(struct, one.name)
                yield one.type, offset + start, defaults.get(one.name)

    def _is_whole(self, type: CppType, item: Any) -> bool:
        """Whether an expression initializes a whole class or vector, not its first part."""
        if not isinstance(type, (ClassType, VectorType)) or isinstance(item, tree.InitializerList):
            return False
        return type_of(self.cx, item) == type

    def _expression(self, type: CppType, offset: int, node: Any, listed: bool) -> None:
        known = _literal(self.cx, node)
        if known is not None and isinstance(type, Arithmetic) and type != BOOL:
            number, given = known
            if given == type or (not given.scalar.is_float and holds(type, given, number)):
                written = _written(constant(number, type.scalar).value, type.scalar)
                self.made[offset : offset + len(written)] = written
                return
        with self._constant_block() as emitted:
            read = lower(self.cx, node)
            if listed:
                refuse_narrowing(self.cx, read, type, node.span)
            made = convert(self.cx, read, type, node.span)
            in_place = isinstance(type, ClassType) and holds_array(type)
            value = None if in_place else rvalue(self.cx, made, node.span)
        if value is None:
            self._object(made, type, offset, emitted, node.span)
            return
        self._constant(value.expression, ir_type(type), offset, emitted, node.span)

    def _object(
        self, made: Any, type: CppType, offset: int, emitted: Sequence[n.Statement], span: Span
    ) -> None:
        """Write an object with arrays, which the statements make in its place."""
        known = None
        if isinstance(made, Lvalue):
            lowering = self.cx.lowering
            known = evaluate_object(emitted, made.place, lowering.functions, self.cx.memories)
        if known is None:
            raise self._unknown(span)
        self._known(known, ir_type(type), offset, span)

    def _known(self, value: Any, type: ir.Type, offset: int, span: Span) -> None:
        """Write a value of `evaluate_object` at an offset."""
        if isinstance(type, ir.Array):
            step = ir.size_of(type.element)
            for at in range(type.length or 0):
                self._known(value[at], type.element, offset + at * step, span)
        elif isinstance(value, n.Construct):
            for part, (inner, place) in zip(value.operands, _ir_places(type), strict=True):
                self._known(part, inner, offset + place, span)
        elif isinstance(value, n.Constant):
            written = _written(value.value, value.type)
            self.made[offset : offset + len(written)] = written
        else:
            raise self._unknown(span)

    def _constant(
        self, expression: n.Expression, type: ir.Type, offset: int, emitted: Any, span: Span
    ) -> None:
        """Write a constant, which may have parts, at an offset."""
        result: n.Expression | None = folded(expression)
        if emitted or not isinstance(result, (n.Constant, n.Construct)):
            try:
                lowering = self.cx.lowering
                result = evaluate(
                    emitted, expression, lowering.functions, self.cx.memories,
                    lowering.constant_results,
                )  # fmt: skip
            except TooLong as reason:
                raise self.cx.error(f"the initializer {reason}", span) from None
        if isinstance(result, n.Construct):
            for operand, (part, place) in zip(result.operands, _ir_places(type), strict=True):
                self._constant(operand, part, offset + place, (), span)
        elif isinstance(result, n.Constant):
            written = _written(result.value, result.type)
            self.made[offset : offset + len(written)] = written
        else:
            raise self._unknown(span)

    @contextmanager
    def _constant_block(self) -> Iterator[list[n.Statement]]:
        """The statements of a constant expression, which are evaluated, not emitted."""
        self.cx.lowering.constants += 1
        try:
            with self.cx.separate_block() as emitted:
                yield emitted
        finally:
            self.cx.lowering.constants -= 1

    def _unknown(self, span: Span) -> Exception:
        return self.cx.error(
            "the initializer of a variable must be a constant expression: set the variable "
            "from the host, with module.constants[…] = …",
            span,
        )

    def _fits(self, came: int, most: int, type: CppType, span: Span) -> None:
        if came > most:
            raise self.cx.wrong(f"{came} characters for {type}", span)


def _literal(cx: Context, node: Any) -> tuple[int | float, Arithmetic] | None:
    """The value of a literal, which may follow a minus; None for other expressions. A fast path for
    tables of thousands of numbers."""
    negative = isinstance(node, tree.Unary) and node.op == "-"
    inner = node.operand if negative else node
    if isinstance(inner, tree.IntegerLiteral):
        read = lower_integer(cx, inner)
    elif isinstance(inner, tree.FloatLiteral):
        read = lower_float(cx, inner)
    else:
        return None
    assert isinstance(read, Rvalue)
    assert isinstance(read.expression, n.Constant)
    assert isinstance(read.type, Arithmetic)
    value = read.expression.value
    return (constant(-value, read.type.scalar).value if negative else value), read.type


def _has_parts(type: CppType) -> bool:
    return isinstance(type, (ArrayOf, ClassType, VectorType))


def _has_defaults(type: CppType) -> bool:
    """Whether a class in a type has default member initializers, or a default constructor that
    does something."""
    inner = innermost(type)
    if not isinstance(inner, ClassType):
        return False
    parts = (*inner.bases, *(one.type for one in inner.fields))
    written = any(
        takes_nothing(one.declaration) and not one.declaration.note and _does_something(one)
        for one in own_constructors(inner)
    )
    return bool(member_defaults(inner)) or written or any(map(_has_defaults, parts))


def _runs_code(type: ClassType) -> bool:
    """Whether objects of a class are made by constructors, its own or those of bases."""
    return has_constructors(type) or any(map(_has_defaults, type.bases))


def _does_something(constructor: Overload) -> bool:
    body = constructor.declaration.body
    return bool(constructor.declaration.initializers) or (body is not None and bool(body.body))


def _is_text(type: CppType) -> bool:
    return (
        isinstance(type, ArrayOf)
        and isinstance(type.element, Arithmetic)
        and type.element.scalar.bits == 8
    )


def _ir_places(type: ir.Type) -> list[tuple[ir.Type, int]]:
    match type:
        case ir.Vector():
            step = ir.size_of(type.element)
            return [(type.element, at * step) for at in range(type.count)]
        case ir.Struct():
            return [(one.type, ir.field_offset(type, one.name)) for one in type.fields]
    raise AssertionError(type)


_LAYOUTS = {
    "i8": "b", "u8": "B", "i16": "<h", "u16": "<H", "i32": "<i", "u32": "<I", "i64": "<q",
    "u64": "<Q", "f32": "<f", "f64": "<d",
}  # fmt: skip


def _written(value: Any, scalar: ir.Scalar) -> bytes:
    layout = _LAYOUTS.get(scalar.name)
    if layout is not None:
        return struct.pack(layout, value)
    return np.array(value, BY_SHORT_NAME[scalar.name].numpy).tobytes()
