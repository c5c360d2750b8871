"""State dicts: what a module's tensors are called, and taking on the values of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from treadle.core.errors import StateDictError, TreadleError
from treadle.graph.history import recorded
from treadle.nn.parameter import Parameter
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What a state dict lacked, and what it had for nothing."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def state_of(
    module: Any, destination: dict[str, Any], prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """All persistent tensors by their names."""
    for name, owner, kind in _entries(module):
        if name is _EXTRA or name.endswith("." + _EXTRA):
            destination[prefix + name] = owner.get_extra_state()
        else:
            value = owner.__dict__[kind][name.rpartition(".")[2]]
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
    return destination


def _entries(module: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """The key, the module and the kind of each entry of a state dict, in PyTorch's order."""
    for name in module._parameters:
        yield prefix + name, module, "_parameters"
    for name in module._buffers:
        if name not in module._non_persistent_buffers_set:
            yield prefix + name, module, "_buffers"
    if module._has_extra_state:
        yield prefix + _EXTRA, module, _EXTRA
    for name, inner in module._modules.items():
        if inner is not None:
            yield from _entries(inner, f"{prefix}{name}.")


class _Change(NamedTuple):
    """What is done once it is known that everything fits."""

    owner: Any
    kind: str
    name: str
    value: Any


def load(
    module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Check everything, then change the module."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"a state dict maps names to tensors; this is a {type(state_dict).__name__}"
        )
    missing: list[str] = []
    wrong: list[str] = []
    changes: list[_Change] = []
    known: set[str] = set()
    for key, owner, kind in _entries(module):
        name = key.rpartition(".")[2]
        here: Any = None if kind is _EXTRA else owner.__dict__[kind][name]
        if here is None and kind is not _EXTRA:
            continue
        known.add(key)
        if key not in state_dict:
            if name not in owner._may_lack:
                missing.append(key)
        elif kind is _EXTRA:
            changes.append(_Change(owner, kind, name, state_dict[key]))
        else:
            try:
                value = fitting(state_dict[key], here, assign)
            except (TreadleError, TypeError, ValueError, BufferError) as error:
                wrong.append(f"{key}: {error}")
            else:
                changes.append(_Change(owner, kind, name, value))
    unexpected = [key for key in state_dict if key not in known]
    if wrong or (strict and (missing or unexpected)):
        named = (missing, unexpected) if strict else ([], [])
        raise StateDictError(_message(type(module).__name__, *named, wrong))
    with recorded(False):
        for change in changes:
            _change(change, assign)
    return IncompatibleKeys(missing, unexpected)


def fitting(value: Any, here: Tensor, assign: bool) -> Tensor:
    """A value as a tensor that can take another one's place, or be written into it."""
    if not isinstance(value, Tensor):
        if not hasattr(value, "shape"):
            raise TypeError(f"a {type(value).__name__} is not a tensor or an array")
        if hasattr(value, "detach"):  # a tensor of PyTorch
            value = value.detach()
    if tuple(value.shape) != here.shape:
        raise ValueError(f"of shape {tuple(value.shape)}, in the module of shape {here.shape}")
    if assign:
        leaf = here._own_leaf
        if leaf is not None and leaf.fixed:
            raise ValueError(leaf.fixed)
        if leaf is not None and leaf.accumulated:
            raise ValueError(
                "another parameter would be left out of what is done after each backward pass, by "
                "DataParallel or a hook: load without assign, or before"
            )
        return value if isinstance(value, Tensor) else asarray(value, device=here.device)
    with recorded(False):
        return asarray(value, dtype=here.dtype, device=here.device)


def _change(change: _Change, assign: bool) -> None:
    owner, kind, name, value = change
    if kind is _EXTRA:
        owner.set_extra_state(value)
        return
    here = owner.__dict__[kind][name]
    if not assign:
        here.detach()[...] = value
    elif kind == "_parameters":
        owner._parameters[name] = successor(here, value)
    else:
        owner._buffers[name] = value.detach()


def successor(parameter: Tensor, value: Tensor) -> Tensor:
    """A parameter with another tensor's memory in the place of one, with its hooks."""
    made = Parameter(value.detach(), parameter.requires_grad)
    leaf, before = made._own_leaf, parameter._own_leaf
    assert leaf is not None
    if before is not None:
        leaf.succeed(before)
    return made


def _message(name: str, missing: list[str], unexpected: list[str], wrong: list[str]) -> str:
    parts = [f"the state dict does not fit {name}, and nothing was changed"]
    for title, items in (
        ("missing", missing), ("not known", unexpected), ("wrong", wrong)
    ):  # fmt: skip
        if items:
            parts.append("\n  ".join([f"{title}:", *items]))
    if missing or unexpected:
        parts.append("strict=False loads what fits by name")
    return "\n".join(parts)
