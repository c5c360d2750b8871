"""The devices of tensors that a function can reach from its variables, before it runs.

A function that uses such tensors can only run where they are. Names in bytecode are followed, as
the guards of a trace do later, but without running anything: globals, closures, defaults, bound
objects, and the functions and classes that these lead to. It may find more than the function uses.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from treadle.runtime.devices import Device
from treadle.tensor.compiled.code_origin import is_library_class, is_library_module
from treadle.tensor.tensor import Tensor

_MOST = 20_000  # objects that are looked at
# Packages of this library whose objects hold tensors.
_HOLDERS = ("treadle.nn", "treadle.optim")
_CLOSED = (
    str, bytes, int, float, complex, np.ndarray, np.generic, np.dtype, type(None),
    types.BuiltinFunctionType, types.CodeType, Device,
)  # fmt: skip


def devices_around(function: Any, values: Iterable[Any]) -> list[Device]:
    """The devices of the tensors that a function can reach from its variables and from objects that
    it is called with, those of the nearest tensors first."""
    found: dict[Device, None] = {}
    todo, seen, names = deque([function, *values]), set[int](), set[str]()
    modules: list[types.ModuleType] = []
    while todo and len(seen) < _MOST:
        value = todo.popleft()
        try:
            if isinstance(value, Tensor):
                found[value.device] = None
            elif isinstance(value, types.ModuleType):
                if not is_library_module(value.__name__):
                    modules.append(value)
            elif id(value) not in seen and not isinstance(value, _CLOSED):
                seen.add(id(value))
                todo.extend(_parts(value, names))
        except Exception:  # noqa: BLE001  a user's object (a proxy) refuses to be looked at
            continue
        if not todo and modules:  # all names are known now
            for module in modules:
                own = vars(module)
                todo.extend(own[name] for name in names if name in own)
            modules.clear()
    return list(found)


def _parts(value: Any, names: set[str]) -> Iterator[Any]:
    """What a value leads to."""
    if isinstance(value, types.FunctionType):
        if not is_library_module(value.__module__):
            yield from _variables(value, names)
    elif isinstance(value, (types.MethodType, classmethod, staticmethod)):
        yield from (getattr(value, "__self__", None), value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, property):
        yield from (value.fget, value.fset)
    elif isinstance(value, dict):
        yield from list(value.values())
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from list(value)
    elif isinstance(value, type):
        if not is_library_class(value):
            yield from list(vars(value).values())
            yield from value.__mro__[1:]
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[Any]:
    """The attributes of an object, and its class. Objects of libraries are not looked into."""
    kind = type(value)
    inside = getattr(kind, "_traced_inside", None)  # of a compiled function
    if inside is not None:
        yield getattr(value, inside)
        return
    if is_library_class(kind) and not kind.__module__.startswith(_HOLDERS):
        return
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        yield from list(own.values())
    for each in kind.__mro__:
        for slot in list(vars(each).values()):
            if isinstance(slot, types.MemberDescriptorType) and slot.__name__ != "__dict__":
                try:
                    yield slot.__get__(value, kind)
                except AttributeError:  # it is not set
                    continue
    yield kind


def _variables(function: types.FunctionType, names: set[str]) -> Iterator[Any]:
    """The values of a function's globals, closure and defaults."""
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
        yield from (
            function.__globals__[name] for name in code.co_names if name in function.__globals__
        )
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not set yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped
