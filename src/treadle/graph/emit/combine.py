"""The states of reductions, and how two of them become one.

A state is one value, or for argmax and argmin a value and where it was met, or for a sum of
exponentials the greatest exponent and the sum of the others beside it. States may be combined in
any order and grouping: places are compared where values are equal, so the first one wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.graph.emit.body import Body, cast, constant_of, type_named
from treadle.graph.program import Program, Reduce
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.types import BOOL, F32, F64, I32, I64, U32, Scalar, Type, Vector

State = tuple[n.Expression, ...]
_PLACED = (Reduce.ARGMAX, Reduce.ARGMIN)
_LOGICAL = {
    Reduce.ANY: "or", Reduce.MAX: "or", Reduce.SUM: "or",
    Reduce.ALL: "and", Reduce.MIN: "and", Reduce.PROD: "and",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reduction:
    """One reduce step. `parts` are the types of its state."""

    step: int
    source: int
    kind: Reduce
    parts: tuple[Type, ...]
    result: Type

    @property
    def is_placed(self) -> bool:
        """Whether it wants to know where a value is."""
        return self.kind in _PLACED


def reduction_of(program: Program, number: int) -> Reduction:
    """The reduction that a step is."""
    step = program.steps[number]
    source = type_named(program.steps[step.sources[0]].type)
    result = type_named(step.type)
    kind: Reduce = step.detail
    if kind in _PLACED:
        parts: tuple[Type, ...] = (I32 if source == BOOL else source, I64 if program.big else I32)
    elif kind in (Reduce.ANY, Reduce.ALL):
        parts = (BOOL,)
    elif kind == Reduce.EXP_SUM:
        parts = (result, result)
    else:
        parts = (result,)
    return Reduction(number, step.sources[0], kind, parts, result)


def identity(reduction: Reduction) -> State:
    """The state of no elements."""
    kind, first = reduction.kind, reduction.parts[0]
    if first == BOOL:
        return (n.Constant(_LOGICAL[kind] == "and", BOOL),)
    if kind in (Reduce.SUM, Reduce.PROD):
        return (constant_of(0 if kind == Reduce.SUM else 1, first),)
    assert isinstance(first, Scalar)
    worst = ir.constant(_limit(first, kind in (Reduce.MAX, Reduce.ARGMAX, Reduce.EXP_SUM)), first)
    if kind == Reduce.EXP_SUM:
        return worst, ir.constant(0.0, first)
    if reduction.is_placed:
        place = reduction.parts[1]
        assert isinstance(place, Scalar)
        return (worst, ir.constant((1 << (place.bits - 1)) - 1, place))
    return (worst,)


def _limit(type: Scalar, lowest: bool) -> float | int:
    if type.is_float:
        return -math.inf if lowest else math.inf
    if type.is_signed:
        return -(1 << (type.bits - 1)) if lowest else (1 << (type.bits - 1)) - 1
    return 0 if lowest else (1 << type.bits) - 1


def state_of(reduction: Reduction, value: n.Expression, place: n.Expression) -> State:
    """The state of one element."""
    first = cast(value, reduction.parts[0])
    if reduction.kind == Reduce.EXP_SUM:
        return first, constant_of(1.0, first.type)
    return (first, place) if reduction.is_placed else (first,)


def finished(reduction: Reduction, state: State) -> n.Expression:
    """The result that a state is."""
    return cast(state[-1], reduction.result)


def combine(body: Body, reduction: Reduction, left: State, right: State) -> State:
    """The state of two states' elements."""
    if reduction.is_placed:
        return _better(body, reduction, left, right)
    if reduction.kind == Reduce.EXP_SUM:
        return _sum_with_others(body, (left, right))
    return (body.let("t", _combined(reduction, left[0], right[0])),)


def _combined(reduction: Reduction, left: n.Expression, right: n.Expression) -> n.Expression:
    kind, type = reduction.kind, left.type
    if type == BOOL:
        return ir.binary(_LOGICAL[kind], left, right)
    if kind == Reduce.SUM:
        return ir.add(left, right)
    if kind != Reduce.PROD:
        return ir.intrinsic(kind.value, left, right)  # MAX, MIN: the intrinsics have these names
    if not isinstance(type, Vector):
        return ir.mul(left, right)
    (a, b), (c, d) = ((ir.extract(pair, "x"), ir.extract(pair, "y")) for pair in (left, right))
    real = ir.sub(ir.mul(a, c), ir.mul(b, d))
    return n.Construct((real, ir.add(ir.mul(a, d), ir.mul(b, c))), type)


