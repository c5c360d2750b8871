"""Values in attributes of objects and classes."""

from __future__ import annotations

import dataclasses
import enum
import operator
import sys
import types
from typing import Any

from tests.support.holders.base import Plain, holder, setter


@holder
def in_an_attribute(value):
    owner = Plain(value)
    return lambda: owner.held, setter(owner)


@holder
def in_a_bound_object(value):
    owner = Plain(value)
    return owner.read, setter(owner)


@holder
def in_a_callable_object(value):
    owner = Plain(value)
    return owner, setter(owner)


@holder
def in_an_object_in_an_object(value):
    owner = Plain(Plain(Plain(value)))
    return lambda: owner.held.held.read(), setter(owner.held.held)


@holder
def in_an_object_that_is_replaced(value):
    owner = Plain(Plain(value))
    return lambda: owner.held.held, lambda new: setattr(owner, "held", Plain(new))


class Slotted:
    __slots__ = ("held",)


@holder
def in_a_slot(value):
    owner = Slotted()
    owner.held = value
    return lambda: owner.held, setter(owner)


@holder
def in_a_class(value):
    kind = type("Kind", (Plain,), {"held": value, "__init__": lambda self: None})
    owner = kind()
    return lambda: owner.held, setter(kind)


@holder
def in_a_class_by_its_name(value):
    class Kind:
        held = value

        @classmethod
        def read(cls):
            return cls.held

    return lambda: Kind.read(), setter(Kind)


@holder
def in_a_base_class(value):
    class Base:
        held = value

    class Derived(Base):
        def read(self):
            return super().held

    return Derived().read, setter(Base)


@holder
def hiding_what_the_class_has(value):
    class Kind:
        held = value

    owner = Kind()
    return lambda: owner.held, setter(owner)


@holder
def in_a_property(value):
    class Kind:
        def __init__(self):
            self.inner = value

        @property
        def held(self):
            return self.inner

    owner = Kind()
    return lambda: owner.held, setter(owner, "inner")


@holder
def in_a_descriptor(value):
    class Descriptor:
        def __get__(self, instance, owner=None):
            return self.inner

    descriptor = Descriptor()
    descriptor.inner = value
    kind = type("Kind", (), {"held": descriptor})
    owner = kind()
    return lambda: owner.held, setter(descriptor, "inner")


@holder
def behind_getattr(value):
    class Kind:
        def __init__(self):
            self.table = {"held": value}

        def __getattr__(self, name):
            return self.table[name]

    owner = Kind()
    return lambda: owner.held, lambda new: owner.table.__setitem__("held", new)


@holder
def by_a_constant_name(value):
    owner = Plain(value)
    return lambda: getattr(owner, "held", None), setter(owner)


@holder
def by_a_name_that_is_made(value):
    owner = Plain(value)
    name = "".join(["h", "eld"])
    return lambda: getattr(owner, name), setter(owner)


@holder
def by_vars(value):
    owner = Plain(value)
    return lambda: vars(owner)["held"], setter(owner)


@holder
def by_the_values_of_vars(value):
    owner = types.SimpleNamespace(held=value)
    return lambda: next(iter([*vars(owner).values()])), setter(owner)


def _added_later(owner, value):
    """The name of the attribute that was added last has the value."""

    def change(new):
        for each in [each for each in vars(owner) if each.startswith("held")]:
            delattr(owner, each)
        setattr(owner, f"held{len(names)}", new)
        names.append(new)

    names: list[Any] = []
    change(value)
    return change


@holder
def added_to_a_namespace(value):
    owner = types.SimpleNamespace()
    change = _added_later(owner, value)
    return lambda: [*owner.__dict__.values()][-1], change


@holder
def added_to_an_object(value):
    owner = Plain(value)
    change = _added_later(owner, value)
    return lambda: [*vars(owner).values()][-1], change


@holder
def added_to_a_class(value):
    class Kind:
        pass

    change, owner = _added_later(Kind, value), Kind()

    def read():
        return next(getattr(owner, each) for each in dir(owner) if each.startswith("he" + "ld"))

    return read, change


@holder
def added_to_a_module(value):
    module = types.ModuleType("module_of_the_test")
    change = _added_later(module, value)
    return lambda: [*vars(module).values()][-1], change


@holder
def in_a_base_method(value):
    class Base:
        def read(self):
            return value

    class Derived(Base):
        def read(self):
            return super().read()

    return Derived().read, lambda new: setattr(Base, "read", lambda self: new)


@holder
def in_a_base_property_between(value):
    class Base:
        held = property(lambda self: value)

    class Between(Base):
        pass

    class Derived(Between):
        held = None

        def read(self):
            return super(Derived, self).held  # noqa: UP008

    return Derived().read, lambda new: setattr(Between, "held", property(lambda self: new))


@holder
def in_a_base_class_method(value):
    class Base:
        @classmethod
        def read(cls):
            return value

    class Derived(Base):
        @classmethod
        def read(cls):
            return super().read()

    return Derived.read, lambda new: setattr(Base, "read", classmethod(lambda cls: new))


@holder
def in_a_class_that_an_object_hides(value):
    class Kind:
        held = value

    owner = Kind()
    owner.held = 7.0
    return lambda: type(owner).held, setter(Kind)


@holder
def by_an_attrgetter(value):
    owner, get = Plain(value), operator.attrgetter("held")
    return lambda: get(owner), setter(owner)


@holder
def in_a_namespace(value):
    owner = types.SimpleNamespace(config=types.SimpleNamespace(held=value))
    return lambda: owner.config.held, setter(owner.config)


@holder
def in_a_module(value):
    module = types.ModuleType("settings_of_the_test")
    module.held = value
    return lambda: module.held, setter(module)


@holder
def in_a_module_that_is_imported(value):
    name = "settings_that_are_imported"
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].held = value

    def read():
        import settings_that_are_imported as settings

        return settings.held

    return read, setter(sys.modules[name])


@holder
def in_a_dataclass(value):
    @dataclasses.dataclass
    class Data:
        held: Any
        other: int = 1

    owner = Data(value)
    return lambda: owner.held, setter(owner)


@holder
def in_an_enumerations_member(value):
    class Kind(enum.Enum):
        ONE = "one"

    Kind.ONE.held = value
    return lambda: Kind.ONE.held, setter(Kind.ONE)


@holder
def in_a_method_that_is_replaced(value):
    owner = Plain(None)

    def change(new):
        owner.read = lambda: new

    change(value)
    return lambda: owner.read(), change


@holder
def in_a_method_of_a_class_that_is_replaced(value):
    class Kind:
        pass

    def change(new):
        Kind.read = lambda self: new

    change(value)
    owner = Kind()
    return lambda: owner.read(), change
