"""The place in the tokens while they are parsed: what comes next, errors, and what a name is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import END, IDENTIFIER, OTHER, PRAGMA, Token
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.declspec import Declarator, Specifiers
from treadle.cuda_cpp.syntax.keywords import (
    ALTERNATIVE_SPELLINGS,
    BUILT_IN_TYPE_NAMES,
    DEVICE_WORDS,
    KEYWORDS,
)

KEYWORD = "keyword"  # an identifier token that is a word of the language

# What a name is known to be.
TYPE = "type"
CLASS_TEMPLATE = "class template"  # alias templates and template template parameters too
FUNCTION_TEMPLATE = "function template"  # variable templates too
VALUE = "value"  # a variable, a parameter, an enumerator, a function that is no template
NAMESPACE = "namespace"

MOST_LEVELS = 256  # of parentheses, blocks, template arguments, … inside each other
MOST_ERRORS = 20

_LAUNCH_PARTS = frozenset(("<", ">"))
_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = {")": "(", "]": "[", "}": "{"}


class SyntaxProblem(Exception):
    """An error in the text, on its way to whoever can go on after it."""

    def __init__(self, message: str, span: Span, *, abandon: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.abandon = abandon  # the whole outermost declaration is given up


_TemplateParameters = tuple[tree.TemplateParameter, ...] | None


class FunctionRule(Protocol):
    """What reads a function behind its declarator (`functions.function`)."""

    def __call__(
        self, c: Cursor, before: Specifiers, declared: Declarator, template: _TemplateParameters
    ) -> tuple[tree.FunctionDeclaration, bool]: ...


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules that C++'s grammar comes back to from within: a cast holds a type, a type an
    expression. Modules that are imported before the one that has a rule call it through the
    cursor's grammar; `grammar.GRAMMAR` has them all.
    """

    assignment: Callable[[Cursor], tree.Expression]
    bracketed: Callable[[Cursor], tree.Expression]
    unary: Callable[[Cursor], tree.Expression]
    specifiers: Callable[[Cursor], Specifiers]
    type_name: Callable[[Cursor], tree.TypeTree]
    conversion_type: Callable[[Cursor], tree.TypeTree]
    template: Callable[[Cursor, str], tuple[tree.Declaration, ...]]
    function: FunctionRule


