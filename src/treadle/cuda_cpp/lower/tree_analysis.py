"""Analyses of syntax trees: names that are assigned to or reachable, and volatile memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.lower.context import Context
from treadle.cuda_cpp.lower.names import lookup
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    ChoiceLvalue,
    Lvalue,
    MemoryTarget,
    PointerValue,
    PointerVariable,
    ScatteredLvalue,
    Target,
)
from treadle.cuda_cpp.semantics.scopes import Functions
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir.traverse import root_of


def assigned_names(cx: Context, declaration: tree.FunctionDeclaration) -> frozenset[str]:
    """The names that a body may assign to: by assignment or ++, through their address, or as an
    argument of a function, which may take a reference."""
    memo = cx.lowering.facts.assigned_names
    found = memo.get(id(declaration))
    if found is None:
        found = memo[id(declaration)] = changed_names(cx, declaration.body)
    return found


def changed_names(cx: Context, body: Any) -> frozenset[str]:
    """The names that a tree may assign to."""
    found: set[str] = set()
    for node in walk_tree(body):
        match node:
            case tree.Assign(target=target) | tree.Postfix(operand=target):
                found.add(_root_name(target))
            case tree.Unary("++" | "--" | "&", operand):
                found.add(_root_name(operand))
            case tree.Call(function=function, arguments=arguments):
                for place, argument in enumerate(arguments):
                    if isinstance(argument, tree.Name) and _takes_reference(cx, function, place):
                        found.add(argument.text)
                if isinstance(function, tree.Binary):  # (object.*function)(…)
                    found.add(_root_name(function))
                elif isinstance(function, tree.Member):
                    found.add(_root_name(function.base))
                elif isinstance(function, tree.Name):  # an object whose operator() may change it
                    found.add(function.text)
            case tree.Capture(by_reference=True, initializer=tree.Name(text=name)):
                found.add(name)
            case tree.VariableDeclaration(type=type, initializer=tree.Name(text=name)) if (
                isinstance(type, tree.ReferenceType)
            ):
                found.add(name)
    return frozenset(found)


CHANGING = frozenset({"swap"})  # built-in functions that take references


def _takes_reference(cx: Context, function: Any, place: int) -> bool:
    """Whether a function may take a reference to its argument."""
    if not isinstance(function, tree.Name):
        return True
    if any(part.arguments is not None for part in function.scope):
        return True  # X<T>::f, whose T may be a parameter of a template around the tree
    entity = lookup(cx, function)
    if entity is None:  # T::f may be any function
        of_library = not function.scope or function.scope[0].text == "std"
        return function.text in CHANGING or not of_library
    if not isinstance(entity, Functions):
        return True
    for one in entity.overloads:
        parameters = one.declaration.parameters
        if place < len(parameters) and isinstance(parameters[place].type, tree.ReferenceType):
            return True
    return False


def _root_name(expression: Any) -> str:
    """The variable that an lvalue is a part of; "" if it is accessed through a pointer."""
    while True:
        if isinstance(expression, tree.Member) and not expression.arrow:
            expression = expression.base
        elif isinstance(expression, tree.Binary) and expression.op == ".*":
            expression = expression.left
        else:
            break
    return expression.text if isinstance(expression, tree.Name) else ""


# --- reachable names -----------------------------------------------------------------------------


class Reachable:
    """The names that declarations of a file use, transitively.

    Names are not looked up, so the result may be too large (a local variable with the name of one
    of the file), but never too small.
    """

    def __init__(self, unit: tree.TranslationUnit) -> None:
        self._declared: dict[str, list[tree.Declaration]] = {}
        self._names: dict[int, frozenset[str]] = {}
        for one in unit.declarations:
            self._add(one)

    def _add(self, one: tree.Declaration) -> None:
        match one:
            case tree.NamespaceDeclaration(members=members):
                for member in members:
                    self._add(member)
            case tree.FunctionDeclaration(name=name):
                known = name.text if not name.text.startswith("operator") else ""
                self._declared.setdefault(known, []).append(one)
                if name.scope:  # a method, which is used with its class
                    self._declared.setdefault(name.scope[-1].text, []).append(one)
            case tree.StructDeclaration(name=name):
                self._declared.setdefault(name, []).append(one)
            case tree.VariableDeclaration(name=name) | tree.TypedefDeclaration(name=name):
                self._declared.setdefault(name, []).append(one)

    def names_from(
        self, declaration: tree.Declaration, arguments: Sequence[tree.TemplateArgument] = ()
    ) -> frozenset[str]:
        """The names that a declaration may use; a template with these arguments. Operators count as
        used everywhere."""
        seen: set[str] = set()
        waiting = [declaration, *self._declared.get("", ())]
        for argument in arguments:  # such as a function, or a class with operator()
            for node in walk_tree(argument):
                if isinstance(node, tree.Name):
                    seen.add(node.text)
                    waiting.extend(self._declared.get(node.text, ()))
        done: set[int] = set()
        while waiting:
            one = waiting.pop()
            if id(one) in done:
                continue
            done.add(id(one))
            for name in self._names_in(one):
                if name not in seen:
                    seen.add(name)
                    waiting.extend(self._declared.get(name, ()))
        return frozenset(seen)

    def _names_in(self, one: Any) -> frozenset[str]:
        found = self._names.get(id(one))
        if found is None:
            found = frozenset(node.text for node in walk_tree(one) if isinstance(node, tree.Name))
            self._names[id(one)] = found
        return found


# --- volatile ------------------------------------------------------------------------------------


def note_volatile(cx: Context, written: Any, value: Any) -> None:
    """Record the memory that a variable or cast of a volatile type accesses."""
    if not _is_volatile(written):
        return
    for target in _targets(cx, value):
        if isinstance(target, MemoryTarget) and target.space == "shared":
            cx.lowering.volatile.add(target.memory)


def _is_volatile(written: Any) -> bool:
    while isinstance(
        written, (tree.ConstType, tree.PointerType, tree.ReferenceType, tree.ArrayType)
    ):
        if isinstance(written, tree.ConstType):
            if written.volatile:
                return True
            written = written.of
        elif isinstance(written, tree.ArrayType):
            written = written.of
        else:
            written = written.to
    return False


def _targets(cx: Context, value: Any) -> list[Target]:
    match value:
        case PointerVariable(key=key):
            return list(cx.lowering.facts.targets.get(key, ()))
        case PointerValue(targets=targets):
            return list(targets)
        case ArrayValue(first=first):
            return list(first.targets)
        case ScatteredLvalue(target=target):
            return [target]
        case ChoiceLvalue(choices=choices):
            return [one for choice in choices for one in _targets(cx, choice)]
        case Lvalue(place=place):
            root = root_of(place)
            known = cx.lowering.memory_targets
            if isinstance(root, n.Element) and root.memory in known:
                return [known[root.memory]]
    return []
