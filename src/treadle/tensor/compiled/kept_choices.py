"""What calls took on two devices, kept on disk: a later process need not try both again.

An entry is for a function (its name and code), a kind of calls, both devices with their drivers,
and a version of treadle. It is a hint: calls are measured again, and the first one runs at home.
"""

from __future__ import annotations

import hashlib
import types
from typing import Any

from treadle.core.version import __version__
from treadle.runtime import disk_cache
from treadle.runtime.costs import identity, is_time, load_entry, save_entry
from treadle.runtime.devices import Device
from treadle.tensor.compiled.choice import Choice, Mean

_SCHEMA = "1"
_CHANGED = 1.25  # times a mean on disk, from which on it is written again
_CALLS = 2  # that a mean from disk counts as


def entry_of(function: Any, text: str, home: Device, other: Device) -> str:
    """The name of the entry of a function's kind of calls."""
    return disk_cache.key_of(
        "choice", _SCHEMA, __version__, identity(home), identity(other), *_identity(function), text
    )


def _identity(function: Any) -> tuple[str, ...]:
    """The name of a function, and a hash of its code."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    code = getattr(function, "__code__", None)
    if code is None:
        called = vars(type(function)).get("__call__")
        code = getattr(called, "__code__", None)
    digest = hashlib.sha256()
    if code is not None:
        _add(code, digest)
    return str(getattr(function, "__module__", "")), name, digest.hexdigest()


def _add(code: types.CodeType, digest: Any) -> None:
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode())
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            _add(each, digest)
        else:
            digest.update(repr(each).encode())


def load(key: str, choice: Choice) -> None:
    """Take the means of an earlier process, if there are any that make sense."""
    content = load_entry(key)
    try:
        home, away = content["home"], content["away"]
    except (TypeError, KeyError):
        return
    if not is_time(home) or not is_time(away):
        return
    choice.home, choice.away = Mean(home, _CALLS), Mean(away, _CALLS)
    choice.is_recalled = True
    choice.saved = home, away


def save(key: str, choice: Choice) -> None:
    """Keep the means, if they differ from those on disk."""
    means = choice.home.seconds, choice.away.seconds
    saved = choice.saved
    if not key or (
        saved is not None
        and (means[1] < means[0]) is (saved[1] < saved[0])
        and all(
            one < _CHANGED * two and two < _CHANGED * one
            for one, two in zip(means, saved, strict=True)
        )
    ):
        return
    choice.saved = means
    save_entry(key, {"home": means[0], "away": means[1]})
