"""Warp operations: shuffles, votes, reductions, at a width of 32.

The last warp of a block may have fewer threads. Its mask names those that exist, and its shuffles
are clamped to them, so that PTX gives a thread its own value where the IR says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from treadle.codegen.ptx.arithmetic import binary, select
from treadle.codegen.ptx.casts import wrapped
from treadle.codegen.ptx.emitter import Emitter
from treadle.codegen.ptx.expressions import Expressions
from treadle.codegen.ptx.intrinsics import intrinsic
from treadle.codegen.ptx.spelling import KINDS, MOVES, REGISTERS, is_literal
from treadle.codegen.ptx.values import number
from treadle.ir import nodes as n
from treadle.ir.types import Scalar

WIDTH = 32
_REDUCTIONS = {"sum": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor"}
_MODES = {"shuffle_up": "up", "shuffle_down": "down", "shuffle_xor": "bfly"}
_SOURCES = {"shuffle_up": "sub.s32", "shuffle_down": "add.s32", "shuffle_xor": "xor.b32"}


@dataclass(frozen=True, slots=True)
class Warp:
    """The threads of a thread's warp: their mask, and the last one's lane. `count` is their number
    if all warps of the block have as many, else 0."""

    mask: str
    last: str
    count: int


def warp(body: Expressions) -> Warp:
    """The warp that a thread is in."""
    threads = body.block_size.count
    rest = threads % WIDTH
    if not rest:
        return Warp("-1", str(WIDTH - 1), WIDTH)
    if threads < WIDTH:
        return Warp(str((1 << threads) - 1), str(threads - 1), threads)
    found = body.known.get("warp")
    if found is None:
        found = body.e.keep(_in_last_warp(body, threads - rest))
        body.known.put("warp", found, frozenset())
    mask = body.e.op("b32", "selp.b32", str((1 << rest) - 1), "-1", found)
    last = body.e.op("b32", "selp.b32", str(rest - 1), str(WIDTH - 1), found)
    return Warp(mask, last, 0)


def named(body: Expressions, mask: n.Expression | None) -> Warp:
    """The warp that a thread is in, with the threads that a mask names. The mask may name threads
    that do not exist or have exited: the hardware ignores both."""
    group = warp(body)
    if mask is None:
        return group
    if isinstance(mask, n.Constant):
        return replace(group, mask=str(int(mask.value) - (int(mask.value) >> 31 << 32)), count=0)
    return replace(group, mask=body.value(mask).leaves[0], count=0)


def _in_last_warp(body: Expressions, first: int) -> str:
    """Whether a thread is number `first` of its block, or later."""
    e, (x, y, _) = body.e, body.block_size
    place = "0"
    for axis, pitch in ((2, x * y), (1, x), (0, 1)):
        (index,) = body.builtin(n.Builtin("thread_idx", axis)).leaves
        if index != "0":
            place = e.op("b32", "mad.lo.s32", index, str(pitch), place)
    return e.op("pred", "setp.ge.s32", place, str(first))


def subgroup(body: Expressions, node: n.Subgroup, operands: list[str]) -> str:
    """A value exchanged among the threads of a warp."""
    e = body.e
    if node.op == "active":
        e.module.has(0, (6, 2))
        return e.op("b32", "activemask.b32")
    type = node.operands[0].type
    assert isinstance(type, Scalar)
    group = named(body, node.mask)
    if node.op in ("match_any", "match_all"):
        return _matched(e, node.op, type, group, operands[0])
    if node.op in ("vote_all", "vote_any"):
        return e.op("pred", f"vote.sync.{node.op[5:]}.pred", operands[0], group.mask)
    if node.op == "ballot":
        return e.op("b32", "vote.sync.ballot.b32", operands[0], group.mask)
    if node.op == "prefix_sum":
        return _prefix_sum(e, type, group, operands[0])
    if node.op in _REDUCTIONS:
        return _reduced(e, node.op, type, group, operands[0])
    return _shuffle(body, node, type, group, *operands)


def _matched(e: Emitter, op: str, type: Scalar, group: Warp, value: str) -> str:
    """The lanes that hold the same bits."""
    words = _words(e, type, value)
    bits, size = words[0], "b32"
    if len(words) == 2:
        bits, size = e.register("b64"), "b64"
        e.ops([bits], "mov.b64", f"{{{words[0]}, {words[1]}}}")
    if op == "match_any":
        return e.op("b32", f"match.any.sync.{size}", bits, group.mask)
    result, everyone = e.register("b32"), e.register("pred")
    e.ops([result, everyone], f"match.all.sync.{size}", bits, group.mask)
    return e.op("b32", "selp.b32", result, "0", everyone)


# --- shuffles -------------------------------------------------------------------------------------


def _shuffle(
    body: Expressions, node: n.Subgroup, type: Scalar, group: Warp, value: str, by: str
) -> str:
    """A value from another lane; the thread's own where that lane does not exist. PTX looks at
    five bits of the lane's number, so larger ones are found out here."""
    e = body.e
    known = is_literal(by) and 0 <= int(by) < WIDTH
    if known and node.op != "shuffle":
        return _shuffled(e, _MODES[node.op], type, group, value, by)[0]
    lane = by
    if node.op != "shuffle":
        own = body.builtin(n.Builtin("lane")).leaves[0]
        lane = e.op("b32", _SOURCES[node.op], own, by)
    result = _shuffled(e, "idx", type, group, value, lane)[0]
    if known:
        return result
    exists = e.op("pred", "setp.lt.u32", lane, str(WIDTH))
    return select(e, type, exists, result, value)


