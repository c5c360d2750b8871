"""Host code: whether a declaration is for the host, and where it ends without parsing it.

A file has host and device code. Device code has a specifier (`__global__`, `__device__`, …) and is
parsed in full. Other declarations are parsed if possible and skipped otherwise, without an error:
they may use headers that are not available.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from treadle.cuda_cpp.source.tokens import IDENTIFIER, STRING
from treadle.cuda_cpp.syntax import declarations, tree
from treadle.cuda_cpp.syntax.cursor import (
    CLASS_TEMPLATE,
    FUNCTION_TEMPLATE,
    KEYWORD,
    TYPE,
    VALUE,
    Cursor,
    SyntaxProblem,
)
from treadle.cuda_cpp.syntax.keywords import ATTRIBUTE_WORDS, CLASS_WORDS, DECLARATION_WORDS

_NEVER_SKIPPED = frozenset(("constexpr", "consteval"))
# `(…)` after one of these words is not a parameter list.
_NOT_CALLED = ATTRIBUTE_WORDS | frozenset(("decltype", "noexcept", "explicit", "typeof", "throw"))


@dataclass(frozen=True, slots=True)
class Extent:
    """What a declaration is and where it ends; `body` is where its body begins, -1 without one."""

    end: int
    body: int
    what: str
    name: str
    template: bool

    def head_end(self) -> int:
        """The end of the part that is searched for CUDA's specifiers: without a function's body."""
        return self.body if self.what == "function" and self.body > 0 else self.end


def extent(c: Cursor, start: int) -> Extent:
    """The extent of the declaration at `start`, found in one linear scan for any text."""
    texts, kinds, partners = c.texts, c.kinds, c.partners
    at, last = start, c.end
    what, name = "variable", ""
    if texts[at] == "{" and partners[at] > 0:
        return Extent(partners[at] + 1, at, "block", "", False)
    template = called = assigned = initializing = False
    while at < last:
        text = texts[at]
        if text == ";":
            return Extent(at + 1, -1, what, name, template)
        if text == "}" or text == "":
            return Extent(max(at, start + 1), -1, what, name, template)
        if text in ("(", "["):
            if text == "(" and not (called or assigned) and _is_called(c, at, start):
                called = True
                if what == "variable":
                    what, name = "function", _called_name(c, at)
            at = partners[at] + 1 if partners[at] > at else at + 1
            continue
        if text == "{":
            close = partners[at]
            if close < 0:
                return Extent(_next_beginning(c, at + 1), at, what, name, template)
            is_body = what == "function" and not assigned
            if is_body and initializing and _is_initializer(c, at, close):
                is_body = False
            if is_body:
                return Extent(_after_catches(c, close + 1), at, what, name, template)
            at = close + 1
            continue
        if text == "template" and texts[at + 1] == "<":
            template = True
            at = after_angles(c, at + 1)
            continue
        if text == "=" and texts[at - 1] != "operator":
            assigned = True
        elif text == ":" and called:
            initializing = True
        elif kinds[at] == KEYWORD and not called and what == "variable":
            if text in CLASS_WORDS or text == "enum":
                what, name = text, _class_name(c, at + 1)
            elif text in ("typedef", "using"):
                what = text
        elif kinds[at] == IDENTIFIER and not (called or assigned) and _may_name(what, name):
            name = text
        at += 1
    return Extent(last, -1, what, name, template)


def _may_name(what: str, name: str) -> bool:
    return what in ("variable", "typedef") or (what == "using" and not name)


def _is_called(c: Cursor, at: int, start: int) -> bool:
    """Whether the `(` at `at` may begin a function's parameters."""
    if at == start:
        return False
    before = c.texts[at - 1]
    if before in _NOT_CALLED:
        return False
    return c.kinds[at - 1] == IDENTIFIER or _operator_before(c, at, start) or before == ">"


def _operator_before(c: Cursor, at: int, start: int) -> bool:
    return "operator" in c.texts[max(start, at - 4) : at]


def _called_name(c: Cursor, at: int) -> str:
    if c.kinds[at - 1] == IDENTIFIER:
        return c.texts[at - 1]
    for before in range(at - 1, max(at - 5, -1), -1):
        if c.texts[before] == "operator":
            return "".join(c.texts[before:at])
    return ""


def _class_name(c: Cursor, at: int) -> str:
    while c.kinds[at] != IDENTIFIER:
        if c.texts[at] in ("{", ";", ":", ""):
            return ""
        at = c.partners[at] + 1 if c.partners[at] > at else at + 1
    return c.texts[at]


def _is_initializer(c: Cursor, opener: int, close: int) -> bool:
    """Whether these braces initialize a member before a constructor's body."""
    before = c.texts[opener - 1]
    if c.kinds[opener - 1] != IDENTIFIER and before != ">":
        return False
    return c.texts[close + 1] in (",", "{", "...")


def _after_catches(c: Cursor, at: int) -> int:
    while c.texts[at] == "catch" and c.partners[at + 1] > 0:
        at = c.partners[at + 1] + 1
        if c.texts[at] == "{" and c.partners[at] > 0:
            at = c.partners[at] + 1
    return at


