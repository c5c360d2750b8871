"""Tiles in stages of shared memory (`ir.stages`), as cards of compute capability 9.0 have them:
copies by tensor maps (`cp.async.bulk.tensor`), mbarriers, and `wgmma`.

These instructions are of that architecture alone (`sm_90a`). The block's first thread claims stages
and starts copies. The first word of a stage is the mbarrier that bytes are counted on, the second
one that groups release it on.
"""

from __future__ import annotations

from treadle.codegen.ptx import memory
from treadle.codegen.ptx.emitter import Emitter, Instruction, unless, when
from treadle.codegen.ptx.expressions import Expressions
from treadle.codegen.ptx.memory import Address
from treadle.codegen.ptx.spelling import is_literal
from treadle.codegen.ptx.tensor_maps import TensorMaps
from treadle.codegen.ptx.values import Value
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir.types import Scalar, Vector, size_of

_ARCHITECTURE, _VERSION = 90, (8, 0)
_MIXED_VERSION = (8, 4)  # for factors of integers with and without signs
_WARP = 32  # threads
_RELEASED = 8  # bytes from a stage's first word to its second
_PLACE = 0x3FFFF  # the bits of an address that say where in a block's shared memory
_INNER = 32  # bytes of the inner axis that an instruction multiplies
_RARE = 0x7FC0DEAD  # bits that numbers hardly ever have
# Of the 64-bit words that describe a tile: permuted lines of 128 bytes; the bytes from eight lines
# to the next eight; from a tile to the next one, where lines are the inner axis.
_PERMUTED = 1 << 62
_EIGHT_LINES = (8 * stages.LINE_BYTES) >> 4 << 32
_NEXT_LINE = stages.LINE_BYTES >> 4 << 16  # times the lines of a tile
_DESCRIBED = _PERMUTED | _EIGHT_LINES
# How elements are named there; which scales follow the tiles and the sums': those of both factors,
# and for elements of 16 bits whether a tile has the inner axis as lines.
_SPELLED = {"f16": "f16", "bf16": "bf16", "f32": "tf32", "i8": "s8", "u8": "u8"}
_SUMMED = {"f32": "f32", "i32": "s32"}


def staged(body: Expressions, maps: TensorMaps, node: n.Staged) -> None:
    """Print a step."""
    version = _MIXED_VERSION if _is_mixed(node) else _VERSION
    if not body.e.module.has_exactly(_ARCHITECTURE, version):
        raise UnsupportedOnTarget(
            "tiles in stages of shared memory are for cards of compute capability 9.0 (sm_90a), "
            f"and this is printed for sm_{body.e.module.architecture}: use a product by fragments",
            node.span,
        )
    match node.op:
        case "prepare":
            _prepare(body, node)
        case "claim":
            _claim(body, maps.apart, node)
        case "copy":
            _copy(body, maps, node)
        case "wait":
            parity = body.scalar(node.operands[0])
            _wait(body.e, memory.operand(body.e, body.address(node.places[0])), parity)
        case "release":
            _release(body, maps, body.address(node.places[0]).moved(_RELEASED))
        case "hand":
            first = when(_chosen(body, _WARP))
            place = memory.operand(body.e, body.address(node.places[0]))
            body.e.do("mbarrier.arrive.shared::cta.b64", "_", place, guard=first)
        case "multiply" | "product" | "multiply_held":
            _multiply(body, maps.cluster, node)
        case "settle":
            _settle(body, node)
        case "take":
            _take(body, maps, node)
        case "registers":
            count, more = node.numbers
            body.e.do(f"setmaxnreg.{'inc' if more else 'dec'}.sync.aligned.u32", str(count))
        case "meet":
            _meet_in_order(body, maps)
        case "leave" if maps.cluster > 1:
            _meet(body.e, "" if maps.apart else ".aligned")


def _is_mixed(node: n.Staged) -> bool:
    """Whether a multiplication has factors of two types."""
    types = [operand.type for operand in node.operands]
    return node.op in ("multiply", "product") and types[0] != types[-1]


def _prepare(body: Expressions, node: n.Staged) -> None:
    e, (count, cluster, sharing, _) = body.e, node.numbers
    address = body.address(node.places[0])
    groups = body.block_size.count // stages.GROUP * sharing
    skip = _skip(body)
    for stage in range(count):
        at = 2 * _RELEASED * stage
        e.do("mbarrier.init.shared::cta.b64", memory.operand(e, address, at), "1")
        released = memory.operand(e, address, at + _RELEASED)
        e.do("mbarrier.init.shared::cta.b64", released, str(groups))
    e.do("fence.mbarrier_init.release.cluster")
    e.place(skip)
    if cluster > 1:
        _meet(e)
    else:
        e.do("bar.sync", "0")


