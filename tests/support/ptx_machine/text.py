"""From PTX text to records. Nothing is interpreted here; debug lines, pragmas and directives about
performance are read over.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from tests.support.ptx_machine.records import (
    Address,
    Function,
    Group,
    Instruction,
    Integer,
    Label,
    Module,
    Name,
    Not,
    Operand,
    Pair,
    PtxError,
    Real,
    Sink,
    Variable,
    spell,
)  # fmt: skip

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"[^"]*")
    |(?P<real>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d+(?:[eE][-+]?\d+)?)
    |(?P<integer>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
    |(?P<word>[%$_A-Za-z][\w$]*(?:\.\w+|::\w+)*)
    |(?P<directive>\.\w+)
    |(?P<sign>[][,;:{}()<>@!|+\-=*])""",
    re.VERBOSE | re.DOTALL,
)
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SPACES = {".shared", ".global", ".const", ".local", ".param"}
_READ_OVER = {
    ".explicitcluster",
    ".minnctapersm",
    ".maxnreg",
    ".maxnctapersm",
    ".pragma",
    ".noreturn",
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


def type_bytes(type: str) -> int:
    """The bytes of a type by its name: "u32", "b8", "bf16"."""
    digits = type.lstrip("abcdefghijklmnopqrstuvwxyz")
    if type.endswith("x2"):
        return 4
    if digits not in _BYTES:
        raise PtxError(f"the type .{type} has no size")
    return _BYTES[digits]


def parse(text: str) -> Module:
    """The module that a text is."""
    return _Parser(text).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[_Token] = []
        line, at = 1, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise PtxError(f"line {line}: {text[at : at + 20]!r} is no PTX")
            at = found.end()
            if found.lastgroup != "space":
                self.tokens.append(_Token(str(found.lastgroup), found.group(), line))
            line += found.group().count("\n")
        self.tokens.append(_Token("end", "", line))
        self.at = 0

    # --- tokens ---

    def peek(self) -> str:
        return self.tokens[self.at].text

    def line(self) -> int:
        return self.tokens[self.at].line

    def next(self) -> str:
        token = self.tokens[self.at]
        if token.kind == "end":
            raise PtxError(f"line {token.line}: the text ends in the middle of something")
        self.at += 1
        return token.text

    def take(self, text: str) -> bool:
        if self.peek() == text and self.tokens[self.at].kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise PtxError(f"line {self.line()}: {text!r} expected, not {self.peek()!r}")

    def skip_line(self) -> None:
        line = self.line()
        while self.tokens[self.at].kind != "end" and self.line() == line:
            self.at += 1

    # --- the module ---

    def module(self) -> Module:
        module = Module()
        while self.tokens[self.at].kind != "end":
            word = self.peek()
            if word in _LINKAGE:
                self.next()
            elif word == ".version":
                self.next()
                major, minor = self.next().split(".")
                module.version = int(major), int(minor)
            elif word == ".target":
                self.next()
                module.target = self.next()
                while self.take(","):
                    self.next()
            elif word == ".address_size":
                self.next()
                if self.next() != "64":
                    raise PtxError("only .address_size 64 is known")
            elif word in (".entry", ".func"):
                function = self.function()
                if function is not None:
                    module.functions[function.name] = function
            elif word in _SPACES:
                module.variables += self.variables()
            elif word in (".file", ".loc", ".section"):
                self.skip_line()
            else:
                raise PtxError(f"line {self.line()}: {word!r} is unknown here")
        return module

    def variables(self) -> list[Variable]:
        """`.shared .align 4 .b8 name[16] = {1, 2};` up to its semicolon."""
        found = [self.variable()]
        while self.take(","):
            found.append(self.declarator(found[0].space, found[0].type, found[0].align))
        self.expect(";")
        return found

    def variable(self) -> Variable:
        space = self.next()[1:]
        align = 0
        type = ""
        while self.peek().startswith("."):
            word = self.next()[1:]
            if word == "align":
                align = int(self.next())
            elif word == "ptr":  # what follows says where a parameter points
                if self.peek() in _SPACES:
                    self.next()
                if self.take(".align"):
                    self.next()
            else:
                type = word
        return self.declarator(space, type, align)

    def declarator(self, space: str, type: str, align: int) -> Variable:
        name = self.next()
        size = type_bytes(type) if type != "pred" else 1
        count = 1
        while self.take("["):
            if self.peek() == "]":
                count = 0  # .extern .shared: as much as the launch gives
            else:
                count *= int(self.next().rstrip("U"), 0)
            self.expect("]")
        initial = b""
        if self.take("="):
            values = self.group() if self.peek() == "{" else Group((self.operand(),))
            initial = b"".join(_literal_bytes(part, type) for part in values.parts)
        return Variable(name, space, type, size * count, align or size, initial)

    # --- functions ---

    def function(self) -> Function | None:
        entry = self.next() == ".entry"
        results: tuple[Variable, ...] = ()
        if not entry and self.peek() == "(":
            results = self.parameters()
        name = self.next()
        function = Function(name, entry, self.parameters() if self.peek() == "(" else (), results)
        while self.peek() != "{":
            word = self.next()
            if word in (".reqntid", ".maxntid"):
                function.block = self.numbers()
                function.exact_block = word == ".reqntid"
            elif word == ".reqnctapercluster":
                function.cluster = self.numbers()[0]
            elif word in _READ_OVER:
                while self.peek()[0].isdigit() or self.peek()[0] == '"':
                    self.next()
            elif word == ";":  # a declaration only
                return None
            else:
                raise PtxError(f"line {self.line()}: {word!r} is unknown here")
        self.body(function)
        return function

    def numbers(self) -> tuple[int, ...]:
        found = [int(self.next())]
        while self.take(","):
            found.append(int(self.next()))
        return tuple(found)

    def parameters(self) -> tuple[Variable, ...]:
        self.expect("(")
        found: list[Variable] = []
        while not self.take(")"):
            found.append(self.variable())
            self.take(",")
        return tuple(found)

    def body(self, function: Function) -> None:
        self.expect("{")
        while not self.take("}"):
            word = self.peek()
            if word == "{":  # a scope of its own: names are unique all the same
                self.body(function)
            elif word == ".reg":
                self.registers(function)
            elif word in _SPACES:
                function.variables += self.variables()
            elif word == ".pragma":
                while self.next() != ";":
                    pass
            elif word in (".loc", ".file"):
                self.skip_line()
            elif self.tokens[self.at + 1].text == ":":
                function.body.append(Label(self.next()))
                self.next()
            else:
                function.body.append(self.instruction())

    def registers(self, function: Function) -> None:
        self.next()
        type = self.next()[1:]
        while True:
            name = self.next()
            names = [name]
            if self.take("<"):
                names = [f"{name}{i}" for i in range(int(self.next()))]
                self.expect(">")
            for one in names:
                if function.registers.get(one, type) != type:
                    raise PtxError(f"line {self.line()}: {one} is declared twice")
                function.registers[one] = type
            if not self.take(","):
                break
        self.expect(";")

    # --- instructions ---

    def instruction(self) -> Instruction:
        line = self.line()
        guard: Name | Not | None = None
        if self.take("@"):
            negated = self.take("!")
            name = Name(self.next())
            guard = Not(name) if negated else name
        opcode, *modifiers = self.next().split(".")
        operands: list[Operand] = []
        while not self.take(";"):
            operands.append(self.operand())
            if self.peek() != ";":
                self.expect(",")
        return Instruction(opcode, tuple(modifiers), tuple(operands), guard, line)

    def operand(self) -> Operand:
        word = self.peek()
        if word in ("{", "("):
            return self.group()
        if word == "[":
            return self.address()
        if self.take("!"):
            return Not(Name(self.next()))
        found = self.single()
        if self.take("|"):
            return Pair(found, self.single())
        return found

    def single(self) -> Operand:
        negative = self.take("-")
        token = self.tokens[self.at]
        word = self.next()
        if token.kind == "integer":
            value = int(word.rstrip("U"), 0)
            return Integer(-value if negative else value)
        if token.kind == "real":
            return _real(word, negative)
        if negative or token.kind != "word":
            raise PtxError(f"line {token.line}: {word!r} is no operand")
        return Sink() if word == "_" else Name(word)

    def group(self) -> Group:
        close = {"{": "}", "(": ")"}[self.next()]
        parts: list[Operand] = []
        while not self.take(close):
            parts.append(self.operand())
            self.take(",")
        return Group(tuple(parts))

    def address(self) -> Address:
        self.expect("[")
        base = self.single()
        if not isinstance(base, Name | Integer):
            raise PtxError(f"line {self.line()}: an address begins with a name or a number")
        offset = 0
        while self.peek() in ("+", "-"):
            sign = 1 if self.next() == "+" else -1
            part = self.single()
            if not isinstance(part, Integer):
                raise PtxError(f"line {self.line()}: only a number can be added to an address")
            offset += sign * part.value
        at = self.group().parts if self.take(",") else ()
        self.expect("]")
        return Address(base, offset, at)


def _real(word: str, negative: bool) -> Real:
    sign = -1.0 if negative else 1.0
    form, width = {"0f": ("f", 32), "0d": ("d", 64)}.get(word[:2].lower(), ("", 64))
    if not form:
        value = sign * float(word)
        return Real(value, 64, struct.unpack("<Q", struct.pack("<d", value))[0])
    bits = int(word[2:], 16) ^ (int(negative) << (width - 1))
    (value,) = struct.unpack(f"<{form}", bits.to_bytes(width // 8, "little"))
    return Real(value, width, bits)


def _literal_bytes(part: Operand, type: str) -> bytes:
    size = type_bytes(type)
    if isinstance(part, Integer):
        return (part.value % (1 << (8 * size))).to_bytes(size, "little")
    if isinstance(part, Real) and part.width == 8 * size:
        return part.bits.to_bytes(size, "little")
    if isinstance(part, Real) and size == 4:
        return struct.pack("<f", part.value)
    raise PtxError(f"{spell(part)} cannot initialize a variable of type .{type}")
