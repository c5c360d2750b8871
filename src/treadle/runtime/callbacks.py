"""Python functions for C to call at any time: also while an exception is on its way.

Whoever frees an array may be on the way out of an error, which Python keeps aside for its thread.
Python code must not run then: the error would be lost, with a SystemError in its place. So a few
instructions around the call put the error away and back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

Prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
keep_for_ever = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))

_SOURCE = """
define void @treadle.call.{callback}(ptr %argument) {{
  %lock = call i32 {PyGILState_Ensure}()
  %type = alloca ptr
  %value = alloca ptr
  %traceback = alloca ptr
  call void {PyErr_Fetch}(ptr %type, ptr %value, ptr %traceback)
  call void {target}(ptr %argument)
  %type.was = load ptr, ptr %type
  %value.was = load ptr, ptr %value
  %traceback.was = load ptr, ptr %traceback
  call void {PyErr_Restore}(ptr %type.was, ptr %value.was, ptr %traceback.was)
  call void {PyGILState_Release}(i32 %lock)
  ret void
}}
"""
_PYTHONS = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_Fetch", "PyErr_Restore")


def callbacks(*functions: Callable[[int], None]) -> tuple[int, ...]:
    """The addresses of C functions that call Python functions with a pointer, for ever."""
    made = [Prototype(function) for function in functions]
    keep_for_ever(made)
    plain = [_address(function) for function in made]
    try:
        from treadle.drivers.cpu.compiler import compiler

        host = compiler()
    except ImportError:  # no llvmlite: all is well but for errors on their way
        return tuple(plain)
    calls = {name: _constant(_address(getattr(ctypes.pythonapi, name))) for name in _PYTHONS}
    texts = [_SOURCE.format(callback=one, target=_constant(one), **calls) for one in plain]
    symbols = tuple(f"treadle.call.{one}" for one in plain)
    loaded = host.load_object(host.compile_object("".join(texts), "callbacks"), symbols)
    # Arrays may be freed while the interpreter ends.
    keep_for_ever(host)
    keep_for_ever(loaded)
    return tuple(loaded.addresses[symbol] for symbol in symbols)


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _constant(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"
