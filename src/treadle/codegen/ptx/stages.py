"""Tiles in stages of shared memory (`ir.stages`), as cards of compute capability 9.0 have them:
copies by tensor maps (`cp.async.bulk.tensor`), mbarriers, and `wgmma`.

These instructions are of that architecture alone (`sm_90a`). The block's first thread claims stages
and starts copies. The first word of a stage is the mbarrier that bytes are counted on, the second
one that groups release it on.
"""

from __future__ import annotations

from treadle.codegen.ptx import memory
from treadle.codegen.ptx.emitter import Emitter, unless, when
from treadle.codegen.ptx.expressions import Expressions
from treadle.codegen.ptx.memory import Address
from treadle.codegen.ptx.tensor_maps import TensorMaps
from treadle.codegen.ptx.values import Value
from treadle.core.errors import CompileError, UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir import stages
from treadle.ir.types import Scalar, Vector

_ARCHITECTURE, _VERSION = 90, (8, 0)
_MIXED_VERSION = (8, 4)  # for factors of integers with and without signs
_RELEASED = 8  # bytes from a stage's first word to its second
_INNER = 32  # bytes of the inner axis that an instruction multiplies
# Of the 64-bit words that describe a tile: permuted lines of 128 bytes; the bytes from eight lines
# to the next eight; from a tile to the next one, where lines are the inner axis.
_PERMUTED = 1 << 62
_EIGHT_LINES = (8 * stages.LINE_BYTES) >> 4 << 32
_NEXT_TILE = (64 * stages.LINE_BYTES) >> 4 << 16
_DESCRIBED = _PERMUTED | _EIGHT_LINES | _NEXT_TILE
# How elements are named there; which scales follow the tiles: the sums' (1), those of both factors,
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
            _claim(body, node)
        case "copy":
            _copy(body, maps, node)
        case "wait":
            parity = body.scalar(node.operands[0])
            _wait(body.e, memory.operand(body.e, body.address(node.places[0])), parity)
        case "release":
            first = _chosen(body, stages.GROUP)
            place = memory.operand(body.e, body.address(node.places[0]), _RELEASED)
            body.e.do("mbarrier.arrive.shared::cta.b64", "_", place, guard=when(first))
        case "multiply":
            _multiply(body, node)
        case "settle":
            body.e.do("wgmma.wait_group.sync.aligned", str(node.numbers[0]))


def _is_mixed(node: n.Staged) -> bool:
    """Whether a multiplication has factors of two types."""
    types = [operand.type for operand in node.operands]
    return node.op == "multiply" and types[0] != types[-1]


def _prepare(body: Expressions, node: n.Staged) -> None:
    e, (count,) = body.e, node.numbers
    address = body.address(node.places[0])
    groups = body.block_size.count // stages.GROUP
    skip = _skip(body)
    for stage in range(count):
        at = 2 * _RELEASED * stage
        e.do("mbarrier.init.shared::cta.b64", memory.operand(e, address, at), "1")
        released = memory.operand(e, address, at + _RELEASED)
        e.do("mbarrier.init.shared::cta.b64", released, str(groups))
    e.do("fence.mbarrier_init.release.cluster")
    e.place(skip)
    e.do("bar.sync", "0")


def _claim(body: Expressions, node: n.Staged) -> None:
    e, address = body.e, body.address(node.places[0])
    filled, released = memory.operand(e, address), memory.operand(e, address, _RELEASED)
    parity = body.scalar(node.operands[0])
    skip = _skip(body)
    _wait(e, released, parity)
    bytes = str(node.numbers[0])
    e.do("mbarrier.arrive.expect_tx.shared::cta.b64", "_", filled, bytes)
    e.place(skip)


def _copy(body: Expressions, maps: TensorMaps, node: n.Staged) -> None:
    e = body.e
    place, filled = (memory.operand(e, body.address(each)) for each in node.places)
    described = maps.register(node)
    at = [_narrow(body, each) for each in node.operands[-3:]]
    first = when(_chosen(body, body.block_size.count))
    e.do(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        place, f"[{described}, {{{', '.join(at)}}}]", filled, guard=first,
    )  # fmt: skip


def _narrow(body: Expressions, node: n.Expression) -> str:
    value = body.scalar(node)
    wide = getattr(node.type, "bits", 32) == 64
    return body.e.op("b32", "cvt.u32.u64", value) if wide else value


def _multiply(body: Expressions, node: n.Staged) -> None:
    """Four instructions, each of 32 bytes of the inner axis."""
    e = body.e
    sums: list[str] = []
    for place in node.places:
        if not isinstance(place, n.Variable):
            raise CompileError(
                "the sums of a multiplication are indexed by constants only: use td.static_range",
                node.span,
            )
        sums += body.scope.registers[place.name]
    near = [bool(number) for number in node.numbers]
    tiles = [_described(body, operand) for operand in node.operands]
    kinds = [operand.type for operand in node.operands]
    element, sum_type = kinds[0], node.places[0].type
    assert isinstance(element, Scalar)
    assert isinstance(sum_type, Vector)
    inner = _INNER * 8 // element.bits
    columns = 8 * len(node.places)
    types = (_SUMMED[sum_type.element.name], *(_SPELLED[str(kind)] for kind in kinds))
    opcode = f"wgmma.mma_async.sync.aligned.m64n{columns}k{inner}.{'.'.join(types)}"
    behind = ["1", "1", "1"] if sum_type.element.is_float else ["1"]
    if element.bits == stages.TURNED_BITS:
        behind += ["0" if is_near else "1" for is_near in near]
    e.do("wgmma.fence.sync.aligned")
    for part in range(stages.LINE_BYTES // _INNER):
        at = []
        for tile, is_near in zip(tiles, near, strict=True):
            step = (_INNER if is_near else inner * stages.LINE_BYTES) >> 4
            at.append(e.op("b64", "add.s64", tile, str(part * step)) if part else tile)
        e.do(opcode, f"{{{', '.join(sums)}}}", *at, *behind)
    e.do("wgmma.commit_group.sync.aligned")


def _described(body: Expressions, operand: n.Expression) -> str:
    """The word that describes the tile at a place."""
    assert isinstance(operand, n.Load)
    e = body.e
    start = e.op("b32", "shr.u32", _address(body, body.address(operand.place)), "4")
    return e.op("b64", "or.b64", e.op("b64", "cvt.u64.u32", start), str(_DESCRIBED))


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
