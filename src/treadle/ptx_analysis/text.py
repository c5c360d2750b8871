"""PTX text as records. Only what an analysis needs: directives that say nothing of the code are
read over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from treadle.core.errors import FormatError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PIECE = re.compile(r"[{};\n]|[^{};\n]+")
_LABEL = re.compile(r"\s*([\w$%]+)\s*:(?!:)")
_SOURCE_LINE = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_OF_A_LINE = (".version", ".target", ".address_size", ".file", ".loc")
"""Directives that end with their line, without a semicolon."""
_FUNCTION = re.compile(r"\.(?P<kind>entry|func)\b\s*(?:\([^)]*\)\s*)?(?P<name>[\w$%]+)")
_REGISTERS = re.compile(r"([%\w$]+)(?:<(\d+)>)?")
_SHARED = re.compile(
    r"(?:\.\w+\s+)*\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.[a-z]+(?P<bits>\d+)\s+"
    r"(?P<name>[\w$%]+)(?P<extents>(?:\s*\[\s*\d*\s*\])*)"
)


@dataclass(frozen=True)
class Instruction:
    """One instruction: `@!%p1 ld.global.f32 %f1, [%rd1+4];`"""

    line: int
    opcode: str
    """With its suffixes: `ld.global.f32`."""
    operands: tuple[str, ...]
    guard: str | None = None
    """The predicate register that decides, thread by thread, whether it does anything."""
    negated: bool = False
    source: int | None = None
    """The line of the program that it was compiled from, where the text says so (`.loc`)."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The opcode's words."""
        return tuple(self.opcode.split("."))

    def __str__(self) -> str:
        guard = f"@{'!' * self.negated}{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".strip()


@dataclass(frozen=True)
class Label:
    """A place that branches go to."""

    line: int
    name: str


@dataclass(frozen=True)
class SharedVariable:
    """A variable in shared memory."""

    name: str
    bytes: int
    """0 if the launch gives its size."""
    alignment: int
    """Bytes."""


@dataclass(frozen=True)
class Kernel:
    """An entry of a module."""

    name: str
    line: int
    body: tuple[Instruction | Label, ...]
    shared: tuple[SharedVariable, ...]
    """Its own variables, and those of the module that it names."""
    block: tuple[int, int, int] | None
    """The threads that a block must have (`.reqntid`)."""

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Its instructions, without labels."""
        return tuple(each for each in self.body if isinstance(each, Instruction))


@dataclass(frozen=True)
class Module:
    """A PTX file."""

    target: str
    """As in `sm_90a`."""
    kernels: tuple[Kernel, ...]


@dataclass
class _Function:
    """A function that is being read."""

    name: str
    line: int
    is_kernel: bool
    header: str
    items: list[Instruction | Label] = field(default_factory=list)
    shared: list[SharedVariable] = field(default_factory=list)
    scopes: list[dict[str, str]] = field(default_factory=list)
    """Of the braces that are open: the names of their registers, which may hide outer ones."""
    renamed: int = 0
    source: int | None = None

    def add(self, line: int, statement: str) -> None:
        """A statement in its body."""
        if statement.startswith(".reg"):
            if self.scopes:
                self._declare(statement)
        elif ".branchtargets" in statement:
            names = re.findall(r"[\w$%]+", statement.partition(".branchtargets")[2])
            self.items.append(Instruction(line, ".branchtargets", tuple(names)))
        elif (found := _SHARED.match(statement)) is not None:
            self.shared.append(_variable(found))
        elif not statement.startswith("."):
            self.items.append(self._instruction(line, statement))

    def _declare(self, statement: str) -> None:
        """Registers of an inner scope get names of their own."""
        self.renamed += 1
        for name, count in _REGISTERS.findall(re.sub(r"^\.reg\s+\.\w+", "", statement)):
            names = [f"{name}{k}" for k in range(int(count))] if count else [name]
            self.scopes[-1].update({each: f"{each}@{self.renamed}" for each in names})

    def _name_of(self, word: str) -> str:
        return next((scope[word] for scope in reversed(self.scopes) if word in scope), word)

    def _instruction(self, line: int, text: str) -> Instruction:
        guard, negated = None, False
        if (found := re.match(r"@(!?)\s*([%\w$]+)\s+", text)) is not None:
            guard, negated = self._name_of(found[2]), found[1] == "!"
            text = text[found.end() :]
        opcode, *rest = text.split(None, 1)
        renamed = re.sub(r"[%\w$]+", lambda word: self._name_of(word[0]), "".join(rest))
        operands = tuple(_operands(renamed))
        return Instruction(line, opcode, operands, guard, negated, self.source)

    def kernel(self, module_shared: list[SharedVariable]) -> Kernel:
        """What was read."""
        named = {
            word
            for each in self.items
            if isinstance(each, Instruction)
            for operand in each.operands
            for word in re.findall(r"[\w$%]+", operand)
        }
        shared = (*self.shared, *(each for each in module_shared if each.name in named))
        return Kernel(self.name, self.line, tuple(self.items), shared, _required(self.header))


def parse(text: str) -> Module:
    """Read PTX text. Raises `FormatError` if it is not PTX, or not whole."""
    plain = _COMMENT.sub(_blank, text)
    target = re.search(r"^\s*\.target\s+(sm_\w+)", plain, re.MULTILINE)
    if target is None or re.search(r"^\s*\.version\b", plain, re.MULTILINE) is None:
        raise FormatError("this is not PTX, which begins with .version and .target sm_N")
    reader = _Reader()
    for piece in _PIECE.findall(plain):
        reader.take(piece)
    if reader.function is not None or reader.skipped:
        raise FormatError("the text ends within a function: it is not whole")
    if not reader.kernels:
        raise FormatError("the module has no kernel (.entry)")
    return Module(target[1], tuple(reader.kernels))


def _blank(comment: re.Match[str]) -> str:
    """What stands for a comment: its line ends. treadle's text tells source lines in comments."""
    found = re.match(r"// line (\d+)$", comment[0])
    return f".loc 1 {found[1]} 0" if found else re.sub(r"[^\n]", " ", comment[0])


