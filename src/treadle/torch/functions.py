"""`torch.name` for each function of the table, adapted when it is first used."""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.torch.adapting import public
from treadle.torch.dtypes import ALIASES
from treadle.torch.table import IN_PLACE, entries, function_of
from treadle.torch.tensors import Tensor

_ENTRIES = {entry.name: entry for entry in entries() if "f" in entry.flags}


def __getattr__(name: str) -> Any:
    if name in ALIASES:
        return getattr(td, ALIASES[name])
    if name in IN_PLACE:
        return getattr(Tensor, name)
    entry = _ENTRIES.get(name)
    if entry is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = function_of(entry)
    found = globals()[name] = public(function, "treadle.torch", name, has_out="o" in entry.flags)
    return found
