"""The text of inline PTX: instructions, their operands, and registers as variables of C++."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from treadle.cuda_cpp.syntax.ptx_formulas import CPP_TYPES

# The kinds of registers: by what an operand's constraint or `.reg` says.
KINDS = {
    "p": "bool", "h": "unsigned short", "r": "unsigned int", "l": "unsigned long long",
    "f": "float", "d": "double", "address": "char *",
}  # fmt: skip
_DECLARED = {
    "pred": "p", "f32": "f", "f64": "d",
    **dict.fromkeys(("b8", "u8", "s8", "b16", "u16", "s16", "f16", "bf16"), "h"),
    **dict.fromkeys(("b32", "u32", "s32", "f16x2", "bf16x2"), "r"),
    **dict.fromkeys(("b64", "u64", "s64"), "l"),
}  # fmt: skip
_THREAD = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
LANE = f"({_THREAD} & 31u)"
_REGISTERS = {
    "laneid": LANE,
    "warpid": f"({_THREAD} >> 5)",
    "nwarpid": "((blockDim.x * blockDim.y * blockDim.z + 31u) >> 5)",
    "lanemask_eq": f"(1u << {LANE})",
    "lanemask_lt": f"((1u << {LANE}) - 1u)",
    "lanemask_le": f"((2u << {LANE}) - 1u)",
    "lanemask_ge": f"(~((1u << {LANE}) - 1u))",
    "lanemask_gt": f"(~((2u << {LANE}) - 1u))",
    "clock": "(unsigned int)::clock64()",
    "clock64": "(unsigned long long)::clock64()",
    "clock_hi": "(unsigned int)((unsigned long long)::clock64() >> 32)",
    "globaltimer": "(unsigned long long)::globaltimer()",
    "globaltimer_lo": "(unsigned int)::globaltimer()",
    "globaltimer_hi": "(unsigned int)((unsigned long long)::globaltimer() >> 32)",
    **{
        f"{name}.{axis}": f"{variable}.{axis}"
        for name, variable in (
            ("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"),
            ("nctaid", "gridDim"), ("clusterid", "blockIdx"), ("nclusterid", "gridDim"),
        )
        for axis in "xyz"
    },
    # Each block is a cluster of its own.
    **{f"cluster_{name}": number for name, number in (("ctarank", "0u"), ("nctarank", "1u"))},
    **{
        f"cluster_{name}.{axis}": number
        for name, number in (("ctaid", "0u"), ("nctaid", "1u"))
        for axis in "xyz"
    },
}  # fmt: skip
_WIDE = ("clock64", "globaltimer")
_WORD = r"[%A-Za-z_$][\w$.]*"
_LABEL = r"[A-Za-z_$%][\w$]*"


REFUSED = {
    **dict.fromkeys(("wgmma", "tcgen05"), "multiplies tiles by units that one generation of cards "
                    "has: use mma.sync"),
    "tensormap": "changes a tensor map, which only the host of a CUDA program makes",
    "clusterlaunchcontrol": "takes work of other clusters, and each block is one by itself here",
    "call": "calls a function by its name in PTX: call one of C++",
    **dict.fromkeys(("tex", "tld4", "txq", "istypep"), "reads a texture: use tex2D and its like"),
    **dict.fromkeys(("suld", "sust", "sured", "suq"), "is for surfaces: use surf2Dread and such"),
    "wmma": "has fragments whose layout is not stated: use nvcuda::wmma (mma.h) or mma.sync",
    "multimem": "is for memory of several cards: there is one here",
    "brx": "branches to a label by number: use a switch of C++",
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), "changes a stack, of which devices "
                    "have none: use an array of C++"),
}  # fmt: skip
"""Instructions without a counterpart, and why."""


class NotTranslated(Exception):
    """Why inline PTX cannot be written as C++, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An operand of an instruction: a register or number, several in braces, or an address."""

    text: str
    parts: tuple[Argument, ...] = ()  # of `{…}`, or the two of `d|p`
    offset: int | None = None  # bytes, of an address in `[…]`
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """`guard` is the predicate before it, with `!` if it is negated."""

    parts: tuple[str, ...]
    arguments: tuple[Argument, ...]
    guard: str = ""

    @property
    def name(self) -> str:
        """As it is written."""
        return ".".join(self.parts)


def take(one: Instruction, *counts: int) -> Sequence[Argument]:
    if len(one.arguments) not in counts:
        raise NotTranslated(f"{one.name} takes {' or '.join(map(str, counts))} operands")
    return one.arguments


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.reg`: registers of a kind."""

    kind: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """`name:`, to which branches lead."""

    name: str


