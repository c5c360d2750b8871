"""The docstrings of the elementwise functions: operands, dtypes, errors and an example of each.

`td.exp`, the method `x.exp()` and the declarations for editors share one docstring.
"""

from __future__ import annotations

from functools import cache

# The elements of x, the second argument (if there is one), the result, and whether it is rounded.
_Example = tuple[str, str, str] | tuple[str, str, str, bool]

_EXAMPLES: dict[str, _Example] = {
    "abs": ("[-1.5, 2.0]", "", "[1.5, 2.0]"),
    "acos": ("[1.0, 0.0]", "", "0.000 1.571", True),
    "acosh": ("[1.0, 2.0]", "", "0.000 1.317", True),
    "add": ("[1, 2]", "3", "[4, 5]"),
    "angle": ("[1j, -1.0]", "", "1.571 3.142", True),
    "asin": ("[0.0, 1.0]", "", "0.000 1.571", True),
    "asinh": ("[0.0, 1.0]", "", "0.000 0.881", True),
    "atan": ("[0.0, 1.0]", "", "0.000 0.785", True),
    "atan2": ("[1.0, -1.0]", "1.0", "0.785 -0.785", True),
    "atanh": ("[0.0, 0.5]", "", "0.000 0.549", True),
    "bitwise_and": ("[6, 5]", "3", "[2, 1]"),
    "bitwise_invert": ("[0, 5]", "", "[-1, -6]"),
    "bitwise_left_shift": ("[1, 3]", "2", "[4, 12]"),
    "bitwise_or": ("[6, 5]", "3", "[7, 7]"),
    "bitwise_right_shift": ("[8, -8]", "2", "[2, -2]"),
    "bitwise_xor": ("[6, 5]", "3", "[5, 6]"),
    "cbrt": ("[8.0, -27.0]", "", "[2.0, -3.0]"),
    "ceil": ("[-1.5, 1.2]", "", "[-1.0, 2.0]"),
    "conj": ("[1 + 2j]", "", "[(1-2j)]"),
    "copysign": ("[1.0, 2.0]", "-0.0", "[-1.0, -2.0]"),
    "cos": ("[0.0, 1.0]", "", "1.000 0.540", True),
    "cosh": ("[0.0, 1.0]", "", "1.000 1.543", True),
    "divide": ("[1, 2]", "4", "[0.25, 0.5]"),
    "equal": ("[1, 2]", "2", "[False, True]"),
    "erf": ("[0.0, 1.0]", "", "0.000 0.843", True),
    "erfc": ("[0.0, 1.0]", "", "1.000 0.157", True),
    "erfinv": ("[0.0, 0.5]", "", "0.000 0.477", True),
    "exp": ("[0.0, 1.0]", "", "1.000 2.718", True),
    "exp2": ("[3.0, -1.0]", "", "[8.0, 0.5]"),
    "expm1": ("[0.0, 1.0]", "", "0.000 1.718", True),
    "floor": ("[-1.5, 1.2]", "", "[-2.0, 1.0]"),
    "floor_divide": ("[7, -7]", "2", "[3, -4]"),
    "gamma": ("[4.0, 0.5]", "", "6.000 1.772", True),
    "greater": ("[1, 2]", "1", "[False, True]"),
    "greater_equal": ("[1, 2]", "2", "[False, True]"),
    "hypot": ("[3.0, 5.0]", "[4.0, 12.0]", "[5.0, 13.0]"),
    "imag": ("[1 + 2j]", "", "[2.0]"),
    "isfinite": ("[1.0, td.inf]", "", "[True, False]"),
    "isinf": ("[1.0, td.inf]", "", "[False, True]"),
    "isnan": ("[1.0, td.nan]", "", "[False, True]"),
    "less": ("[1, 2]", "2", "[True, False]"),
    "less_equal": ("[1, 2]", "1", "[True, False]"),
    "lgamma": ("[1.0, 5.0]", "", "0.000 3.178", True),
    "log": ("[1.0, 10.0]", "", "0.000 2.303", True),
    "log10": ("[1.0, 1000.0]", "", "[0.0, 3.0]"),
    "log1p": ("[0.0, 1.0]", "", "0.000 0.693", True),
    "log2": ("[8.0, 0.5]", "", "[3.0, -1.0]"),
    "logaddexp": ("[0.0, 100.0]", "0.0", "0.693 100.000", True),
    "logical_and": ("[0, 2]", "[1, 1]", "[False, True]"),
    "logical_not": ("[0, 2]", "", "[True, False]"),
    "logical_or": ("[0, 2]", "[0, 1]", "[False, True]"),
    "logical_xor": ("[0, 2]", "[1, 1]", "[True, False]"),
    "maximum": ("[1, 5]", "3", "[3, 5]"),
    "minimum": ("[1, 5]", "3", "[1, 3]"),
    "multiply": ("[1, 2]", "3", "[3, 6]"),
    "negative": ("[1, -2]", "", "[-1, 2]"),
    "nextafter": ("[1.0]", "2.0", "[1.0000001192092896]"),
    "not_equal": ("[1, 2]", "2", "[True, False]"),
    "positive": ("[1, -2]", "", "[1, -2]"),
    "pow": ("[2, 3]", "3", "[8, 27]"),
    "real": ("[1 + 2j]", "", "[1.0]"),
    "reciprocal": ("[4.0, -0.5]", "", "[0.25, -2.0]"),
    "remainder": ("[7, -7]", "2", "[1, 1]"),
    "round": ("[0.5, 1.5, -1.7]", "", "[0.0, 2.0, -2.0]"),
    "rsqrt": ("[4.0, 0.25]", "", "[0.5, 2.0]"),
    "sigmoid": ("[0.0, 2.0]", "", "0.500 0.881", True),
    "sign": ("[-3.0, 0.0, 2.0]", "", "[-1.0, 0.0, 1.0]"),
    "signbit": ("[-0.0, 2.0]", "", "[True, False]"),
    "sin": ("[0.0, 1.0]", "", "0.000 0.841", True),
    "sinh": ("[0.0, 1.0]", "", "0.000 1.175", True),
    "sqrt": ("[4.0, 2.0]", "", "2.000 1.414", True),
    "square": ("[3, -4]", "", "[9, 16]"),
    "subtract": ("[1, 2]", "3", "[-2, -1]"),
    "tan": ("[0.0, 1.0]", "", "0.000 1.557", True),
    "tanh": ("[0.0, 1.0]", "", "0.000 0.762", True),
    "trunc": ("[-1.5, 1.2]", "", "[-1.0, 1.0]"),
}

