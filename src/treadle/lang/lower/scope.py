"""The scope of each local name of a function, found before the function is lowered.

IR variables live until the end of their block, Python's until the end of the function. A name
belongs to the smallest body (of an if, a loop, the function) that contains all its uses; the
lowering declares it there. A loop variable that is only used inside loops over it belongs to each
loop separately.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Body = int  # id() of the list of statements


@dataclass
class Use:
    """One occurrence of a name."""

    bodies: tuple[Body, ...]  # from the function's body inwards
    store: bool
    loops: tuple[int, ...]  # id() of the for loops around it that have this name as target


@dataclass
class Scope:
    """The local names of a function. `owner` is the body that a name belongs to."""

    owner: dict[str, Body] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)  # how many statements assign it
    partly: set[str] = field(default_factory=set)  # names that maybe only some paths assign
    private_loops: set[str] = field(default_factory=set)  # names that are loop variables only
    assigned_in: dict[int, set[str]] = field(default_factory=dict)  # id(for) -> names assigned


def analyze(function: ast.FunctionDef) -> Scope:
    """The scope of a function's local names (parameters included)."""
    uses: dict[str, list[Use]] = {}
    scope = Scope()
    top = (id(function.body),)
    arguments = function.args
    for argument in arguments.posonlyargs + arguments.args + arguments.kwonlyargs:
        uses.setdefault(argument.arg, []).append(Use(top, True, ()))
    _visit_body(function.body, (), {}, uses, scope)
    for name, found in uses.items():
        stores = [use for use in found if use.store]
        if not stores:
            continue
        scope.stores[name] = len(stores)
        scope.owner[name] = _common(found)
        if stores[0].bodies[-1] != scope.owner[name]:
            scope.partly.add(name)
        # A store by a for loop has that loop itself among its `loops`.
        if all(use.loops for use in found):
            scope.private_loops.add(name)
    return scope


def _common(uses: list[Use]) -> Body:
    first = uses[0].bodies
    depth = len(first)
    for use in uses[1:]:
        depth = min(depth, len(use.bodies))
        while use.bodies[:depth] != first[:depth]:
            depth -= 1
    return first[depth - 1]


def _visit_body(
    body: list[ast.stmt],
    outer: tuple[Body, ...],
    targets: dict[str, tuple[int, ...]],
    uses: dict[str, list[Use]],
    scope: Scope,
) -> set[str]:
    """Record the uses in a body; returns the names assigned in it."""
    here = (*outer, id(body))
    assigned: set[str] = set()

    def record(node: ast.AST, bodies: tuple[Body, ...], inside: dict[str, tuple[int, ...]]) -> None:
        for name in _names(node):
            store = isinstance(name.ctx, ast.Store)
            # Assigned in the body of its own loop, it is not only a loop variable.
            loops = () if store else inside.get(name.id, ())
            uses.setdefault(name.id, []).append(Use(bodies, store, loops))
            if store:
                assigned.add(name.id)

    for statement in body:
        if isinstance(statement, (ast.For, ast.AsyncFor)):
            record(statement.iter, here, targets)
            inside = dict(targets)
            loop_names = set()
            for name in _names(statement.target):
                inside[name.id] = (*inside.get(name.id, ()), id(statement))
                uses.setdefault(name.id, []).append(
                    Use((*here, id(statement.body)), True, inside[name.id])
                )
                loop_names.add(name.id)
            inner = _visit_body(statement.body, here, inside, uses, scope)
            scope.assigned_in[id(statement)] = inner
            assigned |= inner | loop_names
            assigned |= _visit_body(statement.orelse, here, targets, uses, scope)
        elif isinstance(statement, (ast.While, ast.If)):
            record(statement.test, here, targets)
            assigned |= _visit_body(statement.body, here, targets, uses, scope)
            assigned |= _visit_body(statement.orelse, here, targets, uses, scope)
        else:
            record(statement, here, targets)
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                uses[statement.target.id].append(Use(here, False, ()))
    return assigned


def _names(node: ast.AST) -> Iterator[ast.Name]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each