Statement = Instruction | Declaration | Label | str


def statements(text: str) -> Iterator[Statement]:
    """The statements of inline PTX, and the braces around them."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL).replace("%%", "%")
    for piece in _pieces(text.replace("%=", "_")):
        if piece in "{}":
            yield piece
        elif piece.endswith(":"):
            yield Label(piece[:-1].rstrip())
        elif piece.startswith(".reg"):
            yield _declaration(piece)
        elif piece.startswith("."):
            raise NotTranslated(f"{piece.split()[0]} is not translated")
        else:
            yield _instruction(piece)


def _pieces(text: str) -> Iterator[str]:
    """A text at its semicolons, after labels, and at the braces of blocks: those at the beginning
    of one."""
    piece, open_lists = "", 0
    for character in text:
        if character == ":" and re.fullmatch(_LABEL, piece.strip()):
            yield f"{piece.strip()}:"
            piece = ""
            continue
        if character == ";" or (character in "{}" and not piece.strip() and not open_lists):
            if piece.strip():
                yield " ".join(piece.split())
            piece = ""
            if character != ";":
                yield character
            continue
        open_lists += (character == "{") - (character == "}")
        piece += character
    if piece.strip():
        yield " ".join(piece.split())


def _declaration(piece: str) -> Declaration:
    found = re.fullmatch(r"\.reg\s*\.(\w+) (.*)", piece)
    if found is None or found[1] not in _DECLARED:
        raise NotTranslated(f"{piece} is not translated")
    names: list[str] = []
    for one in found[2].split(","):
        several = re.fullmatch(rf"({_WORD})<(\d+)>", one.strip())
        if several is None:
            names.append(one.strip())
        else:
            names += [f"{several[1]}{at}" for at in range(int(several[2]))]
    return Declaration(_DECLARED[found[1]], tuple(names))


def _instruction(piece: str) -> Instruction:
    # A list in braces needs no space before it.
    guard, name = rf"(?:@(!?{_WORD}|!?%\d+)\s*)?", r"([a-z]\w*(?:[.:]+\w+)*)"
    found = re.fullmatch(rf"{guard}{name}(?: (.*)|(?=\{{)(.*)|)", piece)
    if found is None:
        raise NotTranslated(f"{piece!r} is not translated")
    parts = tuple(part for part in re.split(r"\.(?!:)", found[2]) if part)
    if re.match(r"cp\.(reduce\.)?async\.bulk\.(prefetch\.)?tensor", found[2]):
        raise NotTranslated(
            f"{found[2]} takes a tensor map, which only the host of a CUDA program makes"
        )
    if parts[0] in REFUSED:
        raise NotTranslated(f"{found[2]} {REFUSED[parts[0]]}")
    arguments = [_argument(one) for one in _split(found[3] or found[4] or "", ",")]
    return Instruction(parts, tuple(arguments), found[1] or "")


def _split(text: str, at: str) -> list[str]:
    """A list at its separators, but not in parentheses of any kind."""
    found, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += (character in "{[(") - (character in "}])")
        if character == at and not depth:
            found.append(text[start:place].strip())
            start = place + 1
    if text.strip():
        found.append(text[start:].strip())
    return found


def _argument(text: str) -> Argument:
    if text.startswith("{"):
        return Argument("", tuple(_argument(one) for one in _split(text[1:-1], ",")))
    if text.startswith("["):
        inner = text[1:-1].strip()
        found = re.fullmatch(r"([%\w$.]+)\s*(?:([+-])\s*(-?(?:0x)?[\da-fA-F]+|%\d+))?", inner)
        if found is None:
            raise NotTranslated(f"the address {text} is not translated")
        if found[3] and found[3].startswith("%"):
            raise NotTranslated(
                f"the address {text}, whose offset is an operand, is not translated"
            )
        offset = int(found[3], 0) if found[3] else 0
        return Argument(found[1], offset=-offset if found[2] == "-" else offset)
    if "|" in text:
        return Argument("", tuple(_argument(one) for one in text.split("|")))
    if text.startswith("!"):
        return Argument(text[1:].strip(), negated=True)
    return Argument(text)


# --- registers -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Registers:
    """Names in scope: operands and declared registers, as C++ variables of a kind."""

    scopes: list[dict[str, tuple[str, str]]] = field(default_factory=list)
    count: int = 0  # of variables that were made

    def fresh(self) -> str:
        """A new name of a variable."""
        self.count += 1
        return f"__ptx_{self.count}"

    def declare(self, name: str, kind: str) -> str:
        """Declare a register; the statement that declares its variable."""
        variable = self.fresh()
        self.scopes[-1][name] = (variable, kind)
        return f"{KINDS[kind]} {variable};"

    def find(self, text: str) -> tuple[str, str] | None:
        """The variable and kind of a register; a special one is an expression."""
        for scope in reversed(self.scopes):
            if text in scope:
                return scope[text]
        special = text.removeprefix("%")
        if text.startswith("%") and special in _REGISTERS:
            return _REGISTERS[special], "l" if special in _WIDE else "r"
        return None

    def kind(self, argument: Argument) -> str:
        """The kind of a register; "" for a number."""
        found = self.find(argument.text)
        return "" if found is None else found[1]

    def pointer(self, argument: Argument) -> str:
        """The variable of an address."""
        found = self.find(argument.text)
        if found is None or found[1] != "address":
            raise NotTranslated(f"{argument.text} is not known to be an address")
        return found[0]

    def value(self, argument: Argument, type: str) -> str:
        """An argument as a value of a PTX type."""
        if argument.parts or argument.offset is not None:
            raise NotTranslated("a plain operand is expected instead of braces or an address")
        found = self.find(argument.text)
        if found is None:
            return _number(argument.text, type)
        variable, kind = found
        if type == "pred":
            if kind != "p":
                raise NotTranslated(f"{argument.text} is not a predicate")
            return f"!{variable}" if argument.negated else variable
        return _read(variable, kind, type, argument.text)

    def assign(self, argument: Argument, type: str, text: str) -> str:
        """The statement that gives a register a value of a PTX type."""
        if argument.text == "_":
            return ""
        found = self.find(argument.text)
        if found is None or not found[0].startswith("__ptx_"):
            raise NotTranslated(f"{argument.text or 'the destination'} is not a register")
        variable, kind = found
        return f"{variable} = {_written(text, kind, type, argument.text)};"

    def address(self, argument: Argument, to: str) -> str:
        """An address as a pointer to a C++ type; a number of 32 bits is one in shared memory."""
        if argument.offset is None:
            raise NotTranslated("an address in brackets is expected")
        found = self.find(argument.text)
        if found is None or found[1] not in ("address", "r"):
            raise NotTranslated(f"{argument.text} is not known to be an address")
        variable, kind = found
        if kind == "address":
            return f"(({to} *)({variable} + {argument.offset}))"
        return f"(({to} *)__treadle_shared_pointer({variable} + {argument.offset & 0xFFFFFFFF}u))"

    def barrier(self, argument: Argument) -> str:
        """The address of an mbarrier, as a pointer to its words."""
        if self.kind(argument) != "r":
            return self.address(argument, "unsigned int")
        number = self.shared_address(argument)
        return f"((unsigned int *)__treadle_mbarrier_pointer({number}))"

    def shared_address(self, argument: Argument) -> str:
        """An address in shared memory as a number."""
        if argument.offset is None:
            raise NotTranslated("an address in brackets is expected")
        found = self.find(argument.text)
        if found is None or found[1] not in ("address", "r"):
            raise NotTranslated(f"{argument.text} is not known to be an address")
        variable, kind = found
        if kind == "address":
            variable = f"(unsigned int)__cvta_generic_to_shared({variable})"
        return f"({variable} + {argument.offset & 0xFFFFFFFF}u)"


_AS_HALF = {"f16": "__ushort_as_half", "bf16": "__ushort_as_bfloat16"}
_OF_HALF = {"f16": "__half_as_ushort", "bf16": "__bfloat16_as_ushort"}
_AS_PAIR = {"f16x2": "__treadle_as_half2", "bf16x2": "__treadle_as_bfloat162"}


def _read(variable: str, kind: str, type: str, name: str) -> str:
    if kind in ("p", "address"):
        raise NotTranslated(f"{name} is not a number here")
    if type == "f32" and kind in "fr":
        return variable if kind == "f" else f"__uint_as_float({variable})"
    if type == "f64" and kind in "dl":
        return variable if kind == "d" else f"__longlong_as_double((long long){variable})"
    if type in ("f32", "f64"):
        raise NotTranslated(f"{name} is not of type {type}")
    if kind == "f":
        variable = f"__float_as_uint({variable})"
    elif kind == "d":
        variable = f"(unsigned long long)__double_as_longlong({variable})"
    if type in _AS_HALF:
        return f"{_AS_HALF[type]}((unsigned short){variable})"
    if type in _AS_PAIR:
        return f"{_AS_PAIR[type]}((unsigned int){variable})"
    plain = {"h": "unsigned short", "l": "unsigned long long", "d": "unsigned long long"}
    wanted = CPP_TYPES[type]
    return variable if plain.get(kind, "unsigned int") == wanted else f"(({wanted}){variable})"


def _written(text: str, kind: str, type: str, name: str) -> str:
    if (type == "pred") != (kind == "p") or kind == "address":
        raise NotTranslated(f"{name} cannot hold what is written to it")
    if kind == "p":
        return text
    if type in _OF_HALF:
        text, type = f"{_OF_HALF[type]}({text})", "u16"
    elif type in _AS_PAIR:
        text, type = f"__treadle_bits_of({text})", "u32"
    elif (type, kind) in (("f32", "f"), ("f64", "d")):
        return text
    elif type == "f32":
        text, type = f"__float_as_uint({text})", "u32"
    elif type == "f64":
        text, type = f"(unsigned long long)__double_as_longlong({text})", "u64"
    text = f"({CPP_TYPES[type]})({text})"
    if kind == "f":
        return f"__uint_as_float((unsigned int){text})"
    if kind == "d":
        return f"__longlong_as_double((long long){text})"
    return f"({KINDS[kind]}){text}"


def _number(text: str, type: str) -> str:
    if type == "pred":
        if text in ("0", "1"):
            return "true" if text == "1" else "false"
        raise NotTranslated(f"{text} is not a predicate")
    bits = re.fullmatch(r"0[fF]([\da-fA-F]{8})|0[dD]([\da-fA-F]{16})", text)
    if bits is not None:
        if bits[1]:
            return _read(f"0x{bits[1]}u", "r", type, text)
        return _read(f"0x{bits[2]}ull", "l", type, text)
    if type in ("f32", "f64"):
        if re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", text) is None:
            raise NotTranslated(f"{text} is not a number of type {type}")
        return f"({CPP_TYPES[type]})({text})"
    found = re.fullmatch(r"(-?)(0[xX][\da-fA-F]+|0[bB][01]+|\d+)U?", text)
    if found is None:
        raise NotTranslated(f"{text} is not translated")
    digits = found[2]
    octal = digits[0] == "0" and digits.isdigit()
    value = int(digits, 8 if octal else 0) * (-1 if found[1] else 1)
    suffix = "ull" if CPP_TYPES[type].endswith("long long") else "u"
    value %= 1 << (64 if suffix == "ull" else 32)
    # PTX defines shifts by more than the width and divisions by 0: a cast keeps away the warnings
    # that literals of C++ get.
    kind, whole = ("l", "unsigned long long") if suffix == "ull" else ("r", "unsigned int")
    return _read(f"(({whole}){value}{suffix})", kind, type, text)


def addresses(instructions: list[Instruction], wide: Mapping[str, str]) -> set[str]:
    """The 64-bit registers that hold addresses: those in brackets, and what they are made of."""
    found = {
        one.text
        for instruction in instructions
        for one in instruction.arguments
        if one.offset is not None and one.text in wide
    }
    while True:
        before = len(found)
        for instruction in instructions:
            base, plain = instruction.parts[0], [one.text for one in instruction.arguments]
            if base == "cvta" and "to" in instruction.parts:
                found.update(one for one in plain[1:] if one in wide)
                if "shared" in instruction.parts:
                    continue
            if base in ("isspacep", "mapa"):
                found.update(one for one in plain[:2] if one in wide)
            sources = {"mov": [1], "add": [1], "sub": [1], "cvta": [1], "mad": [3]}.get(base, [])
            pairs = [(plain[0], plain[at]) for at in sources if at < len(plain)]
            for target, source in pairs:
                if target in found and source in wide:
                    found.add(source)
                if source in found and target in wide and base != "cvta":
                    found.add(target)
        if len(found) == before:
            return found
