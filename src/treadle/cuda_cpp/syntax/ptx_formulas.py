"""PTX instructions that compute a value from values: a table of what each computes, as C++.

In a formula {0}, {1}, … are the operands, {T}, {U} and {W} the C++ types of the instruction's type,
of the unsigned integer of its size, and of the integer of twice its size; {N} is the number of
bits, {L} one less. The letters after a formula say what type each operand and the result has: T, U
or W, `u` for u32, `p` for a predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# The C++ types of PTX's types. Floats of 16 bits are converted by names of their own.
CPP_TYPES = {
    "u8": "unsigned char", "s8": "signed char", "b8": "unsigned char",
    "u16": "unsigned short", "s16": "short", "b16": "unsigned short",
    "u32": "unsigned int", "s32": "int", "b32": "unsigned int",
    "u64": "unsigned long long", "s64": "long long", "b64": "unsigned long long",
    "f16": "__half", "bf16": "__nv_bfloat16", "f16x2": "__half2", "bf16x2": "__nv_bfloat162",
    "tf32": "unsigned int", "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip
_BITS = {name: int(name[1:]) for name in CPP_TYPES if name[0] in "usb" and name[1:].isdigit()}


@dataclass(frozen=True, slots=True)
class Formula:
    """`operands` and `result` are letters of types, as the module says."""

    text: str
    operands: str
    result: str

    def types(self, type: str) -> tuple[list[str], str]:
        """The PTX types of the operands and of the result for an instruction's type."""
        return [_lettered(letter, type) for letter in self.operands], _lettered(self.result, type)

    def filled(self, type: str, operands: list[str]) -> str:
        """The C++ text."""
        names = {
            letter: CPP_TYPES[_lettered(letter, type)] for letter in "TUW" if letter in self.text
        }
        return self.text.format(*operands, **names, N=_BITS.get(type, 0), L=_BITS.get(type, 0) - 1)


def _lettered(letter: str, type: str) -> str:
    match letter:
        case "U":
            return f"u{_BITS[type]}"
        case "W":
            return f"{'s' if type[0] == 's' else 'u'}{2 * _BITS[type]}"
        case "u":
            return "u32"
        case "p":
            return "pred"
    return type


_16, _32, _64 = "u16 s16 b16", "u32 s32 b32", "u64 s64 b64"
_UNSIGNED, _SIGNED, _SETS = "u16 u32 u64", "s16 s32 s64", "b16 b32 b64"
_INTEGERS = f"{_16} {_32} {_64}"
_HALVES, _PAIRS = "f16 bf16", "f16x2 bf16x2"
_ALL = f"{_INTEGERS} f16 bf16 f16x2 bf16x2 f32 f64"
_LENGTH, _PLACE = "({2} & 255u)", "({1} & 255u)"
_END = f"({_PLACE} + {_LENGTH} > {{N}}u ? {{N}}u : {_PLACE} + {_LENGTH})"
_MASK = "(({3} & 255u) >= {N}u ? ~({U})0 : (({U})1 << ({3} & 255u)) - 1u)"
_NARROW = {
    ("u32", 8): "unsigned char",
    ("s32", 8): "signed char",
    ("u32", 16): "unsigned short",
    ("s32", 16): "short",
}
_EXTENDED = {"clamp": "{1}", "wrap": "({1} & 31u)"}
_HIGH_24 = {  # bits 16 to 47 of a product of 24 bits
    "u32": "(long long)({0} & 0xffffffu) * ({1} & 0xffffffu) >> 16",
    "s32": "(long long)((int)({0} << 8) >> 8) * ((int)({1} << 8) >> 8) >> 16",
}
_FINITE_32 = "(__float_as_uint({0}) >> 23 & 255u)"
_FINITE_64 = "((unsigned long long)__double_as_longlong({0}) >> 52 & 2047ull)"
_SELECTED = "__byte_perm({0}, {1}, {2} & 0x7777u)"
# What a mode of prmt selects, by the last two bits of its last operand.
_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}  # fmt: skip

