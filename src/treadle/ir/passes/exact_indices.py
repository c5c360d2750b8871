"""Indices that are a number of bytes, divided, as sums that are divided already.

CUDA C++ counts pointers that it knows little about in bytes, so an element of 16 bytes has the
index `bytes >> 4`. Its address is that times 16, which no assembler takes for `bytes`, as the
lowest bits would be lost. Where all terms are multiples of 16, they are divided one by one:

    bytes = (row * 40 + 8) * 2                  bytes.16 = row * 5
    tile@vec4<u32>[bytes >> 4]                  tile@vec4<u32>[bytes.16 + 1]

The constant of a sum stays outside of variables: it is part of the instruction that accesses.
Numbers are taken to be without overflow, which bytes of a memory are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from treadle.ir import builder as b
from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.traverse import Node, rewrite_block, root_of, statements_in
from treadle.ir.types import I32, I64, U32, U64, Type, size_of


class _Sum(NamedTuple):
    """A number as an expression of i32, if it has a part that is not constant, and a constant."""

    rest: n.Expression | None
    constant: int


def with_exact_indices(kernel: n.Kernel) -> n.Kernel:
    """The kernel with such indices, if it trusts its accesses."""
    if not kernel.trusting:
        return kernel
    writer = _Writer(kernel)

    def index(node: Node) -> object:
        return writer.divided_index(node) if isinstance(node, n.Element) else node

    body = rewrite_block(kernel.body, index)
    if not writer.added:
        return replace(kernel, body=body)

    def declare(node: Node) -> object:
        if isinstance(node, n.Declare) and node.variable.name in writer.added:
            return (node, *writer.added[node.variable.name])
        return node

    return replace(kernel, body=rewrite_block(body, declare))


class _Writer:
    def __init__(self, kernel: n.Kernel) -> None:
        self.names = Names(kernel)
        self.added: dict[str, list[n.Declare]] = {}  # behind the variable that each is a part of
        self.known: dict[tuple[str, int], _Sum | None] = {}
        self.values: dict[str, n.Declare] = {}  # variables that only their declaration gives values
        for node in statements_in(kernel.body):
            if isinstance(node, n.Declare) and node.value is not None:
                self.values[node.variable.name] = node
        for node in statements_in(kernel.body):
            changed = None
            if isinstance(node, n.Assign):
                changed = root_of(node.place)
            elif isinstance(node, n.Receiving):
                changed = node.result
            if isinstance(changed, n.Variable):
                self.values.pop(changed.name, None)

    def divided_index(self, node: n.Element) -> n.Element:
        match node.index:
            case n.Binary("shr", left, n.Constant(value)) if node.index.type == I32 and size_of(
                node.type
            ) == 1 << int(value):
                found = self.divided(left, int(value))
                if found is not None:
                    return replace(node, index=_whole(found))
        return node

    def divided(self, value: n.Expression, by: int) -> _Sum | None:
        """A number divided by a power of two, if it is a multiple of it for certain."""
        match value:
            case n.Constant():
                number = _signed(value)
                return None if number % (1 << by) else _Sum(None, number >> by)
            case n.Cast() if _is_integer(value.type) and _is_integer(value.operand.type):
                return self.divided(value.operand, by)
            case n.Binary("add" | "sub", left, right):
                return self.sum(value.op, left, right, by)
            case n.Binary("mul", left, n.Constant() as right):
                return self.product(left, _signed(right), by)
            case n.Binary("mul", n.Constant() as left, right):
                return self.product(right, _signed(left), by)
            case n.Binary("shl", left, n.Constant() as right) if 0 <= int(right.value) < 31:
                return self.product(left, 1 << int(right.value), by)
            case n.Variable(name=name) if by and name in self.values:
                return self.variable(name, by)
        return _Sum(_as_i32(value), 0) if not by and _is_index(value.type) else None

    def sum(self, op: str, left: n.Expression, right: n.Expression, by: int) -> _Sum | None:
        one, other = self.divided(left, by), self.divided(right, by)
        if one is None or other is None:
            return None
        constant = one.constant + (other.constant if op == "add" else -other.constant)
        if other.rest is None:
            return _Sum(one.rest, constant)
        if one.rest is None and op == "add":
            return _Sum(other.rest, constant)
        first = b.constant(0, I32) if one.rest is None else one.rest
        return _Sum(n.Binary(op, first, other.rest, I32), constant)

    def product(self, factor: n.Expression, by_number: int, by: int) -> _Sum | None:
        """Of a factor and a number, of which one or the other is divided."""
        if by_number == 0:
            return _Sum(None, 0)
        zeros = min((by_number & -by_number).bit_length() - 1, by)
        found = self.divided(factor, by - zeros)
        if found is None:
            return None
        number = by_number >> zeros
        rest = found.rest
        if rest is not None and number != 1:
            rest = n.Binary("mul", rest, b.constant(number, I32), I32)
        return _Sum(rest, found.constant * number)

    def variable(self, name: str, by: int) -> _Sum | None:
        """A variable's value divided, without its constant, as a variable beside it."""
        key = name, by
        if key in self.known:
            return self.known[key]
        declared = self.values[name]
        assert declared.value is not None
        found = self.divided(declared.value, by)
        if found is not None and found.rest is not None and not isinstance(found.rest, n.Variable):
            part = n.Variable(self.names.fresh(f"{name}.{1 << by}"), I32, declared.span)
            self.added.setdefault(name, []).append(n.Declare(part, found.rest, declared.span))
            found = found._replace(rest=part)
        self.known[key] = found
        return found


def _whole(found: _Sum) -> n.Expression:
    constant = b.constant(found.constant, I32)
    if found.rest is None:
        return constant
    return n.Binary("add", found.rest, constant, I32) if found.constant else found.rest


def _as_i32(value: n.Expression) -> n.Expression:
    return value if value.type == I32 else n.Cast(value, I32)


def _is_index(type: Type) -> bool:
    return type in (I32, U32)


def _is_integer(type: Type) -> bool:
    return type in (I32, U32, I64, U64)


def _signed(value: n.Constant) -> int:
    """A constant as a signed number, of which an unsigned one may be the bits."""
    number = int(value.value)
    bits = 64 if value.type in (I64, U64) else 32
    return number - (1 << bits) if number >> (bits - 1) == 1 else number
