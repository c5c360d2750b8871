"""Methods, operators and attributes of tensors that are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from treadle.core.deferred_imports import DeferredAttribute, importing
from treadle.torch.table import Entry, entries, function_of

OPERATORS = (
    "abs add and bool eq float floordiv ge gt iadd iand ifloordiv ilshift imod imul index int "
    "invert ior ipow irshift isub iter itruediv ixor le len lshift lt matmul mod mul ne neg or pos "
    "pow radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor "
    "array complex getitem repr setitem sub truediv xor"
)
ATTRIBUTES = {
    "treadle.torch.attributes": "device dtype grad grad_fn is_leaf ndim requires_grad shape data",
}
PLAIN = {
    "treadle.torch.attributes": (
        "backward detach dim item numel numpy requires_grad_ size stride tolist"
    ),
}


class _Attribute(DeferredAttribute):
    """A function of the tensor, or a property, as an attribute."""

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

    def __init__(self, entry: Entry, is_in_place: bool) -> None:
        super().__init__(entry.module, entry.function)
        self._entry, self._is_in_place = entry, is_in_place

    def found(self) -> Any:
        """The method, from here on that of the class."""
        with importing():
            adapting = import_module("treadle.torch.adapting")
            adapt = adapting.in_place if self._is_in_place else adapting.adapted
            method = adapt(function_of(self._entry))
        setattr(self._owner, self._name, method)
        return method


def add_to(tensor: type) -> None:
    """Add all of them to the class."""
    for name in dict.fromkeys(OPERATORS.split()):
        special = f"__{name}__"
        if special in vars(tensor):
            delattr(tensor, special)
        DeferredAttribute("treadle.torch.operators:OPERATORS", special).add_to(tensor, special)
    for table, kind in ((ATTRIBUTES, _Attribute), (PLAIN, DeferredAttribute)):
        for place, names in table.items():
            for name in names.split():
                kind(place, name).add_to(tensor, name)
    for entry in entries():
        if "m" in entry.flags:
            _Method(entry, False).add_to(tensor, entry.name)
        if "i" in entry.flags:
            _Method(entry, True).add_to(tensor, f"{entry.name}_")
