"""Kernels in CUDA C++ that compute with small numbers, and what C says they give.

Every expression comes with a function that evaluates it by C's rules: integers promote, meet, wrap
and convert as its types say; floats must be exact, so that no device may round them in another way.
`Undefined` is raised for what C leaves open, or what would round; such statements are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from tests.fuzz.expressions import Choices

Number = int | float
Environment = dict[str, Number]
Evaluate = Callable[[Environment], Number]
LANES = 8


class Undefined(Exception):
    """C does not say what the value is, or a device may round it."""


@dataclass(frozen=True)
class CType:
    """An arithmetic type of C: `bits` 1 is bool, of floats 32."""

    name: str
    bits: int
    signed: bool = True
    floating: bool = False

    @property
    def rank(self) -> int:
        return self.bits

    def holds(self, value: Number) -> Number:
        """A value converted to the type."""
        if self.floating:
            made = float(np.float32(value))
            if abs(made) > 2.0**40 or Fraction(made) != Fraction(value):
                raise Undefined
            return made
        if self.bits == 1:
            return int(value != 0)
        whole = int(value)
        if isinstance(value, float) and not self._fits(whole):
            raise Undefined
        whole &= (1 << self.bits) - 1
        return whole - (1 << self.bits) if self.signed and whole >> (self.bits - 1) else whole

    def _fits(self, whole: int) -> bool:
        low = -(1 << (self.bits - 1)) if self.signed else 0
        return low <= whole < low + (1 << self.bits)


BOOL = CType("bool", 1, False)
INT, UNSIGNED = CType("int", 32), CType("unsigned", 32, False)
LONG, UNSIGNED_LONG = CType("long long", 64), CType("unsigned long long", 64, False)
FLOAT = CType("float", 32, True, True)
TYPES = (
    INT, FLOAT, UNSIGNED, LONG, UNSIGNED_LONG, CType("short", 16), CType("unsigned char", 8, False),
    CType("signed char", 8), CType("unsigned short", 16, False), BOOL,
)  # fmt: skip


def promoted(type: CType) -> CType:
    """What an operand becomes by itself."""
    return INT if not type.floating and type.bits < 32 else type


def meeting(left: CType, right: CType) -> CType:
    """What two operands become together."""
    if left.floating or right.floating:
        return FLOAT
    left, right = promoted(left), promoted(right)
    if left.rank != right.rank:
        return left if left.rank > right.rank else right
    return left if not left.signed else right


@dataclass(frozen=True)
class Expression:
    """Text, its type, and how it is evaluated."""

    text: str
    type: CType
    evaluate: Evaluate


_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}  # fmt: skip
_BITWISE: dict[str, Callable[[int, int], int]] = {
    "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def _sum_of(op: str, a: Number, b: Number) -> Number:
    made = _ARITHMETIC[op](a, b)
    if isinstance(made, float) and Fraction(made) != _ARITHMETIC[op](Fraction(a), Fraction(b)):
        raise Undefined
    return made


def _quotient(op: str, a: int, b: int, type: CType) -> int:
    if b == 0 or (type.signed and b == -1 and a == -(1 << (type.bits - 1))):
        raise Undefined
    size = abs(a) // abs(b)
    whole = size if (a < 0) == (b < 0) else -size
    return whole if op == "/" else a - whole * b


def binary(op: str, left: Expression, right: Expression) -> Expression:
    """`left op right`, in parentheses."""
    text = f"({left.text} {op} {right.text})"
    one, other = left.evaluate, right.evaluate
    if op in ("<<", ">>"):
        type = promoted(left.type)
        mask = type.bits - 1
        text = f"({left.text} {op} ({right.text} & {mask}))"

        def shift(env: Environment) -> Number:
            value, count = int(type.holds(one(env))), int(other(env)) & mask
            return type.holds(value << count if op == "<<" else value >> count)

        return Expression(text, type, shift)
    type = meeting(left.type, right.type)

    def both(env: Environment) -> tuple[Number, Number]:
        return type.holds(one(env)), type.holds(other(env))

    if op in _COMPARISONS:
        return Expression(text, BOOL, lambda env: int(_COMPARISONS[op](*both(env))))
    if op in _ARITHMETIC:
        return Expression(text, type, lambda env: type.holds(_sum_of(op, *both(env))))
    if op in _BITWISE:
        return Expression(text, type, lambda env: _BITWISE[op](*map(int, both(env))))
    return Expression(text, type, lambda env: _quotient(op, *map(int, both(env)), type))


def cast(type: CType, value: Expression, form: int = 0) -> Expression:
    """`(type)value`, or `static_cast<type>(value)`."""
    text = f"static_cast<{type.name}>({value.text})" if form else f"({type.name})({value.text})"
    return Expression(text, type, lambda env: type.holds(value.evaluate(env)))


@dataclass
class Drawn:
    """A kernel while it is drawn: its statements, and its variables in every lane so far."""

    choices: Choices
    lanes: list[Environment]
    types: dict[str, CType] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def expression(self, depth: int, integer: bool = False) -> Expression:
        """Any expression; an integer's, if that is asked for."""
        made = self._any(depth)
        return cast(INT, made) if integer and made.type.floating else made

    def _any(self, depth: int) -> Expression:
        choices = self.choices
        if depth <= 0 or choices.chance(15):
            return self._leaf()
        kind = choices.number(0, 13)
        if kind < 4:
            op = choices.pick(tuple(_ARITHMETIC))
            return binary(op, self._any(depth - 1), self._any(depth - 1))
        if kind < 9:
            op = choices.pick((*_BITWISE, "<<", ">>", "/", "%"))
            return binary(op, self.expression(depth - 1, True), self.expression(depth - 1, True))
        if kind == 9:
            op = choices.pick(tuple(_COMPARISONS))
            return binary(op, self._any(depth - 1), self._any(depth - 1))
        if kind == 10:
            return self._unary(self._any(depth - 1))
        if kind == 11:
            return cast(choices.pick(TYPES), self._any(depth - 1), choices.number(0, 1))
        if kind == 12:
            return self._conditional(depth)
        return self._logical(self._any(depth - 1), self._any(depth - 1))

    def _leaf(self) -> Expression:
        choices = self.choices
        if choices.chance(70):
            name = choices.pick(tuple(self.types))
            return Expression(name, self.types[name], lambda env: env[name])
        kind = choices.number(0, 5)
        if kind == 0:
            quarter = choices.number(0, 80) / 4
            return Expression(f"{quarter}f", FLOAT, lambda env: quarter)
        value = choices.number(0, 255)
        if kind == 1:
            value = (value << 25) ^ (value << 40)
            return Expression(f"{value}ll", LONG, lambda env: value)
        if kind == 2:
            value ^= 0xFFFFFFF0
            return Expression(f"{value:#x}u", UNSIGNED, lambda env: value)
        return Expression(str(value), INT, lambda env: value)

    def _unary(self, value: Expression) -> Expression:
        op = self.choices.pick(("-", "~", "!", "+"))
        if op == "!":
            return Expression(f"!({value.text})", BOOL, lambda env: int(not value.evaluate(env)))
        type = promoted(value.type)
        if op == "~" and type.floating:
            op = "-"

        def evaluate(env: Environment) -> Number:
            number = type.holds(value.evaluate(env))
            if op == "~":
                return type.holds(~int(number))
            return type.holds(-number) if op == "-" else number

        return Expression(f"{op}({value.text})", type, evaluate)

    def _conditional(self, depth: int) -> Expression:
        test, one, other = (self._any(depth - 1) for _ in range(3))
        type = one.type if one.type == other.type else meeting(one.type, other.type)
        return Expression(
            f"({test.text} ? {one.text} : {other.text})",
            type,
            lambda env: type.holds((one if test.evaluate(env) else other).evaluate(env)),
        )

    def _logical(self, left: Expression, right: Expression) -> Expression:
        op = self.choices.pick(("&&", "||"))

        def evaluate(env: Environment) -> Number:
            first = bool(left.evaluate(env))
            if first == (op == "||"):
                return int(first)
            return int(bool(right.evaluate(env)))

        return Expression(f"({left.text} {op} {right.text})", BOOL, evaluate)

    # --- statements ---

    def statement(self) -> None:
        """One more statement, if C says what it does."""
        kind = self.choices.number(0, 5)
        made = (self._declare, self._declare, self._update, self._update, self._if, self._loop)
        made[kind]()

    def _keep(self, line: str, name: str, values: Callable[[Environment], Number]) -> bool:
        try:
            found = [values(dict(env)) for env in self.lanes]
        except Undefined:
            return False
        for env, value in zip(self.lanes, found, strict=True):
            env[name] = value
        self.lines.append(line)
        return True

    def _declare(self) -> None:
        type, value = self.choices.pick(TYPES), self.expression(3)
        name = f"v{len(self.types)}"
        line = f"{type.name} {name} = {value.text};"
        if self._keep(line, name, lambda env: type.holds(value.evaluate(env))):
            self.types[name] = type

    def _change(self) -> tuple[str, str, Evaluate]:
        """A statement that changes a variable: its text, the variable, and the new value."""
        choices = self.choices
        name = choices.pick(tuple(self.types))
        type = self.types[name]
        own = Expression(name, type, lambda env: env[name])
        if type != BOOL and choices.chance(15):
            op = choices.pick(("++", "--"))
            step = binary(op[0], own, Expression("1", INT, lambda env: 1))
            return f"{name}{op};", name, lambda env: type.holds(step.evaluate(env))
        if type.floating:
            op = choices.pick(tuple(_ARITHMETIC))
        else:
            op = choices.pick((*_ARITHMETIC, *_BITWISE, "/", "%"))
        value = self.expression(2, op in _BITWISE or op in "/%")
        made = binary(op, own, value)
        return f"{name} {op}= {value.text};", name, lambda env: type.holds(made.evaluate(env))

    def _update(self) -> None:
        self._keep(*self._change())

    def _if(self) -> None:
        test = self.expression(2)
        line, name, evaluate = self._change()
        self._keep(
            f"if ({test.text}) {line}",
            name,
            lambda env: evaluate(env) if test.evaluate(env) else env[name],
        )

    def _loop(self) -> None:
        rounds = self.choices.number(1, 4)
        line, name, evaluate = self._change()

        def run(env: Environment) -> Number:
            for _ in range(rounds):
                env[name] = evaluate(env)
            return env[name]

        head = self.choices.pick((
            f"for (int k = 0; k < {rounds}; k++)", f"for (int k = {rounds}; k--;)",
            f"for (unsigned k = {rounds}; k > 0; --k)",
        ))  # fmt: skip
        self._keep(f"{head} {line}", name, run)


