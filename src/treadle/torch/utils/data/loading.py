"""`torch.utils.data.DataLoader`: treadle's loader, with batches of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.data.loader import DataLoader as Inner
from treadle.torch.utils.data.collating import default_collate, default_convert


class DataLoader(Inner):
    """Batches of a dataset: `for batch in loader` is one epoch.

    Arguments are PyTorch's. `num_workers` are threads, so that datasets need not be sent to other
    processes; `pin_memory`, `persistent_workers`, `multiprocessing_context` and `in_order` are
    accepted and change nothing: batches come in order.

    >>> import treadle.torch as torch
    >>> from treadle.torch.utils.data import DataLoader, TensorDataset
    >>> [x.tolist() for x, in DataLoader(TensorDataset(torch.arange(5)), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if collate_fn is None:
            has_batches = batch_size is not None or batch_sampler is not None
            collate_fn = default_collate if has_batches else default_convert
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn,
            pin_memory, drop_last, timeout, worker_init_fn,
            generator=getattr(generator, "_inner", generator), prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
        )  # fmt: skip
        self.pin_memory = pin_memory
        self.persistent_workers = persistent_workers

    def __class_getitem__(cls, item: Any) -> Any:
        return cls
