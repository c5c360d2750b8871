"""`torch.autograd`: gradients of tensors, checks of them, and modes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from treadle.autograd import engine, gradient_check, modes
from treadle.graph.history import recorded
from treadle.torch.errors import CAUGHT, translated
from treadle.torch.tensors import Tensor, unwrapped, wrapped


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of outputs with respect to inputs, as a tuple; `grad` of leaves stays as it is.
    RuntimeError for an input that was not used, unless `allow_unused`. `only_inputs` is accepted.

    >>> import treadle.torch as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> torch.autograd.grad(x * x * x, x)[0].item()
    12.0
    """
    if is_grads_batched:
        from treadle.autograd.vmap import vmap

        given = unwrapped(grad_outputs)
        listed = list(given) if isinstance(given, (list, tuple)) else [given]

        def one(*gradients: Any) -> Any:
            return engine.grad(
                unwrapped(outputs), unwrapped(inputs), list(gradients), True, create_graph,
                allow_unused, materialize_grads,
            )  # fmt: skip

        return wrapped(vmap(one)(*listed))  # type: ignore[no-any-return]
    try:
        found = engine.grad(
            unwrapped(outputs), unwrapped(inputs), unwrapped(grad_outputs), retain_graph,
            create_graph, allow_unused, materialize_grads,
        )  # fmt: skip
    except CAUGHT as error:
        raise translated(error) from None
    return wrapped(found)  # type: ignore[no-any-return]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the gradients of tensors to the `grad` of the leaves that they were computed from."""
    given = grad_variables if grad_tensors is None else grad_tensors
    engine.backward(
        unwrapped(tensors), unwrapped(given), retain_graph, create_graph, unwrapped(inputs)
    )


def Variable(data: Any, requires_grad: bool = False, volatile: bool = False) -> Tensor:
    """The tensor without history: tensors were once made variables."""
    found = data.detach()
    if requires_grad:
        found.requires_grad_()
    return found  # type: ignore[no-any-return]


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """Whether the gradients of a function are those of central differences. `inputs` that require
    gradients are float64, and few. RuntimeError says where they differ, unless `raise_exception` is
    False. PyTorch's other options are accepted, and change nothing."""
    return gradient_check.gradcheck(
        lambda *args: unwrapped(func(*wrapped(args))),
        unwrapped(inputs),
        eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
    )  # fmt: skip


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any
) -> bool:
    """Whether second derivatives are those of central differences of the first ones."""
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    kept = {
        name: options[name] for name in ("eps", "atol", "rtol", "raise_exception")
        if name in options
    }  # fmt: skip

    chosen = [isinstance(each, Tensor) and each._inner.requires_grad for each in given]

    def first(*args: Any) -> Any:
        with recorded(True):
            return derived(*args)

    def derived(*args: Any) -> Any:
        used = [
            each.detach().requires_grad_() if is_chosen and not each.requires_grad else each
            for each, is_chosen in zip(args, chosen, strict=True)
        ]
        result = func(*used)
        results = [result] if isinstance(result, Tensor) else list(result)
        wanted = [each for each, is_chosen in zip(used, chosen, strict=True) if is_chosen]
        gradients = grad_outputs
        if gradients is None:
            gradients = [_weights(each) for each in results]
        elif isinstance(gradients, Tensor):
            gradients = [gradients]
        found = grad(results, wanted, gradients, create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None)

    return gradcheck(first, given, **kept)


def _weights(like: Tensor) -> Tensor:
    """Numbers that are not all equal, so that sums hide nothing."""
    import numpy as np

    from treadle.tensor.creation import asarray

    inner = like._inner
    made = np.linspace(0.5, 1.5, inner.size).reshape(inner.shape)
    return wrapped(asarray(made, dtype=inner.dtype, device=inner.device))  # type: ignore[no-any-return]


_inference: ContextVar[bool] = ContextVar("inference", default=False)


class inference_mode(modes.inference_mode):
    """Within it nothing is recorded; a decorator, too."""

    def __init__(self, mode: bool = True) -> None:
        super().__init__(mode)
        self._is_on = mode
        self._tokens: list[Any] = []

    def __call__(self, function: Callable[..., Any]) -> Any:
        """The function, within this mode."""

        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._is_on):
                return function(*args, **kwargs)

        return within

    def __enter__(self) -> None:
        self._tokens.append(_inference.set(self._is_on))
        super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        _inference.reset(self._tokens.pop())


def is_inference_mode_enabled() -> bool:
    """Whether the block is one of `inference_mode`."""
    return _inference.get()
