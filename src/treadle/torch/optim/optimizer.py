"""`Optimizer`, from which programs derive their own, and optimizers of treadle shown with PyTorch's
tensors: `Shown` has one, whose groups and states are seen through this one's."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, ClassVar

from treadle.optim.groups import Group
from treadle.optim.optimizer import Optimizer as Inner
from treadle.tensor.tensor import Tensor as InnerTensor
from treadle.torch.tensors import Tensor, keep, kept, unwrapped


class Optimizer(Inner):
    """What changes parameters so that a loss falls: PyTorch's base of all optimizers.

    A subclass calls `super().__init__(params, defaults)` and has a `step`, which changes the
    tensors of `param_groups` within `torch.no_grad()`, and remembers what it likes in
    `state[parameter]`.
    """

    _tensor: ClassVar[type[Any]] = Tensor
    _traced_never: ClassVar[tuple[str, ...]] = ()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; or make them 0."""
        for group in self.param_groups:
            for parameter in group["params"]:
                inner = parameter._inner
                if set_to_none:
                    inner.grad = None
                elif inner.grad is not None:
                    inner.grad[...] = 0

    def _taken(self, parameter: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _taken(parameter, name, value) for name, value in state.items()}


def _taken(parameter: Tensor, name: str, value: Any) -> Any:
    """A value of a state for a parameter: PyTorch's rule for devices and dtypes."""
    if isinstance(value, Tensor):
        inner = value._inner
        if name == "step":
            return _kept_copy(inner.copied())
        dtype = parameter._inner.dtype if parameter._inner.dtype.kind == "float" else inner.dtype
        return _kept_copy(inner.to(device=parameter._inner.device, dtype=dtype).copied())
    if isinstance(value, dict):
        return {key: _taken(parameter, name, each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_taken(parameter, name, each) for each in value])
    return copy.deepcopy(value)


def _kept_copy(inner: Any) -> Tensor:
    return kept(inner.realize())


class Shown(Optimizer):
    """An optimizer of treadle, with PyTorch's tensors in its groups and states."""

    _kind: ClassVar[type[Inner]]
    _inner: Inner

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                "but got one Tensor: pass [tensor]"
            )
        given = list(params)
        for each in given:
            group = each["params"] if isinstance(each, dict) else [each]
            if isinstance(group, Tensor):
                group = [group]
            elif isinstance(each, dict):
                group = each["params"] = list(group)
            for parameter in group:
                if isinstance(parameter, tuple):
                    parameter = parameter[1]
                if isinstance(parameter, Tensor):
                    keep(parameter)
        self._inner = self._kind(
            unwrapped(given),
            *unwrapped(args),
            **{name: unwrapped(value) for name, value in kwargs.items()},
        )
        self.defaults = dict(self._inner.defaults)
        self.param_groups = []
        self._begin_anew()
        self.state = _States(self._inner)  # type: ignore[assignment]
        self._show()

    def _show(self) -> None:
        """Groups as those of the optimizer that is shown."""
        groups = self._inner.param_groups
        for number, inner in enumerate(groups):
            if number == len(self.param_groups):
                self.param_groups.append(Group({}))
            shown = self.param_groups[number]
            shown.changed = None
            shown.update({name: _wrapped(value) for name, value in inner.items()})
            shown.changed = _Passing(inner)

    def add_param_group(self, param_group: Any) -> None:
        """Add a group: a dict with `params`, and options where they are not the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = dict(param_group)
        if not isinstance(given["params"], (Tensor, set, frozenset)):
            given["params"] = list(given["params"])
        listed = [given["params"]] if isinstance(given["params"], Tensor) else given["params"]
        for each in listed:
            parameter = each[1] if isinstance(each, tuple) else each
            if isinstance(parameter, Tensor):
                keep(parameter)
        self._inner.add_param_group(unwrapped(given))
        self._show()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once. `closure` computes the loss anew, with its gradients, and
        returns it: the result."""
        return self._inner.step(closure) if closure is not None else self._inner.step()

    def state_dict(self) -> dict[str, Any]:
        """The state, in PyTorch's layout."""
        for hook in tuple(self._hooks["before saving"]):
            hook(self)
        found = _wrapped(self._inner.state_dict())
        for hook in tuple(self._hooks["after saving"]):
            changed = hook(self, found)
            found = found if changed is None else changed
        return found  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state of such an optimizer, whose tensors are copied. ValueError for what
        does not fit; nothing was changed then."""
        for hook in tuple(self._hooks["before loading"]):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        self._inner.load_state_dict(unwrapped(dict(state_dict)))
        self._show()
        for hook in tuple(self._hooks["after loading"]):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"state_dict": self.state_dict(), "groups": [dict(g) for g in self.param_groups]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = inspect.signature(self._kind).parameters
        groups = [
            {name: each for name, each in group.items() if name == "params" or name in known}
            for group in state["groups"]
        ]
        type(self).__init__(self, groups)
        self.load_state_dict(state["state_dict"])


class _Passing:
    """Passes changes of options on."""

    def __init__(self, inner: Group) -> None:
        self._inner = inner

    def __call__(self, group: Group) -> None:
        changed = {
            name: unwrapped(value)
            for name, value in group.items()
            if name not in ("params", "param_names")
        }
        self._inner.update(changed)


def _wrapped(value: Any) -> Any:
    """States and options with PyTorch's tensors: one for each of treadle's."""
    if isinstance(value, InnerTensor):
        return kept(value)
    if isinstance(value, dict):
        return {key: _wrapped(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_wrapped(each) for each in value])
    return value


class _Seen(MutableMapping[Any, Any]):
    """A mapping of treadle's tensors, seen as one of PyTorch's."""

    def __init__(self, inner: dict[Any, Any]) -> None:
        self._of = inner

    @property
    def _inner(self) -> dict[Any, Any]:
        return self._of

    def __getitem__(self, key: Any) -> Any:
        return _shown(self._inner[unwrapped(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._inner[unwrapped(key)] = unwrapped(dict(value) if isinstance(value, _Seen) else value)

    def __delitem__(self, key: Any) -> None:
        del self._inner[unwrapped(key)]

    def __contains__(self, key: object) -> bool:
        return unwrapped(key) in self._inner

    def __iter__(self) -> Iterator[Any]:
        return iter([_wrapped(key) for key in self._inner])

    def __len__(self) -> int:
        return len(self._inner)

    def __repr__(self) -> str:
        return repr(dict(self))


class _States(_Seen):
    """The states of parameters; an empty one for a parameter that has none yet."""

    def __init__(self, optimizer: Inner) -> None:
        self._optimizer = optimizer

    @property
    def _inner(self) -> dict[Any, Any]:
        return self._optimizer.state


def _shown(value: Any) -> Any:
    return _Seen(value) if isinstance(value, dict) else _wrapped(value)
