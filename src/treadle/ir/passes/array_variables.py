"""Parts of variables that are chosen by a number: items of arrays, components of vectors.

No target has them for all its variables, some of which are registers. So a variable that holds an
array of which an item is loaded becomes a local memory of one element, and a component that is
chosen among a vector's becomes a choice between all of them, or an element of a memory seen as
single numbers. After this pass no Item is of a vector, and no Load of a variable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import rewrite_block, root_of, walk
from treadle.ir.types import (
    BOOL,
    COMPONENTS,
    I32,
    I64,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
    leaf_count,
)

_MOST_ZEROS = 64  # assignments of single numbers that make a variable zero


def resolve_items(kernel: n.Kernel) -> n.Kernel:
    """The kernel without items of vectors, and with arrays that are indexed in memory."""
    if not any(
        _is_resolved(node)
        for block in (kernel.body, *(function.body for function in kernel.functions))
        for node in walk(block)
    ):
        return kernel
    functions = []
    for function in kernel.functions:
        values = tuple(p for p in function.parameters if isinstance(p, n.Variable))
        names = Names(replace(kernel, body=function.body))
        owner = _Owner(names, f"{function.name}.", function.memories)
        body = owner.body(function.body, values)
        functions.append(replace(function, body=body, memories=owner.all_memories()))
    owner = _Owner(Names(kernel), "", kernel.memories)
    body = owner.body(kernel.body, ())
    return replace(kernel, body=body, memories=owner.all_memories(), functions=tuple(functions))


def _is_resolved(node: Any) -> bool:
    if isinstance(node, n.Load):
        return isinstance(root_of(node.place), n.Variable)
    return isinstance(node, n.Item) and isinstance(node.base.type, Vector)


class _Owner:
    """A kernel or function while its items are resolved."""

    def __init__(self, names: Names, prefix: str, memories: tuple[n.Memory, ...]) -> None:
        self.names = names
        self.prefix = prefix
        self.memories = memories
        self.placed: dict[str, n.Memory] = {}  # variables that are memories now

    def all_memories(self) -> tuple[n.Memory, ...]:
        return (*self.memories, *self.placed.values())

    def body(self, block: n.Block, parameters: tuple[n.Variable, ...]) -> n.Block:
        block = rewrite_block(block, self.component)
        for node in walk(block):
            if isinstance(node, n.Load) and isinstance(root_of(node.place), n.Variable):
                self.place(root_of(node.place))
        if not self.placed:
            return block
        given = [
            n.Assign(self.element(parameter), parameter, parameter.span)
            for parameter in parameters
            if parameter.name in self.placed
        ]
        return (*given, *rewrite_block(block, self.in_memory))

    # --- components of vectors --------------------------------------------------------------------

    def component(self, node: Any) -> Any:
        match node:
            case n.Load(place=n.Item(base=base) as item) if isinstance(base.type, Vector):
                return self.chosen(item)
            case n.Assign(place=n.Item(base=base) as item) if isinstance(base.type, Vector):
                value = self.held("value", node.value)
                kept = replace(node, value=value.variable)
                return (value, *self.each(item, lambda place: replace(kept, place=place)))
            case n.Atomic(place=n.Item(base=base) as item) if isinstance(base.type, Vector):
                return self.each(item, lambda place: replace(node, place=place))
        return node

    def chosen(self, item: n.Item) -> n.Expression:
        """A component's value; zero if a check fails."""
        if isinstance(item.base, n.Element):
            return n.Load(_as_element(item, item.base), item.type, item.span)
        assert isinstance(item.base.type, Vector)
        parts = [_part(item.base, axis) for axis in COMPONENTS[: item.base.type.count]]
        found = parts[0]
        for number, part in enumerate(parts[1:], 1):
            found = n.Select(_is(item.index, number), part, found, item.type, item.span)
        if item.checks:
            assert isinstance(item.type, Scalar)
            found = n.Select(_inside(item.checks), found, _zero(item.type), item.type, item.span)
        return found

    def each(self, item: n.Item, make: Callable[[Any], n.Statement]) -> n.Block:
        """What `make` makes of the component that is chosen."""
        if isinstance(item.base, n.Element):
            return (make(_as_element(item, item.base)),)
        assert isinstance(item.base.type, Vector)
        index = self.held("component", item.index)
        choices: n.Block = tuple(
            n.If(
                _is(index.variable, number),
                (make(n.Member(item.base, axis, item.type, item.span)),),
                span=item.span,
            )
            for number, axis in enumerate(COMPONENTS[: item.base.type.count])
        )
        if item.checks:
            choices = (n.If(_inside(item.checks), choices, span=item.span),)
        return (index, *choices)

    def held(self, name: str, value: n.Expression) -> n.Declare:
        variable = n.Variable(self.names.fresh(name), value.type, value.span)
        return n.Declare(variable, value, value.span)

    # --- variables that become memories -----------------------------------------------------------

    def place(self, variable: Any) -> None:
        if variable.name not in self.placed:
            name = self.prefix + variable.name
            self.placed[variable.name] = n.Memory(name, "local", variable.type, 1, variable.span)

    def element(self, variable: n.Variable) -> n.Element:
        memory = self.placed[variable.name]
        return n.Element(memory.name, n.Constant(0, I32), variable.type, (), variable.span)

    def in_memory(self, node: Any) -> Any:
        """A node whose variables were replaced by loads from the memories that hold them. Where a
        place or a declaration has such a load, it becomes the load's place."""
        match node:
            case n.Variable() if node.name in self.placed:
                return n.Load(self.element(node), node.type, node.span)
            case n.Member() | n.Item():
                return replace(node, base=_place_meant(node.base))
            case n.Extract(operand=n.Load() as whole) if self.is_placed(whole):
                place = n.Member(whole.place, node.name, node.type, node.span)
                return n.Load(place, node.type, node.span)
            case n.Assign():
                return replace(node, place=_place_meant(node.place))
            case n.Declare() if _is_load(node.variable):
                return self.declared(node, _place_meant(node.variable))
            case n.CallStatement() if _is_load(node.result):
                place = _place_meant(node.result)
                result = n.Variable(self.names.fresh("result"), place.type, node.span)
                kept = n.Assign(place, result, node.span)
                return n.Declare(result, None, node.span), replace(node, result=result), kept
        return node

    def is_placed(self, load: n.Load) -> bool:
        root = root_of(load.place)
        own = {memory.name for memory in self.placed.values()}
        return isinstance(root, n.Element) and root.memory in own

    def declared(self, node: n.Declare, place: n.Place) -> n.Block:
        """What puts its first value into a variable that is a memory."""
        if node.value is not None:
            return (n.Assign(place, node.value, node.span),)
        if leaf_count(place.type) <= _MOST_ZEROS:
            return tuple(
                n.Assign(number, _zero(number.type), node.span) for number in _numbers(place)
            )
        zero = n.Variable(self.names.fresh("zero"), place.type, node.span)
        return n.Declare(zero, None, node.span), n.Assign(place, zero, node.span)


