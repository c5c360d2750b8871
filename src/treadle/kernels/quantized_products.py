"""Products of rows of activations with quantized matrices, whose planes are arrays of a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import DType, float32, i32, int32, uint32
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code.activation_prologues import Prologue, row_packer, vectors_of
from treadle.kernels.device_code.quantized_activations import (
    LANES,
    PACKED,
    PACKED_FLOATS,
    Packing,
    packer,
)
from treadle.kernels.device_code.quantized_formats import FORMS, GROUP, PLANES
from treadle.kernels.device_code.quantized_products import MOST_FORMATS, Spread, Work, multiplier
from treadle.kernels.device_code.quantized_products_cpu import (
    LINES,
    TILE_LANES,
    CpuWork,
    multiplier_cpu,
    tile_multiplier_cpu,
)
from treadle.kernels.launching import flat, new, packed, serial_threads
from treadle.kernels.machine import Machine, machine_of
from treadle.lang.types import VectorType
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

MOST_ROWS = 8
"""The rows of activations for which a kernel has sums in registers."""
_MOST_PARTS = 4  # of such rows, until a GPU is faster by tiles
_PACKED_TOGETHER = 8  # groups of a block, on GPUs
_BUSY = 1 << 16  # threads that keep a GPU busy
_INTEGERS = VectorType(i32, 4)
_PACKED = Prologue("packed", 0)
# Up to which sizes each block of a product computes its activations by itself: elements of the
# matrices, which take less time to be read than another launch takes; elements of the activations,
# and what they are computed from; bytes of shared memory.
_FUSED, _FUSED_ROWS, _FUSED_READS, _FUSED_BYTES = 1 << 23, 1 << 13, 1 << 15, 24 << 10
_LARGE = 1 << 25  # elements of a matrix with a launch of its own
_FUSED_BLOCKS = 264  # a prologue for each: two of a large GPU's multiprocessors
_SOFTWARE_BLOCKS = 8


def packed_shape(rows: int, n: int, floats: bool) -> tuple[tuple[int, ...], DType]:
    """The shape and dtype of packed activations."""
    words = PACKED_FLOATS if floats else PACKED
    return (rows, n // GROUP * words), float32 if floats else int32


def pack(x: DeviceArray, packing: Packing) -> DeviceArray:
    """Rows of activations, float32, as the kernels take them."""
    rows, n = x.shape
    shape, dtype = packed_shape(rows, n, packing.floats)
    out = new(x, dtype, *shape)
    if out.size:
        together = 1 if packing.serial else _PACKED_TOGETHER
        groups = n // GROUP
        kernel = packer(packing, together)
        kernel[(-(-groups // together), rows), LANES * together](flat(x), flat(out), groups)
    return out


class Matrix(NamedTuple):
    """A matrix of a format: the names of its planes, in the order of `PLANES`, where each begins in
    its array and how many elements it has, and its rows."""

    format: str
    present: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    rows: int


def multiply_packed(act: DeviceArray, *more: Any) -> DeviceArray:
    """The product of packed activations with a matrix. `more` are arrays with its planes, the
    matrix, whether activations are floats, and how many there are in a row."""
    *arrays, matrix, floats, n = more
    many, rows = act.shape[0], matrix.rows
    out = new(act, float32, many, rows)
    if out.size:
        serial = serial_threads(act.device)
        planes, groups = _planes(matrix, iter(arrays), serial), n // GROUP
        if serial:
            arguments = (*planes, flat(act), flat(out), rows, groups)
            _multiply_on_host(CpuWork(matrix.format, floats, many), arguments, rows)
            return out
        _multiply_by_warps(act, [(matrix, planes)], floats, n, out)
    return out


def multiply_rows(*given: Any) -> list[DeviceArray]:
    """The product of rows, after a prologue, with several matrices: what each gives for a row, one
    after the other; and before it the stream that the prologue writes, if it does. `given` are the
    arrays of the prologue, then the planes of all matrices; the prologue, what is added to mean
    squares, whether activations are floats, how many rows there are, and the matrices."""
    *arrays, prologue, least, floats, many, matrices = given
    first, n = arrays[0], prologue.columns
    taken = iter(arrays[prologue.arrays :])
    sources = [flat(array) for array in arrays[: prologue.arrays]]
    made = [(matrix, _planes(matrix, taken)) for matrix in matrices]
    total = sum(matrix.rows for matrix in matrices)
    out = new(first, float32, many, total)
    results = [new(first, float32, many, n), out] if prologue.writes else [out]
    machine, base = machine_of(first.device), 0
    most = first.device.limits.max_buffers_per_kernel - 1  # beside the result
    buffers = most - prologue.arrays - prologue.writes
    fused = is_fused(machine, prologue, floats, many, total) and all(
        len(matrix.present) <= buffers for matrix in matrices
    )
    if not fused:
        buffers = most - 1
        shape, dtype = packed_shape(many, n, floats)
        act = new(first, dtype, *shape)
        threads = _threads(machine)
        packer_of = row_packer(prologue, floats, threads, machine.subgroup == 32)
        slices = 1 if machine.slow_to_compile else -(-n // (4 * threads))
        packer_of[(slices, many), threads](
            *_of_prologue(prologue, sources, results[0]), flat(act), least
        )
        prologue, sources = _PACKED, [flat(act)]
    several = MOST_FORMATS if fused or not machine.slow_to_compile else 1
    for group in _groups(made, n, several, buffers):
        rows = sum(matrix.rows for matrix, _ in group)
        into = out.view((out.size - base,), (1,), out.offset + base)
        if fused:
            work = Work(tuple(matrix.format for matrix, _ in group), floats, many, prologue)
            spread, repeats = _fused_spread(machine, work, rows)
            before = _of_prologue(prologue, sources, results[0])
            _launch(work, spread, repeats, before, group, into, total, n, many, least)
        else:
            part = sources[0].view((many, shape[1]), (shape[1], 1), sources[0].offset)
            _multiply_by_warps(part, group, floats, n, into, total)
        base += rows
        if prologue.writes:  # then the stream is there
            prologue = prologue._replace(added=False, scaled=False)
            sources = [flat(results[0]), sources[2]]
    return results


def _planes(
    matrix: Matrix, arrays: Iterator[DeviceArray], serial: bool = False
) -> tuple[DeviceArray, ...]:
    """A matrix's planes, in the order of `PLANES`. Instead of those that there are not, others."""
    given = {}
    for name, (start, size) in zip(matrix.present, matrix.places, strict=True):
        array = next(arrays)
        given[name] = array.view((size,), (1,), array.offset + start)
    if FORMS[matrix.format].together is not None and not serial:
        given |= {name: flat_words(given[name]) for name in ("scales", "mins") if name in given}
    words = [flat_words(given["values"])]
    words.append(flat_words(given["high"]) if "high" in given else words[0])
    return (*words, *(given.get(name, words[0]) for name in PLANES[2:]))