class Cursor:
    """A place in the tokens of a file, and what was learned on the way there.

    `kinds` and `texts` are the tokens' own, side by side, so that looking is cheap. Pragmas are no
    part of them.
    """

    def __init__(
        self, tokens: Sequence[Token], sources: Mapping[str, str], grammar: Grammar
    ) -> None:
        self.grammar = grammar
        self.tokens: list[Token] = []
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.pragmas: dict[int, Token] = {}  # about unrolling, by the index of what follows
        self.packings: list[tuple[int, int | None]] = [(0, None)]  # from where on, how tightly
        self.end = 0
        self._read(tokens)
        self.partners = _partners(self.texts)
        self.angle_stops = _angle_stops(self.texts)
        self.device_words = [at for at, text in enumerate(self.texts) if text in DEVICE_WORDS]
        self.index = 0
        self.levels = 0
        self.assumed = -1  # where a missing `;` was reported and is taken for granted
        self.in_angles = False  # whether a `>` closes template arguments here
        self.tolerant = False  # whether an error ends the attempt instead of being reported
        self.skipped: dict[tuple[int, bool], int] = {}  # what lookahead found behind a `<`
        self.class_names: list[str] = []
        self.errors: list[CompileError] = []
        self.sources = sources
        self.names: dict[str, str] = dict.fromkeys(BUILT_IN_TYPE_NAMES, TYPE)
        self.members: dict[str, dict[str, str]] = {}  # of namespaces and classes
        self._spans: dict[int, Span] = {}
        self._undo: list[tuple[str, str | None]] = []

    def _read(self, tokens: Sequence[Token]) -> None:
        packs: list[tuple[int, str]] = []
        for token in tokens:
            kind, text = token.kind, token.text
            if kind == PRAGMA:
                if "unroll" in text:
                    self.pragmas[len(self.texts)] = token
                elif text.startswith("pack"):
                    packs.append((len(self.texts), text))
                continue
            if kind == IDENTIFIER:
                if text in KEYWORDS:
                    kind = KEYWORD
                elif text in ALTERNATIVE_SPELLINGS:
                    kind, text = KEYWORD, ALTERNATIVE_SPELLINGS[text]
            elif kind == END or (text in _LAUNCH_PARTS and self._completes(token)):
                continue
            self.tokens.append(token)
            self.kinds.append(kind)
            self.texts.append(text)
        last = self.tokens[-1] if self.tokens else Token(END, "", "", 1, 1)
        end = tokens[-1] if tokens and tokens[-1].kind == END else last
        self.packings += packings(packs)
        self.end = len(self.texts)
        # A few, so that looking a little ahead needs no test.
        for _ in range(4):
            self.tokens.append(Token(END, "", end.file, end.line, end.column))
            self.kinds.append(END)
            self.texts.append("")

    def _completes(self, token: Token) -> bool:
        """Whether `<` or `>` makes one word of CUDA, `<<<` or `>>>`, of the token before it."""
        text = token.text
        if token.spaced or not self.texts or self.texts[-1] != text * 2:
            return False
        self.texts[-1] = text * 3
        self.tokens[-1] = self.tokens[-1]._replace(text=text * 3)
        return True

    # --- looking and going on ---------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text of the next token."""
        return self.texts[self.index]

    @property
    def span(self) -> Span:
        """The place of the next token."""
        return self.span_at(self.index)

    def span_at(self, index: int) -> Span:
        """The place of a token: one object for all that begin there."""
        known = self._spans.get(index)
        if known is None:
            token = self.tokens[index]
            end = token.column + len(token.text)
            known = self._spans[index] = Span(token.file, token.line, token.column, end)
        return known

    @property
    def at_semicolon(self) -> bool:
        """Whether a `;` comes next, or would if it had not been forgotten."""
        return self.texts[self.index] == ";" or self.assumed == self.index

    @property
    def at_end(self) -> bool:
        return self.kinds[self.index] == END

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        if self.texts[self.index] == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str, after: str) -> None:
        """Take this token; `after` says where it belongs ("after the condition")."""
        if self.texts[self.index] == text:
            self.index += 1
            return
        raise self.problem(f"expected '{text}' {after}, found {self.found()}")

    def expect_semicolon(self, after: str) -> None:
        """Take a `;`. One that is missing at a line's end is an error, but nothing is skipped."""
        if self.at_semicolon:
            self.index += self.texts[self.index] == ";"
            return
        message = f"expected ';' after {after}, found {self.found()}"
        before = self.tokens[self.index - 1] if self.index else self.tokens[0]
        if self.tokens[self.index].line == before.line and not self.at_end:
            raise self.problem(message)
        column = before.column + len(before.text)
        problem = SyntaxProblem(message, Span(before.file, before.line, column, column + 1))
        if self.tolerant:
            raise problem
        self.report(problem)
        self.assumed = self.index

    def found(self) -> str:
        """The next token, for an error message."""
        if self.at_end:
            return "the end of the file"
        return f"'{_short(self.text)}'"

    def problem(self, message: str, index: int | None = None) -> SyntaxProblem:
        """An error at the next token, or at another one."""
        at = self.index if index is None else index
        if self.kinds[at] == OTHER:
            message = f"'{_short(self.texts[at])}' is no part of the language here: {message}"
        return SyntaxProblem(message, self.span_at(at))

    def deeper(self) -> None:
        """Go down one level; more than a sane program has are an error."""
        self.levels += 1
        if self.levels > MOST_LEVELS:
            message = f"nested more than {MOST_LEVELS} levels deep: split this up"
            raise SyntaxProblem(message, self.span, abandon=True)

    def closing(self, opener: int, what: str) -> int:
        """The index of what closes the bracket at `opener`."""
        partner = self.partners[opener]
        if partner < 0:
            text = self.texts[opener]
            raise self.problem(f"the '{text}' of {what} is never closed", opener)
        return partner

    @property
    def packing(self) -> int | None:
        """What the last `#pragma pack` before the next token set."""
        at = bisect_right(self.packings, self.index, key=lambda packing: packing[0])
        return self.packings[at - 1][1]

    # --- errors -----------------------------------------------------------------------------------

    def report(self, problem: SyntaxProblem) -> None:
        """Write an error down; at most so many, and one a place."""
        if any(error.span == problem.span for error in self.errors):
            return
        if len(self.errors) < MOST_ERRORS:
            text = self.sources.get(problem.span.file)
            self.errors.append(CompileError(problem.message, problem.span, text))

    @property
    def full(self) -> bool:
        """Whether there are as many errors as anybody wants to read."""
        return len(self.errors) >= MOST_ERRORS

    # --- what names are ---------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget at the end what the names declared inside are."""
        mark = len(self._undo)
        try:
            yield
        finally:
            self.forget(mark)

    @property
    def mark(self) -> int:
        """How much is known now, for `forget`."""
        return len(self._undo)

    def forget(self, mark: int) -> None:
        """Forget the names declared since."""
        undo, names = self._undo, self.names
        while len(undo) > mark:
            name, before = undo.pop()
            if before is None:
                names.pop(name, None)
            else:
                names[name] = before

    def declare(self, name: str, kind: str) -> None:
        """From here on the name is this."""
        self._undo.append((name, self.names.get(name)))
        self.names[name] = kind

    def declared_since(self, mark: int) -> dict[str, str]:
        """The names declared since, and what they are now."""
        return {name: self.names[name] for name, _ in self._undo[mark:] if name in self.names}


