"""The `fast_` intrinsics: short polynomials that vectorize, where a library call would not.

They promise no accuracy; f32 gets about six digits, f64 about thirteen where the argument is
moderate. Special values go where the formulas lead, infinities and NaN mostly right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, log, log2, pi

from treadle.codegen.llvm.emitter import Emitter
from treadle.codegen.llvm.spelling import constant, splat, value_type, widened
from treadle.ir.types import Scalar

Rule = Callable[[Emitter, Scalar, Sequence[str], int], str]

_EXP2_TERMS = {"f32": 7, "f64": 13}
_LOG_TERMS = {"f32": 5, "f64": 11}
_TRIGONOMETRIC_TERMS = {"f32": 6, "f64": 10}
_MANTISSA = {"f32": 23, "f64": 52}
_BIAS = {"f32": 127, "f64": 1023}
_HALF_ROOT_BITS = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}


class _Math:
    """Arithmetic on one float type, as short method calls."""

    def __init__(self, e: Emitter, type: Scalar, width: int) -> None:
        self.e, self.type, self.width = e, type, width
        self.llvm = value_type(type, width)
        self.integer_element = f"i{type.bits}"
        self.integer = widened(self.integer_element, width)

    def number(self, value: float) -> str:
        return constant(self.type, value, self.width)

    def word(self, value: int) -> str:
        return splat(self.integer_element, str(value), self.width)

    def op(self, op: str, a: str, b: str) -> str:
        return self.e.op(f"{op} {self.e.float_flags}{self.llvm} {a}, {b}")

    def on_bits(self, op: str, a: str, b: str) -> str:
        return self.e.op(f"{op} {self.integer} {a}, {b}")

    def call(self, name: str, *operands: str) -> str:
        return self.e.intrinsic(name, self.llvm, [(self.llvm, a) for a in operands], [self.llvm])

    def to_bits(self, a: str) -> str:
        return self.e.op(f"bitcast {self.llvm} {a} to {self.integer}")

    def from_bits(self, a: str) -> str:
        return self.e.op(f"bitcast {self.integer} {a} to {self.llvm}")

    def to_integer(self, a: str) -> str:
        """A float that is an integer of moderate size; anything for others."""
        limit = self.number(2.0 ** (self.type.bits - 2))
        moderate = self.test("olt", self.call("fabs", a), limit)
        safe = self.where(moderate, a, self.number(0.0))
        return self.e.op(f"fptosi {self.llvm} {safe} to {self.integer}")

    def where(self, test: str, a: str, b: str) -> str:
        bits = widened("i1", self.width)
        return self.e.op(f"select {bits} {test}, {self.llvm} {a}, {self.llvm} {b}")

    def test(self, comparison: str, a: str, b: str) -> str:
        return self.e.op(f"fcmp {comparison} {self.llvm} {a}, {b}")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Horner's rule; coefficients from the constant upward."""
        total = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.call("fma", total, x, self.number(coefficient))
        return total


def _exp2(m: _Math, x: str) -> str:
    """2**x: the integer part goes to the exponent, in two halves so that it can leave the range;
    the remainder, at most a half, into the series of exp."""
    name = m.type.name
    span = float(_BIAS[name] + _MANTISSA[name] + 3)
    clamped = m.call("minimum", m.call("maximum", x, m.number(-span)), m.number(span))
    whole = m.call("rint", clamped)
    rest = m.op("fsub", clamped, whole)
    series = [log(2.0) ** k / factorial(k) for k in range(_EXP2_TERMS[name] + 1)]
    value = m.polynomial(rest, series)
    exponent = m.to_integer(whole)
    first = m.on_bits("ashr", exponent, m.word(1))
    second = m.on_bits("sub", exponent, first)
    for part in (first, second):
        biased = m.on_bits("add", part, m.word(_BIAS[name]))
        power = m.from_bits(m.on_bits("shl", biased, m.word(_MANTISSA[name])))
        value = m.op("fmul", value, power)
    return value


