"""`torch.nn.parallel`: models of which each process has a copy. A module runs on one device, so
`DataParallel` is the module."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from treadle.nn.module import Module as InnerModule
from treadle.torch.nn.module import Module
from treadle.torch.tensors import unwrapped

__all__ = ["DataParallel", "DistributedDataParallel"]


class DataParallel(Module):
    """A module under the name `module`, as PyTorch runs it where there is at most one card.

    RuntimeError for several `device_ids`: a module runs on one device.

    >>> import treadle.torch as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(3, 2))
    >>> model(torch.ones(4, 3)).shape, list(model.state_dict())
    (torch.Size([4, 2]), ['module.weight', 'module.bias'])
    """

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise RuntimeError(
                f"a module runs on one device, not on {list(device_ids)}: name one, or none"
            )
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids or [])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """A model of which each process has a copy, trained on the process's part of the batches: in a
    backward pass gradients become their means over all processes.

    `td.distributed.DataParallel` does it: buckets of `bucket_cap_mb`, reduced while the pass goes
    on. Parameters that a process has not used count as zeros, so `find_unused_parameters`,
    `static_graph`, `gradient_as_bucket_view` and `check_reduction` change nothing; `device_ids` and
    `output_device` neither: the model stays where it is. RuntimeError if no parameter is trained,
    or for several devices.

    >>> import treadle.torch as torch
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    >>> model(torch.ones(4, 3)).shape, list(model.state_dict())
    (torch.Size([4, 2]), ['module.weight', 'module.bias'])
    >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        **others: Any,
    ) -> None:
        super().__init__()
        from treadle.distributed.data_parallel import BUCKET_BYTES
        from treadle.distributed.data_parallel import DataParallel as Averaged
        from treadle.torch.distributed.processes import world

        for name, value in others.items():
            if value:
                raise RuntimeError(f"DistributedDataParallel has no {name}: leave it out")
        self.process_group = process_group or world()
        if self.process_group.rank() < 0:
            raise RuntimeError("this process is not in the process group of the model")
        if device_ids is not None and len(device_ids) > 1:
            raise RuntimeError(
                f"a module runs on one device, not on {list(device_ids)}: start a process for each"
            )
        if not any(each.requires_grad for each in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        size = BUCKET_BYTES if bucket_cap_mb is None else int(bucket_cap_mb * (1 << 20))
        self.module = module
        self.dim = dim
        self.device_ids = list(device_ids or [])
        self.broadcast_buffers = broadcast_buffers
        # In a tuple, since its parameters are these.
        held = _Holding(module)
        self._averaged = (Averaged(held, size, broadcast_buffers, self.process_group.inner),)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        (averaged,) = self._averaged
        averaged.training = self.training
        return averaged(*inputs, **kwargs)

    def no_sync(self) -> AbstractContextManager[None]:
        """Within the block backward passes add to this process's own gradients."""
        return self._averaged[0].no_sync()

    def join(self, *arguments: Any, **options: Any) -> NoReturn:
        """RuntimeError: all processes run equally many passes."""
        raise RuntimeError(
            "all processes run equally many backward passes: DistributedSampler gives each equally "
            "many items"
        )

    def register_comm_hook(self, state: Any, hook: Any) -> NoReturn:
        """RuntimeError: gradients become their means."""
        raise RuntimeError(
            "gradients become their means: for another reduction call torch.distributed.all_reduce "
            "on them, without DistributedDataParallel"
        )


class _Holding(InnerModule):
    """A module of PyTorch's within one of treadle's, which sees treadle's tensors in it."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return self.module(*inputs, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """The parameters, as treadle's tensors."""
        for name, each in self.module.named_parameters(*args, **kwargs):
            yield name, unwrapped(each)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Any:
        """The buffers, as treadle's tensors."""
        for name, each in self.module.named_buffers(*args, **kwargs):
            yield name, unwrapped(each)
