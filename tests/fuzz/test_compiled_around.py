"""Drawn surroundings of compiled functions: values are held in every way, also one in another, and
change between calls. Each call must do what the function itself does then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import treadle as td
from tests.support.holders import HOLDERS

_EXAMPLES = max(settings.default.max_examples // 4, 5)
_NAMES = sorted(HOLDERS)
_ONE_EACH = (
    "in_a_global",
    "in_the_dict_of_globals",
    "in_a_module_",
)  # of these there is one place alone
_VALUES: tuple[Callable[[], Any], ...] = (
    lambda: 2.0, lambda: 3.0, lambda: -0.0, lambda: 1, lambda: True, lambda: None,
    lambda: td.full(3, 2.0, device="cpu"), lambda: td.asarray([1.0, 2.0, 3.0], device="cpu"),
    lambda: np.full(3, 0.5, np.float32), lambda: "text", lambda: (1.5, td.ones(3, device="cpu")),
    lambda: [2.0, None], lambda: {"a": 0.5},
)  # fmt: skip


class Step(NamedTuple):
    """What happens between two calls: a value in a place is replaced (`what` tells by which),
    written into, or stays."""

    place: int
    what: int
    writes: bool


class _Reader:
    """A function that does not become a method in a class."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read

    def __call__(self) -> Any:
        return self.read()


_places = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3).filter(
    lambda names: sum(name.startswith(_ONE_EACH) for name in names) < 2
)
_steps = st.lists(
    st.builds(Step, st.integers(0, 2), st.integers(0, len(_VALUES) - 1), st.booleans()),
    min_size=1, max_size=5,
)  # fmt: skip


def _total(x: Any, held: Any) -> Any:
    """A computation in which everything counts that may be held."""
    if held is None:
        return x + 7
    if isinstance(held, str):
        return x * len(held)
    if isinstance(held, np.ndarray):
        return x * td.asarray(held, device="cpu")
    if isinstance(held, dict):
        held = list(held.values())
    if isinstance(held, (list, tuple)):
        for each in held:
            x = _total(x, each) + 1
        return x
    if callable(held):
        return _total(x, held())
    return x * held


def _changed(value: Any) -> bool:
    """Write into a value that can be written."""
    if isinstance(value, td.Tensor):
        value += 1
    elif isinstance(value, np.ndarray):
        value *= 2
    elif isinstance(value, list):
        value.append(0.25)
    elif isinstance(value, dict):
        value[len(value)] = 1.25
    else:
        return False
    return True


@pytest.mark.timeout(1000)
@settings(max_examples=_EXAMPLES)
@given(_places, st.booleans(), _steps)
def test_calls_see_what_is_around(names: list[str], is_nested: bool, steps: list[Step]) -> None:
    values = [_VALUES[number]() for number in range(len(names))]
    held = [HOLDERS[name](value) for name, value in zip(names, values, strict=True)]
    readers = [read for read, _ in held]
    if is_nested and len(names) > 1:  # what reads the first is in the second
        first = _Reader(readers[0])
        read, change = HOLDERS[names[1]](first)
        readers[0] = lambda: read()()
        readers[1] = lambda: 1.0
        held[1] = first, lambda _: change(_Reader(first))

    def body(x: Any) -> Any:
        for read in readers:
            x = _total(x, read())
        return x

    f = td.compile(body)
    x = td.arange(3, dtype=td.float32, device="cpu")
    for turn, step in enumerate([Step(0, 0, False), *steps]):
        place = step.place % len(names)
        if turn and not (step.writes and _changed(values[place])):
            values[place] = _VALUES[step.what]()
            held[place][1](values[place])
        expected = str(body(x).tolist())
        for _ in range(2):
            assert str(f(x).tolist()) == expected, f"call {turn} with {names}"
