"""The origin of code: the user's, a library's or this package's. A trace depends on the variables
of libraries that the user's code reads, and not on those that libraries read themselves."""

from __future__ import annotations

import sys
import types
from functools import lru_cache
from pathlib import Path

import numpy as np

_PACKAGE = str(Path(__file__).parents[2])
_NUMPY = str(Path(np.__file__).parent)
# The parts of this package that are like the user's code: modules, schedules, datasets, models,
# and the programs that `treadle bench` measures.
_LIKE_USER_CODE = tuple(
    str(Path(_PACKAGE, *parts))
    for parts in (
        ("nn",),
        ("optim", "lr_scheduler"),
        ("data",),
        ("cli", "bench"),
        ("models",),
        ("quant",),
    )
)
# Calls from these parts are not the function's: they make and launch kernels.
_IMPLEMENTATION = tuple(
    str(Path(_PACKAGE, part)) for part in ("codegen", "drivers", "ir", "kernels", "lang", "runtime")
)
_USER_MODULES = (
    "treadle.nn",
    "treadle.optim.lr_scheduler",
    "treadle.data",
    "treadle.cli.bench",
    "treadle.models",
    "treadle.quant",
)
# The guards themselves look up attributes of modules.
_LOOKUPS = frozenset({"__getattr__", "__setattr__", "__delattr__", "_forget"})
MODULE = str(Path(_PACKAGE, "nn", "module.py"))
MEMBERS = ("_parameters", "_buffers", "_modules", "_hooks")  # that it reads from `__dict__`
# Modules that do not take part in a function's computation.
_UNRELATED = frozenset(
    {"abc", "ast", "asyncio", "bdb", "codecs", "dis", "encodings", "importlib",
     "inspect", "linecache", "locale", "logging", "opcode", "pdb", "re",
     "selectors", "sre_compile", "sre_parse", "threading", "token", "tokenize", "traceback",
     "typing", "unittest", "warnings", "zipimport"}
)  # fmt: skip
_OTHER_LIBRARIES = frozenset(
    {"_pytest", "cffi", "coverage", "hypothesis", "jax", "llvmlite", "numpy", "pluggy", "pytest",
     "rich", "scipy", "torch", "wgpu"}
)  # fmt: skip
# Callbacks of weak dicts and sets, which run when an object is gone.
_CALLBACKS = frozenset({"remove", "_remove", "_commit_removals", "__call__"})
_WEAK_MODULES = ("weakref.py", "_weakrefset.py")
_SITE = ("site-packages", "dist-packages")


_STANDARD = str(Path(types.__file__).parent)
IGNORED, LIBRARY, USER = range(3)


def origin_of(code: types.CodeType) -> int:
    """USER: a trace depends on what the code reads. LIBRARY: it does if the user's code calls it,
    but not if this package does. IGNORED: it does not."""
    if code.co_name == "__del__" or (
        code.co_name in _CALLBACKS and code.co_filename.endswith(_WEAK_MODULES)
    ):  # they run at any time
        return IGNORED
    if code.co_name in _LOOKUPS and code.co_filename == MODULE:
        return IGNORED
    return _origin_of_file(code.co_filename)


@lru_cache(maxsize=4096)
def _origin_of_file(file: str) -> int:
    if file.startswith(_PACKAGE):
        return USER if file.startswith(_LIKE_USER_CODE) else IGNORED
    if file.startswith(_NUMPY):
        return IGNORED
    if file == "<string>":  # made by the standard library, for dataclasses say
        return LIBRARY
    if file.startswith("<frozen "):
        return IGNORED if file[8:].rstrip(">").split(".")[0] in _UNRELATED else LIBRARY
    parts = Path(file).parts
    for at, part in enumerate(parts[:-1]):
        if part in _SITE:
            return IGNORED if parts[at + 1].removesuffix(".py") in _OTHER_LIBRARIES else LIBRARY
    if file.startswith(_STANDARD):
        name = Path(file[len(_STANDARD) :]).parts[1].removesuffix(".py")
        return IGNORED if name in _UNRELATED else LIBRARY
    return USER


@lru_cache(maxsize=4096)
def is_implementation(file: str) -> bool:
    """Whether a file belongs to the parts of this package that make and launch kernels."""
    return file.startswith(_IMPLEMENTATION)


def is_package_file(file: str) -> bool:
    """Whether a file belongs to this package."""
    return file.startswith(_PACKAGE)


@lru_cache(maxsize=4096)
def is_library_module(name: str | None) -> bool:
    """Whether a module is a library's, whose own code is not followed."""
    if name is None or name.startswith(_USER_MODULES):
        return False
    first = name.split(".")[0]
    return first == "treadle" or first in _OTHER_LIBRARIES or first in sys.stdlib_module_names


def is_library_class(kind: type) -> bool:
    """Whether a class is defined in a library's module."""
    name = kind.__module__
    return isinstance(name, str) and name != "__main__" and is_library_module(name)