_Group = Sequence[tuple[Matrix, tuple[DeviceArray, ...]]]


def _groups(made: _Group, n: int, most: int, buffers: int) -> Iterator[_Group]:
    """The matrices of each launch: neighbours, at most so many, as a kernel has arrays for. Large
    ones have launches of their own, which cost them nothing."""
    group: list[tuple[Matrix, tuple[DeviceArray, ...]]] = []
    for each in made:
        count = sum(len(matrix.present) for matrix, _ in (*group, each))
        large = each[0].rows * n > _LARGE
        if group and (len(group) == most or count > buffers or large):
            yield group
            group = []
        group.append(each)
    yield group


def _of_prologue(
    prologue: Prologue, sources: Sequence[DeviceArray], stream: DeviceArray
) -> tuple[Any, ...]:
    """What a kernel takes for a prologue."""
    remaining = iter(sources)
    first = next(remaining)
    second = next(remaining) if prologue.added or prologue.kind == "joined" else 0
    weights = next(remaining) if prologue.kind == "normed" else 0
    others = next(remaining) if prologue.scaled else 0
    return first, second, weights, others, flat(stream) if prologue.writes else 0


def is_fused(machine: Machine, prologue: Prologue, floats: bool, many: int, rows: int) -> bool:
    """Whether each block of a product computes its activations by itself, so that no other launch
    does."""
    n = prologue.columns
    size = many * n
    return (
        not machine.slow_to_compile  # for which few kernels serve all products
        and many <= MOST_ROWS
        and rows * n <= _FUSED
        and size <= _FUSED_ROWS
        and size * prologue.parts <= _FUSED_READS
        and size // GROUP * vectors_of(floats) * 16
        <= min(_FUSED_BYTES, machine.shared_bytes - 2048)
    )


def _threads(machine: Machine) -> int:
    return 64 if machine.slow_to_compile else min(256, machine.most_threads)


