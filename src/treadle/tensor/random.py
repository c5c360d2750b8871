"""`td.random`: arrays of random numbers, lazy like all others.

Element i of draw number d is a function of the generator's seed, d and i, by the counter-based
generator Philox (see `lang.math.draws`), so there is no state on the device, threads are
independent, and the draws are fused into the kernel that uses them. `uniform`, `integers`,
`bernoulli` and `permutation` have the same bits on every device, `normal` and `exponential` the
same values up to rounding, on which what is drawn with probabilities depends (`choice`,
`multinomial`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, bool_, float32, float64, uint32, uint64
from treadle.core.errors import DtypeError, ShapeError, ValuesUnknown
from treadle.core.limits import MOST_NARROW
from treadle.core.sizes import index as as_index
from treadle.graph.calls import call
from treadle.graph.node import COPY, GATHER, INDEX, VIEW, Node, constant, view_of
from treadle.graph.placeholders import within
from treadle.graph.views import View
from treadle.kernels.sort import argsort
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import ArrayLike, DTypeLike
from treadle.tensor.assembly import concat, stack
from treadle.tensor.axes import one_axis
from treadle.tensor.conversions import (
    as_python,
    cast,
    common_shape,
    device_of,
    is_number,
    mixed_devices,
    shaped,
)
from treadle.tensor.creation import Shape, asarray, extents_of
from treadle.tensor.dtypes import check_dtype, check_fits, default_integer, promote, supports
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.generator import Generator, default_generator, recorder, tape
from treadle.tensor.operands import node_of
from treadle.tensor.reductions import argmax
from treadle.tensor.reductions import max as greatest
from treadle.tensor.scans import cumulative_sum
from treadle.tensor.searching import take
from treadle.tensor.sorting import topk
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node

__all__ = [
    "bernoulli", "choice", "exponential", "integers", "multinomial", "normal", "permutation",
    "shuffle", "standard_normal", "uniform",
]  # fmt: skip

_where, _isfinite = FUNCTIONS["where"], FUNCTIONS["isfinite"]
_WORD = 1 << 32


# --- floats --------------------------------------------------------------------------------------


def uniform(
    shape: Shape,
    low: Any = 0.0,
    high: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers uniformly distributed from low up to high, without high itself.

    low and high may be arrays that broadcast to the shape; where high is not above low, the element
    is low. There are 2**24 steps from low to high (2**53 in float64).

    >>> import treadle as td
    >>> g = td.Generator(1)
    >>> x = uniform((100, 100), -1.0, 1.0, device="cpu", generator=g)
    >>> x.shape, float(x.numpy().min()) >= -1, float(x.numpy().max()) < 1
    ((100, 100), True, True)
    """
    draw = _floats("uniform", shape, (low, high), dtype, device, generator)
    bits = draw.working.bits
    unit = draw.node(f"unit_f{bits}", draw.working, draw.word())
    given, working = draw.dtype, draw.working
    if given is working and is_number(low) and is_number(high) and (low, high) == (0, 1):
        return from_node(unit)
    if is_number(low) and is_number(high):
        ends = [draw.constant(number, working) for number in _interval(low, high, given, working)]
    else:
        first, end = draw.parameter(low, given), draw.parameter(high, given)
        last = cast(draw.node("nextafter", given, end, first), working)
        first, end = cast(first, working), cast(end, working)
        ends = [first, draw.node("subtract", working, end, first), last]
    return draw.result(draw.node(f"interval_f{bits}", working, unit, *ends))


def _interval(low: Any, high: Any, dtype: DType, working: DType) -> tuple[float, float, float]:
    """The start of an interval, its width, and the greatest number below its end."""
    made, wide = dtype.host.type, working.host.type
    with np.errstate(over="ignore", invalid="ignore"):
        start, end = made(as_python(low)), made(as_python(high))
        width = float(wide(end) - wide(start))
    if not 0 <= width < np.inf:
        raise ValueError(
            f"uniform: low={low} and high={high} must be finite, low not above high, and their "
            f"difference a {working}"
        )
    return float(start), width, float(np.nextafter(end, start))


