"""Addresses in shared memory as numbers of 32 bits, which inline PTX computes with.

Memories have no addresses here. So each shared memory whose address becomes a number gets a range
of its own: the number is the memory's place among these, times a range's size, plus the bytes from
its beginning. A number that is an address again is a pointer to all of them, and the range says to
which.

Arrays of one type whose addresses become numbers are therefore laid into one memory, one after the
other: then no access asks for the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.lower.address_numbers import address_as_number
from treadle.cuda_cpp.lower.arithmetic import cast, constant, is_constant, plus
from treadle.cuda_cpp.lower.builtin_calls import Handler, expect, number_argument
from treadle.cuda_cpp.lower.casts import (
    explicit_cast,
)
from treadle.cuda_cpp.lower.context import Context, NotPure
from treadle.cuda_cpp.lower.pointers import in_steps_of, pointer_of
from treadle.cuda_cpp.lower.storage import array_memory, new_memory
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ItemTarget,
    Lvalue,
    MemoryTarget,
    NullTarget,
    ObjectTarget,
    PointerValue,
    Rvalue,
    Target,
    Value,
    describe,
)
from treadle.cuda_cpp.semantics.types import INT, UNSIGNED, UNSIGNED_LONG, VOID, ArrayOf, Pointer
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.traverse import root_of

_RANGE = 20  # bits: no shared memory has more bytes
_KEY = "addresses in shared memory"
_TOGETHER = "shared.arrays"  # the memory with several of them
_LINE, _PIECE = 128, 16  # bytes: what large and small arrays are aligned to


def shared_array(cx: Context, name: str, type: ArrayOf, span: Span) -> ArrayValue:
    """A new array in shared memory."""
    made = array_memory(cx, name, type, "shared", span)
    (target,) = made.first.targets
    assert isinstance(target, MemoryTarget)
    places = _places(cx)
    if target not in places:
        _forget(cx, MemoryTarget(_TOGETHER, "shared", target.element), if_=cx.lowering.facts.apart)
        return made
    _forget(cx, target)
    memories = cx.lowering.memories
    memories.pop()
    element = innermost_scalar(target.element)
    if not any(memory.name == _TOGETHER for memory in memories):
        last = max(places, key=lambda one: places[one])
        count = (places[last] + _bytes(last)) // ir.size_of(element)
        memories.append(n.Memory(_TOGETHER, "shared", element, count, span))
        size = constant(count, ir.I32)
        whole = MemoryTarget(_TOGETHER, "shared", element, size)
        cx.lowering.memory_targets[_TOGETHER] = whole
    whole = cx.lowering.memory_targets[_TOGETHER]
    first = constant(places[target] // made.first.unit, ir.I32)
    return replace(made, first=replace(made.first, targets=(whole,), offset=first))


def keep_apart(cx: Context, place: n.Place) -> None:
    """An array that is updated by atomics stays a memory of its own: where atomics need a type of
    their own, they need one for a whole memory."""
    root, facts = root_of(place), cx.lowering.facts
    if isinstance(root, n.Element) and root.memory == _TOGETHER and not facts.apart:
        facts.apart = facts.changed = True


def _places(cx: Context) -> dict[MemoryTarget, int]:
    """Where arrays lie in the memory for several, in bytes."""
    facts = cx.lowering.facts
    known = [
        one
        for one in facts.targets.get(_KEY, ())
        if isinstance(one, MemoryTarget) and isinstance(one.size, n.Constant)
    ]
    scalars = [innermost_scalar(one.element) for one in known]
    wanted = next((one for one in scalars if one in _ELEMENTS), None)
    alike = [one for one, scalar in zip(known, scalars, strict=True) if scalar == wanted]
    if wanted is None or len(alike) < 2 or facts.apart:
        return {}
    places, end = {}, 0
    for one in alike:
        align = _LINE if _bytes(one) >= _LINE else _PIECE
        places[one] = end = -(-end // align) * align
        end += _bytes(one)
    return places


_ELEMENTS = (ir.F16, ir.BF16, ir.F32, ir.I8, ir.U8, ir.I16, ir.U16, ir.I32, ir.U32)


def innermost_scalar(type: ir.Type) -> ir.Type:
    """The type of the numbers of an array's elements, if these are numbers or vectors."""
    return type.element if isinstance(type, ir.Vector) and type.count != 3 else type


