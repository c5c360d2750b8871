"""Kernels in CUDA C++ that compute with small numbers, and what C says they give.

Every expression comes with a function that evaluates it by C's rules: integers promote, meet, wrap
and convert as its types say; floats must be exact, so that no device may round them in another way.
`Undefined` is raised for what C leaves open, or what would round; such statements are left out.

Drawn wide, kernels have more in them: double, conversions to half and bfloat16 and back, structs,
vectors, arrays of a thread, and exchanges through shared memory, shuffles and atomics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
            made = float(value) if self.bits == 64 else float(np.float32(value))
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
FLOAT, DOUBLE = CType("float", 32, True, True), CType("double", 64, True, True)
# What a float is converted to and back: binary digits, smallest exponent, largest number.
_HALVES = {
    "__half2float(__float2half({}))": (11, -14, 65504.0),
    "__bfloat162float(__float2bfloat16({}))": (8, -100, 2.0**40),
}
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
        return DOUBLE if DOUBLE in (left, right) else FLOAT
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


def through_half(value: Expression, form: str) -> Expression:
    """A float as a narrower one, which holds it exactly, and back."""
    digits, smallest, most = _HALVES[form]

    def evaluate(env: Environment) -> Number:
        number = float(FLOAT.holds(value.evaluate(env)))
        mantissa, exponent = math.frexp(number)
        fits = float(mantissa * 2.0**digits).is_integer() and abs(number) <= most
        if number and not (fits and exponent > smallest):
            raise Undefined
        return number

    return Expression(form.format(f"(float)({value.text})"), FLOAT, evaluate)


@dataclass
class Drawn:
    """A kernel while it is drawn: its statements, and its variables in every lane so far."""

    choices: Choices
    lanes: list[Environment]
    types: dict[str, CType] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    of: tuple[CType, ...] = TYPES
    count: int = 0  # of names made up

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
            if choices.wide and choices.chance(20):
                return through_half(self._any(depth - 1), choices.pick(tuple(_HALVES)))
            return cast(choices.pick(self.of), self._any(depth - 1), choices.number(0, 1))
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
        made = [self._declare, self._declare, self._update, self._update, self._if, self._loop]
        if self.choices.wide:
            made += [self._exchange, self._total, self._several, self._several, self._array]
        self.choices.pick(made)()

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
        type, value = self.choices.pick(self.of), self.expression(3)
        name = self._new("v")
        line = f"{type.name} {name} = {value.text};"
        if self._keep(line, name, lambda env: type.holds(value.evaluate(env))):
            self.types[name] = type

    def _new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _values(self, type: CType, value: Expression) -> list[Number] | None:
        """What an expression is in every lane, as a type; None where C leaves it open."""
        try:
            return [type.holds(value.evaluate(dict(env))) for env in self.lanes]
        except Undefined:
            return None

    def _add(self, name: str, type: CType, values: Sequence[Number]) -> None:
        self.types[name] = type
        for env, value in zip(self.lanes, values, strict=True):
            env[name] = value

    def _exchange(self) -> None:
        """Another lane's value, by way of shared memory or a shuffle."""
        choices = self.choices
        type, value = choices.pick(self.of), self.expression(2)
        found = self._values(type, value)
        if found is None:
            return
        name, by = self._new("w"), choices.number(1, LANES - 1)
        way = choices.number(0, 2)
        if way == 0 or type not in (INT, UNSIGNED, FLOAT):
            shared = self._new("s")
            self.lines += [
                f"__shared__ {type.name} {shared}[{LANES}];", f"{shared}[i] = {value.text};",
                "__syncthreads();", f"{type.name} {name} = {shared}[(i + {by}) % {LANES}];",
            ]  # fmt: skip
            self._add(name, type, [found[(i + by) % LANES] for i in range(LANES)])
            return
        given = f"({type.name})({value.text})"
        if way == 1:
            lane, text = [(i + by) % LANES for i in range(LANES)], f"(i + {by}) % {LANES}"
            call = "__shfl_sync"
        else:
            lane, text, call = [i ^ by for i in range(LANES)], str(by), "__shfl_xor_sync"
        mask = f"{(1 << LANES) - 1:#x}u"
        self.lines.append(f"{type.name} {name} = {call}({mask}, {given}, {text}, {LANES});")
        self._add(name, type, [found[other] for other in lane])

    def _total(self) -> None:
        """What atomics of all lanes make of a number in shared memory."""
        choices = self.choices
        type, value = choices.pick((INT, UNSIGNED)), self.expression(2, True)
        found = self._values(type, value)
        if found is None:
            return
        shared, name = self._new("s"), self._new("w")
        op, start, together = choices.pick(_ATOMICS)
        total: Number = start
        for one in found:
            total = type.holds(together(int(total), int(one)))
        self.lines += [
            f"__shared__ {type.name} {shared};", f"if (i == 0) {shared} = {start};",
            "__syncthreads();", f"{op}(&{shared}, ({type.name})({value.text}));",
            "__syncthreads();", f"{type.name} {name} = {shared};",
        ]  # fmt: skip
        self._add(name, type, [total] * LANES)

    def _several(self) -> None:
        """A struct or a vector, whose members are then variables as others are."""
        choices = self.choices
        vector, count = choices.chance(50), choices.number(2, 4)
        if vector:
            prefix, each = choices.pick(_VECTORS)
            types = [each] * count
        else:
            types = [choices.pick(self.of) for _ in range(count)]
        values = [self.expression(2) for _ in range(count)]
        found = [self._values(*pair) for pair in zip(types, values, strict=True)]
        if None in found:
            return
        name = self._new("m")
        given = ", ".join(f"({t.name})({v.text})" for t, v in zip(types, values, strict=True))
        if vector:
            members = list("xyzw"[:count])
            self.lines.append(f"{prefix}{count} {name} = make_{prefix}{count}({given});")
        else:
            members = [f"m{k}" for k in range(count)]
            inside = " ".join(f"{t.name} {m};" for t, m in zip(types, members, strict=True))
            self.lines.append(f"struct S{name} {{ {inside} }} {name} = {{{given}}};")
        for member, type, one in zip(members, types, found, strict=True):
            assert one is not None
            self._add(f"{name}.{member}", type, one)

    def _array(self) -> None:
        """An element of an array that each lane has for itself, written and read by an index."""
        choices = self.choices
        type, value, start = choices.pick(self.of), self.expression(2), self.expression(1)
        into, out = self.expression(1, True), self.expression(1, True)
        found = [self._values(t, v) for t, v in
                 ((type, value), (type, start), (INT, into), (INT, out))]  # fmt: skip
        if None in found:
            return
        array, name = self._new("l"), self._new("w")
        self.lines += [
            f"{type.name} {array}[4];",
            f"for (int k = 0; k < 4; k++) {array}[k] = {start.text};",
            f"{array}[(int)({into.text}) & 3] = {value.text};",
            f"{type.name} {name} = {array}[(int)({out.text}) & 3];",
        ]
        rows = zip(*(one for one in found if one is not None), strict=True)
        self._add(name, type, [v if int(a) & 3 == int(b) & 3 else s for v, s, a, b in rows])

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


