"""Small functions in machine code of the host, written as LLVM assembly: what Python is too slow
for, or may not do at all, as C code that is called while an exception propagates."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.drivers.cpu.compiler import Loaded

# An object is not freed any more, not even while the interpreter ends.
keep_forever = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


def host_functions(source: str, name: str, symbols: tuple[str, ...]) -> Loaded:
    """The functions of a module by their symbols. They live as long as the result. ImportError
    where llvmlite is not installed, as in web pages."""
    from treadle.drivers.cpu.compiler import compiler  # loads LLVM

    host = compiler()
    keep_forever(host)  # functions may be called while the interpreter ends
    return host.load_object(host.compile_object(source, name), symbols)


def host_processor() -> str:
    """The processor's architecture, by LLVM's name: "x86_64", "aarch64"."""
    from treadle.drivers.cpu.compiler import compiler

    return compiler().triple.partition("-")[0]
