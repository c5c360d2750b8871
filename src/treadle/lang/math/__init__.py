"""The math library: written once, in the kernel language, and used on every target.

WGSL's and PTX's own functions guarantee little accuracy, and drivers differ. These give the same
results everywhere, except for the roundings that a target may choose: `ULP_BOUNDS` has the largest
error of each. Where f32 and f64 differ by constants only, a function is written once for both
(`generic`). The front end looks a function up in `library`, by its name and the type that it
computes in ("exp_f32"), and lowers it like a user's function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import FunctionType, ModuleType

from treadle.lang.math import (
    bessel,
    bits,
    directed,
    exponential,
    exponents,
    inverse_error,
    logarithm,
    neighbours,
    norms,
    pi_multiples,
    powers,
    random,
    remainders,
    special,
    trigonometry,
)
from treadle.lang.math.generic import Generic

_MODULES: tuple[ModuleType, ...] = (
    exponential,
    logarithm,
    trigonometry,
    powers,
    special,
    inverse_error,
    bessel,
    directed,
    neighbours,
    exponents,
    pi_multiples,
    norms,
    remainders,
)


@dataclass(frozen=True)
class MathFunction:
    """A function of the library."""

    function: Generic

    @property
    def arity(self) -> int:
        """The number of arguments."""
        return self.function.f32.__code__.co_argcount

    @property
    def versions(self) -> dict[str, FunctionType]:
        """The versions by type."""
        return {"f32": self.function.f32, "f64": self.function.f64}


# name: the largest error in units in the last place, for f32 and f64, on a target with IEEE
# arithmetic or fused multiply-adds, and where division and square root are off by up to 2.5 ULP.
ULP_BOUNDS: dict[str, dict[str, float]] = {
    "exp": {"f32": 2.5, "f64": 1.5},
    "exp2": {"f32": 1.5, "f64": 1.5},
    "expm1": {"f32": 2.0, "f64": 2.0},
    "sigmoid": {"f32": 3.0, "f64": 3.0},
    "sinh": {"f32": 2.0, "f64": 2.0},
    "cosh": {"f32": 2.0, "f64": 2.0},
    "tanh": {"f32": 2.5, "f64": 2.5},
    "log": {"f32": 1.5, "f64": 1.5},
    "log2": {"f32": 1.5, "f64": 1.5},
    "log10": {"f32": 2.5, "f64": 2.5},
    "log1p": {"f32": 2.0, "f64": 2.0},
    "logaddexp": {"f32": 4.0, "f64": 4.0},
    "asinh": {"f32": 3.0, "f64": 3.0},
    "acosh": {"f32": 3.0, "f64": 3.0},
    "atanh": {"f32": 2.5, "f64": 2.5},
    "sin": {"f32": 2.5, "f64": 2.5},
    "cos": {"f32": 2.5, "f64": 2.5},
    "tan": {"f32": 3.5, "f64": 3.5},
    "asin": {"f32": 3.0, "f64": 3.0},
    "acos": {"f32": 1.5, "f64": 1.5},
    "atan": {"f32": 3.0, "f64": 3.0},
    "atan2": {"f32": 2.0, "f64": 2.0},
    "pow": {"f32": 2.0, "f64": 2.0},
    "rsqrt": {"f32": 2.0, "f64": 2.0},
    "cbrt": {"f32": 2.5, "f64": 2.5},
    "hypot": {"f32": 1.5, "f64": 1.5},
    "erf": {"f32": 2.0, "f64": 2.0},
    "erfc": {"f32": 4.0, "f64": 4.0},
    "gamma": {"f32": 5.0, "f64": 5.0},
    "lgamma": {"f32": 4.0, "f64": 4.0},
    "nextafter": {"f32": 0.0, "f64": 0.0},
}

# Functions that only other front ends use. A bound of 0 means exact; the others are as above. From
# 8 on the errors of j0, j1, y0 and y1 are relative to the amplitude sqrt(2 / (pi x)); those of jn
# and yn hold up to order 40.
FURTHER_BOUNDS: dict[str, dict[str, float]] = {
    "exp10": {"f32": 2.0, "f64": 2.0},
    "rcbrt": {"f32": 3.5, "f64": 3.5},
    "sinpi": {"f32": 2.0, "f64": 2.0},
    "cospi": {"f32": 2.0, "f64": 2.0},
    "norm3d": {"f32": 2.0, "f64": 2.0},
    "norm4d": {"f32": 2.0, "f64": 2.0},
    "rhypot": {"f32": 2.5, "f64": 2.5},
    "rnorm3d": {"f32": 2.5, "f64": 2.5},
    "rnorm4d": {"f32": 2.5, "f64": 2.5},
    "erfinv": {"f32": 5.0, "f64": 5.0},
    "erfcinv": {"f32": 4.0, "f64": 4.0},
    "erfcx": {"f32": 5.0, "f64": 5.0},
    "normcdf": {"f32": 4.0, "f64": 4.0},
    "normcdfinv": {"f32": 5.0, "f64": 5.0},
    "cyl_bessel_i0": {"f32": 8.0, "f64": 8.0},
    "cyl_bessel_i1": {"f32": 8.0, "f64": 8.0},
    "j0": {"f32": 7.0, "f64": 7.0},
    "j1": {"f32": 7.0, "f64": 7.0},
    "y0": {"f32": 7.0, "f64": 7.0},
    "y1": {"f32": 7.0, "f64": 7.0},
    "jn": {"f32": 20.0, "f64": 20.0},
    "yn": {"f32": 20.0, "f64": 20.0},
    "frexp_fraction": {"f32": 0.0, "f64": 0.0},
    "frexp_exponent": {"f32": 0.0, "f64": 0.0},
    "ilogb": {"f32": 0.0, "f64": 0.0},
    "logb": {"f32": 0.0, "f64": 0.0},
    "ldexp": {"f32": 0.0, "f64": 0.0},
    "remainder": {"f32": 0.0, "f64": 0.0},
    "remainder_quotient": {"f32": 0.0, "f64": 0.0},
    "add_directed": {"f32": 0.0, "f64": 0.0},
    "mul_directed": {"f32": 0.0, "f64": 0.0},
    "div_directed": {"f32": 0.0, "f64": 0.0},
    "sqrt_directed": {"f32": 0.0, "f64": 0.0},
    "fma_directed": {"f32": 0.0, "f64": 0.0},
}


def _functions(names: Iterable[str]) -> dict[str, MathFunction]:
    written = {
        name: value
        for module in _MODULES
        for name, value in vars(module).items()
        if isinstance(value, Generic)
    }
    return {name: MathFunction(written[name]) for name in names}


FUNCTIONS: dict[str, MathFunction] = _functions(ULP_BOUNDS)
FURTHER: dict[str, MathFunction] = _functions(FURTHER_BOUNDS)


@cache
def library() -> dict[str, FunctionType]:
    """All functions. The front end looks up the plain name, which functions of one version have
    ("rand_uniform"), then the name with the type it computes in ("exp_f32").

    For float16 and bfloat16 it computes in float32 and rounds, unless there is a version for the
    narrow type itself ("nextafter_f16").
    """
    return {
        f"{name}_{type}": version
        for name, function in (FUNCTIONS | FURTHER).items()
        for type, version in function.versions.items()
    } | {
        "nextafter_f16": neighbours.nextafter_f16,
        "nextafter_bf16": neighbours.nextafter_bf16,
        "rand_uniform": random.rand_uniform,
        "rand_normal": random.rand_normal,
        "byte_perm_u32": bits.byte_perm_u32,
    }
