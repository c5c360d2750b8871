"""Jumps past initializations, which C++ forbids ([stmt.dcl]): a `goto`, a case or a default from
where a variable is not in scope to where it is, and has a value. Of cases nvcc only warns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.semantics.malformed import is_of_user
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree

_LASTING = frozenset(("static", "shared", "extern", "constant", "device", "managed"))

_Set = tuple[tree.VariableDeclaration | tree.StructuredBinding, ...]  # those in scope with a value


def gotos_past_values(
    declarations: tuple[tree.Declaration, ...], file: str, words: set[str]
) -> Iterator[CompileError]:
    """An error for each `goto` of the user's functions. `words` are all words of the file."""
    if "goto" in words:
        for function in _functions(declarations, file):
            yield from (CompileError(*one) for one in function.wrong_gotos())


def cases_past_values(
    declarations: tuple[tree.Declaration, ...], file: str
) -> Iterator[tuple[str, Span]]:
    """A warning for each case and default."""
    for function in _functions(declarations, file):
        yield from function.wrong_cases


def _functions(declarations: tuple[tree.Declaration, ...], file: str) -> Iterator[_Function]:
    """The user's functions that jump."""
    constructed: frozenset[str] | None = None
    for one in declarations:
        if not is_of_user(one, file):
            continue
        nodes = list(walk_tree(one))
        if not any(isinstance(node, (tree.Goto, tree.Case, tree.Default)) for node in nodes):
            continue
        if constructed is None:
            constructed = _classes_with_constructors(declarations)
        for node in nodes:
            if isinstance(node, tree.FunctionDeclaration) and node.body is not None:
                function = _Function(constructed)
                function.statement(node.body, ())
                yield function


def _classes_with_constructors(declarations: tuple[tree.Declaration, ...]) -> frozenset[str]:
    """The classes whose default constructor does something, of which each name has one."""
    found: dict[str, bool] = {}
    for node in walk_tree(declarations):
        if isinstance(node, tree.TypedefDeclaration):
            found[node.name] = False
        elif isinstance(node, tree.StructDeclaration) and node.name and node.complete:
            acts = any(_sets_something(member, node.name) for member in node.members)
            found[node.name] = acts and node.name not in found and node.specialized is None
    return frozenset(name for name, acts in found.items() if acts)


def _sets_something(member: tree.Declaration, owner: str) -> bool:
    if isinstance(member, tree.FunctionDeclaration):
        of_class = member.result is None and member.name.text == owner
        return of_class and (member.body is not None or not member.note)
    return (
        isinstance(member, tree.VariableDeclaration)
        and member.initializer is not None
        and member.specifiers.isdisjoint(_LASTING)
    )


@dataclass(slots=True)
class _Function:
    """The jumps and labels of a function, each with the variables in scope."""

    constructed: frozenset[str]
    labels: dict[str, _Set] = field(default_factory=dict)
    jumps: list[tuple[str, _Set, Span]] = field(default_factory=list)
    wrong_cases: list[tuple[str, Span]] = field(default_factory=list)

    def wrong_gotos(self) -> Iterator[tuple[str, Span]]:
        for label, known, span in self.jumps:
            past = _first_new(self.labels.get(label, ()), known)
            if past is not None:
                yield (
                    f"goto {label} jumps past {_value_of(past)}: declare it before the goto, or "
                    "put it with all that uses it into braces",
                    span,
                )

    def block(self, body: Sequence[tree.Statement], known: _Set, switch: _Set | None) -> _Set:
        for one in body:
            known = self.statement(one, known, switch)
        return known

    def statement(self, node: Any, known: _Set, switch: _Set | None = None) -> _Set:
        """Walk a statement; the variables in scope behind it. `switch` are those in scope at the
        switch around it."""
        match node:
            case tree.DeclarationStatement(declarations=declarations):
                variables = [
                    one for one in declarations if isinstance(one, tree.VariableDeclaration)
                ]
                return known + tuple(filter(self._has_value, variables))
            case tree.StructuredBinding():
                return (*known, node)
            case tree.Compound(body=body, braces=braces):
                inner = self.block(body, known, switch)
                return known if braces else inner
            case tree.Label(name=name):
                self.labels[name] = known
            case tree.Goto(label=label, span=span):
                self.jumps.append((label, known, span))
            case tree.Case() | tree.Default() if switch is not None:
                self._case(node, known, switch)
            case tree.Switch(initializer=first, body=body):
                inner = self._with_head((first, node.condition), known, switch)
                self.statement(body, inner, inner)
            case tree.If(initializer=first, condition=condition, then=then, otherwise=other):
                inner = self._with_head((first, condition), known, switch)
                self.statement(then, inner, switch)
                self.statement(other, inner, switch)
            case tree.For(initializer=first, body=body):
                self.statement(body, self._with_head((first, node.condition), known, None), switch)
            case tree.While(condition=condition, body=body):
                self.statement(body, self._with_head((condition,), known, None), switch)
            case tree.DoWhile(body=body):
                self.statement(body, known, switch)
            case tree.RangeFor(variable=variable, body=body):
                self.statement(body, (*known, variable), switch)
        return known

    def _with_head(self, parts: Sequence[Any], known: _Set, switch: _Set | None) -> _Set:
        for one in parts:
            if isinstance(one, tree.VariableDeclaration):
                known = (*known, one)
            elif one is not None:
                known = self.statement(one, known, switch)
        return known

    def _case(self, node: tree.Case | tree.Default, known: _Set, switch: _Set) -> None:
        past = _first_new(known, switch)
        if past is not None:
            label = "default" if isinstance(node, tree.Default) else "case"
            self.wrong_cases.append(
                (
                    f"this {label} jumps past {_value_of(past)}: put the statements of the case "
                    "that declares it into braces, or declare it before the switch",
                    node.span,
                )
            )

    def _has_value(self, one: tree.VariableDeclaration) -> bool:
        if one.specifiers & _LASTING:
            return False
        type: Any = one.type
        while isinstance(type, (tree.ConstType, tree.ArrayType)):
            type = type.of
        return one.initializer is not None or (
            isinstance(type, tree.NamedType)
            and not type.name.scope
            and type.name.text in self.constructed
        )


def _first_new(there: _Set, here: _Set) -> Any:
    """The first variable in scope there which is not in scope here."""
    return next((one for one in there if not any(one is each for each in here)), None)


def _value_of(one: Any) -> str:
    names = one.names if isinstance(one, tree.StructuredBinding) else (one.name,)
    return f"the initialization of {', '.join(names)} in line {one.span.line}"
