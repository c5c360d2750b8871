"""Schedules that go up and down, and the momentum against them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.optim import checks
from treadle.optim.groups import Group
from treadle.optim.lr_scheduler.base import LRScheduler, for_groups, set_rate
from treadle.optim.optimizer import Optimizer


def _has_betas(optimizer: Optimizer) -> bool:
    """Whether the momentum is the first of `betas`. ValueError if there is none at all."""
    if "betas" not in optimizer.defaults and "momentum" not in optimizer.defaults:
        raise ValueError(
            f"{type(optimizer).__name__} has neither momentum nor betas: use cycle_momentum=False"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group: Group, has_betas: bool, momentum: float) -> None:
    if has_betas:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """Rates from `base_lr` to `max_lr` in `step_size_up` steps and back in `step_size_down`, again
    and again (Smith, Cyclical learning rates for training neural networks, 2017).

    The mode "triangular2" halves the height with each cycle, "exp_range" multiplies it by `gamma`
    with each step; else `scale_fn` gives its factor, from the number of the cycle (from 1 on) or,
    with the `scale_mode` "iterations", of the step. With `cycle_momentum` the momentum, or the
    first of `betas`, goes the other way between `max_momentum` and `base_momentum`. Rates may be
    lists, of one for each group.
    """

    _functions = ("_scale_fn_custom",)

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        low = for_groups("base_lr", optimizer, base_lr)
        if mode not in _MODES and scale_fn is None:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _MODES[mode]
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, low, strict=True):
                set_rate(group, rate)
        if cycle_momentum:
            self.use_beta1 = _has_betas(optimizer)
            self.base_momentums = for_groups("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_groups("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                pairs = zip(self.base_momentums, self.max_momentums, strict=True)
                for group, (least, most) in zip(optimizer.param_groups, pairs, strict=True):
                    _set_momentum(group, self.use_beta1, most)
                    group.update(max_momentum=most, base_momentum=least)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = low

    def scale_fn(self, x: float) -> float:
        """The factor of the height in a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return float(1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x)

    def get_lr(self) -> list[float]:
        """The rates for `last_epoch`. The momentum is set as well."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        ratio = self.step_ratio
        height = x / ratio if x <= ratio else (x - 1) / (ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (least, most) in zip(self.optimizer.param_groups, pairs, strict=True):
                _set_momentum(group, self.use_beta1, most - (most - least) * height * scale)
        return [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]


# The modes of `CyclicLR`, and what their factor depends on.
_MODES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


class _Phase(NamedTuple):
    """A part of a cycle: where it ends, and between which of a group's numbers it goes."""

    end: float
    lr: tuple[str, str]
    momentum: tuple[str, str]


class OneCycleLR(LRScheduler):
    """Rates from max_lr / div_factor up to `max_lr` and down to a `final_div_factor`-th of where
    they began, in `total_steps` steps (Smith and Topin, Super-convergence, 2018). Step it after
    each batch.

    The number of steps may be given as `epochs` and `steps_per_epoch`. The way up takes the part
    `pct_start`; with `three_phase` the way back takes as long, and what is left goes down further.
    Ways are along half a cosine, or, with the `anneal_strategy` "linear", along lines. With
    `cycle_momentum` the momentum, or the first of `betas`, goes from `max_momentum` to
    `base_momentum` and back. ValueError for more steps than there are.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        highest = for_groups("max_lr", optimizer, max_lr)
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start must be from 0 to 1, not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be 'cos' or 'linear', not {anneal_strategy!r}")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases: list[dict[str, Any]] = [
            {
                "end_step": phase.end, "start_lr": phase.lr[0], "end_lr": phase.lr[1],
                "start_momentum": phase.momentum[0], "end_momentum": phase.momentum[1],
            }
            for phase in _phases(self.total_steps, float(pct_start), three_phase)
        ]  # fmt: skip
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _has_betas(optimizer)
        if last_epoch == -1:
            most = for_groups("max_momentum", optimizer, max_momentum)
            least = for_groups("base_momentum", optimizer, base_momentum)
            for number, group in enumerate(optimizer.param_groups):
                first = highest[number] / div_factor
                group.update(
                    initial_lr=first, max_lr=highest[number], min_lr=first / final_div_factor
                )
                if cycle_momentum:
                    _set_momentum(group, self.use_beta1, most[number])
                    group.update(max_momentum=most[number], base_momentum=least[number])
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """The rates for the step `last_epoch`. The momentum is set as well."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"step {step} of a schedule of {self.total_steps} steps: make one of more steps"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        done = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group, phase, "lr", done))
            if self.cycle_momentum:
                _set_momentum(group, self.use_beta1, self._between(group, phase, "momentum", done))
        return rates

    def _between(self, group: Group, phase: dict[str, Any], what: str, done: float) -> float:
        start = checks.number(group[phase[f"start_{what}"]])
        end = checks.number(group[phase[f"end_{what}"]])
        if self._anneal_func_type == "linear":
            return (end - start) * done + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


def _total(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("name total_steps, or both epochs and steps_per_epoch")
    given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    if total is not None:
        given = {"total_steps": total}
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"{name} must be a positive integer, not {value}")
    return math.prod(value for value in given.values() if value is not None)


def _phases(total: int, part: float, three: bool) -> list[_Phase]:
    up = _Phase(part * total - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    if not three:
        down = ("max_lr", "min_lr"), ("base_momentum", "max_momentum")
        return [up, _Phase(total - 1, *down)]
    back = ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")
    down = ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")
    return [up, _Phase(2 * part * total - 2, *back), _Phase(total - 1, *down)]
