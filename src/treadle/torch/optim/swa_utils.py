"""`torch.optim.swa_utils`: averages of a model's weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

from treadle.graph.history import recorded
from treadle.optim.lr_scheduler.base import LRScheduler, for_groups
from treadle.torch.nn.module import Module
from treadle.torch.operations.creation import tensor
from treadle.torch.tensors import Tensor, wrap

_Average = Callable[[Any, Any, Any], Any]


def get_ema_avg_fn(decay: float = 0.999) -> _Average:
    """A function for `avg_fn`: decay * average + (1 - decay) * new."""

    def average(averaged: Any, new: Any, count: Any) -> Any:
        return averaged * decay + new * (1 - decay)

    return average


def get_swa_avg_fn() -> _Average:
    """A function for `avg_fn`: the mean of all that there were."""

    def average(averaged: Any, new: Any, count: Any) -> Any:
        return averaged + (new - averaged) / (count + 1)

    return average


def _of_lists(average: _Average) -> Callable[[list[Any], list[Any], Any], None]:
    def of_lists(averaged: list[Any], new: list[Any], count: Any) -> None:
        with recorded(False):
            for mine, its in zip(averaged, new, strict=True):
                mine._inner[...] = average(mine.detach(), its.detach(), count)._inner

    return of_lists


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[list[Any], list[Any], Any], None]:
    """A function for `multi_avg_fn`: decay * average + (1 - decay) * new."""
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[list[Any], list[Any], Any], None]:
    """A function for `multi_avg_fn`: the mean of all that there were."""
    return _of_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of that one's: `update_parameters(model)`
    takes those of now. `avg_fn(average, new, count)` gives the next average of one tensor,
    `multi_avg_fn` changes lists of them in place; by default it is the mean. Buffers are averaged
    with `use_buffers`, and copied else."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: _Average | None = None,
        multi_avg_fn: Callable[[list[Any], list[Any], Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", wrap(tensor(0, device=device)))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of now into the averages."""
        own, others = self._averaged(self.module), self._averaged(model)
        count = int(self.n_averaged._inner.item())
        with recorded(False):
            if count == 0:
                for mine, its in zip(own, others, strict=True):
                    mine._inner[...] = its._inner.detach().to(device=mine._inner.device)
            else:
                (self.multi_avg_fn or _of_lists(self.avg_fn or get_swa_avg_fn()))(
                    own, others, count
                )
            if not self.use_buffers:
                for mine, its in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.copy_(its)  # type: ignore[attr-defined]
            self.n_averaged._inner[...] = count + 1

    def _averaged(self, model: Module) -> list[Any]:
        found: list[Any] = [*model.parameters()]
        if self.use_buffers:
            found += list(model.buffers())
        return found


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the averages of all batch norms anew, from a loader's batches (of their first parts,
    where they are lists)."""
    norms = {
        each: each.momentum
        for each in model.modules()
        if hasattr(each, "running_mean") and hasattr(each, "reset_running_stats")
    }
    if not norms:
        return
    was_training = model.training
    model.train()
    for each in norms:
        each.reset_running_stats()
        each.momentum = None
    with recorded(False):
        for batch in loader:
            input = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(input if device is None else input.to(device))
    for each, momentum in norms.items():
        each.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Rates that go to `swa_lr` in `anneal_epochs`, along a cosine or a line, and stay there."""

    def __init__(
        self,
        optimizer: Any,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(
            optimizer.param_groups, for_groups("swa_lr", optimizer, swa_lr), strict=True
        ):
            group["swa_lr"] = rate
        self.anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: float) -> float:
        """How much of the way is gone."""
        t = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self.anneal_strategy == "cos" else t

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`: from those before it."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        found = []
        for group in self.optimizer.param_groups:
            if before == 1:
                found.append(group["swa_lr"])
                continue
            # The rate that it began with, from the one before.
            first = (group["lr"] - before * group["swa_lr"]) / (1 - before)
            found.append(group["swa_lr"] * now + first * (1 - now))
        return found
