"""`torch.autograd.Function`: operations with a user-defined backward pass, on PyTorch's tensors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from treadle.autograd.function import Function as Inner
from treadle.autograd.function import FunctionCtx as InnerCtx
from treadle.graph.history import recorded
from treadle.tensor.tensor import Tensor as InnerTensor
from treadle.torch.tensors import Tensor, wrap


class FunctionCtx:
    """What `forward` leaves for `backward`: saved tensors, and any attributes."""

    def __init__(self, inner: InnerCtx) -> None:
        self._inner = inner

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Which arguments of `forward` need a gradient."""
        return self._inner.needs_input_grad

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was given to `save_for_backward`. RuntimeError if one of them was changed since."""
        return tuple(map(_shown, self._inner.saved_tensors))

    saved_variables = saved_tensors

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, which has them in `saved_tensors`."""
        for each in tensors:
            if each is not None and not isinstance(each, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type "
                    f"{type(each).__name__}: set it as an attribute of ctx"
                )
        self._inner.save_for_backward(*map(_hidden, tensors))

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Accepted: derivatives along a direction do not use it."""

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` writes to. It must return them."""
        self._inner.mark_dirty(*map(_hidden, tensors))

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results have no gradient."""
        self._inner.mark_non_differentiable(*map(_hidden, tensors))

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros or None for a result to which nothing flows back."""
        self._inner.set_materialize_grads(value)


def _hidden(value: Any) -> Any:
    return value._inner if isinstance(value, Tensor) else value


def _shown(value: Any) -> Any:
    return wrap(value) if isinstance(value, InnerTensor) else value


def _all_hidden(returned: Any) -> Any:
    if isinstance(returned, (tuple, list)):
        return tuple(map(_hidden, returned))
    return _hidden(returned)


def _context(inner: InnerCtx) -> FunctionCtx:
    """The context of a call, one object for `forward` and `backward`."""
    found = inner.__dict__.get("_shown")
    if found is None:
        found = inner.__dict__["_shown"] = FunctionCtx(inner)
    return found


class Function:
    """An operation with a user-defined backward pass: derive from it, and call `apply`.

    >>> import treadle.torch as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return g * 3 * x * x
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    _adapted: Any = None  # of this very class

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self).__name__} should not be instantiated: methods of autograd functions are "
            "static, call .apply()",
            DeprecationWarning,
            stacklevel=2,
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results: to be defined."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Keep what `backward` needs, where `forward` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the arguments: to be defined."""
        raise NotImplementedError(
            "You must implement the backward function for your custom autograd.Function"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`, and record it as one operation."""
        adapted = cls.__dict__.get("_adapted")
        if adapted is None:
            adapted = cls._adapted = _adapt(cls)
        # The tensors that were given are returned as the same objects.
        given = {id(each._inner): each for each in args if isinstance(each, Tensor)}
        found = adapted.apply(*map(_hidden, args), **{k: _hidden(v) for k, v in kwargs.items()})

        def shown(value: Any) -> Any:
            known = given.get(id(value))
            return _shown(value) if known is None else known

        return tuple(map(shown, found)) if isinstance(found, (tuple, list)) else shown(found)


def _adapt(cls: type[Function]) -> type[Inner]:
    """The function of treadle's that calls the methods of one of PyTorch's."""

    def backward(ctx: InnerCtx, *gradients: Any) -> Any:
        derive = getattr(cls, "vjp", None) if cls.backward is Function.backward else None
        return _all_hidden((derive or cls.backward)(_context(ctx), *map(_shown, gradients)))

    members: dict[str, Any] = {"backward": staticmethod(backward)}
    if cls.setup_context is Function.setup_context:

        @functools.wraps(cls.forward)
        def forward(ctx: InnerCtx, *args: Any) -> Any:
            return _all_hidden(cls.forward(_context(ctx), *map(_shown, args)))
    else:

        @functools.wraps(cls.forward)
        def forward(*args: Any) -> Any:
            return _all_hidden(cls.forward(*map(_shown, args)))

        def setup_context(ctx: InnerCtx, inputs: tuple[Any, ...], output: Any) -> None:
            shown = (
                tuple(map(_shown, output)) if isinstance(output, (tuple, list)) else _shown(output)
            )
            cls.setup_context(_context(ctx), tuple(map(_shown, inputs)), shown)

        members["setup_context"] = staticmethod(setup_context)
    members["forward"] = staticmethod(forward)
    return type(cls.__name__, (Inner,), members)


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A `backward` that is not recorded itself."""

    @functools.wraps(fn)
    def once(ctx: Any, *args: Any) -> Any:
        with recorded(False):
            return fn(ctx, *args)

    return once


NestedIOFunction = InplaceFunction = Function
