"""A schedule that reacts to a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.optim import checks
from treadle.optim.lr_scheduler.base import LRScheduler, checked, for_groups, set_rate
from treadle.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """Rates times `factor` when a metric has not improved for more than `patience` epochs:
    `scheduler.step(validation_loss)`.

    Improved means less by `threshold`, or, with the mode "max", more; as a part of the best value
    or, with the `threshold_mode` "abs", as it is. After a change `cooldown` epochs do not count.
    Rates do not go below `min_lr`, which may be a list of one for each group, and not in steps
    smaller than `eps`.

    >>> import treadle as td
    >>> optimizer = td.optim.SGD([td.ones(1, device="cpu").requires_grad_()], lr=1.0)
    >>> scheduler = td.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"factor must be less than 1, not {factor}")
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', not {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold_mode must be 'rel' or 'abs', not {threshold_mode!r}")
        self.optimizer = checked(optimizer)
        self.factor = factor
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.last_epoch = 0
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Report how an epoch went, by a number or a tensor of one, which is read."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs do not count, since the rates were changed just now."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "rel":
            least = self.best * (1.0 + sign * self.threshold)
        else:
            least = self.best + sign * self.threshold
        return value < least if self.mode == "min" else value > least

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(self.min_lrs) != len(groups):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"min_lr is a list for {len(self.min_lrs)} parameter groups, and there are "
                    f"{len(groups)} now: set min_lrs of the schedule"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = checks.number(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                set_rate(group, after)
