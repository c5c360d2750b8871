"""Arrays from nothing, from numbers and from other arrays. `device` is NumPy 2's keyword: an id of
treadle's as "cpu" or "cuda:0", or a Device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.numpy import promotion
from treadle.numpy.operations import operands
from treadle.numpy.operations.operands import array as as_array
from treadle.numpy.operations.operands import check_order, common_floats, converted, shape_of
from treadle.runtime.arrays import is_contiguous
from treadle.runtime.devices import Device
from treadle.tensor.tensor import Tensor as Inner


def _where(device: Any, like: Any = None) -> Device:
    if device is None and type(like) is Inner:
        return like.device
    return promotion.place(device)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
    device: Any = None,
) -> Inner:
    """A copy of numbers, of nested sequences of them, or of an array. ValueError with copy=False
    where a copy is needed; TypeError for strings, dates and objects."""
    check_order(order, "CAK")
    if type(object) is Inner:
        where = object.device if device is None else promotion.place(device)
        wanted = object.dtype if dtype is None else promotion.named(dtype, where)
        made = (
            converted(object, wanted)
            if where is object.device
            else converted(object.to(where), wanted)
        )
        if copy is False and made is not object:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        if copy and made is object:
            made = object.copied()
    else:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        made = as_array(object, dtype, _place(device, object))
    if len(made.shape) < ndmin:
        made = made.reshape((*(1,) * (ndmin - len(made.shape)), *made.shape))
    return made


def _place(device: Any, value: Any) -> Device | None:
    return None if device is None else promotion.place(device)


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Inner:
    """An array with the elements of `a`: itself, if it is one already (of gapless rows, if the
    order is "C")."""
    check_order(order, "CAK")
    made = array(a, dtype, copy=copy, device=device)
    if order == "C" and not is_contiguous(made.shape, made.strides):
        return made.copied()
    return made


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Inner:
    """An array of at least one axis whose rows have no gaps: itself, if it is one already."""
    made = asarray(a, dtype, "C")
    return made if made.shape else made.reshape(1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Inner:
    """The same; ValueError if an element is infinite or NaN."""
    made = asarray(a, dtype, order)
    if made.dtype.kind in ("float", "complex") and not bool(td.all(td.isfinite(made))):
        raise ValueError("array must not contain infs or NaNs")
    return made


def copy(a: Any, order: Any = "K", subok: bool = False) -> Inner:
    """A copy in new memory."""
    return array(a, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Inner:
    """The elements in another dtype."""
    if type(x) is not Inner:
        raise TypeError(f"Input should be a NumPy array. It is a {type(x)} instead.")
    made = converted(x, promotion.named(dtype, x.device))
    made = made if device is None else made.to(promotion.place(device))
    return x.copied() if made is x and copy else made


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Inner:
    """An array that fulfils requirements: C's order, writeable, its own memory."""
    wanted = {str(each).upper() for each in requirements or ()}
    if wanted & {"F", "F_CONTIGUOUS", "FORTRAN"}:
        check_order("F", "C")
    made = asarray(a, dtype, "C" if wanted & {"C", "C_CONTIGUOUS", "CONTIGUOUS"} else None)
    return made.copied() if wanted & {"O", "OWNDATA"} else made


# --- filled arrays --------------------------------------------------------------------------------


def _dtype(dtype: Any, where: Device) -> DType:
    return promotion.default_float(where) if dtype is None else promotion.named(dtype, where)


