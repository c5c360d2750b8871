"""What functions of Python, `math` and NumPy are in kernels, where they mean the same.

The value of each is one of td's functions, a dtype (a cast), an operator, or a function of the
kernel language (`treadle.lang.math`). The lowering and the interpreter put it in the place of the
function that a kernel calls. Of numbers that are known when a kernel is compiled, the function of
Python itself is called, so that `math.sqrt(2)` is a constant.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from treadle.core.dtypes import as_dtype
from treadle.core.errors import DtypeError
from treadle.lang import namespace
from treadle.lang.math import python_functions as own


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function of the math library that has a version for each type, by its name there."""

    name: str


# Functions of the same name in `math` or NumPy, and in td.
_OF_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh erf erfc exp exp2 expm1 fma "
    "gamma hypot isfinite isinf isnan lgamma log log10 log1p log2 nextafter pow sin sinh sqrt tan "
    "tanh"
)
_OF_NUMPY = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
    "bitwise_or bitwise_right_shift bitwise_xor cbrt ceil clip copysign cos cosh divide equal exp "
    "exp2 expm1 floor floor_divide greater greater_equal hypot isfinite isinf isnan less "
    "less_equal log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor "
    "maximum minimum multiply negative nextafter not_equal positive remainder round sign signbit "
    "sin sinh sqrt square subtract tan tanh trunc where"
)
# Functions of NumPy that td has under another name.
_OTHER_NAMES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "around": "round",
    "bitwise_count": "popcount", "fix": "trunc", "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift", "mod": "remainder", "right_shift": "bitwise_right_shift",
    "rint": "round", "true_divide": "divide", "float_power": "pow",
}  # fmt: skip
_OWN: dict[Any, dict[str, Any]] = {
    math: {
        "floor": own.floor, "ceil": own.ceil, "trunc": own.trunc, "fabs": own.fabs,
        "fmod": own.fmod, "radians": own.radians, "degrees": own.degrees, "modf": own.modf,
        "isclose": own.isclose, "gcd": own.gcd, "lcm": own.lcm,
    },
    np: {
        "fabs": own.fabs, "fmax": own.fmax, "fmin": own.fmin, "radians": own.radians,
        "deg2rad": own.radians, "degrees": own.degrees, "rad2deg": own.degrees, "modf": own.modf,
        "heaviside": own.heaviside, "gcd": own.gcd, "lcm": own.lcm, "divmod": own.divmod_,
    },
    builtins: {"round": own.whole, "divmod": own.divmod_},
}  # fmt: skip


@cache
def _table() -> dict[Any, Any]:
    """The equivalents by function."""
    names = [(math, name, name) for name in _OF_MATH.split()]
    names += [(np, name, name) for name in _OF_NUMPY.split()]
    names += [(np, *pair) for pair in _OTHER_NAMES.items()]
    table = {
        getattr(module, name): getattr(namespace, meant)
        for module, name, meant in names
        if hasattr(module, name)  # newer versions of Python and NumPy have more
    }
    for module, functions in _OWN.items():
        table |= {getattr(module, name): meant for name, meant in functions.items()}
    return table | {
        builtins.abs: namespace.abs,
        builtins.min: namespace.minimum,
        builtins.max: namespace.maximum,
        builtins.pow: "**",
        np.power: "**",
        math.remainder: LibraryFunction("remainder"),
        np.dot: namespace.dot,
        np.cross: namespace.cross,
        np.linalg.norm: namespace.length,
    }


def equivalent(target: Any, arguments: int) -> Any:
    """What a kernel calls for a function of Python, `math` or NumPy with so many arguments; None
    if there is nothing of the same meaning."""
    if isinstance(target, type) and issubclass(target, np.generic):
        try:
            return as_dtype(target)
        except DtypeError:
            return None
    if target is math.log and arguments == 2:
        return own.log_of_base
    if target is math.hypot and arguments in (3, 4):
        return LibraryFunction(f"norm{arguments}d")
    try:
        return _table().get(target)
    except TypeError:  # it has no hash
        return None


def of_constants(target: Callable[..., Any], values: Sequence[Any]) -> Any:
    """What a function of Python, `math` or NumPy gives for Python's numbers: one of them, or a
    tuple. ValueError and its like as in Python."""
    with np.errstate(all="ignore"):
        found = target(*values)
    if isinstance(found, tuple):
        return tuple(_plain(each) for each in found)
    return _plain(found)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value
