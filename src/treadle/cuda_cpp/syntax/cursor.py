"""The parser's state: its position in the tokens, the kinds of names, and errors."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

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
    TRAITS,
    TRANSFORMS,
)
from treadle.cuda_cpp.syntax.likely_causes import in_place_of, macro_of

KEYWORD = "keyword"  # an identifier token that is a keyword

# Kinds of names.
TYPE = "type"
CLASS_TEMPLATE = "class template"  # alias templates and template template parameters too
FUNCTION_TEMPLATE = "function template"  # variable templates too
CONCEPT = "concept"
VALUE = "value"  # a variable, parameter, enumerator or function, not a template
NAMESPACE = "namespace"

MOST_LEVELS = 256  # of nested parentheses, blocks, template arguments, …
MOST_ERRORS = 20

_CLOSING_EXPECTED = ("expected ')'", "expected ']'", "expected '}'")
_LAUNCH_PARTS = frozenset(("<", ">"))
_OPENERS = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = {")": "(", "]": "[", "}": "{"}


class SyntaxProblem(Exception):
    """A syntax error, raised up to the rule that can recover from it."""

    def __init__(self, message: str, span: Span, *, abandon: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.abandon = abandon  # the outermost declaration cannot be recovered


class Arity(NamedTuple):
    """The least and the greatest number of arguments of a function, and where it is declared."""

    least: int
    most: float
    span: Span


@dataclass(slots=True)
class Uses:
    """What device functions use, for errors that need no types (`semantics.early_errors`).

    The parser adds to `names` each name that nothing before it declares, and to `calls` each call
    of a plain name; those of the host's functions are removed again.
    """

    names: list[tree.Name] = field(default_factory=list)
    calls: list[tree.Call] = field(default_factory=list)
    # The types of template parameters among the names, also of host code.
    of_parameters: list[tree.Name] = field(default_factory=list)
    # Of all functions of a name, in any scope.
    arities: dict[str, list[Arity]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)  # names that anything but a function has
    namespaces: set[str] = field(default_factory=set)  # of using directives, not declared before

    def mark(self) -> tuple[int, int]:
        """How many there are, for `forget`."""
        return len(self.names), len(self.calls)

    def forget(self, mark: tuple[int, int]) -> None:
        """Remove what came since a mark."""
        del self.names[mark[0] :], self.calls[mark[1] :]


@dataclass(slots=True)
class Jumps:
    """The labels of a function, and the gotos to labels."""

    labels: dict[str, Span] = field(default_factory=dict)
    gotos: list[tree.Goto] = field(default_factory=list)


_TemplateParameters = tuple[tree.TemplateParameter, ...] | None


class FunctionRule(Protocol):
    """Parses a function after its declarator (`functions.function`)."""

    def __call__(
        self, c: Cursor, before: Specifiers, declared: Declarator, template: _TemplateParameters
    ) -> tuple[tree.FunctionDeclaration, bool]: ...


@dataclass(frozen=True, slots=True)
class Grammar:
    """Rules of C++'s grammar that are mutually recursive: a cast contains a type, a type an
    expression. A module that is imported before that of a rule calls it through the cursor's
    grammar; `grammar.GRAMMAR` has them all.
    """

    assignment: Callable[[Cursor], tree.Expression]
    bracketed: Callable[[Cursor], tree.Expression]
    unary: Callable[[Cursor], tree.Expression]
    specifiers: Callable[[Cursor], Specifiers]
    type_name: Callable[[Cursor], tree.TypeTree]
    conversion_type: Callable[[Cursor], tree.TypeTree]
    template: Callable[[Cursor, str], tuple[tree.Declaration, ...]]
    function: FunctionRule
    block: Callable[[Cursor, str], tree.Compound]
    lambda_expression: Callable[[Cursor], tree.Expression]
    requires_expression: Callable[[Cursor], tree.Expression]


class Cursor:
    """A position in the tokens of a file, and what the declarations before it say of names.

    `kinds` and `texts` are lists of the tokens' attributes, since access to a list is fast. They do
    not contain pragmas.
    """

    def __init__(
        self, tokens: Sequence[Token], sources: Mapping[str, str], grammar: Grammar
    ) -> None:
        self.grammar = grammar
        self.tokens: list[Token] = []
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.pragmas: dict[int, Token] = {}  # about unrolling, by the index of the next token
        self.packings: list[tuple[int, int | None]] = [(0, None)]  # first index, alignment
        self.statics: list[tree.VariableDeclaration] = []  # in functions
        self.end = 0
        self._read(tokens)
        self.partners = _partners(self.texts)
        self.angle_stops = _angle_stops(self.texts)
        self.device_words = [at for at, text in enumerate(self.texts) if text in DEVICE_WORDS]
        self.index = 0
        self.levels = 0
        self.assumed = -1  # where a missing `;` was reported and is assumed
        self.in_angles = False  # whether a `>` closes template arguments here
        self.head_end = -1  # where a function ends of which only the head is read
        self.tolerant = False  # whether an error ends the attempt instead of being reported
        self.skipped: dict[tuple[int, bool], int] = {}  # results of `lookahead.angles_end`
        self.class_names: list[str] = []
        self.errors: list[CompileError] = []
        self.sources = sources
        self.names: dict[str, str] = {
            **dict.fromkeys(BUILT_IN_TYPE_NAMES, TYPE),
            **dict.fromkeys(TRAITS, FUNCTION_TEMPLATE),
            **dict.fromkeys(TRANSFORMS, CLASS_TEMPLATE),
        }
        self.members: dict[str, dict[str, str]] = {}  # of namespaces and classes
        self._spans: dict[int, Span] = {}
        self._undo: list[tuple[str, str | None]] = []
        self.uses = Uses()
        self.bodies = 0  # of functions, around the next token
        self.jumps = Jumps()  # of the function around it
        self.began = (0, 0)  # the mark of `uses` at the beginning of the declaration

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
        # Several, so that short lookaheads need no bounds check.
        for _ in range(4):
            self.tokens.append(Token(END, "", end.file, end.line, end.column))
            self.kinds.append(END)
            self.texts.append("")

    def _completes(self, token: Token) -> bool:
        """Whether `<` or `>` and the token before it are one token of CUDA, `<<<` or `>>>`."""
        text = token.text
        if token.spaced or not self.texts or self.texts[-1] != text * 2:
            return False
        self.texts[-1] = text * 3
        self.tokens[-1] = self.tokens[-1]._replace(text=text * 3)
        return True

    # --- position ---------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The text of the next token."""
        return self.texts[self.index]

    @property
    def span(self) -> Span:
        """The location of the next token."""
        return self.span_at(self.index)

    def span_at(self, index: int) -> Span:
        """The location of a token, one object for all nodes that begin there."""
        known = self._spans.get(index)
        if known is None:
            token = self.tokens[index]
            end = token.column + len(token.text)
            known = self._spans[index] = Span(token.file, token.line, token.column, end)
        return known

    @property
    def at_semicolon(self) -> bool:
        """Whether a `;` comes next, or was reported missing here."""
        return self.texts[self.index] == ";" or self.assumed == self.index

    @property
    def at_end(self) -> bool:
        return self.kinds[self.index] == END

    def accept(self, text: str) -> bool:
        """Consume the next token if it is `text`."""
        if self.texts[self.index] == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str, after: str) -> None:
        """Consume the token `text`; `after` says where it belongs ("after the condition")."""
        if self.texts[self.index] == text:
            self.index += 1
            return
        raise self.problem(f"expected '{text}' {after}, found {self.found()}")

    def expect_semicolon(self, after: str) -> None:
        """Consume a `;`. One missing at a line's end is reported, and parsing goes on."""
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
            text = self.texts[at]
            message = f"'{_short(text)}' is not a token of C++{in_place_of(text)}: {message}"
        if macro := macro_of(self.tokens[at], self.sources):
            message += f", in what the macro {macro} stands for"
        elif self.texts[at] == "/" and at and self.texts[at - 1] == "*":
            message += " (comments in comments end with the first */)"
        elif message.startswith(_CLOSING_EXPECTED) and (
            macro := macro_of(self.tokens[max(at - 1, 0)], self.sources)
        ):
            message += f", behind what the macro {macro} stands for"
        return SyntaxProblem(message, self.span_at(at))

    def deeper(self) -> None:
        """Enter a level of nesting; a problem past the limit."""
        self.levels += 1
        if self.levels > MOST_LEVELS:
            message = f"nested more than {MOST_LEVELS} levels deep: split this up"
            raise SyntaxProblem(message, self.span, abandon=True)

    def closing(self, opener: int, what: str) -> int:
        """The index of the bracket that closes the one at `opener`."""
        partner = self.partners[opener]
        if partner < 0:
            text = self.texts[opener]
            raise self.problem(f"the '{text}' of {what} is never closed", opener)
        return partner

    @property
    def packing(self) -> int | None:
        """The alignment that `#pragma pack` sets at the next token."""
        at = bisect_right(self.packings, self.index, key=lambda packing: packing[0])
        return self.packings[at - 1][1]

    # --- errors -----------------------------------------------------------------------------------

    def report(self, problem: SyntaxProblem) -> None:
        """Record an error, up to MOST_ERRORS, and one for each location."""
        if any(error.span == problem.span for error in self.errors):
            return
        if len(self.errors) < MOST_ERRORS:
            text = self.sources.get(problem.span.file)
            self.errors.append(CompileError(problem.message, problem.span, text))

    @property
    def full(self) -> bool:
        """Whether MOST_ERRORS errors are recorded."""
        return len(self.errors) >= MOST_ERRORS

    # --- names ------------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A scope: its declarations are forgotten at its end."""
        mark = len(self._undo)
        try:
            yield
        finally:
            self.forget(mark)

    @property
    def mark(self) -> int:
        """The number of declarations so far, for `forget`."""
        return len(self._undo)

    def forget(self, mark: int) -> None:
        """Undo the declarations since `mark`."""
        undo, names = self._undo, self.names
        while len(undo) > mark:
            name, before = undo.pop()
            if before is None:
                names.pop(name, None)
            else:
                names[name] = before

    def declare(
        self, name: str, kind: str, *, function: bool = False, parameter: bool = False
    ) -> None:
        """Declare a name to be of a kind. `function` also if it is one that is declared again;
        that of a template `parameter` means nothing where the parameter is not in scope."""
        if not function and not parameter:
            self.uses.others.add(name)
        self._undo.append((name, self.names.get(name)))
        self.names[name] = kind

    def declared_since(self, mark: int) -> dict[str, str]:
        """The names declared since `mark`, and their kinds."""
        return {name: self.names[name] for name, _ in self._undo[mark:] if name in self.names}


_CLOSING = frozenset((">", ">>", ">>>", "{"))


def _angle_stops(texts: Sequence[str]) -> list[bool]:
    """For each token, whether a `<` there may have a `>` before the statement ends. Braces may
    contain one, so they count as well."""
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
    """For each bracket the index of its partner; -1 without one, and for other tokens."""
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
                # Brackets that are open inside of braces end with them.
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
    """The greatest alignment of a member that each `#pragma pack(…)` sets, or None."""
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
