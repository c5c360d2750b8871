"""Methods, operators and attributes of arrays that are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from treadle.core.deferred_imports import DeferredAttribute, Elsewhere, importing
from treadle.numpy.absent import WITHIN
from treadle.numpy.table import Entry, entries, function_of

# Of arrays and their elements.
OPERATORS = (
    "abs add and array array_function array_namespace array_ufunc bool buffer bytes complex "
    "contains copy deepcopy divmod dlpack dlpack_device eq float floordiv format ge getitem gt "
    "index int invert iter le len "
    "lshift lt matmul mod mul ne neg or pos pow radd rand rdivmod reduce repr rfloordiv "
    "rlshift rmatmul rmod rmul ror round rpow rrshift rshift rsub rtruediv rxor str sub "
    "truediv trunc xor"
)
# Of arrays, which they change.
IN_PLACE = (
    "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem"
)
ATTRIBUTES = (
    "T base data device dtype flags flat imag itemsize mT nbytes ndim real shape size strides"
)
PLAIN = (
    "astype byteswap conj conjugate=conj copy dump dumps fill flatten item partition put resize "
    "setflags sort "
    "to_device tobytes tofile tolist view"
)
_IN_PLACE_METHODS = frozenset(["fill", "partition", "put", "resize", "sort", "setflags"])
_ATTRIBUTES = "treadle.numpy.attributes"


class _Attribute(DeferredAttribute):
    """A function of the array, or a property, as an attribute."""

    def found(self) -> Any:
        """The property, from here on that of the class."""
        value = super().found()
        value = value if isinstance(value, property) else property(value)
        setattr(self._owner, self._name, value)
        return value

    def __set__(self, instance: object, value: object) -> None:
        self.found().__set__(instance, value)


class _Method(DeferredAttribute):
    """A function of the table as a method."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.module, entry.function)
        self._entry = entry

    def found(self) -> Any:
        """The method, from here on that of the class."""
        with importing():
            adapting = import_module("treadle.numpy.adapting")
            method = adapting.adapted(function_of(self._entry), self._entry.flags)
        setattr(self._owner, self._name, method)
        return method


def add_to(values: type, array: type) -> None:
    """Add all of them to the classes."""
    for names, owner in ((OPERATORS, values), (IN_PLACE, array)):
        for name in names.split():
            special = f"__{name}__"
            if special in vars(owner):
                delattr(owner, special)
            DeferredAttribute("treadle.numpy.operators:OPERATORS", special).add_to(owner, special)
    for name in ATTRIBUTES.split():
        _Attribute(_ATTRIBUTES, name).add_to(values, name)
    for each in PLAIN.split():
        name, _, function = each.partition("=")
        owner = array if name in _IN_PLACE_METHODS else values
        DeferredAttribute(_ATTRIBUTES, function or name).add_to(owner, name)
    for path, advice in WITHIN.items():
        space, _, name = path.rpartition(".")
        if space == "ndarray":
            absent = Elsewhere(advice)
            absent.__set_name__(array, name)
            setattr(array, name, absent)
    for entry in entries():
        if "m" in entry.flags:
            _Method(entry).add_to(values, entry.name)
