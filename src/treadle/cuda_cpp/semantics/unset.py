"""Local variables that are read before anything sets them: C++ leaves undefined what they give.

The first place that names a variable after its declaration decides. It counts only if it certainly
reads: not the operand of `&`, nor an argument that a reference may be bound to, nor what a lambda
captures. In a loop that sets the variable, too, it counts if the first iteration comes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from treadle.core.source import Span
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree

_LASTING = frozenset(("static", "shared", "extern", "constant", "device", "managed", "constexpr"))
_JUMPS = (tree.Break, tree.Continue, tree.Return, tree.Goto, tree.RefusedStatement)
_LOOPS = (tree.For, tree.While, tree.DoWhile, tree.RangeFor)


class _Use(NamedTuple):
    """The first place that names a variable: whether it reads, and whether control surely comes
    there. A place that may set the variable does not `read`."""

    reads: bool
    span: Span
    sure: bool = True


ByValue = Callable[[str, int], bool]
"""Whether all functions of a name take their argument of a number by value."""


def unset_reads(nodes: Sequence[Any], by_value: ByValue) -> Iterator[tuple[str, Span]]:
    """The variables that are read before they are set in a function of these nodes, and where."""
    if any(isinstance(one, (tree.Goto, tree.Label)) for one in nodes):
        return
    for one in nodes:
        if isinstance(one, tree.Compound):
            yield from _in_block(one.body, by_value)


def pointers_without_value(
    body: tuple[tree.Statement, ...],
) -> Iterator[tree.VariableDeclaration]:
    """The pointers that are declared in a block and that not every path sets before it reads them.
    Some are among them that are always set, such as those of both branches of an `if`."""
    for one, rest in _unset_in(body):
        if isinstance(one.type, tree.PointerType):
            found = _Search(one.name, lambda name, place: True).in_order(rest)
            if found is not None and (found.reads or not found.sure):
                yield one


def _unset_in(
    body: tuple[tree.Statement, ...],
) -> Iterator[tuple[tree.VariableDeclaration, tuple[Any, ...]]]:
    """The variables that a block declares without a value, and what follows each."""
    for at, statement in enumerate(body):
        if isinstance(statement, tree.DeclarationStatement):
            for number, one in enumerate(statement.declarations):
                if isinstance(one, tree.VariableDeclaration) and _is_unset(one):
                    rest = tree.DeclarationStatement(statement.declarations[number + 1 :])
                    yield one, (rest, *body[at + 1 :])


def _in_block(body: tuple[tree.Statement, ...], by_value: ByValue) -> Iterator[tuple[str, Span]]:
    for one, rest in _unset_in(body):
        found = _Search(one.name, by_value).in_order(rest)
        if found is not None and found.reads:
            yield one.name, found.span


def _is_unset(one: tree.VariableDeclaration) -> bool:
    """Whether a declaration leaves a number or pointer without a value."""
    type = one.type
    while isinstance(type, tree.ConstType):
        if type.volatile:
            return False
        type = type.of
    return (
        one.initializer is None
        and one.name != ""
        and isinstance(type, (tree.BuiltinType, tree.PointerType))
        and one.specifiers.isdisjoint(_LASTING)
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for the first place that names a variable."""

    name: str
    by_value: ByValue

    def in_order(self, nodes: Any) -> _Use | None:
        """The first use in nodes of which each follows the one before."""
        sure = True
        for node in nodes:
            found = self.first(node)
            if found is not None:
                return found._replace(sure=found.sure and sure)
            sure = sure and not _may_jump(node)
        return None

    def first(self, node: Any) -> _Use | None:
        """The first use in a node."""
        match node:
            case None | str() | int() | float() | bytes():
                return None
            case tuple():
                return self.in_order(node)
            case tree.Name():
                return self._named(node)
            case tree.If():
                head = self.in_order((node.initializer, node.condition))
                return head or self._one_of(node.then, node.otherwise)
            case tree.Switch():
                head = self.in_order((node.initializer, node.condition))
                return head or _unsure(self.first(node.body))
            case tree.For() | tree.While() | tree.DoWhile() | tree.RangeFor():
                return self._loop(node)
            case tree.VariableDeclaration():
                return self._declaration(node)
            case tree.StructuredBinding():
                return self._bound(node.type, node.initializer)
            case tree.RefusedStatement():
                return _Use(False, node.span)
        return self._expression(node)

    def _expression(self, node: Any) -> _Use | None:
        match node:
            case tree.Assign(op=op, target=target, value=value):
                first = self.first(value)
                if first is not None or op != "=" or not self._is_part(target):
                    return first or self.first(target)
                return _Use(False, node.span)
            case tree.Unary("&", operand) if self._is_part(operand):
                return _Use(False, node.span)
            case tree.Binary("&&" | "||", left, right):
                return self.first(left) or _unsure(self.first(right))
            case tree.Conditional(condition, if_true, if_false):
                return self.first(condition) or self._one_of(if_true or condition, if_false)
            case tree.Call(function, arguments):
                named = None if isinstance(function, tree.Name) else self.first(function)
                return named or self._arguments(function, arguments)
            case tree.Member(base=base):
                return self.first(base)
            case tree.Cast(type, operand):
                discards = type == tree.BuiltinType("void") or isinstance(type, tree.ReferenceType)
                return self._mentioned(operand) if discards else self.first(operand)
            case tree.Construct(type, arguments):
                return self._items(arguments, isinstance(type, tree.BuiltinType))
            case tree.InitializerList(items):
                return self._items(items, False)
            case tree.Lambda() | tree.New() | tree.Delete() | tree.StatementExpression():
                return self._mentioned(node)
            case tree.SizeOf() | tree.OffsetOf() | tree.OperandCheck():
                return None
            case _ if isinstance(node, tree.TYPES):
                return None
        parts = (getattr(node, name) for name in getattr(node, "__dataclass_fields__", ()))
        return self.in_order(part for part in parts if not isinstance(part, Span))

    def _named(self, node: tree.Name) -> _Use | None:
        is_it = node.text == self.name and not node.scope and node.arguments is None
        return _Use(True, node.span) if is_it else None

    def _mentioned(self, node: Any) -> _Use | None:
        """Something that may set the variable, if it names it."""
        for one in walk_tree(node):
            if isinstance(one, (tree.Name, tree.Capture)):
                text = one.text if isinstance(one, tree.Name) else one.name
                if text == self.name:
                    return _Use(False, one.span)
            if isinstance(one, tree.Lambda) and one.default:
                return _Use(False, one.span)
        return None

    def _is_part(self, node: Any) -> bool:
        """Whether an lvalue is the variable or a part of it, or may be, as with `?:`."""
        while isinstance(node, tree.Member) and not node.arrow:
            node = node.base
        if isinstance(node, tree.Conditional):
            return self._is_part(node.if_true or node.condition) or self._is_part(node.if_false)
        if isinstance(node, tree.Binary) and node.op == ",":
            return self._is_part(node.right)
        return isinstance(node, tree.Name) and self._named(node) is not None

    def _one_of(self, one: Any, other: Any) -> _Use | None:
        """Of two branches one that reads, or else one that may set."""
        found = [use for branch in (one, other) if (use := _unsure(self.first(branch)))]
        return next((use for use in found if use.reads), found[0] if found else None)

    def _loop(self, node: Any) -> _Use | None:
        """The first use in a loop; in one that sets the variable only what the first iteration
        surely comes to."""
        head, tail = _in_first_iteration(node)
        first = self.in_order(head)
        found = first or self.in_order(tail)
        if found is None or first is not None:
            return first
        reads = found.reads and (found.sure or not self._may_be_set(node))
        return _Use(reads, found.span, found.sure and isinstance(node, tree.DoWhile))

    def _may_be_set(self, node: Any) -> bool:
        reads = {id(use) for use in self._reads(node)}
        return any(
            isinstance(one, tree.Name) and self._named(one) is not None and id(one) not in reads
            for one in walk_tree(node)
        )

    def _reads(self, node: Any) -> Iterator[tree.Name]:
        """The names that are operands of what only reads them."""
        for one in walk_tree(node):
            match one:
                case tree.Binary(left=left, right=right):
                    operands: tuple[Any, ...] = (left, right)
                case tree.Subscript(base=base, index=index):
                    operands = (base, index)
                case tree.Assign(value=value):
                    operands = (value,)
                case tree.If(condition=condition) | tree.While(condition=condition):
                    operands = (condition,)
                case tree.Unary("*" | "-" | "+" | "!" | "~", operand):
                    operands = (operand,)
                case _:
                    continue
            yield from (each for each in operands if isinstance(each, tree.Name))

    def _declaration(self, node: tree.VariableDeclaration) -> _Use | None:
        if node.name == self.name:  # another variable, whose scope ends somewhere
            return _Use(False, node.span)
        return self._bound(node.type, node.initializer)

    def _bound(self, type: tree.TypeTree, initializer: Any) -> _Use | None:
        if isinstance(initializer, tree.InitializerList):
            return self._items(initializer.items, isinstance(type, tree.BuiltinType))
        if isinstance(type, tree.ReferenceType) and self._is_part(initializer):
            return _Use(False, initializer.span)
        return self.first(initializer)

    def _arguments(self, function: Any, arguments: tuple[Any, ...]) -> _Use | None:
        for place, argument in enumerate(arguments):
            plain = isinstance(function, tree.Name)
            if self._is_part(argument) and not (plain and self.by_value(function.text, place)):
                return _Use(False, argument.span)
            found = self.first(argument)
            if found is not None:
                return found
        return None

    def _items(self, items: tuple[Any, ...], by_value: bool) -> _Use | None:
        for one in items:
            if self._is_part(one) and not by_value:  # a reference may be bound to it
                return _Use(False, one.span)
            found = self.first(one)
            if found is not None:
                return found
        return None


def _in_first_iteration(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a loop evaluates in any case, and what it does if it begins an iteration."""
    match node:
        case tree.For(initializer, condition, update, body):
            return (initializer, condition), (body, update)
        case tree.While(condition, body):
            return (condition,), (body,)
        case tree.DoWhile(body, condition):
            return (body,), (condition,)
    return (node.range,), (node.variable, node.body)


def _unsure(use: _Use | None) -> _Use | None:
    return None if use is None else use._replace(sure=False)


def _may_jump(node: Any) -> bool:
    """Whether control may leave what follows a statement out."""
    if isinstance(node, _LOOPS):
        return any(isinstance(one, (tree.Return, tree.Goto)) for one in walk_tree(node))
    return any(isinstance(one, _JUMPS) for one in walk_tree(node))
