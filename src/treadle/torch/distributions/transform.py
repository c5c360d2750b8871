"""Functions of random variables with their derivatives' logarithms, and what is built of several:
chains, inverses, functions of parts."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import treadle.torch as torch
from treadle.torch.distributions import constraints
from treadle.torch.distributions.distribution import summed
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor


class Transform:
    """A function with an inverse. A class of one's own has `domain`, `codomain`, `_call`,
    `_inverse` and `log_abs_det_jacobian`. With `cache_size=1` the inverse of the last value is what
    it was computed from.

    >>> import treadle.torch as torch
    >>> exp = torch.distributions.transforms.ExpTransform()
    >>> exp.inv(exp(torch.tensor(2.0)))
    tensor(2.)
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)
        self._inv: Any = None

    @property
    def event_dim(self) -> int:
        """How many dimensions a value has, where those of arguments and results agree."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse."""
        made = self._inv() if self._inv is not None else None
        if made is None:
            made = _Inverse(self)
            self._inv = weakref.ref(made)
        return made

    @property
    def sign(self) -> Any:
        """Whether it grows (1) or falls (-1), of functions of numbers."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, x: Tensor) -> Tensor:
        """The values."""
        if not self._cache_size:
            return self._call(x)
        if x is self._cached[0]:
            return self._cached[1]  # type: ignore[no-any-return]
        y = self._call(x)
        self._cached = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        if y is self._cached[1]:
            return self._cached[0]  # type: ignore[no-any-return]
        x = self._inverse(y)
        self._cached = (x, y)
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Log |dy/dx| of events."""
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """The shape of values for one of arguments."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of arguments for one of values."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._of = transform

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The values' set."""
        return self._of.codomain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """The arguments' set."""
        return self._of.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """As the transform."""
        return self._of.bijective

    @property
    def sign(self) -> Any:
        """As the transform."""
        return self._of.sign

    @property
    def inv(self) -> Transform:
        """The transform."""
        return self._of

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        return self._of.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._of == other._of

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._of._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The transform's, with the other sign."""
        return -self._of.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of values."""
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of arguments."""
        return self._of.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{self._of!r}.inv"


class ComposeTransform(Transform):
    """Transforms, one after another."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [each.with_cache(cache_size) for each in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The first one's, with as many dimensions as the others need."""
        if not self.parts:
            return constraints.real
        first = self.parts[0].domain
        wanted = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            wanted = max(wanted + part.domain.event_dim - part.codomain.event_dim,
                         part.domain.event_dim)  # fmt: skip
        more = wanted - first.event_dim
        return constraints.independent(first, more) if more > 0 else first

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """The last one's, with as many dimensions as the others need."""
        if not self.parts:
            return constraints.real
        last = self.parts[-1].codomain
        wanted = self.parts[0].domain.event_dim
        for part in self.parts:
            wanted = max(wanted + part.codomain.event_dim - part.domain.event_dim,
                         part.codomain.event_dim)  # fmt: skip
        more = wanted - last.event_dim
        return constraints.independent(last, more) if more > 0 else last

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(each.bijective for each in self.parts)

    @property
    def sign(self) -> Any:
        """The product of all."""
        sign: Any = 1
        for each in self.parts:
            sign = sign * each.sign
        return sign

    @property
    def inv(self) -> Transform:
        """The inverses in the other order."""
        made = self._inv() if self._inv is not None else None
        if made is None:
            made = ComposeTransform([each.inv for each in reversed(self.parts)])
            self._inv, made._inv = weakref.ref(made), weakref.ref(self)
        return made

    def __call__(self, x: Tensor) -> Tensor:
        """The values."""
        for each in self.parts:
            x = each(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of all."""
        if not self.parts:
            return torch.zeros_like(x)
        values = [x]
        for each in self.parts[:-1]:
            values.append(each(values[-1]))
        values.append(y)
        dimensions = self.domain.event_dim
        found: Any = 0
        for part, one, other in zip(self.parts, values, values[1:], strict=False):
            slope = part.log_abs_det_jacobian(one, other)
            found = found + summed(slope, dimensions - part.domain.event_dim)
            dimensions += part.codomain.event_dim - part.domain.event_dim
        return found  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> Any:
        """The shape of values."""
        for each in self.parts:
            shape = each.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of arguments."""
        for each in reversed(self.parts):
            shape = each.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inner = ",\n    ".join(repr(each) for each in self.parts)
        return f"ComposeTransform(\n    {inner}\n)"


class IndependentTransform(Transform):
    """A transform whose last dimensions of a batch are one event."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The arguments' set."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """The values' set."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """As the transform."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        """As the transform."""
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over the event."""
        slope = self.base_transform.log_abs_det_jacobian(x, y)
        return summed(slope, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        """The shape of values."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of arguments."""
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events in another shape."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """Arrays of numbers."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """Arrays of numbers."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """0."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def _exchanged(self, shape: Any, one: Any, other: Any) -> Any:
        at = len(shape) - len(one)
        if at < 0 or tuple(shape[at:]) != tuple(one):
            raise ValueError(f"Shape mismatch: expected {tuple(shape)} to end with {tuple(one)}")
        return Size((*shape[:at], *other))

    def forward_shape(self, shape: Any) -> Any:
        """The shape of values."""
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of arguments."""
        return self._exchanged(shape, self.out_shape, self.in_shape)


class _OfParts(Transform):
    """Transforms of parts along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) for each in tseq]
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all are."""
        return all(each.bijective for each in self.transforms)

    def _split(self, x: Tensor) -> Any:
        raise NotImplementedError

    def _joined(self, parts: list[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._split(x), strict=True)
        return self._joined([each(part) for each, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._split(y), strict=True)
        return self._joined([each.inv(part) for each, part in parts], self.dim)


class CatTransform(_OfParts):
    """Transforms of stretches along a dimension, of the lengths given."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    @property
    def event_dim(self) -> int:
        """The most dimensions of the transforms."""
        return max(each.event_dim for each in self.transforms)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The parts' sets."""
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """The parts' sets."""
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def _split(self, x: Tensor) -> Any:
        return torch.split(x, self.lengths, self.dim)

    def _joined(self, parts: list[Tensor], dim: int) -> Tensor:
        return torch.cat(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of the parts, along the dimension; their sum, where it belongs to the event."""
        found = []
        for each, one, other in zip(self.transforms, self._split(x), self._split(y), strict=True):
            slope = each.log_abs_det_jacobian(one, other)
            found.append(summed(slope, self.event_dim - each.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        if dim < 0:
            return torch.cat(found, dim)
        return sum(found[1:], found[0])


class StackTransform(_OfParts):
    """A transform for each part along a dimension."""

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with another size of the cache."""
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """The parts' sets."""
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """The parts' sets."""
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def _split(self, x: Tensor) -> Any:
        return x.unbind(self.dim)

    def _joined(self, parts: list[Tensor], dim: int) -> Tensor:
        return torch.stack(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of the parts."""
        parts = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return torch.stack([each.log_abs_det_jacobian(a, b) for each, a, b in parts], self.dim)