def _meet(e: Emitter, aligned: str = ".aligned") -> None:
    """All threads of the cluster wait for each other. What they wrote to memory is not waited for:
    no thread of another block reads it, and mbarriers have a fence of their own."""
    e.do(f"barrier.cluster.arrive.relaxed{aligned}")
    e.do(f"barrier.cluster.wait{aligned}")


def _meet_in_order(body: Expressions, maps: TensorMaps) -> None:
    """All threads of the cluster wait for each other and for what they wrote."""
    e = body.e
    if maps.cluster > 1:
        e.do("barrier.cluster.arrive.release")
        e.do("barrier.cluster.wait.acquire")
    else:
        e.do("barrier.sync", "0")


def _take(body: Expressions, maps: TensorMaps, node: n.Staged) -> None:
    """Read elements of another block's shared memory."""
    e, (source, rank) = body.e, node.operands
    assert isinstance(source, n.Load)
    assert isinstance(source.type, Vector)
    address, space = _address(body, body.address(source.place)), "shared"
    if maps.cluster > 1:
        space = "shared::cluster"
        address = e.op("b32", "mapa.shared::cluster.u32", address, body.scalar(rank))
    size = size_of(source.type)
    for at, place in enumerate(node.places):
        if not isinstance(place, n.Variable):
            raise CompileError(
                "what is taken from another block is indexed by constants only: use "
                "td.static_range", node.span,
            )  # fmt: skip
        where = f"[{address}+{at * size}]" if at else f"[{address}]"
        kind = f"v{source.type.count}.{'f32' if source.type.element.is_float else 's32'}"
        e.ops(body.scope.registers[place.name], f"ld.{space}.{kind}", where)


