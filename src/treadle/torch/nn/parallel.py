"""`torch.nn.parallel`: a module runs on one device. `DataParallel` of one device is the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.torch.nn.module import Module

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
    """RuntimeError: there are no groups of processes."""

    def __init__(self, module: Any, *arguments: Any, **options: Any) -> None:
        raise RuntimeError(
            "training in several processes is not there: call the module itself, or "
            "torch.nn.DataParallel(module)"
        )
