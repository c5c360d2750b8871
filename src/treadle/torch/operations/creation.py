"""Tensors from nothing, from numbers and from other arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType, integer_range
from treadle.runtime.devices import Device
from treadle.tensor.computed_views import complex_of
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import dtypes
from treadle.torch.devices import place
from treadle.torch.errors import kind_of


def extents(size: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape that is given as several integers, or as one sequence."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    for each in size:
        if type(each) is not int:
            return tuple([_extent(one) for one in size])
    return size


def _extent(value: Any) -> Any:
    if isinstance(value, Inner):
        return value.item()
    if not hasattr(value, "__index__"):
        raise TypeError(f"a shape is of integers, not of a {type(value).__name__} as {value!r}")
    return value


def _tracked(made: Inner, requires_grad: bool) -> Inner:
    return made.requires_grad_() if requires_grad else made


def _number(value: Any) -> Any:
    """A number, also from a tensor without axes."""
    return value.item() if isinstance(value, (Inner, np.generic)) else value


def _filled(shape: tuple[int, ...], value: Any, dtype: DType, where: Device) -> Inner:
    if dtype.is_integer and isinstance(value, float):
        value = int(value)
    return td.full(shape, value, dtype=dtype, device=where)


def _constant(name: str, value: Any) -> Any:
    def made(
        *args: Any,
        size: Any = None,
        names: Any = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Inner:
        dtype = dtypes.get_default_dtype() if dtype is None else dtypes.dtype_named(dtype)
        shape = extents(args if size is None else (size,))
        if value is None:
            found = td.empty(shape, dtype=dtype, device=place(device))
        else:
            found = td.full(shape, value, dtype=dtype, device=place(device))
        return _tracked(found, requires_grad)

    def like(
        input: Inner,
        *,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        pin_memory: bool = False,
    ) -> Inner:
        dtype = input.dtype if dtype is None else dtypes.dtype_named(dtype)
        where = input.device if device is None else place(device)
        if value is None:
            found = td.empty(input.shape, dtype=dtype, device=where)
        else:
            found = td.full(input.shape, value, dtype=dtype, device=where)
        return _tracked(found, requires_grad)

    def new(
        input: Inner,
        *args: Any,
        size: Any = None,
        dtype: DType | None = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Inner:
        return made(
            *args,
            size=size,
            dtype=input.dtype if dtype is None else dtype,
            device=input.device if device is None else device,
            requires_grad=requires_grad,
        )

    what = "Undefined elements" if value is None else f"A tensor of {name}"
    for each, text in ((made, what), (like, f"{what}, of another's shape"),
                       (new, f"{what}, of another's dtype and device")):  # fmt: skip
        each.__doc__ = f"{text}."
    made.__name__, like.__name__, new.__name__ = name, f"{name}_like", f"new_{name}"
    return made, like, new


empty, empty_like, new_empty = _constant("empty", None)
zeros, zeros_like, new_zeros = _constant("zeros", 0)
ones, ones_like, new_ones = _constant("ones", 1)


def full(
    size: Any,
    fill_value: Any,
    *,
    names: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """A tensor of one value, whose dtype is the value's unless it is given."""
    value, where = _number(fill_value), place(device)
    dtype = dtypes.of_number_on(value, where) if dtype is None else dtypes.dtype_named(dtype)
    return _tracked(_filled(extents((size,)), value, dtype, where), requires_grad)


