"""All derivatives of a function: Jacobians, by a backward pass for each element of the results or
by a direction for each element of the arguments, all of them at once by `td.vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autograd.engine import zeros_of
from treadle.autograd.transforms import Argnums, jvp, positions_of, vjp
from treadle.autograd.trees import as_variable, leaves, mapped, with_values
from treadle.autograd.vmap import vmap
from treadle.core.errors import AutogradError
from treadle.tensor.manipulation import moveaxis
from treadle.tensor.ranges import eye
from treadle.tensor.tensor import Tensor


def jacrev(
    f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the Jacobian of `f` by one of its arguments, or by a tuple of them.

    For each result and each argument it has the result's axes and then the argument's; nested as
    the results are, and within as the arguments. One backward pass for each element of the results
    (they run together): take this one where there are fewer results than arguments. For real
    numbers; AutogradError for complex ones.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> td.jacrev(lambda x: x * x.sum())(x).tolist()
    [[4.0, 1.0], [2.0, 5.0]]
    """

    @functools.wraps(f)
    def jacobian(*args: Any, **keywords: Any) -> Any:
        of_chosen, chosen = _chosen(f, argnums, args, keywords)
        output, back, *aux = vjp(of_chosen, *chosen, has_aux=has_aux)
        results = leaves(output)
        blocks = []
        for number, result in enumerate(results):
            _check_real(result)

            def row(one: Tensor, number: int = number) -> Any:
                given = [one if k == number else zeros_of(r) for k, r in enumerate(results)]
                return back(with_values(output, iter(given)))

            found = vmap(row)(_units(result))
            blocks.append(mapped(functools.partial(_rows, shape=result.shape), found))
        return _result(with_values(output, iter(_split_arguments(blocks, argnums))), aux, has_aux)

    return jacobian


def jacfwd(
    f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """The same as `td.jacrev`, by one direction for each element of the arguments: take this one
    where there are fewer arguments than results.

    >>> import treadle as td
    >>> x = td.asarray(3.0, device="cpu")
    >>> td.jacfwd(lambda x: td.stack([x * x, x]))(x).tolist()
    [6.0, 1.0]
    """

    @functools.wraps(f)
    def jacobian(*args: Any, **keywords: Any) -> Any:
        of_chosen, chosen = _chosen(f, argnums, args, keywords)
        variables = leaves(chosen)
        kept: list[Any] = []
        columns: list[Any] = []
        for number, variable in enumerate(variables):

            def column(one: Tensor, number: int = number) -> Any:
                given = [one if k == number else zeros_of(v) for k, v in enumerate(variables)]
                _, change, *aux = jvp(
                    of_chosen, chosen, with_values(chosen, iter(given)), has_aux=has_aux
                )
                kept[:] = aux
                return change

            found = vmap(column)(_units(variable))
            columns.append(mapped(functools.partial(_columns, shape=variable.shape), found))
        first = columns[0]
        flat = [leaves(each) for each in columns]
        blocks = [
            with_values(chosen, iter([each[number] for each in flat]))
            for number in range(len(flat[0]))
        ]
        return _result(with_values(first, iter(_split_arguments(blocks, argnums))), kept, has_aux)

    return jacobian


def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of `f`: the Jacobian of its Jacobian.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> td.hessian(lambda x: x[0] * x[1] ** 2)(x).tolist()
    [[0.0, 4.0], [4.0, 2.0]]
    """
    return jacfwd(jacrev(f, argnums), argnums)


# --- parts ---------------------------------------------------------------------------------------


def _chosen(
    f: Callable[..., Any], argnums: Argnums, args: Sequence[Any], keywords: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the arguments that are differentiated by alone, and these."""
    positions = positions_of(argnums, len(args), getattr(f, "__name__", "the function"))

    def of_chosen(*chosen: Any) -> Any:
        given = list(args)
        for position, value in zip(positions, chosen, strict=True):
            given[position] = value
        return f(*given, **keywords)

    def checked(value: Any) -> Tensor:
        variable = as_variable("an argument to differentiate by", value)
        _check_real(variable)
        return variable

    return of_chosen, tuple([mapped(checked, args[position]) for position in positions])


def _check_real(value: Tensor) -> None:
    if value.dtype.kind == "complex":
        raise AutogradError(
            "Jacobians are those of real numbers: take real and imaginary parts, or td.vjp and "
            "td.jvp, whose conventions for complex numbers are described there"
        )


def _units(like: Tensor) -> Tensor:
    """All arrays of a shape that have one 1, one after another."""
    found = eye(like.size, dtype=like.dtype, device=like.device)
    assert isinstance(found, Tensor)
    return found.reshape((like.size, *like.shape))


def _rows(found: Tensor, shape: tuple[int, ...]) -> Tensor:
    return found.reshape((*shape, *found.shape[1:]))


def _columns(found: Tensor, shape: tuple[int, ...]) -> Tensor:
    made: Tensor = moveaxis(found, 0, -1)
    return made.reshape((*made.shape[:-1], *shape))


def _split_arguments(blocks: Sequence[Any], argnums: Argnums) -> list[Any]:
    """Of one argument that itself, and no tuple."""
    return list(blocks) if isinstance(argnums, tuple) else [block[0] for block in blocks]


def _result(found: Any, aux: Sequence[Any], has_aux: bool) -> Any:
    return (found, aux[0]) if has_aux else found
