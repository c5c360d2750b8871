"""The base classes of kernels and device functions, which the lowering and the interpreter use.

Their subclasses in `kernel` are what users call and launch.
"""

from __future__ import annotations

import pickle
import sys
from functools import update_wrapper
from types import FunctionType
from typing import Any

from treadle.lang.source import Source, source_of


class ByName:
    """Pickles by module and name, as Python's functions do; a copy is the object itself."""

    __slots__ = ()

    def __reduce__(self) -> str:
        """Its qualified name; PicklingError, with the reason, if that names another object."""
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
                f"{self!r} cannot be pickled, since another process finds it by its name, and "
                f"{reason}: define it at the top level of a module"
            )
        return name

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class Definition(ByName):
    """A function of the kernel language with its source."""

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(self, function)  # type: ignore[arg-type]  # it need not be callable here
        self.definition = function

    @property
    def source_code(self) -> Source:
        """The function's source."""
        return source_of(self.definition)


class DeviceFunction(Definition):
    """A function that kernels call (`@td.func`)."""


class KernelFunction(Definition):
    """A function that is launched (`@td.kernel`)."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.definition.__name__
