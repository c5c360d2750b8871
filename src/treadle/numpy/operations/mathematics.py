"""Functions of elements that are no ufuncs: rounding, complex numbers, clipping, signals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.numpy import promotion
from treadle.numpy.operations import reductions
from treadle.numpy.operations.calling import call
from treadle.numpy.operations.operands import (
    array,
    axes_of,
    axis_of,
    common,
    converted,
    floats,
)
from treadle.tensor import computed_views
from treadle.tensor.computed_views import complex_of
from treadle.tensor.elementwise_functions import apply
from treadle.tensor.tensor import Tensor as Inner


def round(a: Any, decimals: int = 0) -> Inner:
    """The elements rounded to a number of decimals, halves to the even ones."""
    x = array(a)
    places = decimals.__index__()
    if x.dtype.kind == "bool":
        return td.round(x.to(td.float16))
    if x.dtype.is_integer:
        if places >= 0:
            return x.copied()
        scale = 10**-places
        limits = td.iinfo(x.dtype)
        if scale > limits.max:
            return td.zeros(x.shape, dtype=x.dtype, device=x.device)
        return _rounded_integers(x, scale)
    if not places:
        return td.round(x)
    scale = 10.0 ** abs(places)
    made = td.round(x * scale) / scale if places > 0 else td.round(x / scale) * scale
    return td.where(td.isfinite(made), made, x).to(x.dtype) if x.dtype.kind == "float" else made


def _rounded_integers(x: Inner, scale: int) -> Inner:
    rest = x % scale
    down = x - rest
    half = scale // 2
    odd = (down // scale) % 2 != 0
    up = (rest > half) | ((rest == half) & odd)
    return td.where(up, down + scale, down).to(x.dtype)


around = round


def fix(x: Any) -> Inner:
    """The integer parts."""
    return call("trunc", array(x))


def _limited(name: str, x: Inner, bound: Any) -> Inner:
    # A floating array beside a number of Python's needs no promotion.
    is_plain = x.dtype.kind == "float" and type(bound) in (int, float)
    return apply(name, x, bound) if is_plain else call(name, x, bound)


def clip(
    a: Any,
    a_min: Any = reductions.MISSING,
    a_max: Any = reductions.MISSING,
    *,
    min: Any = reductions.MISSING,
    max: Any = reductions.MISSING,
    dtype: Any = None,
) -> Inner:
    """The elements limited to a range."""
    if a_min is reductions.MISSING and a_max is reductions.MISSING:
        a_min = None if min is reductions.MISSING else min
        a_max = None if max is reductions.MISSING else max
    elif min is not reductions.MISSING or max is not reductions.MISSING:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is "
            "forbidden."
        )
    a_min = None if a_min is reductions.MISSING else a_min
    a_max = None if a_max is reductions.MISSING else a_max
    x = array(a)
    if x.dtype.is_integer:  # a bound beyond the dtype does not limit anything
        limits = td.iinfo(x.dtype)
        a_min = None if type(a_min) is int and a_min <= limits.min else a_min
        a_max = None if type(a_max) is int and a_max >= limits.max else a_max
    made = x if dtype is None else converted(x, promotion.named(dtype, x.device))
    if a_min is not None:
        made = _limited("maximum", made, a_min)
    if a_max is not None:
        made = _limited("minimum", made, a_max)
    return made.copied() if made is x else made


def clip_method(a: Any, min: Any = None, max: Any = None, **keywords: Any) -> Inner:
    """The method: `x.clip(min, max)`."""
    return clip(a, min, max, **keywords)


def real(val: Any) -> Any:
    """The real parts, as a view; of Python's numbers what Python says."""
    if isinstance(val, (int, float, complex)):
        return val.real
    x = array(val)
    return computed_views.real_part(x) if x.dtype.kind == "complex" else x


def imag(val: Any) -> Any:
    """The imaginary parts, as a view; of real numbers zeros, which are read-only. Of Python's
    numbers what Python says."""
    if isinstance(val, (int, float, complex)):
        return val.imag
    x = array(val)
    if x.dtype.kind == "complex":
        return computed_views.imaginary_part(x)
    made = td.imag(x)
    made._locked = True
    return made


