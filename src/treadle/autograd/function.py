"""`td.autograd.Function`: operations with a user-defined backward pass.

What `forward` does is not recorded; its results get one history, whose derivative calls `backward`.
So `forward` may contain anything, user kernels too.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from treadle.core.errors import AutogradError, ShapeError
from treadle.graph.history import RESULT, History, is_differentiable, recorded, recording
from treadle.graph.node import Node, constant
from treadle.graph.placeholders import record_composite
from treadle.tensor.cells import Cell
from treadle.tensor.conversions import number_as
from treadle.tensor.tensor import Tensor, from_node


class FunctionCtx:
    """What `forward` leaves for `backward`: the tensors given to `save_for_backward`, whatever else
    is set as attributes, and which inputs need a gradient (`needs_input_grad`)."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._without: tuple[Tensor, ...] = ()
        self._materialize = True
        self._unpack: Any = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, results or other tensors for `backward`, which has them in `saved_tensors`.
        A change of one of them in place is noticed there."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward takes tensors and None, not {type(tensor).__name__}: set "
                    "anything else as an attribute, ctx.scale = 2.0"
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was given to `save_for_backward`. AutogradError if one of them was changed since."""
        return self._saved if self._unpack is None else self._unpack()

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` writes to. It must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results have no gradient."""
        self._without = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (so it is unless this says False) or None for a result to
        which nothing flows back."""
        self._materialize = bool(value)


class Function:
    """An operation with a user-defined backward pass: derive from it, and call `apply`.

    `forward(ctx, *args)` computes; or `forward(*args)`, and `setup_context(ctx, inputs, output)`
    says what is kept. `backward(ctx, *gradients)` gets one gradient for each result and returns one
    for each argument of `forward`, None for what is not a tensor. If it is made of operations, it
    can be differentiated itself. User kernels may be launched in both.

    >>> import treadle as td
    >>> class Cube(td.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x**2
    >>> x = td.asarray(2.0, device="cpu").requires_grad_()
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    @staticmethod
    def forward(*args: Any, **keywords: Any) -> Any:
        """Compute the results: to be defined."""
        raise NotImplementedError("a td.autograd.Function defines forward(ctx, ...)")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what `backward` needs, where `forward` takes no ctx."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Compute the gradients of the arguments: to be defined."""
        raise NotImplementedError("a td.autograd.Function defines backward(ctx, *gradients)")

    @classmethod
    def apply(cls, *args: Any, **keywords: Any) -> Any:
        """Call `forward`, and record it as one operation."""
        if keywords:
            args = _by_position(cls, args, keywords)
        ctx = FunctionCtx()
        tracked = [
            isinstance(each, Tensor) and each._history is not None and recording.get()
            for each in args
        ]
        ctx.needs_input_grad = tuple(tracked)
        # What the inputs are before `forward` may write to some of them.
        sources = [each._node for each in args if isinstance(each, Tensor)]
        with recorded(False):
            if cls.setup_context is Function.setup_context:
                returned = cls.forward(ctx, *args)
            else:
                returned = cls.forward(*args)
                cls.setup_context(ctx, args, returned)
        if any(tracked):
            return _record(cls, ctx, args, sources, returned)
        return returned


def _by_position(
    cls: type[Function], args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Any, ...]:
    signature = inspect.signature(cls.forward)
    lead = (None,) if cls.setup_context is Function.setup_context else ()
    bound = signature.bind(*lead, *args, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{cls.__name__}.forward has arguments by keyword only: apply has none")
    return bound.args[len(lead) :]


# --- recording -----------------------------------------------------------------------------------


def _record(
    cls: type[Function],
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    sources: list[Node],
    returned: Any,
) -> Any:
    """Give the results their history."""
    results = list(returned) if isinstance(returned, tuple) else [returned]
    for dirty in ctx._dirty:
        if all(dirty is not each for each in results):
            raise AutogradError(
                f"{cls.__name__}.forward marks an input as dirty that it does not return: return "
                "it, too"
            )
        if dirty._boundary is not None and dirty._history is not None:
            raise AutogradError(
                f"{cls.__name__}.forward writes to a leaf that requires gradients, or a view of "
                "one: pass x.clone()"
            )
    nodes: list[Node] = []  # of the results that have gradients
    places: list[int] = []
    for number, each in enumerate(results):
        if not isinstance(each, Tensor):
            continue
        is_without = any(each is other for other in ctx._without)
        if not is_without and is_differentiable(each._cell.value):
            is_dirty = any(each is other for other in ctx._dirty)
            if not is_dirty and any(each is other for other in args):
                each = results[number] = each.copied()  # an input is not a result of this
            nodes.append(_written_node(each) if is_dirty else own_node(each))
            places.append(number)
    if nodes:
        derivative = _OfFunction(cls, ctx, args, results, places)
        record_composite(derivative, nodes, sources, None, derivative.extra)
        ctx._saved = ctx._dirty = ctx._without = ()
    return tuple(results) if isinstance(returned, tuple) else results[0]


def own_node(result: Tensor) -> Node:
    """The node of a result that is to have another history: in no other cell, and without one."""
    cell, is_view = result._cell, result._view is not None
    node = cell.value
    if is_view or cell.base is not None or result._boundary is not None or node.history is not None:
        with recorded(False):
            node = result.copied()._cell.value
        node.history = None
        result._cell, result._view, result._boundary = Cell(node), None, None
    return node


def _written_node(result: Tensor) -> Node:
    """The node of an input that was written, without the history that it had."""
    if result._view is not None or result._cell.base is not None:
        raise AutogradError("mark_dirty takes whole tensors, not views of others: x.clone()")
    node = result._cell.value
    node.history = None
    return node


class _OfFunction:
    """The derivative of one call of a Function."""

    is_by_users = True  # PyTorch calls its like by the class alone

    def __init__(
        self,
        cls: type[Function],
        ctx: FunctionCtx,
        args: tuple[Any, ...],
        results: list[Any],
        places: list[int],
    ) -> None:
        self.name = cls.__name__
        self._cls = cls
        self._ctx = ctx
        self._is_tensor = [isinstance(each, Tensor) for each in args]
        self._count = len(results)
        self._places = places
        self._shapes = [
            (each.shape, each.dtype, each.device) if isinstance(each, Tensor) else None
            for each in results
        ]
        self.extra: list[Node] = []
        self._needs: list[int] = []
        self._at: list[int | None] = []  # where each saved tensor is among the kept values
        first = sum(self._is_tensor)
        for saved in ctx._saved:
            self._at.append(self._place(saved, results, places, first))

    def _place(
        self, saved: Tensor | None, results: list[Any], places: list[int], first: int
    ) -> int | None:
        if saved is None:
            return None
        for number, each in enumerate(results):
            if each is saved and number in places:
                if len(places) == 1:
                    self._needs = [RESULT]
                    return RESULT
                # The history of several results would keep one of them, which has that history.
                with recorded(False):
                    saved = saved.copied()
                break
        self.extra.append(saved._node)
        return first + len(self.extra) - 1

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """The result, if it was saved and is the only one."""
        return self._needs

    def _unpacked(self, made: History) -> tuple[Tensor | None, ...]:
        return tuple([None if at is None else from_node(made.value(at)) for at in self._at])

    def backward(self, made: History, gradients: Sequence[Tensor | None]) -> Iterable[Any]:
        """The gradients of the arguments that are tensors."""
        given: list[Any] = [None] * self._count
        for place, gradient in zip(self._places, gradients, strict=True):
            given[place] = gradient
        ctx = self._ctx
        if ctx._materialize:
            given = [
                _zeros(*what) if each is None and what is not None else each
                for each, what in zip(given, self._shapes, strict=True)
            ]
        ctx._unpack = lambda: self._unpacked(made)
        try:
            found = self._cls.backward(ctx, *given)
        finally:
            ctx._unpack = None
        returned = list(found) if isinstance(found, (tuple, list)) else [found]
        count = len(self._is_tensor)
        while len(returned) > count and returned[-1] is None:
            returned.pop()
        if len(returned) != count:
            raise AutogradError(
                f"{self.name}.backward returned {len(returned)} gradients, and forward takes "
                f"{count} arguments: return one for each, None for those that have none"
            )
        edges = iter(made.edges)
        for number, (is_tensor, gradient) in enumerate(zip(self._is_tensor, returned, strict=True)):
            edge = next(edges) if is_tensor else None
            if gradient is None:
                continue
            if not is_tensor:
                raise AutogradError(
                    f"{self.name}.backward returned a gradient for argument {number}, which is not "
                    "a tensor: return None there"
                )
            if not isinstance(gradient, Tensor):
                raise AutogradError(
                    f"{self.name}.backward returned {type(gradient).__name__} for argument "
                    f"{number}, and gradients are tensors, or None"
                )
            if edge is not None:
                _check_shape(self.name, number, gradient, edge)
                yield edge, gradient


def _check_shape(name: str, number: int, gradient: Tensor, edge: History) -> None:
    """A gradient has its argument's shape, or one that this was broadcast to."""
    shape, extra = gradient.shape, len(gradient.shape) - len(edge.shape)
    fits = extra >= 0 and all(
        mine in (1, theirs) for mine, theirs in zip(edge.shape, shape[extra:], strict=True)
    )
    if not fits:
        raise ShapeError(
            f"{name}.backward returned a gradient of shape {shape} for argument {number}, whose "
            f"shape is {edge.shape}"
        )


def _zeros(shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    return from_node(constant(number_as(0, dtype), shape, dtype, device))
