"""`torch.utils.data.distributed`: which items of a dataset a rank takes."""

from __future__ import annotations

from collections.abc import Sized

from treadle.distributed.sampler import DistributedSampler as Inner
from treadle.torch.distributed import processes
from treadle.torch.utils.data.samplers import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Inner, Sampler):
    """This rank's part of a dataset, in an order that is another one in each epoch that `set_epoch`
    names. The ranks are those of `init_process_group`, if they are not given.

    >>> from treadle.torch.utils.data.distributed import DistributedSampler
    >>> list(DistributedSampler("abcde", num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = processes.get_world_size()
        if rank is None:
            rank = processes.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        super().__init__(dataset, rank, num_replicas, shuffle, seed, drop_last)

    @property
    def num_replicas(self) -> int:
        """How many ranks there are."""
        return self.size

    @property
    def num_samples(self) -> int:
        """How many items this rank takes."""
        return len(self)

    @property
    def total_size(self) -> int:
        """How many items all ranks take."""
        return len(self) * self.size
