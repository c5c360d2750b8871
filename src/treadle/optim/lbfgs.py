"""L-BFGS, and the line search for the conditions of Wolfe."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

from treadle.graph.history import recorded
from treadle.optim import checks
from treadle.optim.optimizer import Optimizer
from treadle.tensor.assembly import concat
from treadle.tensor.creation import zeros
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.tensor import Tensor

Closure = Callable[[], Any]
_abs = FUNCTIONS["abs"]


class LBFGS(Optimizer):
    """L-BFGS: steps along an approximation of Newton's direction, from the last `history_size`
    steps and the gradients' changes along them.

    `step(closure)` takes up to `max_iter` steps and calls `closure`, which computes the loss and
    its gradients anew, up to `max_eval` times (None: max_iter * 5 / 4); it ends before where no
    element of the gradient is above `tolerance_grad`, or step or loss change less than
    `tolerance_change`. With `line_search_fn="strong_wolfe"` each step is as long as the strong
    conditions of Wolfe want it, otherwise `lr` (the first one shorter). All parameters are in one
    group, and on one device. Each step waits for the device.

    >>> import treadle as td
    >>> x = td.asarray([3.0, -2.0], device="cpu").requires_grad_()
    >>> optimizer = td.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    13.0
    >>> x.numpy().round(4).tolist()
    [1.0, 1.0]
    """

    _reach: ClassVar[str] = "model"

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS has one group of parameters: options of groups are not there")
        checks.not_negative(self.param_groups[0], "lr")
        self._params: list[Tensor] = self.param_groups[0]["params"]

    # --- all parameters as one vector ------------------------------------------------------------

    def _flat_gradient(self) -> Tensor:
        parts = [
            zeros(p.size, dtype=p.dtype, device=p.device) if p.grad is None else p.grad.reshape(-1)
            for p in self._params
        ]
        return concat(parts).copied().realize()

    def _move(self, by: float, direction: Tensor) -> None:
        at = 0
        for p in self._params:
            p[...] = p + direction[at : at + p.size].reshape(p.shape) * by
            at += p.size

    def _at(
        self, closure: Closure, start: list[Tensor], by: float, direction: Tensor
    ) -> tuple[float, Tensor]:
        """The loss and the gradient at another place; the parameters come back."""
        self._move(by, direction)
        with recorded(True):
            loss = float(closure())
        gradient = self._flat_gradient()
        for p, old in zip(self._params, start, strict=True):
            p[...] = old
        return loss, gradient

    def step(self, closure: Closure | None = None) -> Any:
        """Go on: what the first call of `closure` returned. TypeError without a closure."""
        if closure is None:
            raise TypeError(
                "LBFGS.step() takes a closure that clears the gradients, computes the loss and "
                "its gradients, and returns the loss"
            )
        with recorded(False):
            return self._steps(closure)

    def _steps(self, closure: Closure) -> Any:
        group = self.param_groups[0]
        rate, search = checks.number(group["lr"]), group["line_search_fn"]
        # As others do it, all of the state is that of the first parameter.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with recorded(True):
            first_loss = closure()
        loss, evaluations = float(first_loss), 1
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        if _greatest(gradient) <= group["tolerance_grad"]:
            return first_loss
        direction, length = state.get("d"), state.get("t")
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(state, gradient, direction, length, group["history_size"])
            state["prev_flat_grad"], before = gradient, loss
            state["prev_loss"] = loss
            if state["n_iter"] == 1:
                length = min(1.0, 1.0 / float(_abs(gradient).sum())) * rate
            else:
                length = rate
            slope = _dot(gradient, direction)
            state["d"], state["t"] = direction, length
            if slope > -group["tolerance_change"]:
                break
            calls = 0
            if search is not None:
                start = [p.copied().realize() for p in self._params]

                def at(by: float, start: Any = start, along: Tensor = direction) -> Any:
                    return self._at(closure, start, by, along)

                loss, gradient, length, calls = _strong_wolfe(
                    at, length, direction, loss, gradient, slope
                )
                self._move(length, direction)
                state["t"] = length
                is_done = _greatest(gradient) <= group["tolerance_grad"]
            else:
                self._move(length, direction)
                is_done = False
                if iterations != group["max_iter"]:
                    with recorded(True):
                        loss = float(closure())
                    gradient = self._flat_gradient()
                    is_done = _greatest(gradient) <= group["tolerance_grad"]
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if (
                iterations == group["max_iter"]
                or evaluations >= group["max_eval"]
                or is_done
                or _greatest(direction) * abs(length) <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _direction(
        self, state: dict[str, Any], gradient: Tensor, last: Any, length: Any, most: int
    ) -> Tensor:
        """The next direction: the inverse of the approximated Hessian times the gradient."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return (-gradient).realize()
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change = (gradient - state["prev_flat_grad"]).realize()
        step = (last * length).realize()
        curvature = _dot(change, step)
        if curvature > 1e-10:
            if len(changes) == most:
                for each in (changes, steps, inverses):
                    each.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / _dot(change, change)
        weights = state["al"] = [0.0] * len(changes)
        found = (-gradient).realize()
        for k in reversed(range(len(changes))):
            weights[k] = _dot(steps[k], found) * inverses[k]
            # Computed here, so that all of these steps are the same two kernels.
            found = (found - changes[k] * weights[k]).realize()
        found = (found * state["H_diag"]).realize()
        for k in range(len(changes)):
            further = weights[k] - _dot(changes[k], found) * inverses[k]
            found = (found + steps[k] * further).realize()
        return found  # type: ignore[no-any-return]


