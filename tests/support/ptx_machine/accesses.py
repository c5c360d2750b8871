"""Instructions that reach beyond a thread's registers: memory, atomics, the other threads."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.ptx_machine import copies, matrices, stages
from tests.support.ptx_machine.atomics import check_kind
from tests.support.ptx_machine.records import (
    Address,
    Group,
    Instruction,
    Name,
    Operand,
    PtxError,
    Sink,
)  # fmt: skip
from tests.support.ptx_machine.types import TYPES, PtxType, type_of
from tests.support.ptx_machine.writer import V, Writer, only, pair

U32, PRED = TYPES["u32"], TYPES["pred"]
SPACES = ("global", "shared", "local", "const", "param")

# --- memory --------------------------------------------------------------------------------------

_CACHE_WORDS = frozenset({
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "relaxed", "acquire", "release",
    "acq_rel", "weak", "cta", "gpu", "sys", "cluster", "v2", "v4",
})  # fmt: skip


def _access_words(one: Instruction) -> tuple[str, PtxType, int]:
    """The space ("" for generic), type and length of a vector of a load or store."""
    type = type_of(one.modifiers)
    space = next((word for word in one.modifiers if word in SPACES), "")
    if "shared::cluster" in one.modifiers:
        space = "shared"
    known = _CACHE_WORDS.union(SPACES, TYPES)
    unknown = [word for word in one.modifiers if word not in known and "::" not in word]
    if unknown:
        raise PtxError(f"{one}: unknown modifier .{'.'.join(unknown)}")
    if "nc" in one.modifiers and space != "global":
        raise PtxError(f"{one}: .nc is for global memory")
    count = 4 if "v4" in one.modifiers else 2 if "v2" in one.modifiers else 1
    if count * type.bytes > 16:
        raise PtxError(f"{one}: a vector has at most 16 bytes")
    return "global" if space == "const" else space, type, count


def _parts(one: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    parts = operand.parts if isinstance(operand, Group) else (operand,)
    if len(parts) != count or isinstance(operand, Group) != (count > 1):
        raise PtxError(f"{one}: {count} registers are needed")
    return parts


def _ld(w: Writer, one: Instruction) -> None:
    space, type, count = _access_words(one)
    to, place = one.operands
    parts = _parts(one, to, count)
    if space == "param":
        _ld_param(w, one, type, parts, place)
        return
    guard = w.each(w.guard) if w.guard else "None"
    address = w.address(place, space)
    name = w.constant(one)
    form = f"F.load({space!r}, {address}, T, W, {type.bytes}, {count}, {name}, {guard})"
    found = w.name(form)
    for i, part in enumerate(parts):
        text = f"{found}[{i}]"
        if type.kind in "sf":
            text += f".view('{type.computed}')"
        w.write(part, type, V(w.name(text)))


def _ld_param(
    w: Writer, one: Instruction, type: PtxType, parts: tuple[Operand, ...], place: Operand
) -> None:
    if not isinstance(place, Address) or not isinstance(place.base, Name):
        raise PtxError(f"{one}: the address of a parameter is its name")
    parameter = w.program.parameters.get(place.base.name)
    if parameter is None:
        raise PtxError(f"{one}: the kernel has no parameter {place.base.name}")
    for i, part in enumerate(parts):
        at = place.offset + i * type.bytes
        if at < 0 or at + type.bytes > parameter.size or at % type.bytes:
            raise PtxError(f"{one}: outside of the parameter, or not aligned")
        dtype = type.computed if type.kind in "sf" else type.stored
        text = f"F.parameter({parameter.name!r}, {at}, '{dtype}')"
        w.write(part, type, V(w.name(text), True))


def _st(w: Writer, one: Instruction) -> None:
    space, type, count = _access_words(one)
    place, source = one.operands
    if space == "param" or "const" in one.modifiers:
        raise PtxError(f"{one}: nobody can store there")
    bits = TYPES[f"b{type.bits}"]
    values = [
        w.read(part, type if type.kind == "f" and type.bits > 16 else bits)
        for part in _parts(one, source, count)
    ]
    texts = []
    for value in values:
        view = f".view('u{type.bytes}')" if type.kind == "f" and type.bits > 16 else ""
        texts.append(w.each(V(value.text + view, value.scalar)))
    guard = w.each(w.guard) if w.guard else "None"
    address = w.address(place, space)
    form = (
        f"F.store({space!r}, {address}, [{', '.join(texts)}], T, W, {type.bytes}, "
        f"{w.constant(one)}, {guard})"
    )
    w.lines.append(form)


def _atomic(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    known = _CACHE_WORDS.union(SPACES, TYPES, ("noftz",))
    words = [word for word in one.modifiers if word not in known]
    if len(words) != 1:
        raise PtxError(f"{one}: unknown modifier")
    check_kind(words[0], type)
    space = next((word for word in one.modifiers if word in ("global", "shared")), "")
    operands = list(one.operands)
    to = operands.pop(0) if one.opcode == "atom" else Sink()
    place = operands.pop(0)
    if len(operands) != (2 if words[0] == "cas" else 1):
        raise PtxError(f"{one}: wrong number of operands")
    values = [w.each(w.read(part, type)) for part in operands]
    guard = w.each(w.guard) if w.guard else "None"
    form = (
        f"F.atomic({space!r}, {words[0]!r}, {w.constant(type)}, {w.address(place, space)}, "
        f"[{', '.join(values)}], T, W, {w.constant(one)}, {guard})"
    )
    old = w.name(form)
    w.write(to, TYPES[f"b{type.bits}"], V(w.name(f"{old}.view('u{type.bytes}')")))


# --- threads together ----------------------------------------------------------------------------


def _shfl(w: Writer, one: Instruction) -> None:
    only(one, "sync", "b32", "up", "down", "bfly", "idx")
    mode = one.modifiers[1]
    value = w.read(one.operands[1], TYPES["b32"])
    by, clamp, mask = (w.read(part, U32) for part in one.operands[2:5])
    texts = [w.each(part) for part in (value, by, clamp, mask)]
    call = w.name(_together(w, one, "shuffle", repr(mode), *texts))
    first, second = pair(one.operands[0])
    w.write(first, TYPES["b32"], V(w.name(f"{call}[0]")))
    w.write(second, PRED, V(w.name(f"{call}[1]")))


def _together(w: Writer, one: Instruction, method: str, mode: str, *texts: str) -> str:
    guard = w.each(w.guard) if w.guard else "None"
    name = w.constant(one)
    return f"F.together({method!r}, T, {guard}, {mode}, ({', '.join(texts)},), {name})"


def _vote(w: Writer, one: Instruction) -> None:
    only(one, "sync", "all", "any", "uni", "ballot", "pred", "b32")
    mode = one.modifiers[1]
    flag, mask = w.read(one.operands[1], PRED), w.read(one.operands[2], U32)
    call = w.name(_together(w, one, "vote", repr(mode), w.each(flag), w.each(mask)))
    w.write(one.operands[0], TYPES["b32"] if mode == "ballot" else PRED, V(call))


def _match(w: Writer, one: Instruction) -> None:
    mode, _, kind = one.modifiers
    value, mask = w.read(one.operands[1], TYPES[kind]), w.read(one.operands[2], U32)
    call = w.name(_together(w, one, "match", repr(mode), w.each(value), w.each(mask)))
    first, second = pair(one.operands[0])
    w.write(first, TYPES["b32"], V(w.name(f"{call}[0]")))
    w.write(second, PRED, V(w.name(f"{call}[1]")))


def _redux(w: Writer, one: Instruction) -> None:
    _, operation, kind = one.modifiers
    type = TYPES[kind]
    arithmetic = operation in ("add", "min", "max")
    if type.bits != 32 or arithmetic != (type.kind in "us") or type.is_float:
        raise PtxError(f"{one}: does not exist")
    value, mask = w.read(one.operands[1], type), w.read(one.operands[2], U32)
    call = w.name(_together(w, one, "reduce", repr(operation), w.each(value), w.each(mask)))
    w.write(one.operands[0], type, V(call))


def _activemask(w: Writer, one: Instruction) -> None:
    w.write(one.operands[0], TYPES["b32"], V(w.name("F.warps.active(T)")))


def _warp_barrier(w: Writer, one: Instruction) -> None:
    only(one, "warp", "sync")
    mask = w.read(one.operands[0], U32)
    w.lines.append(f"F.warps.check_members(T, {w.each(mask)}, {w.constant(one)})")


def _elect(w: Writer, one: Instruction) -> None:
    """One lane of the warp: the last, where programs might think of the first."""
    only(one, "sync")
    if w.program.target < 90 or w.guard:
        raise PtxError(f"{one}: has a guard, or is before sm_90")
    mask = w.read(one.operands[1], U32)
    w.lines.append(f"F.warps.check_members(T, {w.each(mask)}, {w.constant(one)})")
    _, second = pair(one.operands[0])
    w.write(second, PRED, V(w.name("F.warps.lane[T] == 31")))


def _nothing(w: Writer, one: Instruction) -> None:
    """Fences and hints: threads here see each other's writes at once."""


HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "cp": copies.cp, "mbarrier": stages.mbarrier, "wgmma": stages.wgmma, "mma": matrices.mma,
    "ldmatrix": matrices.ldmatrix, "mapa": stages.mapa, "barrier": stages.barrier,
    "setmaxnreg": stages.setmaxnreg,
    "ld": _ld, "st": _st, "atom": _atomic, "red": _atomic, "shfl": _shfl, "vote": _vote,
    "match": _match, "elect": _elect, "redux": _redux, "activemask": _activemask,
    "bar": _warp_barrier, "membar": _nothing, "fence": _nothing, "nanosleep": _nothing,
    "prefetch": _nothing, "prefetchu": _nothing,
}  # fmt: skip
