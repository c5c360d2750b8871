"""Small functions that both languages need, by name.

A key may end in a scalar type's name or kind ("odd_float i32", "minimum int"): its text is for
that.
"""

from __future__ import annotations

from treadle.codegen.c_family.language import Helper

_WRAP = "Integers wrap where they overflow; C++ says nothing of signed ones that do."
_DIVIDE = "Division by 0 gives 0, and what does not fit wraps."


def _one_line(name: str, parameters: str, value: str) -> str:
    return f"{{fn}} {{T}} {name}({parameters}) {{{{\n    return {value};\n}}}}"


def _wrapping(name: str, sign: str) -> Helper:
    value = f"({{T}})(({{U}})a {sign} ({{U}})b)"
    return Helper(_one_line(name, "{T} a, {T} b", value), comment=_WRAP if sign == "+" else "")


HELPERS: dict[str, Helper] = {
    "wrap_add": _wrapping("wrap_add", "+"),
    "wrap_sub": _wrapping("wrap_sub", "-"),
    "wrap_mul": _wrapping("wrap_mul", "*"),
    "wrap_abs int": Helper(_one_line("wrap_abs", "{T} a", "a < 0 ? ({T})(0 - ({U})a) : a")),
    "wrap_abs uint": Helper(_one_line("wrap_abs", "{T} a", "a")),
    "minimum int": Helper(_one_line("minimum", "{T} a, {T} b", "a < b ? a : b")),
    "minimum uint": Helper(_one_line("minimum", "{T} a, {T} b", "a < b ? a : b")),
    "maximum int": Helper(_one_line("maximum", "{T} a, {T} b", "a > b ? a : b")),
    "maximum uint": Helper(_one_line("maximum", "{T} a, {T} b", "a > b ? a : b")),
    "inside": Helper(
        "{fn} bool inside({T} index, {T} size) {{\n    return ({U})index < ({U})size;\n}}",
        comment="Whether 0 <= index < size.",
    ),
    # By 0 the product is 0, by -1 it is the quotient, wrapped.
    "truncated_div int": Helper(
        _one_line(
            "truncated_div", "{T} a, {T} b", "b == 0 || b == -1 ? ({T})(({U})a * ({U})b) : a / b"
        ),
        comment=_DIVIDE,
    ),
    "truncated_div uint": Helper(
        _one_line("truncated_div", "{T} a, {T} b", "b == 0 ? 0 : a / b"), comment=_DIVIDE
    ),
    "truncated_rem int": Helper(
        _one_line("truncated_rem", "{T} a, {T} b", "b == 0 || b == -1 ? 0 : a % b")
    ),
    "truncated_rem uint": Helper(_one_line("truncated_rem", "{T} a, {T} b", "b == 0 ? 0 : a % b")),
    "floor_div int": Helper(
        """\
{fn} {T} floor_div({T} a, {T} b) {{
    if (b == 0 || b == -1) {{
        return ({T})(({U})a * ({U})b);
    }}
    return a % b != 0 && (a < 0) != (b < 0) ? a / b - 1 : a / b;
}}""",
        comment="Division that rounds down; by 0 it gives 0, and what does not fit wraps.",
    ),
    "floor_div uint": Helper(
        _one_line("floor_div", "{T} a, {T} b", "b == 0 ? 0 : a / b"), comment=_DIVIDE
    ),
    "floor_mod int": Helper(
        """\
{fn} {T} floor_mod({T} a, {T} b) {{
    if (b == 0 || b == -1) {{
        return 0;
    }}
    {T} remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}}""",
        comment="The remainder that has the divisor's sign; of a division by 0 it is 0.",
    ),
    "floor_mod uint": Helper(_one_line("floor_mod", "{T} a, {T} b", "b == 0 ? 0 : a % b")),
    "shift_left": Helper(
        _one_line("shift_left", "{T} a, {T} b", "({U})b < {bits} ? ({T})(({U})a << b) : 0"),
        comment="Shifts by the width or more give 0, or the sign.",
    ),
    "shift_right int": Helper(
        _one_line("shift_right", "{T} a, {T} b", "a >> (({U})b < {bits} ? b : {bits} - 1)"),
        comment="Shifts by the width or more give 0, or the sign.",
    ),
    "shift_right uint": Helper(
        _one_line("shift_right", "{T} a, {T} b", "b < {bits} ? a >> b : 0"),
        comment="Shifts by the width or more give 0.",
    ),
    "to_{name}": Helper(
        """\
{fn} {T} to_{name}({S} a) {{
    if (a != a) {{
        return 0;
    }}
    return a >= {high} ? {max} : a <= {low} ? {min} : ({T})a;
}}""",
        comment="Truncated, kept in the range of the type; NaN is 0.",
    ),
    # Floats with the sign of the divisor, as Python has it.
    "floor_mod float": Helper(
        """\
{fn} {T} floor_mod({T} a, {T} b) {{
    {T} remainder = float_rem(a, b);
    if (remainder == 0) {{
        return sign_of(b, 0);
    }}
    return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}}""",
        ("float_rem", "sign_of"),
        "The remainder that has the divisor's sign.",
    ),
    "floor_div float": Helper(
        """\
{fn} {T} floor_div({T} a, {T} b) {{
    if (b == 0 || isinf(a)) {{
        return b == 0 ? a / b : a - a;
    }}
    {T} remainder = float_rem(a, b);
    {T} quotient = (a - remainder) / b; // nearly whole: what is divided is a multiple of b
    if (remainder != 0 && (remainder < 0) != (b < 0)) {{
        quotient -= 1;
    }}
    if (quotient == 0) {{
        return sign_of(a / b, 0);
    }}
    {T} whole = floor(quotient);
    return quotient - whole > ({T})0.5 ? whole + 1 : whole;
}}""",
        ("float_rem", "sign_of"),
        "The quotient that goes with floor_mod.",
    ),
    "sign_of": Helper(
        _one_line("sign_of", "{T} sign, {T} size", "signbit(sign) ? -size : size"),
    ),
    # Rounded to odd where it is not exact: rounding once more, to a narrower type, then gives what
    # rounding at once would have given.
    "odd_float u32": Helper(
        """\
{fn} float odd_float({T} a) {{
    bool fits = a < 0x01000000u;
    return (float)(fits ? a : (a & 0xffffff00u) | ((a & 0xffu) != 0 ? 0x100u : 0u));
}}""",
        comment="A float that may be rounded once more, and is right then.",
    ),
    "odd_float i32": Helper(
        """\
{fn} float odd_float({T} a) {{
    return a < 0 ? -odd_float(0u - ({U})a) : odd_float(({U})a);
}}""",
        ("odd_float:u32",),
    ),
    "odd_float u64": Helper(
        """\
{fn} float odd_float({T} a) {{
    int shift = 0;
    while (a >> shift >> 32 != 0) {{
        shift++;
    }}
    {T} scale = ({T})1 << shift;
    return odd_float(({U32})(a >> shift) | ((a & (scale - 1)) != 0 ? 1u : 0u)) * (float)scale;
}}""",
        ("odd_float:u32",),
    ),
    "odd_float i64": Helper(
        """\
{fn} float odd_float({T} a) {{
    return a < 0 ? -odd_float(0 - ({U})a) : odd_float(({U})a);
}}""",
        ("odd_float:u64",),
    ),
    # The product of two 16-bit floats is exact; what is lost of the sum says which way to lean.
    "odd_fma": Helper(
        """\
{fn} float odd_fma(float a, float b, float c) {{
    float product = a * b, sum = product + c, added = sum - product;
    float lost = (product - (sum - added)) + (c - added);
    unsigned int bits = {bits_of};
    if (lost == 0 || lost != lost || bits & 1) {{
        return sum;
    }}
    bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
    return {float_of};
}}""",
        comment="A fused product and sum that may be rounded once more, and is right then.",
    ),
}

_SIGNS = ("+", "-", "*", "/")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def struct_float_helpers(name: str, type: str) -> dict[str, Helper]:
    """The operators of a 16-bit float that is a struct of its bits, `type` in the text: computed
    in float32, rounded each time."""
    uses = ("to_float", f"to_{type}:")
    found: dict[str, Helper] = {}
    for sign in _SIGNS:
        value = f"to_{type}(to_float(a) {sign} to_float(b))"
        text = _one_line(f"operator{sign}", "{T} a, {T} b", value)
        if sign == "-":  # of one operand, too
            text += "\n\n{fn} {T} operator-({T} a) {{\n    a.bits ^= 0x8000;\n    return a;\n}}"
        found[f"operator{sign} {name}"] = Helper(text, uses)
    for sign in _COMPARISONS:
        found[f"operator{sign} {name}"] = Helper(
            f"{{fn}} bool operator{sign}({{T}} a, {{T}} b) {{{{\n"
            f"    return to_float(a) {sign} to_float(b);\n}}}}",
            ("to_float",),
        )
    return found