def angle(z: Any, deg: bool = False) -> Inner:
    """The angles of complex numbers, in radians or degrees."""
    x = array(z)
    made = td.angle(x) if x.dtype.kind == "complex" else call("arctan2", 0, x)
    return made * (180 / math.pi) if deg else made


def real_if_close(a: Any, tol: float = 100) -> Inner:
    """The real parts, if all imaginary ones are about 0."""
    x = array(a)
    if x.dtype.kind != "complex":
        return x
    limit = tol * float(np.finfo(x.dtype.numpy).eps) if tol > 1 else tol
    return real(x) if bool(td.all(td.abs(td.imag(x)) < limit)) else x


def iscomplex(x: Any) -> Inner:
    """Whether imaginary parts are not 0."""
    return td.imag(array(x)) != 0


def isreal(x: Any) -> Any:
    """Whether imaginary parts are 0."""
    return imag(x) == 0 if isinstance(x, (int, float, complex)) else td.imag(array(x)) == 0


def iscomplexobj(x: Any) -> bool:
    """Whether an array has complex numbers."""
    return array(x).dtype.kind == "complex"


def isrealobj(x: Any) -> bool:
    """Whether an array has real numbers."""
    return not iscomplexobj(x)


def isposinf(x: Any) -> Inner:
    """Whether elements are +inf."""
    return _infinite(x, "isposinf", math.inf)


def isneginf(x: Any) -> Inner:
    """Whether elements are -inf."""
    return _infinite(x, "isneginf", -math.inf)


def _infinite(x: Any, name: str, value: float) -> Inner:
    made = array(x)
    if made.dtype.kind == "complex":
        raise TypeError(
            f"This operation is not supported for {made.dtype} values because it would be "
            "ambiguous."
        )
    if made.dtype.kind != "float":
        return td.zeros(made.shape, dtype=td.bool, device=made.device)
    return made == value


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Inner:
    """Numbers in place of NaN and infinities."""
    made = array(x)
    if made.dtype.kind == "complex":
        parts = [
            nan_to_num(each, True, nan, posinf, neginf) for each in (td.real(made), td.imag(made))
        ]
        found = complex_of(*parts)
    elif made.dtype.kind != "float":
        found = made.copied()
    else:
        limits = np.finfo(made.dtype.numpy)
        high = float(limits.max) if posinf is None else posinf
        low = float(limits.min) if neginf is None else neginf
        found = td.where(td.isnan(made), nan, made)
        found = td.where(made == math.inf, high, td.where(made == -math.inf, low, found)).to(
            made.dtype
        )
    if not copy and type(x) is Inner:
        x[...] = found
        return x
    return found


def sinc(x: Any) -> Inner:
    """sin(pi x) / (pi x)."""
    made = floats(x)
    y = math.pi * td.where(made == 0, 1.0e-20 if made.dtype.itemsize > 2 else 1e-4, made).to(
        made.dtype
    )
    return td.sin(y) / y


_SMALL = (
    -4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16,
    1.71539128555513303061e-15, -1.16853328779934516808e-14, 7.67618549860493561688e-14,
    -4.85644678311192946090e-13, 2.95505266312963983461e-12, -1.72682629144155570723e-11,
    9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9,
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7,
    1.11738753912010371815e-6, -4.41673835845875056359e-6, 1.64484480707288970893e-5,
    -5.75419501008210370398e-5, 1.88502885095841655729e-4, -5.76375574538582365885e-4,
    1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2,
    1.71620901522208775349e-1, -3.04682672343198398683e-1, 6.76795274409476084995e-1,
)  # fmt: skip
_LARGE = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17,
    3.46122286769746109310e-17, -2.82762398051658348494e-16, -3.42548561967721913462e-16,
    1.77256013305652638360e-15, 3.81168066935262242075e-15, -9.55484669882830764870e-15,
    -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11,
    -3.14991652796324136454e-11, 1.18891471078464383424e-11, 4.94060238822496958910e-10,
    3.39623202570838634515e-9, 2.26666899049817806459e-8, 2.04891858946906374183e-7,
    2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)  # fmt: skip


