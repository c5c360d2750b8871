"""The preprocessor: directives, macros and #include, from files to the parser's tokens."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.core.errors import CompileError
from treadle.core.nesting import deep_nesting
from treadle.core.source import Span
from treadle.cuda_cpp.source.conditions import HAS_INCLUDE, evaluate
from treadle.cuda_cpp.source.diagnostics import TooMuch
from treadle.cuda_cpp.source.expansion import PAINTED, Expander
from treadle.cuda_cpp.source.files import Files, LoadedFile
from treadle.cuda_cpp.source.headers import NOT_FOUND, header_text, near_header, why_missing
from treadle.cuda_cpp.source.lexer import EMPTY, Stretch, printable
from treadle.cuda_cpp.source.library_headers import PARTS, parts_for
from treadle.cuda_cpp.source.macros import Macro, defined_macro
from treadle.cuda_cpp.source.pragmas import PRAGMA_OPERATOR, kept_pragma, pragma_operator
from treadle.cuda_cpp.source.predefined import (
    ALWAYS_INCLUDED,
    PREDEFINED,
    definitions,
    special_macros,
)
from treadle.cuda_cpp.source.tokens import CHARACTER, END, IDENTIFIER, OTHER, STRING, Token, spelled

_MOST_INCLUDES = 200  # levels of nesting
_INCLUDE_STEPS = 50  # what an #include counts in addition to its tokens


def _in_std(tokens: Sequence[Token]) -> list[Token]:
    """Tokens with `cuda::std` as `std`, whose names are the same ones."""
    found: list[Token] = []
    for token in tokens:
        found.append(token)
        if token.text == "std" and [one.text for one in found[-3:-1]] == ["cuda", "::"]:
            found[-3:] = [token]
    return found


@dataclass(frozen=True, slots=True)
class Preprocessed:
    """The preprocessor's result for a file with all that it includes.

    `texts` are the files' texts by the names that tokens carry, `headers` the built-in headers
    that were included, `unknown_headers` those that were not found, each with the place of its
    #include. `looked_for` has each path at which a header was looked for, with the digest of what
    was there (`files.digest_of`). `tokens` ends with an END, even if there are errors.
    """

    tokens: tuple[Token, ...]
    texts: Mapping[str, str]
    unknown_headers: tuple[tuple[str, Span], ...]
    headers: tuple[str, ...]
    looked_for: Mapping[str, str]
    errors: tuple[CompileError, ...]
    warnings: tuple[tuple[str, Span], ...] = ()


def preprocess(
    text: str,
    file: str = "<source>",
    defines: Mapping[str, object] | None = None,
    include: Sequence[Path] = (),
    skip_missing_headers: bool = False,
) -> Preprocessed:
    """Preprocess a file's text.

    `file` is its name; if that is the path of a file, `#include "…"` searches its folder first.
    `defines` are macros: `{"BLOCK": 128, "F": "x + 1", "FLAG": None}`, where None and True mean 1.
    They come after the predefined ones, so that they can set `__CUDA_ARCH__`. `include` are the
    folders that #include searches. A header that is not found is an error, unless it is known to be
    for the host or of a library that kernels cannot use, or with `skip_missing_headers`.
    """
    reader = _Reader(Files(include), skip_missing_headers)
    with deep_nesting(file):
        try:
            reader.read_defines(defines or {}, Span(file, 1, 1, 2))
            reader.read(reader.files.main(text, file))
            reader.read_library()
        except TooMuch:
            reader.out.clear()  # the rest of half a file would only give more errors
    return reader.result(file, text)


@dataclass(slots=True)
class _Group:
    """An #if without its #endif so far."""

    directive: Token
    active: bool  # whether its text is compiled
    taken: bool  # whether any branch was active
    outer: bool  # whether the text around it is compiled
    last: bool = False  # whether #else was seen


class _Open:
    """A file that is being preprocessed."""

    def __init__(self, file: LoadedFile) -> None:
        self.file = file
        self.stretches = file.lexed.stretches
        self.place = 0
        self.groups: list[_Group] = []

    @property
    def active(self) -> bool:
        return not self.groups or self.groups[-1].active


