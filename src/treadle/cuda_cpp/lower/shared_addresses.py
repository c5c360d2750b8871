"""Addresses in shared memory as numbers of 32 bits, which inline PTX computes with.

Memories have no addresses here. So each shared memory whose address becomes a number gets a range
of its own: the number is the memory's place among these, times a range's size, plus the bytes from
its beginning. A number that is an address again is a pointer to all of them, and the range says to
which.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.cuda_cpp.lower.arithmetic import cast, constant, is_constant, plus
from treadle.cuda_cpp.lower.builtin_calls import Handler, expect, number_argument
from treadle.cuda_cpp.lower.context import Context, NotPure
from treadle.cuda_cpp.lower.pointers import as_pointer_to, in_steps_of, pointer_of
from treadle.cuda_cpp.lower.storage import new_memory
from treadle.cuda_cpp.lower.values import (
    Lvalue,
    MemoryTarget,
    NullTarget,
    PointerValue,
    Rvalue,
    Value,
    describe,
)
from treadle.cuda_cpp.semantics.types import INT, UNSIGNED, UNSIGNED_LONG, VOID
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_RANGE = 20  # bits: no shared memory has more bytes
_KEY = "addresses in shared memory"


def _to_number(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """__cvta_generic_to_shared(pointer)"""
    expect(cx, "__cvta_generic_to_shared", values, 1)
    pointer = pointer_of(cx, values[0])
    if pointer is None:
        raise cx.error(f"__cvta_generic_to_shared takes a pointer, not {describe(values[0])}")
    if cx.isolated:
        raise NotPure
    facts = cx.lowering.facts
    known = facts.targets.setdefault(_KEY, [])
    number: n.Expression = constant(0, ir.U32)
    for place, target in enumerate(pointer.targets):
        if isinstance(target, NullTarget):
            continue
        if not isinstance(target, MemoryTarget) or target.space != "shared":
            if facts.changed:  # the next run knows its targets better
                continue
            raise cx.error(
                "the address of shared memory is taken of a pointer to other memory: pass a "
                "pointer to a __shared__ array"
            )
        if target not in known:
            known.append(target)
            facts.changed = True
        base = constant(known.index(target) << _RANGE, ir.U32)
        if len(pointer.targets) == 1:
            number = base
            continue
        assert pointer.tag is not None
        here = n.Binary("eq", pointer.tag, constant(place, ir.I32), ir.BOOL)
        number = n.Select(here, base, number, ir.U32)
    in_bytes = in_steps_of(cx, pointer, 1)
    assert in_bytes is not None
    offset = cast(in_bytes.offset, ir.U32)
    whole = offset if is_constant(number, 0) else plus(number, offset)
    return Rvalue(cast(cx.let(whole), ir.U64, cx.span), UNSIGNED_LONG)


def _to_pointer(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__cvta_shared_to_generic(number)`"""
    if cx.isolated:
        raise NotPure
    number = cx.let(number_argument(cx, values[0], ir.U32, cx.span))
    targets = tuple(cx.lowering.facts.targets.get(_KEY, ()))
    if not targets:
        if not cx.lowering.facts.changed and not cx.lowering.unevaluated:
            raise cx.error(
                "a number is used as an address in shared memory, and none is made in this kernel: "
                "make it with __cvta_generic_to_shared"
            )
        targets = (NullTarget(),)
    if len(targets) == 1:
        return PointerValue(targets, cast(number, ir.I32), 1, VOID)
    tag = n.Binary("shr", number, constant(_RANGE, ir.U32), ir.U32)
    offset = n.Binary("and", number, constant((1 << _RANGE) - 1, ir.U32), ir.U32)
    kept = cx.let(cast(tag, ir.I32))
    return PointerValue(targets, cx.let(cast(offset, ir.I32)), 1, VOID, kept)


def _is_in(space: str) -> Handler:
    def build(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
        expect(cx, f"__is{space.capitalize()}", values, 1)
        pointer = pointer_of(cx, values[0])
        if pointer is None:
            raise cx.error(f"a pointer is expected, not {describe(values[0])}")
        found: n.Expression = n.FALSE
        for place, target in enumerate(pointer.targets):
            inside = isinstance(target, MemoryTarget) and target.space == space
            holds: n.Expression = n.TRUE if inside else n.FALSE
            if pointer.tag is None:
                found = holds
            elif inside:
                here = n.Binary("eq", pointer.tag, constant(place, ir.I32), ir.BOOL)
                found = n.Binary("logical_or", found, here, ir.BOOL)
        return Rvalue(n.Cast(found, ir.I32, cx.span), INT)

    return build


def _same(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__cvta_generic_to_global(pointer)` and its like, whose result stays a pointer."""
    pointer = pointer_of(cx, values[0]) if len(values) == 1 else None
    if pointer is None:
        raise cx.error("a conversion of addresses takes a pointer")
    return as_pointer_to(pointer, VOID)


def carry(cx: Context) -> Value:
    """The carry of additions in inline PTX, which goes from one statement to the next: a number
    that each thread has."""
    if cx.isolated:
        raise NotPure
    known = cx.lowering.statics.get("carry")
    if known is None:
        target = new_memory(cx, "carry", "local", ir.U32, 1, cx.span)
        known = cx.lowering.statics["carry"] = n.Element(
            target.memory, constant(0, ir.I32), ir.U32, ()
        )
    return Lvalue(known, UNSIGNED)


HANDLERS: dict[str, Handler] = {
    "__cvta_generic_to_shared": _to_number,
    "__cvta_shared_to_generic": _to_pointer,
    "__treadle_shared_pointer": _to_pointer,
    **dict.fromkeys(
        (f"__cvta_generic_to_{space}" for space in ("global", "local", "constant")), _same
    ),
    "__isShared": _is_in("shared"),
    "__isGlobal": _is_in("global"),
    "__isLocal": _is_in("local"),
    "__isConstant": _is_in("constant"),
}
