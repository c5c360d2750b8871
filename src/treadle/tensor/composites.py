"""Functions made of several operations that are recorded as one for derivatives.

A softmax is five operations, and its gradient is simpler than the one that follows from theirs. So
a function decorated with `composite` runs without recording, and its result gets one history if
there is a derivative of the function's name. The parameters of the derivative name what is kept for
it: arguments by their names, the result as `out`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from types import NoneType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from treadle.core.dtypes import DType
from treadle.core.overriding import overridden
from treadle.core.recent_cache import RecentCache
from treadle.graph import history
from treadle.graph.history import recorded, recording
from treadle.graph.node import VIEW, Node, base_of, is_deep, view_of
from treadle.graph.placeholders import record_composite, within
from treadle.graph.templates import Template, read_from_memory, template_of
from treadle.graph.views import View, is_whole, whole
from treadle.runtime import settings
from treadle.runtime.varying import varying
from treadle.tensor.cells import Cell, compute, compute_together
from treadle.tensor.precision import LOWERED, WIDENED, cast_arguments, lower
from treadle.tensor.tensor import Tensor, from_node, unbroken

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
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                return overridden(error, name, args, kwargs)  # type: ignore[no-any-return]
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
        outer = unbroken.get()
        unbroken.set(True)
        try:
            with recorded(False):
                result = function(*args, **kwargs)
        finally:
            unbroken.set(outer)
        results = result if isinstance(result, tuple) else (result,)
        given = {id(value) for value in (*args, *kwargs.values())}
        if all(id(each) not in given for each in results):
            nodes = [_own(each) for each in results]  # type: ignore[arg-type]
            kept: list[Node] = []
            wants_results = len(nodes) > 1 and "out" in derivative.wants  # type: ignore[attr-defined]
            if wants_results:
                kept = nodes
            # For all examples the results are made together, so that none is made of another.
            if wants_results or (len(nodes) > 1 and within.get() is not None):
                nodes = [_seen(each) for each in results]  # type: ignore[arg-type]
            of_call = CallDerivative(derivative, options, bool(kept))
            record_composite(of_call, nodes, sources, options, kept)
        if not outer and within.get() is None:
            for one in results:
                if type(one) is Tensor and is_deep(one._cell.value):
                    compute(one._cell.value, one._cell)
        return result

    return recorded_as_one


def as_one_node(function: Callable[P, R]) -> Callable[P, R]:
    """Let calls of a function of tensors be one node each, which is expanded when a plan is made;
    more if it has several results, or kernels of their own inside. The function's results depend on
    nothing but its arguments, and it does not look at elements. What it does is remembered for the
    shapes, dtypes and other arguments of a call."""
    return _as_one_node(function, False)


def rule_as_one_node(rule: Callable[P, R]) -> Callable[P, R]:
    """The same for the rule of a derivative, a dict of whose results may be views of arguments: a
    call that is recorded itself runs the rule."""
    return _as_one_node(rule, True)


class _Remembered(NamedTuple):
    """What is remembered of a call: how its nodes are made, None if the function has to be called;
    the names of its results if they are a dict, none for a tuple, None for one tensor; and which of
    the arrays are read from memory."""

    template: Template | None
    names: tuple[str, ...] | None = None
    from_memory: tuple[int, ...] = ()


# Whether a function is run to find out what it does: what it calls is a part of that.
_running: ContextVar[bool] = ContextVar("running", default=False)


def _as_one_node(function: Callable[P, R], may_be_views: bool) -> Callable[P, R]:
    known: RecentCache[Any, _Remembered] = RecentCache(_RECENT_CALLS)

    @functools.wraps(function)
    def made_as_one(*args: P.args, **kwargs: P.kwargs) -> R:
        if _running.get() or settings.eager or settings.check or lower.get() is not None:
            return function(*args, **kwargs)
        if varying.get() is not None:  # the sizes of a trace are not worth remembering
            return function(*args, **kwargs)
        tensors: list[Tensor] = []
        nodes: list[Node] = []
        key: list[Any] = [settings.float32_products]
        is_recording = recording.get()
        for value in args:
            if not _described(value, tensors, nodes, key, is_recording):
                return function(*args, **kwargs)
        for name, value in kwargs.items():
            key.append(name)
            if not _described(value, tensors, nodes, key, is_recording):
                return function(*args, **kwargs)
        if not nodes or within.get() is not None:
            return function(*args, **kwargs)
        call: Any = tuple(key)
        found = known.get(call)
        if found is None:
            found = known[call] = _found_out(function, nodes, {}, may_be_views, args, kwargs)
        views = {}
        for at in found.from_memory:
            if nodes[at].op == VIEW:  # it is read in place
                nodes[at], views[at] = base_of(nodes[at])
        if views:
            call = call, tuple([(at, nodes[at].shape, view) for at, view in views.items()])
            found = known.get(call)
            if found is None:
                found = known[call] = _found_out(function, nodes, views, may_be_views, args, kwargs)
        template, names, _ = found
        if template is None:
            return function(*args, **kwargs)
        results, count = template.nodes(nodes), len(nodes)
        if len(results) > 1 and any(node is not None and is_deep(node) for node in results):
            compute_together([node for node in results if node is not None])
        made = [
            None if at is None or node is None else tensors[at] if at < count else from_node(node)
            for node, at in zip(results, template.results, strict=True)
        ]
        if names is None:
            return made[0]  # type: ignore[return-value]
        return dict(zip(names, made, strict=True)) if names else tuple(made)  # type: ignore[return-value]

    return made_as_one


def _described(
    value: Any, tensors: list[Tensor], nodes: list[Node], key: list[Any], is_recording: bool
) -> bool:
    """Add to `key` what of an argument decides about operations; False if that is not known."""
    kind = type(value)
    if kind is Tensor:
        node = value._node
        dtype = node.dtype
        if type(dtype) is not DType or (is_recording and node.history is not None):
            return False
        if node.op == VIEW:  # a parameter is a view of all of its cell
            source = node.sources[0]
            if is_whole(node.detail, source.shape):
                node = source
        tensors.append(value)
        nodes.append(node)
        key += node.shape, dtype.short, node.device
        return True
    if kind in _DECIDING:
        key.append((kind, repr(value) if kind is float else value))  # -0.0 == 0.0
        return True
    if not isinstance(value, tuple):
        return False
    key.append((kind, len(value)))
    return all(_described(each, tensors, nodes, key, is_recording) for each in value)


def _found_out(
    function: Callable[..., Any],
    nodes: list[Node],
    views: dict[int, View],
    may_be_views: bool,
    args: Any,
    kwargs: Any,
) -> _Remembered:
    """What a function does with arguments like these, found out with nodes that stand for them.
    `views` says how some of the arguments see their nodes."""
    device = nodes[0].device
    if any(node.device is not device for node in nodes):
        return _Remembered(None)
    stand_ins = [Node(_STAND_IN, (), node.shape, node.dtype, device) for node in nodes]
    numbers = itertools.count()

    def stood_in(value: Any) -> Any:
        if isinstance(value, tuple):
            parts = [stood_in(each) for each in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if type(value) is not Tensor:
            return value
        at = next(numbers)
        made = from_node(stand_ins[at])
        return made._seen_through(views[at]) if at in views else made

    token = _running.set(True)
    try:
        result = function(
            *[stood_in(value) for value in args],
            **{name: stood_in(value) for name, value in kwargs.items()},
        )
    finally:
        _running.reset(token)
    names: tuple[str, ...] | None = None
    results: Sequence[Any] = (result,)
    if isinstance(result, dict):
        names, results = tuple(result), tuple(result.values())
    elif isinstance(result, tuple):
        names, results = (), result
    if not results or any(each is not None and type(each) is not Tensor for each in results):
        return _Remembered(None)
    made = [None if each is None else each._node for each in results]
    if not may_be_views and any(each is None or base_of(each)[0] in stand_ins for each in made):
        return _Remembered(None)
    template = template_of(made, stand_ins)
    return _Remembered(template, names, () if views else read_from_memory(made, stand_ins))


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
    cell, is_view = result._cell, result._view is not None
    node = cell.value
    if is_view or cell.base is not None or result._boundary is not None or node.history is not None:
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
