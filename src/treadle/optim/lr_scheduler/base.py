"""`LRScheduler`: what all schedules have in common."""

from __future__ import annotations

import types
import warnings
from collections.abc import Sequence
from typing import Any

from treadle.optim import checks
from treadle.optim.groups import Group
from treadle.optim.optimizer import Optimizer


class LRScheduler:
    """A schedule of learning rates. A subclass has `get_lr()`, the rates of all groups for
    `last_epoch`, which is counted on by `step()`; making one is the first step, to epoch 0.

    With `last_epoch` a schedule goes on after that one: the groups then have `initial_lr`.
    """

    optimizer: Optimizer
    last_epoch: int
    _step_count = 0
    _is_initial = False
    _last_lr: list[float]
    # Functions are not saved; what objects that are called know is.
    _functions: tuple[str, ...] = ()

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", checks.number(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param_groups[{number}] has no 'initial_lr', which a schedule needs that goes "
                    "on after last_epoch: load the optimizer's state first"
                )
        self.base_lrs = [checks.number(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = self.optimizer._gets_first_rates = True
        try:
            self.step()
        finally:
            self._is_initial = self.optimizer._gets_first_rates = False

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr: define it")

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to the one that is named, and set its rates."""
        optimizer = self.optimizer
        is_early = not (optimizer._steps_taken or optimizer._gets_first_rates)
        if self._step_count == 1 and is_early:
            warnings.warn(
                "scheduler.step() was called before optimizer.step(), so that the first rate of "
                "the schedule is never used: call them in the other order",
                stacklevel=2,
            )
        self._step_count += 1
        self._go_to(epoch)

    def _go_to(self, epoch: int | None = None) -> None:
        """Set the rates of an epoch, of the next one if none is named."""
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self._rates_at()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = self._rates()

    def _rates_at(self) -> list[float]:
        """The rates of `last_epoch`, where they do not depend on those before."""
        return self.get_lr()

    def _rates(self) -> list[float]:
        """The rates as they are."""
        return [checks.number(group["lr"]) for group in self.optimizer.param_groups]

    # --- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that the schedule knows, but for the optimizer and for functions: for
        `load_state_dict` of a schedule that was made in the same way."""
        hidden = ("optimizer", *self._functions)
        found = {name: value for name, value in self.__dict__.items() if name not in hidden}
        for name in self._functions:
            value = getattr(self, name)
            found[name] = [*map(_known, value)] if isinstance(value, list) else _known(value)
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state of such a schedule, of PyTorch's, too. Load the optimizer's state as
        well: it has the rates."""
        for name, value in state_dict.items():
            if name not in self._functions:
                self.__dict__[name] = value
                continue
            own = getattr(self, name)
            pairs = zip(own, value, strict=True) if isinstance(own, list) else [(own, value)]
            for function, known in pairs:
                if known is not None:
                    function.__dict__.update(known)


def _known(function: Any) -> dict[str, Any] | None:
    if function is None or isinstance(function, types.FunctionType):
        return None
    return dict(getattr(function, "__dict__", {}))


def checked(optimizer: Any) -> Optimizer:
    """TypeError for anything but an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def set_rate(group: Group, rate: float) -> None:
    """Set a group's learning rate, in its tensor if that is one."""
    known = group["lr"]
    if hasattr(known, "shape"):  # a tensor, of `treadle.torch` too
        known[...] = rate
        rate = known
    group["lr"] = rate


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value for each group. ValueError for a list of another length."""
    count = len(checked(optimizer).param_groups)
    if not isinstance(value, Sequence):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} values for {count} parameter groups")
    return list(value)
