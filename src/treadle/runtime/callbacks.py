"""Python functions that C code may call at any time, even while an exception propagates.

A consumer may free an array while Python unwinds from an error, which is stored in the thread's
state. Python code that runs then would lose the error, and raise a SystemError in its place. So a
small native function saves the error before the call and restores it afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from treadle.runtime.host_code import host_functions, keep_forever

Prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

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
    """The addresses of C functions that call Python functions with a pointer. They are never
    freed."""
    made = [Prototype(function) for function in functions]
    keep_forever(made)
    plain = [_address(function) for function in made]
    calls = {name: _constant(_address(getattr(ctypes.pythonapi, name))) for name in _PYTHONS}
    texts = [_SOURCE.format(callback=one, target=_constant(one), **calls) for one in plain]
    symbols = tuple(f"treadle.call.{one}" for one in plain)
    try:
        loaded = host_functions("".join(texts), "callbacks", symbols)
    except ImportError:  # without llvmlite, only pending errors are not preserved
        return tuple(plain)
    keep_forever(loaded)  # arrays may be freed while the interpreter shuts down
    return tuple(loaded.addresses[symbol] for symbol in symbols)


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _constant(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"
