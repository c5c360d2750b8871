"""Attributes: alignments, packing and launch bounds are kept, others are ignored."""

from __future__ import annotations

from treadle.cuda_cpp.syntax import expressions, tree
from treadle.cuda_cpp.syntax.cursor import Cursor
from treadle.cuda_cpp.syntax.declspec import Specifiers
from treadle.cuda_cpp.syntax.keywords import ATTRIBUTE_WORDS
from treadle.cuda_cpp.syntax.lookahead import type_end

_ALIGNMENT_WORDS = frozenset(("alignas", "_Alignas", "__align__", "__builtin_align__"))
_ATTRIBUTES = frozenset(("__attribute__", "__attribute", "__declspec"))
_ALIGNED = frozenset(("aligned", "__aligned__", "align"))


def attribute_follows(c: Cursor) -> bool:
    text = c.texts[c.index]
    return text in ATTRIBUTE_WORDS or (text == "[" and c.texts[c.index + 1] == "[")


def attributes(c: Cursor, into: Specifiers | None = None) -> None:
    """All attributes at the cursor."""
    while attribute_follows(c):
        attribute(c, into or Specifiers(None, frozenset()))


def attribute(c: Cursor, into: Specifiers) -> None:
    """One attribute: `__align__(16)`, `[[nodiscard]]`, `__launch_bounds__(256, 2)`."""
    word = c.text
    if word == "[":
        close = c.closing(c.index, "the attribute")
        if "no_unique_address" in c.texts[c.index : close]:
            into.words |= {"no_unique_address"}
        c.index = close + 1
        return
    c.index += 1
    if c.text != "(":
        raise c.problem(f"expected '(' after '{word}', found {c.found()}")
    close = c.closing(c.index, word)
    if word in _ALIGNMENT_WORDS:
        into.alignment = _alignment(c)
    elif word == "__launch_bounds__":
        c.index += 1
        into.launch_bounds = _expressions(c)
        if len(into.launch_bounds) > 3:
            raise c.problem(
                "__launch_bounds__ has the most threads of a block, the least blocks of a "
                "multiprocessor and the most blocks of a cluster at most",
                close,
            )
    elif word in _ATTRIBUTES:
        for at in range(c.index, close):
            if c.texts[at] in _ALIGNED and c.texts[at + 1] == "(":
                c.index = at + 1
                into.alignment = _alignment(c)
            elif c.texts[at] in ("packed", "__packed__"):
                into.packed = True
    c.index = close + 1


def _expressions(c: Cursor) -> tuple[tree.Expression, ...]:
    """Expressions up to the closing parenthesis."""
    found = [expressions.assignment(c)]
    while c.accept(","):
        found.append(expressions.assignment(c))
    if c.text != ")":
        raise c.problem(f"expected ')' after the launch bounds, found {c.found()}")
    return tuple(found)


def _alignment(c: Cursor) -> tree.Expression:
    """`(16)` or `(float4)`, from the parenthesis on."""
    span = c.span
    close = c.closing(c.index, "the alignment")
    c.index += 1
    end, sure = type_end(c, c.index)
    if end == close and sure:
        value: tree.Expression = tree.SizeOf(c.grammar.type_name(c), "alignof", span)
    else:
        value = expressions.bracketed(c)
    c.expect(")", "after the alignment")
    return value
