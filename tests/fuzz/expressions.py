"""Typed expressions of the kernel language, drawn as text.

Everything drawn has one exact value. Integers wrap, and floats stay exact by construction: each
float expression knows a bound of its magnitude and its finest binary digit, and the two never span
more than the 24 digits of an f32. So rounding, contraction and the order of sums change nothing.

`Choices.wide` draws from more types: 64-bit integers, float16, bfloat16 and float64, vectors and
structs. Cards are tried with these; software devices compile great numbers of them for too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

INTEGERS = ("i32", "u32", "i8", "u8", "i16", "u16")
WIDE_INTEGERS = ("i64", "u64")
WIDTH = {"i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}
DIGITS = 24
# Of the other floats: binary digits, and the highest exponent a value may have to stay far away
# from what overflows. Everything drawn is a multiple of 2**-14 at least, so nothing is denormal.
FLOATS = {"f16": (11, 14), "bf16": (8, 60), "f64": (53, 60)}
# A float variable or array element: multiples of 1/4, at most 256 in magnitude.
STORED_HIGH, STORED_LOW = 8, 2


def lowest(type: str) -> int:
    return -(1 << (WIDTH[type] - 1)) if type[0] == "i" else 0


def highest(type: str) -> int:
    return (1 << (WIDTH[type] - (type[0] == "i"))) - 1


def holds(wide: str, narrow: str) -> bool:
    """Whether mixing the two integer types gives `wide`."""
    if wide == narrow:
        return True
    return (wide[0] == narrow[0] or wide[0] == "i") and WIDTH[wide] > WIDTH[narrow]


class Choices:
    """Decisions, taken from a tape of bytes. Zeros, and the end of the tape, take the simplest.

    One drawn tape gives more different programs than one draw a decision: between those, Hypothesis
    spends five examples of six on copying parts of the last one.
    """

    def __init__(self, tape: bytes, wide: bool = False) -> None:
        self._tape = tape
        self._at = 0
        self.wide = wide

    @property
    def over(self) -> bool:
        """Whether the tape has been read to its end."""
        return self._at >= len(self._tape)

    def number(self, low: int, high: int) -> int:
        value = 0 if self.over else self._tape[self._at]
        self._at += 1
        assert high - low < 256
        return low + value % (high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)] if len(options) > 1 else options[0]

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        at = self.number(0, sum(weight for weight, _ in options) - 1)
        for weight, option in options:
            at -= weight
            if at < 0:
                return option
        raise AssertionError("the weights add up")


@dataclass(frozen=True)
class Expression:
    """Text with its type. Floats: at most 2**high in magnitude, multiples of 2**-low."""

    text: str
    type: str
    high: int = 0
    low: int = 0

    @property
    def stored(self) -> bool:
        """Whether a float may go into a variable or an array as it is."""
        return self.high <= STORED_HIGH and self.low <= STORED_LOW


@dataclass
class Name:
    """A scalar that can be read: a variable, a parameter, a loop's counter."""

    name: str
    type: str
    uniform: bool = False  # the same in every thread of the block
    assignable: bool = True
    fixed: bool = False  # never assigned, so that it stays the same for all


@dataclass
class Memory:
    """An array, and what this thread may do with it now."""

    name: str
    type: str
    extents: tuple[str, ...]  # as text, one an axis
    slot: str = ""  # the index of this thread's own element
    reads: str = "any"  # "any", "own", "block" (what the block's threads wrote), "none"
    writes: str = "none"  # "any", "own", "none"
    block: str = ""  # the index of the block's element `{}`, for reads of "block"


@dataclass(frozen=True)
class Function:
    """A device function: values in, a value out; perhaps an array and an index before them."""

    name: str
    parameters: tuple[str, ...]
    result: str
    array: str = ""  # type of the leading array parameter
    writes: bool = False  # it writes element `index` of that array


