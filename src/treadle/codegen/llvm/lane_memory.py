"""Loads and stores of many lanes at once.

If neighbouring lanes access neighbouring elements, an access is one vector; otherwise it is LLVM's
masked gather or scatter. Where every lane has its own copy of a memory, the copies of each scalar
are neighbours too: every offset is multiplied by the number of lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from treadle.codegen.llvm import casts
from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.memory import Storage
from treadle.codegen.llvm.spelling import splat, stored_type, suffix, widened
from treadle.codegen.llvm.values import Value
from treadle.ir.types import Scalar, Type, leaves, size_of

_LINE = 64  # bytes of a cache line, which the widest vectors are too

Mask = str | None  # an operand of <lanes x i1>; None: all lanes


@dataclass(frozen=True, slots=True)
class LaneAddress:
    """Where each lane's place is: `pointer` is that of lane 0 and `step` the bytes from lane to
    lane, or `pointers` holds one for each lane. A step of 0 is one place for all."""

    storage: Storage
    pointer: str = ""
    step: int = 0
    pointers: str = ""
    offset: int = 0  # bytes that are still to be added
    scale: int = 1  # lanes, for a memory of which each has a copy

    def moved(self, bytes: int) -> LaneAddress:
        """The place that many bytes on."""
        return replace(self, offset=self.offset + bytes * self.scale)

    @property
    def is_shared(self) -> bool:
        """Whether all lanes have one place in one memory."""
        return not self.pointers and not self.step and self.scale == 1


def indexed(e: Emitter, base: LaneAddress, index: Value, type: Type, width: int) -> LaneAddress:
    """Element `index` (of i64, or with lanes in steps) of a sequence of `type` at a place."""
    size = size_of(type) * base.scale
    pointer = _flattened(e, base, width)
    shape = f"[{size} x i8]"
    if isinstance(type, Scalar) and base.scale == 1:
        shape = stored_type(type)
    if not base.pointers and index.width == 1:
        moved = e.op(f"getelementptr inbounds {shape}, ptr {pointer}, i64 {index.leaves[0]}")
        return replace(base, pointer=moved, offset=0)
    if not base.pointers and index.linear is not None and base.scale == 1:
        start, step = index.linear
        moved = e.op(f"getelementptr inbounds {shape}, ptr {pointer}, i64 {start}")
        return replace(base, pointer=moved, offset=0, step=base.step + step * size)
    if not base.pointers and base.step:
        base = replace(base, pointers=_lane_pointers(e, pointer, base.step, width), step=0)
        pointer = base.pointers
    start_type = f"<{width} x ptr>" if base.pointers else "ptr"
    vector = index.leaves[0]
    if index.width == 1:
        vector = _broadcast(e, vector, "i64", width)
    moved = e.op(
        f"getelementptr inbounds {shape}, {start_type} {pointer}, <{width} x i64> {vector}"
    )
    return replace(base, pointer="", pointers=moved, offset=0, step=0)


def _broadcast(e: Emitter, operand: str, llvm: str, width: int) -> str:
    vector = widened(llvm, width)
    first = e.op(f"insertelement {vector} poison, {llvm} {operand}, i64 0")
    return e.op(f"shufflevector {vector} {first}, {vector} poison, <{width} x i32> zeroinitializer")


def _flattened(e: Emitter, address: LaneAddress, width: int) -> str:
    """The pointer or pointers with the offset added."""
    pointer = address.pointers or address.pointer
    if not address.offset:
        return pointer
    kind = f"<{width} x ptr>" if address.pointers else "ptr"
    return e.op(f"getelementptr inbounds i8, {kind} {pointer}, i64 {address.offset}")


def _lane_pointers(e: Emitter, pointer: str, step: int, width: int) -> str:
    steps = ", ".join(f"i64 {step * lane}" for lane in range(width))
    return e.op(f"getelementptr inbounds i8, ptr {pointer}, <{width} x i64> <{steps}>")


def _pointers(e: Emitter, address: LaneAddress, width: int) -> str:
    pointer = _flattened(e, address, width)
    return pointer if address.pointers else _lane_pointers(e, pointer, address.step, width)


def load(e: Emitter, address: LaneAddress, type: Type, mask: Mask, width: int, marks: str) -> Value:
    """The values of `type` at the lanes' places; zero in lanes that the mask leaves out."""
    scalar = _packed(address, type)
    if scalar is not None:
        return _load_packed(e, address, type, scalar, mask, width, marks)
    return Value(
        tuple(
            _load_leaf(e, address.moved(offset), scalar, mask, width, marks)
            for offset, scalar in leaves(type)
        ),
        width,
    )


