"""Values in functions, modules, and where the standard library keeps them."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import operator
import sys
import threading
import types
import weakref
from typing import Any

import treadle as td
from tests.support.holders.base import Plain, holder, setter
from treadle import nn


def _first(value):
    return value


@holder
def in_a_partial(value):
    read = functools.partial(_first, value=value)
    return lambda: read(), lambda new: read.keywords.__setitem__("value", new)


@holder
def in_a_partial_that_is_replaced(value):
    owner = Plain(functools.partial(_first, value))
    return (
        lambda: owner.held(),
        lambda new: setattr(owner, "held", functools.partial(_first, new)),
    )


@holder
def in_an_object_that_a_partial_has(value):
    owner = Plain(value)
    return functools.partial(operator.attrgetter("held"), owner), setter(owner)


@holder
def in_a_function_that_is_called(value):
    owner = Plain(lambda: value)
    return lambda: owner.held(), lambda new: setattr(owner, "held", lambda: new)


@holder
def in_a_cached_property(value):
    class Kind:
        @functools.cached_property
        def held(self):
            return value

    owner = Kind()
    return lambda: owner.held, lambda new: owner.__dict__.__setitem__("held", new)


@holder
def in_a_functions_result(value):
    owner = Plain(value)

    def configuration():
        return owner

    return lambda: configuration().held, setter(owner)


@holder
def in_a_context_variable(value):
    variable = contextvars.ContextVar("variable")
    variable.set(value)
    return lambda: variable.get(), variable.set


@holder
def in_an_object_of_a_context_variable(value):
    variable = contextvars.ContextVar("variable")
    variable.set(Plain(value))
    return lambda: variable.get().held, lambda new: setattr(variable.get(), "held", new)


@holder
def in_a_threads_locals(value):
    local = threading.local()
    local.held = value
    return lambda: local.held, setter(local)


@holder
def behind_a_weak_reference(value):
    owner = Plain(value)
    reference = weakref.ref(owner)
    change = setter(owner)
    return lambda: reference().held, change


@holder
def behind_a_weak_proxy(value):
    owner = Plain(value)
    proxy = weakref.proxy(owner)
    change = setter(owner)
    return lambda: proxy.held, change


@holder
def behind_a_compiled_function(value):
    owner = Plain(value)
    inner = td.compile(owner.read)
    return lambda: inner(), setter(owner)


@holder
def in_a_module_of_sys_modules(value):
    name = "settings_that_are_looked_up"
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].held = value
    return lambda: sys.modules["settings_that_are_looked_up"].held, setter(sys.modules[name])


@holder
def in_a_metaclass(value):
    class Meta(type):
        held = value

    class Kind(metaclass=Meta):
        pass

    return lambda: Kind.held, setter(Meta)


@holder
def in_a_view_of_a_dict(value):
    values = {"held": value}
    view, proxy = values.values(), types.MappingProxyType(values)
    return lambda: (proxy["held"], *view)[1], lambda new: values.__setitem__("held", new)


@holder
def in_a_weak_set(value):
    owner = Plain(value)
    members = weakref.WeakSet([owner])
    change = setter(owner)
    return lambda: [member.held for member in members].pop(), change


@holder
def in_an_operator_of_a_class(value):
    class Kind:
        def __getitem__(self, key):
            return self.held

    owner = Kind()
    owner.held = value

    def change(new):
        Kind.__getitem__ = lambda self, key: new

    return lambda: owner[0], change


@holder
def in_the_class_of_what_is_made(value):
    class Kind:
        held = value

        def __init__(self):
            self.copy = self.held

    return lambda: Kind().copy, setter(Kind)


@holder
def in_a_module_that_is_replaced_as_a_whole(value):
    name = "settings_that_are_replaced"

    def change(new):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].held = new

    def read():
        from settings_that_are_replaced import held

        return held

    change(value)
    return read, change


@holder
def in_an_attribute_that_may_be_missing(value):
    owner = types.SimpleNamespace()

    def read():
        try:
            return owner.held
        except AttributeError:
            return None

    def change(new):
        owner.__dict__.pop("held", None)
        if new is not None:
            owner.held = new

    change(value)
    return read, change


@holder
def in_a_pattern(value):
    @dataclasses.dataclass
    class Data:
        inner: Any

    owner = Data(value)

    def read():
        match owner:
            case Data(inner):
                return inner

    return read, setter(owner, "inner")


@holder
def in_a_context_manager(value):
    owner = Plain(value)

    @contextlib.contextmanager
    def configured():
        yield owner

    def read():
        with configured() as found:
            return found.held

    return read, setter(owner)


@holder
def in_a_memo(value):
    def memo(key, known={}):  # noqa: B006
        if key not in known:
            known[key] = Plain(value)
        return known[key]

    memo("a")
    return lambda: memo("a").held, lambda new: setattr(memo("a"), "held", new)


@holder
def in_an_operators_owner(value):
    owner = [value]
    get = owner.__getitem__
    return lambda: get(0), lambda new: owner.__setitem__(0, new)


class Scaled(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.held = value

    def forward(self):
        return self.held


@holder
def in_a_modules_attribute(value):
    owner = nn.ModuleList([Scaled(value)])

    def change(new):
        owner[0].__dict__.pop("held", None)
        owner[0].held = new

    return lambda: owner[0](), change


@holder
def in_a_module_that_is_compiled(value):
    owner = Scaled(value)
    return owner, setter(owner)


@holder
def in_a_modules_hook(value):
    owner = Scaled(1.0)
    handles = [owner.register_forward_hook(lambda module, args, out: value)]

    def change(new):
        handles.pop().remove()
        handles.append(owner.register_forward_hook(lambda module, args, out: new))

    return owner, change


@holder
def in_a_module_that_is_replaced(value):
    owner = nn.Sequential(nn.Identity())
    owner.part = Scaled(value)
    return lambda: owner.part(), lambda new: setattr(owner, "part", Scaled(new))