# Instruction without its type; types; formula; types of the operands; of the result.
_ROWS: tuple[tuple[str, str, str, str, str], ...] = (
    ("add", _INTEGERS, "{0} + {1}", "UU", "U"),
    ("sub", _INTEGERS, "{0} - {1}", "UU", "U"),
    ("add.sat", "s32", "__treadle_add_saturated({0}, {1})", "TT", "T"),
    ("sub.sat", "s32", "__treadle_subtract_saturated({0}, {1})", "TT", "T"),
    ("mul.lo", _INTEGERS, "{0} * {1}", "UU", "U"),
    ("mad.lo", _INTEGERS, "{0} * {1} + {2}", "UUU", "U"),
    ("mul.wide", "u16 s16 u32 s32", "({W}){0} * ({W}){1}", "TT", "W"),
    ("mad.wide", "u16 s16 u32 s32", "({W}){0} * ({W}){1} + {2}", "TTW", "W"),
    ("mul.hi", "u16 s16", "(({W}){0} * ({W}){1}) >> 16", "TT", "T"),
    ("mul.hi", "u32", "__umulhi({0}, {1})", "TT", "T"),
    ("mul.hi", "s32", "__mulhi({0}, {1})", "TT", "T"),
    ("mul.hi", "u64", "__umul64hi({0}, {1})", "TT", "T"),
    ("mul.hi", "s64", "__mul64hi({0}, {1})", "TT", "T"),
    ("mad.hi", "u32", "__umulhi({0}, {1}) + {2}", "TTU", "U"),
    ("mad.hi", "s32", "(unsigned int)__mulhi({0}, {1}) + {2}", "TTU", "U"),
    ("mad.hi", "u64", "__umul64hi({0}, {1}) + {2}", "TTU", "U"),
    ("mad.hi", "s64", "(unsigned long long)__mul64hi({0}, {1}) + {2}", "TTU", "U"),
    ("mul24.lo", "u32", "__umul24({0}, {1})", "TT", "T"),
    ("mul24.lo", "s32", "__mul24({0}, {1})", "TT", "T"),
    ("mad24.lo", "u32", "__umul24({0}, {1}) + {2}", "TTU", "U"),
    ("mad24.lo", "s32", "(unsigned int)__mul24({0}, {1}) + {2}", "TTU", "U"),
    ("mul24.hi", "u32", f"(unsigned int)({_HIGH_24['u32']})", "uu", "u"),
    ("mul24.hi", "s32", f"(int)({_HIGH_24['s32']})", "uu", "T"),
    *(("mad24.hi", type, f"(unsigned int)({text}) + {{2}}", "uuu", "u")
      for type, text in _HIGH_24.items()),
    ("mad24.hi.sat", "s32", f"__treadle_add_saturated((int)({_HIGH_24['s32']}), (int){{2}})", "uuu",
     "T"),
    ("mad.hi.sat", "s32", "__treadle_add_saturated(__mulhi({0}, {1}), {2})", "TTT", "T"),
    ("sad", "u16 u32 u64", "({0} < {1} ? {1} - {0} : {0} - {1}) + {2}", "TTT", "T"),
    ("sad", "s16 s32 s64", "({0} < {1} ? {1} - ({U}){0} : {0} - ({U}){1}) + {2}", "TTU", "U"),
    ("div", f"{_UNSIGNED} {_SIGNED}", "{0} / {1}", "TT", "T"),
    ("rem", f"{_UNSIGNED} {_SIGNED}", "{0} % {1}", "TT", "T"),
    ("abs", _SIGNED, "({0} < 0 ? ({U})0 - ({U}){0} : ({U}){0})", "T", "U"),
    ("neg", _SIGNED, "({U})0 - {0}", "U", "U"),
    ("min", f"{_UNSIGNED} {_SIGNED}", "({0} < {1} ? {0} : {1})", "TT", "T"),
    ("max", f"{_UNSIGNED} {_SIGNED}", "({0} > {1} ? {0} : {1})", "TT", "T"),
    ("and", _SETS, "{0} & {1}", "TT", "T"),
    ("or", _SETS, "{0} | {1}", "TT", "T"),
    ("xor", _SETS, "{0} ^ {1}", "TT", "T"),
    ("not", _SETS, "~{0}", "T", "T"),
    ("cnot", _SETS, "({0} == 0u ? 1u : 0u)", "T", "T"),
    ("and", "pred", "({0} && {1})", "TT", "T"),
    ("or", "pred", "({0} || {1})", "TT", "T"),
    ("xor", "pred", "{0} != {1}", "TT", "T"),
    ("not", "pred", "!{0}", "T", "T"),
    ("mov", f"{_ALL} pred", "{0}", "T", "T"),
    ("selp", _ALL, "({2} ? {0} : {1})", "TTp", "T"),
    ("shl", _SETS, "({1} > {L}u ? ({U})0 : {0} << {1})", "Tu", "T"),
    ("shr", f"{_UNSIGNED} {_SETS}", "({1} > {L}u ? ({U})0 : {0} >> {1})", "Tu", "T"),
    ("shr", _SIGNED, "{0} >> ({1} > {L}u ? {L}u : {1})", "Tu", "T"),
    ("shf.l.wrap", "b32", "__funnelshift_l({0}, {1}, {2})", "TTT", "T"),
    ("shf.l.clamp", "b32", "__funnelshift_lc({0}, {1}, {2})", "TTT", "T"),
    ("shf.r.wrap", "b32", "__funnelshift_r({0}, {1}, {2})", "TTT", "T"),
    ("shf.r.clamp", "b32", "__funnelshift_rc({0}, {1}, {2})", "TTT", "T"),
    ("popc", "b32", "(unsigned int)__popc({0})", "T", "u"),
    ("popc", "b64", "(unsigned int)__popcll({0})", "T", "u"),
    ("clz", "b32", "(unsigned int)__clz((int){0})", "T", "u"),
    ("clz", "b64", "(unsigned int)__clzll((long long){0})", "T", "u"),
    ("brev", "b32", "__brev({0})", "T", "T"),
    ("brev", "b64", "__brevll({0})", "T", "T"),
    ("bfind", "u32", "(unsigned int)(31 - __clz((int){0}))", "T", "u"),
    ("bfind", "s32", "(unsigned int)(31 - __clz({0} ^ ({0} >> 31)))", "T", "u"),
    ("bfind", "u64", "(unsigned int)(63 - __clzll((long long){0}))", "T", "u"),
    ("bfind", "s64", "(unsigned int)(63 - __clzll({0} ^ ({0} >> 63)))", "T", "u"),
    ("bfind.shiftamt", "u32", "({0} == 0u ? ~0u : (unsigned int)__clz((int){0}))", "T", "u"),
    ("bfind.shiftamt", "s32", "({0} == 0 || {0} == -1 ? ~0u : (unsigned int)__clz({0} ^ ({0} >> "
     "31)))", "T", "u"),
    ("bfind.shiftamt", "u64", "({0} == 0ull ? ~0u : (unsigned int)__clzll((long long){0}))", "T",
     "u"),
    ("bfind.shiftamt", "s64", "({0} == 0ll || {0} == -1ll ? ~0u : (unsigned int)__clzll({0} ^ ({0} "
     ">> 63)))", "T", "u"),
    *((f"szext.{mode}", "u32", f"({by} > 31u ? {{0}} : {{0}} & ((1u << ({by} & 31u)) - 1u))", "uu",
       "u") for mode, by in _EXTENDED.items()),
    *((f"szext.{mode}", "s32", f"({by} == 0u ? 0 : {by} > 31u ? (int){{0}} : (int)({{0}} << (32u - "
       f"{by})) >> (32u - {by}))", "uu", "T") for mode, by in _EXTENDED.items()),
    ("bfe", "u32 u64", f"({_PLACE} > {{L}}u || {_LENGTH} == 0u ? ({{U}})0 : {_LENGTH} > {{L}}u ? "
     f"{{0}} >> {_PLACE} : ({{0}} >> {_PLACE}) & ((({{U}})1 << {_LENGTH}) - 1u))", "Tuu", "T"),
    ("bfe", "s32 s64", f"({_LENGTH} == 0u ? ({{T}})0 : {_PLACE} > {{L}}u ? {{0}} >> {{L}} : "
     f"({{T}})(({{U}}){{0}} << ({{N}}u - {_END})) >> ({{N}}u - {_END} + {_PLACE}))", "Tuu", "T"),
    ("bfi", "b32 b64", f"(({{2}} & 255u) > {{L}}u ? {{1}} : ({{1}} & ~({_MASK} << ({{2}} & 255u)))"
     f" | (({{0}} & {_MASK}) << ({{2}} & 255u)))", "TTuu", "T"),
    # A selector with its highest bit set repeats the sign of the byte.
    ("prmt", "b32", " | ".join(
        f"(({{2}} >> {4 * at + 3} & 1u) ? ({_SELECTED} >> {8 * at + 7} & 1u) * {0xFF << 8 * at}u "
        f": {_SELECTED} & {0xFF << 8 * at}u)"
        for at in range(4)
    ), "TTT", "T"),
    *((f"prmt.{mode}", "b32", "__byte_perm({0}, {1}, ({2} & 3u) == 0u ? "
       f"{a}u : ({{2}} & 3u) == 1u ? {b}u : ({{2}} & 3u) == 2u ? {c}u : {d}u)", "TTT", "T")
      for mode, (a, b, c, d) in _MODES.items()),
    ("dp4a.u32", "u32", "__dp4a({0}, {1}, {2})", "TTT", "T"),
    ("dp4a.s32", "s32", "__dp4a({0}, {1}, {2})", "TTT", "T"),
    *((f"dp4a.{a}", b, " + ".join(["{2}", *(
        f"(unsigned int)(({_NARROW[a, 8]})({{0}} >> {at}u) * ({_NARROW[b, 8]})({{1}} >> {at}u))"
        for at in (0, 8, 16, 24)
      )]), "uuu", "u") for a, b in (("u32", "s32"), ("s32", "u32"))),
    *((f"dp2a.{half}.{a}", b, " + ".join(["{2}", *(
        f"(unsigned int)(({_NARROW[a, 16]})({{0}} >> {16 * at}u) * ({_NARROW[b, 8]})({{1}} >> "
        f"{8 * at + start}u))" for at in (0, 1)
      )]), "uuu", "u")
      for half, start in (("lo", 0), ("hi", 16)) for a in ("u32", "s32") for b in ("u32", "s32")),
    *((f"{name}", f"{letter}16x2", f"__v{function}2({{0}}, {{1}})", "uu", "u")
      for letter in "us"
      for name, function in (("add", "add"), ("min", f"min{letter}"), ("max", f"max{letter}"))),
    *((f"{name}.relu", "s32", f"max({name}({{0}}, {{1}}), 0)", "TT", "T")
      for name in ("min", "max")),
    ("fns", "b32", "__fns({0}, {1}, (int){2})", "TTT", "T"),
    ("bmsk.clamp", "b32", "({0} > 31u ? 0u : ({1} > 31u ? ~0u : (1u << {1}) - 1u) << {0})", "TT",
     "T"),
    ("bmsk.wrap", "b32", "((1u << ({1} & 31u)) - 1u) << ({0} & 31u)", "TT", "T"),
    # Four or two numbers in a word; the third operand would be the others of a mask.
    *((f"v{name}{lanes}.{type}.{type}", f"{type}{ending}", f"__v{function}{lanes}({{0}}, {{1}})",
       "uuu", "u")
      for lanes in (2, 4)
      for type, letter in (("u32", "u"), ("s32", "s"))
      for name, ending, function in (
        ("add", "", "add"), ("sub", "", "sub"), ("add", ".sat", f"add{letter}s"),
        ("sub", ".sat", f"sub{letter}s"), ("min", "", f"min{letter}"),
        ("max", "", f"max{letter}"), ("avrg", "", f"avg{letter}"),
    )),
    *((f"vabsdiff{lanes}.{type}.{type}", f"u32{ending}", text, "uuu", "u")
      for lanes in (2, 4)
      for type, letter in (("u32", "u"), ("s32", "s"))
      for ending, text in (
        ("", f"__vabsdiff{letter}{lanes}({{0}}, {{1}})"),
        (".add", f"__vsad{letter}{lanes}({{0}}, {{1}}) + {{2}}"),
    )),
    # floating-point numbers
    ("add", "f32 f64", "{0} + {1}", "TT", "T"),
    ("sub", "f32 f64", "{0} - {1}", "TT", "T"),
    ("mul", "f32 f64", "{0} * {1}", "TT", "T"),
    ("div.full", "f32", "{0} / {1}", "TT", "T"),
    ("div.approx", "f32", "__fdividef({0}, {1})", "TT", "T"),
    ("rcp.approx", "f32", "1.0f / {0}", "T", "T"),
    ("rcp.approx", "f64", "1.0 / {0}", "T", "T"),
    ("sqrt.approx", "f32", "sqrtf({0})", "T", "T"),
    ("rsqrt.approx", "f32", "rsqrtf({0})", "T", "T"),
    ("rsqrt.approx", "f64", "rsqrt({0})", "T", "T"),
    ("sin.approx", "f32", "__sinf({0})", "T", "T"),
    ("cos.approx", "f32", "__cosf({0})", "T", "T"),
    ("lg2.approx", "f32", "__log2f({0})", "T", "T"),
    ("ex2.approx", "f32", "exp2f({0})", "T", "T"),
    ("tanh.approx", "f32", "tanhf({0})", "T", "T"),
    ("neg", "f32 f64", "-{0}", "T", "T"),
    ("abs", "f32", "fabsf({0})", "T", "T"),
    ("abs", "f64", "fabs({0})", "T", "T"),
    ("min", "f32", "fminf({0}, {1})", "TT", "T"),
    ("max", "f32", "fmaxf({0}, {1})", "TT", "T"),
    ("min", "f64", "fmin({0}, {1})", "TT", "T"),
    ("max", "f64", "fmax({0}, {1})", "TT", "T"),
    ("copysign", "f32", "copysignf({1}, {0})", "TT", "T"),
    ("copysign", "f64", "copysign({1}, {0})", "TT", "T"),
    *((f"testp.{kind}", "f32 f64", text, "T", "p") for kind, text in (
        ("finite", "isfinite({0})"), ("infinite", "isinf({0})"), ("number", "!isnan({0})"),
        ("notanumber", "isnan({0})"),
    )),
    *((f"testp.{kind}", type, text, "T", "p")
      for type, exponent, most, zero in (("f32", _FINITE_32, "255u", "0.0f"),
                                         ("f64", _FINITE_64, "2047ull", "0.0"))
      for kind, text in (
        ("normal", f"{exponent} != 0 && {exponent} != {most}"),
        ("subnormal", f"{exponent} == 0 && " + (
          "(__float_as_uint({0}) & 0x7fffffu) != 0u" if type == "f32" else
          "((unsigned long long)__double_as_longlong({0}) & 0xfffffffffffffull) != 0ull"
        )),
      )),
    *((f"{name}.NaN", "f32", f"(isnan({{0}}) || isnan({{1}}) ? __uint_as_float(0x7fffffffu) : "
       f"f{name}f({{0}}, {{1}}))", "TT", "T") for name in ("min", "max")),
    *((f"{name}.xorsign.abs", "f32", f"copysignf(f{name}f(fabsf({{0}}), fabsf({{1}})), "
       "__uint_as_float(__float_as_uint({0}) ^ __float_as_uint({1})))", "TT", "T")
      for name in ("min", "max")),
    *((name, types, f"{function}{ending}({operands})", letters, "T")
      for types, ending in ((_HALVES, ""), (_PAIRS, "2"))
      for name, function, operands, letters in (
        ("add", "__hadd", "{0}, {1}", "TT"), ("add.rn", "__hadd", "{0}, {1}", "TT"),
        ("sub", "__hsub", "{0}, {1}", "TT"), ("sub.rn", "__hsub", "{0}, {1}", "TT"),
        ("mul", "__hmul", "{0}, {1}", "TT"), ("mul.rn", "__hmul", "{0}, {1}", "TT"),
        ("fma.rn", "__hfma", "{0}, {1}, {2}", "TTT"), ("neg", "__hneg", "{0}", "T"),
        ("abs", "__habs", "{0}", "T"), ("min", "__hmin", "{0}, {1}", "TT"),
        ("max", "__hmax", "{0}, {1}", "TT"),
    )),
    *((f"{name}{ending}", types, text.format(f"{function}{pair}({operands})"), letters, "T")
      for types, pair in ((_HALVES, ""), (_PAIRS, "2"))
      for name, function, operands, letters in (
        ("add", "__hadd", "{0}, {1}", "TT"), ("add.rn", "__hadd", "{0}, {1}", "TT"),
        ("sub", "__hsub", "{0}, {1}", "TT"), ("sub.rn", "__hsub", "{0}, {1}", "TT"),
        ("mul", "__hmul", "{0}, {1}", "TT"), ("mul.rn", "__hmul", "{0}, {1}", "TT"),
        ("fma.rn", "__hfma", "{0}, {1}, {2}", "TTT"),
      )
      for ending, text in ((".sat", "__treadle_saturated({})"), (".relu", "__treadle_relu({})"))),
    *((f"{name}.NaN", types, f"__treadle_{name}_nan({{0}}, {{1}})", "TT", "T")
      for types in (_HALVES, _PAIRS) for name in ("min", "max")),
    ("ex2.approx", _HALVES, "({T})exp2f((float){0})", "T", "T"),
    ("tanh.approx", _HALVES, "({T})tanhf((float){0})", "T", "T"),
    ("ex2.approx", _PAIRS, "__treadle_exp2({0})", "T", "T"),
    ("tanh.approx", _PAIRS, "__treadle_tanh({0})", "T", "T"),
)  # fmt: skip
_ROUNDED = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}  # PTX's names, and those of CUDA


