"""Environment variables: what each may be, and one line for what makes no sense.

A value that is not possible is reported once, on the logger `treadle`, and the variable counts as
not set. That is not an error: variables are read while treadle is imported, and a program that runs
without them should run with a misspelled one.
"""

from __future__ import annotations

import logging
import os

from treadle.core.once import once

_log = logging.getLogger("treadle")
_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


def is_on(name: str) -> bool:
    """Whether a variable is set to a word for on (capitals do not matter)."""
    word = _value(name).lower()
    if word in _ON:
        return True
    if word and word not in _OFF:
        _report(name, f"{_listed(_ON)} for on, {_listed(_OFF)} for off", "off")
    return False


def choice(name: str, choices: tuple[str, ...]) -> str:
    """The one of some words that a variable is (capitals do not matter), else the first of them."""
    word = _value(name).lower()
    if word in choices:
        return word
    if word:
        _report(name, _listed(choices), choices[0])
    return choices[0]


def count(name: str, most: int, usual: str) -> int | None:
    """The number from 1 to `most` that a variable is, or None; `usual` says what None becomes."""
    word = _value(name)
    if word.isascii() and word.isdigit() and len(word) < 20 and 1 <= int(word) <= most:
        return int(word)
    if word:
        _report(name, f"a whole number from 1 to {most}", usual)
    return None


def _value(name: str) -> str:
    return os.environ.get(name, "").strip()


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _report(name: str, possible: str, taken: str) -> None:
    value = _value(name)
    shown = repr(value) if len(value) <= 60 else f"{value[:60]!r}…"
    warn_once(f"{name} is {shown}: it can be {possible}; it is ignored ({taken})")


@once
def warn_once(message: str) -> None:
    """Log a warning, the first time that this message comes up in the process."""
    _log.warning("%s", message)
