"""The table of complex functions, by name and type ("exp_c64"): functions of the kernel language.

Arguments and results are vectors of two, of f32 for c64 and of f64 for c128. (`abs` and `angle`
return real numbers, `isnan`, `isinf` and `isfinite` bools.) Addition, subtraction and negation are
those of vectors.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

from treadle.lang.math import complex_arithmetic, complex_exponential, complex_inverse
from treadle.lang.math.generic import F32, F64, of_width

_NAMES: dict[ModuleType, tuple[str, ...]] = {
    complex_arithmetic: (
        "mul", "square", "div", "reciprocal", "conj", "abs", "angle", "sign", "isnan", "isinf",
        "isfinite", "sqrt", "rsqrt",
    ),
    complex_exponential: (
        "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "pow", "sigmoid",
        "sinh", "cosh", "tanh", "sin", "cos", "tan",
    ),
    complex_inverse: ("asin", "acos", "atan", "asinh", "acosh", "atanh"),
}  # fmt: skip


def _table() -> dict[str, FunctionType]:
    found: dict[str, FunctionType] = {}
    for module, names in _NAMES.items():
        functions = vars(module)
        for name in names:
            found[f"{name}_c64"] = of_width(functions[name], F32)
            found[f"{name}_c128"] = of_width(functions[name], F64)
    return found


COMPLEX: dict[str, FunctionType] = _table()

# The largest |error| / |value|, in machine epsilons, for values in range: of the complex number,
# not of each part, and where division and square root are off by up to 2.5 ULP. For `pow` it is
# multiplied by 1 + |w log z|, for `exp2` by 1 + |y|.
COMPLEX_BOUNDS: dict[str, float] = {
    "mul": 2.0, "square": 2.0, "div": 6.0, "reciprocal": 6.0, "sign": 6.0, "sqrt": 5.0,
    "rsqrt": 9.0, "exp": 3.0, "exp2": 4.0, "sigmoid": 12.0,
    "expm1": 4.0, "log": 3.0, "log1p": 4.0, "log2": 4.0, "log10": 4.0, "pow": 14.0,
    "sinh": 3.0, "cosh": 3.0, "tanh": 7.0, "sin": 3.0, "cos": 3.0, "tan": 7.0,
    "asin": 7.0, "acos": 7.0, "atan": 5.0, "asinh": 7.0, "acosh": 7.0, "atanh": 5.0,
}  # fmt: skip
