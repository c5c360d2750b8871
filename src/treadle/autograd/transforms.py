"""Functional forms: functions of tensors to functions that give their gradients.

Each runs its function on variables (`variables.py`) with recording switched on, and then makes a
backward pass from the results to them. Gradients have histories themselves where an argument has
one, or something else that the function reads: so transforms nest, in each other and in whatever
records operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from treadle.autograd.engine import Pass, zeros_of
from treadle.autograd.trees import as_variable, leaves, mapped, matched, with_values
from treadle.autograd.variables import has_others, variable
from treadle.core.errors import AutogradError, ShapeError
from treadle.graph.history import History, Leaf, is_differentiable, recorded, recording
from treadle.tensor.tensor import Tensor

Argnums = int | tuple[int, ...]


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradients of `f` by one of its arguments, or by several.

    `f` takes tensors, nested in tuples, lists and dicts as you like, and returns one number; with
    `has_aux` a pair of it and anything else, and then the result is a pair, too. The gradients are
    nested as the argument is; for a tuple `argnums` they are a tuple. What `f` takes by keywords it
    is given, and not differentiated by. AutogradError if `f` returns anything but one real number.

    >>> import treadle as td
    >>> f = td.grad(lambda x: (x**3).sum())
    >>> f(td.asarray([1.0, 2.0], device="cpu")).tolist()
    [3.0, 12.0]
    >>> td.grad(td.grad(lambda x: x**3))(td.asarray(2.0, device="cpu")).item()
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def gradient(*args: Any, **keywords: Any) -> Any:
        value, found = both(*args, **keywords)
        return (found, value[1]) if has_aux else found

    return gradient


def value_and_grad(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives what `f` returns, and the gradients that `td.grad` of it gives.

    >>> import treadle as td
    >>> f = td.value_and_grad(lambda p, x: (p["w"] * x).sum(), argnums=(0, 1))
    >>> value, (by_p, by_x) = f({"w": td.ones(2, device="cpu")}, td.arange(2.0, device="cpu"))
    >>> value.item(), by_p["w"].tolist(), by_x.tolist()
    (1.0, [0.0, 1.0], [1.0, 1.0])
    """
    name = getattr(f, "__name__", "the function")

    @functools.wraps(f)
    def value_and_gradient(*args: Any, **keywords: Any) -> Any:
        positions = positions_of(argnums, len(args), name)
        arguments = _Arguments([args[position] for position in positions], args)
        given = list(args)
        for position, value in zip(positions, arguments.values, strict=True):
            given[position] = value
        with recorded(True):
            returned = f(*given, **keywords)
        output, aux = _with_aux(returned, name) if has_aux else (returned, None)
        _check_number(output, name)
        reached = _Reached([output], arguments)
        gradients = arguments.nested(reached.gradients([None]))
        found = tuple(gradients) if isinstance(argnums, tuple) else gradients[0]
        value = reached.outputs()[0]
        return ((value, reached.cut(aux)) if has_aux else value), found

    return value_and_gradient


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """What `f` returns for some arguments, and a function from gradients of that to gradients of
    the arguments: the product of a vector and the Jacobian.

    The function takes what is nested as the results are, and gives a tuple with one for each of
    `primals`. It can be called often. With `has_aux` `f` returns a pair, the second of which comes
    back as a third result.

    >>> import treadle as td
    >>> x = td.asarray([1.0, 2.0], device="cpu")
    >>> y, back = td.vjp(lambda x: (x * x, x.sum()), x)
    >>> back((td.ones(2, device="cpu"), td.asarray(10.0, device="cpu")))[0].tolist()
    [12.0, 14.0]
    """
    name = getattr(f, "__name__", "the function")
    arguments = _Arguments(primals, primals)
    with recorded(True):
        returned = f(*arguments.values)
    output, aux = _with_aux(returned, name) if has_aux else (returned, None)
    results = _tensors(output, name)
    reached = _Reached(results, arguments)
    value = with_values(output, iter(reached.outputs()))
    recorded_as = reached.create

    def back(*cotangents: Any) -> tuple[Any, ...]:
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        given = matched("gradients of results", tree, output)
        create = recording.get() and (recorded_as or any(_has_history(each) for each in given))
        return tuple(arguments.nested(reached.gradients(given, True, create)))

    return (value, back, reached.cut(aux)) if has_aux else (value, back)


def jvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """What `f` returns for some arguments, and how it changes along a direction: the product of the
    Jacobian and a vector. `tangents` are nested as `primals` are, with their shapes.

    It is the gradient of the backward pass by the gradient that goes in, in which that pass is
    linear; the values of that pass itself are never computed.

    >>> import treadle as td
    >>> x, t = td.asarray(2.0, device="cpu"), td.asarray(1.0, device="cpu")
    >>> y, change = td.jvp(lambda x: x**3, (x,), (t,))
    >>> y.item(), change.item()
    (8.0, 12.0)
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp takes a tuple of arguments, and a tuple of directions for them")
    name = getattr(f, "__name__", "the function")
    primals, tangents = tuple(primals), tuple(tangents)
    arguments = _Arguments(primals, primals)
    directions = [
        as_variable("a direction", each, arguments.device)
        for each in matched("directions", tangents, primals)
    ]
    for direction, variable_ in zip(directions, arguments.variables, strict=True):
        if direction.shape != variable_.shape:
            raise ShapeError(
                f"a direction of shape {direction.shape} does not fit an argument of shape "
                f"{variable_.shape}: they must be equal"
            )
    outer = recording.get()
    with recorded(True):
        returned = f(*arguments.values)
        output, aux = _with_aux(returned, name) if has_aux else (returned, None)
        results = _tensors(output, name)
        reached = _Reached(results, arguments, outer)
        ends = [_variable_like(result) for result in results]
        back = reached.gradients(ends, True, True)
    create = outer and (reached.create or any(_has_history(each) for each in directions))
    flowing = [
        (gradient, direction)
        for gradient, direction in zip(back, directions, strict=True)
        if gradient is not None and _has_history(gradient)
    ]
    found: list[Tensor | None] = [None] * len(ends)
    if flowing:
        wanted = [_history_of(end) for end in ends]
        sources, seeds = [each for each, _ in flowing], [each for _, each in flowing]
        found = Pass(False, create, wanted, False).run(sources, list(seeds))
    changes = [
        zeros_of(result) if change is None else change
        for result, change in zip(results, found, strict=True)
    ]
    value = with_values(output, iter(reached.outputs()))
    change = with_values(output, iter(changes))
    return (value, change, reached.cut(aux)) if has_aux else (value, change)


# --- arguments -----------------------------------------------------------------------------------


class _Arguments:
    """What is differentiated by: nested values, and the variables for their tensors."""

    def __init__(self, trees: Sequence[Any], among: Any) -> None:
        self._trees = trees
        self.device = next(
            (each.device for each in leaves(tuple(among)) if isinstance(each, Tensor)), None
        )
        self.variables: list[Tensor] = []
        self.values = [mapped(self._variable, tree) for tree in trees]
        self.histories = [_history_of(each) for each in self.variables]

    def _variable(self, value: Any) -> Any:
        if value is None:
            return None
        made = variable(as_variable("an argument to differentiate by", value, self.device))
        self.variables.append(made)
        return made

    def nested(self, gradients: Sequence[Tensor | None]) -> list[Any]:
        """Gradients, nested as the arguments are; zeros where nothing flows."""
        flat = iter(
            [
                zeros_of(each) if gradient is None else gradient
                for each, gradient in zip(self.variables, gradients, strict=True)
            ]
        )
        return [
            mapped(lambda value: None if value is None else next(flat), tree)
            for tree in self._trees
        ]


class _Reached:
    """What a function gave for variables."""

    def __init__(
        self, results: Sequence[Tensor], arguments: _Arguments, outer: bool | None = None
    ) -> None:
        self._results = results
        self._arguments = arguments
        with_history = [each for each in results if each._history is not None]
        is_recording = recording.get() if outer is None else outer
        # Whether gradients are to have histories.
        self.create = is_recording and has_others(with_history, arguments.histories)

    def gradients(
        self, given: Sequence[Any], retain: bool = False, create: bool | None = None
    ) -> list[Tensor | None]:
        """The gradients of the variables from those of the results."""
        flowing = [
            (result, gradient)
            for result, gradient in zip(self._results, given, strict=True)
            if result._history is not None
        ]
        if not flowing:
            return [None] * len(self._arguments.variables)
        create = self.create if create is None else create
        backward = Pass(retain or create, create, self._arguments.histories, False)
        return backward.run([each for each, _ in flowing], [each for _, each in flowing])

    def outputs(self) -> list[Tensor]:
        """The results, without histories where there is nothing else to differentiate by."""
        return [self._cut(each) for each in self._results]

    def cut(self, tree: Any) -> Any:
        """The same of anything else that the function returned."""
        return mapped(self._cut, tree)

    def _cut(self, value: Any) -> Any:
        if self.create or not isinstance(value, Tensor) or value._history is None:
            return value
        return value.detach()


def positions_of(argnums: Argnums, count: int, name: str) -> list[int]:
    """Which arguments are differentiated by. AutogradError for those that there are not."""
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    found = []
    for position in wanted:
        if not -count <= position < count:
            raise AutogradError(
                f"{name} was called with {count} arguments by position, so that it has no gradient "
                f"by argument {position}: pass that one by position"
            )
        found.append(position % count)
    if len(set(found)) < len(found):
        raise AutogradError(f"argnums={argnums} names one argument twice")
    return found


def _history_of(tensor: Tensor) -> History:
    made = tensor._node.history
    assert made is not None
    return made


def _has_history(value: Any) -> bool:
    return isinstance(value, Tensor) and value._history is not None


# --- results -------------------------------------------------------------------------------------


def _with_aux(returned: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise AutogradError(
            f"with has_aux=True {name} must return a pair, the result and what goes with it, not "
            f"{type(returned).__name__}"
        )
    return returned


def _check_number(output: Any, name: str) -> None:
    if not isinstance(output, Tensor):
        raise AutogradError(
            f"{name} must return a tensor with one number, and returned "
            f"{type(output).__name__}: with has_aux=True it may return a pair of it and others"
        )
    if output.size != 1 or output.shape not in ((), (1,)):
        raise AutogradError(
            f"{name} must return one number, and its result has shape {output.shape}: add it up, "
            "or use td.vjp, or td.jacrev"
        )
    if output.dtype.kind != "float":
        raise AutogradError(
            f"{name} must return a floating number, and its result is of {output.dtype}"
        )


def _tensors(output: Any, name: str) -> list[Tensor]:
    found = leaves(output)
    for each in found:
        if not isinstance(each, Tensor):
            raise AutogradError(
                f"{name} must return tensors, nested as you like, and there is a "
                f"{type(each).__name__} among them: with has_aux=True it may return others, too"
            )
    return found


def _variable_like(result: Tensor) -> Tensor:
    """Zeros that can be differentiated by."""
    made = zeros_of(result)
    if is_differentiable(made._cell.value):
        made._cell.value.history = Leaf(made._cell.value)
    return made
