"""Uniform shared loads: shared values that decide whether a barrier is reached.

Right after a barrier, all threads that read one place of shared memory read one value. The
uniformity pass proves that; Tint accepts it only as `workgroupUniformLoad`. That function contains
barriers, so it is printed only where a barrier depends on the value.
"""

from __future__ import annotations

from treadle.codegen.wgsl.access import word_at
from treadle.codegen.wgsl.casts import same_word
from treadle.codegen.wgsl.places import checks_of, condition, element_of, spot, typed_path
from treadle.codegen.wgsl.scope import Scope
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.passes.uniformity import uniform_shared_loads
from treadle.ir.traverse import statements_in, walk
from treadle.ir.types import F32, I32, U32, Scalar


def deciding_loads(kernel: n.Kernel) -> frozenset[int]:
    """The statements (by identity) that read a shared value on which a barrier depends."""
    deciding = _deciding_variables(kernel.body) if _has_barrier(*kernel.body) else set()
    if not deciding:
        return frozenset()
    return frozenset(
        id(statement)
        for statement in uniform_shared_loads(kernel)
        if _target(statement) in deciding
    )


def _target(statement: n.Declare | n.Assign) -> str:
    place = statement.variable if isinstance(statement, n.Declare) else statement.place
    assert isinstance(place, n.Variable)
    return place.name


def _deciding_variables(body: n.Block) -> set[str]:
    """The variables that conditions around barriers depend on, directly or through others."""
    found: set[str] = set()
    for node in walk(body):
        if isinstance(node, (n.If, n.For, n.While)) and _has_barrier(node):
            # A loop may also be left, or turned, by any condition inside it.
            found |= _names(node.condition if isinstance(node, n.If) else node)
    sources: dict[str, set[str]] = {}
    _collect_sources(body, frozenset(), sources)
    waiting = list(found)
    while waiting:
        for name in sources.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _collect_sources(body: n.Block, around: frozenset[str], sources: dict[str, set[str]]) -> None:
    """For each variable the names that its value depends on: in what it is assigned, and in the
    conditions (`around`) under which it is."""
    for node in body:
        match node:
            case n.Declare(variable, value) if value is not None:
                sources.setdefault(variable.name, set()).update(_names(value) | around)
            case n.Assign(n.Variable(name), value):
                sources.setdefault(name, set()).update(_names(value) | around)
            case n.If(condition, then, otherwise):
                inside = around | _names(condition)
                _collect_sources(then, inside, sources)
                _collect_sources(otherwise, inside, sources)
            case n.For():
                inside = around | _names(node.start) | _names(node.stop)
                _collect_sources(node.body, inside, sources)
            case n.While():
                inside = around | _names(node.condition)
                _collect_sources((*node.body, *node.update), inside, sources)


def _has_barrier(*block: n.Statement) -> bool:
    return any(isinstance(inner, n.Barrier) for inner in statements_in(block))


def _names(node: n.Expression | n.Statement) -> set[str]:
    return {inner.name for inner in walk(node) if isinstance(inner, n.Variable)}


def uniform_load(scope: Scope, node: n.Load) -> str:
    """The text of a load that Tint accepts as uniform."""
    plan = scope.plans[element_of(node.place).memory]
    checks = checks_of(node.place)
    type = node.type
    component = ""
    if plan.form == "typed":
        path = typed_path(scope, node.place)
    else:
        at = spot(scope, node.place)
        if at.narrow != 0 or type not in (I32, U32, F32):
            raise UnsupportedOnTarget(
                f"a barrier hangs on a {type} in shared memory that is also seen as another type; "
                "keep such a value in a shared array of its own",
                node.span,
            )
        path = f"{plan.variable}[{at.index}]"
        if plan.form == "vectors":
            path, _, component = word_at(plan, at.index).rpartition("[")
    text = f"workgroupUniformLoad(&{path})" + (f"[{component}" if component else "")
    if plan.bools_as_words:
        text = f"({text} != 0u)"
    if plan.form != "typed":
        assert isinstance(type, Scalar)
        text = same_word(scope.module, text, plan.word, type)
    if checks:
        # The place is uniform, in bounds or not; WGSL itself keeps the access in bounds.
        text = f"select({scope.module.zero(type)}, {text}, ({condition(scope, checks)}))"
    return text
