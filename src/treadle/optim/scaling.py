"""`GradScaler`: losses scaled so that float16 gradients are not too small, and the scale's search.

Whether a gradient overflowed is decided on the device: the step is skipped there, and the scale is
changed there, so that nothing waits and a compiled step can be replayed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from treadle.core.dtypes import float32, int32
from treadle.core.errors import AutogradError, LaunchError
from treadle.graph.history import recorded
from treadle.optim.fused import Fused
from treadle.optim.optimizer import Optimizer
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.compiled import tracing
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.ranks import by_ranks, over_ranks
from treadle.tensor.reductions import all as every
from treadle.tensor.tensor import Tensor

_isfinite, _where = FUNCTIONS["isfinite"], FUNCTIONS["where"]


class GradScaler:
    """Scale a loss before its backward pass, and take steps whose gradients did not overflow.

    The scale grows by `growth_factor` after `growth_interval` steps in a row without infinities or
    NaN among the gradients; where there are some, no step is taken and the scale is multiplied with
    `backoff_factor`. `device` is where the scale is, by default where the first loss is. With
    `enabled=False` nothing is scaled.

    >>> import treadle as td
    >>> w = td.ones(3, device="cpu").requires_grad_()
    >>> optimizer, scaler = td.optim.SGD([w], lr=0.5), td.GradScaler(init_scale=1024.0)
    >>> scaler.scale((w * 2).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w.tolist(), scaler.get_scale()
    ([0.0, 0.0, 0.0], 1024.0)
    """

    _traced_never: ClassVar[tuple[str, ...]] = (
        "_scale",
    )  # noticed in another way, as in `Optimizer`

    def __init__(
        self,
        device: Device | str | None = None,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if growth_factor <= 1:
            raise ValueError(f"the growth factor must be greater than 1, and is {growth_factor}")
        if not 0 < backoff_factor < 1:
            raise ValueError(f"the backoff factor is between 0 and 1, not {backoff_factor}")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._enabled = enabled
        self._scale: Tensor | None = None
        self._tracker: Tensor | None = None  # steps in a row without overflow
        self._first_tracker = 0
        # Of each optimizer since the last update: whether something overflowed, and how far it is.
        self._found: dict[Optimizer, Tensor] = {}
        self._stage: dict[Optimizer, str] = {}
        if device is not None and enabled:
            self._begin(find_device(device))
        elif enabled:
            tracing.preparing.add(self)

    def prepare_trace(self, device: Device) -> None:
        """A function is about to be traced, which may scale losses."""
        if self._scale is None:
            self._begin(device)

    def _begin(self, device: Device) -> None:
        self._scale = asarray(self._init_scale, dtype=float32, device=device).realize()
        self._tracker = asarray(self._first_tracker, dtype=int32, device=device).realize()

    # --- a step ----------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale; or tuples and lists of losses."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        if self._scale is None:
            if tracing.is_tracing.get():
                raise LaunchError("a GradScaler that is made in a compiled function needs a device")
            self._begin(outputs.device)
        assert self._scale is not None
        # In float32: the scale may be more than float16 has.
        return outputs.to(float32) * self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, now: to clip them, say.
        `step` does it otherwise."""
        if not self._enabled:
            return
        stage = self._stage.get(optimizer)
        if stage == "unscaled":
            raise AutogradError(
                "unscale_() has already been called on this optimizer since the last update()"
            )
        if stage == "stepped":
            raise AutogradError("unscale_() is being called after step()")
        with recorded(False):
            by = self._needed().to(float32)
            self._find(optimizer)
            for gradient in _gradients(optimizer):
                gradient[...] = gradient / by
        self._stage[optimizer] = "unscaled"

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Take a step unless a gradient overflowed: what `optimizer.step` gives. An optimizer that
        cannot decide on the device has the answer read."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise AutogradError("step(closure) cannot be used with a GradScaler")
        stage = self._stage.get(optimizer)
        if stage == "stepped":
            raise AutogradError("step() has already been called since the last update()")
        if not isinstance(optimizer, Fused):
            if stage is None:
                self.unscale_(optimizer)
            self._stage[optimizer] = "stepped"
            return None if self._found[optimizer].item() else optimizer.step(**kwargs)
        if stage is None:
            with recorded(False):
                self._find(optimizer)
            optimizer.grad_scale = self._needed()
        optimizer.found_inf = self._found[optimizer]
        try:
            return optimizer.step(**kwargs)
        finally:
            optimizer.grad_scale = optimizer.found_inf = None
            self._stage[optimizer] = "stepped"

    def update(self, new_scale: Any = None) -> None:
        """Change the scale for the next step, by what the optimizers' gradients were; or to
        `new_scale`, a number or a tensor."""
        if not self._enabled:
            return
        scale, tracker = self._needed(), self._tracker
        assert tracker is not None
        with recorded(False):
            if new_scale is not None:
                scale[...] = new_scale
            else:
                if not self._found:
                    raise AutogradError(
                        "no step was taken since the last update(): call scaler.step(optimizer) "
                        "instead of optimizer.step()"
                    )
                found: Any = None
                for each in self._found.values():
                    found = each if found is None else FUNCTIONS["maximum"](found, each)
                overflowed = found > 0
                grown = (tracker + 1) == self._growth_interval
                grow = scale * self._growth_factor
                # A scale that is infinite would never come back.
                grow = _where(_isfinite(grow), grow, scale)
                changed = _where(
                    overflowed, scale * self._backoff_factor, _where(grown, grow, scale)
                )
                counted = _where(overflowed | grown, 0, tracker + 1).to(int32)
                scale[...] = changed
                tracker[...] = counted
        self._found.clear()
        self._stage.clear()

    def _needed(self) -> Tensor:
        if self._scale is None:
            raise AutogradError("nothing was scaled yet: call scaler.scale(loss).backward() first")
        return self._scale

    def _find(self, optimizer: Optimizer) -> None:
        """Note whether a gradient is infinite or NaN."""
        found: Any = None
        for gradient in _gradients(optimizer):
            each = 1 - every(_isfinite(gradient)).to(float32)
            found = each if found is None else FUNCTIONS["maximum"](found, each)
        if found is None:
            raise AutogradError(
                "no parameter of the optimizer has a gradient: call scaler.scale(loss).backward() "
                "before"
            )
        # All processes that have a part of the parameters take the step, or none does.
        known = by_ranks(each for group in optimizer.param_groups for each in group["params"])
        self._found[optimizer] = over_ranks(dict.fromkeys(known, found), "max")

    # --- what it is ------------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale. Waits for the device."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale is multiplied with to grow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied with to grow."""
        self._growth_factor = new_factor
        tracing.training_structure[0] += 1

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied with after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied with after an overflow."""
        self._backoff_factor = new_factor
        tracing.training_structure[0] += 1

    def get_growth_interval(self) -> int:
        """After how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps the scale grows."""
        self._growth_interval = new_interval
        tracing.training_structure[0] += 1

    def state_dict(self) -> dict[str, Any]:
        """The state, as numbers, in PyTorch's layout. Waits for the device."""
        if not self._enabled:
            return {}
        tracker = self._first_tracker if self._tracker is None else int(self._tracker.item())
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state. ValueError if it is empty, as that of one that was not enabled is."""
        if not self._enabled:
            return
        if not state_dict:
            raise ValueError("the state is empty: it is that of a GradScaler that was not enabled")
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._first_tracker = state_dict["_growth_tracker"]
        tracing.training_structure[0] += 1
        if self._scale is not None and self._tracker is not None:
            self._scale[...] = self._init_scale
            self._tracker[...] = self._first_tracker


def _gradients(optimizer: Optimizer) -> list[Tensor]:
    """The gradients of an optimizer's parameters; of a fused one as few tensors."""
    if isinstance(optimizer, Fused):
        return optimizer.gradients()
    return [
        parameter.grad
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]
