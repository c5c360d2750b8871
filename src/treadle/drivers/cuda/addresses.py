"""Addresses of Python's bytes, for the driver's functions."""

from __future__ import annotations

import ctypes


def address_of(data: bytes) -> int:
    """Where the bytes of an object lie; the caller keeps it alive."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
