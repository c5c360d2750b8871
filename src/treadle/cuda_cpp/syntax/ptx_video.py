"""PTX's video instructions: `vadd`, `vmin`, `vshl`, `vmad`, `vset` of words or of parts of words,
with a second operation or merged into a word; `vadd2`, `vadd4` and kin of two or four numbers.

Whole numbers are computed in 64 bits, which hold all of PTX's 34.
"""

from __future__ import annotations

from treadle.cuda_cpp.syntax.ptx_text import (
    Argument,
    Instruction,
    NotTranslated,
    Registers,
    take,
)

_BINARY = {
    "vadd": "{0} + {1}", "vsub": "{0} - {1}",
    "vabsdiff": "({0} < {1} ? {1} - {0} : {0} - {1})",
    "vmin": "({0} < {1} ? {0} : {1})", "vmax": "({0} > {1} ? {0} : {1})",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_TYPES = ("u32", "s32")
_SECOND = {"add": "{0} + {1}", "min": "({0} < {1} ? {0} : {1})", "max": "({0} > {1} ? {0} : {1})"}
# The parts of a word: the first bit, and the number of bits.
_PARTS = {**{f"b{at}": (8 * at, 8) for at in range(4)}, "h0": (0, 16), "h1": (16, 16)}


def video(r: Registers, one: Instruction) -> str | None:
    """The statements of a video instruction; None if a formula is to say it."""
    base, words = one.parts[0], list(one.parts[1:])
    lanes = int(base[-1]) if base[-1] in "24" else 0
    name = base.rstrip("24")
    if name == "vset":
        types, rest = ["u32", *words[:2]], words[2:]
    else:
        types, rest = words[:3], words[3:]
    if len(types) != 3 or any(type not in _TYPES for type in types):
        raise NotTranslated(f"{one.name} is not translated")
    if lanes:
        return _simd(r, one, name, lanes, types, rest)
    if name == "vmad":
        return _vmad(r, one, types, rest)
    second = rest.pop() if rest and rest[-1] in _SECOND else ""
    to, *given = take(one, 3, 4)
    target, part = _selected(to)
    if bool(second or part) != (len(given) == 3) or (second and part):
        raise NotTranslated(f"{one.name} takes {4 if second or part else 3} operands")
    a, b = (_extended(r, arg, type) for arg, type in zip(given, types[1:], strict=False))
    text = _computed(one, name, rest, a, b)
    made = r.fresh()
    lines = f"long long {made} = {text};"
    if "sat" in rest:
        bits = _PARTS[part][1] if part else 32
        lines += f"{made} = {_limited(made, types[0], bits)};"
    return lines + _finished(r, target, part, second, made, types[0], given[-1])


def _computed(one: Instruction, name: str, rest: list[str], a: str, b: str) -> str:
    """What two whole numbers become."""
    modes = [word for word in rest if word != "sat"]
    if name in _BINARY and not modes:
        return _BINARY[name].format(a, b)
    if name == "vset" and len(modes) == 1 and modes[0] in _COMPARISONS:
        return f"({a} {_COMPARISONS[modes[0]]} {b} ? 1ll : 0ll)"
    if name in ("vshl", "vshr") and modes in (["clamp"], ["wrap"]):
        # Of shifts by more than 32 bits, those by 32 are what they do.
        by = f"({b} & 31ll)" if modes == ["wrap"] else f"({b} & 0xffffffffll) > 32ll ? 32ll : ({b})"
        return f"{a} << ({by})" if name == "vshl" else f"{a} >> ({by})"
    raise NotTranslated(f"{one.name} is not translated")


def _selected(argument: Argument) -> tuple[Argument, str]:
    """A register, and the part of it that is named."""
    name, _, part = argument.text.rpartition(".")
    if name and part in _PARTS:
        return Argument(name), part
    return argument, ""


def _extended(r: Registers, argument: Argument, type: str) -> str:
    """An operand, or a part of it, as a whole number of 64 bits."""
    given, part = _selected(argument)
    value = r.value(given, "u32")
    if not part:
        return f"((long long){'(int)' if type == 's32' else ''}{value})"
    first, bits = _PARTS[part]
    kind = "unsigned char" if bits == 8 else "unsigned short"
    if type == "s32":
        kind = "signed char" if bits == 8 else "short"
    return f"((long long)({kind})({value} >> {first}u))"


def _limited(name: str, type: str, bits: int) -> str:
    low = -(1 << bits - 1) if type == "s32" else 0
    high = (1 << bits - (type == "s32")) - 1
    return f"{name} < {low}ll ? {low}ll : {name} > {high}ll ? {high}ll : {name}"


def _finished(
    r: Registers, to: Argument, part: str, second: str, made: str, type: str, last: Argument
) -> str:
    """A result, after a second operation or as a part of another word."""
    if second:
        cpp = "int" if type == "s32" else "unsigned int"
        pair = (f"(({cpp}){made})", r.value(last, type))
        if second == "add":
            pair = (f"(unsigned int){made}", r.value(last, "u32"))
        return r.assign(to, "u32", f"(unsigned int)({_SECOND[second].format(*pair)})")
    if part:
        first, bits = _PARTS[part]
        mask = ((1 << bits) - 1) << first
        kept = f"{r.value(last, 'u32')} & {~mask & 0xFFFFFFFF}u"
        return r.assign(to, "u32", f"((unsigned int){made} << {first}u & {mask}u) | ({kept})")
    return r.assign(to, "u32", f"(unsigned int){made}")


def _vmad(r: Registers, one: Instruction, types: list[str], rest: list[str]) -> str:
    to, *given = take(one, 4)
    names = [Argument(each.text.removeprefix("-")) for each in given]
    negated = [each.text.startswith("-") for each in given]
    shift = {"shr7": 7, "shr15": 15}.get(next((w for w in rest if w.startswith("shr")), ""), 0)
    if set(rest) - {"po", "sat", "shr7", "shr15"} or types[0] not in _TYPES:
        raise NotTranslated(f"{one.name} is not translated")
    is_signed = "s32" in types[1:] or negated[0] != negated[1] or negated[2]
    a, b = (_extended(r, arg, type) for arg, type in zip(names, types[1:], strict=False))
    whole = not any(_selected(each)[1] for each in names[:2])
    if is_signed and whole and types[1:] == ["u32", "u32"] and (shift or "sat" in rest):
        raise NotTranslated(f"{one.name} of negated words is not translated")
    c = f"((long long)({'int' if is_signed else 'unsigned int'}){r.value(names[2], 'u32')})"
    product = f"{'-' if negated[0] != negated[1] else ''}({a} * {b})"
    text = f"{product} {'-' if negated[2] else '+'} {c}{' + 1ll' if 'po' in rest else ''}"
    kind, made = "long long" if is_signed else "unsigned long long", r.fresh()
    lines = f"{kind} {made} = ({kind})({text}) >> {shift};"
    if "sat" in rest:
        lines += (
            f"{made} = {_limited(made, 's32', 32)};"
            if is_signed
            else f"{made} = {made} > 0xffffffffull ? 0xffffffffull : {made};"
        )
    return lines + r.assign(to, "u32", f"(unsigned int){made}")


# --- two or four numbers in a word ---------------------------------------------------------------


def _simd(
    r: Registers, one: Instruction, name: str, lanes: int, types: list[str], rest: list[str]
) -> str | None:
    to, *given = take(one, 4)
    letter, bits = ("h", 16) if lanes == 2 else ("b", 8)
    masks = [_lanes_of(each, letter, lanes) for each in (to, *given[:2])]
    if name == "vavrg":
        if any(mask is not None for mask in masks) or rest:
            raise NotTranslated(f"{one.name} of selected parts is not translated")
        return None
    accumulates = rest[-1:] == ["add"]
    words = rest[:-1] if accumulates else rest
    target = Argument(to.text.partition(".")[0] if masks[0] is not None else to.text)
    chosen = masks[0] if masks[0] is not None else list(range(lanes))
    texts = [
        r.value(Argument(each.text.partition(".")[0]) if mask is not None else each, "u32")
        for each, mask in zip(given[:2], masks[1:], strict=True)
    ]
    last = r.value(given[2], "u32")
    # A selector counts through the parts of both words.
    first = masks[1] if masks[1] is not None else list(range(lanes))
    other = masks[2] if masks[2] is not None else list(range(lanes, 2 * lanes))
    kinds = {"s32": "signed char", "u32": "unsigned char"} if lanes == 4 else {
        "s32": "short", "u32": "unsigned short"
    }  # fmt: skip
    lines, sums, parts = "", [], []
    for lane in sorted(chosen):
        a, b = (
            f"((long long)({kinds[type]})({texts[at // lanes]} >> {at % lanes * bits}u))"
            for at, type in ((first[lane], types[1]), (other[lane], types[2]))
        )
        made = r.fresh()
        lines += f"long long {made} = {_computed(one, name, words, a, b)};"
        if "sat" in words:
            lines += f"{made} = {_limited(made, types[0], bits)};"
        sums.append(f"(unsigned int){made}")
        mask = (1 << bits) - 1 << lane * bits
        parts.append((f"((unsigned int){made} << {lane * bits}u & {mask}u)", mask))
    if accumulates:
        return lines + r.assign(target, "u32", " + ".join([*sums, last]))
    kept = 0xFFFFFFFF & ~sum(mask for _, mask in parts)
    whole = [text for text, _ in parts] + ([f"({last} & {kept}u)"] if kept else [])
    return lines + r.assign(target, "u32", " | ".join(whole))


def _lanes_of(argument: Argument, letter: str, lanes: int) -> list[int] | None:
    """The lanes that `.h10` or `.b3210` name, the first lane's first; None without one. Of a mask,
    which may have fewer, those that are there."""
    name, _, selector = argument.text.rpartition(".")
    digits = selector[1:]
    if not name or selector[:1] != letter or not digits.isdigit() or len(digits) > lanes:
        return None
    return [int(digit) for digit in reversed(digits)]