def _shuffled(
    e: Emitter, mode: str, type: Scalar, group: Warp, value: str, by: str
) -> tuple[str, str]:
    """A value from another lane, and whether that lane exists."""
    last = "0" if mode == "up" else group.last
    predicate = ""
    words = []
    for word in _words(e, type, value):
        result, predicate = e.register("b32"), e.register("pred")
        e.ops([result, predicate], f"shfl.sync.{mode}.b32", word, by, last, group.mask)
        words.append(result)
    return _from_words(e, type, words), predicate


def _words(e: Emitter, type: Scalar, value: str) -> list[str]:
    """A value as words of 32 bits."""
    kind = REGISTERS[type.name]
    if kind in ("b64", "f64"):
        if is_literal(value):
            value = e.op(kind, MOVES[kind], value)
        low, high = e.register("b32"), e.register("b32")
        e.ops([low, high], "mov.b64", value)
        return [low, high]
    if kind == "pred":
        return [e.op("b32", "selp.b32", "1", "0", value)]
    if kind == "b16":
        return [e.op("b32", "cvt.u32.u16", value)]
    return [e.op("b32", "mov.b32", value)] if kind == "f32" else [value]


def _from_words(e: Emitter, type: Scalar, words: list[str]) -> str:
    kind = REGISTERS[type.name]
    if kind in ("b64", "f64"):
        return e.op(kind, "mov.b64", f"{{{', '.join(words)}}}")
    if kind == "pred":
        return e.op("pred", "setp.ne.s32", words[0], "0")
    if kind == "b16":
        return e.op("b16", "cvt.u16.u32", words[0])
    return e.op("f32", "mov.b32", words[0]) if kind == "f32" else words[0]


# --- reductions -----------------------------------------------------------------------------------


def _combined(e: Emitter, op: str, type: Scalar, a: str, b: str) -> str:
    if op not in ("min", "max"):
        return binary(e, _REDUCTIONS[op], type, a, b)
    return intrinsic(e, op, type, (a, b))


def _reduced(e: Emitter, op: str, type: Scalar, group: Warp, value: str) -> str:
    """All lanes' values in one, for all lanes."""
    if type.is_integer and type.bits <= 32 and e.module.has(80, (7, 0)):
        kind = "b32" if op in ("and", "or", "xor") else KINDS[type.name]
        result = e.op("b32", f"redux.sync.{_REDUCTIONS[op]}.{kind}", value, group.mask)
        return wrapped(e, type, result) if op == "sum" else result
    distance = WIDTH // 2
    if group.count and group.count & (group.count - 1) == 0:
        distance = group.count // 2
        while distance:
            other, _ = _shuffled(e, "bfly", type, group, value, str(distance))
            value = _combined(e, op, type, value, other)
            distance //= 2
        return value
    # If lanes are missing, only lane 0 gets the whole result, and broadcasts it.
    while distance:
        other, exists = _shuffled(e, "down", type, group, value, str(distance))
        value = select(e, type, exists, _combined(e, op, type, value, other), value)
        distance //= 2
    return _shuffled(e, "idx", type, group, value, "0")[0]


def _prefix_sum(e: Emitter, type: Scalar, group: Warp, value: str) -> str:
    """The sum of the lanes before."""
    distance = 1
    while distance < (group.count or WIDTH):
        other, exists = _shuffled(e, "up", type, group, value, str(distance))
        value = select(e, type, exists, binary(e, "add", type, value, other), value)
        distance *= 2
    before, exists = _shuffled(e, "up", type, group, value, "1")
    return select(e, type, exists, before, number(e, type, 0))
