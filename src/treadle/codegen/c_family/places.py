"""Places in memory and in variables, the checks that guard them, and loads."""

from __future__ import annotations

from treadle.codegen.c_family.scope import AND, ANY, COMPARISON, OR, PRIMARY, SUM, Scope
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of
from treadle.ir.types import BOOL, I32, I64, U32, U64, Scalar, Struct, Type

Text = tuple[str, int]


def checks_of(place: n.Place) -> tuple[n.Check, ...]:
    """Every check on the way to a place, outermost first."""
    checks: tuple[n.Check, ...] = ()
    while isinstance(place, (n.Member, n.Item)):
        if isinstance(place, n.Item):
            checks = place.checks + checks
        place = place.base
    return (place.checks if isinstance(place, n.Element) else ()) + checks


def open_checks(scope: Scope, place: n.Place) -> tuple[n.Check, ...]:
    """The checks of a place that are not known to hold already."""
    return tuple(check for check in checks_of(place) if check not in scope.passed)


def condition(scope: Scope, checks: tuple[n.Check, ...]) -> Text:
    """The condition that all checks hold."""
    if len(checks) == 1:
        return _check(scope, checks[0])
    parts = [_check(scope, check) for check in checks]
    return " && ".join(t if level <= COMPARISON else f"({t})" for t, level in parts), AND


def _check(scope: Scope, check: n.Check) -> Text:
    index, bound = check.index, check.bound
    known = scope.facts.plain(check) or (isinstance(index, n.Constant) and index.value >= 0)
    assert isinstance(index.type, Scalar)
    if known or not index.type.is_signed:
        return f"{scope.text(index, SUM)} < {scope.text(bound, SUM)}", COMPARISON
    wide = I64 if index.type.bits == 64 else I32
    name = scope.module.helper("inside", wide)
    return f"{name}({scope.text(index)}, {scope.text(bound)})", PRIMARY


# --- places --------------------------------------------------------------------------------------


def place_text(scope: Scope, place: n.Place) -> str:
    """A place, checks aside: `x[i].velocity.y`."""
    match place:
        case n.Variable():
            return scope.name(place.name)
        case n.Element():
            return f"{_base(scope, place)}[{scope.text(place.index)}]"
        case n.Member():
            return (
                f"{place_text(scope, place.base)}.{scope.module.field(place.base.type, place.name)}"
            )
        case n.Item():
            return f"{place_text(scope, place.base)}[{scope.text(place.index)}]"


def _base(scope: Scope, place: n.Element) -> str:
    """The memory as a pointer to the accessed type."""
    memory = scope.memories[place.memory]
    if place.type == memory.element:  # which may be an array, of which an item is meant
        return memory.name
    wanted = scope.module.stored(place.type)
    if wanted == scope.module.stored(memory.element):
        return memory.name
    return f"(({scope.module.language.pointer(scope, place.memory, wanted)}){memory.name})"


def from_memory(scope: Scope, text: str, type: Type) -> Text:
    """What lies at a place (a primary text), as a value of its type."""
    module = scope.module
    if not module.differs_in_memory(type):
        return text, PRIMARY
    if isinstance(type, Scalar):  # a bool, which is a byte there
        return f"{text} != 0", COMPARISON
    return f"{module.register(type)}({text})", PRIMARY


# --- loads ---------------------------------------------------------------------------------------


def load(scope: Scope, node: n.Load) -> Text:
    """What lies at a place, or zero if its checks fail."""
    place = node.place
    checks = open_checks(scope, place)
    if not checks:
        return from_memory(scope, place_text(scope, place), node.type)
    if len(checks) == 1 and isinstance(place, n.Element) and _is_simple(place, checks[0]):
        return _load_call(scope, place, checks[0])
    test, level = condition(scope, checks)
    test = test if level <= OR else f"({test})"
    with scope.knowing(checks):
        text, _ = from_memory(scope, place_text(scope, place), node.type)
    if isinstance(node.type, Struct):
        text = f"{scope.module.register(node.type)}({text})"  # a copy, in no address space
    zero = scope.module.zero(node.type)
    return f"{test} ? {text} : {zero}", ANY


def _is_simple(place: n.Element, check: n.Check) -> bool:
    """Whether what is compared is the element's own index, of one type with its bound."""
    same = place.index == check.index and check.bound.type == check.index.type
    return same and place.index.type in (I32, I64, U32, U64)


def _load_call(scope: Scope, place: n.Element, check: n.Check) -> Text:
    """A call of `load`, which computes the index once."""
    module = scope.module
    base, stored = _base(scope, place), module.stored(place.type)
    if base.startswith("(("):
        base = base[1:-1]
    pointer = module.language.pointer(scope, place.memory, stored)
    index = module.register(check.index.type)
    assert isinstance(check.index.type, Scalar)
    unsigned = module.scalar(U64 if check.index.type.bits == 64 else U32)
    key = ("load", pointer, index)
    if key not in module.helpers:
        test = "index < size"
        if check.index.type.is_signed:
            test = f"({unsigned})index < ({unsigned})size"
        zero = module.zero(place.type) if isinstance(place.type, Scalar) else f"{stored}{{}}"
        zero = "0" if place.type == BOOL else zero
        comment = "// The element at an index, or zero where there is none.\n"
        first = not any(isinstance(known, tuple) and known[0] == "load" for known in module.helpers)
        module.helpers[key] = (
            f"{comment if first else ''}{module.language.function} {stored} "
            f"load({pointer} array, {index} index, {index} size) {{\n"
            f"    if ({test}) {{\n        return array[index];\n    }}\n    return {zero};\n}}"
        )
    text = f"load({base}, {scope.text(check.index)}, {scope.text(check.bound)})"
    return from_memory(scope, text, place.type)


def is_repeatable(index: n.Expression) -> bool:
    """Whether an index costs nothing to repeat."""
    return isinstance(index, (n.Constant, n.Variable, n.Builtin))


def root_variable(place: n.Place) -> n.Variable | None:
    """The variable that a place is a part of, if it is in one."""
    root = root_of(place)
    return root if isinstance(root, n.Variable) else None