class Expressions:
    """Draws expressions from the names, memories and functions that are in reach."""

    def __init__(self, choices: Choices, threads: int) -> None:
        self.choices = choices
        self.threads = threads  # of a block
        self.names: list[Name] = []
        self.memories: list[Memory] = []
        self.functions: list[Function] = []
        self.integers = (*INTEGERS, *(WIDE_INTEGERS if choices.wide else ()))
        self.effects = True  # whether an expression may write memory
        self.in_function = False

    # --- what is in reach ---

    def readable(self, type: str | None = None) -> list[Memory]:
        return [m for m in self.memories if m.reads != "none" and type in (None, m.type)]

    def named(self, type: str, uniform: bool = False) -> list[Name]:
        return [n for n in self.names if n.type == type and (n.uniform or not uniform)]

    # --- any type ---

    def of(self, type: str, depth: int, uniform: bool = False) -> Expression:
        """An expression whose type is exactly `type`, whatever stands around it."""
        if type == "bool":
            return Expression(self.condition(depth, uniform), "bool")
        if type == "f32":
            return self.float(depth, uniform)
        return Expression(self.integer(type, depth, uniform), type)

    def value(self, type: str, depth: int, uniform: bool = False) -> str:
        """What may be put into a variable or element of `type`."""
        made = self.of("f32" if type == "f16" else type, depth, uniform)
        if made.type == "f32" and not made.stored:
            made = self.shrunk(made)
        return f"td.f16({made.text})" if type == "f16" else made.text

    def shrunk(self, made: Expression) -> Expression:
        """A float brought back to what a variable may hold."""
        text = f"td.clip(td.floor({made.text} * 4.0) * 0.25, -256.0, 256.0)"
        return Expression(text, "f32", STORED_HIGH, STORED_LOW)

    def literal(self, type: str) -> str:
        choices = self.choices
        if type == "bool":
            return choices.pick(("True", "False"))
        if type == "f32":
            return repr(choices.number(-32, 32) / 4)
        edges = [0, 1, 2, 3, 7, 8, 31, 32, highest(type), highest(type) - 1, lowest(type)]
        edges += [-1, -2, -7] if type[0] == "i" else [128]
        if choices.chance(3) and not self.in_function:
            return "STEP"
        value = choices.weighted([(3, None), (1, 0)])
        value = choices.pick(edges) if value is None else choices.number(0, 100)
        return f"({value})" if value < 0 else str(value)

    def load(self, memory: Memory, depth: int) -> str:
        if memory.reads == "own":
            return f"{memory.name}[{memory.slot}]"
        if memory.reads == "block":
            effects, self.effects = self.effects, False  # it may stand there twice
            inside = f"{self.integer('i32', depth - 1)} % {self.threads}"
            self.effects = effects
            return f"{memory.name}[{memory.block.format(inside)}]"
        return f"{memory.name}[{', '.join(self.index(e, depth) for e in memory.extents)}]"

    def index(self, extent: str, depth: int) -> str:
        """Mostly inside, now and then not."""
        choices = self.choices
        kind = choices.weighted([(4, "name"), (4, "inside"), (2, "literal"), (1, "any")])
        names = [n.name for n in self.named("i32")]
        if kind == "name" and names:
            return choices.pick(names)
        if kind == "any":
            type = choices.pick(INTEGERS)
            return self.integer(type, depth - 1)
        if kind == "inside" and depth > 0:
            return f"{self.integer('i32', depth - 1)} % ({extent} + {choices.number(0, 1)})"
        return str(choices.number(0, 9))

    # --- integers ---

    def integer(self, type: str, depth: int, uniform: bool = False) -> str:
        if depth <= 0:
            return self.integer_leaf(type, uniform)
        make = self.choices.weighted(
            (
                (4, self._leaf),
                (6, self._arithmetic),
                (3, self._bitwise),
                (2, self._shift),
                (2, self._unary),
                (2, self._function_of_integers),
                (3, self._cast),
                (2, self._choice),
                (4 if self.functions else 0, self._call),
                (2, self._atomic),
            )
        )
        return make(type, depth, uniform)

    def integer_leaf(self, type: str, uniform: bool = False, depth: int = 0) -> str:
        names = self.named(type, uniform)
        memories = [] if uniform else self.readable(type)
        kind = self.choices.weighted([(4, "name"), (2, "memory"), (1, "literal")])
        if kind == "name" and names:
            return self.choices.pick(names).name
        if kind != "literal" and memories:
            return self.load(self.choices.pick(memories), depth)
        if kind != "literal" and names:
            return self.choices.pick(names).name
        return f"td.{type}({self.literal(type)})"

    def operand(self, type: str, depth: int, uniform: bool) -> str:
        """The other operand beside one of `type`: the same, narrower, or a literal."""
        kind = self.choices.weighted([(5, "same"), (2, "literal"), (1, "narrower")])
        if kind == "literal":
            return self.literal(type)
        if kind == "narrower":
            narrow = [other for other in self.integers if holds(type, other)]
            return self.integer(self.choices.pick(narrow), depth, uniform)
        return self.integer(type, depth, uniform)

    def _leaf(self, type: str, depth: int, uniform: bool) -> str:
        return self.integer_leaf(type, uniform, depth)

    def _pair(self, type: str, depth: int, uniform: bool) -> tuple[str, str]:
        left = self.integer(type, depth - 1, uniform)
        right = self.operand(type, depth - 1, uniform)
        return (right, left) if self.choices.chance(30) else (left, right)

    def _arithmetic(self, type: str, depth: int, uniform: bool) -> str:
        left, right = self._pair(type, depth, uniform)
        op = self.choices.pick(("+", "-", "*", "//", "%"))
        return f"({left} {op} {right})"

    def _bitwise(self, type: str, depth: int, uniform: bool) -> str:
        left, right = self._pair(type, depth, uniform)
        return f"({left} {self.choices.pick(('^', '&', '|'))} {right})"

    def _shift(self, type: str, depth: int, uniform: bool) -> str:
        left = self.integer(type, depth - 1, uniform)
        if self.choices.chance(50):
            right = str(self.choices.number(0, WIDTH[type] + 1))
        else:
            other = self.choices.pick((type, *self.integers))
            right = self.integer(other, depth - 1, uniform)
            right = f"({right} % {self.choices.pick((8, 20, 40))})"
        return f"({left} {self.choices.pick(('<<', '>>'))} {right})"

    def _unary(self, type: str, depth: int, uniform: bool) -> str:
        inner = self.integer(type, depth - 1, uniform)
        form = self.choices.pick(("(-{})", "(~{})", "abs({})", "td.abs({})", "(+{})", "({} ** 3)"))
        return form.format(inner)

    def _function_of_integers(self, type: str, depth: int, uniform: bool) -> str:
        pick = self.choices.pick
        if type == "i32" and self.choices.chance(40):
            other = pick(self.integers)
            return (
                f"td.{pick(('popcount', 'clz', 'ctz'))}({self.integer(other, depth - 1, uniform)})"
            )
        left, right = self._pair(type, depth, uniform)
        forms = ["td.minimum({}, {})", "td.maximum({}, {})", "min({}, {})", "max({}, {})"]
        form = pick(forms)
        if self.choices.chance(25):
            low, high = sorted((self.choices.number(0, 50), self.choices.number(0, 100)))
            return f"td.clip({left}, td.{type}({low}), td.{type}({high}))"
        if self.choices.chance(20):
            return f"td.reverse_bits({self.integer(type, depth - 1, uniform)})"
        if self.choices.chance(20):
            third = self.integer(type, depth - 1, uniform)
            return f"td.mul_high({third}, {self.integer(type, depth - 1, uniform)})"
        return form.format(left, right)

    def _cast(self, type: str, depth: int, uniform: bool) -> str:
        other = self.choices.pick((*self.integers, "bool", "f32"))
        same_size = [o for o in self.integers if o != type and WIDTH[o] == WIDTH[type]]
        if self.choices.chance(20):
            inner = self.integer(same_size[0], depth - 1, uniform)
            return f"td.bitcast({inner}, td.{type})"
        if WIDTH[type] == 32 and self.choices.chance(8):
            # The bits of a zero would tell its sign, which nothing else here does.
            return f"td.bitcast(abs({self.float(depth - 1, uniform).text}), td.{type})"
        return f"td.{type}({self.of(other, depth - 1, uniform).text})"

    def _choice(self, type: str, depth: int, uniform: bool) -> str:
        test = self.condition(depth - 1, uniform)
        left = self.integer(type, depth - 1, uniform)
        if self.choices.chance(50):
            # Plain Python gives the side that it takes, whose type must therefore be right.
            return f"({left} if {test} else {self.integer(type, depth - 1, uniform)})"
        return f"td.where({test}, {left}, {self.operand(type, depth - 1, uniform)})"

    def _call(self, type: str, depth: int, uniform: bool) -> str:
        found = self.call(type, depth, uniform)
        if found is None and self.functions:
            found = self.call(self.choices.pick(self.functions).result, depth, uniform)
            found = found and f"td.{type}({found})"
        return found or self._arithmetic(type, depth, uniform)

    def call(self, type: str, depth: int, uniform: bool) -> str | None:
        """A call of a function that gives `type`, if there is one that may be called here."""
        ready: list[tuple[Function, str]] = []
        for function in self.functions:
            if function.result != type:
                continue
            if not function.array:
                ready.append((function, ""))
            elif not uniform and not self.in_function:
                for memory in self.memories:
                    if memory.type != function.array or len(memory.extents) != 1:
                        continue
                    if function.writes and self.effects and memory.writes in ("own", "any"):
                        ready.append((function, f"{memory.name}, {memory.slot or 'i'}"))
                    elif not function.writes and memory.reads == "any":
                        at = self.index(memory.extents[0], depth)
                        ready.append((function, f"{memory.name}, td.i32({at})"))
        if not ready:
            return None
        function, first = self.choices.pick(ready)
        values = [self.value(p, depth - 1, uniform) for p in function.parameters]
        return f"{function.name}({', '.join([first] * bool(first) + values)})"

    def _atomic(self, type: str, depth: int, uniform: bool) -> str:
        """An atomic on the thread's own element, whose old value is therefore known."""
        ready = [
            m
            for m in self.memories
            if m.type == type and m.writes == "own" and type in ("i32", "u32")
        ]
        if uniform or not ready or not self.effects:
            return self._arithmetic(type, depth, uniform)
        memory = self.choices.pick(ready)
        op = self.choices.pick(("add", "sub", "min", "max", "and", "or", "xor", "exchange"))
        slot = f"({memory.slot})" if "," in memory.slot else memory.slot
        value = self.integer(type, depth - 1)
        if self.choices.chance(10):
            expected = self.integer(type, 0)
            return f"td.atomic_cas({memory.name}, {slot}, {expected}, {value})"
        return f"td.atomic_{op}({memory.name}, {slot}, {value})"

    # --- conditions ---

    def condition(self, depth: int, uniform: bool = False) -> str:
        names = self.named("bool", uniform)
        if names and self.choices.chance(20):
            return self.choices.pick(names).name
        memories = [] if uniform else self.readable("bool")
        if memories and self.choices.chance(10):
            return self.load(self.choices.pick(memories), depth)
        if depth > 1 and self.choices.chance(30):
            left, right = self.condition(depth - 1, uniform), self.condition(depth - 1, uniform)
            op = self.choices.pick(("and", "or", "&", "|", "^", "==", "!="))
            return f"({left} {op} {right})"
        if depth > 1 and self.choices.chance(10):
            return f"(not {self.condition(depth - 1, uniform)})"
        if self.functions and depth > 1 and self.choices.chance(10):
            return self.call("bool", depth, uniform) or "True"
        op = self.choices.pick(("<", "<=", ">", ">=", "==", "!="))
        if self.choices.chance(15):
            left, right = self.float(depth - 1, uniform), self.float(depth - 1, uniform)
            return f"({left.text} {op} {right.text})"
        type = self.choices.pick(self.integers)
        if self.choices.chance(10):
            parts = [self.integer(type, depth - 1, uniform) for _ in range(3)]
            second = self.choices.pick(("<", ">=", "!="))
            return f"({parts[0]} {op} {parts[1]} {second} {parts[2]})"
        left, right = self._pair(type, depth, uniform)
        return f"({left} {op} {right})"

    def test(self, depth: int, uniform: bool = False) -> str:
        """What `if` and `while` take: a condition, or a number that is not 0."""
        if self.choices.chance(10):
            return self.integer(self.choices.pick(self.integers), depth, uniform)
        return self.condition(depth, uniform)

    # --- floats ---

    def float(self, depth: int, uniform: bool = False) -> Expression:
        if depth <= 0:
            return self.float_leaf(uniform)
        kind = self.choices.weighted(
            [(3, "leaf"), (3, "+"), (2, "-"), (3, "*"), (3, "unary"), (2, "extreme"),
             (2, "choice"), (2, "scale"), (1, "fma"), (1, "divide"), (1, "call")]
        )  # fmt: skip
        if kind == "leaf":
            return self.float_leaf(uniform, depth)
        if kind == "call":
            text = self.call("f32", depth, uniform)
            if text is not None:
                return Expression(text, "f32", STORED_HIGH, STORED_LOW)
        a = self.float(depth - 1, uniform)
        if self.choices.wide and self.choices.chance(25):
            return self._in_another_float(a, self.float(depth - 1, uniform))
        if kind == "unary":
            form, low = self.choices.pick(
                (("(-{})", a.low), ("abs({})", a.low), ("td.floor({})", 0), ("td.ceil({})", 0),
                 ("td.trunc({})", 0), ("td.round({})", 0))
            )  # fmt: skip
            return Expression(form.format(a.text), "f32", a.high, low)
        if kind == "scale":
            form, more = self.choices.pick((("{} * 0.5", 1), ("{} / 4.0", 2), ("{} / 2", 1)))
            return self._fitting(f"({form.format(a.text)})", a.high, a.low + more) or a
        if kind == "divide":
            divisor = self.choices.number(1, 12) / 4 * self.choices.pick((1, -1))
            if self.choices.chance(50):
                return Expression(f"({a.text} % {divisor})", "f32", 2, max(a.low, 2))
            made = self._fitting(f"({a.text} // {divisor})", a.high + 2, max(a.low, 2))
            return made if made is not None else a
        b = self.float(depth - 1, uniform)
        if kind in "+-*" and self.choices.chance(20):
            b = Expression(self.literal("f32"), "f32", 3, 2)
        high, low = max(a.high, b.high), max(a.low, b.low)
        if kind == "extreme":
            form = self.choices.pick(("td.minimum({}, {})", "td.maximum({}, {})"))
            return self._fitting(form.format(a.text, b.text), high, low) or a
        if kind == "choice":
            test = self.condition(depth - 1, uniform)
            form = self.choices.pick(("({1} if {0} else {2})", "td.where({0}, {1}, {2})"))
            return self._fitting(form.format(test, a.text, b.text), high, low) or a
        if kind == "*":
            return self._fitting(f"({a.text} * {b.text})", a.high + b.high, a.low + b.low) or a
        if kind == "fma":
            c = self.float(depth - 1, uniform)
            text = f"td.fma({a.text}, {b.text}, {c.text})"
            high, low = max(a.high + b.high, c.high) + 1, max(a.low + b.low, c.low)
            return self._fitting(text, high, low) or a
        op = "-" if kind == "-" else "+"
        return self._fitting(f"({a.text} {op} {b.text})", high + 1, low) or a

    def _in_another_float(self, a: Expression, b: Expression) -> Expression:
        """An operation in float16, bfloat16 or float64, where it is exact there; else `a`."""
        type = self.choices.pick(tuple(FLOATS))
        digits, most = FLOATS[type]
        op = self.choices.pick(("+", "-", "*", "min"))
        high, low = max(a.high, b.high) + (op in "+-"), max(a.low, b.low)
        if op == "*":
            high, low = a.high + b.high, a.low + b.low
        exact = min(digits, DIGITS)
        narrow = max(a.high + a.low, b.high + b.low, high + low) > exact
        if narrow or max(a.high, b.high, high) > most or low > 14:
            return a
        left, right = f"td.{type}({a.text})", f"td.{type}({b.text})"
        made = f"td.minimum({left}, {right})" if op == "min" else f"{left} {op} {right}"
        return Expression(f"td.f32({made})", "f32", high, low)

    def _fitting(self, text: str, high: int, low: int) -> Expression | None:
        return Expression(text, "f32", high, low) if high + low <= DIGITS else None

    def float_leaf(self, uniform: bool = False, depth: int = 0) -> Expression:
        names = [n.name for n in self.named("f32", uniform)]
        memories = [] if uniform else self.readable("f32")
        halves = [] if uniform else self.readable("f16")
        kind = self.choices.weighted(
            [(4, "name"), (3, "memory"), (1, "half"), (2, "integer"), (1, "literal")]
        )
        stored = (STORED_HIGH, STORED_LOW)
        if kind == "name" and names:
            return Expression(self.choices.pick(names), "f32", *stored)
        if kind == "memory" and memories:
            return Expression(self.load(self.choices.pick(memories), depth), "f32", *stored)
        if kind == "half" and halves:
            load = self.load(self.choices.pick(halves), depth)
            return Expression(f"td.f32({load})", "f32", *stored)
        if kind == "integer":
            type, high = self.choices.pick((("i8", 7), ("u8", 8), ("i16", 15), ("u16", 16)))
            return Expression(f"td.f32({self.integer(type, 0, uniform)})", "f32", high, 0)
        return Expression(f"td.f32({self.literal('f32')})", "f32", 3, 2)
