"""Built-in functions with output parameters: sincosf(x, &sine, &cosine)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treadle.cuda_cpp.builtins.fast import HARDWARE
from treadle.cuda_cpp.builtins.overload import Maker
from treadle.cuda_cpp.builtins.packed import joined, lane
from treadle.cuda_cpp.builtins.recipes import (
    INTEGERS,
    LIBRARY,
    binary,
    choose,
    compare,
    intrinsic,
    number,
    test,
    with_sign,
)
from treadle.ir import nodes as n
from treadle.ir import types as t


@dataclass(frozen=True, slots=True)
class OutputOverload:
    """One signature: values first, then pointers to which results are stored.

    `build` gets operands of exactly the types of `parameters`. It returns the function's result
    (None if `result` is None), followed by one value for each of `outputs`.
    """

    parameters: tuple[t.Scalar, ...]
    outputs: tuple[t.Scalar, ...]
    result: t.Scalar | None
    build: Callable[..., tuple[n.Expression | None, ...]]  # (maker, *operands)
    note: str = ""


_Build = Callable[..., tuple[n.Expression | None, ...]]


def _sine_and_cosine(sine: str, cosine: str) -> _Build:
    def build(maker: Maker, x: n.Expression) -> tuple[n.Expression | None, ...]:
        x = maker.let(x)
        if maker.fastmath and x.type == t.F32 and sine == "sin":
            return None, intrinsic("fast_sin", x), intrinsic("fast_cos", x)
        return None, maker.library(sine, x), maker.library(cosine, x)

    return build


def _fast_sine_and_cosine(maker: Maker, x: n.Expression) -> tuple[n.Expression | None, ...]:
    x = maker.let(x)
    return None, intrinsic("fast_sin", x), intrinsic("fast_cos", x)


def _whole_and_fraction(maker: Maker, x: n.Expression) -> tuple[n.Expression | None, ...]:
    """The fractional part, with the sign of x (0 for infinity), and the integral part."""
    x = maker.let(x)
    whole = maker.let(intrinsic("trunc", x))
    fraction = choose(test("isinf", x), number(0, x.type), binary("sub", x, whole))
    return with_sign(fraction, x), whole


def _fraction_and_exponent(maker: Maker, x: n.Expression) -> tuple[n.Expression | None, ...]:
    x = maker.let(x)
    return maker.library("frexp_fraction", x), maker.library("frexp_exponent", x)


def _remainder_and_quotient(
    maker: Maker, x: n.Expression, y: n.Expression
) -> tuple[n.Expression | None, ...]:
    x, y = maker.let(x), maker.let(y)
    return maker.library("remainder", x, y), maker.library("remainder_quotient", x, y)


def _chosen(op: str) -> _Build:
    """The minimum or maximum, and whether it is the first operand."""

    def build(maker: Maker, a: n.Expression, b: n.Expression) -> tuple[n.Expression | None, ...]:
        a, b = maker.let(a), maker.let(b)
        return intrinsic(op, a, b), compare("le" if op == "min" else "ge", a, b)

    return build


def _chosen_lanes(op: str, signed: bool) -> _Build:
    """The minima or maxima of two lanes, and whether each is the first operand's: high, low."""

    def build(maker: Maker, a: n.Expression, b: n.Expression) -> tuple[n.Expression | None, ...]:
        a, b = maker.let(a), maker.let(b)
        pairs = [
            (maker.let(lane(a, at, 16, signed)), maker.let(lane(b, at, 16, signed)))
            for at in range(2)
        ]
        first = [compare("le" if op == "min" else "ge", *both) for both in pairs]
        return joined([intrinsic(op, *both) for both in pairs], 16), first[1], first[0]

    return build


def _extremes() -> dict[str, tuple[OutputOverload, ...]]:
    table: dict[str, tuple[OutputOverload, ...]] = {}
    for op in ("min", "max"):
        for ending, type in (("s32", t.I32), ("u32", t.U32)):
            build = _chosen(op)
            table[f"__vib{op}_{ending}"] = (
                OutputOverload((type, type), (t.BOOL,), type, build, ""),
            )
        for ending, signed in (("s16x2", True), ("u16x2", False)):
            build = _chosen_lanes(op, signed)
            table[f"__vib{op}_{ending}"] = (
                OutputOverload((t.U32, t.U32), (t.BOOL, t.BOOL), t.U32, build, INTEGERS),
            )
    return table


def _table() -> dict[str, tuple[OutputOverload, ...]]:
    """Each function by its plain name for float and double, and with the suffix `f` for float."""
    table: dict[str, tuple[OutputOverload, ...]] = {}
    rows: tuple[tuple[str, int, tuple[t.Scalar | None, ...], bool, _Build, str], ...] = (
        ("sincos", 1, (None, None), False, _sine_and_cosine("sin", "cos"), LIBRARY),
        ("sincospi", 1, (None, None), False, _sine_and_cosine("sinpi", "cospi"), LIBRARY),
        ("modf", 1, (None,), True, _whole_and_fraction, ""),
        ("frexp", 1, (t.I32,), True, _fraction_and_exponent, LIBRARY),
        ("remquo", 2, (t.I32,), True, _remainder_and_quotient, LIBRARY),
    )
    for name, arity, outputs, gives, build, note in rows:
        found = tuple(
            OutputOverload(
                (type,) * arity,
                tuple(output or type for output in outputs),
                type if gives else None,
                build,
                note,
            )
            for type in (t.F32, t.F64)
        )
        table[name] = found
        table[f"{name}f"] = found[:1]
    return table


OUTPUTS: dict[str, tuple[OutputOverload, ...]] = (
    _table()
    | _extremes()
    | {
        "__sincosf": (
            OutputOverload((t.F32,), (t.F32, t.F32), None, _fast_sine_and_cosine, HARDWARE),
        )
    }
)