def _rounded() -> Iterator[tuple[str, str, str, str, str]]:
    """Arithmetic with a direction of rounding."""
    for mode, ending in _ROUNDED.items():
        for type, letter in (("f32", "f"), ("f64", "d")):
            for name, function in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("div", "div")):
                text = f"__{letter}{function}_{ending}({{0}}, {{1}})"
                yield f"{name}.{mode}", type, text, "TT", "T"
            for name in ("rcp", "sqrt"):
                yield f"{name}.{mode}", type, f"__{letter}{name}_{ending}({{0}})", "T", "T"
            fused = f"__fma{'f' if letter == 'f' else ''}_{ending}({{0}}, {{1}}, {{2}})"
            yield f"fma.{mode}", type, fused, "TTT", "T"
            yield f"mad.{mode}", type, fused, "TTT", "T"


def _table() -> dict[str, Formula]:
    found: dict[str, Formula] = {}
    for name, types, text, operands, result in (*_ROWS, *_rounded()):
        for type in types.split():
            found[f"{name}.{type}"] = Formula(text, operands, result)
    return found


FORMULAS: Mapping[str, Formula] = _table()


def formula(parts: list[str]) -> tuple[Formula, str, str] | None:
    """The formula of an instruction, its type, and text around its result; None if there is none.

    `.ftz` is left out: whether numbers below the smallest normal one are zero is up to devices.
    """
    kept = [part for part in parts if part != "ftz"]
    around = "{}"
    if "sat" in kept and kept[-1] == "f32":
        kept.remove("sat")
        around = "__saturatef({})"
    if kept[0] == "prmt":  # whose mode follows its type
        kept = [kept[0], *kept[2:], kept[1]] if len(kept) > 1 else kept
    found = FORMULAS.get(".".join(kept))
    if found is None:
        return None
    type = kept[-1] if kept[-1] in CPP_TYPES else "u32"
    return found, type, around


