"""Functions made of several operations that are recorded as one for derivatives.

A softmax is five operations, and its gradient is simpler than the one that follows from theirs. So
a function decorated with `composite` runs without recording, and its result gets one history if
there is a derivative of the function's name. The parameters of the derivative name what is kept for
it: arguments by their names, the result as `out`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, ParamSpec, TypeVar

from treadle.core.dtypes import DType
from treadle.core.recent_cache import RecentCache
from treadle.graph import history
from treadle.graph.composites import Composite, composite_of
from treadle.graph.history import recorded, recording
from treadle.graph.node import Node, view_of
from treadle.graph.placeholders import record_composite, within
from treadle.graph.views import whole
from treadle.runtime import settings
from treadle.tensor.cells import Cell
from treadle.tensor.precision import LOWERED, WIDENED, cast_arguments, lower
from treadle.tensor.tensor import Tensor, from_node

_RECENT_CALLS = 1024  # of a function, with other arguments
_DECIDING = frozenset({NoneType, bool, int, float, str, DType})
_STAND_IN = "argument"  # the operation of a node that stands for any other

P = ParamSpec("P")
R = TypeVar("R")


class Options(dict[str, Any]):
    """The arguments of a composite function: tensors as positions among the sources, everything
    else as it is."""


class Position(int):
    """The position of a tensor among the sources."""


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Record a function of tensors as one operation, whose derivative has the function's name."""
    name = function.__name__
    signature = inspect.signature(function)
    casts = name in LOWERED or name in WIDENED

    @functools.wraps(function)
    def recorded_as_one(*args: P.args, **kwargs: P.kwargs) -> R:
        if casts and lower.get() is not None:
            args, kwargs = cast_arguments(name, args, kwargs)  # type: ignore[assignment]
        for value in (*args, *kwargs.values()):
            if type(value) is Tensor and value._history is not None and recording.get():
                break
        else:
            return function(*args, **kwargs)
        derivative = history.derivatives.get(name)
        if derivative is None:
            raise NotImplementedError(
                f"{name} is a composite function without a derivative: add a rule for {name!r} to "
                "the RULES of a file in autograd/rules"
            )
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        sources: list[Node] = []
        options = Options()
        for each, value in bound.arguments.items():
            if type(value) is Tensor:
                options[each] = Position(len(sources))
                sources.append(value._node)
            else:
                options[each] = value
        with recorded(False):
            result = function(*args, **kwargs)
        results = result if isinstance(result, tuple) else (result,)
        given = {id(value) for value in (*args, *kwargs.values())}
        if all(id(each) not in given for each in results):
            nodes = [_own(each) for each in results]  # type: ignore[arg-type]
            kept: list[Node] = []
            if len(nodes) > 1 and "out" in derivative.wants:  # type: ignore[attr-defined]
                kept, nodes = nodes, [_seen(each) for each in results]  # type: ignore[arg-type]
            of_call = CallDerivative(derivative, options, bool(kept))
            record_composite(of_call, nodes, sources, options, kept)
        return result

    return recorded_as_one


def as_one_node(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Let calls of a function of tensors be one node each, which is expanded when a plan is made.
    The function's result depends on nothing but its arguments, and it does not look at elements.
    What it does is remembered for the shapes, dtypes and other arguments of a call."""
    known: RecentCache[Any, Composite | None] = RecentCache(_RECENT_CALLS)

    @functools.wraps(function)
    def made_as_one(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        nodes: list[Node] = []
        key: list[Any] = []
        for value in args:
            if not _described(value, nodes, key):
                return function(*args, **kwargs)
        for name, value in kwargs.items():
            key.append(name)
            if not _described(value, nodes, key):
                return function(*args, **kwargs)
        if not nodes or settings.eager or lower.get() is not None or within.get() is not None:
            return function(*args, **kwargs)
        call = tuple(key)
        composite = known.get(call)
        if composite is None:
            if call in known:
                return function(*args, **kwargs)
            composite = known[call] = _composite_of(function, nodes, args, kwargs)
            if composite is None:
                return function(*args, **kwargs)
        return from_node(composite.node(nodes))

    return made_as_one


def _described(value: Any, nodes: list[Node], key: list[Any]) -> bool:
    """Add to `key` what of an argument decides about operations; False if that is not known."""
    kind = type(value)
    if kind is Tensor:
        node = value._node
        if node.history is not None and recording.get():
            return False
        nodes.append(node)
        key.append((node.shape, node.dtype, node.device))
        return True
    if kind not in _DECIDING and (
        kind is not tuple or any(type(each) is not int for each in value)
    ):
        return False
    key.append((kind, repr(value) if kind is float else value))  # -0.0 == 0.0
    return True


def _composite_of(
    function: Callable[..., Tensor], nodes: list[Node], args: Any, kwargs: Any
) -> Composite | None:
    """What a function does with arguments like these, found out with nodes that stand for them."""
    sources = [Node(_STAND_IN, (), node.shape, node.dtype, node.device) for node in nodes]
    following = iter(map(from_node, sources))

    def stood_in(value: Any) -> Any:
        return next(following) if type(value) is Tensor else value

    result = function(
        *[stood_in(value) for value in args],
        **{name: stood_in(value) for name, value in kwargs.items()},
    )
    if result._view is not None or result._boundary is not None:
        return None
    node = result._cell.value
    same_device = all(each.device is node.device for each in nodes)
    return composite_of(node, sources) if same_device else None


class CallDerivative:
    """The derivative of a composite function for one call: it keeps those arguments and results
    that the rule names as parameters."""

    __slots__ = ("derivative", "name", "positions")

    def __init__(self, derivative: Any, options: Options, several: bool) -> None:
        self.derivative = derivative
        self.name: str = derivative.name
        self.positions = [
            history.RESULT if each == "out" else options[each]
            for each in derivative.wants
            if (not several if each == "out" else isinstance(options.get(each), Position))
        ]

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """The positions of the values that the derivative's parameters name."""
        return self.positions

    def backward(self, made: history.History, gradients: Sequence[Any]) -> Any:
        """The gradients of the sources, each with its history."""
        return self.derivative.of_call(made, gradients)


def _own(result: Tensor) -> Node:
    """The node of a result, made one that no cell has and that has no history yet."""
    node = result._cell.value
    if result._view is not None or result._boundary is not None or node.history is not None:
        with recorded(False):
            node = result.copied()._cell.value
        result._cell, result._view, result._boundary = Cell(node), None, None
    return node


def _seen(result: Tensor) -> Node:
    """A view of a result for the tensor: the history of several results keeps these, and a node
    that held the history itself would make a cycle."""
    node = result._cell.value
    view = view_of(node, whole(node.shape))
    result._cell = Cell(view)
    return view