@dataclass(frozen=True)
class Drawing:
    """A kernel's text and, for each lane, the words that it writes."""

    text: str
    words: np.ndarray
    integers: np.ndarray
    floats: np.ndarray


def drawing_from(tape: bytes) -> Drawing:
    """The kernel that a tape of bytes decides on."""
    choices = Choices(tape)
    seed = choices.number(0, 255)
    rng = np.random.default_rng(seed)
    edges = np.array([0, -1, 1, 2**31 - 1, -(2**31), 255, -128, 7], np.int64)
    integers = np.where(rng.random(LANES) < 0.6, rng.integers(-50, 50, LANES), edges)
    integers = integers.astype(np.int32)
    floats = (rng.integers(-64, 64, LANES) / 4).astype(np.float32)
    lanes: list[Environment] = [
        {"a": int(a), "b": float(b), "c": int(a) & 0xFFFFFFFF, "d": i}
        for i, (a, b) in enumerate(zip(integers, floats, strict=True))
    ]
    drawn = Drawn(choices, lanes, {"a": INT, "b": FLOAT, "c": UNSIGNED, "d": INT})
    for _ in range(choices.number(4, 14)):
        drawn.statement()
    stores, words = [], []
    for name, type in drawn.types.items():
        for text, value in _stored(name, type):
            stores.append(f"out[{len(words)} * {LANES} + i] = {text};")
            words.append([value(env[name]) for env in lanes])
    lines = "\n    ".join([*drawn.lines, *stores])
    text = (
        "__global__ void drawn(const int *in, const float *reals, int *out)\n{\n"
        "    int i = threadIdx.x, d = i;\n    int a = in[i];\n    float b = reals[i];\n"
        f"    unsigned c = a;\n    {lines}\n}}\n"
    )
    return Drawing(text, np.array(words, np.int64).astype(np.int32), integers, floats)


def _stored(name: str, type: CType) -> list[tuple[str, Callable[[Number], int]]]:
    """The words that a variable is stored as. Drivers lose the sign of zeros, as WGSL lets them."""
    if type.floating:
        text = f"{name} == 0 ? 0 : __float_as_int({name})"
        return [(text, lambda v: int(np.float32(v).view(np.int32)) if v else 0)]
    low = (f"(int){name}", lambda v: int(INT.holds(int(v))))
    high = (f"(int)({name} >> 32)", lambda v: int(INT.holds(int(v) >> 32)))
    return [low, high] if type.bits == 64 else [low]