def zeros(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Inner:
    """An array of zeros."""
    check_order(order, "CAK")
    where = _where(device)
    return td.zeros(shape_of(shape), dtype=_dtype(dtype, where), device=where)


def ones(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Inner:
    """An array of ones."""
    check_order(order, "CAK")
    where = _where(device)
    return td.ones(shape_of(shape), dtype=_dtype(dtype, where), device=where)


def empty(
    shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Inner:
    """An array with undefined contents."""
    check_order(order, "CAK")
    where = _where(device)
    return td.empty(shape_of(shape), dtype=_dtype(dtype, where), device=where)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Inner:
    """An array of one value, or of an array that is broadcast to the shape."""
    check_order(order, "CAK")
    where = _where(device, fill_value)
    value = as_array(fill_value, dtype, where)
    return td.broadcast_to(value, shape_of(shape)).copied()


def _like(a: Any, dtype: Any, shape: Any, device: Any) -> tuple[tuple[int, ...], DType, Device]:
    x = as_array(a)
    where = _where(device, x)
    extents = x.shape if shape is None else shape_of(shape)
    return extents, x.dtype if dtype is None else promotion.named(dtype, where), where


def zeros_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Inner:
    """Zeros with an array's shape and dtype."""
    check_order(order)
    extents, wanted, where = _like(a, dtype, shape, device)
    return td.zeros(extents, dtype=wanted, device=where)


def ones_like(
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Inner:
    """Ones with an array's shape and dtype."""
    check_order(order)
    extents, wanted, where = _like(a, dtype, shape, device)
    return td.ones(extents, dtype=wanted, device=where)


def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Inner:
    """Undefined contents with an array's shape and dtype."""
    check_order(order)
    extents, wanted, where = _like(prototype, dtype, shape, device)
    return td.empty(extents, dtype=wanted, device=where)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Inner:
    """One value with an array's shape and dtype."""
    check_order(order)
    extents, wanted, where = _like(a, dtype, shape, device)
    if type(fill_value) is int and wanted.is_integer:
        limits = td.iinfo(wanted)
        if not limits.min <= fill_value <= limits.max:
            raise OverflowError(f"Python integer {fill_value} out of bounds for {wanted.name}")
    value = converted(as_array(fill_value, device=where), wanted)
    return td.broadcast_to(value, extents).copied()


def eye(
    N: int,
    M: Any = None,
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Inner:
    """Ones on a diagonal, else zeros."""
    check_order(order, "C")
    where = _where(device)
    (rows,), (columns,) = shape_of((N,)), shape_of((N if M is None else M,))
    return td.eye(rows, columns, k=int(k), dtype=promotion.named(dtype, where), device=where)


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Inner:
    """The identity matrix."""
    return eye(n, dtype=float if dtype is None else dtype)


def tri(N: int, M: Any = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> Inner:
    """Ones on and below a diagonal."""
    where = promotion.place()
    made = td.ones((math.ceil(N), math.ceil(N if M is None else M)), device=where)
    return td.tril(made, k=int(k)).to(promotion.named(dtype, where))


def vander(x: Any, N: Any = None, increasing: bool = False) -> Inner:
    """Powers of the elements as columns, the highest first."""
    given = as_array(x)
    if len(given.shape) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = given.size if N is None else int(N)
    wide = promotion.result_type(given, np.dtype("int64"))
    given = given.to(promotion.held(wide, given.device))
    powers = td.arange(count, device=given.device).to(
        promotion.default_integer(given.device) if given.dtype.is_integer else given.dtype.component
    )
    if given.dtype.kind == "complex":
        powers = powers.to(given.dtype)
    made = given.reshape((-1, 1)) ** powers
    return made if increasing else td.flip(made, axis=1)


# --- ranges ---------------------------------------------------------------------------------------


def arange(
    start_or_stop: Any = None,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
    start: Any = None,
) -> Inner:
    """Numbers from `start` on, before `stop`, a step apart."""
    is_plain = type(start_or_stop) is int and type(step) is int and step == 1
    if is_plain and stop is None and start is None and dtype is None:
        place = _where(device)
        kind = promotion.default_integer(place)
        return td.arange(max(start_or_stop, 0), dtype=kind, device=place)
    first = start if start is not None else 0
    if stop is None:
        if start_or_stop is None:
            raise TypeError("arange() requires stop to be specified.")
        last = start_or_stop
    else:
        first, last = (first if start_or_stop is None else start_or_stop), stop
    step = 1 if step is None else step
    where = _where(device)
    numbers = [each.item() if isinstance(each, Inner) else each for each in (first, last, step)]
    given = [each if type(each) is Inner else np.asarray(each) for each in (first, last, step)]
    if dtype is None:
        own = [
            each
            for each in (first, last, step)
            if isinstance(each, (Inner, np.generic, np.ndarray))
        ]
        kinds = [each.dtype if isinstance(each, np.ndarray) else each for each in given]
        found = promotion.result_type(*kinds)
        wanted = (
            promotion.held("int64" if found.kind == "b" else found, where)
            if own or found.kind != "i"
            else promotion.default_integer(where)
        )
    else:
        wanted = promotion.named(dtype, where)
    begin, end, by = [each.item() if isinstance(each, np.generic) else each for each in numbers]
    if by == 0:
        raise ZeroDivisionError("division by zero")
    if wanted.kind == "complex" or isinstance(begin, complex) or isinstance(end, complex):
        host_values = np.arange(begin, end, by, dtype=wanted.numpy)
        return td.asarray(host_values, device=where)
    count = max(math.ceil((end - begin) / by), 0)
    if wanted.kind == "bool":
        if count > 2:
            raise TypeError(
                "arange() is only supported for booleans when the result has at most length 2."
            )
        return td.asarray(np.arange(begin, end, by, dtype=bool), device=where)
    if wanted.is_integer:
        begin, by = int(begin), int(begin + by) - int(begin)
        line = td.arange(count, device=where, dtype=promotion.default_integer(where))
        made = line * by + begin if (by, begin) != (1, 0) else line
        return made.to(wanted)
    work = wanted if wanted.itemsize >= 4 else td.float32
    line = td.arange(count, device=where, dtype=promotion.default_integer(where)).to(work)
    second = begin + by
    delta = second - begin
    return (line * delta + begin).to(wanted)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Numbers at equal distances from `start` to `stop`."""
    count = operands.integer(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    where = _where(device, start)
    one: Any
    other: Any
    extents: tuple[int, ...]
    if type(start) in (int, float) and type(stop) in (int, float):
        one, other = float(start), float(stop)
        work, extents = promotion.default_float(where), (count,)
    else:
        if device is not None:
            start, stop = (as_array(each, device=where) for each in (start, stop))
        one, other = common_floats(start, stop)
        where, work = one.device, one.dtype
        extents = (-1, *(1,) * max(len(one.shape), len(other.shape)))
    intervals = count - 1 if endpoint else count
    gap = other - one
    step: Any = gap / intervals if intervals > 0 else gap * math.nan
    places = td.arange(count, device=where).to(work).reshape(extents)
    made = places * step + one if intervals > 0 else places * gap + one
    if endpoint and count > 1:
        made = td.where(places == count - 1, other, made)
    if dtype is not None:
        wanted = promotion.named(dtype, made.device)
        made = converted(td.floor(made) if wanted.is_integer else made, wanted)
    if axis:
        made = td.moveaxis(made, 0, axis)
    if not retstep:
        return made
    return made, as_array(step, made.dtype, where) if type(step) is float else step


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Inner:
    """Powers of a base with exponents at equal distances."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    root = as_array(base, like=exponents)
    root = (
        root.to(exponents.dtype)
        if exponents.dtype.kind == "complex" or root.dtype.kind != "complex"
        else root
    )
    if root.shape:
        root = td.expand_dims(root, axis=axis)
    made = root**exponents
    return made if dtype is None else converted(made, promotion.named(dtype, made.device))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Inner:
    """Numbers at equal ratios from `start` to `stop`. ValueError for 0."""
    one, other = common_floats(start, stop)
    if not one.shape and not other.shape:  # NumPy computes with a Python number beside them
        wide = promotion.result_type(one, promotion.default_float(one.device))
        one, other = (converted(each, promotion.held(wide, one.device)) for each in (one, other))
    if bool(td.any(one == 0)) or bool(td.any(other == 0)):
        raise ValueError("Geometric sequence cannot include zero")
    if one.dtype.kind == "float":
        factor = td.sign(one)
        made = (
            td.exp(linspace(td.log(one / factor), td.log(other / factor), num, endpoint)) * factor
        )
    else:
        made = td.exp(linspace(td.log(one), td.log(other), num, endpoint))
    if num > 0:
        made = td.concat([td.expand_dims(one, axis=0), made[1:]])
        if endpoint and num > 1:
            made = td.concat([made[:-1], td.expand_dims(other, axis=0)])
    made = td.moveaxis(made, 0, axis) if axis else made
    return made if dtype is None else converted(made, promotion.named(dtype, made.device))


# --- from elsewhere -------------------------------------------------------------------------------


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Inner:
    """Numbers of an iterable."""
    return as_array(np.fromiter(iter, np.dtype(dtype), count))


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None
) -> Inner:
    """A copy of the bytes of a buffer. (NumPy shares its memory.)"""
    held = buffer.numpy() if type(buffer) is Inner else buffer
    return as_array(np.frombuffer(held, np.dtype(dtype), count, offset))


def fromstring(
    string: Any, dtype: Any = float, count: int = -1, *, sep: str, like: Any = None
) -> Inner:
    """The numbers in a text."""
    return as_array(np.fromstring(string, np.dtype(dtype), count, sep=sep))


def fromfile(
    file: Any,
    dtype: Any = float,
    count: int = -1,
    sep: str = "",
    offset: int = 0,
    *,
    like: Any = None,
) -> Inner:
    """The numbers in a file."""
    return as_array(np.fromfile(file, np.dtype(dtype), count, sep, offset))


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Inner:
    """An array that shares the memory of another library's, on its device."""
    if type(x) is Inner:
        return x._seen_again()
    return td.from_dlpack(x, device=None if device is None else promotion.place(device), copy=copy)