_ATOMICS: tuple[tuple[str, int, Callable[[int, int], int]], ...] = (
    ("atomicAdd", 0, lambda a, b: a + b), ("atomicXor", 5, lambda a, b: a ^ b),
    ("atomicMax", 3, max), ("atomicMin", 3, min), ("atomicOr", 0, lambda a, b: a | b),
    ("atomicAnd", 255, lambda a, b: a & b), ("atomicSub", 9, lambda a, b: a - b),
)  # fmt: skip
_VECTORS = (
    ("int", INT), ("float", FLOAT), ("uint", UNSIGNED), ("uchar", CType("unsigned char", 8, False)),
    ("short", CType("short", 16)),
)  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A kernel's text and, for each lane, the words that it writes."""

    text: str
    words: np.ndarray
    integers: np.ndarray
    floats: np.ndarray


def drawing_from(tape: bytes, wide: bool = False) -> Drawing:
    """The kernel that a tape of bytes decides on, perhaps with wide types (`Choices.wide`)."""
    choices = Choices(tape, wide)
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
    if wide and choices.chance(25):
        drawn.of = (*TYPES, DOUBLE, DOUBLE)
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
    if type == DOUBLE:
        low = f"{name} == 0 ? 0 : (int)__double_as_longlong({name})"
        high = f"{name} == 0 ? 0 : (int)(__double_as_longlong({name}) >> 32)"
        return [
            (low, lambda v: int(np.float64(v).view(np.int64).astype(np.int32)) if v else 0),
            (high, lambda v: int(np.float64(v).view(np.int64) >> 32) if v else 0),
        ]
    if type.floating:
        text = f"{name} == 0 ? 0 : __float_as_int({name})"
        return [(text, lambda v: int(np.float32(v).view(np.int32)) if v else 0)]
    low = (f"(int){name}", lambda v: int(INT.holds(int(v))))
    high = (f"(int)({name} >> 32)", lambda v: int(INT.holds(int(v) >> 32)))
    return [low, high] if type.bits == 64 else [low]
