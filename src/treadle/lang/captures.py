"""The values that a kernel captures from outside, as constants whose change recompiles it.

A kernel and the functions that it calls read global names, names of enclosing functions, and
attributes of modules and objects. Their current values are a part of the key of compiled code. At
every launch they are read again and compared by identity; only a change makes a new key.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from treadle.lang.source import source_of

MISSING: Any = object()
MOST_CONSTANTS = 1024  # elements of a NumPy array that is captured
_PACKAGE = str(Path(__file__).parents[1]) + os.sep


@dataclass(frozen=True, slots=True)
class Capture:
    """A name of a function, and the attributes read from it (`config.size`)."""

    function: FunctionType
    name: str
    attributes: tuple[str, ...]

    def read(self) -> Any:
        """Its current value, or MISSING."""
        value = read_name(self.function, self.name)
        for attribute in self.attributes:
            value = getattr(value, attribute, MISSING)
        return value


def read_name(function: FunctionType, name: str) -> Any:
    """The current value of a free name of a function: from its closure, globals or builtins."""
    code = function.__code__
    if name in code.co_freevars and function.__closure__ is not None:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, MISSING)


def is_library(value: Any) -> bool:
    """Whether an object is a module of this package, whose names do not change. (A user's name for
    an object in it, as `kind` for `td.f32`, may be assigned again like any other.)"""
    return isinstance(value, ModuleType) and value.__name__.split(".")[0] == "treadle"


def captures_of(function: FunctionType, tree: ast.FunctionDef) -> tuple[Capture, ...]:
    """The names from outside that a function's body reads, except the package's own."""
    local = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    }
    arguments = tree.args
    local |= {a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs}
    found: dict[tuple[str, tuple[str, ...]], None] = {}
    inside: set[ast.AST] = set()
    for statement in tree.body:
        for node in ast.walk(statement):
            if node in inside:
                continue
            if isinstance(node, (ast.Name, ast.Attribute)):
                chain = _chain(node, inside)
                if chain is not None and chain[0] not in local:
                    found[chain] = None
    result = []
    for name, attributes in found:
        root = read_name(function, name)
        # An undefined name is a capture too: a later cell may define it.
        known = root is not MISSING and getattr(builtins, name, MISSING) is root
        if known or is_library(root):
            continue
        result.append(Capture(function, name, _useful(root, attributes)))
    return tuple(dict.fromkeys(result))


def _chain(node: ast.AST, inside: set[ast.AST]) -> tuple[str, tuple[str, ...]] | None:
    """The root name and the attributes of `a.b.c`."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
        inside.add(node)
    return (node.id, tuple(attributes)) if isinstance(node, ast.Name) else None


def _useful(root: Any, attributes: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes up to the first value that is a number, tuple or string."""
    value = root
    for count, attribute in enumerate(attributes):
        if isinstance(value, (bool, int, float, np.generic, tuple, str)):
            return attributes[:count]
        value = getattr(value, attribute, MISSING)
        if value is MISSING:
            return attributes[: count + 1]
    return attributes


class CaptureSet:
    """The captures of a function and of those that it calls, and the key of their current
    values."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._codes: tuple[tuple[FunctionType, CodeType], ...] = ()
        self._edits = 0  # how often a reloader replaced the code of one of the functions
        self._captures: tuple[Capture, ...] | None = None
        self._values: tuple[Any, ...] = ()
        self._arrays: tuple[tuple[np.ndarray[Any, Any], bytes], ...] = ()  # and their contents
        self._key: Hashable = ()
        self._fixed = False  # whether they never change

    def key(self) -> Hashable:
        """The current values, as a part of the key of compiled code."""
        if self._fixed:
            return self._key
        for function, code in self._codes:
            if function.__code__ is not code:
                self._edits += 1
                return self._renew()
        if not self._captures:
            return self._key if self._captures is not None else self._renew()
        for capture, last in zip(self._captures, self._values, strict=True):
            if capture.read() is not last:
                return self._renew()
        for array, content in self._arrays:
            if array.tobytes() != content:
                return self._renew()
        return self._key

    def identity(self) -> str | None:
        """A text that is equal in each process for the same function of this package with the same
        values; None for a user's function, and where a value has no such text."""
        key = self.key()
        if not self._fixed:
            return None
        function = self._function
        texts = [f"{function.__module__}.{function.__qualname__}"]
        for entry in key:  # type: ignore[attr-defined]
            text = _text(entry)
            if text is None:
                return None
            texts.append(text)
        return "\n".join(texts)

    def _renew(self) -> Hashable:
        functions: dict[FunctionType, None] = {}
        captures = tuple(dict.fromkeys(_transitive(self._function, functions)))
        self._values = tuple(capture.read() for capture in captures)
        self._captures = captures
        self._arrays = tuple(
            (value, value.tobytes()) for value in self._values if _is_constant_array(value)
        )
        self._codes = tuple((each, each.__code__) for each in functions)
        self._fixed = all(map(_is_ours, functions))
        self._key = (
            *((self._edits,) if self._edits else ()),
            *(
                (capture.name, *capture.attributes, _key(value))
                for capture, value in zip(captures, self._values, strict=True)
            ),
        )
        return self._key


def _is_constant_array(value: Any) -> bool:
    """Whether a value is an array whose elements are constants of a kernel."""
    return isinstance(value, np.ndarray) and value.size <= MOST_CONSTANTS


def _is_ours(function: FunctionType) -> bool:
    """Whether a function belongs to this package, whose names never change. (A docstring's example
    has the name of its module, but not its file.)"""
    is_named = (function.__module__ or "").split(".")[0] == "treadle"
    return is_named and function.__code__.co_filename.startswith(_PACKAGE)


def _transitive(function: FunctionType, seen: dict[FunctionType, None]) -> Iterator[Capture]:
    if function in seen:
        return
    seen[function] = None
    for capture in captures_of(function, source_of(function).tree):
        yield capture
        value = capture.read()
        inner = getattr(value, "__wrapped_function__", None)
        if isinstance(inner, FunctionType):
            yield from _transitive(inner, seen)


def _text(value: Any) -> str | None:
    """A value of a key as a text that depends on no address of this process."""
    if type(value) is tuple:
        texts = [_text(each) for each in value]
        known = [each for each in texts if each is not None]
        return f"({', '.join(known)})" if len(known) == len(texts) else None
    inner = getattr(value, "__wrapped_function__", None)  # its own captures are in the key, too
    if isinstance(inner, FunctionType) and _is_ours(inner):
        return f"{inner.__module__}.{inner.__qualname__}"
    text = repr(value)
    return None if " at 0x" in text else text


def _key(value: Any) -> Hashable:
    """A value as a part of a key, in which 1, 1.0 and True differ."""
    if isinstance(value, float):
        return (type(value).__name__, value.hex())
    if isinstance(value, np.generic):
        return (str(value.dtype), repr(value))
    if isinstance(value, tuple):
        return tuple(_key(item) for item in value)
    if isinstance(value, (bool, int, str)):
        return (type(value).__name__, value)
    if _is_constant_array(value):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, Hashable):
        return value
    return id(value)