def _chebyshev(x: Inner, coefficients: tuple[float, ...]) -> Inner:
    b0, b1, b2 = x * 0 + coefficients[0], x * 0, x * 0
    for each in coefficients[1:]:
        b0, b1, b2 = x * b0 - b1 + each, b0, b1
    return 0.5 * (b0 - b2)


def i0(x: Any) -> Inner:
    """The modified Bessel function of order 0."""
    made = array(x)
    if made.dtype.kind == "complex":
        raise TypeError("i0 not supported for complex values")
    made = td.abs(floats(made))
    small = _chebyshev(made / 2 - 2, _SMALL)
    large = _chebyshev(32 / td.maximum(made, 8.0) - 2, _LARGE) / td.sqrt(td.maximum(made, 8.0))
    return td.exp(made) * td.where(made <= 8, small, large)


# --- differences and sums -------------------------------------------------------------------------


def diff(
    a: Any,
    n: int = 1,
    axis: int = -1,
    prepend: Any = reductions.MISSING,
    append: Any = reductions.MISSING,
) -> Inner:
    """The differences of neighbours along an axis, n times."""
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    x = array(a)
    if not n:
        return x
    if not x.shape:
        raise ValueError("diff requires input that is at least one dimensional")
    at = axis_of(axis, len(x.shape))
    parts = [x]
    for value, place in ((prepend, 0), (append, 2)):
        if value is reductions.MISSING:
            continue
        each = array(value, like=x)
        if not each.shape:
            each = td.broadcast_to(each, (*x.shape[:at], 1, *x.shape[at + 1 :]))
        parts.insert(0 if place == 0 else len(parts), each)
    if len(parts) > 1:
        x = td.concat(common(*parts), axis=at)
    front = (slice(None),) * at
    for _ in range(n):
        one, other = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = call("not_equal" if x.dtype.kind == "bool" else "subtract", one, other)
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Inner:
    """The differences of neighbours of the flattened array, with numbers at the ends."""
    x = array(ary).reshape(-1)
    parts = [call("subtract", x[1:], x[:-1])]
    for value, at in ((to_begin, 0), (to_end, 2)):
        if value is None:
            continue
        each = array(value, like=x).reshape(-1)
        if not np.can_cast(each.dtype.numpy, x.dtype.numpy, "same_kind"):
            raise TypeError(
                f"dtype of `{'to_begin' if at == 0 else 'to_end'}` must be compatible with input "
                "`ary` under the `same_kind` rule."
            )
        parts.insert(0 if at == 0 else len(parts), each.to(x.dtype))
    return td.concat(parts) if len(parts) > 1 else parts[0]


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The slopes along axes, by central differences, at the ends by one-sided ones."""
    if array(f).dtype.kind == "bool":
        raise TypeError("numpy boolean subtract, the `-` operator, is not supported: use integers")
    x = floats(f)
    axes = axes_of(axis, len(x.shape))
    if axis is not None and isinstance(axis, (tuple, list)):
        axes = tuple(axis_of(each, len(x.shape)) for each in axis)
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    spacing = (
        [1.0] * len(axes)
        if not varargs
        else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    )
    found = []
    for at, gap in zip(axes, spacing, strict=True):
        if x.shape[at] < edge_order + 1:
            raise ValueError(
                "Shape of array too small to calculate a numerical gradient, at least "
                "(edge_order + 1) elements are required."
            )
        steps = gap if isinstance(gap, (int, float)) else array(gap, like=x)
        if type(steps) is Inner:
            if not steps.shape:
                steps = steps.item()
            elif len(steps.shape) != 1 or steps.size != x.shape[at]:
                raise ValueError(
                    "when 1d, distances must match the length of the corresponding dimension"
                )
            else:
                steps = floats(steps)
                steps = converted(steps, x.dtype) if x.dtype.kind != "complex" else steps
        made = td.gradient(x, steps, axis=at, edge_order=edge_order)
        found.append(made.to(x.dtype) if type(made) is Inner else made[0].to(x.dtype))
    return found[0] if len(found) == 1 else tuple(found)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Inner:
    """The area under points, by trapezoids."""
    values = array(y)
    at = axis_of(axis, len(values.shape))
    if x is None:
        steps: Any = dx if not isinstance(dx, (list, tuple, np.ndarray)) else array(dx, like=values)
    else:
        places = array(x, like=values)
        steps = diff(places) if len(places.shape) == 1 else diff(places, axis=at)
        if len(places.shape) == 1:
            steps = steps.reshape((-1, *(1,) * (len(values.shape) - at - 1)))
    front = (slice(None),) * at
    pairs = call("add", values[(*front, slice(1, None))], values[(*front, slice(None, -1))])
    return reductions.sum(call("divide", call("multiply", steps, pairs), 2.0), at)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * math.pi) -> Inner:
    """Angles without jumps by whole turns."""
    x = array(p)
    at = axis_of(axis, len(x.shape))
    apart = diff(x, axis=at)
    limit = period / 2 if discont is None else discont
    is_whole = x.dtype.is_integer and type(period) is int
    x = x if is_whole else floats(x)
    apart = apart if is_whole else floats(apart)
    high, boundary = divmod(period, 2) if is_whole else (period / 2, 0)
    low = -high
    turned = call("add", call("remainder", call("subtract", apart, low), period), low)
    if boundary == 0:
        turned = td.where((turned == low) & (apart > 0), high, turned).to(turned.dtype)
    correction = td.where(td.abs(apart) < limit, 0, turned - apart).to(turned.dtype)
    moved = reductions.cumsum(correction, at)
    front = (slice(None),) * at
    return td.concat(
        [x[(*front, slice(0, 1))].to(moved.dtype), x[(*front, slice(1, None))] + moved], axis=at
    )


# --- signals --------------------------------------------------------------------------------------


def _convolved(one: Inner, other: Inner, mode: str) -> Inner:
    own = one.dtype
    if own.kind == "bool":
        return td.convolve(one.to(td.int32), other.to(td.int32), mode=mode) != 0
    return td.convolve(one, other, mode=mode).to(own)


def convolve(a: Any, v: Any, mode: str = "full") -> Inner:
    """The convolution of two arrays of one axis."""
    one, other = common(a, v)
    one, other = (each.reshape(1) if not each.shape else each for each in (one, other))
    if len(one.shape) > 1 or len(other.shape) > 1:
        raise ValueError("object too deep for desired array")
    if not one.size or not other.size:
        raise ValueError("a cannot be empty" if not one.size else "v cannot be empty")
    _check_mode(mode)
    return _convolved(one, other, mode)


def _check_mode(mode: Any) -> None:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got '{mode}')")


def correlate(a: Any, v: Any, mode: str = "valid") -> Inner:
    """The correlation of two arrays of one axis, with the second one's conjugate."""
    one, other = common(a, v)
    one, other = (each.reshape(1) if not each.shape else each for each in (one, other))
    if not one.size or not other.size:
        raise ValueError(
            "first array argument cannot be empty"
            if not one.size
            else "second array argument cannot be empty"
        )
    _check_mode(mode)
    if one.size < other.size:
        found = td.flip(correlate(other, one, mode))
        return td.conj(found) if found.dtype.kind == "complex" else found
    turned = td.flip(td.conj(other) if other.dtype.kind == "complex" else other)
    return _convolved(one, turned, mode)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Inner:
    """Points on the lines between points."""
    values = array(fp)
    places, known = common(x, xp)
    work = promotion.default_float(places.device)
    places, known = floats(places).to(work), floats(known).to(work)
    if not known.size:
        raise ValueError("array of sample points is empty")
    if known.size != values.size:
        raise ValueError("fp and xp are not of the same length.")
    if period == 0:
        raise ValueError("period must be a non-zero value")
    interpolate: Any = td.interp
    if values.dtype.kind == "complex":
        sides: list[Any] = [None if each is None else complex(each) for each in (left, right)]
        parts = [
            interpolate(
                places,
                known,
                part(values).to(work),
                *[
                    None if each is None else (each.real if part is td.real else each.imag)
                    for each in sides
                ],
                period,
            )
            for part in (td.real, td.imag)
        ]
        wide = promotion.held("complex128", values.device)
        return complex_of(*[each.to(wide.component) for each in parts])
    sides = [None if each is None else float(each) for each in (left, right)]
    made: Inner = interpolate(places, known, values.to(work), *sides, period)
    return made


