"""Random draws. Values are treadle's for a seed, not PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import DType
from treadle.tensor.checks import in_host_memory, looked_at
from treadle.tensor.computed_views import complex_of
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch import dtypes
from treadle.torch.devices import place
from treadle.torch.operations.creation import extents


def _drawn(
    name: str, shape: Any, dtype: DType | None, where: Any, generator: Any, requires_grad: bool
) -> Inner:
    """Draws of `td.random`; complex ones have parts of half the variance, or parts from 0 to 1."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    options = {"device": where, "generator": _of(generator)}
    draw = getattr(td.random, name)
    if dtype.is_complex:
        part = dtype.component
        one, other = (draw(shape, dtype=part, **options) for _ in range(2))
        made = complex_of(one, other)
        made = made * math.sqrt(0.5) if name == "normal" else made
    elif dtype.kind != "float":
        raise RuntimeError(f"{name} is not implemented for {dtype}: draws are floating")
    else:
        made = draw(shape, dtype=dtype, **options)
    return made.requires_grad_() if requires_grad else made


def _of(generator: Any) -> Any:
    """Treadle's generator of one of PyTorch's."""
    return getattr(generator, "td", generator)


def _draws(name: str, theirs: str, text: str) -> Any:
    def made(
        *args: Any,
        size: Any = None,
        generator: Any = None,
        names: Any = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Inner:
        shape = extents(args if size is None else (size,))
        return _drawn(theirs, shape, dtype, place(device), generator, requires_grad)

    def like(
        input: Inner,
        *,
        generator: Any = None,
        dtype: DType | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        pin_memory: bool = False,
    ) -> Inner:
        dtype = input.dtype if dtype is None else dtype
        where = input.device if device is None else place(device)
        return _drawn(theirs, input.shape, dtype, where, generator, requires_grad)

    made.__name__, like.__name__ = name, f"{name}_like"
    made.__doc__, like.__doc__ = f"{text}.", f"{text}, of another tensor's shape."
    return made, like


rand, rand_like = _draws("rand", "uniform", "Numbers from 0 up to 1")
randn, randn_like = _draws("randn", "normal", "Numbers of the standard normal distribution")


def randint(
    low: Any,
    high: Any = None,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """Integers from low (0 if only one bound is given) up to high, without it."""
    if size is None:
        low, high, size = (0, low, high) if isinstance(high, (tuple, list)) else (0, low, size)
    if high is None:
        low, high = 0, low
    where = place(device)
    made = _integers(extents((size,)), low, high, dtype, where, generator)
    return made.requires_grad_() if requires_grad else made


def randint_like(
    input: Inner,
    low: Any,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Inner:
    """Integers from low up to high, of another tensor's shape and dtype."""
    low, high = (0, low) if high is None else (low, high)
    where = input.device if device is None else place(device)
    return _integers(input.shape, low, high, dtype or input.dtype, where, generator)


def _integers(
    shape: Any, low: Any, high: Any, dtype: DType | None, where: Any, generator: Any
) -> Inner:
    low, high = (each.item() if isinstance(each, Inner) else int(each) for each in (low, high))
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got {low} >= {high}")
    working = dtypes.integers(where)
    made = td.random.integers(
        shape, low, high, dtype=working, device=where, generator=_of(generator)
    )
    return made if dtype is None else made.to(dtype)


def randperm(
    n: int,
    *,
    generator: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """The integers from 0 up to n, in a random order."""
    where = place(device)
    made = td.random.permutation(n, device=where, generator=_of(generator))
    return made.to(dtypes.integers(where) if dtype is None else dtype)


def bernoulli(input: Inner, p: Any = None, *, generator: Any = None) -> Inner:
    """1 with the probability that the elements are (or `p`), else 0."""
    chance = input.detach() if p is None else p
    if p is None and input.dtype.kind != "float":
        raise RuntimeError("bernoulli takes floating probabilities, not " + str(input.dtype))
    return _chance(input, chance, generator)


def _chance(input: Inner, chance: Any, generator: Any) -> Inner:
    if isinstance(chance, Inner):
        chance = chance.detach().to(td.float32)
        _look(chance, lambda p: (p >= 0) & (p <= 1), "Expected p_in >= 0 && p_in <= 1 to be true")
    elif not 0 <= chance <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={chance}")
    return td.random.bernoulli(
        input.shape, chance, dtype=input.dtype, device=input.device, generator=_of(generator)
    )


def _look(values: Inner, holds: Any, what: str) -> None:
    """RuntimeError for values in the host's memory that do not hold what they must."""
    with in_host_memory():
        if values.size and looked_at(values.device) and not np.all(holds(values.numpy())):
            raise RuntimeError(what)


def multinomial(
    input: Inner, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Inner:
    """Indices drawn with probabilities in proportion to the elements of each row."""
    where = input.device
    _look(
        input.detach(),
        lambda p: (p >= 0) & np.isfinite(p) & (p.sum(-1, keepdims=True) > 0),
        "probability tensor contains either `inf`, `nan` or element < 0, or has a row of zeros",
    )
    if not replacement and num_samples > 1:
        _look(
            input.detach(),
            lambda p: (p > 0).sum(-1, keepdims=True) >= num_samples,
            "invalid multinomial distribution (with replacement=False, not enough categories whose "
            "probability is not 0)",
        )
    made = td.random.multinomial(input.detach(), num_samples, replacement, generator=_of(generator))
    return made.to(dtypes.integers(where))


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Inner:
    """Numbers of normal distributions, whose means and deviations are numbers or tensors."""
    given = [each for each in (mean, std) if isinstance(each, Inner)]
    if given:
        where, dtype = given[0].device, given[0].dtype
        shape: Any = td.broadcast_arrays(*given)[0].shape
        if len(given) == 2 and mean.shape != std.shape and mean.size == std.size:
            std, shape = std.reshape(mean.shape), mean.shape
    else:
        if size is None:
            raise TypeError("normal(): of two numbers it needs size")
        where, shape = place(device), extents((size,))
    base = _drawn("normal", shape, dtype, where, generator, False)
    mean, std = (each.detach() if isinstance(each, Inner) else each for each in (mean, std))
    if not isinstance(std, Inner) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if isinstance(std, Inner):
        _look(std, lambda s: s >= 0, "normal expects all elements of std >= 0.0")
    made = base * std + mean
    return made.requires_grad_() if requires_grad else made


def poisson(input: Inner, generator: Any = None) -> Inner:
    """Numbers of events whose means are the elements."""
    _look(input.detach(), lambda rate: rate >= 0, "invalid Poisson rate, expected non-negative")
    return td.random.poisson(  # type: ignore[attr-defined,unused-ignore]
        input.shape,
        input.detach(),
        dtype=input.dtype,
        device=input.device,
        generator=_of(generator),
    )


def binomial(count: Inner, prob: Inner, generator: Any = None) -> Inner:
    """Numbers of successes in so many trials of a probability."""
    count, prob = td.broadcast_arrays(count.detach(), prob.detach())
    return td.random.binomial(  # type: ignore[attr-defined,unused-ignore]
        count.shape,
        count,
        prob,
        dtype=prob.dtype,
        device=prob.device,
        generator=_of(generator),
    )


# --- in place: the elements are replaced by draws ------------------------------------------------


def normal_values(
    input: Inner, mean: float = 0.0, std: float = 1.0, *, generator: Any = None
) -> Inner:
    """Draws of the normal distribution: for `normal_`."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    drawn = _drawn("normal", input.shape, input.dtype, input.device, generator, False)
    return drawn * std + mean


def uniform_values(input: Inner, *args: Any, generator: Any = None, **named: Any) -> Inner:
    """Draws from `from` up to `to` (0 and 1): for `uniform_`."""
    low, high = _between(args, named, 0.0, 1.0)
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )
    drawn = _drawn("uniform", input.shape, input.dtype, input.device, generator, False)
    return drawn if (low, high) == (0.0, 1.0) else drawn * (high - low) + low


def _between(args: tuple[Any, ...], named: dict[str, Any], *defaults: Any) -> list[Any]:
    """Arguments named `from` and `to`, which no parameter of Python's can be named."""
    found = [*args, *defaults[len(args) :]]
    for at, name in enumerate(("from", "to")):
        found[at] = named.pop(name, found[at])
    if named or len(found) > 2:
        raise TypeError(f"takes from, to and generator, not {', '.join(named) or args}")
    return found


_WHOLE = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53}


def random_values(input: Inner, *args: Any, generator: Any = None, **named: Any) -> Inner:
    """Integers from `from` up to `to`; without bounds, those that the dtype holds: for
    `random_`."""
    if len(args) == 1 and not named:
        args = (0, *args)
    low, high = _between(args, named, 0, None)
    if input.dtype is td.bool:
        return _chance(input, 0.5, generator)
    if high is None:
        name = input.dtype.name
        high = _WHOLE[name] + 1 if name in _WHOLE else td.iinfo(input.dtype).max
    return _integers(input.shape, low, high, input.dtype, input.device, generator)


def exponential_values(input: Inner, lambd: float = 1, *, generator: Any = None) -> Inner:
    """Draws of the exponential distribution: for `exponential_`."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _drawn("exponential", input.shape, input.dtype, input.device, generator, False) / lambd


def bernoulli_values(input: Inner, p: Any = 0.5, *, generator: Any = None) -> Inner:
    """Draws of 1 with probability p, else 0: for `bernoulli_`."""
    return _chance(input, p, generator)


def _unit(input: Inner, generator: Any) -> Inner:
    """Draws above 0 and below 1."""
    dtype = input.dtype if input.dtype.kind == "float" else td.float32
    drawn = _drawn("uniform", input.shape, dtype, input.device, generator, False)
    return td.where(drawn == 0, td.finfo(dtype).eps / 4, drawn)


def geometric_values(input: Inner, p: float, *, generator: Any = None) -> Inner:
    """Trials until the first success of probability p: for `geometric_`."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return td.ceil(td.log(_unit(input, generator)) / math.log1p(-p)).to(input.dtype)


def cauchy_values(
    input: Inner, median: float = 0, sigma: float = 1, *, generator: Any = None
) -> Inner:
    """Draws of the Cauchy distribution: for `cauchy_`."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return median + sigma * td.tan(math.pi * (_unit(input, generator) - 0.5))


def log_normal_values(
    input: Inner, mean: float = 1, std: float = 2, *, generator: Any = None
) -> Inner:
    """Exponentials of draws of the normal distribution: for `log_normal_`."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return td.exp(normal_values(input, mean, std, generator=generator))
