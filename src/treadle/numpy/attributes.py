"""Attributes and methods of arrays that have no function of the same name and arguments."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

import treadle as td
from treadle.graph import views
from treadle.numpy import promotion
from treadle.numpy.arrays import Values, ndarray, unwrapped, value_of, wrap
from treadle.numpy.operations import mathematics, operands, sorting
from treadle.numpy.operations.calling import call
from treadle.numpy.operations.operands import converted
from treadle.tensor import computed_views
from treadle.tensor.tensor import Tensor as Inner


def dtype(self: Values) -> np.dtype[Any]:
    """NumPy's dtype of the elements."""
    return self._inner.dtype.numpy


def _shape(self: Values) -> tuple[int, ...]:
    """The extents, by axes."""
    return self._inner.shape


def _set_shape(self: Values, value: Any) -> None:
    try:
        self._inner = self._inner.reshape(_extents(value), copy=False)
    except ValueError as error:
        if "copy=False" not in str(error):
            raise
        raise AttributeError(
            "incompatible shape for in-place modification: use `.reshape()`, which copies"
        ) from None


shape = property(_shape, _set_shape)


def _extents(value: Any) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def ndim(self: Values) -> int:
    """The number of axes."""
    return len(self._inner.shape)


def size(self: Values) -> int:
    """The number of elements."""
    return self._inner.size


def itemsize(self: Values) -> int:
    """The bytes of an element."""
    return self._inner.dtype.itemsize


def nbytes(self: Values) -> int:
    """The bytes of all elements."""
    return self._inner.nbytes


def strides(self: Values) -> tuple[int, ...]:
    """The bytes between neighbours along each axis: 0 where there are no elements."""
    inner = self._inner
    width = inner.dtype.itemsize if inner.size else 0
    return tuple([step * width for step in inner.strides])


def device(self: Values) -> td.Device:
    """The device that holds the elements: a Device of treadle, whose `id` is its name."""
    return self._inner.device


def base(self: ndarray) -> ndarray | None:
    """For a view an array of all elements of its memory, else None."""
    inner = self._inner
    if inner._cell.base is not None:
        return wrap(inner._cell.base)
    whole = inner._cell.value.shape
    if inner._view is None or views.is_whole(inner._view, whole):
        return None
    return wrap(inner._seen_through(views.whole(whole)))


def data(self: ndarray) -> memoryview:
    """The memory, of an array on the CPU."""
    return self._inner.__array__().data


def T(self: Values) -> Any:
    """The axes in reverse order: a view."""
    inner = self._inner
    return type_of(self)(td.permute_dims(inner, range(len(inner.shape))[::-1]))


def mT(self: Values) -> ndarray:
    """The last two axes exchanged: a view. ValueError for fewer axes."""
    if len(self._inner.shape) < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return wrap(td.matrix_transpose(self._inner))


