"""The functions of `calls` without LLVM: the same meaning, some microseconds slower."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Iterator
from typing import Any

from treadle.drivers.cuda.library import address_of

_PLACE_WORDS = 12
_BEFORE, _AFTER = 10, 11
_unpack_record = struct.Struct("<QQ7I4x").unpack


def call(place: int, function: int, *arguments: int) -> int:
    """Call a function of the driver with integers and addresses."""
    with _entered(place) as (code, _):
        return code or int(_prepared(function, *_WORDS[len(arguments)])(*arguments))


def launch(place: int, record: bytes, parameters: bytes) -> int:
    """Launch a kernel, and record the place's events that it has."""
    with _entered(place) as (code, words):
        if code:
            return code
        stream, event = words[8:_BEFORE]
        function, size, *shape = _unpack_record(record)
        count = ctypes.c_uint64(size)
        extra = (ctypes.c_void_p * 5)(1, address_of(parameters), 2, ctypes.addressof(count), None)
        launcher = _prepared(words[4], *_LAUNCH)
        _mark_once(place, words, _BEFORE)
        code = launcher(function, *shape, stream, None, ctypes.addressof(extra) if size else None)
        if event and not code:
            code = _prepared(words[5], *_WORDS[2])(event, stream)
        _mark_once(place, words, _AFTER)
        return int(code)


def _mark_once(place: int, words: list[int], word: int) -> None:
    if words[word]:
        ctypes.c_uint64.from_address(place + 8 * word).value = 0
        _prepared(words[5], *_WORDS[2])(words[word], words[8])


def read(place: int, target: int, source: int, size: int) -> int:
    """Copy to the host, and wait for it."""
    with _entered(place) as (code, words):
        stream = words[8]
        code = code or int(_prepared(words[6], *_WORDS[4])(target, source, size, stream))
        return code or int(_prepared(words[7], *_WORDS[1])(stream))


@contextlib.contextmanager
def _entered(place: int) -> Iterator[tuple[int, list[int]]]:
    """The driver's code for making the context current, and the words of a place."""
    words = list((ctypes.c_uint64 * _PLACE_WORDS).from_address(place))
    context, keep, get_current, set_current = words[:4]
    current = ctypes.c_uint64()
    _prepared(get_current, ctypes.c_void_p)(ctypes.addressof(current))
    setter = _prepared(set_current, ctypes.c_uint64)
    old, code = current.value, 0
    if old != context:
        code = setter(context)
    try:
        yield code, words
    finally:
        if not code and old != context and not (keep and not old):
            setter(old)


_WORDS = tuple((ctypes.c_uint64,) * count for count in range(9))
_LAUNCH = (ctypes.c_uint64, *[ctypes.c_uint32] * 7, *[ctypes.c_void_p] * 3)


@functools.cache
def _prepared(address: int, *types: Any) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(address)
