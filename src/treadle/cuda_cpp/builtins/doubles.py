"""CUDA's functions of double, where `double` is something else.

Where it has the bits of a float, those of float take their place. Where it is a pair of floats,
most are made of operations that pairs have; for those that see bits there are functions of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle.cuda_cpp.builtins.outputs import OutputOverload
from treadle.cuda_cpp.builtins.overload import Maker, Overload
from treadle.cuda_cpp.builtins.recipes import Recipe, Table, binary, cast, choose, intrinsic, number
from treadle.ir import nodes as n
from treadle.ir import types as t

# Functions that see the 64 bits of a double, which is a float here.
SEE_BITS = frozenset({
    "__double_as_longlong", "__longlong_as_double", "__double2hiint", "__double2loint",
    "__hiloint2double",
})  # fmt: skip
_TESTS = ("__isnan", "__isinf", "__isfinited", "__finite", "__signbitd", "__signbit")
_ARITHMETIC = ("add", "sub", "mul", "div", "rcp", "sqrt")
_MODES = ("rn", "rz", "ru", "rd")
_INTEGERS = ("int", "uint", "ll", "ull")

# The functions of float that do what those of double alone do.
OF_FLOAT: dict[str, str] = {
    **{f"__d{name}_{mode}": f"__f{name}_{mode}" for name in _ARITHMETIC for mode in _MODES},
    **{f"__fma_{mode}": f"__fmaf_{mode}" for mode in _MODES},
    **{f"__double2{to}_{mode}": f"__float2{to}_{mode}" for to in _INTEGERS for mode in _MODES},
    **{f"__{of}2double_{mode}": f"__{of}2float_{mode}" for of in _INTEGERS for mode in _MODES},
    "__double2half": "__float2half",
    "__double2bfloat16": "__float2bfloat16",
}


# The names by which kernels call functions of pairs (`lower.double_pairs`).
AS_BITS, FROM_BITS, COPYSIGN, ROUND = (
    "double.as_bits", "double.from_bits", "copysign_f64", "round_f64",
)  # fmt: skip

OF_PAIRS = frozenset({AS_BITS, FROM_BITS, COPYSIGN, ROUND})


def _call(name: str, type: t.Type, *operands: n.Expression) -> n.Expression:
    return n.Call(name, operands, type)


def _word(shift: int) -> Recipe:
    """A word of a double: the bits of one float of the pair."""

    def build(maker: Maker, x: n.Expression) -> n.Expression:
        bits = _call(AS_BITS, t.U64, x)
        return cast(binary("shr", bits, shift) if shift else bits, t.I32)

    return build


def _of_words(maker: Maker, high: n.Expression, low: n.Expression) -> n.Expression:
    upper = binary("shl", cast(cast(high, t.U32), t.U64), 32)
    return _call(FROM_BITS, t.F64, binary("or", upper, cast(cast(low, t.U32), t.U64)))


def _round(maker: Maker, x: n.Expression) -> n.Expression:
    return _call(ROUND, t.F64, x)


_WHOLE = (Overload((t.F64,), t.I64, lambda maker, x: cast(_round(maker, x), t.I64)),)
_BITS_OF_PAIR = "the bits of a pair of floats, not those of a double"

# Functions of doubles that are pairs of floats.
OF_PAIR: Table = {
    "copysign": (
        Overload((t.F64, t.F64), t.F64, lambda maker, x, y: _call(COPYSIGN, t.F64, x, y)),
    ),
    "round": (Overload((t.F64,), t.F64, _round),),
    "lround": _WHOLE,
    "llround": _WHOLE,
    "__double_as_longlong": (
        Overload(
            (t.F64,), t.I64, lambda maker, x: cast(_call(AS_BITS, t.U64, x), t.I64), _BITS_OF_PAIR
        ),
    ),
    "__longlong_as_double": (
        Overload(
            (t.I64,), t.F64, lambda maker, x: _call(FROM_BITS, t.F64, cast(x, t.U64)), _BITS_OF_PAIR
        ),
    ),
    "__double2hiint": (Overload((t.F64,), t.I32, _word(32), _BITS_OF_PAIR),),
    "__double2loint": (Overload((t.F64,), t.I32, _word(0), _BITS_OF_PAIR),),
    "__hiloint2double": (Overload((t.I32, t.I32), t.F64, _of_words, _BITS_OF_PAIR),),
}


def _whole_and_fraction(maker: Maker, x: n.Expression) -> tuple[n.Expression | None, ...]:
    """C's modf."""
    x = maker.let(x)
    whole = maker.let(intrinsic("trunc", x))
    infinite = n.Intrinsic("isinf", (x,), t.BOOL)
    fraction = choose(infinite, number(0, t.F64), binary("sub", x, whole))
    return _call(COPYSIGN, t.F64, fraction, x), whole


OUTPUTS_OF_PAIR: dict[str, OutputOverload] = {
    "modf": OutputOverload((t.F64,), (t.F64,), t.F64, _whole_and_fraction),
}

# Those that round to the last bit of a double in a direction, which pairs do not have.
TO_LAST_BIT = frozenset(f"__{of}2double_{mode}" for of in ("ll", "ull") for mode in _MODES[1:])


def as_pairs(name: str, table: Table) -> Sequence[Overload]:
    """The overloads of a function where doubles are pairs of floats."""
    found = table.get(name, ())
    own = OF_PAIR.get(name)
    return found if own is None else (*(one for one in found if not has_double(one)), *own)


def has_double(one: Overload | OutputOverload) -> bool:
    """Whether a parameter or result of an overload is a double."""
    outputs = one.outputs if isinstance(one, OutputOverload) else ()
    return any(_is_double(type) for type in (*one.parameters, one.result, *outputs))


def _is_double(type: t.Type | None) -> bool:
    return type == t.F64 or (isinstance(type, t.Vector) and type.element == t.F64)


def as_floats(name: str, table: Table) -> Sequence[Overload]:
    """The overloads of a function where doubles are floats. None is left of SEE_BITS."""
    found = table.get(OF_FLOAT.get(name, name), ())
    if name.startswith("__double2float_"):
        return [Overload((t.F32,), t.F32, lambda maker, value: value)]
    if name in _TESTS:
        return [replace(one, parameters=(t.F32,)) for one in found]
    return [one for one in found if not has_double(one)]