class Flags:
    """How an array lies in memory: `x.flags["C_CONTIGUOUS"]`, `x.flags.c_contiguous`."""

    _values: dict[str, bool]
    _inner: Inner

    def __init__(self, inner: Inner) -> None:
        self.__dict__["_inner"] = inner
        shape, steps = inner.shape, inner.strides
        packed = inner.size == 0 or _is_packed(shape, steps)
        turned = inner.size == 0 or _is_packed(shape[::-1], steps[::-1])
        whole = inner._cell.value.shape
        self.__dict__["_values"] = {
            "C_CONTIGUOUS": packed,
            "F_CONTIGUOUS": turned,
            "OWNDATA": inner._cell.base is None
            and (inner._view is None or views.is_whole(inner._view, whole)),
            "WRITEABLE": not inner._locked and not _overlaps(inner),
            "ALIGNED": True,
            "WRITEBACKIFCOPY": False,
        }

    def __getitem__(self, name: str) -> bool:
        known = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "O": "OWNDATA", "W": "WRITEABLE",
                 "A": "ALIGNED"}  # fmt: skip
        return self._values[known.get(name, name)]

    def __getattr__(self, name: str) -> bool:
        if name == "contiguous":
            return self._values["C_CONTIGUOUS"]
        try:
            return self._values[name.upper()]
        except KeyError:
            raise AttributeError(f"flags have no {name!r}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, {"W": "WRITEABLE"}.get(name, name).lower(), value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "writeable":
            raise AttributeError(f"the flag {name!r} cannot be set")
        _set_writeable(self._inner, value)
        self._values["WRITEABLE"] = bool(value)

    def __repr__(self) -> str:
        return "\n".join(f"  {name} : {value}" for name, value in self._values.items()) + "\n"


def _is_packed(shape: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    expected = 1
    for extent, step in zip(shape[::-1], steps[::-1], strict=True):
        if extent != 1 and step != expected:
            return False
        expected *= extent
    return True


def flags(self: Values) -> Flags:
    """How the array lies in memory."""
    return Flags(self._inner)


def setflags(self: ndarray, write: Any = None, align: Any = None, uic: Any = None) -> None:
    """Set whether the array is written to. ValueError for `write=True` where elements share
    memory."""
    if write is not None:
        _set_writeable(self._inner, write)


def _set_writeable(inner: Inner, write: Any) -> None:
    if write and _overlaps(inner):
        raise ValueError("cannot set WRITEABLE flag to True of this array")
    inner._locked = not write


def _overlaps(inner: Inner) -> bool:
    return inner._view is not None and views.overlaps(inner._view)


def _real(self: Values) -> Any:
    """The real parts, as a view: of real numbers the array itself."""
    inner = self._inner
    if inner.dtype.kind != "complex":
        return self
    return type_of(self)(computed_views.real_part(inner))


def type_of(values: Values) -> Any:
    """What makes a result like an array: an array, or an element."""
    return wrap if type(values) is ndarray else value_of


def _set_real(self: ndarray, value: Any) -> None:
    inner, given = self._inner, operands.array(unwrapped(value), like=self._inner)
    if inner.dtype.kind != "complex":
        inner[...] = given
    else:
        computed_views.real_part(inner)[...] = td.real(given)


def _imag(self: Values) -> Any:
    """The imaginary parts, as a view: of real numbers zeros, which are read-only."""
    return type_of(self)(mathematics.imag(self._inner))


def _set_imag(self: ndarray, value: Any) -> None:
    inner, given = self._inner, operands.array(unwrapped(value), like=self._inner)
    if inner.dtype.kind != "complex":
        raise TypeError("array does not have imaginary part to set")
    computed_views.imaginary_part(inner)[...] = td.real(given)


def conj(self: Values) -> Any:
    """The complex conjugates; of real numbers the array itself."""
    if self._inner.dtype.kind != "complex":
        return self
    return value_of(call("conjugate", self._inner))


real = property(_real, _set_real)
imag = property(_imag, _set_imag)


# --- the flattened array --------------------------------------------------------------------------


class flatiter:
    """`x.flat`: the elements one after the other, to read, write and iterate over."""

    __slots__ = ("_array",)

    def __init__(self, array: ndarray) -> None:
        self._array = array

    @property
    def base(self) -> ndarray:
        """The array."""
        return self._array

    def copy(self) -> ndarray:
        """The elements as an array of one axis."""
        return wrap(self._array._inner.reshape(-1, copy=True))

    def __len__(self) -> int:
        return self._array._inner.size

    def __iter__(self) -> Iterator[Any]:
        flat = wrap(self._array._inner.reshape(-1))
        return iter([flat[at] for at in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        return wrap(self._array._inner.reshape(-1, copy=True))[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        inner = self._array._inner
        flat = inner.reshape(-1)
        target = flat[unwrapped(index)]
        given = operands.array(unwrapped(value), like=inner).reshape(-1)
        count = target.size
        if given.size and given.size != count:
            given = td.tile(given, -(-count // given.size))[:count]
        flat[unwrapped(index)] = given.reshape(target.shape)
        if not inner._sees_same(flat) and flat._cell is not inner._cell:
            inner[...] = flat.reshape(inner.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._array._inner.numpy().reshape(-1), dtype)


def _flat(self: ndarray) -> flatiter:
    """The elements one after the other."""
    return flatiter(self)


def _set_flat(self: ndarray, value: Any) -> None:
    flatiter(self)[:] = value


flat = property(_flat, _set_flat)


# --- elements -------------------------------------------------------------------------------------


def item(self: Values, *args: Any) -> Any:
    """An element as a Python number: the only one, or that at an index. ValueError if there are
    several and no index."""
    inner = self._inner
    if args:
        index = args[0] if len(args) == 1 else args
        return (
            inner[tuple(index)] if isinstance(index, tuple) else inner.reshape(-1)[index]
        ).item()
    if inner.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return inner.item()


def tolist(self: Values) -> Any:
    """The elements as nested lists of Python numbers."""
    return self._inner.tolist()


def tobytes(self: Values, order: Any = "C") -> bytes:
    """The bytes of the elements, in C's order."""
    return self._inner.numpy().tobytes(order)


def tofile(self: Values, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file, as bytes or as text."""
    self._inner.numpy().tofile(fid, sep, format)


def dumps(self: Values) -> bytes:
    """The array as a pickle."""
    return pickle.dumps(self)


def dump(self: Values, file: Any) -> None:
    """Write the array to a file, as a pickle."""
    with open(file, "wb") as out:
        pickle.dump(self, out)


def fill(self: ndarray, value: Any) -> None:
    """Write one number to all elements."""
    self[...] = value


def copy(self: Values, order: Any = "C") -> Any:
    """A copy in new memory."""
    operands.check_order(order)
    return type_of(self)(self._inner.copied())


def flatten(self: Values, order: Any = "C") -> ndarray:
    """A copy with one axis."""
    operands.check_order(order)
    return wrap(self._inner.reshape(-1, copy=True))


def astype(
    self: Values,
    dtype: Any,
    order: Any = "K",
    casting: str = "unsafe",
    subok: bool = True,
    copy: bool = True,
) -> Any:
    """The elements in another dtype. TypeError where `casting` forbids it, or the device lacks the
    dtype."""
    operands.check_order(order)
    inner = self._inner
    wanted = promotion.named(dtype, inner.device)
    promotion.check_cast(inner.dtype, wanted, casting, "array data")
    if inner.dtype is wanted:
        return type_of(self)(inner.copied()) if copy else self
    return type_of(self)(converted(inner, wanted))


def view(self: ndarray, dtype: Any = None, type: Any = None) -> ndarray:
    """The same memory in the same dtype; a copy of the bits in another dtype (of the same size, or
    where the last axis is whole). In NumPy that is a view, too."""
    inner = self._inner
    if dtype is None or dtype is ndarray:
        return wrap(inner._seen_again())
    wanted = promotion.named(dtype, inner.device)
    if wanted is inner.dtype:
        return wrap(inner._seen_again())
    return wrap(td.asarray(inner.numpy().view(wanted.numpy), device=inner.device))


def byteswap(self: Values, inplace: bool = False) -> Any:
    """The elements with their bytes in reverse order."""
    if inplace:
        raise NotImplementedError("byteswap(inplace=True): use x = x.byteswap()")
    made = td.asarray(self._inner.numpy().byteswap(), device=self._inner.device)
    return type_of(self)(made)


def sort(
    self: ndarray, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """Sort the elements along an axis, in place."""
    self._inner[...] = sorting.sort(self._inner, axis, kind, order, stable=stable)


def partition(
    self: ndarray, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
) -> None:
    """Have element `kth` of an axis where it is in sorted order, in place."""
    self._inner[...] = sorting.partition(self._inner, kth, axis, kind, order)


def put(self: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """Write values to places of the flattened array."""
    from_flat = self.flat
    places = operands.host(unwrapped(indices)).reshape(-1)
    count = self._inner.size
    if mode == "clip":
        places = np.clip(places, 0, count - 1)
    elif mode == "wrap":
        places = places % count
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    from_flat[places] = values


def resize(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Give the array another shape and memory: the elements that fit, then zeros. ValueError for a
    view, whose memory is another array's."""
    wanted = new_shape[0] if len(new_shape) == 1 else new_shape
    extents = operands.shape_of(wanted)
    count = 1
    for extent in extents:
        count *= extent
    if count != self._inner.size and not Flags(self._inner)["OWNDATA"]:
        raise ValueError("cannot resize this array: it does not own its data")
    flat = self._inner.reshape(-1)[:count]
    if flat.size < count:
        rest = td.zeros(count - flat.size, dtype=flat.dtype, device=flat.device)
        flat = td.concat([flat, rest])
    self._inner = flat.reshape(extents).copied()


def to_device(self: Values, device: Any, /, *, stream: Any = None) -> Any:
    """The array on another device."""
    return type_of(self)(self._inner.to(promotion.place(device)))