# --- windows --------------------------------------------------------------------------------------


def _window(M: Any, kind: str, *terms: float, beta: float | None = None) -> Any:
    count = M.item() if isinstance(M, (Inner, np.generic)) else M
    where = promotion.place()
    wanted = promotion.default_float(where)
    if count < 1:
        return td.zeros((0,), dtype=wanted, device=where)
    if count == 1:
        return td.ones((1,), dtype=wanted, device=where)
    places = td.arange(math.ceil(count if kind == "kaiser" else count - 0.5), device=where)
    n = places.to(wanted) * 2 + (1 - count)  # from 1 - M to M - 1
    if kind == "bartlett":
        return td.where(n <= 0, 1 + n / (count - 1), 1 - n / (count - 1))
    if kind == "kaiser":
        assert beta is not None
        inside = td.sqrt(td.maximum(1 - (n / (count - 1)) ** 2, 0.0))
        return i0(beta * inside) / i0(td.full((), float(beta), dtype=wanted, device=where))
    made: Any = terms[0]
    for number, term in enumerate(terms[1:], 1):
        made = made + term * td.cos(math.pi * number * n / (count - 1))
    found: Inner = made
    return found


def bartlett(M: Any) -> Inner:
    """A triangle."""
    made: Inner = _window(M, "bartlett")
    return made


