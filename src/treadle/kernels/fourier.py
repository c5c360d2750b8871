"""Fourier transforms along one axis, of any length.

A length without prime factors above 31 that fits a block (or, where threads are serial, a thread)
takes one pass over memory. A longer one is split into n = n1 * n2: transforms of length n1 over
elements n2 apart, a multiplication by twiddle factors, then transforms of length n2, written
transposed (Bailey 1990, FFTs in external or hierarchical memory); or into three such passes. Other
lengths become a convolution with a chirp (Bluestein 1970), computed by transforms of a longer
length.

An even number of real elements is transformed as half as many complex ones. The host computes all
factors in float64, once for each length, and the device caches them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treadle import lang as td
from treadle.core.dtypes import DType, c64, c128, f32, f64
from treadle.core.errors import ShapeError
from treadle.core.limits import MOST_NARROW, Limits
from treadle.kernels import fourier_plans as plans
from treadle.kernels.device_code import fourier_blocks, fourier_lines, fourier_passes
from treadle.kernels.device_code.fourier_passes import Lines, Pass, Steps
from treadle.kernels.launching import flat, new, packed, serial_threads
from treadle.kernels.tables import table_of
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.convert import Packed
from treadle.runtime.devices import Device

Table = np.ndarray[Any, Any]
_UNTANGLING = 256  # threads of a block
# Up to so many elements, each has its own twiddle factor in a table; beyond, two short tables are
# multiplied. The limit is higher on the CPU, where neighbours' factors are one vector load.
_MOST_TWIDDLES = 1 << 16
_MOST_TWIDDLES_SERIAL = 1 << 22


class _Job(NamedTuple):
    """A transform of the lines of an array (outer, given, inner) to an array (outer, kept, inner).

    Only the first `taken` of the given elements are read; the others count as zeros. `read` and
    `write` are as in `Pass`. `sign` is -1 to conjugate what is read; `scale` multiplies the real
    and imaginary parts of the result.
    """

    outer: int
    given: int
    inner: int
    length: int
    kept: int
    taken: int
    read: str = "complex"
    write: str = "complex"
    sign: float = 1.0
    scale: tuple[float, float] = (1.0, 1.0)
    before: Any = 0
    after: Any = 0
    two_tables: bool = False


_NEEDED = {
    "pairs": lambda n: 2 * n, "hermitian": lambda n: n // 2 + 1, "halves": lambda n: n + 1
}  # fmt: skip


def _needed(read: str, n: int) -> int:
    """Elements that a transform of length n is made of."""
    return _NEEDED[read](n) if read in _NEEDED else n


def _job(sides: tuple[int, int, int], n: int, kept: int, read: str, **more: Any) -> _Job:
    outer, given, inner = sides
    return _Job(outer, given, inner, n, kept, min(given, _needed(read, n)), read, **more)


def transform(
    x: DeviceArray, axis: int, n: int, inverse: bool = False, scale: float = 1.0
) -> DeviceArray:
    """The sums of x[j] exp(-2 pi i j k / n), times `scale`, for k from 0 to n - 1, along an axis
    that is cut or filled up with zeros to n elements. `inverse` takes exp(+2 pi i j k / n).

    >>> import treadle as td
    >>> transform(td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")._array, 0, 4).to_host()
    array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    sides = _sides(x, axis)
    out = _result(x, axis, n, _complex(x.dtype))
    if out.size:
        read = "complex" if x.dtype in (c64, c128) else "real"
        sign, scales = (-1.0, (scale, -scale)) if inverse else (1.0, (scale, scale))
        _run(flat(x), flat(out), _job(sides, n, n, read, sign=sign, scale=scales))
    return out


def transform_real(
    x: DeviceArray, axis: int, n: int, conjugate: bool = False, scale: float = 1.0
) -> DeviceArray:
    """The first n // 2 + 1 elements of `transform` of real numbers; the others are conjugates of
    these. `conjugate` gives the conjugates.

    >>> import treadle as td
    >>> transform_real(td.asarray([1.0, 2.0, 3.0, 4.0], device="cpu")._array, 0, 4).to_host()
    array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    outer, given, inner = _sides(x, axis)
    half = n // 2
    out = _result(x, axis, half + 1, _complex(x.dtype))
    if not out.size:
        return out
    scales = (scale, -scale if conjugate else scale)
    source, read = flat(x), "pairs"
    if n % 2:
        job = _job((outer, given, inner), n, half + 1, "real", scale=scales)
        _run(source, flat(out), job)
        return out
    if inner == 1 and given % 2 == 0 and source.offset % 2 == 0:
        source, read, given = _paired(source), "complex", given // 2
    parts = half // 2 + 1
    roots = _table(x, ("roots", n, parts), lambda: plans.roots(n, parts))
    component = _component(x.dtype)
    job = _job((outer, given, inner), half, half, read)
    room = _capacity(x.device, component)
    if not serial_threads(x.device) and (
        plans.split(half, outer, inner, room) == (half,)
        or plans.block_convolution(half, inner, room) is not None
    ):
        scales = (0.5 * scales[0], 0.5 * scales[1])
        job = job._replace(kept=half + 1, write="half", scale=scales, after=roots)
        _run(source, flat(out), job)
        return out
    packed = new(x, _complex(x.dtype), outer * half * inner)
    _run(source, packed, job)
    threads = min(_UNTANGLING, x.device.limits.max_threads_per_block)
    groups = -(-parts * inner // threads)
    kernel = fourier_passes.untangler(component, inner == 1)
    scales = tuple(component.numpy.type(0.5 * part) for part in scales)
    kernel[outer * groups, threads](packed, roots, flat(out), half, parts, inner, groups, *scales)
    return out


def transform_to_real(
    x: DeviceArray, axis: int, n: int, inverse: bool = True, scale: float = 1.0
) -> DeviceArray:
    """`transform` to n real numbers: x has the first n // 2 + 1 elements along the axis (missing
    ones are zeros), and the others are taken as conjugates of these. `inverse` as there.

    >>> import treadle as td
    >>> x = td.asarray([10 + 0j, -2 + 2j, -2 + 0j], device="cpu")
    >>> transform_to_real(x._array, 0, 4, scale=0.25).to_host()
    array([1., 2., 3., 4.], dtype=float32)
    """
    sides = _sides(x, axis)
    out = _result(x, axis, n, _component(x.dtype))
    if not out.size:
        return out
    if n % 2:
        sign = -1.0 if inverse else 1.0
        job = _job(
            sides, n, n, "hermitian", write="real", sign=sign, scale=(scale, scale)
        )  # fmt: skip
        _run(flat(x), flat(out), job)
        return out
    half = n // 2
    target, write, kept = flat(out), "pairs", n
    if sides[2] == 1:
        target, write, kept = _paired(target), "complex", half
    roots = _table(x, ("back", n, half), lambda: plans.roots(n, half).conj())
    job = _job(
        sides, half, kept, "halves", write=write, sign=1.0 if inverse else -1.0,
        scale=(scale, -scale), before=roots,
    )  # fmt: skip
    _run(flat(x), target, job)
    return out


# --- the passes of a transform -------------------------------------------------------------------


class _Distances(NamedTuple):
    """The fields of `Steps` that depend on the layout."""

    own_b: int = 0
    own_a: int = 0
    place_b: int = 0
    place_a: int = 0
    place_k: int = 0


class _Kind(NamedTuple):
    """Whether lines are convolved, and whether elements are multiplied by a chirp."""

    convolved: bool = False
    chirp: bool = False


class _Layout(NamedTuple):
    """One pass of a job: lines of a length, how many along the outer coordinate, `b` and `a`, and
    where their elements are read and written."""

    length: int
    outer: int
    along_b: int
    along_a: int
    read: _Distances
    write: _Distances
    read_across: bool = True
    write_across: bool = True


def _run(x: DeviceArray, out: DeviceArray, job: _Job) -> None:
    n, outer, inner = job.length, job.outer, job.inner
    room = _capacity(x.device, _component(x.dtype))
    if inner == 1 and (halves := plans.halves(n, room)) is not None:
        _rows(x, out, job, *halves)
        return
    parts = plans.split(n, outer, inner, room)
    if parts is None:
        _by_chirp(x, out, job)
    elif len(parts) > 1:
        _by_parts(x, out, job, parts)
    else:
        _pass(x, out, job, _only_layout(job, n, room.busy))


def _only_layout(job: _Job, length: int, busy: int = 0) -> _Layout:
    """That of a job in one pass of lines of a length. With fewer neighbours than `busy` lines,
    serial threads have too few for their vectors."""
    if job.inner > 1:
        adjacent, across = _Distances(place_a=1, place_k=1), job.inner >= busy
        return _Layout(length, job.outer, 1, 1, adjacent, adjacent, across, across)
    # Rows are counted by `a`, so that a block has some of them.
    read, write = _Distances(own_a=job.given, place_k=1), _Distances(own_a=job.kept, place_k=1)
    return _Layout(length, 1, 1, job.outer, read, write, False, False)


def _capacity(device: Device, component: DType) -> plans.Capacity:
    if serial_threads(device):
        return _FOR_THREADS[component.itemsize]
    limits = device.limits
    elements = limits.max_shared_memory // (2 * component.itemsize)
    return plans.capacity_of_blocks(elements, limits.max_threads_per_block)


# On the CPU, by the bytes of a number: blocks have 64 KiB of shared memory, and lanes 256 KiB for
# all copies of an array.
_FOR_THREADS = {
    size: plans.Capacity(8192 // size, 4096 // size, fourier_lines.LANES, 128, 32768 // size)
    for size in (4, 8)
}


def _by_parts(x: DeviceArray, out: DeviceArray, job: _Job, parts: tuple[int, ...]) -> None:
    """Two or three passes over memory."""
    n, outer, inner, first = job.length, job.outer, job.inner, parts[0]
    cofactor = n // first
    _check_size(outer * n * inner, n)
    between = new(x, _complex(x.dtype), outer * n * inner)
    steps = _Distances(place_a=1, place_k=cofactor)
    front = _with_twiddles(
        x, job._replace(kept=n, write="complex", scale=(1.0, 1.0)), first, cofactor
    )
    _pass(x, between, front, _Layout(first, outer, 1, cofactor, steps, steps))
    back = job._replace(given=n, taken=n, read="complex", sign=1.0, before=0)
    if len(parts) == 3:
        middle, last = parts[1:]
        steps = _Distances(own_b=cofactor * inner, place_a=1, place_k=last)
        again = new(x, _complex(x.dtype), between.size)
        middle_job = back._replace(kept=n, write="complex", scale=(1.0, 1.0))
        middle_job = _with_twiddles(x, middle_job, middle, last)
        _pass(between, again, middle_job, _Layout(middle, outer, first, last, steps, steps))
        read = _Distances(own_a=cofactor * inner, own_b=last * inner, place_k=1)
        write = _Distances(place_a=1, place_b=first, place_k=first * middle)
        _pass(again, out, back, _Layout(last, outer, middle, first, read, write, False))
    elif inner >= fourier_lines.LANES:  # neighbouring lines are adjacent in the input, too
        read = _Distances(own_b=cofactor * inner, place_a=1, place_k=1)
        write = _Distances(place_a=1, place_b=1, place_k=first)
        _pass(between, out, back, _Layout(cofactor, outer, first, 1, read, write))
    else:
        read = _Distances(own_a=cofactor * inner, place_k=1)
        write = _Distances(place_a=1, place_k=first)
        _pass(between, out, back, _Layout(cofactor, outer, 1, first, read, write, False))


def _with_twiddles(x: DeviceArray, job: _Job, first: int, cofactor: int) -> _Job:
    """The job with the twiddle factors between this pass and the next: one for each element, or
    the product of two from short tables where a whole table would be too large."""
    n = first * cofactor
    if n <= (_MOST_TWIDDLES_SERIAL if serial_threads(x.device) else _MOST_TWIDDLES):
        table = _table(
            x, ("pass twiddles", first, cofactor), lambda: plans.pass_twiddles(first, cofactor)
        )
        return job._replace(after=table)
    last = _radices(first, None if serial_threads(x.device) else x.device.limits)[-1]
    table = _table(
        x, ("twiddles by two", first, cofactor, last),
        lambda: plans.pass_twiddles_by_two(first, cofactor, last),
    )  # fmt: skip
    return job._replace(after=table, two_tables=True)


def _radices(n: int, limits: Limits | None) -> tuple[int, ...]:
    """The butterflies of a pass; without limits, for serial threads."""
    if limits is not None:
        return plans.block_radices(n, limits.max_threads_per_block)[0]
    found = plans.radices(n)
    assert found is not None
    return found


def _by_chirp(x: DeviceArray, out: DeviceArray, job: _Job) -> None:
    """Bluestein's algorithm: jk = (j² + k² - (k - j)²) / 2 makes the transform a convolution."""
    n, outer, inner, dtype = job.length, job.outer, job.inner, _complex(x.dtype)
    room = _capacity(x.device, _component(x.dtype))
    if not serial_threads(x.device):
        if (m := plans.block_convolution(n, inner, room)) is not None:
            _convolve(x, out, job, m)
            return
        if (parts := plans.convolution_parts(n, room)) is not None and job.write != "half":
            _convolve_by_parts(x, out, job, *parts)
            return
    m = plans.convolution_length(n)
    _check_size(outer * m * inner, n)
    if job.read in ("hermitian", "halves"):
        expanded = new(x, dtype, outer * n * inner)
        adjacent = _Distances(place_a=1)
        copied = job._replace(write="complex", kept=n, scale=(1.0, 1.0), after=0)
        _pass(x, expanded, copied, _Layout(1, outer, 1, n, adjacent, adjacent))
        x, job = expanded, job._replace(read="complex", given=n, taken=n, before=0, sign=1.0)
    middle = new(x, dtype, outer * m * inner)
    forth = job._replace(
        length=m, kept=m, write="complex", scale=(1.0, 1.0),
        before=_table(x, ("chirp", n, m), lambda: plans.chirp(n, m)),
        after=_table(x, ("spectrum", n, m), lambda: plans.chirp_spectrum(n, m)),
    )  # fmt: skip
    _run(x, middle, forth)
    back = job._replace(
        given=m, length=m, taken=m, read="complex", sign=-1.0,
        scale=(job.scale[0], -job.scale[1]), before=0, after=_chirp_back(x, n, m),
    )  # fmt: skip
    _run(middle, out, back)