class _Reader:
    """Preprocesses files with all that they include, one after the other, into `out`."""

    def __init__(self, files: Files, skip_missing: bool) -> None:
        self.files = files
        self.skip_missing = skip_missing
        self.diagnostics = files.diagnostics
        self.macros: dict[str, Macro] = special_macros()
        self.macros[PRAGMA_OPERATOR] = Macro(PRAGMA_OPERATOR, special=pragma_operator)
        # Those of built-in files, whose text a user's macros (N, T) do not change.
        self.own_macros = dict(self.macros)
        self.out: list[Token] = []
        self.open: list[_Open] = []
        self.unknown: dict[str, Span] = {}
        self.headers: dict[str, None] = {}  # in the order of their #include
        self.once: set[str] = set()
        self.included: set[str] = set()  # namespaces of libraries
        self.wanted: set[str] = set()  # parts of libraries, for other built-in headers
        self.directives: dict[str, Callable[[Token, list[Token]], list[Token]]] = {
            "define": self._define,
            "undef": self._undefine,
            "include": self._include,
            "error": self._error,
            "pragma": self._pragma,
        }

    def read_defines(self, defines: Mapping[str, object], place: Span) -> None:
        """Read what precedes the file: predefined macros, the user's, and CUDA's header."""
        self.read(self.files.built_in("<predefined>", PREDEFINED))
        text = definitions(defines, place, self.diagnostics)
        if text:
            self.read(self.files.main(text, "<defines>"))
        ours = {name: one for name, one in self.macros.items() if name.startswith("__treadle")}
        self.own_macros |= ours
        for name in ALWAYS_INCLUDED:
            self.read(self.files.built_in(f"<{name}>", header_text(name)))

    def read(self, file: LoadedFile) -> None:
        """Read a file to its end."""
        self._enter(file)
        expander = Expander(self.macros, self.diagnostics)
        while self.open:
            current = self.open[-1]
            if current.place == len(current.stretches):
                self._leave()
                continue
            stretch = current.stretches[current.place]
            current.place += 1
            if stretch.hash is not None:
                self.out += self._directive(stretch)
            elif current.active:
                expander.macros = self.own_macros if current.file.built_in else self.macros
                self.out += expander.expand(stretch.tokens, self._more)

    def read_library(self) -> None:
        """Read the parts of libraries that are used, before all else."""
        texts = [token[1] for token in self.out]
        if "cuda" in texts:
            self.out = _in_std(self.out)
        parts = parts_for(texts, self.wanted, self.included)
        after, self.out = self.out, []
        for name in parts:
            self.read(self.files.built_in(f"<{name}>", header_text(name)))
        self.out += after

    def _more(self) -> list[Token] | None:
        """The next tokens of the file, for macro arguments that continue after a directive."""
        current = self.open[-1]
        while current.place < len(current.stretches):
            stretch = current.stretches[current.place]
            if stretch.hash is None:
                tokens = stretch.tokens if current.active else []
            elif current.active and stretch.tokens and stretch.tokens[0].text == "include":
                return None  # the caller reports an #include among a macro's arguments
            else:
                tokens = self._directive(stretch)
            current.place += 1
            if tokens:
                return tokens
        return None

    def _enter(self, file: LoadedFile) -> None:
        self.open.append(_Open(file))
        self.diagnostics.charge(file.lexed.size, Span(file.name, 1, 1, 2))
        if file.lexed.unterminated:
            place = file.lexed.unterminated
            self.diagnostics.error("the comment that begins here has no */", place)

    def _leave(self) -> None:
        for group in self.open.pop().groups:
            self.diagnostics.error(
                f"#{group.directive.text} has no #endif in this file", group.directive
            )

    def result(self, file: str, text: str) -> Preprocessed:
        """The result."""
        lines = self.diagnostics.texts.setdefault(file, printable(text)).split("\n")
        end = Token(END, "", file, len(lines), len(lines[-1]) + 1, True)
        return Preprocessed(
            (*self._checked(), end),
            self.diagnostics.texts,
            tuple(self.unknown.items()),
            tuple(self.headers),
            self.files.looked_for,
            self._errors(),
            tuple(self.diagnostics.warnings),
        )

    def _errors(self) -> tuple[CompileError, ...]:
        """All errors, sorted by file (in the order of reading) and place."""
        order = {name: i for i, name in enumerate(self.diagnostics.texts)}
        errors = self.diagnostics.errors
        return tuple(sorted(errors, key=lambda e: (order.get(e.file, -1), e.line, e.column)))

    def _checked(self) -> list[Token]:
        """The tokens for the parser. Ill-formed literals are errors, and replaced by empty ones."""
        checked = []
        for token in self.out:
            kind = token[0]
            if kind == PAINTED:
                token = Token(IDENTIFIER, *token[1:])
            elif kind == OTHER and (quote := _opening_quote(token.text)):
                self.diagnostics.error(
                    f"the literal that begins here {OPEN_LITERAL} {quote}", token
                )
                token = Token(STRING, '""', *token[2:])
            elif kind == EMPTY:
                self.diagnostics.error("there is no character between the quotes", token)
                token = Token(CHARACTER, "' '", *token[2:])
            checked.append(token)
        return checked

    # --- directives --------------------------------------------------------------------------

    def _directive(self, stretch: Stretch) -> list[Token]:
        """Execute a directive; the tokens that it leaves."""
        if not stretch.tokens:
            return []  # the null directive
        name, *rest = stretch.tokens
        if name.text in _CONDITIONALS:
            self._conditional(name, rest)
        elif self.open[-1].active:
            if execute := self.directives.get(name.text):
                return execute(name, rest)
            if name.text in _REFUSED:
                self.diagnostics.error(f"#{name.text} {_REFUSED[name.text]}", name)
            elif name.text not in _IGNORED and name.kind != "number":
                meant = _meant_directive(name.text, self.directives)
                self.diagnostics.error(f"#{name.text} is not a directive{meant}", name)
        return []

    def _define(self, directive: Token, tokens: list[Token]) -> list[Token]:
        macro = defined_macro(tokens, directive, self.diagnostics)
        if macro:
            self.macros[macro.name] = macro
            if self.open[-1].file.built_in:
                self.own_macros[macro.name] = macro
        return []

    def _undefine(self, directive: Token, tokens: list[Token]) -> list[Token]:
        name = self._name(directive, tokens)
        if name:
            self.macros.pop(name, None)
            if self.open[-1].file.built_in:
                self.own_macros.pop(name, None)
        return []

    def _error(self, directive: Token, tokens: list[Token]) -> list[Token]:
        self.diagnostics.error(f"#error {spelled(tokens)}".rstrip(), directive)
        return []

    def _pragma(self, directive: Token, tokens: list[Token]) -> list[Token]:
        first = tokens[0].text if tokens else ""
        if first == "once":
            self.once.add(self.open[-1].file.identity)
        return kept_pragma(tokens, directive, Expander(self.macros, self.diagnostics))

    def _name(self, directive: Token, tokens: list[Token]) -> str | None:
        """The name after a directive; None after an error, which is recorded."""
        if not tokens or tokens[0].kind != IDENTIFIER:
            place = tokens[0] if tokens else directive
            self.diagnostics.error(f"#{directive.text} needs a name", place)
            return None
        return tokens[0].text

    # --- conditions --------------------------------------------------------------------------

    def _conditional(self, directive: Token, tokens: list[Token]) -> None:
        groups = self.open[-1].groups
        kind = directive.text
        if kind in ("if", "ifdef", "ifndef"):
            outer = self.open[-1].active
            active = outer and self._holds(directive, tokens)
            groups.append(_Group(directive, active, active, outer))
        elif not groups:
            self.diagnostics.error(f"#{kind} has no #if before it", directive)
        elif kind == "endif":
            groups.pop()
        elif groups[-1].last:
            self.diagnostics.error(f"#{kind} stands after #else", directive)
        else:
            group = groups[-1]
            group.last = kind == "else"
            wanted = group.outer and not group.taken
            group.active = wanted and (group.last or self._holds(directive, tokens))
            group.taken = group.taken or group.active

    def _holds(self, directive: Token, tokens: list[Token]) -> bool:
        """Whether the condition of an #if, #ifdef, #elif … holds."""
        if directive.text in ("if", "elif"):
            return evaluate(tokens, directive, self.macros, self._finds_header, self.diagnostics)
        name = self._name(directive, tokens)
        if name is None:
            return False
        known = name in self.macros or name == HAS_INCLUDE
        return known != directive.text.endswith("ndef")

    # --- headers -----------------------------------------------------------------------------

    def _finds_header(self, name: str, quoted: bool, place: Token) -> bool:
        return self.files.find(name, quoted, self.open[-1].file, place) is not None

    def _include(self, directive: Token, tokens: list[Token]) -> list[Token]:
        asked = self._header_name(directive, tokens)
        if asked is None:
            return []
        name, quoted = asked
        self.diagnostics.charge(_INCLUDE_STEPS, directive)
        if len(self.open) > _MOST_INCLUDES:
            raise self.diagnostics.give_up(
                f"#include is nested more than {_MOST_INCLUDES} deep: a header needs #pragma once",
                directive,
            )
        known = len(self.diagnostics.errors)
        file = self.files.find(name, quoted, self.open[-1].file, directive)
        if file is None:
            if len(self.diagnostics.errors) == known:  # it is not a file that cannot be read
                self._not_found(name, tokens[0])
            return []
        if file.built_in and not self.open[-1].file.built_in:
            self.headers[name] = None
        if (part := file.name[1:-1]) in PARTS:
            self.included.add(PARTS[part])
            if self.open[-1].file.built_in:
                self.wanted.add(part)
        elif file.identity not in self.once:
            self._enter(file)
        return []

    def _not_found(self, name: str, place: Token) -> None:
        """Note a header for the host, or of a library. A header of the user's may define what the
        code tests with #ifdef, so without it other code could be compiled."""
        why = why_missing(name)
        if why == NOT_FOUND and not self.skip_missing:
            near = near_header(name)
            meant = f" (did you mean {near}?)" if near else ""
            self.diagnostics.error(
                f"{name}{meant} {why}; if only code for the host needs it, pass "
                "skip_missing_headers=True",
                place,
            )
        else:
            self.unknown.setdefault(name, place.span)

    def _header_name(self, directive: Token, tokens: list[Token]) -> tuple[str, bool] | None:
        """The header that an #include names, and whether it is quoted."""
        if tokens and tokens[0].kind == STRING and tokens[0].text[0] == '"':
            return tokens[0].text[1:-1], True
        if tokens and tokens[0].text[0] == "<":
            # From the characters, since <a//b> has the tokens of a comment.
            place = tokens[0]
            line = self.files.line(place.file, place.line)
            name, closed, _ = line[place.column :].partition(">")
            if closed and name.strip():
                return name.strip(), False
        elif tokens:
            words = Expander(self.macros, self.diagnostics).expand(tokens)
            if words and words[0].kind == STRING:
                return words[0].text.strip('"'), True
            if len(words) > 2 and words[0].text == "<" and words[-1].text == ">":
                return spelled(words[1:-1]), False
        self.diagnostics.error(
            '#include needs <name> or "name"', tokens[0] if tokens else directive
        )
        return None


def _opening_quote(text: str) -> str:
    """The opening quote of a literal; "" for other texts."""
    return next((character for character in text[:4] if character in "\"'"), "")


OPEN_LITERAL = "has no closing"  # in the error of a literal


def _meant_directive(name: str, known: Iterable[str]) -> str:
    """The directive that a name nearly is, to follow a message."""
    meant = _OTHER_WORDS.get(name)
    close = [meant] if meant else difflib.get_close_matches(name, [*known, *_CONDITIONALS], 1)
    return f" (did you mean #{close[0]}?)" if close else ""


_OTHER_WORDS = {"elseif": "elif", "elsif": "elif", "end": "endif", "fi": "endif"}
_CONDITIONALS = ("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif")
_IGNORED = ("line", "warning", "ident", "sccs")  # they do not change what is compiled
_REFUSED = {
    "import": "is for Objective-C: write #include, and #pragma once in the header",
    "include_next": "has no meaning here: name the file with #include",
    "assert": "is an extension that is not known here: use #define",
    "unassert": "is an extension that is not known here: use #undef",
}
