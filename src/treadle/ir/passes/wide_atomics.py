"""Atomics on numbers of 64 bits that a target has on whole arrays of u64 alone.

A memory with such atomics, which is also seen as other types, or which has atomics on f64, becomes
an array of u64. Loads take their part of a word, stores of less than a word clear and set their
bits atomically, and updates that the target lacks exchange the word for one with the new value in
it, until no other thread has come between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd

from treadle.ir import builder as b
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.private_atomics import updated
from treadle.ir.traverse import Node, map_children, root_of, walk
from treadle.ir.types import (
    BOOL,
    COMPONENTS,
    I32,
    SCALARS,
    U64,
    Scalar,
    Struct,
    Type,
    Vector,
    field_offset,
    size_of,
)

_SIGNLESS = frozenset({"add", "sub", "and", "or", "xor", "exchange", "cas"})


def with_wide_atomics(kernel: n.Kernel, slots: Mapping[str, int]) -> n.Kernel:
    """The kernel whose atomics on 64 bits are those on arrays of u64. Buffers with the same slot
    are one memory."""
    chosen = _chosen(kernel, slots)
    if not chosen:
        return kernel
    body = _Rewriter(chosen, Names(kernel)).block(kernel.body)
    buffers = tuple(
        replace(one, element=U64) if one.name in chosen else one for one in kernel.buffers
    )
    memories = tuple(
        replace(one, element=U64, length=-(-size_of(one.element) * (one.length or 0) // 8))
        if one.name in chosen
        else one
        for one in kernel.memories
    )
    return replace(kernel, body=body, buffers=buffers, memories=memories)


def _chosen(kernel: n.Kernel, slots: Mapping[str, int]) -> frozenset[str]:
    """The memories to rewrite."""
    wide: set[object] = set()  # those with atomics on 64 bits, by slot or name
    seen: dict[object, set[Type]] = {}
    outside: set[object] = set()  # that functions are given
    for node in walk(kernel.body):
        match node:
            case n.Atomic(_, place):
                root = root_of(place)
                assert isinstance(root, n.Element)
                if isinstance(place.type, Scalar) and place.type.bits == 64:
                    wide.add(slots.get(root.memory, root.memory))
            case n.Element(memory, _, type):
                seen.setdefault(slots.get(memory, memory), set()).add(type)
            case n.MemoryReference(memory) | n.OpaqueStore(n.Element(memory)):
                outside.add(slots.get(memory, memory))
    plain = {one for one in wide if len(seen[one]) == 1 and seen[one] <= {SCALARS["i64"], U64}}
    own = {one.name for one in kernel.memories if one.space == "local"}
    chosen = wide - plain - outside - own
    names = [*(one.name for one in kernel.buffers), *(one.name for one in kernel.memories)]
    return frozenset(one for one in names if slots.get(one, one) in chosen)


@dataclass(frozen=True, slots=True)
class _Part:
    """A number of a memory: its u64, and how many bits into it, None for all of them."""

    word: n.Element
    shift: n.Expression | None
    type: Scalar

    def of(self, word: n.Expression) -> n.Expression:
        """The number in a u64."""
        type = self.type
        if self.shift is None:
            return n.Bitcast(word, type) if type.is_float else b.cast(word, type)
        bits = b.cast(b.binary("shr", word, self.shift), _bits_of(type))
        return n.Bitcast(bits, type) if type.is_float else b.cast(bits, type)

    def bits(self, value: n.Expression) -> n.Expression:
        """A number as bits of a u64, at its place."""
        type = self.type
        plain = n.Bitcast(value, _bits_of(type)) if type.is_float else value
        if type != BOOL and not type.is_float:
            plain = b.cast(plain, _bits_of(type))
        whole = b.cast(plain, U64)
        return whole if self.shift is None else b.binary("shl", whole, self.shift)

    def others(self) -> n.Expression:
        """The bits of a u64 that are not this number's."""
        assert self.shift is not None
        own = b.constant((1 << self.type.bits) - 1, U64)
        return n.Unary("invert", b.binary("shl", own, self.shift), U64)

    def in_place(self, word: n.Expression, value: n.Expression) -> n.Expression:
        """A u64 with a number in its place."""
        if self.shift is None:
            return self.bits(value)
        return b.binary("or", b.binary("and", word, self.others()), self.bits(value))


def _bits_of(type: Scalar) -> Scalar:
    return SCALARS[f"u{max(type.bits, 8)}"]


