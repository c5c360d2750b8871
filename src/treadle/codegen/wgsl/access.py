"""Reading and writing memory.

A plain access to a typed memory is printed in place: `x[i]`. What needs more (a bound to be kept
to, several words, a part of a word) is a call of a small function made for it, so that it may
stand in any expression and is read once.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.codegen.wgsl import casts, pairs, vectors
from treadle.codegen.wgsl.module import Module, giving, mangle_field
from treadle.codegen.wgsl.names import mangle
from treadle.codegen.wgsl.places import (
    checks_of,
    condition,
    element_of,
    index_text,
    spot,
    typed_path,
)
from treadle.codegen.wgsl.plans import Plan, words_of
from treadle.codegen.wgsl.scope import PRIMARY, Scope
from treadle.ir import nodes as n
from treadle.ir.types import (
    COMPONENTS,
    F32,
    I32,
    U32,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
    field_offset,
    size_of,
)

# --- loads ---------------------------------------------------------------------------------------


def load(scope: Scope, node: n.Load) -> tuple[str, int]:
    """The text of a load and how tightly it binds."""
    place = node.place
    plan = scope.plans[element_of(place).memory]
    checks = checks_of(place)
    if plan.form == "typed":
        if checks:
            return _guarded_typed(scope, plan, place, checks), PRIMARY
        return _read(plan, typed_path(scope, place)), PRIMARY
    if plan.form == "pairs":
        name = pairs.load_function(scope.module, plan.variable, _four(place), bool(checks))
        inside = f"({condition(scope, checks)}), " if checks else ""
        return f"{name}({inside}{_pair_index(scope, place)})", PRIMARY
    if plan.form == "vectors" and words_of(place.type) >= vectors.unit_words(plan):
        return vectors.load(scope, plan, place, checks), PRIMARY
    at = spot(scope, place)
    if plan.form == "words" and not checks and at.narrow == 0 and _is_word(place.type):
        assert isinstance(place.type, Scalar)
        word = _read(plan, f"{plan.variable}[{at.index}]")
        return casts.same_word(scope.module, word, plan.word, place.type), PRIMARY
    name = _load_function(scope.module, plan, place.type, at.narrow, bool(checks))
    inside = f"{condition(scope, checks)}, " if checks else ""
    return f"{name}({_as_argument(inside)}{at.index})", PRIMARY


def _four(place: n.MemoryPlace) -> Vector:
    assert isinstance(place.type, Vector)
    return place.type


def _pair_index(scope: Scope, place: n.MemoryPlace) -> str:
    assert isinstance(place, n.Element)
    text = index_text(scope, place.index)
    return text if place.index.type == I32 else f"i32({text})"


def _as_argument(inside: str) -> str:
    return f"({inside[:-2]}), " if inside else ""


def _is_word(type: Type) -> bool:
    return isinstance(type, Scalar) and type in (I32, U32, F32)


def word_at(plan: Plan, index: str) -> str:
    """The text of a word of a memory in words or vectors, given that of its index."""
    if plan.form == "vectors":
        return vectors.word_at(plan, index)
    return _read(plan, f"{plan.variable}[{index}]")


def _read(plan: Plan, path: str) -> str:
    if plan.bools_as_words:
        return f"({path} != 0u)"
    return f"atomicLoad(&{path})" if plan.atomic else path


def _guarded_typed(
    scope: Scope, plan: Plan, place: n.MemoryPlace, checks: tuple[n.Check, ...]
) -> str:
    """A call of a function that reads a place if it is inside, and gives zero if not."""
    module = scope.module
    indices, path = _typed_shape(place)
    arguments = [index_text(scope, index) for index in indices]
    register = module.register(place.type)
    simple = len(checks) == 1 and len(indices) == 1 and checks[0].index == indices[0]
    first = indices[0].type
    assert isinstance(first, Scalar)
    simple = simple and checks[0].bound.type == first and first.bits == 32
    index_types = [_index_type(index) for index in indices]
    names = ["index"] if len(indices) == 1 else [f"index_{k}" for k in range(len(indices))]
    key = ("load", plan.variable, path, place.type, simple, tuple(index_types))
    name, new = module.helper(key, f"load_{plan.variable}")
    if new:
        if simple:
            head = f"index: {index_types[0]}, bound: {index_types[0]}"
            test = "u32(index) < u32(bound)" if index_types[0] == "i32" else "index < bound"
        else:
            head = ", ".join(
                ["inside: bool"] + [f"{i}: {t}" for i, t in zip(names, index_types, strict=True)]
            )
            test = "inside"
        value = _read(plan, plan.variable + path.format(*(f"[{i}]" for i in names)))
        body = giving(value, test, module.zero(place.type), register)
        module.add(key, "\n".join([f"fn {name}({head}) -> {register} {{", *body]))
    if simple:
        return f"{name}({arguments[0]}, {scope.argument(checks[0].bound)})"
    return f"{name}(({condition(scope, checks)}), {', '.join(arguments)})"


def _index_type(index: n.Expression) -> str:
    return "i32" if index.type == I32 else "u32"


def _typed_shape(place: n.Place) -> tuple[list[n.Expression], str]:
    """The indices on the way to a place, and the path with a `{}` for each."""
    match place:
        case n.Element():
            return [place.index], "{}"
        case n.Member():
            indices, path = _typed_shape(place.base)
            struct = isinstance(place.base.type, Struct)
            return indices, f"{path}.{mangle_field(place.name) if struct else place.name}"
        case n.Item():
            indices, path = _typed_shape(place.base)
            return [*indices, place.index], path + "{}"
    raise AssertionError("a variable is no memory")


def _load_function(module: Module, plan: Plan, type: Type, narrow: int | str, guarded: bool) -> str:
    key = ("load words", plan.variable, type, narrow, guarded)
    name, new = module.helper(key, f"load_{plan.variable}_{_spelled(type)}")
    if not new:
        return name
    register = module.register(type)
    index = "byte" if narrow == "byte" else "word"
    value = compose(module, type, lambda leaf, at: _leaf(module, plan, leaf, index, narrow, at), 0)
    head = f"inside: bool, {index}: i32" if guarded else f"{index}: i32"
    lines = [f"fn {name}({head}) -> {register} {{"]
    lines += giving(value, "inside" if guarded else "", module.zero(type), register)
    module.add(key, "\n".join(lines))
    return name


def _spelled(type: Type) -> str:
    return mangle(str(type)).strip("_")


def compose(module: Module, type: Type, leaf: Callable[[Scalar, int], str], at: int) -> str:
    """A value of any type from the texts of its scalars at their byte offsets."""
    match type:
        case Scalar():
            return leaf(type, at)
        case Vector() | Array():
            count = type.count if isinstance(type, Vector) else type.length
            step = size_of(type.element)
            parts = [compose(module, type.element, leaf, at + step * i) for i in range(count)]
        case Struct():
            parts = [
                compose(module, field.type, leaf, at + field_offset(type, field.name))
                for field in type.fields
            ]
            parts = parts or ["0u"]
        case _:
            raise AssertionError("void is no value")
    return f"{module.register(type)}({', '.join(parts)})"


def _leaf(module: Module, plan: Plan, type: Scalar, index: str, narrow: int | str, at: int) -> str:
    """The scalar at byte `at` behind the place."""
    if narrow == "byte":
        return _leaf_at_byte(module, plan, type, f"byte + {at}" if at else "byte")
    assert isinstance(narrow, int)
    word, rest = divmod(at + narrow, 4)
    position = f"{index} + {word}" if word else index
    if type.bits == 64:
        return _wide(module, plan, type, position, f"{index} + {word + 1}")
    text = word_at(plan, position)
    if type.bits == 32:
        return casts.same_word(module, text, plan.word, type)
    text = casts.same_word(module, text, plan.word, U32)
    return casts.unpack(module, text, rest * 8, type)


def _wide(module: Module, plan: Plan, type: Scalar, low: str, high: str) -> str:
    module.scalar_register(type)
    module.require("int64", f"an array that holds {type} among other types")
    halves = [casts.same_word(module, word_at(plan, part), plan.word, U32) for part in (low, high)]
    bits = f"u64({halves[0]}) | (u64({halves[1]}) << 32u)"
    return f"({bits})" if type.name == "u64" else f"bitcast<{type.name}>({bits})"


def _leaf_at_byte(module: Module, plan: Plan, type: Scalar, byte: str) -> str:
    word = f"({byte}) >> 2u" if "+" in byte else f"{byte} >> 2u"
    text = casts.same_word(module, word_at(plan, word), plan.word, U32)
    return casts.unpack(module, text, f"(u32(({byte}) & 3) * 8u)", type)


# --- stores --------------------------------------------------------------------------------------


def store(scope: Scope, place: n.MemoryPlace, value: str) -> str:
    """The statement that puts a value (any text) at a place, checks aside."""
    plan = scope.plans[element_of(place).memory]
    if plan.form == "typed":
        return _write(plan, typed_path(scope, place), value)
    if plan.form == "pairs":
        name = pairs.store_function(scope.module, plan.variable, _four(place))
        return f"{name}({_pair_index(scope, place)}, {value});"
    if plan.form == "vectors":
        return vectors.store(scope, plan, place, value)
    at = spot(scope, place)
    if at.narrow == 0 and _is_word(place.type):
        assert isinstance(place.type, Scalar)
        word = casts.same_word(scope.module, value, place.type, plan.word)
        return _write(plan, f"{plan.variable}[{at.index}]", word)
    name = _store_function(scope.module, plan, place.type, at.narrow)
    return f"{name}({at.index}, {value});"


def _write(plan: Plan, path: str, value: str) -> str:
    if plan.bools_as_words:
        return f"{path} = u32({value});"
    return f"atomicStore(&{path}, {value});" if plan.atomic else f"{path} = {value};"


def _store_function(module: Module, plan: Plan, type: Type, narrow: int | str) -> str:
    key = ("store words", plan.variable, type, narrow)
    name, new = module.helper(key, f"store_{plan.variable}_{_spelled(type)}")
    if not new:
        return name
    index = "byte" if narrow == "byte" else "word"
    lines = [f"fn {name}({index}: i32, value: {module.register(type)}) {{"]
    parts = scalars(type, "value", 0)
    if narrow == 0 and size_of(type) % 4 == 0:
        lines += _store_words(module, plan, parts)
    else:
        for text, leaf, at in parts:
            lines += _store_leaf(module, plan, text, leaf, index, narrow, at)
    module.add(key, "\n".join([*lines, "}"]))
    return name


def scalars(type: Type, text: str, at: int) -> list[tuple[str, Scalar, int]]:
    """The scalars of a value: their texts, types and byte offsets."""
    match type:
        case Scalar():
            return [(text, type, at)]
        case Vector():
            step = size_of(type.element)
            return [
                (f"{text}.{COMPONENTS[i]}", type.element, at + step * i) for i in range(type.count)
            ]
        case Array():
            step = size_of(type.element)
            return [
                part
                for i in range(type.length)
                for part in scalars(type.element, f"{text}[{i}]", at + step * i)
            ]
        case Struct():
            return [
                part
                for field in type.fields
                for part in scalars(
                    field.type,
                    f"{text}.{mangle_field(field.name)}",
                    at + field_offset(type, field.name),
                )
            ]
    return []


def _store_words(module: Module, plan: Plan, parts: list[tuple[str, Scalar, int]]) -> list[str]:
    """Stores of whole words, several scalars to a word where they are narrow."""
    words: dict[int, list[str]] = {}
    exact: dict[int, str] = {}
    lines: list[str] = []
    for number, (text, leaf, at) in enumerate(parts):
        word, rest = divmod(at, 4)
        if leaf.bits == 64:
            module.require("int64", f"an array that holds {leaf} among other types")
            bits = text if leaf.name == "u64" else f"bitcast<u64>({text})"
            lines.append(f"    let bits_{number} = {bits};")
            words[word] = [f"u32(bits_{number} & 0xfffffffflu)"]
            words[word + 1] = [f"u32(bits_{number} >> 32u)"]
        elif leaf.bits == 32:
            exact[word] = casts.same_word(module, text, leaf, plan.word)
        else:
            packed = casts.pack(module, text, leaf)
            words.setdefault(word, []).append(
                f"(({packed}) << {rest * 8}u)" if rest else f"({packed})"
            )
    texts = {w: casts.same_word(module, " | ".join(p), U32, plan.word) for w, p in words.items()}
    for word, text in sorted((texts | exact).items()):
        position = f"word + {word}" if word else "word"
        lines.append("    " + _write(plan, f"{plan.variable}[{position}]", text))
    return lines


def _store_leaf(
    module: Module, plan: Plan, text: str, leaf: Scalar, index: str, narrow: int | str, at: int
) -> list[str]:
    """A store of part of a word. Other threads may be storing the other parts, so in memory that
    is shared its bits are cleared and set atomically."""
    ones = (1 << leaf.bits) - 1
    packed = casts.pack(module, text, leaf)
    if narrow == "byte":
        byte = f"(byte + {at})" if at else "byte"
        position = f"{byte} >> 2u"
        shift = f"(u32({byte} & 3) * 8u)"
        mask, packed = f"~({ones}u << {shift})", f"(({packed}) << {shift})"
    else:
        assert isinstance(narrow, int)
        word, rest = divmod(at + narrow, 4)
        position = f"{index} + {word}" if word else index
        mask = f"{~(ones << 8 * rest) & 0xFFFFFFFF:#010x}u"
        packed = f"(({packed}) << {8 * rest}u)" if rest else packed
    slot = f"{plan.variable}[{position}]"
    if plan.atomic:
        return [f"    atomicAnd(&{slot}, {mask});", f"    atomicOr(&{slot}, {packed});"]
    old = casts.same_word(module, slot, plan.word, U32)
    new = casts.same_word(module, f"({old} & {mask}) | ({packed})", U32, plan.word)
    return [f"    {slot} = {new};"]
