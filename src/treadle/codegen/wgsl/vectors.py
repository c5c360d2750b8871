"""Memories in vectors of two or four words, which move at once (see `plans`)."""

from __future__ import annotations

from treadle.codegen.wgsl.module import Module, giving
from treadle.codegen.wgsl.names import mangle
from treadle.codegen.wgsl.places import condition, sum_text
from treadle.codegen.wgsl.plans import Plan, place_offsets, words_of
from treadle.codegen.wgsl.scope import Scope
from treadle.ir import nodes as n
from treadle.ir.types import Type, Vector, size_of


def unit_words(plan: Plan) -> int:
    """The words of a memory's unit."""
    return size_of(plan.unit) // 4


def word_at(plan: Plan, index: str) -> str:
    """The text of a word, given that of its index: a component of a vector."""
    count = unit_words(plan)
    index = f"({index})" if " " in index else index
    return f"{plan.variable}[{index} >> {count.bit_length() - 1}u][{index} & {count - 1}]"


def _vector_index(scope: Scope, plan: Plan, place: n.MemoryPlace) -> str:
    """The text of the index of the first unit of a place that takes whole ones."""
    moving, fixed = place_offsets(place)
    size = size_of(plan.unit)
    return sum_text(scope, [(index, step // size) for index, step in moving], fixed // size)


def load(scope: Scope, plan: Plan, place: n.MemoryPlace, checks: tuple[n.Check, ...]) -> str:
    """What lies in one unit of a memory in vectors, or two."""
    module, type, index = scope.module, place.type, _vector_index(scope, plan, place)
    units = words_of(type) // unit_words(plan)
    if not checks and units == 1:
        return _as_vector(module, plan, type, f"{plan.variable}[{index}]")
    key = ("load vector", plan.variable, type, bool(checks))
    spelled = mangle(str(type)).strip("_")
    name, new = module.helper(key, f"load_{plan.variable}_{spelled}")
    if new:
        head = "inside: bool, index: i32" if checks else "index: i32"
        register = module.register(type)
        lines = [f"fn {name}({head}) -> {register} {{"]
        parts = [f"{plan.variable}[index]", f"{plan.variable}[index + 1]"][:units]
        whole = parts[0] if units == 1 else f"vec4<{plan.word}>({', '.join(parts)})"
        value = _as_vector(module, plan, type, whole)
        lines += giving(value, "inside" if checks else "", module.zero(type), register)
        module.add(key, "\n".join(lines))
    inside = f"({condition(scope, checks)}), " if checks else ""
    return f"{name}({inside}{index})"


def _as_vector(module: Module, plan: Plan, type: Type, text: str) -> str:
    """Words of a memory (any text) as a vector of another type."""
    assert isinstance(type, Vector)
    return text if type.element == plan.word else f"bitcast<{module.register(type)}>({text})"


def store(scope: Scope, plan: Plan, place: n.MemoryPlace, value: str) -> str:
    """A store of whole units of a memory in vectors."""
    module, type, index = scope.module, place.type, _vector_index(scope, plan, place)
    words = Vector(plan.word, words_of(type))
    if type != words:
        value = f"bitcast<{module.register(words)}>({value})"
    if words == plan.unit:
        return f"{plan.variable}[{index}] = {value};"
    key = ("store vector", plan.variable)
    name, new = module.helper(key, f"store_{plan.variable}")
    if new:
        lines = [
            f"fn {name}(index: i32, value: {module.register(words)}) {{",
            f"    {plan.variable}[index] = value.xy;",
            f"    {plan.variable}[index + 1] = value.zw;",
            "}",
        ]
        module.add(key, "\n".join(lines))
    return f"{name}({index}, {value});"
