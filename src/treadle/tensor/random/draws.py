"""What functions of random numbers share: a draw, its words, the dtype and device of its result."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import DType, bool_, float32, float64, uint32, uint64
from treadle.core.errors import DtypeError, ShapeError, ValuesUnknown
from treadle.graph.calls import call
from treadle.graph.node import INDEX, Node, constant, view_of
from treadle.graph.placeholders import within
from treadle.graph.views import View
from treadle.kernels.sort import argsort
from treadle.runtime import settings
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.assembly import concat, stack
from treadle.tensor.conversions import (
    as_python,
    cast,
    common_shape,
    device_of,
    is_number,
    mixed_devices,
    shaped,
)
from treadle.tensor.creation import Shape, extents_of
from treadle.tensor.dtypes import check_dtype, default_integer, promote
from treadle.tensor.generator import Generator, default_generator, recorder, tape
from treadle.tensor.operands import node_of
from treadle.tensor.tensor import Tensor, as_device_dtype, from_node

WORD = 1 << 32


class Draw(NamedTuple):
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
        """A number as a node of the draw's shape."""
        return constant(number, self.shape, dtype, self.device)

    def word(self) -> Node:
        """The random bits of one float."""
        if self.working is float32:
            return self.node("random_word", uint32, *self.key)
        return self.node("random_word_64", uint64, *self.key)

    def integer_below(self, count: int) -> Node:
        """Integers of 32 bits from 0 to count-1; a count of 0 means 2^32."""
        return self.node("random_below", uint32, *self.key, self.constant(count, uint32))

    def long_below(self, count: int) -> Node:
        """Integers of 64 bits from 0 to count-1; a count of 0 means 2^64."""
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

    def compared(self, op: str, node: Node, number: float) -> Node:
        """A comparison with a number."""
        return self.node(op, bool_, node, self.constant(number, node.dtype))

    def all_of(self, *conditions: Node) -> Node:
        """Whether all conditions hold."""
        return functools.reduce(lambda x, y: self.node("logical_and", bool_, x, y), conditions)

    def or_nan(self, valid: Node, node: Node) -> Node:
        """A node of floats where a condition holds, NaN elsewhere."""
        return self.node("where", node.dtype, valid, node, self.constant(np.nan, node.dtype))

    def result(self, node: Node) -> Tensor:
        """A node as the tensor that is drawn."""
        return from_node(cast(node, self.dtype))


def draw_of_floats(
    name: str, shape: Shape, parameters: tuple[Any, ...], dtype: Any, device: Any, generator: Any
) -> Draw:
    """A draw of floats: in float32 unless a dtype is given, or a parameter is an array of another
    dtype."""
    where = device_for(name, parameters, device)
    if dtype is None:
        own = [p.dtype for p in parameters if isinstance(p, Tensor) and p.dtype.kind == "float"]
        given = own[0] if own else float32
        for other in own[1:]:
            given = promote(given, other)
    else:
        given = dtype_for(dtype, where)
    if given.kind != "float":
        raise DtypeError(f"random.{name} makes floating dtypes, not {given}")
    return new_draw(name, shape, parameters, given, where, generator)


def new_draw(
    name: str, shape: Shape, parameters: tuple[Any, ...], dtype: DType, device: Device,
    generator: Any,
) -> Draw:  # fmt: skip
    """The next draw of a generator, of the default one if it is None."""
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
    return Draw(name, extents, dtype, float64 if dtype is float64 else float32, device, key)


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
    return tuple([constant(word % WORD, shape, uint32, device) for word in numbers])


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
    if index.size <= WORD:
        return constant(0, shape, uint32, device)
    whole = Node(INDEX, (), shape, uint64, device)
    sources = (whole, constant(32, shape, uint64, device))
    return cast(Node("bitwise_right_shift", sources, shape, uint64, device), uint32)


def device_for(name: str, parameters: tuple[Any, ...], device: Any) -> Device:
    """The given device, or that of the arrays among the parameters."""
    own = device_of(name, parameters) if any(isinstance(p, Tensor) for p in parameters) else None
    if device is None and own is not None:
        return own
    where = find_device(device)
    if own is not None and own is not where:
        raise mixed_devices(name, where, own)
    return where


def dtype_for(dtype: Any, device: Device) -> DType:
    """A dtype that is asked for. DtypeError if the device has no such numbers."""
    found = as_device_dtype(dtype, device)
    if not isinstance(found, DType):
        raise DtypeError(f"there are no random structs ({found})")
    check_dtype(found, device)
    return found


def check_not_negative(name: str, what: str, value: Any) -> None:
    """ValueError for a number that is negative or NaN; arrays are not read."""
    if is_number(value) and not as_python(value) >= 0:
        raise ValueError(f"{name}: {what} must not be negative, as {value} is")


def check_parameter(
    name: str, what: str, value: Any, holds: Callable[[Any], Any], must_be: str
) -> None:
    """ValueError for a number that does not hold what it must, also in a list or a NumPy array, and
    under TREADLE_CHECK=1 in a tensor."""
    if isinstance(value, Tensor):
        if not settings.check or within.get() is not None:
            return
        value = value.numpy()
    found = np.asarray(as_python(value) if is_number(value) else value)
    if found.dtype.kind not in "biuf":
        return  # what makes nodes of parameters says why not
    wrong = ~np.asarray(holds(found))
    if wrong.any():
        given = value if is_number(value) else found[wrong].reshape(-1)[0]
        raise ValueError(f"{name}: {what} must be {must_be}, not {given}")
