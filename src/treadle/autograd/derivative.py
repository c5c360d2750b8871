"""Derivatives: the functions of the tables in `rules`, and the values that these get.

A rule is a plain function of tensors: of the result's gradient, and of the values that it names as
parameters. A history stores the values that are named. Gradients of complex numbers are PyTorch's:
the conjugate of the derivative, so that a step against them descends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from treadle.core.dtypes import bfloat16, float16, float32
from treadle.graph.history import RESULT, History, recording
from treadle.tensor.composites import Options, Position, rule_as_one_node
from treadle.tensor.tensor import Tensor, from_node

# What a derivative gives: gradients of sources, each with the source's history.
Flow = Iterable[tuple[History | None, Any]]
# A function of a gradient and of the values that its other parameters name.
Rule = Callable[..., Any]
HALVES = (float16, bfloat16)
_POSITIONS = {"x": 0, "y": 1, "z": 2, "out": RESULT}


def tensor_of(made: History, position: int) -> Tensor:
    """A value that a history stores. Nothing writes to it."""
    return from_node(made.value(position))


def _wide(x: Tensor) -> Tensor:
    """What a rule computes with: halves in float32, so that they are rounded once."""
    return x.to(float32) if x.dtype in HALVES else x


class OfOperation:
    """The derivative of a node: one rule for each source, None for sources without gradients.

    A rule takes the gradient, then by name what it needs of x, y and z, which are the first three
    sources, and out, the result.
    """

    def __init__(self, name: str, rules: Sequence[Rule | None]) -> None:
        self.name = name
        self.rules = rules
        self._wants = [[] if rule is None else _named(rule)[1:] for rule in rules]

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """The positions of the values that the rules of tracked sources name."""
        wanted = {
            _POSITIONS[name]
            for names, is_tracked in zip(self._wants, tracked, strict=True)
            if is_tracked
            for name in names
        }
        return tuple(wanted)

    def backward(self, made: History, gradients: Sequence[Tensor | None]) -> Flow:
        """The gradients of the sources."""
        gradient = gradients[0]
        assert gradient is not None
        for edge, rule, names in zip(made.edges, self.rules, self._wants, strict=True):
            if edge is None or rule is None:
                continue
            if not names:
                yield edge, rule(gradient)
                continue
            values = {name: _wide(tensor_of(made, _POSITIONS[name])) for name in names}
            yield edge, rule(_wide(gradient), **values)


class OfNode:
    """The derivative of a node whose detail matters: a function of the gradient and the history,
    which gives a gradient for each source."""

    def __init__(self, name: str, rule: Rule, needs: Sequence[int] = ()) -> None:
        self.name = name
        self._rule = rule
        self._needs = needs

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """The positions of the values that the rule reads, whichever sources are tracked."""
        return self._needs

    def backward(self, made: History, gradients: Sequence[Tensor | None]) -> Flow:
        """The gradients of the sources."""
        return zip(made.edges, self._rule(gradients[0], made), strict=True)


class OfFunction:
    """The derivative of a function that is recorded `composite`.

    The rule takes the gradient (of several results: a tuple of theirs, None where there is none),
    then by name what it needs of the function's arguments and `out`, the result, or a tuple of
    several. It gives the gradients of arguments by their names; a single one is that of the first
    argument. What it does is remembered by the shapes and dtypes of its arguments, unless it
    `looks` at elements. `check` is called with the names of the arguments that wait for gradients.
    """

    def __init__(
        self,
        name: str,
        rule: Rule,
        looks: bool = False,
        check: Callable[[tuple[str, ...]], None] | None = None,
    ) -> None:
        self.name = name
        self._check = check
        self._rule = _by_names(rule)
        self._remembered = self._rule if looks else rule_as_one_node(self._rule)
        self.wants = _named(rule)[1:]

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """`composite` asks by names."""
        raise NotImplementedError

    def of_call(self, made: History, gradients: Sequence[Tensor | None]) -> Flow:
        """The gradients of the tensors among the arguments."""
        options: Options = made.options
        values: dict[str, Any] = {}
        for name in self.wants:
            if name == "out":
                values[name] = _result(made)
                continue
            value = options[name]
            values[name] = tensor_of(made, value) if isinstance(value, Position) else value
        wanted = tuple(
            [
                name
                for name, position in options.items()
                if isinstance(position, Position) and made.edges[position] is not None
            ]
        )
        if self._check is not None:
            self._check(wanted)
        rule = self._rule if recording.get() else self._remembered
        given = rule(
            wanted, next(iter(options)), gradients[0] if made.parts == 1 else tuple(gradients),
            **values,
        )  # fmt: skip
        for name, gradient in given.items():
            yield made.edges[options[name]], gradient


def _by_names(rule: Rule) -> Rule:
    """A rule that gives the wanted gradients by the names of arguments. `first` is the name of the
    first one."""

    def named(
        wanted: tuple[str, ...], first: str, gradient: Any, /, **values: Any
    ) -> dict[str, Any]:
        given = rule(gradient, **values)
        if not isinstance(given, Mapping):
            given = {first: given}
        return {name: each for name, each in given.items() if name in wanted and each is not None}

    return named


def _result(made: History) -> Any:
    """The result, or a tuple of several, which are kept behind the sources."""
    if made.parts == 1:
        return tensor_of(made, RESULT)
    first = len(made.edges)
    return tuple([from_node(made.part(each, first + each)) for each in range(made.parts)])


def _named(rule: Rule) -> list[str]:
    return list(inspect.signature(rule).parameters)
