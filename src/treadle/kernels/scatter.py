"""Writing and adding at places that an array of flat indices names, into the target itself."""

from __future__ import annotations

from treadle.core.dtypes import DType, i32
from treadle.kernels.device_code import scattering
from treadle.kernels.device_code.keys import wide
from treadle.kernels.launching import flat, zeros
from treadle.kernels.sort import sort_with_order
from treadle.runtime.arrays import DeviceArray


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
    if distinct or values.size == 1:
        scattering.put.launch(index.size, target, index, values, int(values.size > 1))
        return
    last = zeros(target, i32, target.size)
    scattering.find_last.launch(index.size, last, index)
    scattering.put_last.launch(index.size, target, index, values, last)


def add(target: DeviceArray, index: DeviceArray, values: DeviceArray) -> None:
    """Do `target[index[i]] += values[i]`, every one of them; there is one value, or one for each
    index, in the target's dtype.

    Numbers of 32 bits, and of 64 where the device is no WebGPU device, are added by atomics:
    rounding of floats depends on the order of threads. Narrower ones are summed in 32 bits first.
    The rest is sorted by index, and each sum is made by one thread.

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
    if real.itemsize == 8 and target.device.backend == "webgpu":
        ordered, order = sort_with_order(index)
        scattering.add_segments.launch(index.size, target, ordered, order, values, step)
        return
    sums = _parts(target) if form == real else zeros(target, form, target.size)
    kernel = scattering.adder(form, parts)
    kernel.launch(index.size * parts, sums, index, _parts(values), step)
    if form != real:
        scattering.converter(real, form).launch(target.size, target, sums)


def _parts(array: DeviceArray) -> DeviceArray:
    """The real numbers of a flat array's elements."""
    assert isinstance(array.dtype, DType)
    real = array.dtype.component
    parts = array.dtype.itemsize // real.itemsize
    if parts == 1:
        return array
    shape, offset = (array.size * parts,), array.offset * parts
    return DeviceArray(array.device, array.storage, real, shape, (1,), offset)
