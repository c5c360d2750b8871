"""The order of evaluation of operands, and copies of operands that later ones change.

Each operand is lowered to a block of its own, and the blocks are emitted in C++'s order. A value is
copied if a later operand changes what it was read from. If a reference is bound to an operand, it
is an object, not a value: only its place is computed before later operands, and the function reads
it when it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.conversions import OBJECTS, binds_directly, convert, rvalue
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.pointers import pointer_of
from treadle.cuda_cpp.lower.special_members import acts
from treadle.cuda_cpp.lower.template_arguments import with_known_arguments
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    BitFieldLvalue,
    BitsLvalue,
    Braced,
    ChoiceLvalue,
    ChosenPointer,
    FunctionSet,
    ItemTarget,
    Lvalue,
    ObjectAddress,
    ObjectTarget,
    ParameterPointer,
    PointerValue,
    PointerVariable,
    Rvalue,
    ScatteredLvalue,
    SplitArray,
    SplitStruct,
    Value,
    is_prvalue,
    pointer_in_memory,
    with_category,
)
from treadle.cuda_cpp.semantics.scopes import KnownValue
from treadle.cuda_cpp.semantics.types import VOID, ClassType, CppType, Reference, holds_array
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir.traverse import rewrite, root_of, statements_in, walk

Block = Sequence[n.Statement]
OBJECT = Reference(VOID, True)  # the object of a method call


@dataclass(slots=True)
class Operands:
    """Operands in their order of evaluation, with their blocks of side effects, not emitted yet."""

    values: list[Value] = field(default_factory=list)
    blocks: list[list[n.Statement]] = field(default_factory=list)

    def add(self, value: Value, block: list[n.Statement]) -> None:
        """Add an operand, which is evaluated after the others."""
        self.values.append(value)
        self.blocks.append(block)

    @property
    def effects(self) -> list[n.Statement]:
        """The side effects of all operands."""
        return [statement for block in self.blocks for statement in block]

    def emit(
        self, cx: Context, types: Callable[[], Sequence[CppType | None]] | None = None
    ) -> list[Value]:
        """Emit the side effects in order; return the values. `types` gives the types of the
        parameters that they initialize; without one, an operand is read in its place."""
        last = max((at for at, block in enumerate(self.blocks) if block), default=-1)
        wanted: Sequence[CppType | None] | None = None
        found: list[Value] = []
        for at, (value, block) in enumerate(zip(self.values, self.blocks, strict=True)):
            cx.emit(*block)
            if at < last:
                later = [one for block in self.blocks[at + 1 :] for one in block]
                if wanted is None and is_changed(cx, value, later):
                    wanted = types() if types is not None else ()
                type = wanted[at] if wanted is not None and at < len(wanted) else None
                value = snapshot(cx, value, type, later, cx.span)
            found.append(value)
        return found


def lower_to_block(cx: Context, expression: Any) -> tuple[Value, list[n.Statement]]:
    """The value of an expression, and the block of its side effects, which is not emitted yet."""
    with cx.separate_block() as block:
        value = lower(cx, expression)
    return value, block


def operands_of(
    cx: Context, nodes: Sequence[Any], refers: Callable[[int], bool] = lambda at: False
) -> Operands:
    """Arguments, evaluated from left to right. `refers`: whether a reference to a variable may be
    bound to the argument at a position, so that `c ? a : b` is a or b there, and no copy."""
    found = Operands()
    for at, node in enumerate(nodes):
        if isinstance(node, tree.InitializerList):
            found.add(Braced(node), [])
        elif isinstance(node, tree.Conditional) and refers(at):
            with cx.separate_block() as block:
                value = cx.rules.place(cx, node)
            found.add(value, block)
        else:
            value, block = lower_to_block(cx, node)
            if isinstance(value, FunctionSet):
                value = with_known_arguments(cx, value)
            found.add(value, block)
    return found


def second_operand(cx: Context, first: Value, expression: Any) -> tuple[Value, Value]:
    """The operands of a built-in operator: the first is read before the second is evaluated."""
    both = Operands([first], [[]])
    both.add(*lower_to_block(cx, expression))
    first, second = both.emit(cx)
    return first, second


# --- copies --------------------------------------------------------------------------------------


def snapshot(cx: Context, value: Value, type: CppType | None, later: Block, span: Span) -> Value:
    """An operand, copied if later statements change what it is read from. `type` is that of the
    parameter that it initializes; None reads it, as the built-in operators do."""
    if not is_changed(cx, value, later):
        return value
    if isinstance(type, Reference):
        if type is OBJECT and not isinstance(value, Rvalue):
            return with_fixed_place(cx, value, span)
        if type is not OBJECT and binds_directly(value, type):
            return with_fixed_place(cx, value, span)
        type = None if type is OBJECT else type.to
    if acts(getattr(value, "type", VOID)):
        if type == getattr(value, "type", None) and not is_prvalue(value):
            assert type is not None
            return cx.rules.construct(cx, type, [value], span)
        return with_fixed_place(cx, value, span)
    if type is not None:
        value = convert(cx, value, type, span)
    if isinstance(value, (PointerVariable, ChosenPointer)) or pointer_in_memory(value):
        value = pointer_of(cx, value) or value
    elif isinstance(value, (Rvalue, *OBJECTS)) and not holds_array(value.type):
        read = rvalue(cx, value, span)
        return Rvalue(cx.copied(read.expression), read.type, literal_zero=read.literal_zero)
    return with_fixed_place(cx, value, span)


def with_fixed_place(cx: Context, value: Value, span: Span) -> Value:
    """An object or pointer whose place is computed now: later assignments do not change it."""
    match value:
        case ParameterPointer():
            return value
        case PointerValue():
            tag = value.tag if value.tag is None else cx.copied(value.tag)
            offset = _snapshot_offset(cx, value.offset)
            targets = tuple(_fixed_target(cx, one) for one in value.targets)
            return PointerValue(targets, offset, value.unit, value.to, tag, value.const)
        case Lvalue(place=place) | BitsLvalue(place=place):
            return replace(value, place=_fixed_place(cx, place))
        case BitFieldLvalue(words=words):
            return replace(value, words=tuple(with_fixed_place(cx, one, span) for one in words))
        case ArrayValue(first, type):
            begin = with_fixed_place(cx, first, span)
            assert isinstance(begin, PointerValue)
            checks = value.checks
            fixed = (replace(one, index=_snapshot_offset(cx, one.index)) for one in checks)
            return ArrayValue(begin, type, tuple(fixed))
        case ScatteredLvalue():
            return replace(value, offset=_snapshot_offset(cx, value.offset))
        case ChoiceLvalue(tag, choices, type):
            parts = tuple(c if c is None else with_fixed_place(cx, c, span) for c in choices)
            return ChoiceLvalue(cx.copied(tag), parts, type)
    return value


def _fixed_target(cx: Context, target: Any) -> Any:
    """A target whose place is computed now: a row of an array in an object has an index."""
    if isinstance(target, (ItemTarget, ObjectTarget)):
        return replace(target, place=_fixed_place(cx, target.place))
    return target


def _snapshot_offset(cx: Context, offset: n.Expression) -> n.Expression:
    if isinstance(offset, n.Constant):
        return offset
    fixed = isinstance(offset, n.Variable) and offset.name in cx.lowering.parameter_keys
    if fixed and not cx.for_call:  # where a loop's variable is not in scope
        return offset
    return cx.let_as("offset", offset)


def _fixed_place(cx: Context, place: n.Place) -> n.Place:
    match place:
        case n.Variable():
            return place
        case n.Member(base=base):
            return replace(place, base=_fixed_place(cx, base))
        case n.Item(base=base):
            index, checks = _fixed_index(cx, place)
            return replace(place, base=_fixed_place(cx, base), index=index, checks=checks)
        case n.Element():
            index, checks = _fixed_index(cx, place)
            return replace(place, index=index, checks=checks)


def _fixed_index(
    cx: Context, place: n.Item | n.Element
) -> tuple[n.Expression, tuple[n.Check, ...]]:
    """The index of a place, computed now, and its checks with that."""
    old, index = place.index, _snapshot_offset(cx, place.index)

    def fixed(node: n.Expression) -> n.Expression:
        return index if node == old else node

    def check(one: n.Check) -> n.Check:
        of = rewrite(one.index, fixed)
        if of == one.index:  # an index of one dimension
            of = _snapshot_offset(cx, of)
        return replace(one, index=of, bound=rewrite(one.bound, fixed))

    return index, tuple(map(check, place.checks))


def bind_reference(cx: Context, type: Reference, value: Value, span: Span) -> Any:
    """What a reference of this type refers to: the object, or a converted temporary."""
    value = with_category(value, "lvalue")
    if binds_directly(value, type):
        if isinstance(type.to, ClassType):
            value = as_base(cx, value, type.to, span)
        return with_fixed_place(cx, value, span)
    converted = convert(cx, value, type.to, span)
    if isinstance(converted, Rvalue):
        if isinstance(converted.expression, n.Constant):
            return KnownValue(converted)
        return Lvalue(cx.let_as("value", converted.expression, span), converted.type)
    return with_fixed_place(cx, converted, span)


# --- dependences ---------------------------------------------------------------------------------

_ANY = "any memory"
_CALL = "a call"
_GLOBAL = "memory of the device"  # arrays of a kernel may alias


def is_changed(cx: Context, value: Value, later: Block) -> bool:
    """Whether statements may change what a value is read from, or the place of an object."""
    if not later:
        return False
    written = _written(cx, later)
    if not written:
        return False
    for part in _parts(value):
        for node in walk(part):
            if isinstance(node, n.Variable) and node.name in written:
                return True
            if _CALL in written and _may_call_change(cx, node):
                return True
            if isinstance(node, n.Element):
                place = _space(cx, node.memory)
                if place in written or (_ANY in written and place[0] != "local"):
                    return True
    return False


def _written(cx: Context, block: Block) -> set[Any]:
    """The variables and memories that statements may write to."""
    found: set[Any] = set()
    for statement in statements_in(tuple(block)):
        match statement:
            case n.Assign(place=place) | n.Atomic(place=place):
                root = root_of(place)
                if isinstance(root, n.Variable):
                    found.add(root.name)
                else:
                    assert isinstance(root, n.Element)
                    found.add(_space(cx, root.memory))
            case n.Barrier() | n.Fence():
                found.add(_ANY)
            case n.CallStatement():  # of a function that calls itself
                found |= {_ANY, _CALL}
    return found


def _may_call_change(cx: Context, node: Any) -> bool:
    """Whether a function that calls itself may change what is read here. Variables of its frames
    are the same again after the call."""
    if isinstance(node, n.Element):
        return True
    if not isinstance(node, n.Variable) or node.name in cx.lowering.parameter_keys:
        return False
    return cx.recursion is not None and cx.recursion.is_outer(node.name)


def _space(cx: Context, memory: str) -> tuple[str, str]:
    target = cx.lowering.memory_targets.get(memory)
    if target is not None and target.space in ("local", "shared"):
        return target.space, memory
    return _GLOBAL, ""


def _parts(value: Any) -> Iterator[Any]:
    """The IR expressions and places that a value consists of."""
    yield from _own_parts(value)
    for inner in _values_in(value):
        yield from _parts(inner)


def _own_parts(value: Any) -> Iterator[Any]:
    """Those that the value itself has, besides the values that it is made of."""
    match value:
        case Rvalue(expression=expression):
            yield expression
        case Lvalue(place=place) | BitsLvalue(place=place) | ChosenPointer(place=place):
            yield place
        case PointerValue(offset=offset, tag=tag) | PointerVariable(offset=offset, tag=tag):
            yield offset
            if tag is not None:
                yield tag
        case ScatteredLvalue(target=memory, offset=offset):
            yield n.Element(memory.memory, offset, memory.element)
        case ChoiceLvalue(tag=tag):
            yield tag
    if isinstance(value, PointerValue):
        for target in value.targets:
            if isinstance(target, (ItemTarget, ObjectTarget)):
                yield from _indices(target.place)


def _values_in(value: Any) -> Iterable[Any]:
    """The values that a value is made of."""
    match value:
        case ArrayValue(first=inner) | ObjectAddress(object=inner) | FunctionSet(receiver=inner):
            return (inner,)
        case ChoiceLvalue(choices=several) | ChosenPointer(items=several):
            return several
        case BitFieldLvalue(words=several):
            return several
        case SplitStruct(fields=fields):
            return fields.values()
        case SplitArray(items=several):
            return several
    return ()


def _indices(place: n.Place) -> Iterator[n.Expression]:
    """The indices of a place in its object."""
    while isinstance(place, (n.Member, n.Item)):
        if isinstance(place, n.Item):
            yield place.index
        place = place.base
    if isinstance(place, n.Element):
        yield place.index


def arguments(cx: Context, nodes: Sequence[Any], type: CppType | None = None) -> list[Value]:
    """Arguments of a built-in function, or of a constructor of `type`, evaluated in order."""
    operands = operands_of(cx, nodes)
    if type is None:
        return operands.emit(cx)
    return operands.emit(cx, lambda: cx.rules.constructed_from(cx, type, operands.values))
