"""Guards for attributes of objects and classes, found in Python's lookup order.

Data descriptors of the class come first, then the object's own attributes, then other attributes of
the class, then dicts in which `__getattr__` of some classes looks, as in modules for their
parameters.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from treadle.core.deferred_imports import DeferredAttribute
from treadle.tensor.compiled.bytecode import NOTHING, Reads
from treadle.tensor.compiled.code_origin import is_library_class
from treadle.tensor.compiled.guards import MISSING, Guard

_IMMUTABLE = 1 << 8  # of a class's flags: its attributes cannot be set
_PLAIN_METACLASSES = ("type", "ABCMeta", "EnumType", "EnumMeta")
# Lookup methods that behave as Python's, so that a guard may use them.
_READERS: tuple[Any, ...] = tuple(
    each.__getattribute__ for each in (object, types.ModuleType, threading.local, functools.partial)
)


def place_of(read: str, holder: Any, key: Any) -> tuple[str, int, Any]:
    """The identity of a place, or of a test."""
    return (read, id(holder), key if type(key) is str else id(key))


# Attributes of classes that the class itself gives as they are, or always as the same object.
_READ_AS_THEY_ARE = (types.FunctionType, property, staticmethod)


class _Found(NamedTuple):
    """An attribute of a class, and the base class that defines it."""

    owner: type
    raw: Any


class Attributes:
    """The guards found so far, and the lookup of attributes."""

    def __init__(self) -> None:
        self._guards: dict[tuple[str, int, Any], Guard] = {}
        self._classes: dict[tuple[type, str], _Found | None] = {}
        self._operated: set[type] = set()
        self._counted: set[type] = set()  # classes whose attributes' names are guarded
        # Values at places that functions set, from before they did. A value read there later was
        # set by the trace, and the earlier one must be back at the end.
        self._earlier: dict[tuple[str, int, Any], Any] = {}
        self.unreachable: dict[str, str] = {}  # by name: a description

    @property
    def guards(self) -> list[Guard]:
        """The guards, in the order in which they were found."""
        return list(self._guards.values())

    def _add(
        self, test: str, holder: Any, key: Any, name: str, *others: Any, read: str = "",
        value: Any = MISSING, is_replaced: bool = False,
    ) -> None:  # fmt: skip
        known = place_of(test, holder, key)
        if known not in self._guards:
            self._guards[known] = Guard(
                test, (holder, key, *others), name, read, value, is_replaced
            )

    def _place(
        self, read: str, holder: Any, key: Any, value: Any, name: str, reads: Reads,
        is_used: bool = True, is_variable: bool = False,
    ) -> None:  # fmt: skip
        raise NotImplementedError

    def _note_earlier(self, read: str, holder: Any, key: Any, value: Any) -> None:
        self._earlier.setdefault(place_of(read, holder, key), value)

    def _register(self, function: Any, reads: Reads, name: str) -> None:
        raise NotImplementedError

    def _class(self, value: type, reads: Reads, name: str) -> None:
        if is_library_class(value):
            return
        simple = type(value).__name__ in _PLAIN_METACLASSES
        names: Iterable[str] = reads.attributes
        if reads.any_name:
            names = {*names, *_of_users(value)}
        if reads.all_names:
            self._keys_of_class(value)
        if reads.overridden:
            self._overridden(value, reads)
            self._overridden(type(value), reads)
        for attribute in names:
            found = self._found(value, attribute)
            if found is None:
                above = self._found(type(value), attribute)
                if above is not None and not is_library_class(above.owner):
                    self._of_class(
                        type(value), above, attribute, f"{name}.{attribute}", reads, True
                    )
                if attribute in reads.optional and not hasattr(value, attribute):
                    self._add("not hasattr({0}, {1})", value, attribute, f"{name}.{attribute}")
                continue
            self._of_class(value, found, attribute, f"{name}.{attribute}", reads, simple)
        for function in ("__init__", "__new__"):
            made = self._found(value, function)
            if made is not None and isinstance(
                made.raw, (types.FunctionType, classmethod, staticmethod)
            ):
                self._register(getattr(made.raw, "__func__", made.raw), reads, name)

    def _of_class(
        self, kind: type, found: _Found, attribute: str, name: str, reads: Reads, simple: bool
    ) -> None:
        """Guard an attribute that a class or one of its bases defines."""
        raw = found.raw
        if is_library_class(found.owner):
            self._attribute_of_library(kind, found, attribute)
            return
        is_bound = hasattr(type(raw), "__get__") and not isinstance(raw, types.FunctionType)
        look = reads.attributes.get(attribute, True)
        if simple and attribute.isidentifier() and not is_bound:
            self._place(f"{{0}}.{attribute}", kind, None, raw, name, reads, look)
        else:
            self._place("{0}.__dict__[{1}]", found.owner, attribute, raw, name, reads, look)

    def _attribute_of_library(self, kind: type, found: _Found, attribute: str) -> None:
        """Guard an attribute of a library's class, which a test or a user may replace, there or in
        a base. What the library reads itself is not looked at."""
        if kind.__flags__ & _IMMUTABLE or type(found.raw) is DeferredAttribute:
            return
        name, raw = f"{kind.__name__}.{attribute}", found.raw
        if isinstance(raw, _READ_AS_THEY_ARE) and type(kind).__name__ in _PLAIN_METACLASSES:
            self._add(
                f"{{0}}.{attribute} is {{2}}", kind, attribute, name, getattr(kind, attribute)
            )
        else:
            self._add("{0}.__dict__[{1}] is {2}", found.owner, attribute, name, raw)

    def _found(self, kind: type, attribute: str) -> _Found | None:
        known = (kind, attribute)
        if known not in self._classes:
            self._classes[known] = found_in(kind, attribute)
        return self._classes[known]

    def _attributes(self, value: Any, reads: Reads, name: str) -> None:
        """Guard the attributes of an object that are read by name."""
        kind = type(value)
        own = _own(value)
        is_library = is_library_class(kind)
        names: Iterable[str] = reads.attributes
        watched = getattr(kind, "_traced_always", ())
        is_open = not is_library or _is_namespace(value)
        if reads.any_name and is_open:
            names = {*names, *(own or ()), *_slots(kind), *_of_users(kind)}
        elif watched:
            names = {*names, *watched}
        if is_library and hasattr(kind, "_traced_never"):
            names = [each for each in names if each not in kind._traced_never]
        reader = kind.__getattribute__
        is_plain_object = reader in _READERS
        if reads.all_names and is_open:
            self._keys(value, own, is_plain_object, name)
        if not is_library and not isinstance(value, types.ModuleType):
            self._add("type({0}) is {1}", value, kind, f"the class of {name}")
            self._operators(kind)
            if reads.overridden:
                self._overridden(kind, reads)
        for attribute in reads.stores if own else ():
            if attribute in own:  # type: ignore[operator]
                read, holder, key = _own_place(value, own, attribute, is_plain_object)
                self._note_earlier(read, holder, key, own[attribute])  # type: ignore[index]
        for attribute in names:
            is_special = attribute.startswith("__") and attribute.endswith("__")
            if is_special and not (own and attribute in own and attribute in reads.attributes):
                continue
            place = f"{name}.{attribute}"
            look = reads.attributes.get(attribute, True)
            found = self._found(kind, attribute)
            raw = None if found is None else found.raw
            if found is not None and _is_data(raw):
                if isinstance(raw, types.MemberDescriptorType):
                    self._slot(value, attribute, place, reads, look, raw)
                elif not isinstance(raw, types.GetSetDescriptorType):
                    self._of_class(kind, found, attribute, place, reads, False)
            elif own is not None and attribute in own:
                read, holder, key = _own_place(value, own, attribute, is_plain_object)
                self._place(read, holder, key, own[attribute], place, reads, look)
            elif found is not None:
                self._inherited(value, own, found, attribute, place, reads, is_plain_object)
            elif own is not None:
                self._member(value, own, attribute, place, reads)

    def _keys(
        self, value: Any, own: dict[str, Any] | None, is_plain_object: bool, name: str
    ) -> None:
        """Guard the set of attributes of an object and its classes."""
        if own is not None:
            test, holder = "[*{0}] == {1}", own
            if is_plain_object:
                test, holder = "[*{0}.__dict__] == {1}", value
            self._add(test, holder, list(own), f"the attributes of {name}")
        self._keys_of_class(type(value))

    def _keys_of_class(self, kind: type) -> None:
        for each in kind.__mro__:
            if not is_library_class(each) and each not in self._counted:
                self._counted.add(each)
                keys = list(vars(each))
                self._add(
                    "[*{0}.__dict__] == {1}", each, keys, f"the attributes of {each.__name__}"
                )

    def _overridden(self, kind: type, reads: Reads) -> None:
        """Guard attributes of a class and of all its bases, overridden or not: `super()`, and code
        that reads attributes of an object's class, look there."""
        for attribute in reads.attributes:
            owners = [each for each in kind.__mro__ if attribute in each.__dict__]
            if not owners or is_library_class(owners[0]):
                continue
            for each in kind.__mro__:
                name = f"{each.__name__}.{attribute}"
                if each in owners:
                    found = _Found(each, each.__dict__[attribute])
                    self._of_class(each, found, attribute, name, reads, False)
                elif not is_library_class(each):
                    self._add("{1} not in {0}.__dict__", each, attribute, name)

    def _operators(self, kind: type) -> None:
        """Guard the special methods of a class, which are called without their names."""
        if kind in self._operated:
            return
        self._operated.add(kind)
        for each in kind.__mro__:
            if is_library_class(each):
                continue
            for method, raw in list(vars(each).items()):
                if method.startswith("__") and isinstance(raw, types.FunctionType):
                    name = f"{each.__name__}.{method}"
                    self._of_class(kind, _Found(each, raw), method, name, NOTHING, False)

    def _slot(
        self, value: Any, attribute: str, name: str, reads: Reads, look: bool, raw: Any
    ) -> None:
        try:
            held = raw.__get__(value, type(value))
        except AttributeError:
            self._add("is_unset({0}, {1})", value, raw, name)  # `__getattr__` may return one
            return
        self._place("{0}." + attribute, value, None, held, name, reads, look)

    def _inherited(
        self, value: Any, own: dict[str, Any] | None, found: _Found, attribute: str, name: str,
        reads: Reads, is_plain_object: bool,
    ) -> None:  # fmt: skip
        """Guard an attribute of an object's class, and that the object has none of that name."""
        raw = found.raw
        if own is not None:
            self._add("{1} not in {0}", own, attribute, name)
        if isinstance(raw, types.FunctionType):
            self._register(raw, reads, name)
        self._of_class(
            type(value), found, attribute, name, reads,
            is_plain_object and type(type(value)).__name__ in _PLAIN_METACLASSES,
        )  # fmt: skip

    def _member(
        self, value: Any, own: dict[str, Any], attribute: str, name: str, reads: Reads
    ) -> None:
        """Guard an attribute that an object lacks; its class may look it up in dicts of its own, as
        a module does its parameters."""
        missing = [own]
        for members in getattr(type(value), "_traced_members", ()):
            held = own.get(members)
            if held is None:
                continue
            if attribute in held:
                self._place("{0}." + members, value, None, held, name, NOTHING, False)
                look = reads.attributes.get(attribute, True)
                self._place("{0}[{1}]", held, attribute, held[attribute], name, reads, look)
                return
            missing.append(held)
        if attribute in reads.optional:
            for held in missing:
                self._add("{1} not in {0}", held, attribute, name)