def _better(body: Body, reduction: Reduction, left: State, right: State) -> State:
    """The greater (or less) of two values, the earlier one among equals; NaN before all."""
    a, i = left
    b, j = right
    relation = "gt" if reduction.kind == Reduce.ARGMAX else "lt"
    earlier = body.let("e", ir.less(j, i))
    same = ir.binary("and", ir.equal(b, a), earlier)
    wins: n.Expression = ir.binary("or", ir.binary(relation, b, a), same)
    if isinstance(a.type, Scalar) and a.type.is_float:
        first = ir.binary("or", ir.negate(ir.intrinsic("isnan", a)), earlier)
        wins = ir.binary("or", wins, ir.binary("and", ir.intrinsic("isnan", b), first))
    wins = body.let("w", wins)
    return (
        body.let("t", n.Select(wins, b, a, a.type)),
        body.let("p", n.Select(wins, j, i, i.type)),
    )


def _sum_with_others(body: Body, states: Sequence[State]) -> State:
    """The greatest exponent of several, and the sum of the exponentials beside it. Of nothing but
    -inf it is 0, so that others may follow; inf or NaN make it NaN."""
    greatest = _in_pairs([state[0] for state in states], lambda a, b: _let_max(body, a, b))
    none = ir.equal(greatest, constant_of(-math.inf, greatest.type))
    shift = body.let("m", ir.select(none, constant_of(0.0, greatest.type), greatest))
    terms: list[n.Expression] = []
    for exponent, factor in states:
        below = body.let("b", ir.sub(exponent, shift))
        term = body.let("x", body.apply("exp", None, [below]))
        one = isinstance(factor, n.Constant) and factor.value == 1
        terms.append(term if one else body.let("x", ir.mul(factor, term)))
    return greatest, _in_pairs(terms, lambda a, b: body.let("t", ir.add(a, b)))


def _let_max(body: Body, a: n.Expression, b: n.Expression) -> n.Variable:
    return body.let("t", ir.intrinsic("max", a, b))


def _in_pairs(
    values: Sequence[n.Expression], join: Callable[[n.Expression, n.Expression], n.Expression]
) -> n.Expression:
    values = list(values)
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        remainder = values[-1:] if len(values) % 2 else []
        values = [*(join(*pair) for pair in pairs), *remainder]
    return values[0]


def combine_all(body: Body, reduction: Reduction, states: Sequence[State]) -> State:
    """The state of several, in pairs of pairs: sums lose little that way."""
    if reduction.kind == Reduce.EXP_SUM:
        return _sum_with_others(body, states)
    states = list(states)
    while len(states) > 1:
        pairs = zip(states[::2], states[1::2], strict=False)
        remainder = states[-1:] if len(states) % 2 else []
        states = [*(combine(body, reduction, *pair) for pair in pairs), *remainder]
    return states[0]


@dataclass(frozen=True, slots=True)
class Total:
    """A state that grows: a variable for each part."""

    reduction: Reduction
    state: tuple[n.Variable, ...]

    def add(self, body: Body, state: State) -> None:
        """Take a state in."""
        joined = combine(body, self.reduction, self.state, state)
        for variable, value in zip(self.state, joined, strict=True):
            body.builder.assign(variable, value)


def new_totals(body: Body, reductions: Sequence[Reduction]) -> list[Total]:
    """Totals of nothing yet."""
    return [
        Total(reduction, tuple(body.let("total", part) for part in identity(reduction)))
        for reduction in reductions
    ]


# --- states in memory -----------------------------------------------------------------------------


def kept_type(type: Type) -> Type:
    """What a part of a state is in shared memory, and between kernels: words, at least."""
    if isinstance(type, Scalar) and type.bits < 32:
        return F32 if type.is_float else U32 if type.kind == "uint" else I32
    return type


def kept_name(type: Type) -> str:
    """The dtype's short name for a kept type."""
    if isinstance(type, Vector):
        return {F32: "c64", F64: "c128"}[type.element]
    assert isinstance(type, Scalar)
    return type.name
