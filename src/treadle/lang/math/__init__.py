"""The math library: written once, in the kernel language, and used on every target.

WGSL's and PTX's own functions promise little, and drivers differ. These give the same results
everywhere, to within the roundings that a target is free to make: `ULP_BOUNDS` says how near to
the true value each is. The frontend looks a function up in `LIBRARY`, under its name and the type
it computes in ("exp_f32"), and lowers it like a function that a user wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType, ModuleType

from treadle.lang.math import (
    exponential,
    exponential_f64,
    logarithm,
    logarithm_f64,
    neighbours,
    powers,
    powers_f64,
    random,
    special,
    special_f64,
    trigonometry,
    trigonometry_f64,
)


@dataclass(frozen=True)
class MathFunction:
    """A function of the library: how many arguments, and its version for each type."""

    arity: int
    versions: dict[str, FunctionType]


_MODULES: dict[str, tuple[ModuleType, ...]] = {
    "f32": (exponential, logarithm, trigonometry, powers, special, neighbours),
    "f64": (
        exponential_f64,
        logarithm_f64,
        trigonometry_f64,
        powers_f64,
        special_f64,
        neighbours,
    ),
}

# name: the largest error in units in the last place, for f32 and f64, on a target with IEEE
# arithmetic or fused multiply-adds, and where division and square root are off by up to 2.5 ULP.
ULP_BOUNDS: dict[str, dict[str, float]] = {
    "exp": {"f32": 1.5, "f64": 1.5},
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


def _versions(name: str) -> dict[str, FunctionType]:
    found: dict[str, FunctionType] = {}
    for type, modules in _MODULES.items():
        for module in modules:
            function = vars(module).get(name if type == "f32" else f"{name}_{type}")
            if function is not None and function.__module__ == module.__name__:
                found[type] = function
    return found


FUNCTIONS: dict[str, MathFunction] = {
    name: MathFunction(next(iter(versions.values())).__code__.co_argcount, versions)
    for name, versions in ((name, _versions(name)) for name in ULP_BOUNDS)
}
# "exp_f32": …; what works on one type only has its plain name. Of narrow floats, which are computed
# in float32 and rounded, only neighbours need functions of their own.
LIBRARY: dict[str, FunctionType] = {
    f"{name}_{type}": version
    for name, function in FUNCTIONS.items()
    for type, version in function.versions.items()
} | {
    "nextafter_f16": neighbours.nextafter_f16,
    "nextafter_bf16": neighbours.nextafter_bf16,
    "rand_uniform": random.rand_uniform,
    "rand_normal": random.rand_normal,
}
