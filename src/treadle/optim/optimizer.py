"""`Optimizer`: groups of parameters, their state, and how it is saved."""

from __future__ import annotations

import copy
import functools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import DistributedError
from treadle.graph.history import recorded
from treadle.optim.groups import Group
from treadle.tensor.autograd_methods import Removable
from treadle.tensor.creation import asarray
from treadle.tensor.ranks import by_ranks
from treadle.tensor.tensor import Tensor

StateDict = dict[str, Any]

_REACHES = {"parameter": "whole parameters", "model": "all parameters of a model at once"}


class Optimizer:
    """What changes parameters so that a loss falls.

    `params` are tensors, pairs of a name and a tensor, or dicts with `params` and options of their
    own; `defaults` are the options of all others. `param_groups` are dicts with `params` and the
    options, `state` has what is remembered of each parameter. A subclass has `step`, or computes
    with the kernels of `Fused`.
    """

    # What may be remembered of each element of a parameter, so that a state of something else is
    # refused. None: that is not known, and nothing is checked.
    _elementwise: ClassVar[tuple[str, ...] | None] = None
    # What the step of an element depends on: that "element", its "parameter", or the "model".
    _reach: ClassVar[str] = "element"
    # The class of parameters.
    _tensor: ClassVar[type[Any]] = Tensor
    # What is remembered of a parameter as one number, beside `step`.
    _scalars: ClassVar[tuple[str, ...]] = ()
    # What traces of functions that use an optimizer depend on besides the names in them, and what
    # not: steps are recorded with the states, and say which differ.
    _traced_always: ClassVar[tuple[str, ...]] = ("_hooks",)
    _traced_never: ClassVar[tuple[str, ...]] = ("state",)

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._begin_anew()
        if isinstance(params, self._tensor):
            raise TypeError(
                "an optimizer takes an iterable of tensors or dicts, and this is one tensor: pass "
                "[tensor]"
            )
        if not isinstance(params, Iterable):
            way = ": pass model.parameters()" if hasattr(params, "parameters") else ""
            raise TypeError(
                "an optimizer takes an iterable of tensors or dicts, not a "
                f"{type(params).__name__}{way}"
            )
        given = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(given[0], dict):
            given = [{"params": given}]
        for group in given:
            self.add_param_group(group)

    def _begin_anew(self) -> None:
        self._hooks: dict[str, list[Callable[..., Any]]] = defaultdict(list)
        self._steps_taken = 0  # since this was made, by Python
        self._gets_first_rates = False  # from a schedule that is being made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once. `closure` computes the loss anew, with its gradients, and
        returns it: the result."""
        raise NotImplementedError(f"{type(self).__name__} has no step: define it")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; or make them 0."""
        with recorded(False):
            for group in self.param_groups:
                for parameter in group["params"]:
                    if set_to_none:
                        leaf = parameter._leaf
                        if leaf is not None:
                            leaf.gradient = None
                    elif parameter.grad is not None:
                        parameter.grad[...] = 0

    # --- groups ----------------------------------------------------------------------------------

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add a group: a dict with `params`, and options where they are not the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"a parameter group is a dict, not {type(param_group).__name__}")
        group = Group(param_group)
        group["params"], names = _parameters(group["params"], self._tensor)
        if names:
            group["param_names"] = names
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        for before in self.param_groups:
            if ("param_names" in before) != ("param_names" in group):
                raise ValueError("either all parameter groups have names, or none has")
        known = {id(each) for before in self.param_groups for each in before["params"]}
        if any(id(each) in known for each in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self._check_ranks(group["params"])
        self._check(group)
        self.param_groups.append(group)

    def _check_ranks(self, parameters: Sequence[Tensor]) -> None:
        """DistributedError if a step depends on what other ranks have."""
        if self._reach == "element":
            return
        for ranks in by_ranks(parameters):
            while ranks is not None:
                if ranks.divides or self._reach == "model":
                    raise DistributedError(
                        f"{type(self).__name__} computes with {_REACHES[self._reach]}, of which "
                        "other ranks have the rest: use an optimizer that computes by elements, as "
                        "AdamW or SGD, or td.distributed.DataParallel"
                    )
                ranks = ranks.outer

    def _check(self, group: Group) -> None:
        """ValueError for options that make no sense."""

    # --- hooks -----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Removable:
        """Have `hook(optimizer, args, kwargs)` called before each step; it may return changed
        `(args, kwargs)`. `remove()` of the result ends that."""
        return Removable(self._hooks["before step"], hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Removable:
        """Have `hook(optimizer, args, kwargs)` called after each step."""
        return Removable(self._hooks["after step"], hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Removable:
        """Have `hook(optimizer)` called before `state_dict`."""
        return Removable(self._hooks["before saving"], hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> Removable:
        """Have `hook(optimizer, state_dict)` called after `state_dict`; it may return another."""
        return Removable(self._hooks["after saving"], hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> Removable:
        """Have `hook(optimizer, state_dict)` called before `load_state_dict`; it may return
        another."""
        return Removable(self._hooks["before loading"], hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> Removable:
        """Have `hook(optimizer)` called after `load_state_dict`."""
        return Removable(self._hooks["after loading"], hook)

    # --- state -----------------------------------------------------------------------------------

    def state_dict(self) -> StateDict:
        """The state of the optimizer: `state`, by the numbers of parameters, and `param_groups`,
        whose `params` are these numbers. The layout is PyTorch's. The tensors are those that the
        optimizer goes on with: copy or save them before the next step."""
        for hook in tuple(self._hooks["before saving"]):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, self._tensor) else key: dict(value)
            if isinstance(key, self._tensor)
            else value
            for key, value in self.state.items()
        }
        found: StateDict = {"state": state, "param_groups": groups}
        for hook in tuple(self._hooks["after saving"]):
            found = _or(hook(self, found), found)
        return found

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Go on from a state of such an optimizer, of PyTorch's, too: its tensors are copied. The
        groups have to have as many parameters, and what is remembered of each element the
        parameter's shape. ValueError for what does not fit; nothing was changed then."""
        for hook in tuple(self._hooks["before loading"]):
            state_dict = _or(hook(self, state_dict), state_dict)
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"the state has {len(saved)} parameter groups, the optimizer "
                f"{len(self.param_groups)}"
            )
        parameters: dict[Any, Any] = {}
        for number, (group, other) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(group["params"]) != len(other["params"]):
                raise ValueError(
                    f"parameter group {number} has {len(other['params'])} parameters in the state, "
                    f"and {len(group['params'])} in the optimizer"
                )
            parameters.update(zip(other["params"], group["params"], strict=True))
        self._check_states(parameters, state_dict["state"])
        options = [
            {name: copy.deepcopy(value) for name, value in other.items() if name != "params"}
            for other in saved
        ]
        for group, changed in zip(self.param_groups, options, strict=True):
            self._check(Group({**group, **changed}))
        with recorded(False):
            states: dict[Any, Any] = {}
            for key, value in state_dict["state"].items():
                known = parameters.get(key)
                states[key if known is None else known] = (
                    value if known is None else self._taken(known, value)
                )
            for group, changed in zip(self.param_groups, options, strict=True):
                group.update(changed)
            self.state.clear()
            self.state.update(states)
            self._loaded()
        for hook in tuple(self._hooks["after loading"]):
            hook(self)

    def _check_states(self, parameters: Mapping[Any, Tensor], states: Mapping[Any, Any]) -> None:
        """ValueError for states, by the numbers of their parameters, that are of something else."""
        if self._elementwise is None:
            return
        names = {
            id(each): name
            for group in self.param_groups
            for each, name in zip(group["params"], group.get("param_names", ()), strict=False)
        }
        wrong: list[str] = []
        for number, parameter in parameters.items():
            name = names.get(id(parameter))
            called = f"parameter {number}" if name is None else f"parameter {number} ({name})"
            wrong += [
                f"  {called}: {fault}"
                for fault in _faults(parameter, states.get(number, {}), self._elementwise)
            ]
        if wrong:
            first = f"the state does not fit {type(self).__name__}, and nothing was changed"
            raise ValueError("\n".join([first, *wrong]))

    def _taken(self, parameter: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        """The state of a parameter from that of another optimizer."""
        names = ("step", *self._scalars)
        return {name: taken(parameter, name in names, value) for name, value in state.items()}

    def _loaded(self) -> None:
        """`state` was replaced."""

    def __getstate__(self) -> dict[str, Any]:
        groups = [dict(group) for group in self.param_groups]
        return {"defaults": self.defaults, "state": dict(self.state), "param_groups": groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.defaults = state["defaults"]
        self.state = defaultdict(dict, state["state"])
        self.param_groups = [Group(group) for group in state["param_groups"]]
        self._begin_anew()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"{chr(10) if number else ''}Parameter Group {number}")
            lines += [f"    {n}: {group[n]}" for n in sorted(group) if n != "params"]
        return "\n".join([*lines, ")"])


def _parameters(given: Any, kind: type[Any]) -> tuple[list[Any], list[str]]:
    """A group's parameters, and their names if they have some."""
    if isinstance(given, (set, frozenset)):
        raise TypeError("parameters need an order, which sets do not have: use a list")
    values = [given] if isinstance(given, kind) else list(given)
    names = [value[0] for value in values if isinstance(value, tuple)]
    if names and len(names) != len(values):
        raise ValueError("either all parameters of an optimizer have names, or none has")
    found = [value[1] if isinstance(value, tuple) else value for value in values]
    for value in found:
        if not isinstance(value, kind):
            other = type(value)
            hint = ""
            if other.__module__.partition(".")[0] == "torch":
                hint = ": td.asarray(parameter) makes a tensor of it"
            elif other.__module__ == "treadle.torch.tensors":
                hint = ": use treadle.torch.optim for them"
            raise TypeError(
                f"an optimizer changes treadle's tensors, and one of the parameters is of "
                f"{other.__module__}.{other.__qualname__}{hint}"
            )
        if not value.is_leaf:
            raise ValueError("can't optimize a non-leaf Tensor: one that was computed from others")
    if len({id(value) for value in found}) != len(found):
        raise ValueError("a parameter group has a parameter twice: name each once")
    return found, names


def _faults(parameter: Tensor, state: Mapping[str, Any], known: tuple[str, ...]) -> list[str]:
    """What is wrong with the state of a parameter, of which there may be the `known` values."""
    there = [name for name, value in state.items() if name != "step" and value is not None]
    if there and not any(name in known for name in there):
        has = ", ".join(known)
        return [f"{', '.join(there)} is of another kind of optimizer; this one has {has}"]
    found = [
        f"{name} is of shape {shape}, the parameter of shape {parameter.shape}"
        for name in there
        if name in known and (shape := _shape(state[name])) != parameter.shape
    ]
    if state.get("step") is not None and math.prod(shape := _shape(state["step"])) != 1:
        found.append(f"step is of shape {shape}, and should be one number")
    return found


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)


def taken(parameter: Tensor, is_scalar: bool, value: Any) -> Any:
    """A value of a state, for a parameter."""
    if not hasattr(value, "shape"):
        return copy.deepcopy(value)
    dtype: Any = None if is_scalar else parameter.dtype
    if isinstance(dtype, DType) and dtype.kind not in ("float", "complex"):
        dtype = None
    return asarray(value, device=parameter.device, dtype=dtype, copy=True)


def _or(found: Any, otherwise: Any) -> Any:
    return otherwise if found is None else found


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step with the hooks around it, and counted."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        for hook in tuple(self._hooks.get("before step", ())):
            changed = hook(self, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        self._steps_taken += 1
        for hook in tuple(self._hooks.get("after step", ())):
            hook(self, args, kwargs)
        return result

    return hooked