class _Rewriter:
    def __init__(self, chosen: frozenset[str], names: Names) -> None:
        self.chosen = chosen
        self.names = names

    def is_chosen(self, place: n.Place) -> bool:
        root = root_of(place)
        return isinstance(root, n.Element) and root.memory in self.chosen

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Statement] = []
        for statement in block:
            out += self.statement(statement)
        return tuple(out)

    def statement(self, node: n.Statement) -> Iterator[n.Statement]:
        match node:
            case n.If():
                then, otherwise = self.block(node.then), self.block(node.otherwise)
                condition = self.expression(node.condition)
                yield replace(node, condition=condition, then=then, otherwise=otherwise)
            case n.For():
                start, stop = self.expression(node.start), self.expression(node.stop)
                yield replace(node, start=start, stop=stop, body=self.block(node.body))
            case n.While():
                yield replace(
                    node,
                    condition=self.expression(node.condition),
                    body=self.block(node.body),
                    update=self.block(node.update),
                )
            case n.Assign(place) if self.is_chosen(place):
                yield from self.store(place, self.expression(node.value))
            case n.Atomic(_, place) if self.is_chosen(place):
                yield from self.atomic(node)
            case _:
                yield map_children(node, self.expression)

    def expression(self, node: Node) -> Node:
        """A node with its loads rewritten; places of others too."""
        if isinstance(node, n.Load) and self.is_chosen(node.place):
            return self.load(node.place)
        return map_children(node, self.expression)

    def load(self, place: n.Place) -> n.Expression:
        type = place.type
        if isinstance(type, (Vector, Struct)):
            parts = tuple(self.load(b.member(place, name)) for name in _names(type))
            return n.Construct(parts, type)
        part = self.part(place)
        return part.of(n.Load(part.word, U64))

    def store(self, place: n.Place, value: n.Expression) -> Iterator[n.Statement]:
        type = place.type
        if isinstance(type, (Vector, Struct)):
            whole = n.Variable(self.names.fresh("stored"), type)
            yield n.Declare(whole, value)
            for name in _names(type):
                member = b.member(place, name)
                yield from self.store(member, n.Extract(whole, name, member.type))
            return
        part = self.part(place)
        if part.shift is None:
            yield n.Assign(part.word, part.bits(value))
            return
        bits = n.Variable(self.names.fresh("bits"), U64)
        yield n.Declare(bits, part.bits(value))
        yield n.Atomic("and", part.word, (part.others(),))
        yield n.Atomic("or", part.word, (bits,))

    def atomic(self, node: n.Atomic) -> Iterator[n.Statement]:
        part = self.part(node.place)
        operands = []
        for operand in map(self.expression, node.operands):
            kept = n.Variable(self.names.fresh("operand"), operand.type)
            yield n.Declare(kept, operand)
            operands.append(kept)
        whole = part.shift is None and not part.type.is_float
        if whole and (node.op in _SIGNLESS or part.type == U64):
            found = n.Variable(self.names.fresh("found"), U64)
            yield n.Declare(found)
            yield n.Atomic(node.op, part.word, tuple(map(part.bits, operands)), found, node.span)
            if node.result is not None:
                yield n.Assign(node.result, part.of(found), node.span)
            return
        old, seen, done = (
            n.Variable(self.names.fresh(name), type)
            for name, type in (("old", U64), ("seen", U64), ("done", BOOL))
        )
        new = part.in_place(old, updated(node.op, part.of(old), tuple(operands)))
        yield n.Declare(old, n.Load(part.word, U64))
        yield n.Declare(done)
        turn = (
            n.Declare(seen),
            n.Atomic("cas", part.word, (old, new), seen, node.span),
            n.Assign(done, b.equal(seen, old)),
            n.If(b.negate(done), (n.Assign(old, seen),)),
        )
        yield n.While(b.negate(done), turn, (), node.span)
        if node.result is not None:
            yield n.Assign(node.result, part.of(old), node.span)

    def part(self, place: n.Place) -> _Part:
        """Where the number at a place is."""
        steps, fixed, checks = self.offsets(place)
        type = place.type
        assert isinstance(type, Scalar)
        unit = gcd(8, fixed, *(step for _, step in steps))
        count: n.Expression = b.constant(fixed // unit, I32)
        for index, step in steps:
            factor = b.constant(step // unit, index.type)  # type: ignore[arg-type]
            scaled = index if step == unit else n.Binary("mul", index, factor, index.type)
            more = b.cast(scaled, I32)
            count = more if count == b.constant(0, I32) else b.add(count, more)
        if unit == 8:
            return _Part(n.Element(_memory(place), count, U64, checks, place.span), None, type)
        each = 8 // unit
        word = b.binary("shr", count, each.bit_length() - 1)
        shift = b.cast(b.mul(b.binary("and", count, each - 1), 8 * unit), U64)
        return _Part(n.Element(_memory(place), word, U64, checks, place.span), shift, type)

    def offsets(
        self, place: n.Place
    ) -> tuple[list[tuple[n.Expression, int]], int, tuple[n.Check, ...]]:
        """A place's byte offset: indices with their steps, and a fixed part; and its checks."""
        match place:
            case n.Member(base, name):
                steps, fixed, checks = self.offsets(base)
                if isinstance(base.type, Struct):
                    return steps, fixed + field_offset(base.type, name), checks
                return steps, fixed + COMPONENTS.index(name) * size_of(place.type), checks
            case n.Item(base):
                steps, fixed, checks = self.offsets(base)
            case n.Element():
                steps, fixed, checks = [], 0, ()
            case _:
                raise AssertionError(place)
        checks = (*checks, *map(self.expression, place.checks))
        index, size = self.expression(place.index), size_of(place.type)
        if isinstance(index, n.Constant):
            return steps, fixed + int(index.value) * size, checks
        return [*steps, (index, size)], fixed, checks


def _memory(place: n.Place) -> str:
    root = root_of(place)
    assert isinstance(root, n.Element)
    return root.memory


def _names(type: Vector | Struct) -> tuple[str, ...]:
    if isinstance(type, Vector):
        return COMPONENTS[: type.count]
    return tuple(field.name for field in type.fields)