def _is_load(node: object) -> bool:
    return isinstance(node, n.Load)


def _place_meant(node: Any) -> Any:
    """The place of a load that has replaced a variable where a place is needed."""
    return node.place if isinstance(node, n.Load) else node


def _part(base: n.Place, axis: str) -> n.Expression:
    """The value of a component of the vector at a place."""
    assert isinstance(base.type, Vector)
    if isinstance(base, n.Variable):
        return n.Extract(base, axis, base.type.element, base.span)
    place = n.Member(base, axis, base.type.element, base.span)
    value = _value_of(place)
    return n.Load(place, place.type, place.span) if value is None else value


def _value_of(place: n.Place) -> n.Expression | None:
    """What lies at a place of a variable that no item leads to; None for others."""
    if isinstance(place, n.Variable):
        return place
    if isinstance(place, n.Member):
        base = _value_of(place.base)
        return None if base is None else n.Extract(base, place.name, place.type, place.span)
    return None


def _as_element(item: n.Item, base: n.Element) -> n.Element:
    """A component of a vector in memory, as an element of the memory seen as single numbers."""
    assert isinstance(base.type, Vector)
    wide = I64 in (base.index.type, item.index.type)
    kind = I64 if wide else I32

    def of_kind(index: n.Expression) -> n.Expression:
        return index if index.type == kind else n.Cast(index, kind, index.span)

    start = n.Binary("mul", of_kind(base.index), n.Constant(base.type.count, kind), kind)
    index = n.Binary("add", start, of_kind(item.index), kind, item.span)
    return n.Element(base.memory, index, item.type, base.checks + item.checks, item.span)


def _is(index: n.Expression, number: int) -> n.Binary:
    assert isinstance(index.type, Scalar)
    return n.Binary("eq", index, n.Constant(number, index.type), BOOL)


def _inside(checks: tuple[n.Check, ...]) -> n.Expression:
    """The condition that all checks hold."""
    parts = [
        part
        for check in checks
        for part in (
            n.Binary("ge", check.index, _zero(check.index.type), BOOL),
            n.Binary("lt", check.index, check.bound, BOOL),
        )
    ]
    whole: n.Expression = parts[0]
    for part in parts[1:]:
        whole = n.Binary("logical_and", whole, part, BOOL)
    return whole


def _zero(type: Type) -> n.Constant:
    assert isinstance(type, Scalar)
    kinds = {"bool": False, "float": 0.0}
    return n.Constant(kinds.get(type.kind, 0), type)


def _numbers(place: n.Place) -> list[n.Place]:
    """The places of all single numbers at a place."""
    type = place.type
    parts: list[n.Place]
    match type:
        case Struct():
            parts = [n.Member(place, f.name, f.type, place.span) for f in type.fields]
        case Vector():
            names = COMPONENTS[: type.count]
            parts = [n.Member(place, name, type.element, place.span) for name in names]
        case Array():
            numbers = (n.Constant(k, I32) for k in range(type.length))
            parts = [n.Item(place, number, type.element, (), place.span) for number in numbers]
        case _:
            return [place]
    return [number for part in parts for number in _numbers(part)]
