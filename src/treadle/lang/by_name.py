"""Pickles of kernels and device functions: by module and name, as those of Python's functions."""

from __future__ import annotations

import pickle
import sys
from typing import Any


class ByName:
    """What pickles as the name that it has in its module, and is copied as itself."""

    __slots__ = ()

    def __reduce__(self) -> str:
        """Its qualified name; PicklingError with the reason if that does not lead back to it."""
        module, name = str(self.__module__), str(getattr(self, "__qualname__", ""))
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self:
            if "<locals>" in name:
                reason = "it is defined in a function"
            else:
                reason = f"{module}.{name} is {'not there' if found is None else 'something else'}"
            raise pickle.PicklingError(
                f"{self!r} cannot be pickled, for another process finds it by its name, and "
                f"{reason}: define it at the top level of a module"
            )
        return name

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self
