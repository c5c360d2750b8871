"""Writing, adding and folding at places that an array of flat indices names, into the target
itself; `scattered` does the same to a copy."""

from __future__ import annotations

from treadle.core.dtypes import DType, i32, i64
from treadle.core.limits import MOST_NARROW
from treadle.kernels.device_code import scattering
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, for_any_sizes, new, serial_threads, start, zeros
from treadle.kernels.sort import sort_with_order
from treadle.lang.decorators import Kernel
from treadle.runtime.arrays import DeviceArray

_MOST_THREADS = 1 << 30  # of a launch
_FEW = 4096  # indices for which one thread of the CPU is enough
# On GPUs: elements of a target that a block keeps in shared memory, of which it has so much; its
# threads; and how many more indices it should have, since its sums are added to the target then.
_PRIVATE, _PRIVATE_BYTES = (1024, 4096, 8192), 32768
_PRIVATE_THREADS = 512
_PRIVATE_SHARE = 8
_MANY = 1 << 15  # indices of which some are likely to be equal
_MOST_BLOCKS = 1024


def put(
    target: DeviceArray, index: DeviceArray, values: DeviceArray, distinct: bool = False
) -> None:
    """Write `target[index[i]] = values[i]`; of values for one element, the last one stays.

    Values have the target's dtype; there is one, or one for each index. With `distinct` the caller
    promises that no index is there twice, which saves looking for the last. On every device the
    result is the same: a first launch finds the last place of each index, a second writes.

    >>> import treadle as td
    >>> x = td.zeros(4, device="cpu")._array
    >>> at = td.asarray([1, 3, 1], device="cpu")._array
    >>> put(x, at, td.asarray([5.0, 6.0, 7.0], device="cpu")._array)
    >>> x.to_host().tolist()
    [0.0, 7.0, 0.0, 6.0]
    """
    if not index.size:
        return
    target, index, values = flat(target), flat(index), flat(values)
    if serial_threads(target.device):
        _in_ranges(target, index, values, "put")
        return
    if distinct or values.size == 1:
        scattering.put.launch(index.size, target, index, values, int(values.size > 1))
        return
    if target.size >= MOST_NARROW:  # a place for each element would take more memory than it does
        _in_segments(target, index, values, "put")
        return
    last = zeros(target, i32, target.size)
    scattering.find_last.launch(index.size, last, index)
    scattering.put_last.launch(index.size, target, index, values, last)


def add(target: DeviceArray, index: DeviceArray, values: DeviceArray) -> None:
    """Do `target[index[i]] += values[i]`, every one of them; there is one value, or one for each
    index, in the target's dtype.

    Numbers of 32 bits, and of 64 where the device has such atomics, are added by atomics, so that
    the rounding of floats depends on the order of threads. Narrower ones are summed in 32 bits
    first. Others are sorted by index, and one thread computes each sum.

    >>> import treadle as td
    >>> x = td.zeros(3, device="cpu")._array
    >>> add(x, td.asarray([2, 0, 2], device="cpu")._array, td.ones(3, device="cpu")._array)
    >>> x.to_host().tolist()
    [1.0, 0.0, 2.0]
    """
    if not index.size:
        return
    target, index, values = flat(target), flat(index), flat(values)
    assert isinstance(target.dtype, DType)
    step = int(values.size > 1)
    real = target.dtype.component
    parts = target.dtype.itemsize // real.itemsize
    form = wide(real)
    if _lacks_atomics(target):
        _in_segments(target, index, values, "sum")
        return
    sums = target if form == real else zeros(target, form, target.size)
    if serial_threads(target.device):
        _in_ranges(sums, index, values, "sum")
    elif (slots := _private_slots(sums, index, form, step)) is not None:
        _add_in_blocks(sums, index, values, form, slots)
    else:
        kernel = scattering.adder(form, parts)
        kernel.launch(index.size * parts, _parts(sums), index, _parts(values), step)
    if form != real:
        _for_all(scattering.converter(real, form), target, sums)


def fold(target: DeviceArray, index: DeviceArray, values: DeviceArray, how: str) -> None:
    """Multiply elements by all values that go to them, or keep the least or the greatest of both
    ("prod", "min", "max"; NaN stays NaN). There is one value, or one for each index, in the
    target's dtype, which is not complex.

    Products of floats depend on the order of threads as sums do.

    >>> import treadle as td
    >>> x = td.ones(3, device="cpu")._array
    >>> at = td.asarray([2, 0, 2], device="cpu")._array
    >>> fold(x, at, td.asarray([3.0, 5.0, 7.0], device="cpu")._array, "prod")
    >>> x.to_host().tolist()
    [5.0, 1.0, 21.0]
    """
    if not index.size:
        return
    target, index, values = flat(target), flat(index), flat(values)
    assert isinstance(target.dtype, DType)
    dtype, form = target.dtype, wide(target.dtype)
    if _lacks_atomics(target):
        _in_segments(target, index, values, how)
        return
    folded = target if form == dtype else _as(form, target)
    if serial_threads(target.device):
        _in_ranges(folded, index, values, how)
    else:
        bits = i64 if form.itemsize == 8 else i32
        kernel = scattering.folder(form, bits, how)
        seen = _seen_as(bits, folded)
        kernel.launch(index.size, seen, index, values, int(values.size > 1))
    if folded is not target:
        _for_all(scattering.caster(dtype), target, folded)