def lookup(table: int, operands: list[str]) -> str:
    """`lop3`: the bits for which the table has a 1."""
    terms = []
    for at in range(8):
        if table >> at & 1:
            bits = [at >> 2 & 1, at >> 1 & 1, at & 1]
            pairs = zip(bits, operands[:3], strict=True)
            terms.append(" & ".join(one if bit else f"~{one}" for bit, one in pairs))
    return " | ".join(f"({term})" for term in terms) or "0u"


# --- comparisons ---------------------------------------------------------------------------------

_ORDERED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED_ORDER = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPPOSITE = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}


def comparison(name: str, type: str, left: str, right: str) -> str | None:
    """The text of a comparison of setp or set; None if there is none of this name."""
    if type[0] not in "f":
        name = _UNSIGNED_ORDER.get(name, name) if type[0] in "ub" else name
        op = _ORDERED.get(name) or {"ne": "!="}.get(name)
        return None if op is None else f"({left} {op} {right})"
    if name in _ORDERED:
        return f"({left} {_ORDERED[name]} {right})"
    match name:
        case "ne":  # and neither is NaN
            return f"({left} < {right} || {left} > {right})"
        case "neu":
            return f"!({left} == {right})"
        case "equ":
            return f"!({left} < {right} || {left} > {right})"
        case "num":
            return f"({left} == {left} && {right} == {right})"
        case "nan":
            return f"!({left} == {left} && {right} == {right})"
    if name in _OPPOSITE:
        return f"!({left} {_ORDERED[_OPPOSITE[name]]} {right})"
    return None
