"""Functions that return a value and may end without: C++ leaves undefined what their calls give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree

_NEVER_RETURNING = ("__trap", "abort", "exit", "__builtin_unreachable", "__builtin_trap")


def without_return(declarations: tuple[tree.Declaration, ...]) -> Iterator[tuple[str, Span]]:
    """The name and place of each function whose end may be reached without a `return`. Templates
    are left out: a branch may be one that no instance has."""
    yield from _Reader(set(_NEVER_RETURNING)).found(declarations)


@dataclass(slots=True)
class _Reader:
    """Goes through a file; `stopping` are the functions so far that never return."""

    stopping: set[str]

    def found(self, declarations: tuple[tree.Declaration, ...]) -> Iterator[tuple[str, Span]]:
        for one in declarations:
            match one:
                case tree.NamespaceDeclaration(members=members):
                    yield from self.found(members)
                case tree.StructDeclaration(members=members, template=None):
                    yield from self.found(members)
                case tree.FunctionDeclaration(template=None, body=tree.Compound() as body):
                    ends = self.ends(body)
                    if ends and _returns_value(one):
                        yield one.name.text, one.span
                    if not ends and not _leaves(body, tree.Return, ()):
                        self.stopping.add(one.name.text)

    def ends(self, node: Any) -> bool:
        """Whether the end of a statement may be reached."""
        match node:
            case tree.Return() | tree.RefusedStatement() | tree.Break() | tree.Continue():
                return False
            case tree.Goto():
                return False
            case tree.ExpressionStatement(expression=expression):
                return not self._stops(expression)
            case tree.Compound(body=body):
                starts = [at for at, one in enumerate(body) if isinstance(one, tree.Label)]
                return all(map(self.ends, body[starts[-1] :] if starts else body))
            case tree.If(condition=condition, then=then, otherwise=otherwise, constexpr=constexpr):
                if constexpr or _is_true(condition):
                    return self.ends(then)
                return otherwise is None or self.ends(then) or self.ends(otherwise)
            case tree.For(condition=condition, body=body):
                return not (condition is None or _is_true(condition)) or _breaks(body)
            case tree.While(condition=condition, body=body):
                return not _is_true(condition) or _breaks(body)
            case tree.DoWhile(body=body, condition=condition):
                return _breaks(body) or (
                    not _is_true(condition) and (self.ends(body) or _continues(body))
                )
            case tree.Switch(body=tree.Compound(body=body)):
                labels = [one for one in body if isinstance(one, tree.Default)]
                return not labels or any(map(_breaks, body)) or self._ends_last(body)
        return True

    def _ends_last(self, body: tuple[tree.Statement, ...]) -> bool:
        """Whether the last section of a switch may be left at its end."""
        for statement in reversed(body):
            if isinstance(statement, (tree.Case, tree.Default)):
                return True
            if not self.ends(statement):
                return False
        return True

    def _stops(self, expression: Any) -> bool:
        """Whether a call does not return."""
        if isinstance(expression, tree.Refused):  # throw and the like
            return True
        if not isinstance(expression, tree.Call) or not isinstance(expression.function, tree.Name):
            return False
        name = expression.function.text
        return name in self.stopping or "assert" in name.lower()


def _returns_value(one: tree.FunctionDeclaration) -> bool:
    result = one.result
    while isinstance(result, tree.ConstType):
        result = result.of
    if one.specifiers.isdisjoint(("device", "constexpr")) or "global" in one.specifiers:
        return False
    if isinstance(result, tree.BuiltinType):
        return result.name != "void"
    return isinstance(result, (tree.NamedType, tree.PointerType))


def _is_true(condition: Any) -> bool:
    if isinstance(condition, (tree.BoolLiteral, tree.IntegerLiteral)):
        return bool(condition.value)
    return False


_LOOPS = (tree.For, tree.While, tree.DoWhile, tree.RangeFor)


def _breaks(node: Any) -> bool:
    """Whether a `break` in a statement leaves what is around it."""
    return _leaves(node, tree.Break, (*_LOOPS, tree.Switch))


def _continues(node: Any) -> bool:
    return _leaves(node, tree.Continue, _LOOPS)


def _leaves(node: Any, kind: type, around: tuple[type, ...]) -> bool:
    """Whether a statement contains one of a kind, but in statements of other kinds."""
    if isinstance(node, kind):
        return True
    if isinstance(node, around):
        return False
    if isinstance(node, tree.If):
        return _leaves(node.then, kind, around) or _leaves(node.otherwise, kind, around)
    body = getattr(node, "body", ())
    return any(_leaves(one, kind, around) for one in (body if isinstance(body, tuple) else (body,)))