def _fused_spread(machine: Machine, work: Work, rows: int) -> tuple[Spread, int]:
    """How threads share the work after a prologue, which few large blocks compute; and for how many
    rows of a matrix a thread is there."""
    threads, most = _threads(machine), _FUSED_BLOCKS
    if machine.software:
        most = _SOFTWARE_BLOCKS
    blocks, lines = -(-rows // (threads // 32)), 1
    if blocks > most and not machine.slow_to_compile:
        blocks, lines = -(-blocks // 2), 2
    subgroups, unrolled = machine.subgroup == 32, not machine.slow_to_compile
    spread = Spread(threads, 32, lines, subgroups and unrolled, unrolled, repeated=True)
    return spread, -(-blocks // most)


def _multiply_by_warps(
    act: DeviceArray, group: _Group, floats: bool, n: int, out: DeviceArray, pitch: int = 0
) -> None:
    """The product of a few packed rows with some matrices."""
    many = act.shape[0]
    rows = sum(matrix.rows for matrix, _ in group)
    parts = -(-many // MOST_ROWS)
    formats = tuple(matrix.format for matrix, _ in group)
    work = Work(formats, floats, -(-many // parts), _PACKED, parts > 1)
    spread = spread_for(machine_of(act.device), work, rows, n // GROUP)
    if not spread.unrolled:  # one kernel for any number of rows
        work = work._replace(rows=MOST_ROWS, split=True)
    if len(group) > 1:
        spread = spread._replace(repeated=True)
    _launch(work, spread, 1, (flat(act), 0, 0, 0, 0), group, flat(out), pitch or rows, n, many, 0.0)


def _launch(
    work: Work, spread: Spread, repeats: int, before: tuple[Any, ...], group: _Group,
    out: DeviceArray, pitch: int, n: int, many: int, least: float,
) -> None:  # fmt: skip
    teams = spread.threads // spread.span * spread.lines * repeats
    blocks = [-(-matrix.rows // teams) for matrix, _ in group]
    others = group[1][1] if len(group) > 1 else (0,) * len(PLANES)
    parts = -(-many // work.rows)
    multiplier(work, spread)[sum(blocks) * parts, spread.threads](
        *before, *group[0][1], *others, out,
        packed(_INTEGERS, group[0][0].rows, pitch, blocks[0], repeats), group[-1][0].rows,
        n // GROUP, many, least,
    )  # fmt: skip


def _multiply_on_host(work: CpuWork, arguments: tuple[Any, ...], rows: int) -> None:
    if work.rows > MOST_ROWS:
        blocks = -(-rows // TILE_LANES)
        tile_multiplier_cpu(work.format)[blocks, TILE_LANES](*arguments, work.rows)
    else:
        multiplier_cpu(work)[-(-rows // LINES), LANES](*arguments)


def spread_for(machine: Machine, work: Work, rows: int, groups: int) -> Spread:
    """How a GPU's threads share the work: a thread reads at least four vec4s of a row, and several
    rows as long as there are threads for all multiprocessors."""
    if machine.slow_to_compile:
        return Spread(64, 32, 1, False, unrolled=False)
    forms = [FORMS[name] for name in work.formats]
    step = max(form.step for form in forms)
    deep = max(form.step * form.wide for form in forms)  # groups of a thread
    vectors = groups // step * 2
    span = 32 if vectors >= 128 else 16 if vectors >= 64 else 8
    lines = 2 if work.rows == 1 or deep == 4 else 4
    if rows * span // lines < _BUSY:
        span, lines = 32, 1
    return Spread(128, span, lines, machine.subgroup == 32)


def flat_words(array: DeviceArray) -> DeviceArray:
    """The bytes of a contiguous array as words of 32 bits."""
    item = array.dtype.itemsize
    count, offset = array.size * item // 4, array.offset * item // 4
    return DeviceArray(array.device, array.storage, uint32, (count,), None, offset)


def can_multiply(device: Device, name: str, floats: bool, many: int, rows: int, n: int) -> bool:
    """Whether there are kernels for a matrix of a format and size, and if they are faster for so
    many rows of activations than a product of matrices."""
    form = FORMS.get(name)
    if form is None or n % (GROUP * (2 if form.paired else 1)):
        return False
    if many * max(rows, n) >= MOST_NARROW:
        return False
    most = MOST_ROWS * _MOST_PARTS
    if serial_threads(device):
        most = MOST_ROWS if floats else MOST_NARROW
    size = rows * n  # of the largest plane at most, in bytes
    return 0 < many <= most and 0 < size < min(4 * MOST_NARROW, device.limits.max_binding_size)


__all__ = [
    "MOST_ROWS", "Matrix", "can_multiply", "multiply_packed", "multiply_rows", "pack",
    "packed_shape",
]  # fmt: skip
