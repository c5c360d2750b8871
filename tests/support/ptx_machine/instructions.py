"""What each instruction does, as code over vectors: tables, and a function where a table won't do.

An instruction, a modifier or a type that is in no table is an error: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.ptx_machine import accesses
from tests.support.ptx_machine.conversions import INTEGRAL, ROUNDINGS
from tests.support.ptx_machine.records import (
    Group,
    Instruction,
    Integer,
    PtxError,
)
from tests.support.ptx_machine.types import TYPES, PtxType, type_of, types_of
from tests.support.ptx_machine.writer import V, Writer, only, pair

U32, U64, PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
SPACES = ("global", "shared", "local", "const", "param")

# --- arithmetic, by opcode and class of type: "i" integers, "f" floats, "p" predicates -----------

FORMS: dict[tuple[str, str], str] = {
    ("add", "i"): "{0} + {1}", ("add", "f"): "{0} + {1}",
    ("sub", "i"): "{0} - {1}", ("sub", "f"): "{0} - {1}",
    ("mul", "f"): "{0} * {1}",
    ("mul.lo", "i"): "{0} * {1}", ("mul.hi", "i"): "multiply_high({0}, {1})",
    ("mul.wide", "i"): "multiply_wide({0}, {1})",
    ("mad.lo", "i"): "{0} * {1} + {2}", ("mad.hi", "i"): "multiply_high({0}, {1}) + {2}",
    ("mad.wide", "i"): "multiply_wide({0}, {1}) + {2}",
    ("fma", "f"): "fma({0}, {1}, {2})", ("mad", "f"): "fma({0}, {1}, {2})",
    ("div", "i"): "divide({0}, {1})", ("div", "f"): "{0} / {1}",
    ("rem", "i"): "remainder({0}, {1})",
    ("neg", "i"): "-{0}", ("neg", "f"): "negative({0})",
    ("abs", "i"): "np.abs({0})", ("abs", "f"): "magnitude({0})",
    ("min", "i"): "np.minimum({0}, {1})", ("max", "i"): "np.maximum({0}, {1})",
    ("min", "f"): "minimum({0}, {1})", ("max", "f"): "maximum({0}, {1})",
    ("and", "i"): "{0} & {1}", ("and", "p"): "{0} & {1}",
    ("or", "i"): "{0} | {1}", ("or", "p"): "{0} | {1}",
    ("xor", "i"): "{0} ^ {1}", ("xor", "p"): "{0} ^ {1}",
    ("not", "i"): "~{0}", ("not", "p"): "~{0}",
    ("cnot", "i"): "({0} == 0).astype({0}.dtype)",
    ("brev", "i"): "reverse_bits({0})",
    ("copysign", "f"): "copy_sign({0}, {1})",
    ("sqrt", "f"): "np.sqrt({0})", ("rcp", "f"): "np.reciprocal({0})",
    ("prmt", "i"): "permute_bytes({0}, {1}, {2})",
}  # fmt: skip
_COUNTS = {"popc": "count_bits({0})", "clz": "leading_zeros({0})"}
_APPROXIMATE = ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "sqrt", "rsqrt")
_WIDE_FORMS = ("mul", "mad")
# Modifiers that an opcode may have beside types and those that choose the form.
_ALLOWED: dict[str, frozenset[str]] = {
    opcode: frozenset(words.split())
    for opcode, words in {
        "add": "rn ftz sat", "sub": "rn ftz sat", "mul": "rn ftz sat", "fma": "rn ftz sat",
        "mad": "rn ftz sat", "div": "rn approx full ftz", "sqrt": "rn approx ftz",
        "rcp": "rn approx ftz", "rsqrt": "approx ftz", "ex2": "approx ftz", "lg2": "approx ftz",
        "sin": "approx ftz", "cos": "approx ftz", "tanh": "approx", "neg": "ftz", "abs": "ftz",
        "min": "ftz NaN", "max": "ftz NaN",
    }.items()
}  # fmt: skip
_SIGNED_ONLY = ("neg", "abs")
_BITS_ONLY = ("and", "or", "xor", "not", "cnot", "popc", "clz", "brev", "prmt", "shl")
# What an instruction with a modifier needs of the target.
_NEEDS: dict[tuple[str, str], int] = {
    ("tanh", "f32"): 75, ("min", "NaN"): 80, ("max", "NaN"): 80, ("min", "f16"): 80,
    ("max", "f16"): 80, ("redux", "sync"): 80, ("cvt", "bf16"): 80, ("cvt", "bf16x2"): 80,
    ("ex2", "f16"): 75, ("match", "sync"): 70, ("fence", "acq_rel"): 70, ("fence", "sc"): 70,
    ("ld", "acquire"): 70, ("ld", "relaxed"): 70, ("st", "release"): 70, ("st", "relaxed"): 70,
}  # fmt: skip


def class_of(type: PtxType) -> str:
    """How FORMS calls a type."""
    return {"f": "f", "p": "p", "u": "i", "s": "i", "b": "i"}.get(type.kind, type.kind)


def translate(w: Writer, one: Instruction) -> None:
    """Append the code of an instruction."""
    w.one = one
    for word in one.modifiers:
        needed = _NEEDS.get((one.opcode, word), 0)
        if w.program.target < needed:
            raise PtxError(f"{one}: needs sm_{needed}, the target is sm_{w.program.target}")
    w.guard = w.read(one.guard, PRED) if one.guard else None
    handler = _HANDLERS.get(one.opcode, _elementwise)
    handler(w, one)
    w.guard = None


def _elementwise(w: Writer, one: Instruction) -> None:
    words = list(one.modifiers)
    type = type_of(one.modifiers)
    opcode = one.opcode
    if opcode in _WIDE_FORMS and words[0] in ("lo", "hi", "wide"):
        opcode = f"{opcode}.{words.pop(0)}"
    approximate = "approx" in words and opcode != "div"
    form = FORMS.get((opcode, class_of(type)))
    if approximate and opcode in _APPROXIMATE:
        form = f"approximate('{opcode}', {{0}})"
    if form is None or [word for word in words if word in TYPES] != [type.name]:
        raise PtxError(f"{one}: unknown instruction")
    words.remove(type.name)
    _check_words(one, type, opcode, words)
    wide = opcode.endswith(".wide")
    result = TYPES[f"{type.kind}{2 * type.bits}"] if wide else type
    sources = one.operands[1:]
    if len(sources) != form.count("{") - form.count("}.dtype"):
        raise PtxError(f"{one}: wrong number of operands")
    values = [w.read(part, result if wide and i == 2 else type) for i, part in enumerate(sources)]
    if "ftz" in words and type.name == "f32":
        values = [w.make("flush({0})", value) for value in values]
    value = w.make(form, *values)
    if "NaN" in words:
        value = w.make("with_nan({0}, {1}, {2})", value, *values)
    if "ftz" in words and type.name == "f32":
        value = w.make("flush({0})", value)
    if "sat" in words:
        value = w.make("saturate({0})", value)
    w.write(one.operands[0], result, value)


def _check_words(one: Instruction, type: PtxType, opcode: str, words: list[str]) -> None:
    plain = opcode.partition(".")[0]
    allowed = _ALLOWED.get(plain, frozenset()) if class_of(type) == "f" else frozenset()
    if set(words) - allowed:
        raise PtxError(f"{one}: unknown modifier .{'.'.join(sorted(set(words) - allowed))}")
    rounded = {"rn", "approx", "full"} & set(words)
    if plain in ("div", "sqrt", "rcp", "fma") and class_of(type) == "f" and len(rounded) != 1:
        raise PtxError(f"{one}: needs a rounding, or .approx")
    if "approx" in words and type.bits == 64 and plain not in ("rsqrt", "rcp"):
        raise PtxError(f"{one}: does not exist for f64")
    wrong = (plain in _SIGNED_ONLY and class_of(type) == "i" and type.kind != "s") or (
        plain in _BITS_ONLY and type.kind not in "bp"
    )
    if wrong or (type.kind == "b" and plain not in _BITS_ONLY):
        raise PtxError(f"{one}: does not exist for .{type.name}")


def _count(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    only(one, type.name)
    if type.kind != "b" or type.bits < 32:
        raise PtxError(f"{one}: does not exist for .{type.name}")
    w.write(one.operands[0], U32, w.make(_COUNTS[one.opcode], w.read(one.operands[1], type)))


def _bfind(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    only(one, type.name, "shiftamt")
    value = w.read(one.operands[1], type)
    form = f"find_highest({{0}}, {'shiftamt' in one.modifiers})"
    w.write(one.operands[0], U32, w.make(form, value))


def _shift(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    only(one, type.name)
    if type.bits < 16 or (one.opcode == "shl" and type.kind != "b"):
        raise PtxError(f"{one}: does not exist for .{type.name}")
    function = "shift_left" if one.opcode == "shl" else "shift_right"
    value, count = w.read(one.operands[1], type), w.read(one.operands[2], U32)
    w.write(one.operands[0], type, w.make(f"{function}({{0}}, {{1}})", value, count))


def _funnel(w: Writer, one: Instruction) -> None:
    side, mode, type = one.modifiers
    only(one, "l", "r", "wrap", "clamp", "b32")
    values = [w.read(part, U32) for part in one.operands[1:]]
    form = f"funnel_shift({{0}}, {{1}}, {{2}}, {side == 'l'}, {mode == 'wrap'})"
    w.write(one.operands[0], TYPES[type], w.make(form, *values))


def _dot_bytes(w: Writer, one: Instruction) -> None:
    """`dp4a.atype.btype`, and `dp2a.lo.atype.btype` or `.hi`."""
    only(one, "s32", "u32", *(("lo", "hi") if one.opcode == "dp2a" else ()))
    types = [TYPES[name] for name in one.modifiers[-2:]]
    both = TYPES["s32" if "s32" in one.modifiers else "u32"]
    values = [w.read(part, of) for part, of in zip(one.operands[1:], (*types, both), strict=True)]
    start = 2 if "hi" in one.modifiers else 0
    form = {"dp4a": "dot_bytes({0}, {1}, {2})", "dp2a": f"dot_halves({{0}}, {{1}}, {{2}}, {start})"}
    w.write(one.operands[0], both, w.make(form[one.opcode], *values))


def _bit_field(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    only(one, type.name)
    data = 1 if one.opcode == "bfe" else 2
    values = [w.read(part, type if i < data else U32) for i, part in enumerate(one.operands[1:])]
    function = "extract_bits" if one.opcode == "bfe" else "insert_bits"
    form = f"{function}({', '.join(f'{{{i}}}' for i in range(len(values)))})"
    w.write(one.operands[0], type, w.make(form, *values))


def _logic3(w: Writer, one: Instruction) -> None:
    only(one, "b32")
    table = one.operands[4]
    assert isinstance(table, Integer)
    values = [w.read(part, TYPES["b32"]) for part in one.operands[1:4]]
    form = f"logic3({{0}}, {{1}}, {{2}}, {table.value})"
    w.write(one.operands[0], TYPES["b32"], w.make(form, *values))


# --- comparisons and choices ---------------------------------------------------------------------

_ORDERED = {
    "eq": "{0} == {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
}  # fmt: skip
_INTEGER_COMPARISONS = _ORDERED | {"ne": "{0} != {1}"}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_FLOAT_COMPARISONS = _ORDERED | {
    "ne": "({0} < {1}) | ({0} > {1})",
    "equ": "~(({0} < {1}) | ({0} > {1}))", "neu": "{0} != {1}",
    "ltu": "~({0} >= {1})", "leu": "~({0} > {1})", "gtu": "~({0} <= {1})", "geu": "~({0} < {1})",
    "num": "~unordered({0}, {1})", "nan": "unordered({0}, {1})",
}  # fmt: skip


def _setp(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    words = [word for word in one.modifiers if word not in (type.name, "ftz")]
    operation = words[0]
    if type.kind == "u":
        operation = _UNSIGNED.get(operation, operation)
    table = _FLOAT_COMPARISONS if class_of(type) == "f" else _INTEGER_COMPARISONS
    if operation not in table or type.bits < 16:
        raise PtxError(f"{one}: unknown comparison")
    if type.kind == "b" and operation not in ("eq", "ne"):
        raise PtxError(f"{one}: bits have no order")
    values = [w.read(part, type) for part in one.operands[1:3]]
    if "ftz" in one.modifiers and type.name == "f32":
        values = [w.make("flush({0})", value) for value in values]
    found = w.make(table[operation], *values)
    other = w.make("~{0}", found)
    if len(words) > 1:
        form = {"and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}"}[words[1]]
        extra = w.read(one.operands[3], PRED)
        found, other = w.make(form, found, extra), w.make(form, other, extra)
    first, second = pair(one.operands[0])
    w.write(first, PRED, found)
    w.write(second, PRED, other)


def _selp(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    only(one, type.name)
    if type.bits < 16:
        raise PtxError(f"{one}: does not exist for .{type.name}")
    choice = w.read(one.operands[3], PRED)
    yes = w.read(one.operands[1], type, where=choice)
    no = w.read(one.operands[2], type, where=w.make("~{0}", choice))
    form = "np.where(np.broadcast_to({2}, (n,)), {0}, {1})"
    w.write(one.operands[0], type, V(w.name(form.format(yes.text, no.text, choice.text))))


def _testp(w: Writer, one: Instruction) -> None:
    what, type = one.modifiers
    value = w.read(one.operands[1], TYPES[type])
    w.write(one.operands[0], PRED, w.make(f"has_property({{0}}, {what!r})", value))


# --- moves and conversions -----------------------------------------------------------------------


def _mov(w: Writer, one: Instruction) -> None:
    type = type_of(one.modifiers)
    only(one, type.name)
    to, of = one.operands
    if isinstance(to, Group):
        part = TYPES[f"b{type.bits // len(to.parts)}"]
        value = w.read(of, TYPES[f"b{type.bits}"])
        for i, target in enumerate(to.parts):
            form = (
                f"({{0}} >> {w.constant(_unsigned(type, i * part.bits))}).astype('u{part.bytes}')"
            )
            w.write(target, part, w.make(form, value))
    elif isinstance(of, Group):
        part = TYPES[f"b{type.bits // len(of.parts)}"]
        pieces = []
        for i, source in enumerate(of.parts):
            value = w.read(source, part)
            shift = w.constant(_unsigned(type, i * part.bits))
            pieces.append(w.make(f"({{0}}.astype('u{type.bytes}') << {shift})", value))
        form = " | ".join(f"{{{i}}}" for i in range(len(pieces)))
        w.write(to, TYPES[f"b{type.bits}"], w.make(form, *pieces))
    else:
        if type.bits < 16 and type.kind != "p":
            raise PtxError(f"{one}: does not exist for .{type.name}")
        w.write(to, type, w.read(of, type), own=False)


def _unsigned(type: PtxType, value: int) -> object:
    return np.dtype(f"u{type.bytes}").type(value)


def _cvt(w: Writer, one: Instruction) -> None:
    kinds = types_of(one.modifiers)
    words = [word for word in one.modifiers if word not in TYPES]
    roundings = [word for word in words if word in INTEGRAL or word in ROUNDINGS]
    if len(kinds) != 2 or set(words) - {"sat", "ftz", *roundings} or len(roundings) > 1:
        raise PtxError(f"{one}: unknown conversion")
    to, of = kinds
    rounding = roundings[0] if roundings else ""
    if to.kind in ("f2", "bf2"):
        high, low = (w.read(part, of) for part in one.operands[1:])
        target = w.constant(to)
        form = f"convert_pair({{0}}, {{1}}, {target}, {rounding!r})"
        w.write(one.operands[0], TYPES["b32"], w.make(form, high, low))
        return
    value = w.read(one.operands[1], of)
    if of.kind == "bf":
        value = w.make("from_bf16({0})", value)
    if "ftz" in words and of.name == "f32":
        value = w.make("flush({0})", value)
    form = f"convert({{0}}, {w.constant(to)}, {w.constant(of)}, {rounding!r}, {'sat' in words})"
    value = w.make(form, value)
    if "ftz" in words and to.name == "f32":
        value = w.make("flush({0})", value)
    w.write(one.operands[0], to, value)


def _cvta(w: Writer, one: Instruction) -> None:
    words = list(one.modifiers)
    back = words[0] == "to"
    space = words[1 if back else 0]
    if space not in ("global", "shared", "local", "const", "param") or words[-1] not in (
        "u64",
        "u32",
    ):
        raise PtxError(f"{one}: unknown address conversion")
    value = w.read(one.operands[1], TYPES[words[-1]])
    window = f"F.window('{space}')"
    form = f"{{0}} {'-' if back else '+'} {window}"
    w.write(one.operands[0], TYPES[words[-1]], w.make(form, value))


_HANDLERS: dict[str, Callable[[Writer, Instruction], None]] = {
    "popc": _count, "clz": _count, "bfind": _bfind, "shl": _shift, "shr": _shift, "shf": _funnel,
    "bfe": _bit_field, "bfi": _bit_field, "lop3": _logic3, "dp4a": _dot_bytes,
    "dp2a": _dot_bytes, "setp": _setp, "selp": _selp, "testp": _testp, "mov": _mov, "cvt": _cvt,
    "cvta": _cvta, **accesses.HANDLERS,
}  # fmt: skip