_CLOSING = frozenset((">", ">>", ">>>", "{"))


def _angle_stops(texts: Sequence[str]) -> list[bool]:
    """Of each token, whether something may close an angle opened there before the statement ends:
    a `>`, or braces, in which anything may stand."""
    found = [False] * len(texts)
    closes = False
    for at in range(len(texts) - 1, -1, -1):
        text = texts[at]
        if text in _CLOSING:
            closes = True
        elif text == ";":
            closes = False
        found[at] = closes
    return found


def _partners(texts: list[str]) -> list[int]:
    """For each bracket the index of its partner, -1 where it has none (and for other tokens)."""
    partners = [-1] * len(texts)
    open_braces = 0
    stack: list[int] = []
    for at, text in enumerate(texts):
        if text in _OPENERS:
            stack.append(at)
            open_braces += text == "{"
        elif text in _CLOSERS:
            opener = _CLOSERS[text]
            if text == "}":
                if not open_braces:
                    continue
                # A brace closes what was left open inside of it.
                while texts[stack[-1]] != "{":
                    stack.pop()
                open_braces -= 1
            elif not stack or texts[stack[-1]] != opener:
                continue
            start = stack.pop()
            partners[start], partners[at] = at, start
    return partners


_PACK = re.compile(r"pack\s*\(([^()]*)\)")


def packings(pragmas: list[tuple[int, str]]) -> list[tuple[int, int | None]]:
    """What each `#pragma pack(…)` sets: the greatest alignment of a member, or None."""
    stack: list[int | None] = []
    current: int | None = None
    found: list[tuple[int, int | None]] = []
    for at, text in pragmas:
        match = _PACK.match(text)
        words = [word.strip() for word in match[1].split(",")] if match is not None else []
        if words and words[0] == "push":
            stack.append(current)
        elif words and words[0] == "pop":
            current = stack.pop() if stack else None
        number = words[-1] if words else ""
        if number.isdecimal():
            current = int(number[:4])
        elif words == [""]:
            current = None
        found.append((at, current))
    return found


def _short(text: str) -> str:
    text = text.split("\n", 1)[0]
    return text if len(text) <= 40 else text[:39] + "…"
