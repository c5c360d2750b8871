"""mbarriers, copies of boxes by tensor maps, and `wgmma`, after NVIDIA's description of PTX.

What happens beside the threads happens as late as it may, and what it will write is spoiled from
the moment it is begun: a box is there when a thread finds its barrier's phase complete. A
multiplication reads at once; when it is waited for, its tiles must still be what they were. It is
not done before all four warps of the group have begun it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array
from tests.support.ptx_machine.matrices import lanes_of, whole
from tests.support.ptx_machine.memory import GLOBAL, RANK_AT, MachineFault, NotYet
from tests.support.ptx_machine.records import Address, Group, Instruction, PtxError
from tests.support.ptx_machine.types import TYPES
from tests.support.ptx_machine.writer import V, Writer
from treadle.drivers.tensor_maps import Matrix

PARAMETERS = 0x0300_0000_0000  # where a kernel's parameters lie among generic addresses
_MAP = struct.Struct("<8sQI5Q4Q2I")
_AXES = 5
_SPOILED = 0xFF  # each byte
_GROUP_WARPS, _WARP = 4, 32
_REGISTERS = 1 << 16  # of a multiprocessor
_PERMUTED = 1  # of 128 bytes, in the two topmost bits of a descriptor
_OTHER = 0xFF << 46 | 0xFFF << 50 | 3 << 30 | 3 << 14  # bits that say nothing here
_LINE = 128  # bytes
_MIXED_VERSION = (8, 4)  # of PTX, for products of integers with signs by those without
_HELD_WORDS = 4  # that a thread holds of a first factor
_BITS: dict[str, str] = {"f16": "u2", "bf16": "u2", "f32": "u4", "i8": "u1", "u8": "u1"}
# Of an instruction, by the types of its factors: elements of the inner axis, what is summed.
_MULTIPLIED = {
    ("f16", "f16"): (16, "f32"), ("bf16", "bf16"): (16, "f32"), ("tf32", "tf32"): (8, "f32"),
    ("s8", "s8"): (32, "s32"), ("u8", "u8"): (32, "s32"), ("s8", "u8"): (32, "s32"),
    ("u8", "s8"): (32, "s32"),
}  # fmt: skip
_HALVES = ("f16", "bf16")  # of which tiles may have the inner axis as lines
_FEW_COLUMNS = 24  # more than these are multiples of 16, of integers


def encode(matrix: Matrix) -> bytes:
    """The evaluator's own tensor map."""
    rank = len(matrix.extents)
    extents, steps = ((*each, *(0,) * (_AXES - rank)) for each in (matrix.extents, matrix.steps))
    made = _MAP.pack(matrix.element.encode(), matrix.address, rank, *extents, *steps, *matrix.box)
    return made.ljust(128, b"\0")


@dataclass
class Barrier:
    """An mbarrier: arrivals that a phase takes and still lacks, bytes that are expected."""

    count: int
    lacking: int
    bytes: int = 0
    phase: int = 0
    boxes: list[Box] = field(default_factory=list)


@dataclass
class Box:
    """A copy that is not done."""

    matrix: Matrix
    at: tuple[int, ...]
    target: int
    one: Instruction


