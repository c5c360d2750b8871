"""Functions of `math`, NumPy and Python that `td` lacks, in the kernel language.

`treadle.lang.equivalents` says which function each of them is. Like `int(x)`, those that give
Python's integers give an i32.
"""

from __future__ import annotations

from treadle.lang import namespace as td


def whole(x):
    """`round(x)` of Python: the nearest integer, ties to even."""
    return int(td.round(x))


def floor(x):
    """`math.floor`."""
    return int(td.floor(x))


def ceil(x):
    """`math.ceil`."""
    return int(td.ceil(x))


def trunc(x):
    """`math.trunc`."""
    return int(td.trunc(x))


def divmod_(x, y):
    """`divmod`."""
    return x // y, x % y


def fabs(x):
    """`math.fabs`, which gives a float of an integer, too."""
    return td.abs(x * 1.0)


def fmod(x, y):
    """`math.fmod`: the remainder with the sign of x. |x| % |y| is exact."""
    size = td.abs(x * 1.0) % td.abs(y * 1.0)
    return td.copysign(size, x * 1.0)


def fmax(x, y):
    """`np.fmax`: the larger, and a number where the other is NaN."""
    return td.where(td.isnan(x), y, td.where(td.isnan(y), x, td.maximum(x, y)))


def fmin(x, y):
    """`np.fmin`: the smaller, and a number where the other is NaN."""
    return td.where(td.isnan(x), y, td.where(td.isnan(y), x, td.minimum(x, y)))


def radians(x):
    """`math.radians`."""
    return x * (td.pi / 180.0)


def degrees(x):
    """`math.degrees`."""
    return x * (180.0 / td.pi)


def modf(x):
    """`math.modf`: the fraction and the integer part, each with the sign of x."""
    value = x * 1.0
    part = td.trunc(value)
    fraction = td.where(td.isinf(value), 0.0, value - part)
    return td.copysign(fraction, value), part


def isclose(a, b, rel_tol=1e-09, abs_tol=0.0):
    """`math.isclose`."""
    largest = td.maximum(td.abs(a), td.abs(b))
    near = td.abs(a - b) <= td.maximum(rel_tol * largest, abs_tol)
    return a == b or (near and td.isfinite(a) and td.isfinite(b))


def heaviside(x, middle):
    """`np.heaviside`: 0 below 0, 1 above it, `middle` at 0, and NaN for NaN."""
    step = td.where(x > 0, 1.0, td.where(x == 0, middle, 0.0))
    return td.where(td.isnan(x), x * 1.0, step)


def gcd(a, b):
    """`math.gcd` of two integers."""
    x, y = td.abs(a), td.abs(b)
    while y != 0:
        x, y = y, x % y
    return x


def lcm(a, b):
    """`math.lcm` of two integers."""
    divisor = gcd(a, b)
    return td.abs(a // divisor * b)


def log_of_base(x, base):
    """`math.log` with a base."""
    return td.log(x) / td.log(base)