def normal(
    shape: Shape,
    mean: Any = 0.0,
    std: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the normal distribution. mean and std may be arrays that broadcast to the shape.

    >>> import treadle as td
    >>> x = normal(10_000, 5.0, 2.0, device="cpu", generator=td.Generator(1)).numpy()
    >>> bool(abs(x.mean() - 5) < 0.1), bool(abs(x.std() - 2) < 0.1)
    (True, True)
    """
    draw = _floats("normal", shape, (mean, std), dtype, device, generator)
    _check_not_negative("normal", "std", std)
    name = "random_normal" if draw.working is float32 else "random_normal_64"
    found = draw.node(name, draw.working, *draw.key)
    return draw.result(draw.scaled(found, std, mean))


def standard_normal(
    shape: Shape,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the normal distribution of mean 0 and standard deviation 1: `normal(shape)`.

    >>> import treadle as td
    >>> td.random.standard_normal((2, 3), device="cpu").shape
    (2, 3)
    """
    return normal(shape, dtype=dtype, device=device, generator=generator)


def exponential(
    shape: Shape,
    scale: Any = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Numbers of the exponential distribution with the mean `scale`, a number or an array."""
    draw = _floats("exponential", shape, (scale,), dtype, device, generator)
    _check_not_negative("exponential", "scale", scale)
    found = draw.node(f"exponential_f{draw.working.bits}", draw.working, draw.word())
    return draw.result(draw.scaled(found, scale, 0.0))


# --- integers and bools --------------------------------------------------------------------------


def integers(
    shape: Shape,
    low: Any,
    high: Any = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Integers from low up to high, without high itself; with one bound, from 0 up to it.

    Without a dtype they have the device's default integer. low and high may be integer arrays that
    broadcast to the shape; where high is not above low, the element is low. The probabilities of
    the integers differ by a factor of less than 1 + 2**-32.

    >>> import treadle as td
    >>> dice = integers(1000, 1, 7, device="cpu", generator=td.Generator(3)).numpy()
    >>> int(dice.min()), int(dice.max())
    (1, 6)
    """
    low, high = (0, low) if high is None else (low, high)
    where = _device_of("integers", (low, high), device)
    given = default_integer(where) if dtype is None else _dtype(dtype, where)
    if not given.is_integer:
        raise DtypeError(f"integers makes integer dtypes, not {given}: cast them with .to(dtype)")
    draw = _draw("integers", shape, (low, high), given, where, generator)
    low, high = (_integer("integers", bound) for bound in (low, high))
    if isinstance(low, int) and isinstance(high, int):
        return from_node(_integers_between(draw, low, high))
    return from_node(_integers_from_arrays(draw, low, high))


def _integers_between(draw: _Draw, low: int, high: int) -> Node:
    if low >= high:
        raise ValueError(f"integers: low={low} must be below high={high}")
    dtype = draw.dtype
    check_fits(low, dtype)
    check_fits(high - 1, dtype)
    count = high - low
    if dtype.itemsize < 8:  # sums wrap, and the results fit
        found = draw.integer_below(count % _WORD)
        if low:
            found = draw.node("add", uint32, found, draw.constant(low % _WORD, uint32))
        return cast(found, dtype)
    found = draw.integer_below(count % _WORD) if count <= _WORD else draw.long_below(count % 2**64)
    found = cast(found, dtype)
    return draw.node("add", dtype, found, draw.constant(low, dtype)) if low else found


def _integers_from_arrays(draw: _Draw, low: Any, high: Any) -> Node:
    dtype = draw.dtype
    narrow = dtype.itemsize < 4
    for bound, room in ((low, 0), (high, 1 if narrow else 0)):
        if isinstance(bound, int):
            check_fits(bound - room, dtype)
    words = uint64 if dtype.itemsize == 8 else uint32
    start, end = draw.parameter(low, words), draw.parameter(high, words)
    count = draw.node("subtract", words, end, start)
    name = "random_below_64" if words is uint64 else "random_below"
    found = draw.node("add", words, draw.node(name, words, *draw.key, count), start)
    signed = as_device_dtype(f"int{words.bits}") if dtype.kind == "int" else words
    assert isinstance(signed, DType)
    none = draw.node("less_equal", bool_, cast(end, signed), cast(start, signed))
    return cast(draw.node("where", words, none, start, found), dtype)


def bernoulli(
    shape: Shape,
    p: Any = 0.5,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """True with probability p, else False; p may be an array that broadcasts to the shape. With a
    dtype, ones and zeros of it.

    >>> import treadle as td
    >>> bernoulli(4, 1.0, device="cpu").tolist()
    [True, True, True, True]
    """
    where = _device_of("bernoulli", (p,), device)
    draw = _draw("bernoulli", shape, (p,), bool_ if dtype is None else _dtype(dtype, where), where,
                 generator)  # fmt: skip
    if is_number(p) and not 0 <= as_python(p) <= 1:
        raise ValueError(f"bernoulli: a probability is from 0 to 1, not {p}")
    found = draw.node("random_chance", bool_, *draw.key, draw.parameter(p, float32))
    return draw.result(found)


# --- permutations --------------------------------------------------------------------------------


def permutation(
    x: ArrayLike,
    *,
    dtype: DTypeLike | None = None,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """The integers from 0 to x-1 in random order; of an array, a copy with its first axis in random
    order.

    >>> import treadle as td
    >>> sorted(permutation(5, device="cpu").tolist())
    [0, 1, 2, 3, 4]
    >>> rows = td.asarray([[1, 2], [3, 4]], device="cpu")
    >>> sorted(permutation(rows).tolist())
    [[1, 2], [3, 4]]
    """
    if not isinstance(x, Tensor) and hasattr(x, "__index__"):
        count = as_index(x)
        if count < 0:
            raise ValueError(
                f"permutation: a number of integers must not be negative, as {count} is"
            )
        where = find_device(device)
        given = default_integer(where) if dtype is None else _dtype(dtype, where)
        if not given.is_integer:
            raise DtypeError(f"permutation of integers makes integer dtypes, not {given}")
        if count:
            check_fits(count - 1, given)
        return from_node(cast(_order(count, where, generator), given))
    where = _device_of("permutation", (x,), device)
    node = node_of("permutation", x, where)
    if not node.shape:
        raise ShapeError("permutation takes an integer, or an array with at least one axis")
    given = node.dtype if dtype is None else _dtype(dtype, where)
    if not node.size:
        return from_node(cast(Node(COPY, (node,), node.shape, node.dtype, where), given))
    rows, length = node.shape[0], node.size // node.shape[0]
    index = default_integer(where)
    order = cast(_order(rows, where, generator), index)
    column = order if length == 1 else shaped(_with_axis(order), (rows, length))
    if length > 1:
        step = constant(length, column.shape, index, where)
        start = Node("multiply", (column, step), column.shape, index, where)
        along = shaped(Node(INDEX, (), (length,), index, where), column.shape)
        column = Node("add", (start, along), column.shape, index, where)
    whole = node
    if node.op == VIEW or (node.array is not None and not node.array.contiguous):
        whole = Node(COPY, (node,), node.shape, node.dtype, where)
    found = Node(GATHER, (whole, column), column.shape, node.dtype, where)
    return from_node(cast(found, given)).reshape(node.shape)


def _order(count: int, device: Device, generator: Generator | None) -> Node:
    """The permutation that sorts random keys of 64 bits. Devices without 64-bit integers sort by
    the lower words, and then, stably, by the upper words, with the same result."""
    if count >= MOST_NARROW:
        raise ShapeError(f"permutation: {count} elements are too many to be put in order at once")
    index = default_integer(device)
    draw = _draw("permutation", (count,), (), index, device, generator)
    if not count:
        return draw.constant(0, index)
    if supports(device, uint64):
        return draw.sorted(draw.node("random_word_64", uint64, *draw.key))
    low, high = (draw.node(name, uint32, *draw.key) for name in ("random_low", "random_high"))
    first = draw.sorted(low)
    second = draw.sorted(draw.node(GATHER, uint32, high, first))
    return draw.node(GATHER, index, first, second)


def _with_axis(node: Node) -> Node:
    return view_of(node, View((*node.shape, 1), (1, 0), 0))


def shuffle(x: Tensor, *, axis: int = 0, generator: Generator | None = None) -> None:
    """Put the parts of a tensor along an axis into random order, in place, as NumPy does.
    (`permutation` makes a new array.) TypeError for anything but a tensor.

    >>> import treadle as td
    >>> x = td.arange(5, device="cpu")
    >>> td.random.shuffle(x)
    >>> sorted(x.tolist())
    [0, 1, 2, 3, 4]
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"shuffle changes a tensor in place, not {type(x).__name__}: make one")
    at = one_axis("shuffle", axis, len(x.shape))
    order = permutation(x.shape[at], device=x.device, generator=generator)
    x[...] = take(x, order, axis=at)


# --- choices ----------------------------------------------------------------------------


def choice(
    x: ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    *,
    axis: int = 0,
    device: str | Device | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Parts of x along an axis, or integers from 0 to x-1 if x is an integer, drawn at random: as
    many as `shape` says, whose extents stand in the place of the axis.

    Without `replace` each is drawn once at most, in random order; ShapeError if there are too few.
    p has their probabilities, which are divided by their sum, in float32. Those of 0 are never
    drawn; ValueError if fewer others are left than are drawn, if one is negative, or if all are 0.
    p is read for that.

    >>> import treadle as td
    >>> td.random.choice(5, (2, 3), device="cpu").shape
    (2, 3)
    >>> x = td.asarray([1, 2, 4], device="cpu")
    >>> sorted(td.random.choice(x, 2, False, [0, 1, 1]).tolist())
    [2, 4]
    """
    is_count = not isinstance(x, Tensor) and hasattr(x, "__index__")
    where = find_device(device) if is_count else _device_of("choice", (x,), device)
    values = None if is_count else from_node(node_of("choice", x, where))
    at = 0 if values is None else one_axis("choice", axis, len(values.shape))
    among = as_index(x) if values is None else values.shape[at]
    extents = extents_of(shape)
    wanted = math.prod(extents)
    if wanted and among < (1 if replace else wanted):
        raise ShapeError(f"choice: {wanted} of {among} cannot be drawn, replace={replace}")
    if p is None:
        if replace:
            places = integers(wanted, 0, max(among, 1), device=where, generator=generator)
        else:
            places = permutation(among, device=where, generator=generator)[:wanted]
    else:
        given = np.asarray(p.numpy() if isinstance(p, Tensor) else p, np.float64)
        _check_probabilities(given, among, wanted, replace)
        weights = asarray((given / given.sum()).astype(np.float32), device=where)
        places = _chosen(weights, wanted, replace, generator)
    if values is None:
        return places.reshape(extents)
    found = take(values, places, axis=at)
    return found.reshape((*values.shape[:at], *extents, *values.shape[at + 1 :]))


def _check_probabilities(p: Any, among: int, wanted: int, replace: bool) -> None:
    if p.shape != (among,):
        raise ShapeError(f"choice: p is a number for each of {among}, not of shape {p.shape}")
    if not ((p >= 0) & (p < np.inf)).all() or not p.any():
        raise ValueError("choice: probabilities are finite, not negative, and not all 0")
    if not replace and np.count_nonzero(p) < wanted:
        raise ValueError(
            f"choice: {wanted} are drawn without replacement, and {np.count_nonzero(p)} have a "
            "probability above 0"
        )


def multinomial(
    input: ArrayLike,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """PyTorch's: indices drawn with the probabilities that the last axis of `input`, of one axis or
    two, has up to a factor, `num_samples` for each row. An index is -1 where there is none of a
    probability above 0 (left), as the weights are not read.

    >>> import treadle as td
    >>> weights = td.asarray([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], device="cpu")
    >>> td.random.multinomial(weights, 2, replacement=True).tolist()
    [[1, 1], [0, 0]]
    """
    device = device_of("multinomial", (input,))
    node = node_of("multinomial", input, device)
    if len(node.shape) not in (1, 2) or node.dtype.kind == "complex":
        raise ShapeError(
            f"multinomial takes real weights of one axis or two, not {node.dtype} of shape "
            f"{node.shape}"
        )
    count = as_index(num_samples)
    if count < 0 or node.shape[-1] < (count if not replacement else min(count, 1)):
        raise ShapeError(f"multinomial: {count} cannot be drawn from {node.shape[-1]}")
    wide = float64 if node.dtype is float64 else float32
    return _chosen(from_node(cast(node, wide)), count, replacement, generator)


def _chosen(weights: Tensor, count: int, replace: bool, generator: Generator | None) -> Tensor:
    """Indices along the last axis with probabilities that are proportional to weights; -1 where
    none is left. What has no weight is not drawn, whatever running sums round to."""
    options: dict[str, Any] = {
        "dtype": weights.dtype, "device": weights.device, "generator": generator,
    }  # fmt: skip
    positive: Any = weights > 0
    if not replace:  # those of the earliest times, each exponential with its weight as the rate
        times: Any = exponential(weights.shape, **options)
        times = _where(positive, times / _where(positive, weights, 1), np.inf)
        found = topk(times, count, largest=False)
        return _where(_isfinite(found.values), found.indices, -1)
    running: Any = _where(positive, cumulative_sum(weights, axis=-1), 0)
    whole = greatest(running, axis=-1, keepdims=True) if weights.shape[-1] else running
    drawn: Any = uniform((*weights.shape[:-1], count), **options) * whole
    reached: Any = (running[..., None, :] > drawn[..., None]) & positive[..., None, :]
    return _where((whole > 0) & _isfinite(whole), argmax(reached.to(uint32), axis=-1), -1)


# --- shared parts ---------------------------------------------------------------------


class _Draw(NamedTuple):
    """One draw: `key` are the operands that identify each element's random bits. `working` is the
    dtype that floats are computed in."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    working: DType
    device: Device
    key: tuple[Node, ...]

    def node(self, op: str, dtype: DType, *sources: Node) -> Node:
        """An operation on nodes of the draw's shape."""
        return Node(op, sources, self.shape, dtype, self.device)

    def constant(self, number: Any, dtype: DType) -> Node:
        return constant(number, self.shape, dtype, self.device)

    def word(self) -> Node:
        """The random bits of one float."""
        if self.working is float32:
            return self.node("random_word", uint32, *self.key)
        return self.node("random_word_64", uint64, *self.key)

    def integer_below(self, count: int) -> Node:
        return self.node("random_below", uint32, *self.key, self.constant(count, uint32))

    def long_below(self, count: int) -> Node:
        return self.node("random_below_64", uint64, *self.key, self.constant(count, uint64))

    def sorted(self, keys: Node) -> Node:
        """The permutation that sorts keys."""
        index = default_integer(self.device)
        return call(argsort, (keys,), self.shape, index, (False, index))

    def parameter(self, value: Any, dtype: DType) -> Node:
        """A number or an array as a node of the draw's shape."""
        if is_number(value):
            number = as_python(value)
            return self.constant(
                number % 2**dtype.bits if dtype.is_integer else float(number), dtype
            )
        if isinstance(value, (tuple, list)):  # NumPy's order of arguments
            raise TypeError(
                f"{self.name}: {value} stands for a number or an array; if it is a shape, that "
                f"comes first: td.random.{self.name}({value}, …)"
            )
        node = node_of(self.name, value, self.device)
        if common_shape(self.name, (self.shape, node.shape)) != self.shape:
            raise ShapeError(
                f"{self.name}: an array of shape {node.shape} does not fit the shape {self.shape} "
                "that is drawn: it would have to be broadcast to it"
            )
        return shaped(cast(node, dtype), self.shape)

    def scaled(self, node: Node, factor: Any, shift: Any) -> Node:
        """A node, times a factor, plus a shift."""
        working = self.working
        if not is_number(factor) or factor != 1:
            node = self.node("multiply", working, node, self.parameter(factor, working))
        if not is_number(shift) or shift != 0:
            node = self.node("add", working, node, self.parameter(shift, working))
        return node

    def result(self, node: Node) -> Tensor:
        return from_node(cast(node, self.dtype))


def _floats(
    name: str, shape: Shape, parameters: tuple[Any, ...], dtype: Any, device: Any, generator: Any
) -> _Draw:
    """A draw of floats: in float32 unless a dtype is given, or a parameter is an array of another
    dtype."""
    where = _device_of(name, parameters, device)
    if dtype is None:
        own = [p.dtype for p in parameters if isinstance(p, Tensor) and p.dtype.kind == "float"]
        given = own[0] if own else float32
        for other in own[1:]:
            given = promote(given, other)
    else:
        given = _dtype(dtype, where)
    if given.kind != "float":
        raise DtypeError(f"random.{name} makes floating dtypes, not {given}")
    return _draw(name, shape, parameters, given, where, generator)


def _draw(
    name: str, shape: Shape, parameters: tuple[Any, ...], dtype: DType, device: Device,
    generator: Any,
) -> _Draw:  # fmt: skip
    check_dtype(dtype, device)
    for value in parameters:
        if isinstance(value, Tensor) and value.dtype.kind == "complex":
            raise DtypeError(f"{name} has no complex parameters")
        if is_number(value) and isinstance(as_python(value), complex):
            raise DtypeError(f"{name} has no complex parameters, as {value} is")
    extents = extents_of(shape)
    source = default_generator() if generator is None else generator
    if not isinstance(source, Generator):
        raise TypeError(
            f"{name}: generator= takes a td.Generator, not {type(generator).__name__}; "
            "td.Generator(seed) makes one"
        )
    words = _next_words(source, device, extents)
    key = (*_numbers(extents, device), *words)
    return _Draw(name, extents, dtype, float64 if dtype is float64 else float32, device, key)


def _numbers(shape: tuple[int, ...], device: Device) -> tuple[Node, Node]:
    """The number of each element of a draw, as two words. Within td.vmap with
    randomness="different" the numbering continues from example to example."""
    traced = within.get()
    if traced is None:
        index = Node(INDEX, (), shape, uint32, device)
        return index, _upper_word(index)
    if traced.randomness == "error":
        raise ValuesUnknown(
            "a function within td.vmap draws random numbers: say whether all examples have the "
            'same ones, randomness="same", or each its own, randomness="different"'
        )
    token = within.set(traced.outer)
    try:
        if traced.randomness == "same":
            return _numbers(shape, device)
        low, high = _numbers((traced.count, *shape), device)
    finally:
        within.reset(token)
    return traced.placeholder(low), traced.placeholder(high)


def _next_words(source: Generator, device: Device, shape: tuple[int, ...]) -> tuple[Node, ...]:
    """The number of the next draw and the seed, two words each, in arrays of a shape."""
    noted = tape.get()
    if noted is not None:
        return tuple(noted.words(lambda: _new_words(source, device, shape)))
    return _new_words(source, device, shape)


def _new_words(source: Generator, device: Device, shape: tuple[int, ...]) -> tuple[Node, ...]:
    seed, number = source.next_draw()
    recording = recorder.get()
    if recording is not None:
        words = recording.words(source, seed, number, device, shape)
        if words is not None:
            return words
    numbers = (number, number >> 32, seed, seed >> 32)
    return tuple([constant(word % _WORD, shape, uint32, device) for word in numbers])


def words_of_a_draw(source: Generator, device: Device) -> Node:
    """The next draw's words as an array, for a kernel that computes the random numbers itself."""
    traced = within.get()
    if traced is None:
        return concat([from_node(word) for word in _next_words(source, device, (1,))])._node
    if traced.randomness == "error":
        _numbers((1,), device)  # raises within td.vmap
    token = within.set(traced.outer)
    try:
        count = traced.count if traced.randomness == "different" else 1
        words = [from_node(words_of_a_draw(source, device)) for _ in range(count)]
    finally:
        within.reset(token)
    return words[0]._node if count == 1 else traced.placeholder(stack(words)._node)


def kept_by(words: Node, shape: tuple[int, ...], p: float) -> Tensor:
    """`bernoulli(shape, p)`, drawn with words from `words_of_a_draw`."""
    index = Node(INDEX, (), shape, uint32, words.device)
    each = [view_of(words, View(shape, (0,) * len(shape), i)) for i in range(4)]
    chance = constant(p, shape, float32, words.device)
    sources = (index, _upper_word(index), *each, chance)
    return from_node(Node("random_chance", sources, shape, bool_, words.device))


def _upper_word(index: Node) -> Node:
    """The upper words of elements' numbers."""
    shape, device = index.shape, index.device
    if index.size <= _WORD:
        return constant(0, shape, uint32, device)
    whole = Node(INDEX, (), shape, uint64, device)
    sources = (whole, constant(32, shape, uint64, device))
    return cast(Node("bitwise_right_shift", sources, shape, uint64, device), uint32)


def _device_of(name: str, parameters: tuple[Any, ...], device: Any) -> Device:
    """The given device, or that of the arrays among the parameters."""
    own = device_of(name, parameters) if any(isinstance(p, Tensor) for p in parameters) else None
    if device is None and own is not None:
        return own
    where = find_device(device)
    if own is not None and own is not where:
        raise mixed_devices(name, where, own)
    return where


def _dtype(dtype: Any, device: Device) -> DType:
    found = as_device_dtype(dtype, device)
    if not isinstance(found, DType):
        raise DtypeError(f"there are no random structs ({found})")
    check_dtype(found, device)
    return found


def _check_not_negative(name: str, what: str, value: Any) -> None:
    if is_number(value) and not as_python(value) >= 0:
        raise ValueError(f"{name}: {what} must not be negative, as {value} is")


def _integer(name: str, bound: Any) -> Any:
    """A bound: a Python integer, or an integer array."""
    if is_number(bound):
        number = as_python(bound)
        if not isinstance(number, int) or isinstance(number, bool):
            raise TypeError(f"{name}: a bound is an integer, not {bound!r}")
        return int(number)
    dtype = getattr(bound, "dtype", None)
    if dtype is not None and getattr(dtype, "kind", "") not in ("int", "uint", "i", "u"):
        raise DtypeError(f"{name}: bounds are integers, not {dtype}: cast them with .to(td.int32)")
    return bound
