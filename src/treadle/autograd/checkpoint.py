"""Gradient checkpointing: the values of a function are not stored for the backward pass, but
recomputed there.

In the forward pass, histories store no values. They only record which tensors the results depend
on: arguments, and anything else that the function reads and that requires gradients. The results
get one history with edges to these. Its derivative calls the function again, with the same random
draws and under the same autocast, and runs a backward pass from the results to the edges.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treadle.autograd.engine import COMPUTED_AFTER, Pass
from treadle.autograd.function import own_node
from treadle.autograd.trees import leaves, with_values
from treadle.autograd.variables import histories_of
from treadle.core.errors import AutogradError
from treadle.graph.history import (
    History,
    is_differentiable,
    keeping,
    next_serial,
    recorded,
    recording,
)
from treadle.graph.placeholders import record_composite, within
from treadle.tensor.generator import Tape, tape
from treadle.tensor.precision import lower
from treadle.tensor.tensor import Tensor, from_node


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **keywords: Any,
) -> Any:
    """A function whose intermediate values are not kept for its gradients, but computed again in
    the backward pass: less memory for one more forward pass. With arguments, what it returns.

    `function` may read what it likes, modules with parameters too, and is to compute the same when
    it is called again; what it draws at random is drawn again (unless `preserve_rng_state` is
    False), and `td.autocast` is as it was. It should not change tensors that it has from outside.
    `use_reentrant` is there for PyTorch's sake, and not needed.

    >>> import treadle as td
    >>> block = td.checkpoint(lambda x: td.exp(td.sin(x)))
    >>> x = td.asarray(0.0, device="cpu").requires_grad_()
    >>> block(x).backward()
    >>> x.grad.item()
    1.0
    """

    @functools.wraps(function)
    def checkpointed(*args: Any, **keywords: Any) -> Any:
        return _run(function, args, keywords, preserve_rng_state)

    return checkpointed(*args, **keywords) if args or keywords else checkpointed


def _run(
    function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any], same_draws: bool
) -> Any:
    if not recording.get() or within.get() is not None:
        return function(*args, **keywords)
    given = leaves((args, keywords))
    tensors = [each for each in given if isinstance(each, Tensor)]
    sources = [each._node for each in tensors]
    start = next_serial()
    drawn = Tape()
    kept, taped = keeping.set(False), tape.set(drawn)
    try:
        returned = function(*args, **keywords)
    finally:
        keeping.reset(kept)
        tape.reset(taped)
    results = leaves(returned)
    edges = _from_before(results, start)
    if not edges or not keeping.get():  # an outer checkpoint recomputes this one as well
        return returned
    nodes, places = [], []
    for number, each in enumerate(results):
        if isinstance(each, Tensor) and is_differentiable(each._cell.value):
            if any(each is other for other in given):
                each = results[number] = each.copied()
            nodes.append(own_node(each))
            places.append(number)
    again = _Again(
        function, (args, keywords), given, places, drawn if same_draws else None, lower.get()
    )
    record_composite(again, nodes, sources)
    made = nodes[0].history
    assert made is not None
    (made if len(nodes) == 1 else _one_derivative(made)).edges = tuple(edges)
    return with_values(returned, iter(results))


def _one_derivative(part: History) -> History:
    made = part.edges[0]
    assert made is not None
    return made


def _from_before(results: Sequence[Any], start: int) -> list[History]:
    """The histories from before a function was called that its results lead to."""
    todo = histories_of([each for each in results if isinstance(each, Tensor)])
    seen, found = set(todo), []
    while todo:
        made = todo.pop()
        if made.serial < start:
            found.append(made)
            continue
        for edge in made.edges:
            if edge is not None and edge not in seen:
                seen.add(edge)
                todo.append(edge)
    return sorted(found, key=lambda each: each.serial)


class _Again:
    """The derivative of a function's results: by calling it again."""

    # Recomputed values are released as soon as the gradients are computed.
    weight = COMPUTED_AFTER

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Any,
        given: Sequence[Any],
        places: Sequence[int],
        drawn: Tape | None,
        dtype: Any,
    ) -> None:
        self.name = f"checkpoint of {getattr(function, '__name__', 'a function')}"
        self._function = function
        # The containers of the arguments, and all values that are not tensors.
        self._count = sum(isinstance(each, Tensor) for each in given)
        self._given = [_HERE if isinstance(each, Tensor) else each for each in given]
        self._containers = with_values(arguments, iter(self._given))
        self._places = places
        self._drawn = drawn
        self._lower = dtype

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """All arguments."""
        return range(self._count)

    def backward(
        self, made: History, gradients: Sequence[Tensor | None]
    ) -> Iterable[tuple[History | None, Any]]:
        """The gradients of what the results came from."""
        tensors = iter([from_node(made.value(position)) for position in range(self._count)])
        given = [next(tensors) if each is _HERE else each for each in self._given]
        args, keywords = with_values(self._containers, iter(given))
        create = recording.get()
        dtype = lower.set(self._lower)
        taped = tape.set(self._drawn and self._drawn.again())
        try:
            with recorded(True):
                returned = leaves(self._function(*args, **keywords))
        finally:
            tape.reset(taped)
            lower.reset(dtype)
        roots, seeds = [], []
        for place, gradient in zip(self._places, gradients, strict=True):
            result = returned[place] if place < len(returned) else None
            if gradient is None:
                continue
            if not isinstance(result, Tensor) or result.shape != gradient.shape:
                raise AutogradError(
                    f"{self.name}: called again in the backward pass, the function returned "
                    f"something else than before ({result!r:.100}): it must compute the same"
                )
            if result._history is not None:
                roots.append(result)
                seeds.append(gradient)
        edges = [edge for edge in made.edges if edge is not None]
        found = Pass(None, create, edges, False, is_inner=True).run(roots, seeds)
        return zip(edges, found, strict=True)


_HERE = object()  # in place of a tensor
