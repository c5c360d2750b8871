"""`torch.nn.SyncBatchNorm`: a batch norm over the processes of a group."""

from __future__ import annotations

from typing import Any

from treadle.distributed.layers.batch_norm import SyncBatchNorm as Native
from treadle.torch.nn import layers
from treadle.torch.nn.module import Module

_Base: Any = layers.made_from(Native)


class SyncBatchNorm(_Base):  # type: ignore[misc]
    """A batch norm whose mean and variance in training are those of the batches of all processes
    of a group (all processes for None), which may have unequal sizes.

    >>> import treadle.torch as torch
    >>> torch.nn.SyncBatchNorm(2)(torch.ones(3, 2, 4)).shape
    torch.Size([3, 2, 4])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        group = None if process_group is None else process_group.inner
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, group, device, dtype
        )
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with a `SyncBatchNorm` in the place of each batch norm, with its parameters
        and buffers. A batch norm itself is not changed: its successor is returned."""
        made: Any = module
        if isinstance(module, layers._BatchNorm) and not isinstance(module, SyncBatchNorm):
            norm: Any = module
            made = cls(
                norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats,
                process_group,
            )  # fmt: skip
            made._parameters.update(norm._parameters)
            made._buffers.update(norm._buffers)
            made.train(norm.training)
        child: Any
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made  # type: ignore[no-any-return]
