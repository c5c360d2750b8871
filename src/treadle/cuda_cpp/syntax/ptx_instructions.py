"""Instructions of PTX that are more than a formula: memory, warps, barriers, products of matrices.

Each function returns the C++ statements of an instruction, with the registers in scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from treadle.cuda_cpp.syntax.ptx_conversions import cvt, cvta
from treadle.cuda_cpp.syntax.ptx_formulas import CPP_TYPES, comparison, formula, lookup
from treadle.cuda_cpp.syntax.ptx_matrices import matrices, mma, movmatrix
from treadle.cuda_cpp.syntax.ptx_memory import atomic, copy, load, mbarrier, store
from treadle.cuda_cpp.syntax.ptx_text import (
    LANE,
    Argument,
    Instruction,
    NotTranslated,
    Registers,
    take,
)
from treadle.cuda_cpp.syntax.ptx_video import video


def translated(r: Registers, one: Instruction) -> str:
    """The C++ statements of an instruction. Raises NotTranslated."""
    base = one.parts[0]
    if base in WITHOUT_EFFECT or one.name in WITHOUT_EFFECT:
        return ""
    handler = HANDLERS.get(base)
    made = None if handler is None else handler(r, one)
    return _by_formula(r, one) if made is None else made


def _by_formula(r: Registers, one: Instruction) -> str:
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


# --- bits and carries ----------------------------------------------------------------------------


def _lop3(r: Registers, one: Instruction) -> str:
    to, a, b, c, table, *more = take(one, 5, 6)
    joined = {"or": "||", "and": "&&"}.get(one.parts[1]) if more else None
    if (
        one.parts[-1] != "b32"
        or len(one.parts) != (3 if joined else 2)
        or bool(more) != bool(joined)
    ):
        raise NotTranslated(f"{one.name} is not translated")
    found = re.fullmatch(r"(\d+|0[xX][0-9a-fA-F]+)U?", table.text)
    names = [r.value(each, "b32") for each in (a, b, c)]
    if found is not None:
        text = lookup(int(found[1], 0), names)
    else:  # an operand, which is a constant
        bits = r.value(table, "u32")
        text = " | ".join(
            f"(({bits} >> {at}u & 1u) != 0u ? {lookup(1 << at, names)} : 0u)" for at in range(8)
        )
    if joined is None:
        return r.assign(to, "b32", text)
    made = r.fresh()
    word, holds = to.parts if to.parts else (to, Argument("_"))
    lines = f"unsigned int {made} = {text};" + r.assign(word, "b32", made)
    return lines + r.assign(holds, "pred", f"({made} != 0u) {joined} {r.value(more[0], 'pred')}")


def _mov(r: Registers, one: Instruction) -> str | None:
    """`mov` between a register and several in braces."""
    to, given = take(one, 2)
    if not (to.parts or given.parts):
        if r.kind(to) == r.kind(given) == "address":
            return f"{r.pointer(to)} = {r.pointer(given)};"
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
        return f"{r.pointer(to)} = {r.pointer(base)} {sign} ({by});"
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


def _of_two_floats(r: Registers, one: Instruction) -> str | None:
    """Arithmetic of two floats in a register of 64 bits."""
    if one.parts[-1] != "f32x2":
        return None
    mode = next((w for w in one.parts[1:] if w in ("rn", "rz", "rm", "rp")), "rn")
    parts = (one.parts[0], mode, "f32")
    found = formula(list(parts))
    to, *given = one.arguments
    if (
        found is None
        or set(one.parts[1:-1]) - {mode, "ftz"}
        or len(given) != len(found[0].operands)
    ):
        raise NotTranslated(f"{one.name} is not translated")
    words = [r.value(each, "b64") for each in given]
    halves = [
        found[0].filled(
            "f32", [f"__uint_as_float((unsigned int)({word} >> {by}u))" for word in words]
        )
        for by in (0, 32)
    ]
    low, high = (f"(unsigned long long)__float_as_uint({half})" for half in halves)
    return r.assign(to, "b64", f"{high} << 32u | {low}")


def _arithmetic(r: Registers, one: Instruction) -> str | None:
    made = _of_two_floats(r, one)
    return _sum(r, one) if made is None else made


FORMULA_OF_HALF = {
    ("lo", "u32"): "{0} * {1}", ("hi", "u32"): "__umulhi({0}, {1})",
    ("lo", "u64"): "{0} * {1}", ("hi", "u64"): "__umul64hi({0}, {1})",
}  # fmt: skip


# --- predicates ----------------------------------------------------------------------------------


def _setp(r: Registers, one: Instruction) -> str:
    """setp.CMP[.BoolOp].type p[|q], a, b[, c], and set."""
    parts = [part for part in one.parts if part != "ftz"]
    is_set = parts[0] == "set"
    kinds = 2 if is_set else 1
    type, words = parts[-1], parts[1 : len(parts) - kinds]
    to, *given = take(one, 3, 4)
    if type in ("f16x2", "bf16x2"):
        return _setp_of_two(r, one, words, type)
    found = type in CPP_TYPES and len(words) in (1, 2) and _compared(r, words[0], type, given)
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


def _compared(r: Registers, name: str, type: str, given: Sequence[Argument]) -> str | None:
    """A comparison of two operands; halves are compared as floats."""
    if type in ("f16", "bf16"):
        left, right = (f"(float){r.value(each, type)}" for each in given[:2])
        return comparison(name, "f32", left, right)
    return comparison(name, type, r.value(given[0], type), r.value(given[1], type))


def _setp_of_two(r: Registers, one: Instruction, words: list[str], type: str) -> str:
    """`setp.CMP.f16x2 p|q, a, b`: a predicate for each half."""
    to, a, b = take(one, 3)
    if len(to.parts) != 2 or len(words) != 1 or one.parts[0] != "setp":
        raise NotTranslated(f"{one.name} is not translated")
    lines, names = "", [r.fresh(), r.fresh()]
    for name, part in zip(names, "xy", strict=True):
        pair = (f"(float){r.value(each, type)}.{part}" for each in (a, b))
        text = comparison(words[0], "f32", *pair)
        if text is None:
            raise NotTranslated(f"{one.name} is not translated")
        lines += f"bool {name} = {text};"
    return lines + "".join(
        r.assign(target, "pred", name) for target, name in zip(to.parts, names, strict=True)
    )


def _slct(r: Registers, one: Instruction) -> str:
    to, a, b, c = take(one, 4)
    type, by = one.parts[-2:]
    return r.assign(to, type, f"({r.value(c, by)} >= 0 ? {r.value(a, type)} : {r.value(b, type)})")


# --- warps ---------------------------------------------------------------------------------------

_SHUFFLES = {"up": "_up", "down": "_down", "bfly": "_xor", "idx": ""}


def _shfl(r: Registers, one: Instruction) -> str:
    to, given, by, packed, mask = take(one, 5)
    kind = one.parts[2] if one.parts[1] == "sync" and len(one.parts) == 4 else ""
    if kind not in _SHUFFLES:
        raise NotTranslated(f"{one.name}, which newer devices lack, is not translated")
    targets = to.parts or (to,)
    name, lane = r.fresh(), r.fresh()
    lines = f"unsigned int {lane} = {r.value(by, 'u32')} & 31u;"
    width = _width(packed.text, kind)
    if width is not None:
        lines += (
            f"unsigned int {name} = __shfl{_SHUFFLES[kind]}_sync({r.value(mask, 'u32')}, "
            f"{r.value(given, 'b32')}, {lane}, {width});"
        )
        place = f"({LANE} & {width - 1}u)"
        inside = {
            "up": f"{place} >= {lane}", "down": f"{place} + {lane} < {width}u",
            "bfly": f"({place} ^ {lane}) < {width}u", "idx": "true",
        }[kind]  # fmt: skip
    else:  # the lanes of segments, and how far they reach
        segment, most, at, inside = (r.fresh() for _ in range(4))
        own, clamp = f"(int){LANE}", r.value(packed, "u32")
        lines += (
            f"unsigned int {segment} = {clamp} >> 8 & 31u;"
            f"int {most} = ({own} & (int){segment}) | (int)({clamp} & 31u & ~{segment});"
        )
        source = {
            "up": f"{own} - (int){lane}", "down": f"{own} + (int){lane}",
            "bfly": f"{own} ^ (int){lane}",
            "idx": f"({own} & (int){segment}) | (int)({lane} & ~{segment})",
        }[kind]  # fmt: skip
        lines += (
            f"int {at} = {source}; bool {inside} = {at} {'>=' if kind == 'up' else '<='} {most};"
            f"unsigned int {name} = __shfl_sync({r.value(mask, 'u32')}, {r.value(given, 'b32')}, "
            f"{inside} ? {at} : {own});"
        )
    if len(targets) == 2:
        lines += r.assign(targets[1], "pred", inside)
    return lines + r.assign(targets[0], "b32", name)


def _width(text: str, kind: str) -> int | None:
    """The width of a shuffle in C++ by the operand of PTX; None if it has none."""
    if re.fullmatch(r"\d+|0[xX][\da-fA-F]+", text) is None:
        return None
    value = int(text, 0)
    width = 32 - (value >> 8 & 31)
    return None if value & 31 != (0 if kind == "up" else 31) or width & (width - 1) else width


def _vote(r: Registers, one: Instruction) -> str:
    if one.parts[1] != "sync":
        raise NotTranslated(f"{one.name}, which newer devices lack, is not translated")
    to, given, mask = take(one, 3)
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
    to, given, mask = take(one, 3)
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
    to, given, mask = take(one, 3)
    op, type = one.parts[2], one.parts[-1]
    if one.parts[1] != "sync" or type not in ("u32", "s32", "b32"):
        raise NotTranslated(f"{one.name} is not translated")
    call = f"__reduce_{op}_sync({r.value(mask, 'u32')}, {r.value(given, type)})"
    return r.assign(to, type, call)


def _elect(r: Registers, one: Instruction) -> str:
    to, mask = take(one, 2)
    targets = to.parts or (to,)
    first = f"(unsigned int)(__ffs((int){r.value(mask, 'u32')}) - 1)"
    lines = r.assign(targets[0], "u32", first)
    if len(targets) == 2:
        lines += r.assign(targets[1], "pred", f"{LANE} == {first}")
    return lines


def _activemask(r: Registers, one: Instruction) -> str:
    return r.assign(take(one, 1)[0], "u32", "__activemask()")


# --- addresses ---------------------------------------------------------------------------------


def _isspacep(r: Registers, one: Instruction) -> str:
    to, given = take(one, 2)
    space = one.parts[1].split("::")[0]
    known = {"global": "Global", "shared": "Shared", "local": "Local", "const": "Constant"}
    if space not in known:
        raise NotTranslated(f"{one.name} is not translated")
    return r.assign(to, "pred", f"__is{known[space]}({r.pointer(given)}) != 0")


def _mapa(r: Registers, one: Instruction) -> str:
    """The same address in a block of the cluster, which has one block."""
    to, given, rank = take(one, 3)
    lines = f"if ({r.value(rank, 'u32')} != 0u) __trap();"
    if r.kind(to) == r.kind(given) == "address":
        return lines + f"{r.pointer(to)} = {r.pointer(given)};"
    return lines + r.assign(to, "u32", r.value(given, "u32"))


def _getctarank(r: Registers, one: Instruction) -> str:
    return r.assign(take(one, 2)[0], "u32", "0u")


# --- barriers ------------------------------------------------------------------------------------


def _barrier(r: Registers, one: Instruction) -> str | None:
    words = [w for w in one.parts[1:] if w not in ("cta", "aligned")]
    if words[:1] == ["cluster"]:  # of one block, which meets where it waits
        return "__syncthreads();" if words[1] == "wait" else ""
    if words[:1] == ["arrive"]:
        raise NotTranslated(
            f"{one.name} arrives where others wait, which only CUDA has: use an mbarrier"
        )
    if words[:2] == ["warp", "sync"]:
        return f"__syncwarp({r.value(take(one, 1)[0], 'u32')});"
    if words[:1] == ["red"]:
        to, number, *rest = take(one, 3)
        if number.text == "0":
            kind = {"popc": "count", "and": "and", "or": "or"}.get(words[1])
            call = f"__syncthreads_{kind}({r.value(rest[-1], 'pred')})"
            if words[-1] == "u32":
                return r.assign(to, "u32", call)
            return r.assign(to, "pred", f"{call} != 0")
    if words != ["sync"]:
        raise NotTranslated(f"{one.name} is not translated")
    number, *threads = take(one, 1, 2)
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


WITHOUT_EFFECT = frozenset({
    "prefetch", "prefetchu", "discard", "applypriority", "createpolicy", "griddepcontrol",
    "pmevent", "setmaxnreg",
})  # fmt: skip
HANDLERS: dict[str, Callable[[Registers, Instruction], str | None]] = {
    "lop3": _lop3,
    "mov": _mov,
    **dict.fromkeys(("add", "sub"), _arithmetic),
    **dict.fromkeys(("mul", "fma"), _of_two_floats),
    **dict.fromkeys(("mad", "addc", "subc", "madc"), _sum),
    **dict.fromkeys(
        (
            f"v{name}{lanes}"
            for name in ("add", "sub", "absdiff", "min", "max", "set", "avrg")
            for lanes in ("", "2", "4")
        ),
        video,
    ),
    **dict.fromkeys(("vshl", "vshr", "vmad"), video),
    **dict.fromkeys(("setp", "set"), _setp),
    "slct": _slct,
    "cvt": cvt,
    "cvta": cvta,
    **dict.fromkeys(("ld", "ldu"), load),
    "st": store,
    **dict.fromkeys(("atom", "red"), atomic),
    "cp": copy,
    "mbarrier": mbarrier,
    **dict.fromkeys(("ldmatrix", "stmatrix"), matrices),
    "movmatrix": movmatrix,
    "mma": mma,
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
    "activemask": _activemask,
    "isspacep": _isspacep,
    "mapa": _mapa,
    "getctarank": _getctarank,
    **dict.fromkeys(("bar", "barrier"), _barrier),
    **dict.fromkeys(("membar", "fence"), _fence),
    **dict.fromkeys(("exit", "ret"), lambda r, one: "__treadle_exit();"),
    "trap": lambda r, one: "__trap();",
    "brkpt": lambda r, one: "__brkpt();",
    "nanosleep": lambda r, one: f"__nanosleep({r.value(take(one, 1)[0], 'u32')});",
}
