"""`np.name` for each function of the table, adapted when it is first used."""

from __future__ import annotations

from typing import Any

from treadle.numpy.adapting import adapted
from treadle.numpy.table import entries, function_of

_ENTRIES = {entry.name: entry for entry in entries() if "f" in entry.flags}


def __getattr__(name: str) -> Any:
    entry = _ENTRIES.get(name)
    if entry is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = adapted(function_of(entry), entry.flags)
    return found
