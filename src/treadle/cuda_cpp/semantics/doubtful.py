"""What a compiler warns of in a function, found without types: variables that are read before they
are set, and results that refer to variables which end with the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.semantics.jumps import cases_past_values
from treadle.cuda_cpp.semantics.returns import without_return
from treadle.cuda_cpp.semantics.unset import unset_reads
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree

_ON_DEVICES = frozenset(("device", "global"))
_LASTING = frozenset(("static", "shared", "extern", "constant", "device", "managed"))

Warning = tuple[str, Span]


def doubtful(
    unit: tree.TranslationUnit, is_built_in: Callable[[str], bool]
) -> Iterator[tuple[str, Span]]:
    """The warnings of a file, with their places: each message once for a place."""
    for name, span in without_return(unit.declarations):
        yield f"{name} may end without a return: the value of its call is undefined then", span
    yield from cases_past_values(unit.declarations, unit.file)
    functions = [one for one in _functions(unit.declarations) if _is_of_user(one, unit.file)]
    by_value = _ByValue(is_built_in, functions)
    for one in functions:
        if one.body is None or one.specifiers.isdisjoint(_ON_DEVICES):
            continue
        nodes = list(walk_tree(one.body))
        for name, span in unset_reads(nodes, by_value):
            yield f"{name} is read here, and nothing has set it", span
        yield from _slips(nodes)
        yield from _Results(one).found()


def _slips(nodes: list[Any]) -> Iterator[Warning]:
    """`if (a = 3)`, and an `if` whose body is the empty statement `;`."""
    for node in nodes:
        if isinstance(node, (tree.If, tree.While)):
            test = node.condition
            if isinstance(test, tree.Assign) and test.op == "=" and _is_literal(test.value):
                yield "this condition assigns (=) and is always the same: == compares", test.span
        if _compares_a_comparison(node):
            first, second = node.left.op, node.op
            meant = f"a {first} b {second} c is a {first} b && b {second} c"
            yield f"this compares the result of {first}, not what it compares: {meant}", node.span
        if isinstance(node, tree.If) and _is_empty(node.then) and node.otherwise is None:
            yield "this if ends with the ; behind its condition, and does nothing", node.span


_ORDERS = frozenset(("<", "<=", ">", ">="))


def _compares_a_comparison(node: Any) -> bool:
    return (
        isinstance(node, tree.Binary)
        and node.op in _ORDERS
        and isinstance(node.left, tree.Binary)
        and node.left.op in _ORDERS
    )


def _is_literal(node: Any) -> bool:
    return isinstance(node, (tree.IntegerLiteral, tree.FloatLiteral, tree.BoolLiteral))


def _is_empty(node: Any) -> bool:
    return isinstance(node, tree.Compound) and not node.body and not node.braces


def _is_of_user(one: tree.FunctionDeclaration, file: str) -> bool:
    return one.span.file == file or not one.span.file.startswith("<")


def _functions(declarations: tuple[tree.Declaration, ...]) -> Iterator[tree.FunctionDeclaration]:
    for one in declarations:
        if isinstance(one, tree.FunctionDeclaration):
            yield one
        elif isinstance(one, (tree.NamespaceDeclaration, tree.StructDeclaration)):
            yield from _functions(one.members)


class _ByValue:
    """Whether functions take arguments by value (`unset.ByValue`)."""

    def __init__(
        self, is_built_in: Callable[[str], bool], functions: list[tree.FunctionDeclaration]
    ) -> None:
        self._is_built_in = is_built_in
        self._known: dict[str, list[tree.FunctionDeclaration]] = {}
        for one in functions:
            self._known.setdefault(one.name.text, []).append(one)

    def __call__(self, name: str, place: int) -> bool:
        known = self._known.get(name)
        if known is None:
            return self._is_built_in(name) and name != "swap"
        return all(
            place < len(one.parameters)
            and not one.parameters[place].pack
            and isinstance(one.parameters[place].type, (tree.BuiltinType, tree.PointerType))
            for one in known
        )


# --- results -------------------------------------------------------------------------------------

_LOOPS = (tree.For, tree.While, tree.DoWhile, tree.RangeFor)
_OBJECT = 0
_Local = dict[str, int | None]
"""The dimensions of each local variable; None of one that lasts, or refers to something else."""


@dataclass(frozen=True, slots=True)
class _Results:
    """The results of a function that refer to its local variables."""

    function: tree.FunctionDeclaration

    def found(self) -> Iterator[Warning]:
        """Each, with its place."""
        if not isinstance(_plain(self.function.result), (tree.PointerType, tree.ReferenceType)):
            return
        local: _Local = {
            one.name: _OBJECT
            for one in self.function.parameters
            if isinstance(one.type, (tree.BuiltinType, tree.NamedType)) and not one.pack
        }
        yield from self._in(self.function.body, local)

    def _in(self, node: Any, local: _Local) -> Iterator[Warning]:
        if isinstance(node, tree.Return):
            yield from self._returned(node.value, local, node.span)
        elif isinstance(node, tree.DeclarationStatement):
            for one in node.declarations:
                if isinstance(one, tree.VariableDeclaration):
                    local[one.name] = _dimensions(one)
        elif isinstance(node, (*_LOOPS, tree.If, tree.Switch, tree.Compound)):
            inner = dict(local)
            for name in ("initializer", "variable", "body", "then", "otherwise"):
                part = getattr(node, name, None)
                if isinstance(part, tree.VariableDeclaration):
                    inner[part.name] = _dimensions(part)
                for one in part if isinstance(part, tuple) else (part,):
                    yield from self._in(one, inner)

    def _returned(self, value: Any, local: _Local, span: Span) -> Iterator[Warning]:
        name = self.function.name.text
        if isinstance(_plain(self.function.result), tree.ReferenceType):
            found = _local_variable(value, local)
            if found:
                what = f"{name} returns a reference to its variable {found}"
                yield f"{what}, which ends with the call: return a value instead", span
            return
        while isinstance(value, tree.Cast) and isinstance(_plain(value.type), tree.PointerType):
            value = value.operand
        if isinstance(value, tree.Unary) and value.op == "&":
            found = _local_variable(value.operand, local)
        else:
            is_array = isinstance(value, tree.Name) and not value.scope and local.get(value.text)
            found = value.text if is_array else ""
        if found:
            yield (
                f"{name} returns the address of its variable {found}, which ends with the call",
                span,
            )


def _plain(type: Any) -> Any:
    while isinstance(type, tree.ConstType):
        type = type.of
    return type


def _dimensions(one: tree.VariableDeclaration) -> int | None:
    type = _plain(one.type)
    if one.specifiers & _LASTING or isinstance(type, tree.ReferenceType):
        return None
    count = _OBJECT
    while isinstance(type, tree.ArrayType):
        type, count = _plain(type.of), count + 1
    return count


def _local_variable(value: Any, local: _Local) -> str:
    """The local variable that an lvalue is, or is a part of; "" for others."""
    subscripts = 0
    while isinstance(value, tree.Subscript) or (isinstance(value, tree.Member) and not value.arrow):
        subscripts += isinstance(value, tree.Subscript)
        value = value.base
    if not isinstance(value, tree.Name) or value.scope:
        return ""
    known = local.get(value.text)
    return value.text if known is not None and subscripts <= known else ""