def found_in(kind: type, attribute: str) -> _Found | None:
    """An attribute of a class, and the first of its bases that has it."""
    owners = (each for each in kind.__mro__ if attribute in each.__dict__)
    return next((_Found(each, each.__dict__[attribute]) for each in owners), None)


def _is_namespace(value: Any) -> bool:
    """Whether a value's class is a library's but its attributes are all the user's."""
    kind = type(value)
    return isinstance(value, (types.SimpleNamespace, types.ModuleType)) or (
        kind.__module__ == "argparse" and kind.__name__ == "Namespace"
    )


def _own(value: Any) -> dict[str, Any] | None:
    """The dict of an object's attributes."""
    if isinstance(value, threading.local):
        return value.__dict__
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def _own_place(
    value: Any, own: Any, attribute: str, is_plain_object: bool
) -> tuple[str, Any, str | None]:
    """The place of an object's own attribute: the expression that reads it, the holder and the
    key."""
    if is_plain_object and attribute.isidentifier():
        return f"{{0}}.{attribute}", value, None
    return "{0}[{1}]", own, attribute


def _slots(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        for name, raw in each.__dict__.items():
            if isinstance(raw, types.MemberDescriptorType):
                yield name


def _of_users(kind: type) -> Iterator[str]:
    """The attributes that the user's classes among a class's bases define."""
    for each in kind.__mro__:
        if not is_library_class(each) and not each.__module__.startswith("treadle."):
            yield from (name for name in vars(each) if not name.startswith("__"))


def _is_data(raw: Any) -> bool:
    """Whether a class attribute is a data descriptor, which precedes the object's attributes."""
    return hasattr(type(raw), "__set__") or hasattr(type(raw), "__delete__")
