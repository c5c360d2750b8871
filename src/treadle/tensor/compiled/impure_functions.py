"""Impure functions, which may return another value at each call: in a replay a traced value is
stale.

They are recognized as objects when they are called (`call_events.py`), not by name: `exists` of
`pathlib` calls `os.stat`, and another method named `stat` may not. If C code calls them
(`map(os.stat, names)`), there is no event for the call, so it counts that the code reads them.
"""

from __future__ import annotations

import io
import os
import random
import types
from datetime import date
from typing import Any

import numpy as np

OTHER_VALUE = "which gives another value each time"
_NEW_OBJECTS = "which is another number for each new object"

# Objects whose state advances when they are used.
OBJECTS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
# Methods that set their state and return nothing of it.
_SETTING = frozenset({"seed", "set_state"})

CLOCKS = frozenset(
    {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
     "process_time_ns", "thread_time", "thread_time_ns", "time", "time_ns"}
)  # fmt: skip
_OF_SYSTEM = frozenset(
    {"access", "getcwd", "getloadavg", "getpid", "getppid", "getrandom", "listdir", "lstat",
     "open", "read", "readlink", "scandir", "stat", "statvfs", "times", "urandom"}
)  # fmt: skip
_OF_MODULES = {
    "builtins": frozenset({"id", "input"}),
    "io": frozenset({"open", "open_code"}), "_io": frozenset({"open", "open_code"}),
    **dict.fromkeys(("posix", "nt"), _OF_SYSTEM),
    "time": CLOCKS | {"asctime", "clock_gettime", "clock_gettime_ns", "ctime", "gmtime",
                     "localtime", "strftime"},
    "_uuid": frozenset({"generate_time_safe", "UuidCreate"}),
    "_posixsubprocess": frozenset({"fork_exec"}), "_winapi": frozenset({"CreateProcess"}),
}  # fmt: skip
_OF_OBJECTS: tuple[tuple[type, frozenset[str]], ...] = (
    (random.Random, frozenset({"random", "getrandbits", "getstate", "seed"})),
    (io.IOBase, frozenset({"read", "read1", "readall", "readinto", "readline", "readlines"})),
    (os.DirEntry, frozenset({"is_dir", "is_file", "is_symlink", "stat"})),
)
_OF_DATES = frozenset({"now", "today", "utcnow"})
# The public names of modules.
_CALLED = {
    "builtins": "", "io": "", "_io": "", "posix": "os", "nt": "os", "genericpath": "os.path",
    "posixpath": "os.path", "ntpath": "os.path",
}  # fmt: skip

NAMES = frozenset.union(
    _OF_DATES, *_OF_MODULES.values(), *(names for _, names in _OF_OBJECTS)
)  # for a fast test
_BUILTIN = types.BuiltinFunctionType


def impurity_of(function: Any, owner: Any = None) -> str:
    """A description of why a C function, or a method with its object, is impure; empty if it
    returns the same value for the same arguments."""
    name = getattr(function, "__name__", None)
    if name not in NAMES:
        return ""
    if type(function) is _BUILTIN:
        owner = function.__self__
    if isinstance(owner, types.ModuleType):
        if name not in _OF_MODULES.get(owner.__name__, ()):
            return ""
        return _NEW_OBJECTS if name == "id" else OTHER_VALUE
    if isinstance(owner, type):
        return OTHER_VALUE if issubclass(owner, date) and name in _OF_DATES else ""
    if any(isinstance(owner, kind) and name in names for kind, names in _OF_OBJECTS):
        return OTHER_VALUE
    return ""


def draws(method: types.MethodType) -> bool:
    """Whether a method draws from one of NumPy's generators. Calls of these are not events of C
    functions."""
    return isinstance(method.__self__, OBJECTS) and method.__name__ not in _SETTING


def is_clock(function: Any) -> bool:
    """Whether a function returns the time as a number."""
    return type(function) is _BUILTIN and function.__name__ in CLOCKS


def called(function: Any, owner: Any = None) -> str:
    """The qualified name of a C function, or of a method with its object."""
    if type(function) is _BUILTIN:
        owner = function.__self__
    if isinstance(owner, types.ModuleType):
        module = _CALLED.get(owner.__name__, owner.__name__.lstrip("_"))
        return f"{module}.{function.__name__}".lstrip(".")
    kind = owner if isinstance(owner, type) else type(owner)
    return f"{kind.__name__}.{function.__name__}"


def called_in(frame: types.FrameType) -> str:
    """The qualified name of a library's function that runs in a frame."""
    module = str(frame.f_globals.get("__name__", ""))
    return f"{_CALLED.get(module, module)}.{frame.f_code.co_qualname}".lstrip(".")
