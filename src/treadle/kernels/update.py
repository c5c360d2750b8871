"""Steps of optimizers over parameters in one stretch of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.core.dtypes import DType, complex64, complex128, float32, float64
from treadle.kernels.device_code import optimizer_steps
from treadle.kernels.device_code.keys import wide
from treadle.kernels.device_code.optimizer_steps import WIDTH, Form
from treadle.kernels.launching import serial_threads
from treadle.lang.decorators import Function, Kernel
from treadle.runtime.arrays import DeviceArray

# A kernel for elements of a form: how a step is taken.
Algorithm = Callable[[Form], Kernel]
# Numbers that depend on the number of steps, computed in a dtype.
Derivation = Callable[[DType], Function]

_PARTS = {complex64: float32, complex128: float64}
_LANES = 4


def number_dtype(dtype: DType) -> DType:
    """The dtype of the numbers that a step of elements of a dtype depends on."""
    return wide(_PARTS.get(dtype, dtype))


def advance(
    derivation: Derivation,
    steps: DeviceArray,
    given: DeviceArray,
    now: DeviceArray,
    found: DeviceArray,
    scale: DeviceArray,
    first: int,
    count: int,
) -> None:
    """Count a step for so many parameters, unless `found` is not 0, and compute what follows from
    that for the first one."""
    assert isinstance(given.dtype, DType)
    kernel = optimizer_steps.advancer(derivation(given.dtype))
    kernel.launch(count, steps, given, now, found, scale, first, count)


def update(
    algorithm: Algorithm,
    arrays: Sequence[DeviceArray | None],
    given: DeviceArray,
    now: DeviceArray,
    row: int,
    start: int,
    end: int,
    maximize: bool = False,
    scaled: bool = False,
) -> None:
    """Take a step with the elements from `start` to `end` of parameters, gradients, and what is
    remembered of them. Where an algorithm would have more arrays, there is None."""
    values = arrays[0]
    assert values is not None
    assert isinstance(values.dtype, DType)
    dtype = values.dtype
    part = _PARTS.get(dtype)
    if part is not None:
        start, end = 2 * start, 2 * end
    lanes = 1 if serial_threads(values.device) else _LANES
    form = Form(part or dtype, lanes, maximize, scaled)
    count = -(-(end - start) // lanes)
    taken = [0 if a is None else _stretch(a, form.dtype, start, count, lanes) for a in arrays]
    algorithm(form).launch(count, *taken, given, now, row * WIDTH, count)


def _stretch(array: DeviceArray, dtype: DType, start: int, count: int, lanes: int) -> DeviceArray:
    """So many elements of an array, or vectors, as an array of its own."""
    shape, strides = ((count,), (1,)) if lanes == 1 else ((count, lanes), (lanes, 1))
    return DeviceArray(array.device, array.storage, dtype, shape, strides, start)
