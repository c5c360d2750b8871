"""Local memories of structs, or accessed as several types, that become variables.

If every access is at a constant byte offset, each number in such a memory can live in a register. A
number that is accessed at several sizes (bfloat16s that are loaded four words at once) lives in an
unsigned integer of the largest size, and the smaller ones are extracted by shifts. `scalarize` has
the simpler case, arrays of one type.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import rewrite_block, root_of, walk
from treadle.ir.types import (
    BOOL,
    COMPONENTS,
    I32,
    SCALARS,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
    field_offset,
    leaf_count,
    leaves,
    scalars_in,
    size_of,
)

LARGEST = 1024
"""Bytes of a memory that may become variables."""

_MOST = 128  # variables of a memory, or assignments that copy a value with arrays


@dataclass(frozen=True, slots=True)
class _Part:
    """The variable for the bytes from `start` on."""

    variable: n.Variable
    start: int

    @property
    def type(self) -> Scalar:
        assert isinstance(self.variable.type, Scalar)
        return self.variable.type


def split_memories(kernel: n.Kernel) -> n.Kernel:
    """The kernel with such local memories as variables `name.0`, `name.4`, …, by their bytes."""
    candidates = {
        m.name: m
        for m in kernel.memories
        if m.space == "local" and m.length and size_of(m.element) * m.length <= LARGEST
    }
    if not candidates:
        return kernel
    chosen = _chosen(rewrite_block(kernel.body, _copied_by_numbers(candidates)), candidates)
    names = Names(kernel)
    parts = {name: made for name, found in chosen.items() if (made := _parts(name, found, names))}
    if not parts:
        return kernel
    body = rewrite_block(kernel.body, _copied_by_numbers(parts))
    splitter = _Splitter(parts, names)
    declarations = tuple(
        n.Declare(part.variable, None, candidates[name].span)
        for name, by_byte in parts.items()
        for part in dict.fromkeys(by_byte.values())
    )
    return replace(
        kernel,
        body=(*declarations, *rewrite_block(body, splitter.change)),
        memories=tuple(memory for memory in kernel.memories if memory.name not in parts),
    )


# --- which memories ------------------------------------------------------------------------------


def _copied_by_numbers(candidates: Container[str | None]) -> Any:
    """Rewrites copies of values with arrays, between a candidate and another place, number by
    number. Memory of other threads is never written in units smaller than a word: a neighbour could
    write the same word."""

    def change(node: Any) -> Any:
        if not isinstance(node, n.Assign) or not isinstance(node.value, n.Load):
            return node
        place, source, type = node.place, node.value.place, node.place.type
        if not _holds_array(type) or leaf_count(type) > _MOST:
            return node
        into, out_of = (_memory_of(end) in candidates for end in (place, source))
        if not (into or (out_of and all(leaf.bits >= 32 for leaf in scalars_in(type)))):
            return node
        pairs = zip(_numbers(place), _numbers(source), strict=True)
        return tuple(
            n.Assign(to, n.Load(of, of.type, node.span), node.span)  # type: ignore[arg-type]
            for to, of in pairs
        )

    return change


def _chosen(body: n.Block, candidates: dict[str, n.Memory]) -> dict[str, set[tuple[int, Scalar]]]:
    """The candidates whose every access is to known bytes: the numbers that are read or written,
    by their first bytes."""
    found: dict[str, set[tuple[int, Scalar]]] = {name: set() for name in candidates}
    seen: dict[str, int] = dict.fromkeys(candidates, 0)  # elements that belong to such accesses
    for node in walk(body):
        if isinstance(node, n.Element) and node.memory in found:
            seen[node.memory] -= 1
        elif isinstance(node, n.MemoryReference):
            found.pop(node.memory, None)
        if not isinstance(node, (n.Load, n.Assign)):
            continue
        name = _memory_of(node.place)
        if name not in found:
            continue
        memory = candidates[name]
        at = _byte(node.place)
        size = size_of(memory.element) * (memory.length or 0)
        inside = at is not None and at >= 0 and at + size_of(node.place.type) <= size
        if at is None or not inside or _holds_array(node.place.type):
            del found[name]
            continue
        seen[name] += 1
        found[name] |= {(at + start, leaf) for start, leaf in leaves(node.place.type)}
    return {name: numbers for name, numbers in found.items() if numbers and not seen[name]}


def _byte(place: n.Place) -> int | None:
    """The byte where a place begins; None if it is not known, or a check may fail."""
    if isinstance(place, n.Member):
        base = _byte(place.base)
        if base is None:
            return None
        if isinstance(place.base.type, Struct):
            return base + field_offset(place.base.type, place.name)
        return base + COMPONENTS.index(place.name) * size_of(place.type)
    if isinstance(place, n.Variable) or not isinstance(place.index, n.Constant):
        return None
    if not all(_passes(check) for check in place.checks):
        return None
    start = _byte(place.base) if isinstance(place, n.Item) else 0
    return None if start is None else start + int(place.index.value) * size_of(place.type)


def _passes(check: n.Check) -> bool:
    index, bound = check.index, check.bound
    known = isinstance(index, n.Constant) and isinstance(bound, n.Constant)
    return known and 0 <= index.value < bound.value  # type: ignore[union-attr]


def _parts(name: str, numbers: set[tuple[int, Scalar]], names: Names) -> dict[int, _Part] | None:
    """A variable for every byte that a number begins at; None if numbers overlap other than as
    parts of a larger one."""
    found: dict[int, _Part] = {}
    group: list[tuple[int, Scalar]] = []
    end = 0
    for start, type in sorted(numbers, key=lambda number: (number[0], -number[1].bits)):
        if group and start < end:
            if start + size_of(type) > end:
                return None
        else:
            _add_part(name, group, names, found)
            group, end = [], start + size_of(type)
        group.append((start, type))
    _add_part(name, group, names, found)
    return found if len(set(found.values())) <= _MOST else None


def _add_part(
    name: str, group: list[tuple[int, Scalar]], names: Names, found: dict[int, _Part]
) -> None:
    """The variable of numbers that share their bytes, of which the first is as large as any."""
    if not group:
        return
    start, first = group[0]
    alike = all(type == first for _, type in group)
    type = first if alike else _unsigned(first)
    part = _Part(n.Variable(names.fresh(f"{name}.{start}"), type), start)
    found.update({at: part for at, _ in group})


# --- accesses ------------------------------------------------------------------------------------


class _Splitter:
    """Rewrites what loads from the memories, and stores to them."""

    def __init__(self, parts: dict[str, dict[int, _Part]], names: Names) -> None:
        self.parts = parts
        self.names = names

    def change(self, node: Any) -> Any:
        if not isinstance(node, (n.Load, n.Assign)):
            return node
        by_byte = self.parts.get(_memory_of(node.place) or "")
        if by_byte is None:
            return node
        at = _byte(node.place)
        assert at is not None
        if isinstance(node, n.Load):
            return _loaded(by_byte, node.type, at)
        if isinstance(node.value.type, Scalar):
            return _stored(by_byte[at], at, node.value, node.span)
        # Held, since it may be made of what is now written.
        whole = n.Variable(self.names.fresh("stored"), node.value.type, node.span)
        stores = (
            _stored(by_byte[at + start], at + start, value, node.span)
            for start, value in _values(whole, 0)
        )
        return n.Declare(whole, node.value, node.span), *stores


def _loaded(by_byte: dict[int, _Part], type: Type, at: int) -> n.Expression:
    """The value of a type that lies from a byte on."""
    match type:
        case Scalar():
            part = by_byte[at]
            if part.type == type:
                return part.variable
            bits: n.Expression = part.variable
            if part.type.bits > type.bits:
                shift = n.Constant(8 * (at - part.start), part.type)
                cut = n.Binary("shr", bits, shift, part.type) if shift.value else bits
                bits = n.Cast(cut, _unsigned(type))
            return _from_bits(bits, type)
        case Vector():
            step = size_of(type.element)
            parts = [_loaded(by_byte, type.element, at + step * i) for i in range(type.count)]
            return n.Construct(tuple(parts), type)
        case Struct():
            fields = [
                _loaded(by_byte, field.type, at + field_offset(type, field.name))
                for field in type.fields
            ]
            return n.Construct(tuple(fields), type)
    raise AssertionError(f"{type} is loaded number by number")


def _stored(part: _Part, at: int, value: n.Expression, span: Any) -> n.Assign:
    """The assignment that puts a number at a byte."""
    type = value.type
    assert isinstance(type, Scalar)
    if part.type == type:
        return n.Assign(part.variable, value, span)
    bits = _to_bits(value)
    if part.type.bits > type.bits:
        shift = 8 * (at - part.start)
        mask = ((1 << part.type.bits) - 1) & ~(((1 << type.bits) - 1) << shift)
        rest = n.Binary("and", part.variable, n.Constant(mask, part.type), part.type)
        own: n.Expression = n.Cast(bits, part.type)
        if shift:
            own = n.Binary("shl", own, n.Constant(shift, part.type), part.type)
        bits = n.Binary("or", rest, own, part.type)
    return n.Assign(part.variable, bits, span)


def _values(value: n.Expression, at: int) -> Iterable[tuple[int, n.Expression]]:
    """The numbers of a value, with the bytes where they lie in it."""
    type = value.type
    match type:
        case Vector():
            step = size_of(type.element)
            for i, axis in enumerate(COMPONENTS[: type.count]):
                yield at + step * i, n.Extract(value, axis, type.element)
        case Struct():
            for field in type.fields:
                inner = n.Extract(value, field.name, field.type)
                yield from _values(inner, at + field_offset(type, field.name))
        case _:
            yield at, value


def _unsigned(type: Scalar) -> Scalar:
    return SCALARS[f"u{type.bits}"]


def _to_bits(value: n.Expression) -> n.Expression:
    """A number's bits as an unsigned integer."""
    assert isinstance(value.type, Scalar)
    unsigned = _unsigned(value.type)
    if value.type == unsigned:
        return value
    return n.Cast(value, unsigned) if value.type == BOOL else n.Bitcast(value, unsigned)


def _from_bits(bits: n.Expression, type: Scalar) -> n.Expression:
    """The number with these bits; a bool is any but 0."""
    if bits.type == type:
        return bits
    return n.Cast(bits, type) if type == BOOL else n.Bitcast(bits, type)


# --- places --------------------------------------------------------------------------------------


def _memory_of(place: n.Place) -> str | None:
    root = root_of(place)
    return root.memory if isinstance(root, n.Element) else None


def _holds_array(type: Type) -> bool:
    if isinstance(type, Struct):
        return any(_holds_array(field.type) for field in type.fields)
    return isinstance(type, Array)


def _numbers(place: n.Place) -> list[n.Place]:
    """The places of all that lies at a place and holds no array."""
    type = place.type
    if not _holds_array(type):
        return [place]
    parts: list[n.Place]
    if isinstance(type, Struct):
        parts = [n.Member(place, f.name, f.type, place.span) for f in type.fields]
    else:
        assert isinstance(type, Array)
        indices = (n.Constant(k, I32) for k in range(type.length))
        parts = [n.Item(place, index, type.element, (), place.span) for index in indices]
    return [number for part in parts for number in _numbers(part)]