def _load_leaf(
    e: Emitter, address: LaneAddress, scalar: Scalar, mask: Mask, width: int, marks: str
) -> str:
    stored, size = stored_type(scalar), size_of(scalar)
    vector = widened(stored, width)
    contiguous = _contiguous(e, address, size, width)
    if contiguous and mask is None:
        loaded = e.op(f"load {vector}, ptr {contiguous}, align {size}{marks}")
    elif contiguous:
        loaded = _masked_load(e, "ptr", contiguous, vector, size, mask or "", width, marks)
    else:
        each = leaf_pointers(e, address, size, width)
        every = mask or splat("i1", "true", width)
        loaded = _masked_load(e, f"<{width} x ptr>", each, vector, size, every, width, marks)
    return casts.from_stored(e, scalar, loaded, stored, width)


def _packed(address: LaneAddress, type: Type) -> Scalar | None:
    """The scalar that all leaves of a value are, if the lanes' values are contiguous, without
    gaps: they are loaded at once and sorted out by shuffles."""
    parts = leaves(type)
    scalar = parts[0][1] if parts else None
    if scalar is None or address.pointers or address.scale > 1 or not 2 <= len(parts) <= 4:
        return None
    same = all(part == scalar for _, part in parts)
    return scalar if same and address.step == len(parts) * size_of(scalar) else None


def _load_packed(
    e: Emitter,
    address: LaneAddress,
    type: Type,
    scalar: Scalar,
    mask: Mask,
    width: int,
    marks: str,
) -> Value:
    count, size = len(leaves(type)), size_of(scalar)
    stored, pointer = stored_type(scalar), _flattened(e, address, width)
    total = width * count
    wide = widened(stored, total)
    if mask is None:
        loaded = e.op(f"load {wide}, ptr {pointer}, align {size}{marks}")
    else:
        every = _repeated(e, mask, width, count)
        loaded = _masked_load(e, "ptr", pointer, wide, size, every, total, marks)
    parts = []
    for part in range(count):
        order = _order(part + lane * count for lane in range(width))
        own = e.op(f"shufflevector {wide} {loaded}, {wide} poison, <{width} x i32> <{order}>")
        parts.append(casts.from_stored(e, scalar, own, stored, width))
    return Value(tuple(parts), width)


def _store_packed(
    e: Emitter, address: LaneAddress, scalar: Scalar, value: Value, mask: Mask, marks: str
) -> None:
    width, count, size = value.width, len(value.leaves), size_of(scalar)
    stored, pointer = stored_type(scalar), _flattened(e, address, value.width)
    parts = [casts.to_stored(e, scalar, leaf, width) for leaf in value.leaves]
    parts += ["poison"] * (count % 2)
    narrow, double, total = widened(stored, width), widened(stored, 2 * width), width * count
    joined = [
        e.op(
            f"shufflevector {narrow} {first}, {narrow} {second}, "
            f"<{2 * width} x i32> <{_order(range(2 * width))}>"
        )
        for first, second in zip(parts[::2], parts[1::2], strict=True)
    ]
    order = _order(part * width + lane for lane in range(width) for part in range(count))
    second = joined[1] if len(joined) > 1 else "poison"
    whole = e.op(
        f"shufflevector {double} {joined[0]}, {double} {second}, <{total} x i32> <{order}>"
    )
    wide = widened(stored, total)
    if mask is None:
        e.do(f"store {wide} {whole}, ptr {pointer}, align {size}{marks}")
    else:
        every = _repeated(e, mask, width, count)
        _masked_store(e, "ptr", pointer, wide, whole, size, every, total, marks)


def _order(lanes: Iterable[int]) -> str:
    return ", ".join(f"i32 {lane}" for lane in lanes)


def _repeated(e: Emitter, mask: str, width: int, count: int) -> str:
    """A mask with each lane `count` times."""
    bits = f"<{width} x i1>"
    order = _order(lane for lane in range(width) for _ in range(count))
    return e.op(f"shufflevector {bits} {mask}, {bits} poison, <{width * count} x i32> <{order}>")