def after_angles(c: Cursor, at: int) -> int:
    """The index after a template parameter list, or where it must end if its `>` is missing."""
    depth = 0
    while c.texts[at] not in (";", "}", ""):
        text = c.texts[at]
        if text == "{":  # of a default argument, which is followed by the next parameter or the end
            close = c.partners[at]
            if c.texts[close + 1][:1] not in (",", ">", "&", "|", ":", ".", "("):
                return at
            at = close + 1
            continue
        if text == "<":
            depth += 1
        elif text in (">", ">>", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return at + 1
        elif text in ("(", "[") and c.partners[at] > at:
            at = c.partners[at]
        at += 1
    return at


def _next_beginning(c: Cursor, at: int) -> int:
    """Where the next declaration seems to begin after an unclosed brace: a keyword in column 1."""
    last = c.end
    while at < last:
        if c.tokens[at].column == 1 and c.kinds[at] == KEYWORD and c.texts[at] in DECLARATION_WORDS:
            return at
        at += 1
    return last


# --- host or device ------------------------------------------------------------------------------


def has_device_specifier(c: Cursor, start: int, end: int) -> bool:
    """Whether one of CUDA's specifiers for device code stands there."""
    at = bisect_left(c.device_words, start)
    return at < len(c.device_words) and c.device_words[at] < end


def is_host_function(c: Cursor, start: int, found: Extent) -> bool:
    """Whether it is a function definition that device code can't call."""
    if found.what != "function" or found.body < 0:
        return False
    head = found.head_end()
    if has_device_specifier(c, start, head):
        return False
    return not any(text in _NEVER_SKIPPED for text in c.texts[start:head])


def skip(c: Cursor, found: Extent, reason: str = "") -> tree.HostCode:
    """Skip the declaration; the result says that it is host code."""
    start = c.index
    c.index = end = max(found.end, start + 1)
    name, what = found.name, found.what
    if c.class_names and name == c.class_names[-1]:
        # The name stays that of its class.
        name, what = "", "destructor" if "~" in c.texts[start : found.head_end()] else "constructor"
    if name:
        c.declare(name, _kind(found))
    names = (name,) if name else ()
    tokens = tuple(c.tokens[start:end])
    return tree.HostCode(names, what, reason, tokens, c.span_at(start))


def _kind(found: Extent) -> str:
    if found.what in ("variable", "function", "macro"):
        return FUNCTION_TEMPLATE if found.template else VALUE
    return CLASS_TEMPLATE if found.template else TYPE


def attempt(
    c: Cursor, found: Extent, read: Callable[[], tuple[tree.Declaration, ...]]
) -> tuple[tree.Declaration, ...]:
    """The result of `read`; if that is a syntax error, the declaration as host code."""
    start, levels, mark, classes = c.index, c.levels, c.mark, len(c.class_names)
    bodies, began, used = c.bodies, c.began, c.uses.mark()
    tolerant, c.tolerant = c.tolerant, True
    try:
        return read()
    except SyntaxProblem as problem:
        reason = problem.message
    finally:
        c.tolerant = tolerant
    c.index, c.levels, c.in_angles = start, levels, False
    c.bodies, c.began = bodies, began
    c.uses.forget(used)
    del c.class_names[classes:]
    c.forget(mark)
    return (skip(c, found, reason),)


def host_member(c: Cursor) -> tuple[tree.Declaration, ...] | None:
    """A member function for the host, of which the head is parsed if possible, and all skipped
    otherwise; None for others."""
    start = c.index
    found = extent(c, start)
    if found.what != "function":
        return None
    if is_host_function(c, start, found):
        return attempt(c, found, lambda: _head(c, found))
    if has_device_specifier(c, start, found.head_end()):
        return None
    return attempt(c, found, lambda: declarations.declaration(c, "member"))


def _head(c: Cursor, found: Extent) -> tuple[tree.Declaration, ...]:
    """A member function for the host without its body: overload resolution may select it, which is
    an error then."""
    c.head_end = found.end
    try:
        made = declarations.declaration(c, "member")
    finally:
        c.head_end = -1
    if c.index != found.end:
        raise c.problem("expected the function's body")
    return made


def is_linkage(c: Cursor) -> bool:
    """Whether a linkage specification (`extern "C"`) begins here."""
    return c.text == "extern" and c.kinds[c.index + 1] == STRING


def unknown_macro_end(c: Cursor) -> int:
    """The index after a use of an undefined macro that fills its line, such as `REGISTER(f)`; -1 if
    there is none."""
    at = c.index
    if c.kinds[at] != IDENTIFIER or c.names.get(c.texts[at]) in (TYPE, CLASS_TEMPLATE):
        return -1
    end = at + 1
    if c.texts[end] == "(":
        if c.partners[end] < 0:
            return -1
        end = c.partners[end] + 1
    following = c.tokens[end]
    if following.line == c.tokens[end - 1].line and following.file == c.tokens[end - 1].file:
        return -1
    return end if c.kinds[end] == KEYWORD and c.texts[end] in _BEGINNINGS else -1


_BEGINNINGS = DECLARATION_WORDS | frozenset(("void", "int", "float", "double", "bool"))
