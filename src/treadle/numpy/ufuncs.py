"""`np.ufunc`: NumPy's universal functions with their methods, `out=`, `where=`, `dtype=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.numpy import promotion
from treadle.numpy.adapting import put
from treadle.numpy.arrays import Values, ndarray, result_of, unwrapped, value_of, wrap
from treadle.numpy.operations import reductions
from treadle.numpy.operations.calling import SCALARS, call, call_all
from treadle.numpy.operations.elementwise import direct_of, unary_of
from treadle.numpy.operations.folding import fold, running
from treadle.numpy.operations.operands import array, axis_of, converted, host, reduced_axes
from treadle.numpy.ufunc_names import ALIASES, UFUNCS
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner

_ASSOCIATIVE = frozenset(
    [
        "add",
        "multiply",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logical_and",
        "logical_or",
        "logical_xor",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "gcd",
        "lcm",
        "hypot",
        "logaddexp",
        "logaddexp2",
    ]
)
_QUICK: dict[str, Callable[..., Inner]] = {
    "add": reductions.sum, "multiply": reductions.prod, "maximum": reductions.amax,
    "minimum": reductions.amin, "logical_and": reductions.all, "logical_or": reductions.any,
}  # fmt: skip
_MISSING = object()
_NUMBERS = frozenset([bool, int, float, complex, *SCALARS])
# How several values for one place are combined by `at`, where one kernel does it.
_SCATTERS = {
    "add": "sum", "subtract": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin",
}  # fmt: skip


class ufunc:
    """A function of each element of its operands, as NumPy's: they are promoted by NumPy's rules
    and broadcast.

    >>> import treadle.numpy as np
    >>> np.add([1, 2], 3.5), np.multiply.reduce([1, 2, 3]), np.maximum.accumulate([2, 1, 3])
    (array([4.5, 5.5]), np.int64(6), array([2, 2, 3]))
    """

    def __init__(self, name: str) -> None:
        self._numpy: np.ufunc = getattr(np, name)
        self.__name__ = self._numpy.__name__
        is_unary = self.nin == 1 and self.nout == 1
        self._unary = unary_of(name) if is_unary else {}
        self._binary = direct_of(self.__name__ if self.nin == 2 else "")
        what = "operand" if self.nin == 1 else "operands, which are broadcast"
        self.__doc__ = (
            f"`{name}` of each element: NumPy's ufunc of {self.nin} {what}, with `out=`, `where=`, "
            "`dtype=` and `casting=`. TypeError for dtypes that it does not take, ValueError for "
            "shapes that do not broadcast."
        )

    def _quick(self, one: Any = None, other: Any = None, *rest: Any) -> Any:
        """The result for operands that need no promotion, or None."""
        if rest:
            return None
        kind, other_kind = type(one), type(other)
        if kind is ndarray:
            first = one._inner
            name = first.dtype.name
            if other is None:
                function = self._unary.get(name)
                return None if function is None else result_of(apply(function, first))
            function, same, floating, integral = self._binary
            if other_kind is ndarray:
                second = other._inner
                if first.dtype is second.dtype and name in same:
                    return result_of(apply(function, first, second))
            elif (
                (other_kind is float and name in floating)
                or (other_kind is int and (name in integral or name in floating))
                or (name in same and SCALARS.get(other_kind) == name)
            ):
                number = other if other_kind is int or other_kind is float else other.item()
                return result_of(apply(function, first, number))
        elif other_kind is ndarray:
            second = other._inner
            name = second.dtype.name
            function, same, floating, integral = self._binary
            if (
                (kind is float and name in floating)
                or (kind is int and (name in integral or name in floating))
                or (name in same and SCALARS.get(kind) == name)
            ):
                number = one if kind is int or kind is float else one.item()
                return result_of(apply(function, number, second))
        return None

    @property
    def nin(self) -> int:
        """The number of operands."""
        return self._numpy.nin

    @property
    def nout(self) -> int:
        """The number of results."""
        return self._numpy.nout

    @property
    def nargs(self) -> int:
        """Both together."""
        return self._numpy.nargs

    @property
    def ntypes(self) -> int:
        """The number of dtypes for which NumPy has a loop."""
        return self._numpy.ntypes

    @property
    def types(self) -> list[str]:
        """NumPy's loops."""
        return self._numpy.types

    @property
    def identity(self) -> Any:
        """The value that changes nothing, or None."""
        return self._numpy.identity

    @property
    def signature(self) -> str | None:
        """The axes of operands that are taken as a whole, as "(n),(n)->()", or None."""
        return self._numpy.signature

    def resolve_dtypes(self, *args: Any, **kwargs: Any) -> tuple[np.dtype[Any], ...]:
        """The dtypes that operands of these dtypes are computed in."""
        return self._numpy.resolve_dtypes(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.__name__,)

    def __call__(
        self,
        *operands: Any,
        out: Any = None,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> Any:
        """The function of each element. TypeError for dtypes that it does not take or whose result
        does not fit into `out`, ValueError for shapes that do not broadcast."""
        if (
            out is None
            and where is True
            and dtype is None
            and signature is None
            and casting == "same_kind"
        ):
            found = self._quick(*operands)
            if found is not None:
                return found
        count = self.nin
        if len(operands) != count:
            if not count < len(operands) <= count + self.nout or out is not None:
                raise TypeError(
                    f"{self.__name__}() takes from {count} to {self.nargs} positional arguments "
                    f"but {len(operands)} were given"
                )
            given_outs = operands[count:]
            operands, out = operands[:count], given_outs + (None,) * (self.nout - len(given_outs))
        is_of_numbers = type(operands[0]) in _NUMBERS and type(operands[-1]) in _NUMBERS
        if is_of_numbers and out is None and where is True and promotion.place().traits.host_memory:
            # NumPy's own, as its scalars are elements there.
            named = {"dtype": dtype} if signature is None else {"signature": signature}
            return self._numpy(*operands, casting=casting, **named)
        given = [each._inner if type(each) is ndarray else unwrapped(each) for each in operands]
        results = call_all(self.__name__, *given, dtype=dtype, casting=casting, signature=signature)
        if out is None and where is True:
            if self.nout == 1:
                return value_of(results[0])
            return tuple([value_of(each) for each in results])
        if self.nout > 1 and not isinstance(out, (tuple, type(None))):
            raise TypeError("'out' must be a tuple of arrays")
        places = out if isinstance(out, tuple) else (out,) * self.nout
        mask = None if where is True else array(unwrapped(where))
        made = tuple(
            [
                self._placed(each, place, mask, casting)
                for each, place in zip(results, places, strict=True)
            ]
        )
        return made if self.nout > 1 else made[0]

    def _placed(self, result: Inner, place: Any, mask: Inner | None, casting: str) -> Any:
        if place is None and mask is None:
            return value_of(result)
        if mask is not None and mask.dtype.kind != "bool":
            raise TypeError(f"where= of {self.__name__} takes an array of bools, not {mask.dtype}")
        if place is None:
            assert mask is not None
            # The others are undefined in NumPy.
            return value_of(td.where(mask, result, 0).to(result.dtype))
        if type(place) is not ndarray:
            raise TypeError("return arrays must be of ArrayType")
        inner = place._inner
        promotion.check_cast(result.dtype, inner.dtype, casting, f"ufunc '{self.__name__}' output")
        if result.shape != inner.shape:
            try:
                result = td.broadcast_to(result, inner.shape)
            except ValueError:
                raise ValueError(
                    f"non-broadcastable output operand with shape {inner.shape} doesn't match the "
                    f"broadcast shape {result.shape}"
                ) from None
        if mask is None:
            inner[...] = result
        else:
            inner[...] = td.where(mask, converted(result, inner.dtype), inner)
        return place

    # --- methods ----------------------------------------------------------------------------------

    def _check_binary(self, what: str) -> None:
        if self.nin != 2 or (self.nout != 1 and what != "outer") or self.signature is not None:
            raise ValueError(f"{what} only supported for binary functions with one output")

    def _apply(self, one: Inner, other: Inner) -> Inner:
        return call(self.__name__, one, other)

    def _loop_of(self, x: Inner, dtype: Any) -> Inner:
        """The operand of a reduction in the dtype in which it is computed."""
        if dtype is None and self.__name__ in ("add", "multiply"):
            wanted = reductions.total_dtype(x)
            return converted(x, wanted)
        if dtype is not None:
            return converted(x, promotion.named(dtype, x.device))
        given: Any = (None, x.dtype.numpy, None)
        loop = self._numpy.resolve_dtypes(given, reduction=True)
        return converted(x, promotion.held(loop[0], x.device))

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = _MISSING,
        where: Any = True,
    ) -> Any:
        """The function between all elements along axes. ValueError for no elements where the
        function has no identity."""
        self._check_binary("reduce")
        x = _array(array)
        axes = reduced_axes(axis, len(x.shape))
        keywords: dict[str, Any] = {} if initial is _MISSING else {"initial": unwrapped(initial)}
        if where is not True:
            keywords["where"] = unwrapped(where)
        quick = _QUICK.get(self.__name__)
        if quick is not None:
            if dtype is not None:
                if self.__name__ in ("add", "multiply"):
                    keywords["dtype"] = dtype
                else:
                    x = converted(x, promotion.named(dtype, x.device))
            found = quick(x, axis=axes, keepdims=keepdims, **keywords)
        else:
            found = self._reduced(x, axes, dtype, keepdims, keywords)
        return value_of(found) if out is None else put(out, found, self.__name__, "unsafe")

    def _reduced(
        self, x: Inner, axes: tuple[int, ...], dtype: Any, keepdims: bool, keywords: dict[str, Any]
    ) -> Inner:
        if len(axes) > 1 and self.__name__ not in _ASSOCIATIVE:
            raise ValueError(
                f"reduction operation '{self.__name__}' is not reorderable, so at most one axis "
                "may be specified"
            )
        x = self._loop_of(x, dtype)
        initial = keywords.get("initial", self.identity)
        if self.__name__ == "bitwise_and" and x.dtype.kind == "uint" and initial == -1:
            initial = td.iinfo(x.dtype).max
        if "where" in keywords:
            if initial is None:
                raise ValueError(
                    f"reduction operation '{self.__name__}' does not have an identity, so to use "
                    "a where mask one has to specify 'initial'"
                )
            x = td.where(_array(keywords["where"]), x, initial).to(x.dtype)
        for axis in axes:
            if not x.shape[axis]:
                if initial is None:
                    raise ValueError(
                        f"zero-size array to reduction operation {self.__name__} which has no "
                        "identity"
                    )
                shape = tuple(1 if at == axis else e for at, e in enumerate(x.shape))
                x = td.full(shape, initial, dtype=x.dtype, device=x.device)
                continue
            x = fold(self._apply, x, axis, self.__name__ in _ASSOCIATIVE)
        # Functions that take signs away begin with what changes nothing.
        if keywords.get("initial") is not None or self.__name__ in ("gcd", "hypot"):
            first = td.full((), initial, dtype=x.dtype, device=x.device)
            x = self._apply(first, x)
        return x if keepdims else td.squeeze(x, axis=axes)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """The function between the elements up to each, along an axis."""
        self._check_binary("accumulate")
        x = _array(array)
        if not x.shape:
            raise TypeError("cannot accumulate on a scalar")
        at = axis_of(axis, len(x.shape))
        name = self.__name__
        if name in ("add", "multiply"):
            call_it = reductions.cumsum if name == "add" else reductions.cumprod
            found = call_it(x, at, dtype)
        else:
            found = running(self._apply, self._loop_of(x, dtype), at, name in _ASSOCIATIVE)
        return wrap(found) if out is None else put(out, found, name, "unsafe")

    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> Any:
        """Reductions of the parts of an axis that begin at indices, which are read."""
        self._check_binary("reduceat")
        x = _array(array)
        at = axis_of(axis, len(x.shape))
        starts = host(unwrapped(indices)).tolist()
        extent = x.shape[at]
        for each in starts:
            if not 0 <= each < extent:
                raise IndexError(
                    f"index {each} out-of-bounds in {self.__name__}.reduceat [0, {extent})"
                )
        parts = []
        front = (slice(None),) * at
        for number, start in enumerate(starts):
            end = starts[number + 1] if number + 1 < len(starts) else extent
            part = x[(*front, slice(start, end if end > start else start + 1))]
            if part.shape[at] == 1:  # as it is
                parts.append(self._loop_of(part, dtype))
            else:
                made = self.reduce(wrap(part), axis=at, dtype=dtype, keepdims=True)
                parts.append(made._inner)
        found = td.concat(parts, axis=at) if parts else x[(*front, slice(0, 0))]
        return wrap(found) if out is None else put(out, found, self.__name__, "unsafe")

    def outer(self, A: Any, B: Any, /, **keywords: Any) -> Any:
        """The function of all pairs of elements of two arrays."""
        self._check_binary("outer")
        one, other = _array(A), _array(B)
        one = one.reshape((*one.shape, *(1,) * len(other.shape)))
        return self(wrap(one), wrap(other), **keywords)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """Write into an array at indices what the function computes there: again and again for an
        index that comes up again. In place."""
        if type(a) is not ndarray:
            raise TypeError("first operand must be array")
        inner = a._inner
        if self.signature is not None:
            raise TypeError(f"{self.__name__}.at does not support ufunc with non-trivial signature")
        if self.nout > 1:
            raise ValueError("Only single output ufuncs supported at this time")
        if (b is None) != (self.nin == 1):
            what = "provided when ufunc is unary" if self.nin == 1 else "needed for ufunc"
            raise ValueError(f"second operand {what}")
        places = _places(inner, unwrapped(indices))
        given = [] if b is None else [_array(b, inner)]
        values = [td.broadcast_to(each, places.shape).reshape(-1) for each in given]
        flat = inner.copied().reshape(-1)
        how = self._scatter(inner.dtype, values)
        if how is None:
            self._in_rounds(flat, places.reshape(-1), values)
        else:
            change = converted(values[0], inner.dtype)
            change = 0 - change if self.__name__ == "subtract" else change
            flat = td.scatter_reduce(flat, 0, places.reshape(-1), change, how)
        inner[...] = flat.reshape(inner.shape)

    def _scatter(self, dtype: DType, values: list[Inner]) -> Any:
        """How one kernel combines several values for one place in the array's dtype, or None."""
        name, kind = self.__name__, dtype.kind
        is_sum = name in ("add", "subtract") or (name == "multiply" and kind != "complex")
        if name not in _SCATTERS or kind == "bool" or (kind == "complex" and not is_sum):
            return None
        other = values[0].dtype
        fits = np.can_cast(other.numpy, dtype.numpy)  # type: ignore[arg-type]
        alike = other.kind == kind or {other.kind, kind} <= {"int", "uint", "bool"}
        return _SCATTERS[name] if fits or (is_sum and alike) else None

    def _in_rounds(self, flat: Inner, places: Inner, values: list[Inner]) -> None:
        """What the function computes at places one after the other: in the first round where each
        place comes up for the first time, in the second one for the second time, … Places are read.
        """
        order = places.numpy()
        sort = np.argsort(order, kind="stable")
        starts = np.flatnonzero(np.diff(order[sort], prepend=-1))
        counts = np.diff(starts, append=order.size)
        turns = np.empty_like(order)
        turns[sort] = np.arange(order.size) - np.repeat(starts, counts)
        for turn in range(int(turns.max(initial=0)) + 1):
            (chosen,) = np.nonzero(turns == turn)
            where = order[chosen]
            operands = [each[chosen] for each in values]
            flat[where] = converted(call(self.__name__, flat[where], *operands), flat.dtype)


def _places(x: Inner, indices: Any) -> Inner:
    """The places in the flattened array of what an index selects."""
    counted = td.arange(x.size, device=x.device, dtype=td.int64 if x.size > 2**31 else td.int32)
    return counted.reshape(x.shape)[indices]


def _array(value: Any, like: Inner | None = None) -> Inner:
    return array(value._inner if isinstance(value, Values) else unwrapped(value), like=like)


_made: dict[str, ufunc] = {}


def named(name: str) -> ufunc:
    """The ufunc of a name, made when it is first used."""
    name = ALIASES.get(name, name)
    found = _made.get(name)
    if found is None:
        found = _made[name] = ufunc(name)
    return found


def __getattr__(name: str) -> ufunc:
    if name in ALIASES or name in UFUNCS.split():
        return named(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