def _contiguous(e: Emitter, address: LaneAddress, size: int, width: int) -> str:
    """The pointer to the first lane, if the lanes' scalars are contiguous; else ""."""
    if address.pointers:
        return ""
    own_copies = address.scale > 1 and address.step == 0
    return _flattened(e, address, width) if own_copies or address.step == size else ""


def leaf_pointers(e: Emitter, address: LaneAddress, size: int, width: int) -> str:
    """A pointer for each lane to its own scalar of `size` bytes."""
    if address.scale == 1:
        return _pointers(e, address, width)
    each = _pointers(e, address, width)
    steps = ", ".join(f"i64 {size * lane}" for lane in range(width))
    return e.op(f"getelementptr inbounds i8, <{width} x ptr> {each}, <{width} x i64> <{steps}>")


def _masked_load(
    e: Emitter, kind: str, pointer: str, vector: str, size: int, mask: str, width: int, marks: str
) -> str:
    bits = f"<{width} x i1>"
    name = "masked.load" if kind == "ptr" else "masked.gather"
    full = f"@llvm.{name}.{suffix(vector)}.{_pointer_suffix(kind, width)}"
    e.module.declare(full, f"declare {vector} {full}({kind}, {bits}, {vector})")
    return e.op(
        f"call {vector} {full}({kind} align {size} {pointer}, {bits} {mask}, "
        f"{vector} zeroinitializer){marks}"
    )


def store(
    e: Emitter, address: LaneAddress, type: Type, value: Value, mask: Mask, marks: str
) -> None:
    """Put each lane's value at its place, for the lanes of the mask."""
    width = value.width
    scalar = _packed(address, type)
    if scalar is not None:
        _store_packed(e, address, scalar, value, mask, marks)
        return
    for (offset, scalar), leaf in zip(leaves(type), value.leaves, strict=True):
        place, size = address.moved(offset), size_of(scalar)
        stored = casts.to_stored(e, scalar, leaf, width)
        vector = stored_type(scalar, width)
        contiguous = _contiguous(e, place, size, width)
        if contiguous and mask is None:
            whole = f"store {vector} {stored}, ptr {contiguous}"
            if address.storage.streamed:
                _stream(e, whole, contiguous, size, width, marks)
            else:
                e.do(f"{whole}, align {size}{marks}")
            continue
        kind, pointer = "ptr", contiguous
        if not contiguous:
            kind, pointer = f"<{width} x ptr>", leaf_pointers(e, place, size, width)
        every = mask or splat("i1", "true", width)
        _masked_store(e, kind, pointer, vector, stored, size, every, width, marks)


def _stream(e: Emitter, store: str, pointer: str, size: int, width: int, marks: str) -> None:
    """A store of a whole vector past the caches, which processors have for aligned ones: a view
    may begin anywhere."""
    bytes = min(size * width, _LINE)
    aligned, other, join = e.new_label(), e.new_label(), e.new_label()
    place = e.op(f"ptrtoint ptr {pointer} to i64")
    remainder = e.op(f"and i64 {place}, {bytes - 1}")
    e.branch(e.op(f"icmp eq i64 {remainder}, 0"), aligned, other)
    e.place(aligned)
    one = e.module.node("i32 1")
    e.do(f"{store}, align {bytes}, !nontemporal {one}{marks}")
    e.jump(join)
    e.place(other)
    e.do(f"{store}, align {size}{marks}")
    e.jump(join)
    e.place(join)


def _masked_store(
    e: Emitter,
    kind: str,
    pointer: str,
    vector: str,
    stored: str,
    size: int,
    mask: str,
    width: int,
    marks: str,
) -> None:
    bits = f"<{width} x i1>"
    name = "masked.store" if kind == "ptr" else "masked.scatter"
    full = f"@llvm.{name}.{suffix(vector)}.{_pointer_suffix(kind, width)}"
    e.module.declare(full, f"declare void {full}({vector}, {kind}, {bits})")
    e.do(
        f"call void {full}({vector} {stored}, {kind} align {size} {pointer}, {bits} {mask}){marks}"
    )


def _pointer_suffix(kind: str, width: int) -> str:
    return "p0" if kind == "ptr" else f"v{width}p0"
