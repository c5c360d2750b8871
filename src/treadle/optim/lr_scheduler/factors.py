"""Schedules that multiply rates by a factor."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from treadle.optim.lr_scheduler.base import LRScheduler, for_groups
from treadle.optim.optimizer import Optimizer


class _ByFactor(LRScheduler):
    """The rates of the epoch before, times a factor; so a schedule may be one of several."""

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`."""
        factor = self._first() if self._is_initial else self._factor(self.last_epoch)
        return [rate * factor for rate in self._rates()]

    def _rates_at(self) -> list[float]:
        return [rate * self._share(self.last_epoch) for rate in self.base_lrs]

    def _first(self) -> float:
        """The factor when the schedule is made."""
        return 1.0

    def _factor(self, epoch: int) -> float:
        """That of an epoch's rates to the rates before."""
        raise NotImplementedError

    def _share(self, epoch: int) -> float:
        """That of an epoch's rates to the initial ones."""
        raise NotImplementedError


class StepLR(_ByFactor):
    """Rates times `gamma` every `step_size` epochs.

    >>> import treadle as td
    >>> optimizer = td.optim.SGD([td.ones(1, device="cpu").requires_grad_()], lr=1.0)
    >>> scheduler = td.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(5):
    ...     optimizer.step()
    ...     rates += scheduler.get_last_lr()
    ...     scheduler.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _first(self) -> float:
        return self._factor(self.last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma if epoch and epoch % self.step_size == 0 else 1.0

    def _share(self, epoch: int) -> float:
        return self.gamma ** (epoch // self.step_size)


class MultiStepLR(_ByFactor):
    """Rates times `gamma` at each of the epochs `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _first(self) -> float:
        return self._factor(self.last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma ** self.milestones[epoch] if epoch in self.milestones else 1.0

    def _share(self, epoch: int) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch)


class ConstantLR(_ByFactor):
    """Rates times `factor` until the epoch `total_iters`. ValueError unless it is from 0 to 1."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"factor must be from 0 to 1, not {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _first(self) -> float:
        return self._factor(self.last_epoch)

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.factor
        return 1.0 / self.factor if epoch == self.total_iters else 1.0

    def _share(self, epoch: int) -> float:
        return 1.0 if epoch >= self.total_iters else self.factor


class LinearLR(_ByFactor):
    """Rates times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs.
    ValueError unless the first is above 0, and both are at most 1."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(f"start_factor must be above 0 and at most 1, not {start_factor}")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"end_factor must be from 0 to 1, not {end_factor}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _first(self) -> float:
        return self.start_factor if self.last_epoch == 0 else 1.0

    def _factor(self, epoch: int) -> float:
        if epoch == 0:
            return self.start_factor
        if epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)

    def _share(self, epoch: int) -> float:
        done = min(self.total_iters, epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class ExponentialLR(_ByFactor):
    """Rates times `gamma` at each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return self.gamma

    def _share(self, epoch: int) -> float:
        return self.gamma**epoch


class PolynomialLR(_ByFactor):
    """Rates times (1 - epoch / total_iters) ** power, which are 0 from `total_iters` on."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        if epoch > self.total_iters:
            return 1.0
        left = 1.0 - epoch / self.total_iters
        factor: float = (left / (1.0 - (epoch - 1) / self.total_iters)) ** self.power
        return factor

    def _share(self, epoch: int) -> float:
        share: float = (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power
        return share


# --- by functions --------------------------------------------------------------------------------


class _ByFunctions(LRScheduler):
    _functions = ("lr_lambdas",)

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = _functions_for("lr_lambda", optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)


class LambdaLR(_ByFunctions):
    """The initial rates times what a function gives for the epoch: one for all groups, or a list
    of one for each. Functions are not saved; the attributes of objects that are called are."""

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]


class MultiplicativeLR(_ByFunctions):
    """The rates of the epoch before times what a function gives for the epoch: one for all groups,
    or a list of one for each."""

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`."""
        if self._is_initial:
            return self._rates()
        pairs = zip(self._rates(), self.lr_lambdas, strict=True)
        return [rate * function(self.last_epoch) for rate, function in pairs]


def _functions_for(name: str, optimizer: Optimizer, given: Any) -> list[Any]:
    found = for_groups(name, optimizer, given)
    for each in found:
        if not callable(each):
            raise TypeError(f"{name} must be a function, not {type(each).__name__}")
    return found
