"""The transforms of `torch.func`: treadle's, of functions of PyTorch's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.autograd import jacobians, transforms
from treadle.autograd import vmap as batching
from treadle.torch.tensors import unwrapped, wrapped

_Function = Callable[..., Any]


def inner(func: _Function) -> _Function:
    """A function of PyTorch's tensors as one of treadle's."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return unwrapped(func(*wrapped(args), **wrapped(kwargs)))

    return call


def outer(func: _Function) -> _Function:
    """A function of treadle's tensors as one of PyTorch's."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapped(func(*unwrapped(args), **unwrapped(kwargs)))

    return call


def grad(func: _Function, argnums: Any = 0, has_aux: bool = False) -> _Function:
    """The function that computes gradients of a function whose result is one number.

    >>> import treadle.torch as torch
    >>> torch.func.grad(lambda x: x * x)(torch.tensor(3.0)).item()
    6.0
    """
    return outer(transforms.grad(inner(func), argnums, has_aux))


def grad_and_value(func: _Function, argnums: Any = 0, has_aux: bool = False) -> _Function:
    """The function that computes gradients, and the value: `(gradients, value)`."""
    both = transforms.value_and_grad(inner(func), argnums, has_aux)

    def call(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return gradients, value

    return outer(call)


def vmap(
    func: _Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> _Function:
    """A function that does for many examples at once what `func` does for one. `chunk_size` is
    accepted: all are computed at once."""
    return outer(batching.vmap(inner(func), in_dims, out_dims, randomness))


def vjp(func: _Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """What `func` returns, and the function that multiplies a vector with its Jacobian."""
    found = transforms.vjp(inner(func), *unwrapped(primals), has_aux=has_aux)
    output, back, *aux = found

    def vjp_fn(cotangents: Any, *rest: Any, **options: Any) -> Any:
        return wrapped(back(unwrapped(cotangents), *unwrapped(rest)))

    return (wrapped(output), vjp_fn, *wrapped(aux))


def jvp(
    func: _Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """What `func` returns, and its Jacobian times a vector."""
    found = transforms.jvp(inner(func), unwrapped(primals), unwrapped(tangents), has_aux=has_aux)
    return wrapped(found)  # type: ignore[no-any-return]


def linearize(func: _Function, *primals: Any) -> tuple[Any, _Function]:
    """What `func` returns, and the function of tangents that its Jacobian there is."""
    output = func(*primals)

    def jvp_fn(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return output, jvp_fn


def jacrev(
    func: _Function,
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> _Function:
    """The function that computes Jacobians, by backward passes."""
    return outer(jacobians.jacrev(inner(func), argnums, has_aux=has_aux))


def jacfwd(
    func: _Function,
    argnums: Any = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> _Function:
    """The function that computes Jacobians, along directions."""
    return outer(jacobians.jacfwd(inner(func), argnums, has_aux=has_aux))


def hessian(func: _Function, argnums: Any = 0) -> _Function:
    """The function that computes second derivatives."""
    return outer(jacobians.hessian(inner(func), argnums))