_CALLED = {
    "bool": "booleans", "int": "integers", "float": "floating point numbers",
    "complex": "complex numbers",
}  # fmt: skip
_SHAPES = {
    1: "`x` is an array of any shape; the result has the same shape.",
    2: "`x1` and `x2` are arrays whose shapes broadcast, or one of them is a number. ShapeError if "
    "they do not broadcast, LaunchError for tensors on two devices.",
}
_RESULTS = {
    "same": "The result has the same dtype.",
    "bool": "The result is boolean.",
    "component": "The result has the same dtype, or that of the parts of complex numbers.",
}


def document(
    name: str, doc: str, operands: int, kinds: frozenset[str], of_bools: str, result: str
) -> str:
    """The docstring of a function that computes in dtypes of some kinds. `of_bools` says how it
    treats bools if they are not among the kinds: "bool" or "int"."""
    return f"{doc}\n\n{_rules(operands, kinds, of_bools, result)}\n\n{_example(name)}"


@cache  # few distinct combinations
def _rules(operands: int, kinds: frozenset[str], of_bools: str, result: str) -> str:
    """The sentences on shapes, dtypes and errors."""
    taken, also = set(kinds), ""
    if kinds == {"bool"}:
        also, taken = "; other numbers are true where they are not 0", set(_CALLED)
    elif "float" in kinds and "int" not in kinds:
        also = "; integers and booleans become float32"
        taken |= {"bool", "int"}
    if of_bools:
        taken.add("bool")
    if of_bools == "int":
        also = "; booleans become the device's default integer"
    promoted = ", promoted to one dtype" if operands == 2 else ""
    takes = ", ".join(_CALLED[kind] for kind in _CALLED if kind in (kinds if also else taken))
    refused = " and ".join(_CALLED[kind] for kind in _CALLED if kind not in taken)
    dtypes = f"It takes {takes}{promoted}{also}. {_RESULTS[result]}"
    if refused:
        dtypes += f" DtypeError for {refused}."
    return _filled(f"{_SHAPES[operands]} {dtypes}")


def _filled(text: str) -> str:
    """A text wrapped at 92 characters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= 92:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def _example(name: str) -> str:
    if name not in _EXAMPLES:
        raise LookupError(f"{name} has no example: add a line to _EXAMPLES in {__name__}")
    x, other, shown, *rounded = _EXAMPLES[name]
    call = f"td.{name}(x{', ' if other else ''}{other}).tolist()"
    if rounded:
        call = f'print(*[f"{{y:.3f}}" for y in {call}])'
    return f'>>> import treadle as td\n>>> x = td.asarray({x}, device="cpu")\n>>> {call}\n{shown}\n'
