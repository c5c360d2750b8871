"""Frozen dataclasses with slots that are quick to define and to make.

The standard library's decorator compiles six methods of each class, of which most programs call
only `__init__`: a sixth of the time in which the front end of CUDA C++ is imported was theirs.
Here only that is compiled with the class, and sets the slots directly; `__eq__` and `__hash__` are
compiled when they are first called. To `dataclasses` such a class is like any other.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **options):
        """`dataclasses.dataclass`, quicker for `@dataclass(frozen=True, slots=True)`."""
        if cls is None and options == {"frozen": True, "slots": True}:
            return _defined
        return dataclasses.dataclass(cls, **options)


_with_fields = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)


def _defined(cls: type) -> type:
    """The class with its slots, and with the methods of a frozen dataclass that it has not."""
    own = set(vars(cls))
    made: Any = _with_fields(cls)
    fields = dataclasses.fields(made)
    compared = tuple(one.name for one in fields if one.compare)
    methods: dict[str, Callable[..., Any]] = {
        "__init__": _init(made, fields),
        "__eq__": _later(made, "__eq__", f"def __eq__(self, other):\n{_EQUAL}", compared),
        "__hash__": _later(made, "__hash__", f"def __hash__(self):\n{_HASH}", compared),
        "__repr__": _representation,
        "__setattr__": _refusal(made, "__setattr__", "assign to"),
        "__delattr__": _refusal(made, "__delattr__", "delete"),
        "__getstate__": _state,
        "__setstate__": _set_state,
    }
    for name, method in methods.items():
        if name not in own or (name == "__hash__" and "__eq__" in own and cls.__hash__ is None):
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """The constructor, which sets each slot by its descriptor."""
    known: dict[str, Any] = {"missing": dataclasses.MISSING}
    parameters, lines = ["self"], []
    for one in fields:
        name, value = one.name, one.name
        known[f"set_{name}"] = getattr(cls, name).__set__
        if one.default is not dataclasses.MISSING:
            known[f"default_{name}"] = one.default
            parameters.append(f"{name}=default_{name}")
        elif one.default_factory is not dataclasses.MISSING:
            known[f"default_{name}"] = one.default_factory
            parameters.append(f"{name}=missing")
            value = f"default_{name}() if {name} is missing else {name}"
        else:
            parameters.append(name)
        lines.append(f" set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"])
    return _compiled(cls, "__init__", text, known)


_EQUAL = """ if other.__class__ is not self.__class__:
  return NotImplemented
 return ({mine}) == ({others})"""
_HASH = " return hash(({mine}))"


def _later(cls: type, name: str, text: str, compared: tuple[str, ...]) -> Callable[..., Any]:
    """A method that is compiled, and replaced, when it is first called."""

    def first(self: Any, *arguments: Any) -> Any:
        mine, others = ("".join(f"{of}.{one}, " for one in compared) for of in ("self", "other"))
        method = _compiled(cls, name, text.format(mine=mine, others=others), {})
        setattr(cls, name, method)
        return method(self, *arguments)

    return first


def _compiled(cls: type, name: str, text: str, known: dict[str, Any]) -> Callable[..., Any]:
    exec(text, known)
    method: Any = known[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    method.__module__ = cls.__module__
    return method  # type: ignore[no-any-return]


def _refusal(cls: type, name: str, what: str) -> Callable[..., None]:
    """The method that refuses to change a field, or anything of the class itself."""
    inherited = getattr(super(cls, cls), name)
    names = frozenset(one.name for one in dataclasses.fields(cls))

    def refuse(self: Any, field: str, *value: Any) -> None:
        if type(self) is cls or field in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {field!r}")
        inherited(self, field, *value)

    return refuse


@reprlib.recursive_repr()
def _representation(self: Any) -> str:
    names = (one.name for one in dataclasses.fields(self) if one.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
    return f"{type(self).__qualname__}({values})"


def _state(self: Any) -> list[Any]:
    """The values of the fields, for copies and pickles."""
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
