"""Values in variables, closures and defaults."""

from __future__ import annotations

import functools
from typing import Any

from tests.support.holders.base import holder

variable: Any = None


@holder
def in_a_global(value):
    def change(new):
        global variable
        variable = new

    change(value)
    return lambda: variable, change


def _helper():
    return variable


@holder
def in_a_global_of_a_helper(value):
    _, change = in_a_global(value)
    return lambda: _helper(), change


def _deep(depth):
    return variable if depth == 0 else _deep(depth - 1)


@holder
def in_a_global_of_a_helper_of_a_helper(value):
    _, change = in_a_global(value)
    return lambda: _deep(3), change


@holder
def in_a_closure(value):
    def change(new):
        nonlocal value
        value = new

    return lambda: value, change


@holder
def in_a_closure_of_a_closure(value):
    def change(new):
        nonlocal value
        value = new

    def outer():
        def inner():
            return value

        return inner()

    return outer, change


@holder
def in_a_decorators_closure(value):
    def change(new):
        nonlocal value
        value = new

    def decorate(function):
        @functools.wraps(function)
        def wrapped():
            return function(value)

        return wrapped

    @decorate
    def read(given):
        return given

    return read, change


@holder
def in_a_default(value):
    def read(held=value):
        return held

    def change(new):
        read.__defaults__ = (new,)

    return read, change


@holder
def in_a_keyword_default(value):
    def read(*, held=value):
        return held

    def change(new):
        read.__kwdefaults__["held"] = new

    return lambda: read(), change


@holder
def in_other_code(value):
    names = {"held": value}
    exec("def read(): return held", names)

    def change(new):
        names["held"] = new

    return names["read"], change


@holder
def in_a_functions_attribute(value):
    def read():
        return read.held

    def change(new):
        read.held = new

    change(value)
    return read, change


@holder
def in_the_dict_of_globals(value):
    _, change = in_a_global(value)
    return lambda: globals()["variable"], change