@dataclass
class _Reader:
    """Text, piece by piece: what lies between braces, semicolons and ends of lines."""

    kernels: list[Kernel] = field(default_factory=list)
    shared: list[SharedVariable] = field(default_factory=list)
    function: _Function | None = None
    skipped: int = 0
    """Open braces of what is read over: initial values, vectors of operands, debugging data."""
    in_operand: bool = False
    line: int = 1
    begins: int = 1
    statement: str = ""

    def take(self, piece: str) -> None:
        if self.skipped:
            self.skipped += (piece == "{") - (piece == "}")
            self.line += piece == "\n"
            if self.in_operand:
                self.statement += piece
            if not self.skipped and not self.in_operand:
                self.statement = ""
            return
        if piece == "\n":
            self.line += 1
            self.statement += " "
            if self.statement.lstrip().startswith(_OF_A_LINE):
                if self.function and (found := _SOURCE_LINE.match(self.statement)) is not None:
                    self.function.source = int(found[1])
                self.statement = ""
        elif piece == "{":
            self._open()
        elif piece == "}":
            self._close()
        elif piece == ";":
            self._end()
        else:
            if not self.statement.strip():
                self.statement, self.begins = "", self.line
            self.statement += piece
            self._labels()

    def _labels(self) -> None:
        while self.function and (found := _LABEL.match(self.statement)) is not None:
            self.function.items.append(Label(self.begins, found[1]))
            self.statement = self.statement[found.end() :]
            self.begins = self.line

    def _open(self) -> None:
        if self.function is not None:
            self.in_operand = bool(self.statement.strip())
            if self.in_operand:
                self.statement += "{"
                self.skipped = 1
            else:
                self.function.scopes.append({})
            return
        found = _FUNCTION.search(self.statement)
        if found is None:
            self.in_operand, self.skipped = False, 1
            return
        is_kernel = found["kind"] == "entry"
        self.function = _Function(found["name"], self.begins, is_kernel, self.statement)
        self.statement = ""

    def _close(self) -> None:
        if self.function is None:
            raise FormatError(f"line {self.line}: a brace closes that none opened")
        if self.function.scopes:
            self.function.scopes.pop()
        else:
            if self.function.is_kernel:
                self.kernels.append(self.function.kernel(self.shared))
            self.function = None
        self.statement = ""

    def _end(self) -> None:
        statement = self.statement.strip()
        self.statement = ""
        if not statement:
            return
        if self.function is not None:
            self.function.add(self.begins, statement)
        elif (found := _SHARED.match(statement)) is not None:
            self.shared.append(_variable(found))


def _variable(found: re.Match[str]) -> SharedVariable:
    size = int(found["bits"]) // 8
    for extent in re.findall(r"\[\s*(\d*)\s*\]", found["extents"] or ""):
        size *= int(extent or 0)
    alignment = int(found["align"] or int(found["bits"]) // 8)
    return SharedVariable(found["name"], size, alignment)


def _operands(text: str) -> Iterator[str]:
    """The operands between commas that are in no bracket."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            yield " ".join(text[begin:at].split())
            begin = at + 1
    if text[begin:].strip():
        yield " ".join(text[begin:].split())


def _required(header: str) -> tuple[int, int, int] | None:
    found = re.search(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", header)
    return (int(found[1]), int(found[2] or 1), int(found[3] or 1)) if found else None
