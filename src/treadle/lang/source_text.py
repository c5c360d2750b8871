"""The text that a function was compiled from, even if its file has been edited since.

A file is read when a decorator is applied. Before its text is used it is compiled, and must contain
the function's code. So a kernel is the function that Python itself would run, or it is refused.
"""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import linecache
import os
import textwrap
import warnings
from collections.abc import Hashable, Iterator
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(_HERE) + os.sep

# The lines of functions' files when they were decorated.
_remembered: WeakKeyDictionary[FunctionType, list[str]] = WeakKeyDictionary()


def remember(function: FunctionType) -> None:
    """Keep the current text of a function's file. Called when the function is decorated."""
    if not _is_ours(function.__code__):
        _remembered[function] = current_lines(function)


def current_lines(function: FunctionType) -> list[str]:
    """The current lines of a function's file or cell; none if there is no text."""
    file = function.__code__.co_filename
    refresh(file)
    return linecache.getlines(file, function.__globals__)


def refresh(file: str) -> None:
    """Make `linecache` read an edited file again. Its entries of cells and of deleted files
    stay."""
    entry = linecache.cache.get(file)
    if entry is not None and len(entry) == 4 and entry[1] is not None and os.path.isfile(entry[3]):
        linecache.checkcache(file)


def places_of(function: FunctionType) -> Iterator[tuple[list[str], int]]:
    """The places of the function's text: the lines of a file, and its first line counted from 0.
    None if there is no text that the function's code may come from."""
    code = function.__code__
    first = code.co_firstlineno - 1
    candidates = [_remembered.get(function), current_lines(function)]
    if _is_ours(code):  # the package is not edited, and comparing takes time
        yield current_lines(function), first
        return
    for lines in candidates:
        found = None if not lines else first_line_of(code, "".join(lines))
        if lines and found is not None:
            yield lines, found
    if _may_be_rewritten(function):
        for lines in candidates:
            if lines and _resembles(code, "".join(lines)):
                yield lines, first


def first_line_of(code: CodeType, text: str) -> int | None:
    """The line, from 0, at which a text defines a function with this code, or None. Of several
    equal ones, the nearest to the line number in the code."""
    wanted = _contents(code)
    flags = code.co_flags & __future__.annotations.compiler_flag
    # If another part of the file cannot be parsed at the moment, compile the function by itself.
    codes = _codes(text, flags) or _codes(_isolated(code, text), flags)
    lines = [
        each.co_firstlineno
        for each in codes
        if each.co_name == code.co_name and _contents(each) == wanted
    ]
    return min(lines, key=lambda line: abs(line - code.co_firstlineno)) - 1 if lines else None


def _isolated(code: CodeType, text: str) -> str:
    """The function at the code's line, without the rest of the file: on the same line, inside a
    function that defines its free names."""
    lines = text.splitlines(keepends=True)[code.co_firstlineno - 1 :]
    try:
        block = textwrap.dedent("".join(inspect.getblock(lines)))
    except (SyntaxError, IndexError):  # no function begins there
        return ""
    if code.co_freevars:
        block = f"def around({', '.join(code.co_freevars)}):\n" + textwrap.indent(block, "    ")
    return "\n" * (code.co_firstlineno - 1 - len(code.co_freevars[:1])) + block


@lru_cache(maxsize=16)
def _codes(text: str, flags: int) -> tuple[CodeType, ...]:
    """The code of every function in a text; nothing if it is not Python."""
    try:
        # Notebook cells may use await outside of functions.
        flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        with warnings.catch_warnings(action="ignore"):  # Python has shown them already
            todo = [compile(text, "<compared>", "exec", flags, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = []
    while todo:
        code = todo.pop()
        found.append(code)
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return tuple(found)


def _contents(code: CodeType) -> Hashable:
    """Everything that determines the behaviour of a code object, without line numbers."""
    return (
        code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount,
        code.co_varnames, code.co_freevars, code.co_cellvars, tuple(_steps(code)),
    )  # fmt: skip


def _steps(code: CodeType) -> Iterator[Hashable]:
    """The instructions, without what depends on the rest of the file: a call of an attribute
    compiles differently if the name is imported in the same text."""
    kept: list[dis.Instruction] = []
    places: dict[int, int] = {}  # in bytes: in instructions that are kept
    for each in dis.get_instructions(code):
        places[each.offset] = len(kept)
        if each.opname not in _PREPARATIONS:
            kept.append(each)
    for each in kept:
        jumps = each.opcode in dis.hasjrel or each.opcode in dis.hasjabs
        what = places.get(each.argval) if jumps else _constant(each.argval)
        yield _ONE_MEANING.get(each.opname, each.opname), what


_PREPARATIONS = frozenset({"PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "CACHE"})
_ONE_MEANING = {"LOAD_METHOD": "LOAD_ATTR"}


def _constant(value: Any) -> Hashable:
    if isinstance(value, CodeType):
        return _contents(value)
    if isinstance(value, tuple):
        return tuple(map(_constant, value))
    if isinstance(value, frozenset):
        return frozenset(map(_constant, value))
    return type(value), repr(value)


def _may_be_rewritten(function: FunctionType) -> bool:
    """Whether code is rewritten before it is compiled, by an import hook (as pytest does for
    assert) or by the shell that a cell was typed into."""
    loader = function.__globals__.get("__loader__")
    from_file = os.path.isfile(function.__code__.co_filename)
    return not from_file or (loader is not None and type(loader) is not SourceFileLoader)


def _resembles(code: CodeType, text: str) -> bool:
    """Whether a code object may be a rewritten function of a text, because it uses its names. (Text
    that is not Python, such as a cell with shell commands, can't be compared.)"""
    codes = _codes(text, 0)
    used = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    return not codes or any(
        each.co_name == code.co_name
        and each.co_firstlineno == code.co_firstlineno
        and each.co_argcount == code.co_argcount
        and used.issuperset(
            (*each.co_names, *each.co_varnames, *each.co_freevars, *each.co_cellvars)
        )
        for each in codes
    )


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(_PACKAGE)
