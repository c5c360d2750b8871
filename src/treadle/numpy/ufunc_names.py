"""The names of ufuncs: NumPy's."""

UFUNCS = (
    "absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and "
    "bitwise_count  bitwise_or bitwise_xor cbrt ceil conjugate copysign cos cosh deg2rad "
    "degrees divide divmod  equal exp exp2 expm1 fabs float_power floor floor_divide fmax fmin "
    "fmod frexp gcd greater  greater_equal heaviside hypot invert isfinite isinf isnan lcm "
    "ldexp left_shift less  less_equal  log log10 log1p log2 logaddexp logaddexp2 logical_and "
    "logical_not logical_or logical_xor  maximum minimum modf multiply negative nextafter "
    "not_equal positive power rad2deg radians  reciprocal remainder right_shift rint sign "
    "signbit sin sinh spacing sqrt square subtract tan  tanh trunc"
)
ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_not": "invert",
    "bitwise_right_shift": "right_shift", "conj": "conjugate", "mod": "remainder", "pow": "power",
    "true_divide": "divide",
}  # fmt: skip