def _log2(m: _Math, x: str) -> str:
    """The exponent, plus the series of atanh for a mantissa between sqrt(1/2) and sqrt(2)."""
    name = m.type.name
    shift, bias = _MANTISSA[name], _BIAS[name]
    lowest = m.number(2.0 ** (1 - bias))
    tiny = m.test("olt", x, lowest)  # denormals (and what is not positive, mended below)
    scaled = m.where(tiny, m.op("fmul", x, m.number(2.0**shift)), x)
    bits = m.to_bits(scaled)
    # Counted from sqrt(1/2), the exponent changes at sqrt(1/2) and not at 1.
    moved = m.on_bits("sub", bits, m.word(_HALF_ROOT_BITS[name]))
    exponent = m.on_bits("ashr", moved, m.word(shift))
    cut = m.on_bits("shl", exponent, m.word(shift))
    mantissa = m.from_bits(m.on_bits("sub", bits, cut))
    power = m.e.op(f"sitofp {m.integer} {exponent} to {m.llvm}")
    power = m.op("fsub", power, m.where(tiny, m.number(float(shift)), m.number(0.0)))
    one = m.number(1.0)
    ratio = m.op("fdiv", m.op("fsub", mantissa, one), m.op("fadd", mantissa, one))
    square = m.op("fmul", ratio, ratio)
    series = [2.0 / log(2.0) / (2 * k + 1) for k in range(_LOG_TERMS[name])]
    value = m.call("fma", ratio, m.polynomial(square, series), power)
    value = m.where(m.test("oeq", x, m.number(0.0)), m.number(-float("inf")), value)
    value = m.where(m.test("ult", x, m.number(0.0)), m.number(float("nan")), value)
    return m.where(m.test("oeq", x, m.number(float("inf"))), x, value)


def _sine(m: _Math, x: str, quarter: int) -> str:
    """sin(x + quarter * pi/2): the nearest multiple of pi/2 is subtracted in three parts, and
    selects the series and the sign."""
    name = m.type.name
    quadrant = m.call("rint", m.op("fmul", x, m.number(2.0 / pi)))
    remainder = x
    for part in _half_pi_parts(name):
        remainder = m.call("fma", quadrant, m.number(-part), remainder)
    quadrant = m.on_bits("add", m.to_integer(quadrant), m.word(quarter))
    square = m.op("fmul", remainder, remainder)
    terms = _TRIGONOMETRIC_TERMS[name]
    sine = [(-1.0) ** k / factorial(2 * k + 1) for k in range(terms)]
    cosine = [(-1.0) ** k / factorial(2 * k) for k in range(terms + 1)]
    on_sine = m.op("fmul", remainder, m.polynomial(square, sine))
    on_cosine = m.polynomial(square, cosine)
    odd = m.e.op(f"trunc {m.integer} {quadrant} to {widened('i1', m.width)}")
    value = m.to_bits(m.where(odd, on_cosine, on_sine))
    flip = m.on_bits("shl", m.on_bits("lshr", quadrant, m.word(1)), m.word(m.type.bits - 1))
    return m.from_bits(m.on_bits("xor", value, flip))


def _half_pi_parts(name: str) -> tuple[float, ...]:
    """pi/2 as a sum of numbers of which the first ones have trailing zeros."""
    if name == "f64":
        return (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
    return (1.5703125, 4.837512969970703e-4, 7.549789954891882e-8)


def _exponential(m: _Math, x: str) -> str:
    return _exp2(m, m.op("fmul", x, m.number(log2(2.718281828459045))))


def _tanh(m: _Math, x: str) -> str:
    """1 - 2 / (exp(2x) + 1): accurate in absolute terms, and right at both ends."""
    grown = _exponential(m, m.op("fadd", x, x))
    one = m.number(1.0)
    return m.op("fsub", one, m.op("fdiv", m.number(2.0), m.op("fadd", grown, one)))


def _rsqrt(m: _Math, x: str) -> str:
    return m.op("fdiv", m.number(1.0), m.call("sqrt", x))


def _one(formula: Callable[[_Math, str], str]) -> Rule:
    return lambda e, type, operands, width: formula(_Math(e, type, width), operands[0])


def _pow(e: Emitter, type: Scalar, operands: Sequence[str], width: int) -> str:
    m = _Math(e, type, width)
    return _exp2(m, m.op("fmul", _log2(m, operands[0]), operands[1]))


RULES: dict[str, Rule] = {
    "fast_rsqrt": _one(_rsqrt),
    "fast_exp": _one(_exponential),
    "fast_exp2": _one(_exp2),
    "fast_log": _one(lambda m, x: m.op("fmul", _log2(m, x), m.number(log(2.0)))),
    "fast_log2": _one(_log2),
    "fast_sin": _one(lambda m, x: _sine(m, x, 0)),
    "fast_cos": _one(lambda m, x: _sine(m, x, 1)),
    "fast_tan": _one(lambda m, x: m.op("fdiv", _sine(m, x, 0), _sine(m, x, 1))),
    "fast_tanh": _one(_tanh),
    "fast_pow": _pow,
}