def _chirp_back(x: DeviceArray, n: int, m: int) -> DeviceArray:
    return _table(x, ("chirp back", n, m), lambda: plans.chirp(n, m).conj())


def _with_chirp(x: DeviceArray, job: _Job) -> _Job:
    """The job with a multiplication by the chirp as elements are read."""
    n = job.length
    if job.read == "halves":
        table = _table(
            x, ("roots, chirp", n),
            lambda: np.concatenate([plans.roots(2 * n, n).conj(), plans.chirp(n, n)]),
        )  # fmt: skip
    else:
        table = _table(x, ("chirp", n, n), lambda: plans.chirp(n, n))
    return job._replace(before=table)


def _convolve(x: DeviceArray, out: DeviceArray, job: _Job, m: int) -> None:
    """Bluestein's algorithm in one launch."""
    n = job.length
    if job.write == "half":
        after = _table(
            x, ("chirp back, roots", n),
            lambda: np.concatenate([plans.chirp(n, n).conj(), plans.roots(2 * n, n // 2 + 1)]),
        )  # fmt: skip
    else:
        after = _chirp_back(x, n, m)
        job = job._replace(scale=(job.scale[0], -job.scale[1]))
    job = _with_chirp(x, job._replace(after=after))
    spectrum = _table(x, ("spectrum", n, m), lambda: plans.chirp_spectrum(n, m))
    _pass(x, out, job, _only_layout(job, m), spectrum)


def _convolve_by_parts(
    x: DeviceArray, out: DeviceArray, job: _Job, first: int, second: int
) -> None:
    """Bluestein's algorithm in three launches: columns; rows, forth and back; columns. In between,
    elements stay in the transposed order."""
    n, outer, inner, dtype = job.length, job.outer, job.inner, _complex(x.dtype)
    m = first * second
    _check_size(outer * m * inner, n)
    between, again = (new(x, dtype, outer * m * inner) for _ in range(2))
    steps = _Distances(place_a=1, place_k=second)
    front = _with_chirp(x, job)._replace(kept=m, write="complex", scale=(1.0, 1.0))
    front = _with_twiddles(x, front, first, second)
    _pass(x, between, front, _Layout(first, outer, 1, second, steps, steps), chirp=True)
    whole = _table(x, ("pass twiddles", first, second), lambda: plans.pass_twiddles(first, second))
    spectrum = _table(
        x, ("spectrum by rows", n, first, second),
        lambda: plans.chirp_spectrum(n, m).reshape(second, first).T.ravel(),
    )  # fmt: skip
    rows = _Distances(place_a=second, place_k=1)
    middle = _Job(outer, m, inner, m, m, m, after=whole)
    layout = _Layout(second, outer, 1, first, rows, rows, inner > 1, inner > 1)
    _pass(between, again, middle, layout, spectrum)
    back = job._replace(
        given=m, length=m, taken=m, read="complex", sign=1.0, before=0,
        scale=(job.scale[0], -job.scale[1]), after=_chirp_back(x, n, m),
    )  # fmt: skip
    _pass(again, out, back, _Layout(first, outer, 1, second, steps, steps))


def _pass(
    x: DeviceArray, out: DeviceArray, job: _Job, layout: _Layout,
    spectrum: DeviceArray | None = None, chirp: bool = False,
) -> None:  # fmt: skip
    """One launch. With a spectrum, lines are convolved; their length may be more than the job's,
    whose elements are then multiplied by a chirp, as with `chirp`."""
    shape = job._replace(before=job.before != 0, after=job.after != 0)
    limits = None if serial_threads(x.device) else x.device.limits
    kind = _Kind(spectrum is not None, chirp or layout.length > job.length)
    launch, numbers = _launch_of(shape, layout, _component(x.dtype), limits, kind)
    radices = _radices(layout.length, limits)
    twiddles = _twiddles(x, radices)
    if spectrum is None:
        launch(x, job.before, twiddles, job.after, out, *numbers)
    else:
        back = _twiddles(x, radices[::-1])
        launch(x, job.before, twiddles, spectrum, back, job.after, out, *numbers)


def _rows(x: DeviceArray, out: DeviceArray, job: _Job, first: int, second: int) -> None:
    """One launch for rows that serial threads transform as matrices."""
    shape = job._replace(before=job.before != 0, after=job.after != 0)
    launch, numbers = _launch_of_rows(shape, first, second, _component(x.dtype))
    along, across = _twiddles(x, _radices(first, None)), _twiddles(x, _radices(second, None))
    pass_twiddles = _table(
        x, ("pass twiddles", first, second), lambda: plans.pass_twiddles(first, second)
    )
    launch(x, job.before, along, pass_twiddles, across, job.after, out, *numbers)


@functools.lru_cache(1024)
def _launch_of(
    job: _Job, layout: _Layout, component: DType, limits: Limits | None, kind: _Kind
) -> tuple[Callable[..., None], tuple[Any, ...]]:
    """The kernel of a pass on its grid, and the numbers that it takes. Without limits, it is the
    one for serial threads."""
    radices = _radices(layout.length, limits)
    what = _what(job, radices, component)._replace(
        read_across=layout.read_across, write_across=layout.write_across
    )
    columns = layout.along_a * job.inner
    count = layout.outer * layout.along_b * columns
    launch: Callable[..., None]
    if limits is not None:
        room = limits.max_shared_memory // (2 * component.itemsize)
        across = layout.read_across or layout.write_across
        most = limits.max_threads_per_block
        tile = plans.block_plan(layout.length, count, room, across, most).tile
        what = what._replace(
            chirp=kind.chirp, write_cut=what.write_cut or kind.chirp,
            read_next=layout.read.place_k == 1 and job.inner == 1,
            write_next=layout.write.place_k == 1 and job.inner == 1,
            one_outer=layout.outer == 1, one_b=layout.along_b == 1, one_a=layout.along_a == 1,
        )  # fmt: skip
        make, elements = fourier_blocks.block_transformer, fourier_blocks.shared_elements
        if kind.convolved:
            make, elements = fourier_blocks.block_convolver, fourier_blocks.convolver_elements
        while tile.lines > 1 and elements(what, tile) > room:  # gaps between short lines count
            tile = tile._replace(lines=tile.lines // 2)
        blocks = -(-count // tile.lines)
        launch = make(what, tile)[blocks, tile.threads]
    elif layout.read_across or layout.write_across:
        blocks = layout.outer * layout.along_b * -(-columns // fourier_lines.LANES)
        kernel = fourier_lines.column_transformer(what, columns < fourier_lines.LANES)
        launch = kernel[blocks, fourier_lines.LANES]
    else:
        blocks = -(-count // fourier_lines.LANES)
        kernel = fourier_lines.line_transformer(what, count < fourier_lines.LANES)
        launch = kernel[blocks, fourier_lines.LANES]
    read = packed(Steps, job.given * job.inner, *layout.read, job.inner, job.taken)
    write = packed(Steps, job.kept * job.inner, *layout.write, job.inner, job.kept)
    lines = packed(Lines, count, layout.along_b, layout.along_a, job.inner)
    return launch, (read, write, lines, job.length, *_factors(job, component))


@functools.lru_cache(1024)
def _launch_of_rows(
    job: _Job, first: int, second: int, component: DType
) -> tuple[Callable[..., None], tuple[Any, ...]]:
    along, across = _radices(first, None), _radices(second, None)
    kernel = fourier_lines.row_transformer(_what(job, along, component), across)
    read = packed(Steps, job.given, 0, 0, 0, 1, second, 1, job.taken)
    write = packed(Steps, job.kept, 0, 0, 0, 1, first, 1, job.kept)
    numbers = (read, write, job.length, *_factors(job, component))
    return kernel[job.outer, fourier_lines.LANES], numbers


def _what(job: _Job, radices: tuple[int, ...], component: DType) -> Pass:
    made = 2 * job.length if job.write == "pairs" else job.length
    return Pass(
        radices, component, job.read, job.write, before=job.before, after=job.after,
        two_tables=job.two_tables, read_cut=job.taken < _needed(job.read, job.length),
        write_cut=job.kept < made, plain=job.inner == 1,
    )  # fmt: skip


def _factors(job: _Job, component: DType) -> tuple[Any, Packed]:
    """The sign of imaginary parts that are read, and what multiplies both parts of results."""
    return component.numpy.type(job.sign), packed(td.vec2[component], *job.scale)


# --- arrays --------------------------------------------------------------------------------------


def _component(dtype: Any) -> DType:
    return f64 if dtype in (f64, c128) else f32


def _complex(dtype: Any) -> DType:
    return c128 if dtype in (f64, c128) else c64


def _paired(x: DeviceArray) -> DeviceArray:
    """Real numbers, each two as a complex one."""
    return DeviceArray(
        x.device, x.storage, _complex(x.dtype), (x.size // 2,), (1,), x.offset // 2, x.key.read_only
    )


def _sides(x: DeviceArray, axis: int) -> tuple[int, int, int]:
    """How many lines there are one after the other, how long they are, how many side by side."""
    at = axis % len(x.shape)
    return math.prod(x.shape[:at]), x.shape[at], math.prod(x.shape[at + 1 :])


def _result(x: DeviceArray, axis: int, n: int, dtype: DType) -> DeviceArray:
    at = axis % len(x.shape)
    shape = (*x.shape[:at], n, *x.shape[at + 1 :])
    _check_size(max(math.prod(shape), x.size), n)
    return new(x, dtype, *shape)


def _check_size(elements: int, n: int) -> None:
    if elements >= MOST_NARROW:
        raise ShapeError(
            f"transforms of length {n} need an array of {elements} elements, and {MOST_NARROW} are "
            "too many at once: transform some of the lines at a time"
        )


def _twiddles(x: DeviceArray, radices: tuple[int, ...]) -> DeviceArray:
    return _table(x, ("twiddles", radices), lambda: plans.twiddles(radices))


def _table(x: DeviceArray, name: tuple[Any, ...], compute: Callable[[], Table]) -> DeviceArray:
    return table_of(x.device, name, _complex(x.dtype), compute)
