"""Data parallel training: each rank has the whole model and a part of each batch, and gradients are
averaged.

Gradients are reduced in buckets, in the reverse order of the parameters, which is about the order
in which a backward pass has them. A bucket is reduced as soon as its gradients are known, while the
pass goes on to the next ones; the order of buckets is the same on all ranks.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from treadle.autograd.engine import of_this_pass, zeros_of
from treadle.autograd.modes import no_grad
from treadle.core.errors import DistributedError
from treadle.distributed.collectives import all_reduce, broadcast
from treadle.distributed.group import current
from treadle.distributed.members import Group
from treadle.nn.module import Module
from treadle.tensor.assembly import concat
from treadle.tensor.tensor import Tensor

BUCKET_BYTES = 25 << 20


@dataclass(frozen=True, slots=True)
class Bucket:
    """Parameters of one dtype whose gradients are reduced together."""

    parameters: tuple[Tensor, ...]

    def started(self, group: Group) -> Tensor:
        """The mean of all ranks' gradients, under way. A parameter without one counts as zeros."""
        with no_grad():
            return all_reduce(_flat([_gradient(each) for each in self.parameters]), "mean", group)

    def write(self, mean: Tensor) -> None:
        """Give the parameters their part of a mean."""
        with no_grad():
            parts = _parts(mean, self.parameters)
            for parameter, part in zip(self.parameters, parts, strict=True):
                if parameter.grad is None:
                    parameter.grad = part.clone()
                else:
                    parameter.grad[...] = part


def average_gradients(
    model: Module | Iterable[Tensor],
    bucket_bytes: int = BUCKET_BYTES,
    group: Group | None = None,
) -> None:
    """Replace the gradients of a model (or of parameters) by their means over all ranks, or those
    of a group: between `backward()` and the optimizer's step.

    All ranks have the same parameters. One that has no gradient here counts as zeros, and gets the
    mean of the others. The gradients are computed and reduced in buckets, so that the reduction of
    one overlaps the computing of the next.

    >>> import treadle as td
    >>> layer = td.nn.Linear(2, 1, device="cpu")
    >>> layer(td.ones(2, device="cpu")).sum().backward()
    >>> td.distributed.average_gradients(layer)  # of one rank: nothing changes
    >>> layer.weight.grad.tolist()
    [[1.0, 1.0]]
    """
    group = current() if group is None else group
    if group.engine is None:
        return
    buckets = _buckets(_trained(model), bucket_bytes)
    means = [bucket.started(group) for bucket in buckets]
    for bucket, mean in zip(buckets, means, strict=True):
        bucket.write(mean)