class Stages:
    """What is under way in a chunk of blocks."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.barriers: dict[tuple[int, int], Barrier] = {}
        self.multiplied: dict[int, list[tuple[int, Array, Array, Instruction]]] = {}  # of warps
        self.groups: dict[int, int] = {}
        self.held: dict[int, list[int]] = {}  # registers of a thread, by blocks and groups
        self.cluster = frame.program.function.cluster
        self.met = np.zeros(frame.lanes, np.int64)  # how often each thread came to its cluster

    def _placed(
        self, address: Array, rows: Array, one: Instruction, mask: Any = None
    ) -> tuple[Array, Array]:
        """Places in shared memory, and the rows of the blocks that they are in."""
        if self.cluster == 1:
            return address, rows
        place, found = address.copy(), rows.copy()
        at = np.flatnonzero(np.ones(len(rows), bool) if mask is None else mask)
        if len(at):
            any_block = "shared::cluster" in one.modifiers and one.opcode == "mbarrier"
            place[at], found[at] = self.frame.spaces.in_cluster(
                address[at], rows[at], any_block, one
            )
        return place, found

    def set_registers(self, threads: Array, count: int, more: bool, one: Instruction) -> None:
        """Groups give up registers, or take some: NotYet if others have to give them up first."""
        threads = self.frame.all if threads is None else threads
        warps = self.frame.warps
        groups = -(-warps.per_block // _GROUP_WARPS)
        begun = _REGISTERS // (groups * _GROUP_WARPS * _WARP) // 8 * 8
        if count % 8 or not 24 <= count <= 256:
            raise PtxError(f"{one}: 24 to 256 registers, a multiple of 8")
        whole(warps, threads, one)
        for warp in np.unique(warps.warp[threads]).tolist():
            row, group = warp // warps.per_block, warp % warps.per_block // _GROUP_WARPS
            held = self.held.setdefault(row, [begun] * groups)
            if count < held[group] if more else count > held[group]:
                raise MachineFault(f"{one}: the group has {held[group]} registers for a thread")
            others = sum(held) - held[group]
            if others + count > begun * groups:  # what the block was launched with
                raise NotYet(f"{one}: no group gives up the registers that are asked for")
            held[group] = count

    def together(self, threads: Array, one: Instruction) -> None:
        """MachineFault unless whole warps come."""
        whole(self.frame.warps, self.frame.all if threads is None else threads, one)

    def meet(self, threads: Array) -> None:
        """Threads come to the barrier of their cluster."""
        self.met[self.frame.all if threads is None else threads] += 1

    def leave(self, threads: Array, one: Instruction) -> None:
        """NotYet unless all threads of their clusters have come as often."""
        threads = self.frame.all if threads is None else threads
        clusters = self.frame.rows // self.cluster
        fewest = np.full(clusters.max() + 1, 1 << 62)
        np.minimum.at(fewest, clusters, self.met)
        if np.any(fewest[clusters[threads]] < self.met[threads]):
            raise NotYet(f"{one}: threads of the cluster do not come")

    def barrier(self, row: int, address: int, one: Instruction) -> Barrier:
        found = self.barriers.get((row, address))
        if found is None:
            raise MachineFault(f"{one}: there is no mbarrier at {address}")
        return found

    def init(self, address: Array, count: Array, rows: Array, one: Instruction) -> None:
        address, rows = self._placed(address, rows, one)
        for at, many, row in zip(address.tolist(), count.tolist(), rows.tolist(), strict=True):
            if at % 8:
                raise MachineFault(f"{one}: is not aligned")
            self.barriers[row, at] = Barrier(many, many)

    def arrive(
        self, address: Array, bytes: Array | None, rows: Array, mask: Array | None, one: Instruction
    ) -> None:
        address, rows = self._placed(address, rows, one, mask)
        for i, (at, row) in enumerate(zip(address.tolist(), rows.tolist(), strict=True)):
            if mask is not None and not mask[i]:
                continue
            barrier = self.barrier(row, at, one)
            self._complete(barrier, row)
            if bytes is not None:
                barrier.bytes += int(bytes[i])
            barrier.lacking -= 1
            if barrier.lacking < 0:
                raise MachineFault(f"{one}: more threads arrive than the phase takes")
            if not barrier.bytes and not barrier.boxes:
                self._complete(barrier, row)

    def complete(self, address: Array, parity: Array, rows: Array, one: Instruction) -> Array:
        """Of each thread, whether the phase with a parity is over; NotYet if none is."""
        found = np.zeros(len(address), bool)
        address, rows = self._placed(address, rows, one)
        given = (address.tolist(), parity.tolist(), rows.tolist())
        for i, (at, wanted, row) in enumerate(zip(*given, strict=True)):
            barrier = self.barrier(row, at, one)
            self._complete(barrier, row)
            found[i] = barrier.phase % 2 != wanted
        if not found.any():
            raise NotYet(f"{one}: the phase never ends that is waited for")
        return found

    def _complete(self, barrier: Barrier, row: int) -> None:
        if barrier.lacking or sum(_size(box.matrix) for box in barrier.boxes) != barrier.bytes:
            return
        for box in barrier.boxes:
            self._fill(box, row)
        barrier.boxes, barrier.bytes = [], 0
        barrier.lacking = barrier.count
        barrier.phase += 1

    def copy(
        self, target: Array, described: Array, at: list[Array], address: Array, mask: Array,
        guard: Array | None, rows: Array, one: Instruction,
    ) -> None:  # fmt: skip
        (target, own), (address, _) = (
            self._placed(each, rows, one, guard) for each in (target, address)
        )
        for i, row in enumerate(own.tolist()):
            if guard is not None and not guard[i]:
                continue
            matrix = self._matrix(int(described[i]), one)
            place = int(target[i])
            if place % _LINE:
                raise MachineFault(f"{one}: the target is not aligned to {_LINE} bytes")
            if len(at) != len(matrix.extents):
                raise MachineFault(f"{one}: the map has {len(matrix.extents)} axes")
            where = tuple(int(each[i].astype(np.uint32).view(np.int32)) for each in at)
            if where[0] * _item(matrix) % 16:
                raise MachineFault(f"{one}: the box begins at no multiple of 16 bytes of a line")
            box = Box(matrix, where, place, one)
            spoiled = np.full((matrix.box[1], matrix.box[0] * _item(matrix)), _SPOILED, np.uint8)
            spoiled = spoiled.view(_BITS[matrix.element])
            wanted = int(mask[i])
            if wanted >> self.cluster:
                raise MachineFault(f"{one}: blocks {wanted:b} of a cluster of {self.cluster}")
            first = row - row % self.cluster
            peers = [first + r for r in range(self.cluster) if wanted >> r & 1] if wanted else [row]
            for peer in peers:
                self._write(box, peer, spoiled)
                self.barrier(peer, int(address[i]), one).boxes.append(box)

    def _matrix(self, address: int, one: Instruction) -> Matrix:
        start = address - PARAMETERS
        if start % 64:
            raise MachineFault(f"{one}: the tensor map is not aligned to 64 bytes")
        element, place, rank, *numbers = _MAP.unpack_from(self.frame._parameters, start)
        extents, steps = tuple(numbers[:rank]), tuple(numbers[_AXES : _AXES + rank - 1])
        box = tuple(numbers[-2:])
        if place % 16 or any(step % 16 for step in steps) or min(extents) < 1:
            raise MachineFault(f"{one}: a matrix that no tensor map describes")
        matrix = Matrix(element.rstrip(b"\0").decode(), place, extents, steps, box)  # type: ignore[arg-type]
        if box[0] * _item(matrix) > _LINE or max(box) > 256:
            raise MachineFault(f"{one}: a box that no tensor map describes")
        return matrix

    def _fill(self, box: Box, row: int) -> None:
        matrix, (x, y, *stacks) = box.matrix, box.at
        across, down = matrix.box
        bits, item = _BITS[matrix.element], _item(matrix)
        found = np.zeros((down, across), bits)
        memory = self.frame.kernel.memory
        width = max(min(x + across, matrix.extents[0]) - max(x, 0), 0)
        moves = zip(stacks, matrix.extents[2:], strict=True)
        there = width and all(0 <= z < extent for z, extent in moves)
        for line in range(down):
            if not (there and 0 <= y + line < matrix.extents[1]):
                continue
            first = max(x, 0)
            start = matrix.address + item * first + (y + line) * matrix.steps[0]
            start += sum(z * step for z, step in zip(stacks, matrix.steps[1:], strict=True))
            size = item * width
            offset = np.array([start, start + size - item], np.uint64) - np.uint64(GLOBAL)
            if memory.check(offset.view("i8"), item) == [-1]:
                raise MachineFault(f"{box.one}: {size} bytes at 0x{start:x} are in no buffer")
            found[line, first - x : first - x + width] = memory.slice(start, size).view(bits)
        self._write(box, row, _as_tf32(found) if matrix.element == "f32" else found)

    def _write(self, box: Box, row: int, values: Array) -> None:
        line, element = np.indices(values.shape)
        item = values.dtype.itemsize
        place = _permuted(box.target + _LINE * line + item * element)
        self.frame.spaces._shared[item][self._words(place, row, item, box.one)] = values

    def _words(self, place: Array, row: int, item: int, one: Instruction) -> Array:
        spaces = self.frame.spaces
        if place.min() < 0 or place.max() + item > spaces.shared_bytes:
            raise MachineFault(f"{one}: outside of shared memory")
        return (place + row * spaces._shared_step) // item

    # --- multiplying ---

    def multiply(
        self, threads: Array, form: tuple[tuple[int, str, str], tuple[int, ...], int, int],
        operands: tuple[Array, ...], one: Instruction,
    ) -> list[Array]:  # fmt: skip
        """The sums of each thread. The operands are words of held rows, descriptions of as many
        tiles as there are numbers that say whether they are turned, and sums."""
        warps = self.frame.warps
        threads = self.frame.all if threads is None else threads
        whole(warps, threads, one)
        (columns, *elements), turned, held_words, added = form
        item = 32 // _MULTIPLIED[elements[0], elements[1]][0]
        shared = self.frame.spaces._shared[item]
        tables = [lanes_of(warps, threads, each) for each in operands]
        sums = tables[held_words + len(turned) :]
        lane = np.arange(_WARP)
        results = [np.zeros_like(table) for table in sums]
        for warp in np.unique(warps.warp[threads]).tolist():
            words = [table[warp] for table in tables[held_words : held_words + len(turned)]]
            if any(np.any(word != word[0]) for word in words):
                raise MachineFault(f"{one}: the lanes of a warp describe different tiles")
            number = warp % warps.per_block
            row = warp // warps.per_block
            first = number % _GROUP_WARPS * 16
            tiles = []
            if held_words:
                tiles.append(_rows([table[warp] for table in tables[:held_words]], elements[0]))
            given = list(zip(elements, ((16, first), (columns, 0)), strict=True))[-len(words) :]
            for word, (element, (lines, away)), trans in zip(words, given, turned, strict=True):
                place = _places(int(word[0]), np.arange(lines) + away, bool(trans), item, one)
                at = self._words(place, row, item, one)
                held = shared[at]
                self.multiplied.setdefault(warp, []).append(
                    (self.groups.get(warp, 0), at, held.copy(), one)
                )
                tiles.append(_values(held, element))
            product = tiles[0] @ tiles[1].T
            for i, table in enumerate(sums):
                down = lane // 4 + 8 * (i // 2 % 2)
                along = 8 * (i // 4) + 2 * (lane % 4) + i % 2
                before = table[warp] if added else np.zeros_like(table[warp])
                results[i][warp] = (product[down, along] + before).astype(table.dtype)
        return [result.reshape(-1)[warps.slot[threads]] for result in results]

    def commit(self, threads: Array) -> None:
        threads = self.frame.all if threads is None else threads
        for warp in np.unique(self.frame.warps.warp[threads]).tolist():
            self.groups[warp] = self.groups.get(warp, 0) + 1

    def settle(self, threads: Array, left: int, one: Instruction) -> None:
        """MachineFault if the tiles of a multiplication that is done now are no longer the same;
        NotYet if warps of the group have not come to it."""
        threads = self.frame.all if threads is None else threads
        present = np.unique(self.frame.warps.warp[threads]).tolist()
        groups = {warp: self._group_of(warp) for warp in present}
        early = [
            warp
            for warp, group in groups.items()
            if min(self.groups.get(each, 0) for each in group) < self.groups.get(warp, 0) - left
        ]
        if early:
            others = threads[~np.isin(self.frame.warps.warp[threads], early)]
            raise NotYet(f"{one}: warps of the group multiply nothing", others)
        for warp, group in groups.items():
            done = self.groups.get(warp, 0) - left
            for each in group:  # they multiply together
                self._end(each, done)

    def _group_of(self, warp: int) -> range:
        first = warp - warp % self.frame.warps.per_block % _GROUP_WARPS
        return range(first, first + _GROUP_WARPS)

    def _end(self, warp: int, done: int) -> None:
        """The first multiplications of a warp are done: their tiles are what they were."""
        kept = []
        for group, at, held, begun in self.multiplied.get(warp, []):
            if group >= done:
                kept.append((group, at, held, begun))
            elif np.any(self.frame.spaces._shared[held.dtype.itemsize][at] != held):
                raise MachineFault(f"{begun}: a tile changed before this was waited for")
        self.multiplied[warp] = kept


def _item(matrix: Matrix) -> int:
    return np.dtype(_BITS[matrix.element]).itemsize


def _size(matrix: Matrix) -> int:
    return _item(matrix) * matrix.box[0] * matrix.box[1]


def _as_tf32(bits: Array) -> Array:
    """The nearest numbers of 10 bits of fraction, the even one of two, and one NaN for all, as an
    H200 was seen to make them."""
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > 0x7F800000
    last = bits >> np.uint32(13) & np.uint32(1)
    nearest = bits + last + np.uint32(0xFFF) & np.uint32(0xFFFFE000)
    return np.where(is_nan, np.uint32(0x7FFFFFFF), nearest)


def _permuted(place: Array) -> Array:
    """An address of a tile of permuted lines: bits 4 to 6 are changed by bits 7 to 9."""
    return place ^ ((place >> 7 & 7) << 4)


def _places(word: int, lines: Array, turned: bool, item: int, one: Instruction) -> Array:
    """The addresses of the elements of 32 bytes of the inner axis, a row for each line."""
    if word >> 62 != _PERMUTED or word & _OTHER:
        raise PtxError(f"{one}: describes a tile in another way")
    start, leading, stride = ((word >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    inner = np.arange(32 // item)
    if turned:
        across = lines // 64 * leading + lines % 64 * 2
        return _permuted(start + across[:, None] + inner // 8 * stride + inner % 8 * _LINE)
    down = lines // 8 * stride + lines % 8 * _LINE
    return _permuted(start + down[:, None] + item * inner)


def _rows(words: list[Array], element: str) -> Array:
    """The 16 rows that a warp holds of a first factor, over 16 of the inner axis."""
    found = np.zeros((16, 16))
    lane = np.arange(_WARP)
    for number, word in enumerate(words):
        halves = word.astype(np.uint32).view(np.uint16).reshape(_WARP, 2)
        values = _values(np.ascontiguousarray(halves), element)
        for part in range(2):
            column = 2 * (lane % 4) + 8 * (number // 2) + part
            found[lane // 4 + 8 * (number % 2), column] = values[:, part]
    return found


def _values(words: Array, element: str) -> Array:
    match element:
        case "f16":
            return words.view(np.float16).astype("f8")
        case "tf32":
            return (words & np.uint32(0xFFFFE000)).view(np.float32).astype("f8")
        case "s8" | "u8":
            return words.view("i1" if element == "s8" else "u1").astype("i8")
    return (words.astype(np.uint32) << np.uint32(16)).view(np.float32).astype("f8")


# --- the code of the instructions ---


def _exactly(w: Writer, one: Instruction) -> None:
    if not (w.program.exact and w.program.target == 90):
        raise PtxError(f"{one}: needs sm_90a")


def mbarrier(w: Writer, one: Instruction) -> None:
    """The code of an operation on an mbarrier."""
    words, name = one.modifiers, w.constant(one)
    remote = ("arrive", "shared::cluster", "b64")
    if words == remote:
        words = ("arrive", "shared::cta", "b64")
    if w.program.target < 90 or words[-2:] != ("shared::cta", "b64"):
        raise PtxError(f"{one}: unknown instruction, or before sm_90")
    guard = w.each(w.guard) if w.guard else "None"
    match words[:-2]:
        case ("init",):
            place, count = one.operands
            many = w.each(w.read(count, TYPES["u32"]))
            w.lines.append(f"F.stages.init({w.address(place, 'shared')}, {many}, W, {name})")
        case ("arrive",) | ("arrive", "expect_tx"):
            _, place, *bytes = one.operands
            many = w.each(w.read(bytes[0], TYPES["u32"])) if bytes else "None"
            given = f"{w.address(place, 'shared')}, {many}"
            w.lines.append(f"F.stages.arrive({given}, W, {guard}, {name})")
        case ("try_wait", "parity"):
            to, place, parity = one.operands
            given = f"{w.address(place, 'shared')}, {w.each(w.read(parity, TYPES['u32']))}"
            found = w.name(f"F.stages.complete({given}, W, {name})")
            w.write(to, TYPES["pred"], V(found))
        case _:
            raise PtxError(f"{one}: unknown instruction")


def setmaxnreg(w: Writer, one: Instruction) -> None:
    """The code of giving registers up, or taking them."""
    _exactly(w, one)
    how, *words = one.modifiers
    if w.guard or how not in ("inc", "dec") or words != ["sync", "aligned", "u32"]:
        raise PtxError(f"{one}: unknown instruction")
    count = w.read(one.operands[0], TYPES["u32"]).text
    w.lines.append(f"F.stages.set_registers(T, int({count}), {how == 'inc'}, {w.constant(one)})")


def mapa(w: Writer, one: Instruction) -> None:
    """The code of an address in another block of the cluster."""
    if one.modifiers != ("shared::cluster", "u32") or w.program.target < 90 or w.guard:
        raise PtxError(f"{one}: unknown instruction, or before sm_90")
    to, place, rank = one.operands
    values = [w.read(part, TYPES["u32"]) for part in (place, rank)]
    form = f"({{0}} & np.uint32({(1 << RANK_AT) - 1})) | ({{1}} << np.uint32({RANK_AT}))"
    w.write(to, TYPES["u32"], w.make(form, *values))


def barrier(w: Writer, one: Instruction) -> None:
    """The code of the barrier of a cluster."""
    if w.program.target < 90 or w.guard:
        raise PtxError(f"{one}: has a guard, or is before sm_90")
    where, what, *aligned = one.modifiers
    if aligned[:1] in ([["relaxed"], ["release"]] if what == "arrive" else [["acquire"]]):
        del aligned[0]
    if where != "cluster" or what not in ("arrive", "wait") or aligned not in ([], ["aligned"]):
        raise PtxError(f"{one}: unknown instruction")
    name = w.constant(one)
    if aligned:
        w.lines.append(f"F.stages.together(T, {name})")
    w.lines.append("F.stages.meet(T)" if what == "arrive" else f"F.stages.leave(T, {name})")


def bulk(w: Writer, one: Instruction) -> None:
    """The code of a copy of a box."""
    target, source, barrier, *to_all = one.operands
    to_many = ("multicast::cluster",) if to_all else ()
    axes = len(source.at) if isinstance(source, Address) else 0
    expected = (
        "async", "bulk", "tensor", f"{axes}d", "shared::cluster", "global", "tile",
        "mbarrier::complete_tx::bytes",
    )  # fmt: skip
    if one.modifiers != (*expected, *to_many) or w.program.target < 90 or not 3 <= axes <= _AXES:
        raise PtxError(f"{one}: unknown instruction, or before sm_90")
    assert isinstance(source, Address)
    at = ", ".join(w.each(w.read(part, TYPES["u32"])) for part in source.at)
    described = w.address(Address(source.base, source.offset), "global")
    mask = w.each(w.read(to_all[0], TYPES["b16"])) if to_all else "np.zeros(n, 'u2')"
    given = f"{w.address(target, 'shared')}, {described}, [{at}], {w.address(barrier, 'shared')}"
    given += f", {mask}, {w.each(w.guard) if w.guard else None}"
    w.lines.append(f"F.stages.copy({given}, W, {w.constant(one)})")


def wgmma(w: Writer, one: Instruction) -> None:
    """The code of a product of two tiles."""
    _exactly(w, one)
    words = one.modifiers
    if words[0] == "mma_async" and words[-2] != words[-1] and w.program.version < _MIXED_VERSION:
        raise PtxError(f"{one}: needs PTX 8.4")
    if w.guard:
        raise PtxError(f"{one}: has a guard")
    if words == ("fence", "sync", "aligned"):
        return
    if words == ("commit_group", "sync", "aligned"):
        w.lines.append("F.stages.commit(T)")
        return
    if words == ("wait_group", "sync", "aligned"):
        left = w.read(one.operands[0], TYPES["u32"]).text
        w.lines.append(f"F.stages.settle(T, int({left}), {w.constant(one)})")
        return
    sums, first, *others = one.operands
    inner, summed = _MULTIPLIED.get(words[5:], (0, ""))
    if words[:3] != ("mma_async", "sync", "aligned") or words[4:5] != (summed,):
        raise PtxError(f"{one}: unknown instruction")
    columns = int(words[3].removeprefix("m64n").removesuffix(f"k{inner}"))
    if not isinstance(sums, Group) or len(sums.parts) != columns // 2 or columns % 8:
        raise PtxError(f"{one}: {columns // 2} registers are needed")
    if summed == "s32" and columns > _FEW_COLUMNS and columns % 16:
        raise PtxError(f"{one}: there is none of integers with {columns} columns")
    held = first.parts if isinstance(first, Group) else ()
    if held and (len(held) != _HELD_WORDS or words[5] not in _HALVES):
        raise PtxError(f"{one}: {_HELD_WORDS} registers of 16-bit floats are a first factor")
    tiles = others[:1] if held else [first, others[0]]
    added, *scales = [getattr(each, "value", None) for each in others[1:]]
    ones = 0 if summed == "s32" else 2
    wanted = ones + (len(tiles) if words[5] in _HALVES else 0)
    if len(scales) != wanted:
        raise PtxError(f"{one}: {wanted + 1} numbers follow the tiles")
    turned = tuple(scales[ones:] or [0, 0])
    if scales[:ones] != [1] * ones or any(each not in (0, 1) for each in (added, *turned)):
        raise PtxError(f"{one}: other scales are not known here")
    texts = [w.each(w.read(part, TYPES["b32"])) for part in held]
    texts += [w.each(w.read(part, TYPES["b64"])) for part in tiles]
    texts += [w.each(w.read(part, TYPES[summed])) for part in sums.parts]
    form = ((columns, *words[5:]), turned, len(held), added)
    found = w.name(f"F.stages.multiply(T, {form!r}, ({', '.join(texts)},), {w.constant(one)})")
    for at, part in enumerate(sums.parts):
        w.write(part, TYPES[summed], V(w.name(f"{found}[{at}]")))
