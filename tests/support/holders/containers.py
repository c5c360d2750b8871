"""Values in lists, dicts and other containers."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

from tests.support.holders.base import Plain, holder, setter


@holder
def in_a_list(value):
    values = [0, value]
    return lambda: values[1], lambda new: values.__setitem__(1, new)


@holder
def at_the_end_of_a_list(value):
    values = [value]
    return lambda: values[-1], values.append


@holder
def behind_many_objects(value):
    values = [Plain(1.0) for _ in range(500)]
    values.append(Plain(value))
    return lambda: values[-1].held, setter(values[-1])


@holder
def in_a_dict(value):
    values = {"held": value}
    return lambda: values["held"], lambda new: values.__setitem__("held", new)


@holder
def under_a_new_key(value):
    values = {0: value}
    return lambda: values[max(values)], lambda new: values.__setitem__(len(values), new)


@holder
def in_a_nested_container(value):
    values = {"a": [({"b": Plain([value])},)]}
    return (
        lambda: values["a"][0][0]["b"].held[0],
        lambda new: values["a"][0][0]["b"].held.__setitem__(0, new),
    )


@holder
def in_a_tuple_in_an_attribute(value):
    owner = Plain((value, 1))
    return lambda: owner.held[0], lambda new: setattr(owner, "held", (new, 1))


@holder
def in_a_deque(value):
    values = collections.deque([value], maxlen=2)
    return lambda: values[-1], values.append


@holder
def in_a_set(value):
    values = {_Member(value)}

    def change(new):
        values.clear()
        values.add(_Member(new))

    return lambda: max(values, key=id).value, change


class _Member:
    def __init__(self, value):
        self.value = value


@holder
def in_a_default_dict(value):
    values = collections.defaultdict(list)
    values["held"].append(value)
    return lambda: values["held"][-1], lambda new: values["held"].append(new)


@holder
def in_a_chain_map(value):
    low, high = {"held": value}, {}
    chain = collections.ChainMap(high, low)
    return lambda: chain["held"], lambda new: high.__setitem__("held", new)


class _Named(NamedTuple):
    held: Any


@holder
def in_a_named_tuple(value):
    owner = Plain(_Named(value))
    return lambda: owner.held.held, lambda new: setattr(owner, "held", _Named(new))


@holder
def in_the_loop_over_a_list(value):
    parts = [Plain(1.0), Plain(value)]

    def read():
        found = None
        for part in parts:
            found = part.held
        return found

    return read, setter(parts[1])


@holder
def in_a_comprehension(value):
    parts = {"a": Plain(value)}
    return lambda: [part.held for part in parts.values()].pop(), setter(parts["a"])


@holder
def in_a_generator(value):
    parts = [Plain(value)]
    return lambda: next(part.held for part in iter(parts)), setter(parts[0])