class DataParallel(Module):
    """A model of which each rank has a copy, trained on each rank's part of the batches.

    At the beginning all ranks get the parameters and buffers of rank 0. In each backward pass the
    gradients become their means over all ranks, so that the same optimizer on each rank makes the
    same step. In training, buffers (as the statistics of a batch norm) are those of rank 0 at the
    beginning of each forward pass.

    A parameter that a rank has not used counts as zeros there. Each rank runs the same backward
    passes. Save `model.module.state_dict()` on rank 0.

    `bucket_bytes` is how much is reduced at once; `broadcast_buffers=False` leaves buffers alone.
    With a `group`, all this is among its ranks.

    >>> import treadle as td
    >>> model = td.distributed.DataParallel(td.nn.Linear(2, 1, device="cpu"))
    >>> model(td.ones((3, 2), device="cpu")).shape
    (3, 1)
    """

    def __init__(
        self,
        module: Module,
        bucket_bytes: int = BUCKET_BYTES,
        broadcast_buffers: bool = True,
        group: Group | None = None,
    ) -> None:
        super().__init__()
        self.module = module
        self._group = group = current() if group is None else group
        self._broadcasts = broadcast_buffers
        self._is_reducing = True
        if group.engine is None:
            return
        check_equal(group, module)
        with no_grad():
            equalize([*module.parameters(), *module.buffers()], group)
        self._buckets = _buckets(_trained(module), bucket_bytes)
        self._listen()

    def _listen(self) -> None:
        """Hear of the gradients that backward passes have added to."""
        for number, bucket in enumerate(self._buckets):
            for parameter in bucket.parameters:
                hook = partial(self._accumulated, number)
                parameter.register_post_accumulate_grad_hook(hook)

    def __deepcopy__(self, known: dict[int, Any]) -> DataParallel:
        """A copy that averages the gradients of its own parameters."""
        made = type(self).__new__(type(self))
        known[id(self)] = made
        made.__dict__.update(copy.deepcopy(self.__dict__, known))
        if made._group.engine is not None:
            made._listen()
        return made

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model's result."""
        group = self._group
        if group.engine is not None and self.training and self._broadcasts:
            buffers = [*self.module.buffers()]
            if buffers:
                with no_grad():
                    equalize(buffers, group)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block backward passes add to this rank's own gradients, and nothing is
        averaged: for all but the last of several passes before a step."""
        before, self._is_reducing = self._is_reducing, False
        try:
            yield
        finally:
            self._is_reducing = before

    def _accumulated(self, number: int, parameter: Tensor) -> None:
        """A backward pass has added to the gradient of a parameter of a bucket."""
        if self._is_reducing:
            make = partial(_Reduction, self._group, self._buckets)
            of_this_pass(self, make).add(number, parameter)


class _Reduction:
    """The reductions of one backward pass."""

    def __init__(self, group: Group, buckets: Sequence[Bucket]) -> None:
        self._group = group
        self._buckets = buckets
        self._left = [{id(each) for each in bucket.parameters} for bucket in buckets]
        self._means: list[Tensor] = []

    def add(self, number: int, parameter: Tensor) -> None:
        """A gradient is whole. Start the buckets that are, in order."""
        self._left[number].discard(id(parameter))
        while len(self._means) < len(self._buckets) and not self._left[len(self._means)]:
            self._means.append(self._buckets[len(self._means)].started(self._group))

    def __call__(self) -> None:
        """The pass has ended: start what some parameter was not used in, and write the means."""
        for bucket in self._buckets[len(self._means) :]:
            self._means.append(bucket.started(self._group))
        for bucket, mean in zip(self._buckets, self._means, strict=True):
            bucket.write(mean)


# --- parameters ----------------------------------------------------------------------------------


def _trained(model: Module | Iterable[Tensor]) -> list[Tensor]:
    found: Any = model.parameters() if isinstance(model, Module) else model
    return [each for each in found if each.requires_grad]


def _buckets(parameters: Sequence[Tensor], most: int) -> list[Bucket]:
    """Buckets of at most so many bytes, or of one parameter, the last parameters first."""
    found: list[list[Tensor]] = []
    size, last = 0, None
    for parameter in reversed(parameters):
        own = parameter.size * parameter.dtype.itemsize
        kind = parameter.dtype, parameter.device
        if kind != last or size + own > most:
            found.append([])
            size, last = 0, kind
        found[-1].append(parameter)
        size += own
    return [Bucket(tuple(each)) for each in found]


def _gradient(parameter: Tensor) -> Tensor:
    gradient = parameter.grad
    return zeros_of(parameter) if gradient is None else gradient.detach()


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    made: Tensor = concat([each.detach().reshape((each.size,)) for each in tensors])
    return made


def _parts(flat: Tensor, like: Sequence[Tensor]) -> Iterator[Tensor]:
    start = 0
    for each in like:
        yield flat[start : start + each.size].reshape(each.shape)
        start += each.size


def equalize(tensors: Sequence[Tensor], group: Group) -> None:
    """Give tensors the values that they have on rank 0 of a group."""
    kinds: dict[Any, list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault((each.dtype, each.device), []).append(each)
    for same in kinds.values():
        values = broadcast(_flat(same), 0, group)
        for each, value in zip(same, _parts(values, same), strict=True):
            each[...] = value


def check_equal(group: Group, module: Module) -> None:
    """DistributedError, on each rank, if the ranks' models have not the same parameters."""
    named = [*module.named_parameters(), *module.named_buffers()]
    own = [f"{name}: {each.dtype}{list(each.shape)}" for name, each in named]
    others = group.exchange("comparison of models", own)
    for rank, other in zip(group.ranks, others, strict=True):
        if other == own:
            continue
        here = next((each for each in own if each not in other), "no more")
        there = next((each for each in other if each not in own), "no more")
        if here == there:
            here, there = "the same ones", "the same ones, in another order"
        raise DistributedError(
            f"the ranks' models differ: rank {group.ranks[group.rank]} has {len(own)} parameters "
            f"and buffers, rank {rank} has {len(other)}. The first difference: here {here}; there "
            f"{there}"
        )