@for_any_sizes
def scattered(
    x: DeviceArray, index: DeviceArray, values: DeviceArray, how: str, distinct: bool = False
) -> DeviceArray:
    """A copy of x into which values are written ("put"), added ("sum") or folded ("prod", "min",
    "max") at flat indices.

    >>> import treadle as td
    >>> at, one = td.asarray([1, 1], device="cpu")._array, td.ones(1, device="cpu")._array
    >>> scattered(td.zeros(2, device="cpu")._array, at, one, "sum").to_host().tolist()
    [0.0, 2.0]
    """
    target = x.copy_to(x.device)
    if how == "put":
        put(target, index, values, distinct)
    elif how == "sum":
        add(target, index, values)
    else:
        fold(target, index, values, how)
    return target


def _private_slots(target: DeviceArray, index: DeviceArray, form: DType, step: int) -> int | None:
    """Room for the elements of a target that blocks add to in shared memory; None for one that is
    too large, has too few indices, or has numbers of 64 bits that differ."""
    many = _MANY <= index.size < MOST_NARROW and index.size >= target.size * _PRIVATE_SHARE
    if not many or target.dtype != form or (step and form.itemsize != 4):
        return None
    most = min(target.device.limits.max_shared_memory, _PRIVATE_BYTES) // 4
    return next((slots for slots in _PRIVATE if target.size <= slots <= most), None)


def _add_in_blocks(
    target: DeviceArray, index: DeviceArray, values: DeviceArray, form: DType, slots: int
) -> None:
    threads = min(_PRIVATE_THREADS, target.device.limits.max_threads_per_block)
    stretch = max(-(-index.size // _MOST_BLOCKS), target.size * _PRIVATE_SHARE, 4 * threads)
    kernel = scattering.private_adder(form, slots, threads, values.size == 1)
    launch = (-(-index.size // stretch), threads)
    kernel[launch](target, index, values, target.size, stretch, index.size)


def _lacks_atomics(target: DeviceArray) -> bool:
    """Whether a device has no atomics of the size of an element's numbers."""
    assert isinstance(target.dtype, DType)
    return target.dtype.component.itemsize == 8 and not target.device.traits.atomics_64


def _in_segments(target: DeviceArray, index: DeviceArray, values: DeviceArray, how: str) -> None:
    """Without atomics: values are sorted by index, and one thread folds those of an element."""
    ordered, order = sort_with_order(index)
    kernel = scattering.segment_folder(how)
    kernel.launch(index.size, target, ordered, order, values, int(values.size > 1))


def _in_ranges(target: DeviceArray, index: DeviceArray, values: DeviceArray, how: str) -> None:
    """On the CPU: each thread owns a range of the target, so that no atomics are needed and values
    are folded in the order of the indices."""
    assert isinstance(target.dtype, DType)
    real = target.dtype.component
    parts = target.dtype.itemsize // real.itemsize
    threads = target.device.handle.threads
    if index.size < _FEW:
        threads = 1
    chunk = -(-target.size // threads)
    place = i64 if target.size * parts >= MOST_NARROW else i32
    writer = scattering.range_writer(real, parts, how, place)
    step = int(values.size > 1)
    flat_values = _parts(values) if parts > 1 else values
    start(
        writer, threads, target.device, _parts(target), index, flat_values, step, target.size, chunk
    )


def _as(form: DType, array: DeviceArray) -> DeviceArray:
    made = new(array, form, array.size)
    _for_all(scattering.caster(form), made, array)
    return made


def _for_all(kernel: Kernel, *arrays: DeviceArray) -> None:
    """Run a kernel of one thread for each element of flat arrays, in as many launches as it
    takes."""
    size = arrays[0].size
    for first in range(0, size, _MOST_THREADS):
        count = min(_MOST_THREADS, size - first)
        kernel.launch(count, *(each.view((count,), (1,), each.offset + first) for each in arrays))


def _seen_as(bits: DType, array: DeviceArray) -> DeviceArray:
    """The same memory as integers of the same size."""
    return DeviceArray(array.device, array.storage, bits, array.shape, (1,), array.offset)


def _parts(array: DeviceArray) -> DeviceArray:
    """The real numbers of a flat array's elements."""
    assert isinstance(array.dtype, DType)
    real = array.dtype.component
    parts = array.dtype.itemsize // real.itemsize
    if parts == 1:
        return array
    shape, offset = (array.size * parts,), array.offset * parts
    return DeviceArray(array.device, array.storage, real, shape, (1,), offset)