def copiers(body: Expressions, compared: str) -> Value:
    """Whether a thread is one of those that copies have of their own ("ge"), or of the first warp
    of these ("eq")."""
    e = body.e
    key = ("warp", 0)
    if key not in body.builtins:
        thread = body.builtin(n.Builtin("thread_idx")).leaves[0]
        # By the number of the first lane's warp, so that the assembler knows it to be one for a
        # warp, and computes in its uniform registers what copies need.
        warp = e.first("b32", "shr.u32", thread, "5")
        warp = e.first("b32", "shfl.sync.idx.b32", warp, "0", "31", "-1")
        body.builtins[key] = Value((warp,))
    first = str(body.block_size.count // 32)
    warp = body.builtins[key].leaves[0]
    return Value((e.first("pred", f"setp.{compared}.u32", warp, first),))


def _release(body: Expressions, maps: TensorMaps, released: Address) -> None:
    """A thread of the group arrives at the barrier of its block; where a cluster shares boxes, as
    many threads as blocks arrive at one each."""
    e, sharing = body.e, maps.sharing
    if sharing == 1:
        first = when(_chosen(body, stages.GROUP))
        e.do("mbarrier.arrive.shared::cta.b64", "_", memory.operand(e, released), guard=first)
        return
    rank, few = _first_few(body, maps.cluster, sharing)
    there = e.op("b32", "mapa.shared::cluster.u32", _address(body, released), rank)
    # Of the default scope, the block: a release for the cluster would wait for all that was written
    # to memory, at each step, and there is nothing to be seen by others but that stages were read.
    e.do("mbarrier.arrive.shared::cluster.b64", "_", f"[{there}]", guard=when(few))


def _first_few(body: Expressions, cluster: int, count: int) -> tuple[str, str]:
    """For each of a group's first threads the rank of one of the blocks that share boxes, and
    whether a thread is one of these."""
    e, key, within = body.e, (f"first {count}", 0), (f"first {count}", 1)
    if key not in body.builtins:
        thread = body.builtin(n.Builtin("thread_idx")).leaves[0]
        number = e.first("b32", "and.b32", thread, str(stages.GROUP - 1))
        body.builtins[within] = Value((e.first("pred", "setp.lt.u32", number, str(count)),))
        if count < cluster:
            rank = e.first("b32", "mov.u32", "%cluster_ctarank")
            first = e.first("b32", "and.b32", rank, str(cluster - count))
            number = e.first("b32", "add.u32", number, first)
        body.builtins[key] = Value((number,))
    return body.builtins[key].leaves[0], body.builtins[within].leaves[0]


def _sharing(body: Expressions, cluster: int, count: int, apart: int) -> tuple[str, str]:
    """The block's number among those that share a box with it, and the bits of their ranks."""
    e, key, bits = (
        body.e,
        (f"number of {count} by {apart}", 0),
        (f"number of {count} by {apart}", 1),
    )
    if key not in body.builtins:
        number = rank = e.first("b32", "mov.u32", "%cluster_ctarank")
        if apart > 1:
            number = e.first("b32", "shr.u32", number, str(apart.bit_length() - 1))
        if count * apart < cluster:
            number = e.first("b32", "and.b32", number, str(count - 1))
        those = str(sum(1 << apart * at for at in range(count)))
        if count < cluster:
            first = e.first("b32", "and.b32", rank, str(cluster - 1 - (count - 1) * apart))
            those = e.first("b32", "shl.b32", those, first)
            those = e.first("b16", "cvt.u16.u32", those)
        body.builtins[key], body.builtins[bits] = Value((number,)), Value((those,))
    return body.builtins[key].leaves[0], body.builtins[bits].leaves[0]


def _claim(body: Expressions, apart: bool, node: n.Staged) -> None:
    e, address = body.e, body.address(node.places[0])
    filled, released = memory.operand(e, address), memory.operand(e, address, _RELEASED)
    parity = body.scalar(node.operands[0])
    expect, bytes = "mbarrier.arrive.expect_tx.shared::cta.b64", str(node.numbers[0])
    if apart:  # the whole warp waits
        _wait(e, released, parity)
        e.do(expect, "_", filled, bytes, guard=when(_copier(body, apart)))
        return
    skip = _skip(body)
    _wait(e, released, parity)
    e.do(expect, "_", filled, bytes)
    e.place(skip)


def _copy(body: Expressions, maps: TensorMaps, node: n.Staged) -> None:
    e, (lines, shared_by, apart) = body.e, node.numbers
    target, filled = (body.address(each) for each in node.places)
    described = maps.register(node)
    near, far, *stacks = (_narrow(body, each) for each in stages.box_of(node.operands).place)
    opcode = f"cp.async.bulk.tensor.{2 + len(stacks)}d.shared::cluster.global.tile"
    opcode += ".mbarrier::complete_tx::bytes"
    place = memory.operand(e, target)
    to_all: list[str] = []
    if shared_by > 1:  # a part for all blocks, at the same place in each
        part, (number, those) = lines // shared_by, _sharing(body, maps.cluster, shared_by, apart)
        far = e.op("b32", "mad.lo.s32", number, str(part), far)
        size = str(part * stages.LINE_BYTES)
        place = f"[{e.op('b32', 'mad.lo.s32', number, size, _address(body, target))}]"
        opcode += ".multicast::cluster"
        to_all = [those]
    filled_at, first = memory.operand(e, filled), _copier(body, maps.apart)
    at = f"[{described}, {{{', '.join((near, far, *stacks))}}}]"
    e.do(opcode, place, at, filled_at, *to_all, guard=when(first))


def _narrow(body: Expressions, node: n.Expression) -> str:
    value = body.scalar(node)
    wide = getattr(node.type, "bits", 32) == 64
    return body.e.op("b32", "cvt.u32.u64", value) if wide else value


def _multiply(body: Expressions, cluster: int, node: n.Staged) -> None:
    """Instructions, each of 32 bytes of the inner axis. A first factor that is held is in
    registers, the tiles are described."""
    e = body.e
    sums: list[str] = []
    for place in node.places:
        if not isinstance(place, n.Variable):
            raise CompileError(
                "the sums of a multiplication are indexed by constants only: use td.static_range",
                node.span,
            )
        sums += body.scope.registers[place.name]
    is_held = node.op == "multiply_held"
    lines = node.numbers[1] if is_held else stages.DEPTH
    near = [bool(number) for number in (node.numbers[:1] if is_held else node.numbers)]
    words = [_words(body, operand) for operand in (node.operands[:-1] if is_held else ())]
    tiles = [_described(body, cluster, each, lines) for each in node.operands[len(words) :]]
    kinds = [operand.type for operand in node.operands[len(words) :]]
    element, sum_type = kinds[0], node.places[0].type
    assert isinstance(element, Scalar)
    assert isinstance(sum_type, Vector)
    inner = _INNER * 8 // element.bits
    if is_held:
        kinds *= 2
    columns = 8 * len(node.places)
    types = (_SUMMED[sum_type.element.name], *(_SPELLED[str(kind)] for kind in kinds))
    opcode = f"wgmma.mma_async.sync.aligned.m64n{columns}k{inner}.{'.'.join(types)}"
    behind = ["1", "1"] if sum_type.element.is_float else []
    if element.bits == stages.TURNED_BITS:
        behind += ["0" if is_near else "1" for is_near in near]
    e.do("wgmma.fence.sync.aligned")
    for part in range(len(words) or stages.LINE_BYTES // _INNER):
        at = []
        for tile, is_near in zip(tiles, near, strict=True):
            step = (_INNER if is_near else inner * stages.LINE_BYTES) >> 4
            at.append(e.op("b64", "add.s64", tile, str(part * step)) if part else tile)
        first = words[part : part + 1]
        added = "0" if node.op == "product" and part == 0 else "1"
        e.do(opcode, f"{{{', '.join(sums)}}}", *first, *at, added, *behind)
    e.do("wgmma.commit_group.sync.aligned")


def _words(body: Expressions, operand: n.Expression) -> str:
    """The registers of four words of a factor."""
    leaves = body.value(operand).leaves
    words = [body.e.op("b32", "mov.b32", each) if is_literal(each) else each for each in leaves]
    return f"{{{', '.join(words)}}}"


def _settle(body: Expressions, node: n.Staged) -> None:
    """Wait for multiplications. Assemblers move the wait up to these, over all that is computed in
    between: an instruction that has an effect, and depends on numbers, holds it back."""
    e, bits = body.e, ""
    for operand in node.operands:
        word = e.op("b32", "mov.b32", body.scalar(operand))
        bits = e.op("b32", "xor.b32", bits, word) if bits else word
    if bits:
        rarely = e.op("pred", "setp.eq.u32", bits, str(_RARE))
        e.do("nanosleep.u32", "1", guard=when(rarely))
    e.do("wgmma.wait_group.sync.aligned", str(node.numbers[0]))


def _described(body: Expressions, cluster: int, operand: n.Expression, lines: int) -> str:
    """The word that describes the tile at a place, after so many lines of which another follows."""
    assert isinstance(operand, n.Load)
    e = body.e
    address = _address(body, body.address(operand.place))
    if cluster > 1:  # addresses carry the rank of the block above these bits
        address = e.op("b32", "and.b32", address, str(_PLACE))
    start = e.op("b32", "shr.u32", address, "4")
    described = str(_DESCRIBED | _NEXT_LINE * lines)
    return e.op("b64", "or.b64", e.op("b64", "cvt.u64.u32", start), described)


def _address(body: Expressions, address: Address) -> str:
    """An address in a register."""
    base = address.base if address.base.startswith("%") else body.memory_register(address.base)
    return body.e.op("b32", "add.u32", base, str(address.offset)) if address.offset else base


def _wait(e: Emitter, place: str, parity: str) -> None:
    again = e.new_label("wait")
    e.place(again)
    done = e.op("pred", "mbarrier.try_wait.parity.shared::cta.b64", place, parity)
    e.jump(again, unless(done))


def _skip(body: Expressions) -> str:
    """Leave what follows to the first thread; the label to place behind it."""
    skip = body.e.new_label("others")
    body.e.jump(skip, unless(_chosen(body, body.block_size.count)))
    return skip


def _copier(body: Expressions, apart: bool) -> str:
    """Whether a thread is the one that copies; one of a warp, where a warp copies."""
    if not apart:
        return _chosen(body, body.block_size.count)
    key = ("copier", 0)
    if key not in body.builtins:
        e, found = body.e, body.e.register("pred")
        e.head.append(Instruction("", "elect.sync", [f"_|{found}"], ("-1",)))
        body.builtins[key] = Value((found,))
    return body.builtins[key].leaves[0]


def _chosen(body: Expressions, among: int) -> str:
    """Whether a thread is the first of so many."""
    e = body.e
    key = (f"first of {among}", 0)
    if key not in body.builtins:
        thread = body.builtin(n.Builtin("thread_idx")).leaves[0]
        if among < body.block_size.count:
            thread = e.first("b32", "and.b32", thread, str(among - 1))
        body.builtins[key] = Value((e.first("pred", "setp.eq.u32", thread, "0"),))
    return body.builtins[key].leaves[0]