def _bytes(target: MemoryTarget) -> int:
    assert isinstance(target.size, n.Constant)
    return int(target.size.value) * ir.size_of(target.element)


def _forget(cx: Context, target: MemoryTarget, if_: bool = True) -> None:
    """No pointer points to a memory that this run does not have."""
    facts = cx.lowering.facts
    lists = [targets for key, targets in facts.targets.items() if key != _KEY]
    for targets in (*lists, *facts.slots.values()) if if_ else ():
        if target in targets:
            targets.remove(target)
            facts.changed = True


def _ranges(cx: Context) -> list[Target]:
    """The memories of numbers, in the order of their ranges."""
    known = cx.lowering.facts.targets.get(_KEY, [])
    places = _places(cx)
    whole = cx.lowering.memory_targets.get(_TOGETHER)
    others = [one for one in known if whole is None or one not in places]
    return others if whole is None else [whole, *others]


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
        if target.memory != _TOGETHER and target not in known:
            known.append(target)
            facts.changed = True
        ranges = _ranges(cx)
        base = constant((ranges.index(target) if target in ranges else 0) << _RANGE, ir.U32)
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
    targets = tuple(_ranges(cx))
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


def _to_barrier(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_mbarrier_pointer(number)`: a pointer to what has 64 bits, if anything has."""
    ranges = _ranges(cx)
    wide = [isinstance(one, MemoryTarget) and ir.size_of(one.element) % 8 == 0 for one in ranges]
    if not any(wide) or all(wide):
        return _to_pointer(cx, values, node)
    number = cx.let(number_argument(cx, values[0], ir.U32, cx.span))
    offset = n.Binary("and", number, constant((1 << _RANGE) - 1, ir.U32), ir.U32)
    inside = cx.let(cast(offset, ir.I32))
    if wide.count(True) == 1:
        return PointerValue((ranges[wide.index(True)],), inside, 1, VOID)
    targets = tuple(
        one if is_wide else NullTarget() for one, is_wide in zip(ranges, wide, strict=True)
    )
    tag = n.Binary("shr", number, constant(_RANGE, ir.U32), ir.U32)
    return PointerValue(targets, inside, 1, VOID, cx.let(cast(tag, ir.I32)))


def _is_in(space: str) -> Handler:
    def build(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
        expect(cx, f"__is{space.capitalize()}", values, 1)
        pointer = pointer_of(cx, values[0])
        if pointer is None:
            raise cx.error(f"a pointer is expected, not {describe(values[0])}")
        found: n.Expression = n.FALSE
        for place, target in enumerate(pointer.targets):
            inside = isinstance(target, MemoryTarget) and target.space == space
            inside |= space == "local" and isinstance(target, (ObjectTarget, ItemTarget))
            holds: n.Expression = n.TRUE if inside else n.FALSE
            if pointer.tag is None:
                found = holds
            elif inside:
                here = n.Binary("eq", pointer.tag, constant(place, ir.I32), ir.BOOL)
                found = n.Binary("logical_or", found, here, ir.BOOL)
        return Rvalue(n.Cast(found, ir.I32, cx.span), INT)

    return build


def _as_number(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__cvta_generic_to_global(pointer)` and its like: the number is the generic one."""
    pointer = pointer_of(cx, values[0]) if len(values) == 1 else None
    if pointer is None:
        raise cx.error("a conversion of addresses takes a pointer")
    return address_as_number(cx, pointer, UNSIGNED_LONG, cx.span)


def _as_pointer(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__cvta_global_to_generic(number)` and its like."""
    expect(cx, "a conversion of addresses", values, 1)
    return explicit_cast(cx, values[0], Pointer(VOID), "c", cx.span)


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
    "__treadle_mbarrier_pointer": _to_barrier,
    **dict.fromkeys(
        (f"__cvta_generic_to_{space}" for space in ("global", "local", "constant")), _as_number
    ),
    **dict.fromkeys(
        (f"__cvta_{space}_to_generic" for space in ("global", "local", "constant")), _as_pointer
    ),
    "__isShared": _is_in("shared"),
    "__isGlobal": _is_in("global"),
    "__isLocal": _is_in("local"),
    "__isConstant": _is_in("constant"),
}
