"""Environment variables that switch something on."""

from __future__ import annotations

import os

_OFF = ("", "0", "false", "no", "off")


def is_on(name: str) -> bool:
    """Whether a variable is set, and to none of the words for off (capitals do not matter)."""
    return os.environ.get(name, "").strip().lower() not in _OFF
