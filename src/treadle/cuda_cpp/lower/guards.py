"""What `TREADLE_CHECK=1` adds to kernels: the pieces of the heap, null pointers, and pointers that
nothing has set.

A module that is opened with checks has a word for each block of the heap (`heap.cuh`), from which
an access finds its piece. The check is an expression of the access, so it is made when the access
is, not when its place is computed: `&p[n]` accesses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.arithmetic import cast, constant, minus, over, plus, times
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.values import PointerValue
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

HEAP, TAKEN = "__treadle_heap", "__treadle_heap_taken"
MARKS, SPENT = "__treadle_heap_marks", "__treadle_heap_spent"
_BLOCK, _HEADER = 32, 16  # bytes of the heap's blocks, and those before a piece's data
_PIECE = "the memory of new or malloc"
_NULL = "a null pointer is dereferenced, or one that nothing has set"
_ZERO = n.Constant(0, ir.I32)


def piece_check(
    cx: Context,
    index: n.Expression,
    type: ir.Type,
    span: Span,
    base: n.Expression | None = None,
) -> n.Check | None:
    """The check that an element of the heap is in a piece that a kernel has: in that of the pointer
    with the offset `base` in bytes, if it is known. None in the functions of the heap itself."""
    if not cx.lowering.guarded or MARKS not in cx.lowering.symbols or _is_of_heap(span):
        return None
    size = ir.size_of(type)
    at = times(cast(index, ir.I32), size)
    piece = _Piece(cx, at if base is None else cast(base, ir.I32))
    inside = minus(at, piece.start)
    step = constant(size, ir.I32)
    # Division rounds towards zero, and an index before the piece is negative.
    before = n.Binary("div", minus(inside, constant(size - 1, ir.I32)), step, ir.I32)
    is_before = n.Binary("lt", inside, _ZERO, ir.BOOL)
    place = inside
    if size > 1:
        place = n.Select(is_before, before, n.Binary("div", inside, step, ir.I32), ir.I32)
    gone = n.Select(
        piece.is_given_back, constant(n.GIVEN_BACK, ir.I32), constant(n.NOT_GIVEN, ir.I32), ir.I32
    )
    shown = n.Select(piece.is_there, place, gone, ir.I32)
    bound = n.Select(piece.is_there, over(piece.bytes, size), _ZERO, ir.I32)
    return n.Check(shown, bound, of=_PIECE)


def _is_of_heap(span: Span) -> bool:
    return span.file.startswith("<") and span.file.rstrip(">").endswith("heap.cuh")


class _Piece:
    """The piece of the heap around a byte, by the mark of its block."""

    def __init__(self, cx: Context, at: n.Expression) -> None:
        target: Any = cx.lowering.symbols[MARKS].targets[0]
        block = n.Binary("div", at, constant(_BLOCK, ir.I32), ir.I32)
        within = n.Check(block, cast(target.size, ir.I32), expected=True)
        mark = n.Load(n.Element(target.memory, block, ir.I32, (within,)), ir.I32)
        first = n.Binary("and", mark, constant(0x7FFFFFFF, ir.I32), ir.I32)
        self.start = plus(times(first, _BLOCK), constant(_HEADER, ir.I32))
        self.is_there = n.Binary("gt", mark, _ZERO, ir.BOOL)
        self.is_given_back = n.Binary("lt", mark, _ZERO, ir.BOOL)
        word = plus(times(first, _BLOCK // 4), constant(1, ir.I32))
        self.bytes = n.Load(n.Element(HEAP, word, ir.I32), ir.I32)


def check_given_back(cx: Context, piece: PointerValue, span: Span) -> n.Expression | None:
    """Report a pointer that delete and free cannot take; the condition that they can. None without
    checks."""
    if not cx.lowering.guarded or MARKS not in cx.lowering.symbols:
        return None
    at = times(cast(piece.offset, ir.I32), piece.unit)
    around = _Piece(cx, at)
    again = n.Unary("not", around.is_given_back, ir.BOOL)
    cx.emit(n.Assert(again, "delete or free of what was given back before", span=span, fault=True))
    begins = n.Binary("eq", at, around.start, ir.BOOL)
    fits = n.Binary("logical_and", around.is_there, begins, ir.BOOL)
    either = n.Binary("logical_or", fits, around.is_given_back, ir.BOOL)
    other = "delete or free of a pointer that new or malloc did not give"
    cx.emit(n.Assert(either, other, span=span, fault=True))
    return cx.let(fits)


def check_not_null(
    cx: Context, tag: n.Expression, choices: Sequence[Any], span: Span
) -> n.Expression | None:
    """Report that a pointer is null which is dereferenced; the condition that it is not. None
    without checks, and for one that never is."""
    empty = [number for number, one in enumerate(choices) if one is None]
    if not cx.lowering.guarded or not empty:
        return None
    holds: n.Expression | None = None
    for number in empty:
        one = n.Binary("ne", tag, constant(number, ir.I32), ir.BOOL, span)
        holds = one if holds is None else n.Binary("logical_and", holds, one, ir.BOOL, span)
    assert holds is not None
    cx.emit(n.Assert(holds, _NULL, span=span, fault=True))
    return holds


def report_null(cx: Context, span: Span) -> None:
    """Report an access through a pointer that is null in this call."""
    if cx.lowering.guarded and not cx.lowering.unevaluated:
        cx.emit(n.Assert(n.FALSE, _NULL, span=span, fault=True))


def is_unset(cx: Context, declaration: tree.VariableDeclaration) -> bool:
    """Whether checks have a pointer begin as null, since it may be read before it is set."""
    return id(declaration) in cx.lowering.unset_pointers
