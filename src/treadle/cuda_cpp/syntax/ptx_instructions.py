"""Instructions of PTX that are more than a formula: memory, warps, barriers, products of matrices.

Each function returns the C++ statements of an instruction, with the registers in scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from treadle.cuda_cpp.syntax.ptx_conversions import cvt, cvta
from treadle.cuda_cpp.syntax.ptx_formulas import CPP_TYPES, comparison, formula, lookup
from treadle.cuda_cpp.syntax.ptx_matrices import matrices, mma, movmatrix
from treadle.cuda_cpp.syntax.ptx_memory import atomic, copy, load, mbarrier, store
from treadle.cuda_cpp.syntax.ptx_text import (
    LANE,
    Instruction,
    NotTranslated,
    Registers,
    take,
)


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


# --- bits and carries ----------------------------------------------------------------------------


def _lop3(r: Registers, one: Instruction) -> str:
    to, a, b, c, table = take(one, 5)
    found = re.fullmatch(r"(\d+|0[xX][0-9a-fA-F]+)U?", table.text)
    if found is None or one.parts[1:] != ("b32",):
        raise NotTranslated("lop3 with a table that is not a number in the text is not translated")
    names = [r.value(each, "b32") for each in (a, b, c)]
    return r.assign(to, "b32", lookup(int(found[1], 0), names))


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
    to, *given = take(one, 4)
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
    to, *given = take(one, 3, 4)
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
    to, a, b, c = take(one, 4)
    type, by = one.parts[-2:]
    return r.assign(to, type, f"({r.value(c, by)} >= 0 ? {r.value(a, type)} : {r.value(b, type)})")


# --- warps ---------------------------------------------------------------------------------------

_SHUFFLES = {"up": "_up", "down": "_down", "bfly": "_xor", "idx": ""}


def _shfl(r: Registers, one: Instruction) -> str:
    to, given, by, packed, mask = take(one, 5)
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


# --- barriers ------------------------------------------------------------------------------------


def _barrier(r: Registers, one: Instruction) -> str | None:
    words = [w for w in one.parts[1:] if w not in ("cta", "aligned")]
    if words[:1] == ["cluster"]:
        return None
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
    **dict.fromkeys(("bar", "barrier"), _barrier),
    **dict.fromkeys(("membar", "fence"), _fence),
    **dict.fromkeys(("exit", "ret"), lambda r, one: "__treadle_exit();"),
    "trap": lambda r, one: "__trap();",
    "brkpt": lambda r, one: "__brkpt();",
    "nanosleep": lambda r, one: f"__nanosleep({r.value(take(one, 1)[0], 'u32')});",
}
