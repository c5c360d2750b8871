"""`td.CommandBatch`: operations that are collected first and then executed together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref

from treadle.core.dtypes import DType
from treadle.core.errors import LaunchError
from treadle.graph.node import constant
from treadle.graph.realize import realize
from treadle.lang.decorators import Kernel
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor import products, reductions
from treadle.tensor.annotations import ArrayLike, Axes, DTypeLike
from treadle.tensor.conversions import is_number, number_as
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import apply, normcdf
from treadle.tensor.tensor import Tensor, from_node


class BatchArray:
    """An array of a batch, as `upload` and the operations return it. It has elements once the batch
    is executed."""

    __slots__ = ("__weakref__", "_batch", "_value", "dtype", "shape")

    def __init__(self, batch: CommandBatch, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self._batch = batch
        self._value: Tensor | None = None
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        state = "executed" if self._value is not None else "not executed yet"
        return f"<{self.dtype}{list(self.shape)} of a batch on {self._batch.device.id}, {state}>"


class _Command(NamedTuple):
    """A function of the operands' tensors, and the array of its result, if it has one."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    result: BatchArray | None


class CommandBatch:
    """Operations on one device that are collected, and executed with one submission.

    The operations check shapes and dtypes when they are called, and compute nothing. Intermediate
    results take no memory: they are fused into the kernels that use them.

    >>> import treadle as td
    >>> batch = td.CommandBatch("cpu")
    >>> x = batch.upload([1.0, 2.0, -3.0, 4.0])
    >>> b = batch.scale(batch.relu(x), 2.0)
    >>> batch.execute()
    >>> batch.read(b)
    [2.0, 4.0, 0.0, 8.0]
    """

    def __init__(self, device: Device | str | None = None) -> None:
        self.device = find_device(device)
        self._commands: list[_Command] = []

    def __repr__(self) -> str:
        return f"<treadle batch of {len(self._commands)} commands on {self.device.id}>"

    def upload(self, data: Any, *, dtype: DTypeLike | None = None) -> BatchArray:
        """An array with the elements of lists, a NumPy array or a tensor, as they are now."""
        value = asarray(data, dtype=dtype, device=self.device, copy=True)
        made = BatchArray(self, value.shape, value.dtype)
        made._value = value
        return made

    # --- operations ------------------------------------------------------------------------------

    def add(self, x: ArrayLike, y: ArrayLike) -> BatchArray:
        """X + y; either may be a number."""
        return self._operation("add", lambda a, b: apply("add", a, b), x, y)

    def sub(self, x: ArrayLike, y: ArrayLike) -> BatchArray:
        """X - y; either may be a number."""
        return self._operation("sub", lambda a, b: apply("subtract", a, b), x, y)

    def mul(self, x: ArrayLike, y: ArrayLike) -> BatchArray:
        """X * y, element by element; either may be a number."""
        return self._operation("mul", lambda a, b: apply("multiply", a, b), x, y)

    def div(self, x: ArrayLike, y: ArrayLike) -> BatchArray:
        """X / y; either may be a number."""
        return self._operation("div", lambda a, b: apply("divide", a, b), x, y)

    def scale(self, x: ArrayLike, factor: float) -> BatchArray:
        """X times a number."""
        if not is_number(factor):
            raise TypeError(f"scale takes a number, not {_name_of(factor)}: mul(x, y) takes arrays")
        return self._operation("scale", lambda a, b: apply("multiply", a, b), x, factor)

    def dot(self, x: ArrayLike, y: ArrayLike) -> BatchArray:
        """The sum of the products of two arrays of one axis (as NumPy's `dot`, for others)."""
        return self._operation("dot", products.dot, x, y)

    def matmul(self, x: ArrayLike, y: ArrayLike) -> BatchArray:
        """The matrix product, as `td.matmul`."""
        return self._operation("matmul", products.matmul, x, y)

    def relu(self, x: ArrayLike) -> BatchArray:
        """The maximum of x and 0."""
        return self._operation("relu", lambda a: apply("maximum", a, 0), x)

    def sigmoid(self, x: ArrayLike) -> BatchArray:
        """1 / (1 + exp(-x))."""
        return self._operation("sigmoid", lambda a: apply("sigmoid", a), x)

    def tanh(self, x: ArrayLike) -> BatchArray:
        """The hyperbolic tangent."""
        return self._operation("tanh", lambda a: apply("tanh", a), x)

    def gelu(self, x: ArrayLike) -> BatchArray:
        """X times the cumulative distribution function of the normal distribution: x/2 (1 + erf(x /
        sqrt(2)))."""
        return self._operation("gelu", _gelu, x)

    def swish(self, x: ArrayLike) -> BatchArray:
        """X * sigmoid(x)."""
        return self._operation("swish", _swish, x)

    def softmax(self, x: ArrayLike, axis: int = -1) -> BatchArray:
        """exp(x), divided by its sum along an axis."""
        return self._operation("softmax", lambda a: _softmax(a, axis), x)

    def sum(self, x: ArrayLike, axis: Axes | None = None) -> BatchArray:
        """The sum along one axis, several or all."""
        return self._operation("sum", lambda a: reductions.sum(a, axis=axis), x)

    def launch(self, kernel: Any, n: int | tuple[int, ...], *arguments: Any) -> None:
        """Run a kernel with n threads, as `kernel.launch(n, …)` does. It may write the batch's
        arrays: operations that follow see that."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"launch takes a kernel made by @td.kernel, not {_name_of(kernel)}")
        for argument in arguments:
            if isinstance(argument, BatchArray):
                self._own("launch", argument)
            elif not is_number(argument):
                raise self._foreign("launch", argument)
        run = lambda *values: kernel.launch(n, *values)  # noqa: E731
        self._commands.append(_Command(run, arguments, None))

    # --- execution -------------------------------------------------------------------------------

    def execute(self) -> None:
        """Submit all commands at once. It does not wait for them; `read` does.

        Further commands are executed by the next call. If a command fails, the later ones are
        dropped.
        """
        commands, self._commands = self._commands, []
        commands.reverse()
        made: list[ref[BatchArray]] = []
        while commands:
            command = commands.pop()
            operands = [self._value(operand) for operand in command.operands]
            value = command.function(*operands)
            if command.result is not None:
                command.result._value = value
                made.append(ref(command.result))
            del (
                command,
                operands,
                value,
            )  # no reference: no memory of its own
        held = [array for array in (reference() for reference in made) if array is not None]
        realize([array._value._cell.value for array in held if array._value is not None])
        self.device.default_stream.flush()

    async def execute_async(self) -> None:
        """`execute`, and await that everything is done."""
        self.execute()
        await self.device.synchronize_async()

    def read(self, array: BatchArray) -> Any:
        """The elements as nested lists (of an array without axes, a number). Waits for them."""
        return self.tensor(array).tolist()

    async def read_async(self, array: BatchArray) -> Any:
        """`read`, awaiting instead of blocking."""
        return await self.tensor(array).tolist_async()

    def tensor(self, array: BatchArray) -> Tensor:
        """An executed array as a tensor, without a copy: for NumPy, say, by `.numpy()`."""
        self._own("read", array)
        return self._value(array)  # type: ignore[no-any-return]

    # --- operands --------------------------------------------------------------------------------

    def _operation(self, name: str, function: Callable[..., Tensor], *operands: Any) -> BatchArray:
        """Record an operation. It is applied to placeholders that are never computed, for its
        errors and for the shape and dtype of its result."""
        shadows = [self._shadow(name, operand) for operand in operands]
        tried = function(*shadows)
        result = BatchArray(self, tried.shape, tried.dtype)
        self._commands.append(_Command(function, operands, result))
        return result

    def _shadow(self, name: str, operand: Any) -> Any:
        if is_number(operand):
            return operand
        if not isinstance(operand, BatchArray):
            raise self._foreign(name, operand)
        self._own(name, operand)
        dtype = operand.dtype
        if not isinstance(dtype, DType):
            raise LaunchError(f"{name}: there is no arithmetic on structs ({dtype})")
        return from_node(constant(number_as(0, dtype), operand.shape, dtype, self.device))

    def _own(self, name: str, array: Any) -> None:
        if not isinstance(array, BatchArray):
            raise self._foreign(name, array)
        if array._batch is not self:
            raise LaunchError(
                f"{name}: this array is of another batch, on {array._batch.device.id}: execute "
                "that one, and upload the result here, batch.upload(other.tensor(array))"
            )

    def _foreign(self, name: str, value: Any) -> TypeError:
        return TypeError(
            f"{name} takes arrays of its batch, and numbers, not {_name_of(value)}: upload it "
            "first, batch.upload(values)"
        )

    def _value(self, operand: Any) -> Any:
        if not isinstance(operand, BatchArray):
            return operand
        if operand._value is None:
            raise LaunchError(
                "this array is not computed yet: call execute() first, or await execute_async()"
            )
        return operand._value


def _name_of(value: Any) -> str:
    return type(value).__name__


def _swish(x: Tensor) -> Tensor:
    return apply("multiply", x, apply("sigmoid", x))


def _gelu(x: Tensor) -> Tensor:
    return apply("multiply", x, normcdf(x))


def _softmax(x: Tensor, axis: int) -> Tensor:
    powers = apply("exp", apply("subtract", x, reductions.max(x, axis=axis, keepdims=True)))
    return apply("divide", powers, reductions.sum(powers, axis=axis, keepdims=True))
