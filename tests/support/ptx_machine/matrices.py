"""`mma.sync` and `ldmatrix`: what the 32 lanes of a warp do with matrices, written after the tables
of NVIDIA's description of PTX, one rule for all shapes that are used.

Sums are computed in float64 and rounded once; hardware rounds (or truncates) in between. All lanes
of a warp must be there, as `.aligned` promises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array
from tests.support.ptx_machine.memory import MachineFault
from tests.support.ptx_machine.records import Group, Instruction, PtxError
from tests.support.ptx_machine.types import TYPES
from tests.support.ptx_machine.warps import WARP, Warps
from tests.support.ptx_machine.writer import V, Writer

# Shapes and types: since which architecture, and how many parts of a word an element takes.
_KNOWN: dict[tuple[str, ...], tuple[int, int]] = {
    ("m16n8k8", "f32", "f16", "f16", "f32"): (75, 2),
    ("m16n8k16", "f32", "f16", "f16", "f32"): (80, 2),
    ("m16n8k16", "f32", "bf16", "bf16", "f32"): (80, 2),
    ("m16n8k8", "f32", "tf32", "tf32", "f32"): (80, 1),
}
for _first in ("s8", "u8"):
    for _second in ("s8", "u8"):
        _KNOWN["m8n8k16", "s32", _first, _second, "s32"] = (75, 4)
        _KNOWN["m16n8k32", "s32", _first, _second, "s32"] = (80, 4)
_EXTENTS = {
    "m16n8k8": (16, 8, 8), "m16n8k16": (16, 8, 16), "m8n8k16": (8, 8, 16), "m16n8k32": (16, 8, 32),
}  # fmt: skip


def mma(w: Writer, one: Instruction) -> None:
    """The code of a product."""
    words = one.modifiers
    if words[:2] != ("sync", "aligned") or words[3:5] != ("row", "col"):
        raise PtxError(f"{one}: unknown instruction")
    form = (words[2], *words[5:])
    if form not in _KNOWN:
        raise PtxError(f"{one}: unknown shape or types")
    needed, per = _KNOWN[form]
    if w.program.target < needed:
        raise PtxError(f"{one}: needs sm_{needed}, the target is sm_{w.program.target}")
    rows, columns, inner = _EXTENTS[form[0]]
    counts = (rows * inner // per // WARP, inner * columns // per // WARP, rows * columns // WARP)
    to, *given = one.operands
    sums = TYPES[form[1]]
    texts: list[str] = []
    for operand, count in zip(given, counts, strict=True):
        if not isinstance(operand, Group) or len(operand.parts) != count:
            raise PtxError(f"{one}: {count} registers are needed")
        type = sums if operand is given[2] else TYPES["b32"]
        texts += [w.each(w.read(part, type)) for part in operand.parts]
    if w.guard or not isinstance(to, Group) or len(to.parts) != counts[2]:
        raise PtxError(f"{one}: no guard, and {counts[2]} registers for the result")
    name = w.constant(one)
    found = w.name(f"F.together('multiply', T, None, {form!r}, ({', '.join(texts)},), {name})")
    for at, part in enumerate(to.parts):
        w.write(part, sums, V(w.name(f"{found}[{at}]")))


def multiply(
    warps: Warps, threads: Any, form: tuple[str, ...], operands: tuple[Array, ...], one: Instruction
) -> tuple[Array, ...]:
    """The numbers of the result that each lane holds."""
    whole(warps, threads, one)
    per = _KNOWN[form][1]
    rows, columns, inner = _EXTENTS[form[0]]
    firsts = rows * inner // per // WARP
    seconds = inner * columns // per // WARP
    words = [lanes_of(warps, threads, each) for each in operands]
    lane = np.arange(WARP)
    group, place, parts = lane // 4, lane % 4, np.arange(per)
    sums = np.float64 if form[1] == "f32" else np.int64
    a = np.zeros((warps.count, rows, inner), sums)
    b = np.zeros((warps.count, inner, columns), sums)
    c = np.zeros((warps.count, rows, columns), sums)
    along = per * place[:, None] + parts  # of each lane and part
    high = rows // 8
    for at in range(firsts):
        row = group + 8 * (at % high)
        a[:, row[:, None], along + 4 * per * (at // high)] = _elements(words[at], form[2])
    for at in range(seconds):
        b[:, along + 4 * per * at, group[:, None]] = _elements(words[firsts + at], form[3])
    results = [(group + 8 * (at // 2), 2 * place + at % 2) for at in range(rows * columns // WARP)]
    for (row, column), added in zip(results, words[firsts + seconds :], strict=True):
        c[:, row, column] = added
    total = (a @ b + c).astype(np.float32 if form[1] == "f32" else np.int32)
    return tuple(total[:, row, column].reshape(-1)[warps.slot[threads]] for row, column in results)


def whole(warps: Warps, threads: Any, one: Instruction) -> None:
    """MachineFault unless all lanes of the warps that are here are."""
    here = warps.gather_bits(threads, np.True_)[warps.warp[threads]]
    if np.any(here != 0xFFFFFFFF):
        raise MachineFault(f"{one}: lanes of the warp are missing")


def lanes_of(warps: Warps, threads: Any, values: Array) -> Array:
    """The values of all lanes, a row for each warp."""
    table = np.zeros(warps.count * WARP, values.dtype)
    table[warps.slot[threads]] = values
    return table.reshape(-1, WARP)


def _elements(words: Array, type: str) -> Array:
    """The elements in words, along a last axis."""
    words = np.ascontiguousarray(words).astype(np.uint32)[..., None]
    if type == "f16":
        return words.view(np.float16).astype("f8")
    if type == "bf16":
        halves = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
        return halves.view(np.float32).astype("f8")
    if type == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype("f8")
    return words.view(np.uint8 if type == "u8" else np.int8).astype("i8")


# --- rows of matrices from shared memory ---


def ldmatrix(w: Writer, one: Instruction) -> None:
    """The code of a load of one, two or four matrices of 8 x 8 elements of 16 bits."""
    words = list(one.modifiers)
    turned = "trans" in words
    if turned:
        words.remove("trans")
    counts = {f"x{count}": count for count in (1, 2, 4)}
    count = counts.get(words.pop(3), 0) if len(words) == 6 else 0
    if words != ["sync", "aligned", "m8n8", "shared", "b16"] or not count or w.guard:
        raise PtxError(f"{one}: unknown instruction")
    if w.program.target < 75:
        raise PtxError(f"{one}: needs sm_75, the target is sm_{w.program.target}")
    to, place = one.operands
    parts = to.parts if isinstance(to, Group) else (to,)
    if len(parts) != count:
        raise PtxError(f"{one}: {count} registers are needed")
    name, address = w.constant(one), w.address(place, "shared")
    if count < 4:  # the other lanes' addresses do not count
        address = w.name(f"F.together('first', T, None, {8 * count}, ({address},), {name})")
    rows = w.name(f"F.load('shared', {address}, T, W, 4, 4, {name}, None)")
    given = f"({rows}[0], {rows}[1], {rows}[2], {rows}[3])"
    found = w.name(f"F.together('spread', T, None, {turned!r}, {given}, {name})")
    for at, part in enumerate(parts):
        w.write(part, TYPES["b32"], V(w.name(f"{found}[{at}]")))


def first(
    warps: Warps, threads: Any, lanes: int, operands: tuple[Array, ...], one: Instruction
) -> Array:
    """What the first lanes gave, in all of them."""
    whole(warps, threads, one)
    (given,) = operands
    table = lanes_of(warps, threads, np.broadcast_to(given, len(warps.slot[threads])))
    return table[:, np.arange(WARP) % lanes].reshape(-1)[warps.slot[threads]]


def spread(
    warps: Warps, threads: Any, turned: bool, operands: tuple[Array, ...], one: Instruction
) -> tuple[Array, ...]:
    """Lane 8 i + j has read row j of matrix i: the two elements of each matrix that a lane gets."""
    whole(warps, threads, one)
    rows = np.stack([lanes_of(warps, threads, each) for each in operands], -1)
    matrices = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, 4, 8, 8)
    if turned:
        matrices = matrices.swapaxes(2, 3)
    pairs = np.ascontiguousarray(matrices).view(np.uint32).reshape(-1, 4, WARP)
    return tuple(pairs[:, at].reshape(-1)[warps.slot[threads]] for at in range(4))