def full_like(
    input: Inner,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Inner:
    """One value with another tensor's shape, dtype and device."""
    dtype = input.dtype if dtype is None else dtypes.dtype_named(dtype)
    where = input.device if device is None else place(device)
    return _tracked(_filled(input.shape, _number(fill_value), dtype, where), requires_grad)


def new_full(
    input: Inner,
    size: Any,
    fill_value: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Inner:
    """One value, with another tensor's dtype and device."""
    dtype = input.dtype if dtype is None else dtype
    where = input.device if device is None else device
    return full(size, fill_value, dtype=dtype, device=where, requires_grad=requires_grad)


def new_tensor(
    input: Inner,
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Inner:
    """A copy of data, with another tensor's dtype and device."""
    dtype = input.dtype if dtype is None else dtype
    where = input.device if device is None else device
    return tensor(data, dtype=dtype, device=where, requires_grad=requires_grad)


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """Undefined elements. Strides are the order of axes here: what is between elements is not
    kept."""
    order = sorted(range(len(size)), key=lambda axis: -stride[axis])
    return empty_permuted(size, order, dtype=dtype, device=device, requires_grad=requires_grad)


def new_empty_strided(input: Inner, size: Any, stride: Any, **options: Any) -> Inner:
    """Undefined elements, with another tensor's dtype and device."""
    options = {"dtype": input.dtype, "device": input.device, **options}
    return empty_strided(size, stride, **options)


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """Undefined elements whose axes lie in memory in an order."""
    made = empty(tuple(size[axis] for axis in physical_layout), dtype=dtype, device=device)
    back = [list(physical_layout).index(axis) for axis in range(len(size))]
    return _tracked(td.permute_dims(made, tuple(back)) if back else made, requires_grad)


def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """Numbers from start up to but without end, by step; int64 if all three are integers."""
    start, end, step = _number(start), _number(end), _number(step)
    start, end = (0, start) if end is None else (start, end)
    where = place(device)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        is_whole = all(isinstance(each, int) for each in (start, end, step))
        dtype = dtypes.integers(where) if is_whole else dtypes.get_default_dtype()
    dtype = dtypes.dtype_named(dtype)
    if dtype.is_integer:
        first, last, by = int(start), int(end), int(step)
        if not by:
            raise RuntimeError(f"step must be nonzero, also as {dtype}, not {step}")
        count = max(0, -((first - last) // by))
        return td.arange(count, dtype=dtype, device=where) * by + first
    count = math.ceil((end - start) / step)
    if not count:
        return _tracked(td.zeros((0,), dtype=dtype, device=where), requires_grad)
    stop = start + (count - 0.5) * step
    return _tracked(td.arange(start, stop, step, dtype=dtype, device=where), requires_grad)


def range_with_end(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Inner:
    """Numbers from start to end, with it, by step."""
    start, end = (0, start) if end is None else (start, end)
    count = math.floor((end - start) / step) + 1
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    made = start + td.arange(count, dtype=td.float64, device=place("cpu")) * step
    return _tracked(made.to(dtype).to(place(device)), requires_grad)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """So many evenly spaced numbers from start to end."""
    start, end, where = _number(start), _number(end), place(device)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    if dtype is None:
        is_complex = isinstance(start, complex) or isinstance(end, complex)
        dtype = dtypes.complex_default() if is_complex else dtypes.get_default_dtype()
    if dtype.is_integer:
        found = np.trunc(_spaced(int(start), int(end), steps, np.longdouble))
        return td.asarray(found.astype(dtype.numpy), device=where)
    if dtype in (td.float16, td.bfloat16) and steps < 2**16 - 32:
        return _tracked(_spaced_in_halves(start, end, steps, dtype, where), requires_grad)
    return _tracked(td.linspace(start, end, steps, dtype=dtype, device=where), requires_grad)


def _spaced_in_halves(start: Any, end: Any, steps: int, dtype: DType, where: Device) -> Inner:
    """Evenly spaced numbers as PyTorch computes them in 16 bits: each operation is rounded, the
    step too, from either end to the middle."""

    def rounded(value: Any) -> Any:
        made = value if type(value) is Inner else td.asarray(float(value), device=where)
        return made.to(dtype).to(td.float32)

    first, last = rounded(start), rounded(end)
    step = rounded(rounded(last - first) / rounded(max(steps - 1, 1)))
    index = td.arange(steps, dtype=td.float32, device=where)
    up = first + rounded(step * rounded(index))
    down = last - rounded(step * rounded(steps - 1 - index))
    return td.where((index < steps // 2) | (steps == 1), up, down).to(dtype)


def _spaced(start: int, end: int, steps: int, kind: Any) -> Any:
    """Evenly spaced numbers as PyTorch computes them for integers: in float64, from either end to
    the middle; with `kind` of more digits a product and its sum are rounded once."""
    index = np.arange(steps)
    step = kind((end - start) / max(steps - 1, 1))
    up = (start + step * index).astype(np.float64)
    down = (end - step * (steps - 1 - index)).astype(np.float64)
    return np.where(index < steps // 2, up, down) if steps > 1 else np.full(steps, float(start))


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """So many numbers from base**start to base**end whose logarithms are evenly spaced."""
    start, end, where = _number(start), _number(end), place(device)
    if dtype is None:
        dtype = dtypes.get_default_dtype()
    is_complex = isinstance(start, complex) or isinstance(end, complex) or dtype.is_complex
    kind = np.complex128 if is_complex else np.float64
    if dtype.is_integer:
        exponents = _spaced(int(start), int(end), steps, np.float64)
    else:
        exponents = start + np.arange(steps) * kind((end - start) / max(steps - 1, 1))
    with np.errstate(all="ignore"):
        found = np.power(kind(base), exponents)
    return _tracked(td.asarray(found, device="cpu").to(dtype).to(where), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """Ones on the diagonal of a matrix of zeros."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    columns = n if m is None else m
    return _tracked(td.eye(n, columns, dtype=dtype, device=place(device)), requires_grad)


def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """A copy of numbers, of nested sequences of them, or of an array. Python's floating numbers
    have the default dtype, its integers are int64."""
    wanted = None if dtype is None else dtypes.dtype_named(dtype)
    if isinstance(data, Inner):
        where = data.device if device is None else place(device)
        return _tracked(data.detach().to(where, dtype=wanted).copied(), requires_grad)
    where = place(device)
    if isinstance(data, (list, tuple)) and _has_tensors(data):
        _check_elements(data)
        made = td.asarray(_plain(data), device=where).detach()
        return _tracked(made.to(wanted or made.dtype), requires_grad)
    if hasattr(data, "__dlpack__") and not isinstance(data, np.ndarray):
        return _tracked(td.asarray(data, dtype=wanted, device=where, copy=True), requires_grad)
    array = _array(data)
    if not isinstance(data, (np.ndarray, np.generic)):
        if wanted is None:
            wanted = _dtype_of(data, array, where)
        _check_numbers(array, wanted)
    made = td.asarray(array, dtype=wanted, device=where, copy=True)
    return _tracked(made, requires_grad)


def _check_numbers(array: Any, dtype: DType | None) -> None:
    """An error for Python's numbers that an integer dtype does not hold. Unsigned ones take the
    negative of what they hold, and wrap, as PyTorch's do."""
    if dtype is None or dtype.kind not in ("int", "uint") or not array.size:
        return
    if array.dtype.kind not in "iuf":
        return
    low, high = integer_range(dtype)
    least, greatest = array.min(), array.max()
    if greatest > high or least < (low or -high):
        if dtype.itemsize == 8:
            raise ValueError("Overflow when unpacking long long")
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow")


def _array(data: Any) -> Any:
    try:
        found = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"expected sequences of equal lengths: {error}") from None
    if found.dtype.kind == "O":
        kind = type(found.flat[0]).__name__ if found.size else "object"
        if all(isinstance(each, int) for each in found.flat):
            raise ValueError("Overflow when unpacking long long")
        raise RuntimeError(f"Could not infer dtype of {kind}: a tensor has numbers or bools")
    if found.dtype.kind not in "biufc" and found.dtype.name != "bfloat16":
        raise TypeError(f"can't convert {found.dtype} to a tensor: it has numbers or bools")
    return found


def _dtype_of(data: Any, array: Any, where: Device) -> DType | None:
    """The dtype of a tensor of Python's numbers; arrays in lists, and NumPy's numbers, keep
    theirs."""
    if isinstance(data, (list, tuple)):
        kinds = _kinds(data)
        if any(issubclass(each, np.generic) for each in kinds):
            return _of_kinds(kinds)
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    if isinstance(data, np.ndarray):
        return None
    if not array.size or array.dtype.kind == "f":
        return dtypes.get_default_dtype()
    if array.dtype.kind == "c":
        return dtypes.complex_default()
    return dtypes.integers(where) if array.dtype.kind in "iu" else None


def _kinds(data: Any) -> set[type]:
    """The classes of the numbers in nested lists."""
    found = set(map(type, data))
    if found.isdisjoint((list, tuple)):
        return found
    return (found - {list, tuple}).union(
        *[_kinds(each) for each in data if isinstance(each, (list, tuple))]
    )


def _of_kinds(kinds: set[type]) -> DType | None:
    """The common dtype of numbers of some classes, of which one at least is NumPy's."""
    if any(not issubclass(each, (np.generic, bool, int, float, complex)) for each in kinds):
        return None
    found = td.bool
    for each in kinds:
        if issubclass(each, np.generic):
            own = dtypes.dtype_named(np.dtype(each).name)
        else:
            own = {bool: td.bool, int: td.int64, float: dtypes.get_default_dtype()}.get(
                each, dtypes.complex_default()
            )
        found = dtypes.promote_types(found, own)
    return found


def _has_tensors(data: Any) -> bool:
    return any(
        isinstance(each, Inner) or (isinstance(each, (list, tuple)) and _has_tensors(each))
        for each in data
    )


def _check_elements(data: Any) -> None:
    """ValueError for tensors of several elements where the first lists have an element."""
    depth, first = 0, data
    while isinstance(first, (list, tuple)) and first:
        depth, first = depth + 1, first[0]

    def check(value: Any, left: int) -> None:
        if isinstance(value, Inner):
            if not left and value.size != 1:
                raise ValueError(
                    "only one element tensors can be converted to Python scalars: torch.stack "
                    "makes a tensor of several"
                )
        elif left and isinstance(value, (list, tuple)):
            for each in value:
                check(each, left - 1)

    check(data, depth)


def _plain(data: Any) -> Any:
    """Nested lists whose tensors of one element have no axes."""
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data.detach().reshape(()) if isinstance(data, Inner) and data.size == 1 else data


def scalar_tensor(
    s: Any,
    *,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Inner:
    """A number as a tensor without axes, of the default dtype unless one is given."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    return full((), s, dtype=dtype, device=device, requires_grad=requires_grad)


def as_tensor(data: Any, dtype: DType | None = None, device: Any = None) -> Inner:
    """Data as a tensor, without a copy where that is possible."""
    wanted = None if dtype is None else dtypes.dtype_named(dtype)
    if isinstance(data, Inner):
        return data.to(data.device if device is None else place(device), dtype=wanted)
    where = place(device)
    is_usable = isinstance(data, np.ndarray) and data.flags.writeable and data.size
    if is_usable and where.id == "cpu":
        made = from_numpy(data)
        return made if wanted is None else made.to(wanted)
    return tensor(data, dtype=wanted, device=where)


def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Inner:
    """Data as a tensor: a copy, if `copy` is true or it is needed. ValueError if `copy` is False
    and one is needed."""
    if copy:
        return tensor(obj, dtype=dtype, device=device, requires_grad=requires_grad)
    made = as_tensor(obj, dtype, device)
    shares = made is obj or (isinstance(obj, np.ndarray) and made.dtype == obj.dtype)
    if copy is False and not shares:
        raise ValueError("can't alias the data: leave copy out")
    if made is obj and not requires_grad:
        return made.detach() if made.requires_grad else made
    return _tracked(made, requires_grad)


def from_numpy(ndarray: Any) -> Inner:
    """A tensor on the CPU that shares a NumPy array's memory: each sees writes into the other."""
    if not isinstance(ndarray, np.ndarray):
        kind = "Tensor" if isinstance(ndarray, Inner) else kind_of(ndarray)
        raise TypeError(f"expected np.ndarray (got {kind}): torch.as_tensor takes others")
    if not ndarray.size or any(step < 0 for step in ndarray.strides):
        if ndarray.size:
            raise ValueError("At least one stride is negative: give from_numpy a copy, x.copy()")
        return td.asarray(ndarray, device="cpu")
    return td.asarray(ndarray, device="cpu", copy=False)


def frombuffer(
    buffer: Any,
    *,
    dtype: DType,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Inner:
    """The bytes of a buffer as elements. Memory is shared if the buffer is writable."""
    found = np.frombuffer(buffer, dtype.numpy, count, offset)
    made = from_numpy(found) if found.flags.writeable else td.asarray(found, device="cpu")
    return _tracked(made, requires_grad)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Inner:
    """A tensor that shares the memory of another library's array."""
    where = None if device is None else place(device)
    return td.from_dlpack(ext_tensor, device=where, copy=copy)


# --- complex numbers -----------------------------------------------------------------------------


def complex_numbers(real: Inner, imag: Inner) -> Inner:
    """Complex numbers of real and imaginary parts. RuntimeError for different dtypes."""
    if real.dtype is not imag.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype} for "
            "second argument"
        )
    if real.dtype.name not in ("float32", "float64", "float16"):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double, not {real.dtype}")
    return complex_of(real, imag)


def polar(abs: Inner, angle: Inner) -> Inner:
    """Complex numbers of absolute values and angles."""
    return complex_numbers(abs * td.cos(angle), abs * td.sin(angle))