def blackman(M: Any) -> Inner:
    """The Blackman window."""
    made: Inner = _window(M, "cosines", 0.42, 0.5, 0.08)
    return made


def hamming(M: Any) -> Inner:
    """The Hamming window."""
    made: Inner = _window(M, "cosines", 0.54, 0.46)
    return made


def hanning(M: Any) -> Inner:
    """The Hann window."""
    made: Inner = _window(M, "cosines", 0.5, 0.5)
    return made


def kaiser(M: Any, beta: Any) -> Inner:
    """The Kaiser window."""
    made: Inner = _window(M, "kaiser", beta=float(beta))
    return made


# --- bits -----------------------------------------------------------------------------------------


def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Inner:
    """Bits as bytes, eight in each."""
    x = array(a)
    if x.dtype.kind not in ("bool", "int", "uint"):
        raise TypeError("Expected an input array of integer or boolean data type")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    x = x.reshape(-1) if axis is None else x
    at = axis_of(0 if axis is None else axis, len(x.shape))
    line = td.moveaxis(x.to(td.bool).to(td.int32), at, len(x.shape) - 1)
    missing = -line.shape[-1] % 8
    line = td.pad(line, [(0, 0)] * (len(line.shape) - 1) + [(0, missing)])
    bits = line.reshape((*line.shape[:-1], -1, 8))
    weights = [1 << n for n in range(8)]
    weights = weights[::-1] if bitorder == "big" else weights
    made = td.sum(bits * td.asarray(np.array(weights, np.int32), device=x.device), axis=-1).to(
        td.uint8
    )
    return td.moveaxis(made, len(made.shape) - 1, at)


def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Inner:
    """Bytes as bits."""
    x = array(a)
    if x.dtype.name != "uint8":
        raise TypeError("Expected an input array of unsigned byte data type")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    x = x.reshape(-1) if axis is None else x
    at = axis_of(0 if axis is None else axis, len(x.shape))
    line = td.moveaxis(x.to(td.int32), at, len(x.shape) - 1)
    places = np.arange(8, dtype=np.int32)
    places = places[::-1].copy() if bitorder == "big" else places
    bits = (td.expand_dims(line, axis=-1) >> td.asarray(places, device=x.device)) & 1
    made = bits.reshape((*line.shape[:-1], line.shape[-1] * 8)).to(td.uint8)
    if count is not None:
        total = made.shape[-1]
        if count >= 0:
            made = made[..., :count]
            if count > total:
                made = td.pad(made, [(0, 0)] * (len(made.shape) - 1) + [(0, count - total)])
        else:
            made = made[..., :count]
    return td.moveaxis(made, len(made.shape) - 1, at)
