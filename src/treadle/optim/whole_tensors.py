"""`WholeTensors`: optimizers whose steps are operations on whole tensors, which norms and products
of matrices need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from treadle.core.dtypes import float32
from treadle.graph.history import recorded
from treadle.optim.groups import Group
from treadle.optim.optimizer import Optimizer
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.tensor import Tensor


class WholeTensors(Optimizer):
    """An optimizer that changes one parameter after the other."""

    _reach: ClassVar[str] = "parameter"

    def _first_state(self, parameter: Tensor, group: Group) -> dict[str, Any]:
        """What is remembered of a parameter, before the first step."""
        raise NotImplementedError

    def _change(
        self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: Group
    ) -> None:
        """Change a parameter, against its gradient."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once. `closure` computes the loss anew, with its gradients, and
        returns it: the result."""
        loss = None
        if closure is not None:
            with recorded(True):
                loss = closure()
        with recorded(False):
            for group in self.param_groups:
                self._check(group)
                for parameter in group["params"]:
                    gradient = parameter.grad
                    if gradient is None:
                        continue
                    state = self.state[parameter]
                    if not state:
                        state.update(self._first_state(parameter, group))
                    if group.get("maximize"):
                        gradient = -gradient
                    self._change(parameter, gradient, state, group)
        return loss

    @staticmethod
    def zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Zeros on a parameter's device."""
        return zeros(shape, dtype=like.dtype, device=like.device)

    @staticmethod
    def number(value: float) -> Tensor:
        """A number that is remembered."""
        return asarray(value, dtype=float32, device="cpu")
