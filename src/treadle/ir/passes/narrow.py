"""Loops over threads that stop at a guard's bound instead of testing it in every iteration.

    for x in range(256):                     for x in range(min(256, n - base)):
        i = base + x                   ->        i = base + x
        if i < n: body                           body

LLVM then sees a plain counted loop. Only guards that say exactly that are moved: the index is
`thread_idx.x`, or `block_idx.x * block_dim.x + thread_idx.x`, which a launch never lets overflow
(at most 2**31 - 1 threads along an axis). Parts of a condition that do not depend on the loop's
variable move in front of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from treadle.ir import nodes as n
from treadle.ir.passes.regions import assigned_in, names_in
from treadle.ir.traverse import rewrite, walk
from treadle.ir.types import BOOL, I32, Scalar

_MIRRORED = {"gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A loop body without the guards that moved: conditions before the loop, and its stop."""

    body: tuple[n.Statement, ...]
    before: tuple[n.Expression, ...]
    stop: n.Expression


def narrow(body: n.Block, variable: n.Variable, extent: int) -> Narrowed:
    """What a loop of `variable` over `extent` threads of the x axis may look like instead."""
    before: list[n.Expression] = []
    stop: n.Expression = n.Constant(extent, I32)
    while (split := _guarded(body)) is not None:
        declares, guard = split
        known = _definitions(declares, body)
        inner: list[n.Expression] = []
        for term in _terms(guard.condition):
            plain = _expanded(term, known)
            limit = _stop(plain, variable, extent)
            if limit is not None and _is_fixed(limit, body):
                stop = n.Intrinsic("min", (stop, limit), I32) if _is_open(stop) else limit
            elif variable.name not in names_in(plain) and _is_fixed(plain, body):
                before.append(plain)
            else:
                inner.append(term)
        rest = guard.then
        if inner:
            condition = inner[0]
            for term in inner[1:]:
                condition = n.Binary("logical_and", condition, term, BOOL)
            return Narrowed((*declares, replace(guard, condition=condition)), tuple(before), stop)
        body = (*declares, *rest)
    return Narrowed(body, tuple(before), stop)


def _is_open(stop: n.Expression) -> bool:
    return not isinstance(stop, n.Constant)


def _guarded(body: n.Block) -> tuple[n.Block, n.If] | None:
    """Declarations and the one `if` that they serve, if a body is just that."""
    if not body or not all(isinstance(statement, n.Declare) for statement in body[:-1]):
        return None
    last = body[-1]
    if not isinstance(last, n.If) or last.otherwise:
        return None
    return body[:-1], last


def _definitions(declares: n.Block, body: n.Block) -> dict[str, n.Expression]:
    """The variables that keep the value they are declared with."""
    changed: set[str] = set()
    for statement in body:
        if not isinstance(statement, n.Declare):
            changed |= assigned_in((statement,))
    known: dict[str, n.Expression] = {}
    for declare in declares:
        if not isinstance(declare, n.Declare) or declare.value is None:
            continue
        if declare.variable.name not in changed:
            known[declare.variable.name] = _expanded(declare.value, known)
    return known


def _expanded(expression: n.Expression, known: Mapping[str, n.Expression]) -> n.Expression:
    def change(node: object) -> object:
        return known.get(node.name, node) if isinstance(node, n.Variable) else node

    result: n.Expression = rewrite(expression, change)
    return result


def _terms(condition: n.Expression) -> Iterable[n.Expression]:
    if isinstance(condition, n.Binary) and condition.op == "logical_and":
        yield from _terms(condition.left)
        yield from _terms(condition.right)
    else:
        yield condition


def _is_fixed(expression: n.Expression, body: n.Block) -> bool:
    """Whether an expression means the same before the loop: no memory, no variable of the body."""
    if any(isinstance(node, (n.Load, n.Call)) for node in walk(expression)):
        return False
    return not names_in(expression) & assigned_in(body)


def _stop(term: n.Expression, variable: n.Variable, extent: int) -> n.Expression | None:
    """The number of iterations for which `term` holds, if it is a bound on the index."""
    if not isinstance(term, n.Binary) or term.op not in _MIRRORED:
        return None
    op, index, bound = term.op, term.left, term.right
    if op in ("gt", "ge"):
        op, index, bound = _MIRRORED[op], bound, index
    kind = index.type
    if not isinstance(kind, Scalar) or not kind.is_integer or kind.bits < 32:
        return None
    if variable.name in names_in(bound):
        return None
    base = _base(index, variable, extent)
    if base is None:
        return None
    # The base is not negative, so the difference of a larger bound does not overflow.
    difference = n.Binary("sub", bound, base, kind)
    zero = n.Constant(0, I32)
    if op == "lt":
        count = _at_most(difference, extent, kind)
        return n.Select(n.Binary("gt", bound, base, BOOL), count, zero, I32)
    count = n.Binary("add", _at_most(difference, extent - 1, kind), n.Constant(1, I32), I32)
    return n.Select(n.Binary("ge", bound, base, BOOL), count, zero, I32)


def _at_most(value: n.Expression, limit: int, kind: Scalar) -> n.Expression:
    smaller = n.Intrinsic("min", (value, n.Constant(limit, kind)), kind)
    return smaller if kind == I32 else n.Cast(smaller, I32)


def _base(index: n.Expression, variable: n.Variable, extent: int) -> n.Expression | None:
    """What is added to the loop's variable in an index, of the index's type."""
    kind = index.type
    if not isinstance(kind, Scalar):
        return None
    own = 0
    base: n.Expression = n.Constant(0, kind)
    for term in _summands(index):
        if _uncast(term) == variable:
            own += 1
        elif base == n.Constant(0, kind) and _is_block_start(term, extent):
            base = term
        else:
            return None
    if own != 1:
        return None
    return base if base.type == kind else n.Cast(base, kind)


def _summands(index: n.Expression) -> Iterable[n.Expression]:
    inner = _uncast(index)
    if isinstance(inner, n.Binary) and inner.op == "add":
        yield from _summands(inner.left)
        yield from _summands(inner.right)
    else:
        yield index


def _uncast(expression: n.Expression) -> n.Expression:
    """The operand of casts that keep any index as it is."""
    while isinstance(expression, n.Cast) and _is_wide(expression.type):
        if not _is_wide(expression.operand.type):
            break
        expression = expression.operand
    return expression


def _is_wide(type: object) -> bool:
    return isinstance(type, Scalar) and type.is_integer and type.bits >= 32


def _is_block_start(term: n.Expression, extent: int) -> bool:
    inner = _uncast(term)
    if extent == 1 and _is_block_index(inner):
        return True
    if not isinstance(inner, n.Binary) or inner.op != "mul":
        return False
    left, right = _uncast(inner.left), _uncast(inner.right)
    for block, size in ((left, right), (right, left)):
        if _is_block_index(block) and isinstance(size, n.Constant) and size.value == extent:
            return True
    return False


def _is_block_index(expression: n.Expression) -> bool:
    return isinstance(expression, n.Builtin) and expression == n.Builtin("block_idx", 0)