def _dot(one: Tensor, other: Tensor) -> float:
    return float((one * other).sum())


def _greatest(x: Tensor) -> float:
    return float(_abs(x).max()) if x.size else 0.0


# --- line search ---------------------------------------------------------------------------------


class _Point(NamedTuple):
    """A place on the line: how far, the loss, its gradient, and its slope along the line."""

    by: float
    loss: float
    gradient: Tensor
    slope: float


def _minimum_between(one: _Point, other: _Point, low: float, high: float) -> float:
    """The minimum of the cubic through two places with these slopes, within the bounds."""
    left, right = (one, other) if one.by <= other.by else (other, one)
    if left.by == right.by:
        return (low + high) / 2
    first = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.by - right.by)
    squared = first**2 - left.slope * right.slope
    if not squared >= 0:
        return (low + high) / 2
    root = math.sqrt(squared)
    place = right.by - (right.by - left.by) * (
        (right.slope + root - first) / (right.slope - left.slope + 2 * root)
    )
    return min(max(place, low), high)


def _strong_wolfe(
    at: Callable[[float], tuple[float, Tensor]],
    by: float,
    direction: Tensor,
    loss: float,
    gradient: Tensor,
    slope: float,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    least: float = 1e-9,
    most: int = 25,
) -> tuple[float, Tensor, float, int]:
    """A step that satisfies the strong conditions of Wolfe, by a bracket that is widened and then
    narrowed: the loss and the gradient there, how far it goes, and how often the loss was
    computed."""
    scale = _greatest(direction)
    start = _Point(0.0, loss, gradient, slope)

    def point(by: float) -> _Point:
        found, there = at(by)
        return _Point(by, found, there, _dot(there, direction))

    def is_high(new: _Point, than: float) -> bool:
        return new.loss > loss + decrease * new.by * slope or new.loss >= than

    new, before = point(by), start
    calls, tries, is_done = 1, 0, False
    bracket: list[_Point] = []
    while tries < most:
        if new.loss > loss + decrease * new.by * slope or (tries > 1 and new.loss >= before.loss):
            bracket = [before, new]
            break
        if abs(new.slope) <= -curvature * slope:
            bracket, is_done = [new], True
            break
        if new.slope >= 0:
            bracket = [before, new]
            break
        low, high = new.by + 0.01 * (new.by - before.by), new.by * 10
        by = _minimum_between(before, new, low, high)
        before, new = new, point(by)
        calls += 1
        tries += 1
    if tries == most:
        bracket = [start, new]
    has_stalled = False
    # The place of the least loss comes first.
    bracket.sort(key=lambda each: each.loss)
    while not is_done and tries < most and len(bracket) == 2:
        low, high = sorted(each.by for each in bracket)
        width = high - low
        if width * scale < least:
            break
        by = _minimum_between(bracket[0], bracket[1], low, high)
        # Not too near to an end twice in a row, nor at one.
        margin = 0.1 * width
        if min(high - by, by - low) < margin:
            if has_stalled or by >= high or by <= low:
                by = high - margin if abs(by - high) < abs(by - low) else low + margin
                has_stalled = False
            else:
                has_stalled = True
        else:
            has_stalled = False
        new = point(by)
        calls += 1
        tries += 1
        best = bracket[0]
        if is_high(new, best.loss):
            bracket[1] = new
            bracket.sort(key=lambda each: each.loss)
        else:
            if abs(new.slope) <= -curvature * slope:
                is_done = True
            elif new.slope * (bracket[1].by - best.by) >= 0:
                bracket[1] = best
            bracket[0] = new
    best = bracket[0]
    return best.loss, best.gradient, best.by, calls
