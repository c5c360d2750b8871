"""Error recovery: lowering goes on after an ill-formed statement, to report several errors.

A kernel with an error gives no result, so it only matters that later errors do not follow from the
first one: statements with a name that an ill-formed statement declares are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

from treadle.core.errors import CompileError, CompileErrors, UnsupportedOnTarget
from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.syntax import tree

_MOST = 20  # errors of one kernel
UNDECLARED = "is not declared"  # in messages about names
_BODIES = ("body", "then", "otherwise")


class Recovered(Protocol):
    """What is done after an ill-formed statement when types are checked, so that more is."""

    def declare(self, cx: Context, node: tree.VariableDeclaration) -> bool:
        """Declare the variable of an ill-formed declaration in spite of it, if that can be."""

    def bodies(self, cx: Context, node: tree.Statement) -> None:
        """Lower the statements in one whose head is ill-formed."""


class Errors:
    """The errors of one kernel so far."""

    def __init__(self, recovered: Recovered | None = None) -> None:
        self._recovered = recovered
        self.found: list[CompileError] = []
        self._unknown: set[str] = set()  # names whose declarations are ill-formed

    def attempt(
        self, cx: Context, node: tree.Statement, lower: Callable[[Context, tree.Statement], None]
    ) -> None:
        """Lower a statement. Its error is recorded, up to a limit."""
        if self._unknown and not self._unknown.isdisjoint(_names_before_bodies(node)):
            self._unknown |= _declared(node)
            if self._recovered is not None:
                self._recovered.bodies(cx, node)
            return
        lowering = cx.lowering
        before = (len(cx.continue_flags), lowering.unevaluated, lowering.constant_calls, cx.span)
        loops, scope = len(cx.loops), cx.scope
        try:
            lower(cx, node)
        except UnsupportedOnTarget:
            raise
        except CompileError as error:
            name, undeclared, _ = error.message.partition(f" {UNDECLARED}")
            follows = bool(undeclared) and name in self._unknown  # in a body without braces
            if not follows and not any(_is_same(one, error) for one in self.found):
                self.found.append(error)
            if len(self.found) >= _MOST:
                self.raise_found()
            del cx.continue_flags[before[0] :]
            del cx.loops[loops:]
            lowering.unevaluated, lowering.constant_calls, cx.span = before[1:]
            lowering.declared = None
            cx.scope = scope
            self._unknown |= self._not_declared(cx, node)
            if self._recovered is not None:
                self._recovered.bodies(cx, node)

    def _not_declared(self, cx: Context, node: tree.Statement) -> set[str]:
        """The names that an ill-formed statement should have declared."""
        names = _declared(node)
        if self._recovered is not None and isinstance(node, tree.DeclarationStatement):
            for one in node.declarations:
                if isinstance(one, tree.VariableDeclaration) and (
                    one.name in cx.scope.names or self._recovered.declare(cx, one)
                ):
                    names.discard(one.name)
        return names

    def raise_found(self) -> None:
        """Raise the errors, if there are any."""
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise CompileErrors(self.found)


def _is_same(one: CompileError, other: CompileError) -> bool:
    """Whether two errors are the same: an undeclared name is reported once."""
    if one.message != other.message:
        return False
    return one.span == other.span or UNDECLARED in one.message


def _declared(node: tree.Statement) -> set[str]:
    """The names that a statement declares for the following ones."""
    if not isinstance(node, tree.DeclarationStatement):
        return set()
    return {name for one in node.declarations if (name := getattr(one, "name", None))}


def _names_before_bodies(node: tree.Statement) -> Iterator[str]:
    """The names in a statement, without those in nested statements."""
    for one in fields(node):
        if one.name not in _BODIES:
            yield from _names(getattr(node, one.name))


def _names(node: Any) -> Iterator[str]:
    """The names in a tree."""
    todo = [node]
    while todo:
        each = todo.pop()
        if isinstance(each, tree.Name):
            yield each.text
        if isinstance(each, (tuple, list)):
            todo += each
        elif is_dataclass(each):
            todo += [getattr(each, one.name) for one in fields(each)]
