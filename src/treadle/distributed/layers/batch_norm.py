"""Batch norms whose mean and variance are those of the batches of all ranks."""

from __future__ import annotations

import math
from typing import Any

from treadle.core.dtypes import float32
from treadle.core.errors import ShapeError
from treadle.distributed.collectives import all_gather
from treadle.distributed.group import current
from treadle.distributed.members import Group
from treadle.graph.history import recorded
from treadle.nn.module import Module
from treadle.nn.normalization import BatchNorm
from treadle.tensor.assembly import concat
from treadle.tensor.creation import full
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.standardization import by_channel
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import Tensor, computed_soon

_rsqrt, _square, _maximum = (FUNCTIONS[name] for name in ("rsqrt", "square", "maximum"))
_SETTINGS = ("num_features", "eps", "momentum", "affine", "track_running_stats")


class SyncBatchNorm(BatchNorm):
    """A batch norm of (N, C), or (N, C, …), whose mean and variance in training are those of the
    batches of all ranks of a group. The batches may have unequal sizes.

    It is for data parallel training, where each rank has a part of the batch and a loss of its own.
    The arguments before `group` are those of `td.nn.BatchNorm2d`, and so is the state dict.

    >>> import treadle as td
    >>> layer = td.distributed.SyncBatchNorm(2, device="cpu")
    >>> layer(td.ones((3, 2, 4, 4), device="cpu")).shape
    (3, 2, 4, 4)
    """

    _ranks = (2, 3, 4, 5)
    group: Group

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        group: Group | None = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.group = current() if group is None else group

    def forward(self, input: Any) -> Tensor:
        """A tensor of the input's shape; in training the running mean and variance move."""
        looks = self.training or self.running_mean is None
        if not looks or self.group.engine is None:
            return super().forward(input)
        self._check_rank(input)
        if input.shape[1] != self.num_features:
            raise ShapeError(
                f"SyncBatchNorm of {self.num_features} channels takes (N, {self.num_features}, …), "
                f"not an input of shape {input.shape}"
            )
        x = input.to(float32) if input.dtype.itemsize < 4 else input
        average, variance, count = self._statistics(x)
        if self.training and self.track_running_stats:
            with recorded(False):
                self._move(average, variance * (count / _maximum(count - 1, 1)))
        found = x - by_channel(average, x.ndim)
        found = found * by_channel(_rsqrt(variance + self.eps), x.ndim)
        if self.weight is not None:
            found = found * by_channel(self.weight, x.ndim)
        if self.bias is not None:
            found = found + by_channel(self.bias, x.ndim)
        made: Tensor = found.to(input.dtype)
        return made

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of each channel, and how many elements it has on all ranks. They are
        made of those of each rank, whose differences are kept small."""
        axes = (0, *range(2, x.ndim))
        own = math.prod(x.shape[axis] for axis in axes)
        # A rank without elements takes part with zeros, in the backward pass, too.
        average = total(x, axis=axes) / max(own, 1)
        variance = total(_square(x - by_channel(average, x.ndim)), axis=axes) / max(own, 1)
        count = full((1,), own, dtype=x.dtype, device=x.device)
        every = all_gather(concat([average, variance, count])[None], 0, self.group)
        channels = x.shape[1]
        counts = every[:, 2 * channels :]
        averages, variances = every[:, :channels], every[:, channels : 2 * channels]
        whole = total(counts)
        average = total(averages * counts, axis=0) / whole
        between = _square(averages - average)
        return average, total((variances + between) * counts, axis=0) / whole, whole

    def _move(self, average: Tensor, variance: Tensor) -> None:
        """Move the running mean and variance."""
        part = self.next_momentum()
        for so_far, new in ((self.running_mean, average), (self.running_var, variance)):
            assert so_far is not None
            moved = so_far.to(new.dtype) * (1 - part) + new * part
            so_far._write(moved.to(so_far.dtype)._node)
            computed_soon(so_far)


def convert_sync_batchnorm(model: Module, group: Group | None = None) -> Module:
    """The model with a `SyncBatchNorm` in the place of each batch norm, which has the same
    parameters and buffers. A batch norm itself is not changed: its successor is returned.

    >>> import treadle as td
    >>> model = td.nn.Sequential(td.nn.BatchNorm1d(2, device="cpu"), td.nn.ReLU())
    >>> type(td.distributed.convert_sync_batchnorm(model)[0]).__name__
    'SyncBatchNorm'
    """
    return _converted(model, current() if group is None else group, {})


def _converted(module: Module, group: Group, known: dict[int, Module]) -> Module:
    found = known.get(id(module))
    if found is not None:
        return found
    if isinstance(module, BatchNorm) and not isinstance(module, SyncBatchNorm):
        made = SyncBatchNorm.__new__(SyncBatchNorm)
        Module.__init__(made)
        for name in _SETTINGS:
            setattr(made, name, getattr(module, name))
        for name, parameter in module._parameters.items():
            made.register_parameter(name, parameter)
        for name, buffer in module._buffers.items():
            made.register_buffer(name, buffer)
        made.group = group
        made.train(module.training)
        known[id(module)] = made
        return made
    known[id(module)] = module
    for name, child in module._modules.items():
        if child is not None:
            module._modules[name] = _converted(child, group, known)
    return module
