"""Schedules along a cosine."""

from __future__ import annotations

import math

from treadle.optim import checks
from treadle.optim.lr_scheduler.base import LRScheduler, set_rate
from treadle.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Rates along half a cosine from the initial ones to `eta_min` in `T_max` epochs, and back."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`, from those before, so that the schedule may be one of
        several."""
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and epoch > 0:
            return self._rates_at()
        if (epoch - 1 - period) % (2 * period) == 0:  # a factor would divide by 0 here
            rise = (1 - math.cos(math.pi / period)) / 2
            pairs = zip(self._rates(), self.base_lrs, strict=True)
            return [rate + (base - low) * rise for rate, base in pairs]
        height = 1 + math.cos(math.pi * epoch / period)
        factor = height / (1 + math.cos(math.pi * (epoch - 1) / period))
        return [factor * (rate - low) + low for rate in self._rates()]

    def _rates_at(self) -> list[float]:
        return _lowered(self.base_lrs, self.eta_min, self.last_epoch / self.T_max)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates along half a cosine from the initial ones to `eta_min`, again and again: the first time
    in `T_0` epochs, then each time in `T_mult` times as many. `step(epoch)` takes parts of epochs,
    too, as in `step(epoch + batch / batches)`."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a positive integer, not {value}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates for the place in the present period."""
        return _lowered(self.base_lrs, self.eta_min, self.T_cur / self.T_i)

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next epoch, or to the one that is named, and set its rates."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            self._find(epoch)
        self.last_epoch = math.floor(epoch)
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            set_rate(group, rate)
        self._last_lr = [checks.number(group["lr"]) for group in self.optimizer.param_groups]

    def _find(self, epoch: float) -> None:
        """The period that an epoch is in, and its place there."""
        if epoch < 0:
            raise ValueError(f"an epoch is not negative: {epoch}")
        if self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
            return
        growth = self.T_mult - 1
        before = int(math.log(epoch / self.T_0 * growth + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult**before - 1) / growth
        self.T_i = self.T_0 * self.T_mult**before


def _lowered(rates: list[float], low: float, done: float) -> list[float]:
    """Rates at a part of half a cosine."""
    return [low + (rate - low) * (1 + math.cos(math.pi * done)) / 2 for rate in rates]
