"""Mixed precision: `autocast`, and `GradScaler` for PyTorch's tensors and optimizers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from treadle.core.dtypes import DType, bfloat16, float16
from treadle.core.errors import TreadleError
from treadle.optim.groups import Group
from treadle.optim.optimizer import Optimizer as InnerOptimizer
from treadle.optim.scaling import GradScaler as InnerScaler
from treadle.tensor.precision import autocast as inner_autocast
from treadle.tensor.precision import lower
from treadle.torch.devices import place
from treadle.torch.optim.optimizer import Shown
from treadle.torch.tensors import unwrapped, wrapped


def is_autocast_available(device_type: str) -> bool:
    """Whether there is a device of a kind."""
    try:
        place(device_type)
    except TreadleError:
        return False
    return True


class autocast(inner_autocast):
    """A block, or a decorated function, in which products, convolutions and attention are computed
    in float16 or bfloat16, and what needs the range of float32 in float32.

    Where there is no device of the kind `device_type`, it warns and does nothing, as PyTorch. It
    holds for tensors on all devices.
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        if enabled and not is_autocast_available(device_type):
            warnings.warn(
                f"User provided device_type of {device_type!r}, but there is none. Disabling",
                stacklevel=2,
            )
            enabled = False
        self.fast_dtype = dtype or (float16 if device_type == "cuda" else bfloat16)
        if enabled:
            super().__init__(place(device_type), self.fast_dtype)
        else:
            super().__init__(dtype=bfloat16, enabled=False)

    def __enter__(self) -> autocast:
        super().__enter__()
        return self


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether the block is one of `autocast`."""
    return lower.get() is not None


def get_autocast_dtype(device_type: str) -> DType:
    """What `autocast` computes in: within it the dtype that it was given."""
    return lower.get() or (float16 if device_type == "cuda" else bfloat16)


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str = "cuda", cast_inputs: Any = None
) -> Any:
    """A `forward` of a `torch.autograd.Function` that `autocast` does not change within: its
    floating arguments are cast to `cast_inputs`, if that is given."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd

    @functools.wraps(fwd)
    def call(*args: Any, **kwargs: Any) -> Any:
        if cast_inputs is None or not is_autocast_enabled():
            return function(*args, **kwargs)
        given = [
            each.to(cast_inputs) if getattr(each, "dtype", None) is not None
            and each.dtype.kind == "float" else each
            for each in args
        ]  # fmt: skip
        with inner_autocast(dtype=bfloat16, enabled=False):
            return function(*given, **kwargs)

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda") -> Any:
    """A `backward` of a `torch.autograd.Function` with `custom_fwd`."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd


class _Seen(InnerOptimizer):
    """An optimizer that a program has written, as one of treadle's."""

    def __init__(self, optimizer: Any) -> None:
        self._begin_anew()
        self._optimizer = optimizer

    @property
    def param_groups(self) -> list[Group]:  # type: ignore[override]
        """The groups, with treadle's tensors."""
        return [
            Group({"params": [each._inner for each in group["params"]]})
            for group in self._optimizer.param_groups
        ]

    def step(self, closure: Any = None) -> Any:
        """What the optimizer does."""
        return self._optimizer.step()


class GradScaler:
    """Scale a loss before its backward pass, and take steps whose gradients did not overflow.

    Arguments are PyTorch's. Whether a gradient overflowed is decided on the device. Where there is
    no `device` of the kind, it warns and does nothing.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        if enabled and not is_autocast_available(device):
            warnings.warn(
                f"torch.amp.GradScaler is enabled for {device!r}, but there is none. Disabling.",
                stacklevel=2,
            )
            enabled = False
        self._inner = InnerScaler(
            None, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
        self._seen: WeakKeyDictionary[Any, _Seen] = WeakKeyDictionary()

    def _of(self, optimizer: Any) -> Any:
        if isinstance(optimizer, Shown):
            return optimizer._inner
        return self._seen.setdefault(optimizer, _Seen(optimizer))

    def scale(self, outputs: Any) -> Any:
        """A loss times the scale; or tuples and lists of losses."""
        if not self._inner.is_enabled():
            return outputs
        if isinstance(outputs, Iterator):
            outputs = list(outputs)
        return wrapped(self._inner.scale(unwrapped(outputs)))

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, now: to clip them."""
        self._inner.unscale_(self._of(optimizer))

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Take a step unless a gradient overflowed."""
        inner = self._of(optimizer)
        if not self._inner.is_enabled():
            return optimizer.step(*args, **kwargs)
        optimizer._steps_taken += 1
        return self._inner.step(inner, *args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Change the scale for the next step, by what the gradients were; or to `new_scale`."""
        self._inner.update(unwrapped(new_scale))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def state_dict(self) -> dict[str, Any]:
        """The state, in PyTorch's layout."""
        return self._inner.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state."""
        self._inner.load_state_dict(state_dict)
