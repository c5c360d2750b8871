"""`torch.autograd.functional`: Jacobians, Hessians and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.autograd import jacobians, transforms
from treadle.torch.tensors import Tensor, unwrapped, wrapped

_Function = Callable[..., Any]


def _inner(func: _Function) -> _Function:
    """The function, of treadle's tensors."""
    return lambda *args: unwrapped(func(*wrapped(args)))


def _given(inputs: Any) -> tuple[tuple[Any, ...], bool]:
    is_one = isinstance(inputs, Tensor)
    listed = (inputs,) if is_one else tuple(inputs)
    return unwrapped(listed), is_one


def _cut(tree: Any, create_graph: bool) -> Any:
    if isinstance(tree, (tuple, list)):
        return tuple(_cut(each, create_graph) for each in tree)
    if isinstance(tree, Tensor) and not create_graph:
        return tree.detach()  # type: ignore[attr-defined]
    return tree


def _one(tree: Any, is_one: bool) -> Any:
    return tree[0] if is_one else tree


def jacobian(
    func: _Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of each element of what `func` returns by each of the inputs: a tensor, or a
    tuple for several inputs, or tuples of those for several results.

    >>> import treadle.torch as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    given, is_one = _given(inputs)
    way = jacobians.jacfwd if strategy == "forward-mode" else jacobians.jacrev
    found = wrapped(way(_inner(func), tuple(range(len(given))))(*given))
    has_several = isinstance(found, tuple) and bool(found) and isinstance(found[0], (tuple, list))
    if has_several:
        return _cut(tuple(_one(tuple(each), is_one) for each in found), create_graph)
    return _cut(_one(tuple(found), is_one), create_graph)


def hessian(
    func: _Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function whose result is one number; for several inputs tuples of
    tuples."""
    given, is_one = _given(inputs)
    positions = tuple(range(len(given)))
    scalar = _scalar(_inner(func))
    found = wrapped(jacobians.hessian(scalar, positions)(*given))
    if is_one:
        return _cut(found[0][0], create_graph)
    return _cut(tuple(tuple(row) for row in found), create_graph)


def _scalar(func: _Function) -> _Function:
    return lambda *args: func(*args).reshape(())


def vjp(
    func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What `func` returns, and a vector times its Jacobian."""
    given, is_one = _given(inputs)
    output, back = transforms.vjp(_inner(func), *given)
    found = back(_vector(output, v))
    return _cut(wrapped(output), create_graph), _cut(_one(wrapped(found), is_one), create_graph)


def _vector(output: Any, v: Any) -> Any:
    if v is not None:
        return unwrapped(v)
    if isinstance(output, (tuple, list)) or output.size != 1:
        raise RuntimeError("the vector v can only be None if the function returns one number")
    return output.detach() * 0 + 1


def jvp(
    func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What `func` returns, and its Jacobian times a vector."""
    given, _ = _given(inputs)
    if v is None:
        if len(given) != 1 or given[0].size != 1:
            raise RuntimeError("the vector v can only be None if the input is one number")
        tangents: Any = (given[0].detach() * 0 + 1,)
    else:
        tangents = _given(v)[0]
    found = transforms.jvp(_inner(func), given, tangents)
    return _cut(wrapped(found[0]), create_graph), _cut(wrapped(found[1]), create_graph)


def vhp(
    func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What `func` returns, and a vector times its Hessian."""
    given, is_one = _given(inputs)
    scalar = _scalar(_inner(func))
    gradient = transforms.grad(scalar, tuple(range(len(given))))
    _, back = transforms.vjp(gradient, *given)
    vectors = _given(v)[0] if v is not None else tuple(each.detach() * 0 + 1 for each in given)
    found = back(vectors)
    output = wrapped(_inner(func)(*given))
    return _cut(output, create_graph), _cut(_one(wrapped(found), is_one), create_graph)


def hvp(
    func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """What `func` returns, and its Hessian, which is symmetric, times a vector."""
    return vhp(func, inputs, v, create_graph, strict)
