"""Where something lies: paths in typed memory, words in others, and the checks on the way."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.codegen.wgsl.module import mangle_field
from treadle.codegen.wgsl.plans import place_offsets
from treadle.codegen.wgsl.scope import COMPARISON, PRODUCT, SHIFT, SUM, Scope
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of
from treadle.ir.types import I32, Scalar, Struct


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a memory that is laid out in words.

    `index` is the text of a word's index if `narrow` is None or the fixed offset of the place in
    that word; it is the text of a byte's index if `narrow` is "byte".
    """

    index: str
    narrow: int | str = 0


def element_of(place: n.MemoryPlace) -> n.Element:
    """The element of memory that a place is a part of."""
    root = root_of(place)
    assert isinstance(root, n.Element)
    return root


def checks_of(place: n.Place) -> tuple[n.Check, ...]:
    """Every check on the way to a place, outermost first."""
    checks: tuple[n.Check, ...] = ()
    while isinstance(place, (n.Member, n.Item)):
        if isinstance(place, n.Item):
            checks = place.checks + checks
        place = place.base
    return (place.checks if isinstance(place, n.Element) else ()) + checks


def condition(scope: Scope, checks: tuple[n.Check, ...]) -> str:
    """The condition that all checks hold."""
    return " && ".join(_check(scope, check) for check in checks)


def _check(scope: Scope, check: n.Check) -> str:
    if (passes := _answered(check)) is not None:
        return scope.text(passes, COMPARISON)
    if isinstance(check.index, n.Constant):
        if check.index.value < 0:
            return "false"
        return f"{scope.text(check.index, SHIFT)} < {scope.text(check.bound, SHIFT)}"
    # As unsigned numbers, the negative ones are above every bound: one comparison does for two.
    return f"{_as_unsigned(scope, check.index)} < {_as_unsigned(scope, check.bound)}"


def _answered(check: n.Check) -> n.Expression | None:
    """The condition of a check that asks for 0, of 0 and 1, by a condition: whether an index of 64
    bits is inside (`ir.passes.wide`)."""
    match check:
        case n.Check(
            n.Select(condition, n.Constant(value=0), n.Constant(value=1)), n.Constant(value=1)
        ):
            return condition
    return None


def _as_unsigned(scope: Scope, node: n.Expression) -> str:
    assert isinstance(node.type, Scalar)
    wide = node.type.bits == 64
    if isinstance(node, n.Constant) and node.value >= 0:
        return f"{int(node.value)}{'lu' if wide else 'u'}"
    if not node.type.is_signed:
        return scope.text(node, SHIFT)
    return f"{'u64' if wide else 'u32'}({scope.text(node)})"


def index_text(scope: Scope, node: n.Expression) -> str:
    """An index, as an i32 or u32."""
    assert isinstance(node.type, Scalar)
    if node.type.bits != 64:
        return scope.text(node)
    if isinstance(node, n.Constant):  # naga does not cast a literal of 64 bits
        return f"{int(node.value) & 0xFFFFFFFF}u"
    return f"u32({scope.text(node)})"


def typed_path(scope: Scope, place: n.Place) -> str:
    """A place in a typed memory, or in a variable: `x[i].velocity.y`."""
    match place:
        case n.Variable():
            return scope.name(place.name)
        case n.Element():
            return f"{scope.plans[place.memory].variable}[{index_text(scope, place.index)}]"
        case n.Member():
            struct = isinstance(place.base.type, Struct)
            name = mangle_field(place.name) if struct else place.name
            return f"{typed_path(scope, place.base)}.{name}"
        case n.Item():
            return f"{typed_path(scope, place.base)}[{index_text(scope, place.index)}]"


def spot(scope: Scope, place: n.Place) -> Spot:
    """Where a place lies in a memory that is laid out in words."""
    moving, fixed = place_offsets(place)
    if all(step % 4 == 0 for _, step in moving):
        steps = [(index, step // 4) for index, step in moving]
        return Spot(sum_text(scope, steps, fixed // 4), fixed % 4)
    return Spot(sum_text(scope, moving, fixed), "byte")


def sum_text(scope: Scope, steps: list[tuple[n.Expression, int]], fixed: int) -> str:
    """The text of a sum of indices, each times its step, and a number."""
    parts = []
    for index, step in steps:
        assert isinstance(index.type, Scalar)
        if index.type == I32:
            text = scope.text(index, SUM if step == 1 else PRODUCT)
        else:
            text = f"i32({scope.text(index)})"
        parts.append(text if step == 1 else f"{text} * {step}")
    if fixed or not parts:
        parts.append(str(fixed))
    return " + ".join(parts)
