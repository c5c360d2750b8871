"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from treadle.optim.lr_scheduler.base import LRScheduler, checked, set_rate
from treadle.optim.lr_scheduler.plateau import ReduceLROnPlateau
from treadle.optim.optimizer import Optimizer


class _Combined(LRScheduler):
    """Several schedules of one optimizer, whose states are saved with its own."""

    _schedulers: list[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} takes at least one schedule")
        first = optimizer or schedulers[0].optimizer
        for number, each in enumerate(schedulers):
            if not isinstance(each, LRScheduler):
                raise TypeError(
                    f"{name}: number {number} is not a schedule but a {type(each).__name__}"
                )
            if isinstance(each, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not take ReduceLROnPlateau, whose step() needs a metric: step it "
                    "by itself"
                )
            if each.optimizer is not first:
                raise ValueError(f"{name}: schedule {number} is of another optimizer")
        self.optimizer = checked(first)
        self._schedulers = list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        """All that the schedules know, but for the optimizer and for functions."""
        found = super().state_dict()
        found["_schedulers"] = [each.state_dict() for each in self._schedulers]
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state of such schedules."""
        own = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        super().load_state_dict(own)
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)


class ChainedScheduler(_Combined):
    """Schedules that are all stepped, one after the other: their factors multiply."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Step all."""
        for each in self._schedulers:
            each.step()
        self._last_lr = self._rates()


class SequentialLR(_Combined):
    """Schedules one after the other: each begins anew at its milestone, an epoch. There is one
    milestone less than schedules.

    >>> import treadle as td
    >>> optimizer = td.optim.SGD([td.ones(1, device="cpu").requires_grad_()], lr=1.0)
    >>> schedules = td.optim.lr_scheduler
    >>> warm = schedules.ConstantLR(optimizer, factor=0.5, total_iters=100)
    >>> then = schedules.ExponentialLR(optimizer, gamma=0.5)
    >>> scheduler = schedules.SequentialLR(optimizer, [warm, then], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates += scheduler.get_last_lr()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{len(schedulers)} schedules begin at {len(schedulers) - 1} milestones, and there "
                f"are {len(milestones)}"
            )
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        for each in self._schedulers:
            _undo(each)
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Step the schedule whose turn it is."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._go_to(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo(scheduler: LRScheduler) -> None:
    """Take back the first step, which a schedule has done when it was made."""
    if isinstance(scheduler, _Combined):
        for each in scheduler._schedulers:
            _undo(each)
    else:
        scheduler.last_epoch -= 1
