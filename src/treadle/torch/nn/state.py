"""State dicts by PyTorch's protocol: each module saves and loads its own tensors, by methods that
subclasses may replace (`_save_to_state_dict`, `_load_from_state_dict`), and hooks around them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from treadle.core.errors import TreadleError
from treadle.graph.history import recorded
from treadle.nn.state import IncompatibleKeys as InnerKeys
from treadle.nn.state import fitting, successor
from treadle.torch.layouts import Size
from treadle.torch.tensors import unwrapped, wrapped

EXTRA = "_extra_state"
_KINDS = ("save_before", "save_after", "load_before", "load_after")


class IncompatibleKeys(InnerKeys):
    """What a state dict lacked, and what it had for nothing."""

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return "_" + super().__repr__()


class StateHook:
    """A hook around saving or loading that can be taken away again."""

    def __init__(self, hooks: list[Any], hook: Callable[..., Any]) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Don't call the hook any more."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


def hooks_of(module: Any, kind: str) -> list[Any]:
    """The hooks of a kind: before and after saving and loading."""
    found = module.__dict__.get("_state_hooks")
    if found is None:
        found = module.__dict__["_state_hooks"] = {each: [] for each in _KINDS}
    hooks: list[Any] = found[kind]
    return hooks


def _called(module: Any, kind: str, *args: Any) -> None:
    for hook in tuple(module.__dict__.get("_state_hooks", {}).get(kind, ())):
        hook(*args)


# --- saving --------------------------------------------------------------------------------------


def save(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """A module's tensors and those of the modules within it."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()  # the versions of the modules
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    _called(module, "save_before", module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, inner in module._modules.items():
        if inner is not None:
            inner.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for hook in tuple(module.__dict__.get("_state_hooks", {}).get("save_after", ())):
        changed = hook(module, destination, prefix, metadata)
        destination = destination if changed is None else changed
    return destination


def save_own(module: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
    """The parameters and persistent buffers of a module itself."""
    for name in (*module._parameters, *module._buffers):
        value = getattr(module, name)
        if value is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = value if keep_vars else value.detach()
    if module._has_extra_state:
        destination[prefix + EXTRA] = module.get_extra_state()


# --- loading -------------------------------------------------------------------------------------


def load(module: Any, state_dict: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Load what fits. RuntimeError afterwards, which lists what did not."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    metadata = getattr(state_dict, "_metadata", None)
    given: Any = OrderedDict(state_dict)
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []

    def visit(each: Any, prefix: str) -> None:
        local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            local["assign_to_params_buffers"] = True
        each._load_from_state_dict(given, prefix, local, True, missing, unexpected, errors)
        for name, inner in each._modules.items():
            if inner is not None:
                visit(inner, f"{prefix}{name}.")
        _called(each, "load_after", each, IncompatibleKeys(missing, unexpected))

    visit(module, "")
    if strict:
        for title, keys in (("Unexpected", unexpected), ("Missing", missing)):
            if keys:
                listed = ", ".join(f'"{key}"' for key in keys)
                errors.insert(0, f"{title} key(s) in state_dict: {listed}. ")
    if errors:
        text = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{text}")
    return IncompatibleKeys(missing, unexpected)


def _misfit(key: str, value: Any, here: Any) -> str:
    """Why a value does not take the place of a tensor, in the words that programs look for."""
    if not hasattr(value, "shape"):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(value)}"
        )
    if tuple(value.shape) == tuple(here.shape):
        return ""
    return (
        f"size mismatch for {key}: copying a param with shape {Size(value.shape)} from checkpoint, "
        f"the shape in current model is {Size(here.shape)}."
    )


def load_own(
    module: Any,
    state_dict: Any,
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load the tensors of a module itself, and say what is missing, unexpected or wrong."""
    lists = missing_keys, unexpected_keys, error_msgs
    _called(module, "load_before", module, state_dict, prefix, local_metadata, strict, *lists)
    assign = bool(local_metadata.get("assign_to_params_buffers", False))
    known = set()
    for kind in ("_parameters", "_buffers"):
        for name, here in module.__dict__[kind].items():
            if here is None or name in module._non_persistent_buffers_set:
                continue
            known.add(name)
            key = prefix + name
            if key in state_dict:
                wrong = _misfit(key, state_dict[key], here)
                if wrong:
                    error_msgs.append(wrong)
                    continue
                try:
                    value = fitting(unwrapped(state_dict[key]), here, assign)
                    with recorded(False):
                        _take(module, kind, name, value, assign)
                except (TreadleError, TypeError, ValueError, BufferError) as error:
                    error_msgs.append(
                        f'While copying the parameter named "{key}", an exception occurred: {error}'
                    )
            elif strict and name not in module._may_lack:
                missing_keys.append(key)
    if module._has_extra_state:
        if prefix + EXTRA in state_dict:
            module.set_extra_state(wrapped(state_dict[prefix + EXTRA]))
        elif strict:
            missing_keys.append(prefix + EXTRA)
    if strict:
        known |= {EXTRA} if module._has_extra_state else set()
        for key in state_dict:
            first, *rest = key[len(prefix) :].split(".") if key.startswith(prefix) else ("",)
            if first and (first not in module._modules if rest else first not in known):
                unexpected_keys.append(key)


def _take(module: Any, kind: str, name: str, value: Any, assign: bool) -> None:
    here = module.__dict__[kind][name]
    if not assign:
        here.detach()[...] = value
    elif kind == "_parameters":
        module._parameters[name] = successor(here, value)
    else:
        module._buffers[name] = value.detach()
