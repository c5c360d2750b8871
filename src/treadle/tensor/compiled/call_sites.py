"""Call sites in a function's source: how the time that a clock returns is used, and a call's
argument."""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

UNUSED, MEASURED, ENTERS = range(3)

# Functions that may take a time and change no tensor.
_FUNCTIONS = frozenset({"print", "round", "float", "int", "str", "repr", "format", "min", "max"})
_METHODS = frozenset({"debug", "error", "format", "info", "log", "warning", "write"})
_PUTTING = frozenset({"add", "append", "extend"})  # to a container from outside
_VALUES = (
    ast.BinOp, ast.UnaryOp, ast.FormattedValue, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict,
    ast.keyword, ast.Starred,
)  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _Text(NamedTuple):
    calls: dict[tuple[int, int, int, int], ast.Call]  # by their position
    parents: dict[ast.AST, ast.AST]


def use_of_time(code: types.CodeType, at: int) -> int:
    """The use of the time that the call at an offset in the bytecode returns: UNUSED, MEASURED
    (printed or stored), or ENTERS if it may enter the computation."""
    text, call = _call(code, at)
    if text is None or call is None:
        return ENTERS
    scope = _scope(call, text)
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return ENTERS
    shared = {name for each in ast.walk(scope) if isinstance(each, (ast.Global, ast.Nonlocal))
              for name in each.names}  # fmt: skip
    todo: list[ast.AST] = [call]
    names: set[str] = set()
    found = UNUSED
    while todo:
        use, made = _use(todo.pop(), scope, text)
        if use == ENTERS or shared.intersection(made):
            return ENTERS
        found = max(found, use)
        for name in made - names:
            names.add(name)
            todo += _loads(scope, name)
    return found


def first_argument(frame: types.FrameType, at: int) -> list[Any]:
    """The first argument of a call in a list, if it is a variable or an attribute of one; else
    []."""
    _, call = _call(frame.f_code, at)
    names: list[str] = []
    value = call.args[0] if call is not None and call.args else None
    while isinstance(value, ast.Attribute):
        names.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name):
        return []
    found: Any = frame.f_locals.get(value.id, frame.f_globals.get(value.id))
    for name in reversed(names):
        found = getattr(found, "__dict__", {}).get(name)
    return [] if found is None else [found]


def _call(code: types.CodeType, at: int) -> tuple[_Text | None, ast.Call | None]:
    """The source of a function's file, and the call in it at an offset of the bytecode."""
    text = _text(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    position = next(islice(code.co_positions(), at // 2, None), None)
    if text is None or position is None:
        return None, None
    return text, text.calls.get(position)  # type: ignore[arg-type]


def _use(value: ast.AST, scope: ast.AST, text: _Text) -> tuple[int, set[str]]:
    """The use of a value, and the variables that it is assigned to."""
    found, inner = UNUSED, value
    while True:
        outer = text.parents[inner]
        if isinstance(outer, ast.Expr):
            return found, set()
        if isinstance(outer, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = outer.targets if isinstance(outer, ast.Assign) else [outer.target]
            names = {name for each in targets for name in _names(each)}
            return (ENTERS, set()) if "" in names else (found, names)
        if isinstance(outer, ast.Call):
            if inner is outer.func or not _is_harmless(outer.func, scope):
                return ENTERS, set()
            found = MEASURED
        elif not isinstance(outer, _VALUES):
            return ENTERS, set()
        inner = outer


def _names(target: ast.AST) -> Iterator[str]:
    """The variables that are assigned; an empty name for another target."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _names(each)
    else:
        yield target.id if isinstance(target, ast.Name) else ""


def _is_harmless(function: ast.AST, scope: ast.AST) -> bool:
    if isinstance(function, ast.Name):
        return function.id in _FUNCTIONS
    if not isinstance(function, ast.Attribute):
        return False
    owner = function.value
    is_outside = isinstance(owner, ast.Name) and owner.id not in _own_names(scope)
    return function.attr in _METHODS or (function.attr in _PUTTING and is_outside)


def _own_names(scope: ast.AST) -> set[str]:
    """Arguments and variables of a function."""
    return {
        each.arg if isinstance(each, ast.arg) else each.id
        for each in ast.walk(scope)
        if isinstance(each, ast.arg)
        or (isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    }


def _loads(scope: ast.AST, name: str) -> Iterator[ast.AST]:
    for each in ast.walk(scope):
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
            yield each


def _scope(node: ast.AST, text: _Text) -> ast.AST | None:
    each: ast.AST | None = node
    while each is not None and not isinstance(each, _SCOPES):
        each = text.parents.get(each)
    return each


@lru_cache(32)
def _text(file: str, source: str) -> _Text | None:
    try:
        tree = ast.parse(source, file)
    except (SyntaxError, ValueError):
        return None
    calls: dict[tuple[int, int, int, int], ast.Call] = {}
    parents: dict[ast.AST, ast.AST] = {}
    for each in ast.walk(tree):
        for inner in ast.iter_child_nodes(each):
            parents[inner] = each
        if isinstance(each, ast.Call) and each.end_lineno is not None:
            place = (each.lineno, each.end_lineno, each.col_offset, each.end_col_offset or 0)
            calls[place] = each
    return _Text(calls, parents)
