"""Instructions of PTX that are more than a formula: memory, warps, barriers, products of matrices.

Each function returns the C++ statements of an instruction, with the registers in scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from treadle.cuda_cpp.syntax.ptx_formulas import CPP_TYPES, comparison, formula, lookup
from treadle.cuda_cpp.syntax.ptx_text import (
    LANE,
    Argument,
    Instruction,
    NotTranslated,
    Registers,
)

_SPACES = ("global", "shared", "local", "const", "param")
_SCOPES = {"cta": "__threadfence_block()", "cluster": "__threadfence()", "gpu": "__threadfence()",
           "sys": "__threadfence()"}  # fmt: skip
# Words about caches, which change no value.
_CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "volatile", "relaxed", "noftz")


def translated(r: Registers, one: Instruction) -> str:
    """The C++ statements of an instruction. Raises NotTranslated."""
    base = one.parts[0]
    if base in _WITHOUT_EFFECT or one.name in _WITHOUT_EFFECT:
        return ""
    handler = _HANDLERS.get(base)
    made = None if handler is None else handler(r, one)
    return _by_formula(r, one) if made is None else made


_REFUSED = {
    **dict.fromkeys(("wgmma", "tcgen05"), "multiplies tiles by units that one generation of cards "
                    "has: use mma.sync"),
    "tensormap": "changes a tensor map, which only the host of a CUDA program makes",
    "mapa": "finds memory of another block of a cluster, and each block is one by itself here",
    "clusterlaunchcontrol": "takes work of other clusters, and each block is one by itself here",
    "call": "calls a function by its name in PTX: call one of C++",
}  # fmt: skip


def _by_formula(r: Registers, one: Instruction) -> str:
    if one.parts[0] in _REFUSED:
        raise NotTranslated(f"{one.name} {_REFUSED[one.parts[0]]}")
    if one.parts[:2] == ("barrier", "cluster"):
        raise NotTranslated(
            f"{one.name} waits for a cluster of blocks, and each block is one by itself here: use "
            "barrier.sync"
        )
    found = formula(list(one.parts))
    if found is None:
        raise NotTranslated(f"{one.name} is not among the instructions that are translated")
    known, type, around = found
    types, result = known.types(type)
    if len(one.arguments) != 1 + len(types):
        raise NotTranslated(f"{one.name} takes {1 + len(types)} operands")
    pairs = zip(one.arguments[1:], types, strict=True)
    text = known.filled(type, [r.value(given, wanted) for given, wanted in pairs])
    return r.assign(one.arguments[0], result, around.format(text))


def _take(one: Instruction, *counts: int) -> Sequence[Argument]:
    if len(one.arguments) not in counts:
        raise NotTranslated(f"{one.name} takes {' or '.join(map(str, counts))} operands")
    return one.arguments


# --- bits and carries ----------------------------------------------------------------------------


def _lop3(r: Registers, one: Instruction) -> str:
    to, a, b, c, table = _take(one, 5)
    found = re.fullmatch(r"(\d+|0[xX][0-9a-fA-F]+)U?", table.text)
    if found is None or one.parts[1:] != ("b32",):
        raise NotTranslated("lop3 with a table that is not a number in the text is not translated")
    names = [r.value(each, "b32") for each in (a, b, c)]
    return r.assign(to, "b32", lookup(int(found[1], 0), names))


def _mov(r: Registers, one: Instruction) -> str | None:
    """`mov` between a register and several in braces."""
    to, given = _take(one, 2)
    if not (to.parts or given.parts):
        if r.kind(to) == r.kind(given) == "address":
            return f"{_variable(r, to)} = {_variable(r, given)};"
        return None
    whole, parts = (given, to.parts) if to.parts else (to, given.parts)
    bits = int(one.parts[1][1:]) // max(len(parts), 1)
    if f"b{bits}" not in CPP_TYPES:
        raise NotTranslated(f"{one.name} of {len(parts)} parts is not translated")
    wide = CPP_TYPES[one.parts[1]]
    if to.parts:
        name = r.fresh()
        lines = [f"{wide} {name} = {r.value(whole, one.parts[1])};"]
        lines += [
            r.assign(part, f"b{bits}", f"{name} >> {bits * at}u") for at, part in enumerate(parts)
        ]
        return "".join(lines)
    text = " | ".join(
        f"({wide}){r.value(part, f'b{bits}')} << {bits * at}u" for at, part in enumerate(parts)
    )
    return r.assign(whole, one.parts[1], text)


def _variable(r: Registers, argument: Argument) -> str:
    """The variable of an address."""
    found = r.find(argument.text)
    if found is None or found[1] != "address":
        raise NotTranslated(f"{argument.text} is not known to be an address")
    return found[0]


def _sum(r: Registers, one: Instruction) -> str | None:
    """Additions to addresses, and those with a carry."""
    to = one.arguments[0] if one.arguments else None
    if to is not None and r.kind(to) == "address":
        base, *rest = (one.arguments[3], *one.arguments[1:3]) if one.parts[0] == "mad" else (
            one.arguments[1], one.arguments[2]
        )  # fmt: skip
        if one.parts[0] == "mad" and one.parts[1] != "wide":
            raise NotTranslated(f"{one.name} of addresses is not translated")
        type = "s32" if one.parts[-1] == "s32" else "u32" if len(rest) == 2 else "s64"
        by = " * ".join(f"(long long){r.value(each, type)}" for each in rest)
        sign = "-" if one.parts[0] == "sub" else "+"
        return f"{_variable(r, to)} = {_variable(r, base)} {sign} ({by});"
    carries = one.parts[0] in ("addc", "subc", "madc")
    if not carries and "cc" not in one.parts:
        return None
    type = "u64" if one.parts[-1].endswith("64") else "u32"
    cpp, (name, left, kept) = CPP_TYPES[type], (r.fresh() for _ in range(3))
    to, *given = one.arguments
    op = one.parts[0].removesuffix("c")
    taken = [r.value(each, type) for each in given]
    if op == "mad":
        half = FORMULA_OF_HALF[one.parts[1], type].format(*taken[:2])
        first, second = f"({cpp})({half})", taken[2]
    else:
        first, second = taken[0], taken[1]
    sign, before = ("-", ">") if op == "sub" else ("+", "<")
    carried = "__treadle_carry" if carries else "0u"
    # The result is beyond its range if it is on the wrong side of an operand, or equal to it
    # although one more was added.
    compared = f"{left} < {kept}" if op == "sub" else f"{name} {before} {left}"
    equal = f"{kept} == {left}" if op == "sub" else f"{name} == {left}"
    lines = (
        f"{cpp} {left} = {first}, {kept} = {second}, "
        f"{name} = ({cpp})({left} {sign} {kept} {sign} ({cpp}){carried});"
    )
    if "cc" in one.parts:
        lines += f"__treadle_carry = {compared} || ({equal} && {carried} != 0u) ? 1u : 0u;"
    return lines + r.assign(to, type, name)


FORMULA_OF_HALF = {
    ("lo", "u32"): "{0} * {1}", ("hi", "u32"): "__umulhi({0}, {1})",
    ("lo", "u64"): "{0} * {1}", ("hi", "u64"): "__umul64hi({0}, {1})",
}  # fmt: skip


def _video(r: Registers, one: Instruction) -> str | None:
    """`vshl` and `vshr` of whole words with an addition."""
    if one.parts[1:4] + one.parts[5:] != ("u32", "u32", "u32", "add") or (
        one.parts[4] not in ("clamp", "wrap")
    ):
        return None
    to, *given = _take(one, 4)
    a, b, c = (r.value(each, "u32") for each in given)
    op = ">>" if one.parts[0] == "vshr" else "<<"
    shifted = f"({a} {op} ({b} & 31u))"
    if "clamp" in one.parts:
        shifted = f"({b} > 31u ? 0u : {shifted})"
    return r.assign(to, "u32", f"{shifted} + {c}")


# --- predicates ----------------------------------------------------------------------------------


def _setp(r: Registers, one: Instruction) -> str:
    """setp.CMP[.BoolOp].type p[|q], a, b[, c], and set."""
    parts = [part for part in one.parts if part != "ftz"]
    is_set = parts[0] == "set"
    kinds = 2 if is_set else 1
    type, words = parts[-1], parts[1 : len(parts) - kinds]
    to, *given = _take(one, 3, 4)
    found = type in CPP_TYPES and len(words) in (1, 2) and comparison(
        words[0], type, r.value(given[0], type), r.value(given[1], type)
    )  # fmt: skip
    if not found or len(given) != len(words) + 1:
        raise NotTranslated(f"{one.name} is not translated")
    joined = {"and": "&&", "or": "||", "xor": "!="}.get(words[-1]) if len(words) == 2 else None
    holds, other = r.fresh(), r.fresh()
    lines = f"bool {holds} = {found}, {other} = !{holds};"
    if joined:
        more = r.value(given[2], "pred")
        lines += f"{holds} = {holds} {joined} {more}; {other} = {other} {joined} {more};"
    if is_set:
        if parts[-2] == "f32":
            return lines + r.assign(to, "f32", f"{holds} ? 1.0f : 0.0f")
        return lines + r.assign(to, "u32", f"{holds} ? ~0u : 0u")
    targets = to.parts or (to,)
    pairs = zip(targets, (holds, other), strict=False)
    return lines + "".join(r.assign(target, "pred", name) for target, name in pairs)


def _slct(r: Registers, one: Instruction) -> str:
    to, a, b, c = _take(one, 4)
    type, by = one.parts[-2:]
    return r.assign(to, type, f"({r.value(c, by)} >= 0 ? {r.value(a, type)} : {r.value(b, type)})")


# --- conversions ---------------------------------------------------------------------------------

_TO_INTEGER = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
_MODES = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}
_NAMES = {"s32": "int", "u32": "uint", "s64": "ll", "u64": "ull"}
_LIMITS = {"8": (-128, 127, 255), "16": (-32768, 32767, 65535)}


def _cvt(r: Registers, one: Instruction) -> str:
    parts = [part for part in one.parts[1:] if part != "ftz"]
    to, *given = _take(one, 2, 3)
    if len(parts) < 2:
        raise NotTranslated(f"{one.name} is not translated")
    *words, target, source = parts
    narrow = target in ("e4m3x2", "e5m2x2") or source in ("e4m3x2", "e5m2x2")
    if narrow or target in ("f16x2", "bf16x2", "tf32"):
        return _narrowed(r, one, words, target, source, to, given)
    if len(given) != 1 or target not in CPP_TYPES or source not in CPP_TYPES:
        raise NotTranslated(f"{one.name} is not translated")
    value = r.value(given[0], source)
    text = _converted(value, words, target, source)
    if text is None:
        raise NotTranslated(f"{one.name} is not translated")
    return r.assign(to, target, text)


def _is_integer(type: str) -> bool:
    return type[0] in "us"


def _converted(value: str, words: list[str], target: str, source: str) -> str | None:
    mode = words[0] if words and words[0] != "sat" else ""
    saturated = "sat" in words
    if _is_integer(target) and _is_integer(source):
        return f"({CPP_TYPES[target]}){value}" if not words else (
            _clamped(value, target, source) if words == ["sat"] else None
        )  # fmt: skip
    if _is_integer(target):
        if mode not in _TO_INTEGER:
            return None
        if source in ("f16", "bf16"):
            value, source = f"(float){value}", "f32"
        letter = {"f32": "float", "f64": "double"}[source]
        wide = target if target in _NAMES else f"{target[0]}32"
        made = f"__{letter}2{_NAMES[wide]}_{_TO_INTEGER[mode]}({value})"
        return made if wide == target else _clamped(made, target, wide)
    if _is_integer(source):
        if mode not in _MODES or target == "bf16":
            return None
        letter = {"f32": "float", "f64": "double", "f16": "float"}[target]
        wide = source if source in _NAMES else f"{source[0]}32"
        if target == "f64" and wide.endswith("32"):
            return f"(double){value}"
        made = f"__{_NAMES[wide]}2{letter}_{_MODES[mode]}({value})"
        return made if target != "f16" else f"__float2half_rn({made})" if mode == "rn" else None
    if mode in _TO_INTEGER:  # rounded to an integer that stays a floating-point number
        if target != source or target not in ("f32", "f64"):
            return None
        name = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
        value = f"{name}{'f' if target == 'f32' else ''}({value})"
    elif target in ("f16", "bf16") and source == "f32":
        if mode not in _MODES:
            return None
        name = "half" if target == "f16" else "bfloat16"
        value = f"__float2{name}_{_MODES[mode]}({value})"
        if "relu" in words:
            value = f"__hmax({value}, {'__float2' + name}(0.0f))"
    elif target == "f32" and source == "f64":
        if mode not in _MODES:
            return None
        value = f"__double2float_{_MODES[mode]}({value})"
    elif target in ("f32", "f64"):
        value = f"({CPP_TYPES[target]}){value if source != 'bf16' else '(float)' + value}"
    else:
        return None
    if saturated:
        return f"__saturatef({value})" if target == "f32" else None
    return value


def _clamped(value: str, target: str, source: str) -> str | None:
    """An integer in the range of another type."""
    size, own = int(target[1:]), int(source[1:])
    low = -(1 << size - 1) if target[0] == "s" else 0
    high = (1 << size - (target[0] == "s")) - 1
    if size == 64 or own > 64:
        return None
    suffix = "ll" if source[0] == "s" else "ull"
    smallest = f"{value} < {low}{suffix} ? {low}{suffix} : " if source[0] == "s" else ""
    return f"({smallest}{value} > {high}{suffix} ? {high}{suffix} : {value})"


def _narrowed(
    r: Registers,
    one: Instruction,
    words: list[str],
    target: str,
    source: str,
    to: Argument,
    given: Sequence[Argument],
) -> str:
    """Conversions of pairs, whose first operand is the upper one, and to tf32."""
    relu, kept = "relu" in words, [word for word in words if word not in ("relu", "satfinite")]
    match target, source:
        case "tf32", "f32" if kept in (["rna"], ["rn"]):
            value = r.value(given[0], "f32")
            return r.assign(to, "u32", f"__treadle_tf32_{kept[0]}({value})")
        case "f16x2" | "bf16x2", "f32" if len(given) == 2 and kept in (["rn"], ["rz"]):
            name = "half" if target == "f16x2" else "bfloat16"
            suffix = "ushort"
            parts = [
                f"__{name}_as_{suffix}(__float2{name}_{kept[0]}("
                + (f"fmaxf({value}, 0.0f)" if relu else value)
                + "))"
                for value in (r.value(each, "f32") for each in given)
            ]
            return r.assign(to, "u32", f"(unsigned int){parts[0]} << 16 | {parts[1]}")
        case "e4m3x2" | "e5m2x2", "f32" if len(given) == 2 and "satfinite" in words:
            kind = f"__NV_{target[:4].upper()}"
            parts = [
                f"(unsigned int)__nv_cvt_float_to_fp8({value}, __NV_SATFINITE, {kind})"
                for value in (r.value(each, "f32") for each in given)
            ]
            return r.assign(to, "u16", f"{parts[0]} << 8 | {parts[1]}")
        case "f16x2", "e4m3x2" | "e5m2x2":
            kind, value = f"__NV_{source[:4].upper()}", r.value(given[0], "u16")
            parts = [
                f"(unsigned int)__nv_cvt_fp8_to_halfraw((unsigned char)({value} >> {by}), {kind}).x"
                for by in (8, 0)
            ]
            return r.assign(to, "u32", f"{parts[0]} << 16 | {parts[1]}")
    raise NotTranslated(f"{one.name} is not translated")


def _cvta(r: Registers, one: Instruction) -> str:
    to, given = _take(one, 2)
    if r.kind(given) == "address" and "shared" in one.parts and "to" in one.parts:
        number = f"__cvta_generic_to_shared({_variable(r, given)})"
        return r.assign(to, "u64" if r.kind(to) == "l" else "u32", number)
    if r.kind(to) == r.kind(given) == "address":
        return f"{_variable(r, to)} = {_variable(r, given)};"
    raise NotTranslated(f"{one.name} is only translated where the result is used as an address")


# --- memory --------------------------------------------------------------------------------------


def _access(one: Instruction) -> tuple[str, int, str, str]:
    """Of a load or store: the type, how many, the order and the scope of it."""
    count, order, scope, type = 1, "", "sys", one.parts[-1]
    for part in one.parts[1:-1]:
        if part in ("v2", "v4", "v8"):
            count = int(part[1])
        elif part in ("acquire", "release"):
            order = part
        elif part in _SCOPES:
            scope = part
        elif part.split("::")[0] not in (*_SPACES, *_CACHES, "L1", "L2"):
            raise NotTranslated(f"{one.name} is not translated")
    if type not in CPP_TYPES or type in ("f16", "bf16"):
        raise NotTranslated(f"{one.name} is not translated")
    return type, count, order, scope


_VECTORS = {
    ("32", 2): "uint2", ("32", 4): "uint4", ("64", 2): "ulonglong2", ("16", 2): "ushort2",
    ("16", 4): "ushort4", ("8", 2): "uchar2", ("8", 4): "uchar4",
}  # fmt: skip


def _load(r: Registers, one: Instruction) -> str:
    type, count, order, scope = _access(one)
    to, address = _take(one, 2, 3)[:2]
    targets = to.parts or (to,)
    if len(targets) != count:
        raise NotTranslated(f"{one.name} takes {count} registers")
    volatile = "volatile " if {"volatile", "relaxed", "acquire"} & set(one.parts) else ""
    after = f"{_SCOPES[scope]};" if order == "acquire" else ""
    if count == 1:
        pointer = r.address(address, f"const {volatile}{CPP_TYPES[type]}")
        return r.assign(to, type, f"*{pointer}") + after
    vector = _VECTORS.get((type[1:3].rstrip("x"), count))
    if vector is None:
        raise NotTranslated(f"{one.name} is not translated")
    name, plain = r.fresh(), f"u{type[1:]}"
    # A volatile vector is read by its components.
    at, pointer = r.fresh(), r.address(address, f"const {volatile}{CPP_TYPES[plain]}")
    if volatile:
        lines = f"auto {at} = {pointer};"
        reads = [f"{at}[{place}]" for place in range(count)]
    else:
        lines = f"{vector} {name} = *{r.address(address, f'const {vector}')};"
        reads = [f"{name}.{'xyzw'[place]}" for place in range(count)]
    pairs = zip(targets, reads, strict=True)
    return lines + "".join(r.assign(target, plain, read) for target, read in pairs) + after


def _store(r: Registers, one: Instruction) -> str:
    type, count, order, scope = _access(one)
    address, given = _take(one, 2, 3)[:2]
    values = given.parts or (given,)
    if len(values) != count:
        raise NotTranslated(f"{one.name} takes {count} registers")
    before = f"{_SCOPES[scope]};" if order == "release" else ""
    if count == 1:
        return f"{before}*{r.address(address, CPP_TYPES[type])} = {r.value(given, type)};"
    vector = _VECTORS.get((type[1:3].rstrip("x"), count))
    if vector is None:
        raise NotTranslated(f"{one.name} is not translated")
    parts = ", ".join(r.value(each, f"u{type[1:]}") for each in values)
    return f"{before}*{r.address(address, vector)} = make_{vector}({parts});"


_ATOMICS = {
    "add": "atomicAdd", "exch": "atomicExch", "cas": "atomicCAS", "min": "atomicMin",
    "max": "atomicMax", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor",
    "inc": "atomicInc", "dec": "atomicDec",
}  # fmt: skip


def _atomic(r: Registers, one: Instruction) -> str:
    """`atom d, [a], b[, c]` and `red [a], b`."""
    is_red = one.parts[0] == "red"
    arguments = list(one.arguments)
    to = Argument("_") if is_red else arguments.pop(0)
    words = [w for w in one.parts[1:-1] if w.split("::")[0] not in (*_SPACES, "noftz", "L2")]
    order, scope, op, type, count = "", "gpu", "", one.parts[-1], 1
    for word in words:
        if word in ("relaxed", "acquire", "release", "acq_rel"):
            order = word
        elif word in _SCOPES:
            scope = word
        elif word in ("v2", "v4", "v8"):
            count = int(word[1])
        else:
            op = word
    function = _ATOMICS.get(op)
    if function is None or type not in CPP_TYPES or not arguments:
        raise NotTranslated(f"{one.name} is not translated")
    cpp = f"u{type[1:]}" if type[0] == "b" and type != "bf16x2" and type != "bf16" else type
    before = f"{_SCOPES[scope]};" if order in ("release", "acq_rel") else ""
    after = f"{_SCOPES[scope]};" if order in ("acquire", "acq_rel") else ""
    pointer = r.address(arguments[0], CPP_TYPES[cpp])
    parts = [each.parts or (each,) for each in (to, *arguments[1:])]
    if any(len(each) != count for each in parts[is_red:]):
        raise NotTranslated(f"{one.name} takes {count} registers")
    made, results = "", []
    for at in range(count):  # each number of a vector by itself, as on CUDA
        values = ", ".join(r.value(each[at], cpp) for each in parts[1:])
        call = f"{function}({pointer} + {at}, {values})"
        if is_red or parts[0][at].text == "_":
            made += f"{call};"
        else:
            name = r.fresh()
            made += f"auto {name} = {call};"
            results.append(r.assign(parts[0][at], cpp, name))
    return before + made + "".join(results) + after


def _mbarrier(r: Registers, one: Instruction) -> str:
    words = [w for w in one.parts[1:-1] if w.split("::")[0] not in (*_SPACES, *_ORDERS, *_SCOPES)]
    name, *kinds = words or [""]
    if name == "inval":
        return ""
    if name == "pending_count":
        to, state = _take(one, 2)
        return r.assign(to, "u32", f"(unsigned int)({r.value(state, 'u64')} & 0x7fffull)")
    if name in ("init", "expect_tx", "complete_tx") and not kinds:
        address, count = _take(one, 2)
        function = {"init": "init", "expect_tx": "expect", "complete_tx": "complete"}[name]
        given = f"{r.barrier(address)}, {r.value(count, 'u32')}"
        return f"__treadle_mbarrier_{function}({given});"
    if name in ("arrive", "arrive_drop") and set(kinds) <= {"expect_tx", "noComplete"}:
        arguments = list(one.arguments)
        to = Argument("_") if arguments[0].offset is not None else arguments.pop(0)
        address, *rest = arguments
        pointer, many, lines = r.barrier(address), "1u", ""
        if "expect_tx" in kinds:
            lines = f"__treadle_mbarrier_expect({pointer}, {r.value(rest[0], 'u32')});"
        elif rest:
            many = r.value(rest[0], "u32")
        dropped = many if name == "arrive_drop" else "0u"
        call = f"__treadle_mbarrier_arrive({pointer}, {many}, {dropped})"
        return lines + (f"{call};" if to.text == "_" else r.assign(to, "u64", call))
    if name in ("test_wait", "try_wait") and kinds in ([], ["parity"]):
        to, address, state, *_ = _take(one, 3, 4)
        parity = (
            r.value(state, "u32") if kinds else f"(unsigned int)({r.value(state, 'u64')} >> 31)"
        )
        return r.assign(to, "pred", f"__treadle_mbarrier_test({r.barrier(address)}, {parity})")
    raise NotTranslated(f"{one.name} is not translated")


_ORDERS = ("release", "acquire", "relaxed", "acq_rel")


def _copy_bulk(r: Registers, one: Instruction) -> str:
    """cp.async.bulk of adjacent bytes: done at once, by the thread that asks for it."""
    words = [word.split("::")[0] for word in one.parts[3:] if not word.startswith("L2")]
    match words:
        case ["commit_group"] | ["wait_group", *_] | ["prefetch", *_]:
            return ""
        case ["shared", "global", "mbarrier"]:
            to, given, size, barrier, *_ = one.arguments
            bytes_ = r.value(size, "u32")
            return (
                f"__treadle_copy_bulk({r.address(to, 'char')}, {r.address(given, 'const char')}, "
                f"{bytes_}); __treadle_mbarrier_complete({r.barrier(barrier)}, {bytes_});"
            )
        case ["global", "shared", "bulk_group"]:
            to, given, size, *_ = one.arguments
            return (
                f"__treadle_copy_bulk({r.address(to, 'char')}, {r.address(given, 'const char')}, "
                f"{r.value(size, 'u32')});"
            )
    raise NotTranslated(f"{one.name} is not translated")


def _copy(r: Registers, one: Instruction) -> str:
    """cp.async: copies that a target may do later."""
    if one.parts[1] == "async" and "bulk" in one.parts[2:3]:
        return _copy_bulk(r, one)
    words = one.parts[2:]
    match words[:1]:
        case ("mbarrier",):
            (address,) = _take(one, 1)
            waits = "__treadle_end_copies(); __treadle_wait_copies(0u);"
            arrives = f"__treadle_mbarrier_arrive({r.barrier(address)}, 1u, 0u);"
            return waits + (arrives if "noinc" in words else "")
        case ("commit_group",):
            return "__treadle_end_copies();"
        case ("wait_all",):
            return "__treadle_end_copies(); __treadle_wait_copies(0u);"
        case ("wait_group",):
            return f"__treadle_wait_copies({r.value(_take(one, 1)[0], 'u32')});"
    if words[0] not in ("ca", "cg") or "bulk" in words:
        raise NotTranslated(f"{one.name} is not translated")
    to, given, size, *rest = one.arguments
    pointers = f"{r.address(to, 'char')}, {r.address(given, 'const char')}"
    if r.kind(size):  # an operand that is a constant
        whole = r.value(size, "u32")
    else:
        whole = size.text
    taken = whole
    if rest and r.kind(rest[0]) == "p":  # whether the source is left out
        ignored = r.value(Argument(rest[0].text, negated=not rest[0].negated), "pred")
        return f"__treadle_copy_later({pointers}, {whole}, {ignored});"
    elif rest and r.kind(rest[0]) != "l":  # not a policy of the cache
        taken = r.value(rest[0], "u32")
    return f"__treadle_copy_async<{whole}>({pointers}, {taken});"


def _matrices(r: Registers, one: Instruction) -> str:
    """The instructions ldmatrix and stmatrix."""
    words = one.parts[1:]
    count = next((int(word[1]) for word in words if word in ("x1", "x2", "x4")), 0)
    if "m8n8" not in words or words[-1] != "b16" or not count:
        raise NotTranslated(f"{one.name} is not translated")
    loads = one.parts[0] == "ldmatrix"
    registers, address = one.arguments if loads else one.arguments[::-1]
    parts = registers.parts or (registers,)
    if len(parts) != count:
        raise NotTranslated(f"{one.name} takes {count} registers")
    row, trans = r.fresh(), "true" if "trans" in words else "false"
    if not loads:
        lines = f"unsigned int {row} = {r.shared_address(address)};"
        return lines + "".join(
            f"__treadle_store_matrix({row}, {at}u, {trans}, {r.value(part, 'b32')});"
            for at, part in enumerate(parts)
        )
    by = "columns" if "trans" in words else "rows"
    lines = f"auto {row} = __treadle_matrix_{by}({r.address(address, 'char')}, {count}u);"
    names = [row] if count == 1 else [f"{row}.{axis}" for axis in "xyzw"[:count]]
    pairs = zip(parts, names, strict=True)
    return lines + "".join(r.assign(part, "b32", name) for part, name in pairs)


def _movmatrix(r: Registers, one: Instruction) -> str:
    to, given = _take(one, 2)
    return r.assign(to, "b32", f"__treadle_transpose_matrix({r.value(given, 'b32')})")


# --- products ------------------------------------------------------------------------------------

# By shape and type of the factors: the words of A and B, and the operation that takes 4 and 2.
_PRODUCTS = {
    ("m16n8k16", "f16"): (4, 2, "f16"), ("m16n8k8", "f16"): (2, 1, "f16"),
    ("m16n8k16", "bf16"): (4, 2, "bf16"), ("m16n8k8", "bf16"): (2, 1, "bf16"),
    ("m16n8k8", "tf32"): (4, 2, "tf32"), ("m16n8k4", "tf32"): (2, 1, "tf32"),
    ("m16n8k32", "s8"): (4, 2, "i8"), ("m16n8k16", "s8"): (2, 1, "i8"),
    ("m8n8k16", "s8"): (1, 1, "i8"),
    ("m16n8k32", "u8"): (4, 2, "u8"), ("m16n8k16", "u8"): (2, 1, "u8"),
    ("m8n8k16", "u8"): (1, 1, "u8"),
}  # fmt: skip


def _mma(r: Registers, one: Instruction) -> str:
    words = [word for word in one.parts[1:] if word not in ("sync", "aligned", "row", "col")]
    shape, *types = words
    known = _PRODUCTS.get((shape, types[1])) if len(types) == 4 else None
    wrong = known is None or types[1] != types[2] or one.parts.count("col") != 1
    if wrong or known is None or len(one.arguments) != 4:
        raise NotTranslated(f"{one.name} is not translated")
    to, a, b, c = (argument.parts or (argument,) for argument in one.arguments)
    half = types[0] == "f16"
    if types[0] != types[3] or types[0] not in ("f32", "f16", "s32"):
        raise NotTranslated(f"{one.name} is not translated")
    sums = 2 if half or shape.startswith("m8") else 4
    if [len(each) for each in (to, a, b, c)] != [sums, known[0], known[1], sums]:
        raise NotTranslated(f"{one.name} takes {sums}, {known[0]}, {known[1]} and {sums} registers")
    left = [r.value(each, "b32") for each in a] + ["0u"] * (4 - len(a))
    right = [r.value(each, "b32") for each in b] + ["0u"] * (2 - len(b))
    if half:
        before = [
            f"__treadle_half_of({r.value(each, 'b32')}, {at}u)" for each in c for at in (0, 1)
        ]
    else:
        before = [r.value(each, types[0]) for each in c] + ["0"] * (4 - sums)
    vector = "int4" if types[0] == "s32" else "float4"
    name = r.fresh()
    lines = (
        f"{vector} {name} = __treadle_multiply_{known[2]}(make_uint4({', '.join(left)}), "
        f"make_uint2({', '.join(right)}), make_{vector}({', '.join(before)}));"
    )
    if half:
        texts = [f"__treadle_halves({name}.x, {name}.y)", f"__treadle_halves({name}.z, {name}.w)"]
        return lines + "".join(r.assign(t, "b32", x) for t, x in zip(to, texts, strict=True))
    return lines + "".join(
        r.assign(target, types[0], f"{name}.{axis}")
        for target, axis in zip(to, "xyzw", strict=False)
    )


# --- warps ---------------------------------------------------------------------------------------

_SHUFFLES = {"up": "_up", "down": "_down", "bfly": "_xor", "idx": ""}


def _shfl(r: Registers, one: Instruction) -> str:
    to, given, by, packed, mask = _take(one, 5)
    kind = one.parts[2] if one.parts[1] == "sync" and len(one.parts) == 4 else ""
    number = re.fullmatch(r"\d+|0[xX][\da-fA-F]+", packed.text)
    if kind not in _SHUFFLES or number is None:
        raise NotTranslated(f"{one.name} with an operand for its width is not translated")
    value = int(packed.text, 0)
    width = 32 - (value >> 8 & 31)
    if value & 31 != (0 if kind == "up" else 31) or width & (width - 1):
        raise NotTranslated(f"{one.name} with the clamp {packed.text} is not translated")
    targets = to.parts or (to,)
    name, lane = r.fresh(), r.fresh()
    lines = (
        f"unsigned int {lane} = {r.value(by, 'u32')} & 31u, {name} = __shfl{_SHUFFLES[kind]}_sync("
        f"{r.value(mask, 'u32')}, {r.value(given, 'b32')}, {lane}, {width});"
    )
    if len(targets) == 2:
        place = f"({LANE} & {width - 1}u)"
        inside = {
            "up": f"{place} >= {lane}", "down": f"{place} + {lane} < {width}u",
            "bfly": f"({place} ^ {lane}) < {width}u", "idx": "true",
        }[kind]  # fmt: skip
        lines += r.assign(targets[1], "pred", inside)
    return lines + r.assign(targets[0], "b32", name)


def _vote(r: Registers, one: Instruction) -> str:
    if one.parts[1] != "sync":
        raise NotTranslated(f"{one.name}, which newer devices lack, is not translated")
    to, given, mask = _take(one, 3)
    holds, named = r.value(given, "pred"), r.value(mask, "u32")
    match one.parts[2]:
        case "ballot":
            return r.assign(to, "u32", f"__ballot_sync({named}, {holds})")
        case "all" | "any" as kind:
            return r.assign(to, "pred", f"__{kind}_sync({named}, {holds}) != 0")
        case "uni":
            both = f"__all_sync({named}, {holds}) != 0 || __any_sync({named}, {holds}) == 0"
            return r.assign(to, "pred", both)
    raise NotTranslated(f"{one.name} is not translated")


def _match(r: Registers, one: Instruction) -> str:
    to, given, mask = _take(one, 3)
    type = "u64" if one.parts[-1] == "b64" else "u32"
    value, named = r.value(given, type), r.value(mask, "u32")
    if one.parts[1] == "any":
        return r.assign(to, "u32", f"__match_any_sync({named}, {value})")
    targets, same, lanes = to.parts or (to,), r.fresh(), r.fresh()
    lines = f"int {same}; unsigned int {lanes} = __match_all_sync({named}, {value}, &{same});"
    if len(targets) == 2:
        lines += r.assign(targets[1], "pred", f"{same} != 0")
    return lines + r.assign(targets[0], "u32", lanes)


def _redux(r: Registers, one: Instruction) -> str:
    to, given, mask = _take(one, 3)
    op, type = one.parts[2], one.parts[-1]
    if one.parts[1] != "sync" or type not in ("u32", "s32", "b32"):
        raise NotTranslated(f"{one.name} is not translated")
    call = f"__reduce_{op}_sync({r.value(mask, 'u32')}, {r.value(given, type)})"
    return r.assign(to, type, call)


def _elect(r: Registers, one: Instruction) -> str:
    to, mask = _take(one, 2)
    targets = to.parts or (to,)
    first = f"(unsigned int)(__ffs((int){r.value(mask, 'u32')}) - 1)"
    lines = r.assign(targets[0], "u32", first)
    if len(targets) == 2:
        lines += r.assign(targets[1], "pred", f"{LANE} == {first}")
    return lines


def _activemask(r: Registers, one: Instruction) -> str:
    return r.assign(_take(one, 1)[0], "u32", "__activemask()")


# --- barriers ------------------------------------------------------------------------------------


def _barrier(r: Registers, one: Instruction) -> str | None:
    words = [w for w in one.parts[1:] if w not in ("cta", "aligned")]
    if words[:1] == ["cluster"]:
        return None
    if words[:2] == ["warp", "sync"]:
        return f"__syncwarp({r.value(_take(one, 1)[0], 'u32')});"
    if words[:1] == ["red"]:
        to, number, *rest = _take(one, 3)
        if number.text == "0":
            kind = {"popc": "count", "and": "and", "or": "or"}.get(words[1])
            call = f"__syncthreads_{kind}({r.value(rest[-1], 'pred')})"
            if words[-1] == "u32":
                return r.assign(to, "u32", call)
            return r.assign(to, "pred", f"{call} != 0")
    if words != ["sync"]:
        raise NotTranslated(f"{one.name} is not translated")
    number, *threads = _take(one, 1, 2)
    if not threads and number.text == "0":
        return "__syncthreads();"
    count = r.value(threads[0], "u32") if threads else "0u"
    return f"__treadle_barrier_of({r.value(number, 'u32')}, {count});"


def _fence(r: Registers, one: Instruction) -> str:
    words = set(one.parts[1:])
    if "mbarrier_init" in words:  # mbarriers are atomics here
        return ""
    if "proxy" in words or any(word.startswith("proxy") for word in words):
        return ""
    return "__threadfence_block();" if "cta" in words else "__threadfence();"


_WITHOUT_EFFECT = frozenset({
    "prefetch", "prefetchu", "discard", "applypriority", "createpolicy", "griddepcontrol",
    "pmevent", "setmaxnreg",
})  # fmt: skip
_HANDLERS: dict[str, Callable[[Registers, Instruction], str | None]] = {
    "lop3": _lop3,
    "mov": _mov,
    **dict.fromkeys(("add", "sub", "mad", "addc", "subc", "madc"), _sum),
    **dict.fromkeys(("vshl", "vshr"), _video),
    **dict.fromkeys(("setp", "set"), _setp),
    "slct": _slct,
    "cvt": _cvt,
    "cvta": _cvta,
    **dict.fromkeys(("ld", "ldu"), _load),
    "st": _store,
    **dict.fromkeys(("atom", "red"), _atomic),
    "cp": _copy,
    "mbarrier": _mbarrier,
    **dict.fromkeys(("ldmatrix", "stmatrix"), _matrices),
    "movmatrix": _movmatrix,
    "mma": _mma,
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
    "activemask": _activemask,
    **dict.fromkeys(("bar", "barrier"), _barrier),
    **dict.fromkeys(("membar", "fence"), _fence),
    **dict.fromkeys(("exit", "ret"), lambda r, one: "__treadle_exit();"),
    "trap": lambda r, one: "__trap();",
    "brkpt": lambda r, one: "__brkpt();",
    "nanosleep": lambda r, one: f"__nanosleep({r.value(_take(one, 1)[0], 'u32')});",
}
