"""`torch.nn.Module`: treadle's module, whose tensors are shown as PyTorch's.

The dictionaries of a module hold treadle's tensors, so that what treadle does with modules works on
these, too. Attributes, `parameters()`, state dicts and hooks show them as `torch.Tensor`; a module
keeps what it has shown, so that who asks twice gets one object.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from treadle.core.dtypes import DType
from treadle.graph.history import recorded
from treadle.nn.conversion import become, conversion
from treadle.nn.hooks import HookHandle, called
from treadle.nn.module import Module as InnerModule
from treadle.nn.parameter import is_parameter
from treadle.tensor.creation import empty
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import device as Device
from treadle.torch.devices import place
from treadle.torch.layouts import strided
from treadle.torch.nn import state
from treadle.torch.tensors import Tensor, keep, kept, unwrapped, wrap, wrapped

Own = TypeVar("Own", bound="Module")
# Where modules that PyTorch has saved have hooks.
_PYTORCHS_HOOKS = (
    "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks",
    "_forward_hooks_always_called", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs",
    "_is_full_backward_hook", "_load_state_dict_post_hooks", "_load_state_dict_pre_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks",
)  # fmt: skip


class Module(InnerModule):
    """The base of all layers and models, with PyTorch's interface.

    >>> import treadle.torch as torch
    >>> class Scaled(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scaled()
    >>> model(torch.tensor([1.0, 3.0])).tolist(), list(model.state_dict())
    ([2.0, 6.0], ['factor'])
    """

    _version: int = 1
    dump_patches: bool = False
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            given = f"{len(args)} were given" if args else f"{next(iter(kwargs))!r} was given"
            raise TypeError(f"{type(self).__name__}.__init__() takes no arguments, but {given}")
        InnerModule.__init__(self)

    # --- calls -----------------------------------------------------------------------------------

    def forward(self, *input: Any, **kwargs: Any) -> Any:
        """What the module computes: each subclass has its own."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` computes, with the module's hooks called."""
        for each in args:
            if type(each) is Inner:  # called by one of treadle's modules
                return unwrapped(self(*wrapped(args), **wrapped(kwargs)))
        hooks = self._hooks
        if hooks is None:
            return self.forward(*args, **kwargs)
        return wrapped(called(_Forwarding(self), hooks, unwrapped(args), unwrapped(kwargs)))

    # --- attributes ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for members in ("_parameters", "_buffers"):
            found = own.get(members, ())
            if name in found:
                value = found[name]
                return None if value is None else self._shown(name, value)
        modules = own.get("_modules", ())
        if name in modules:
            return modules[name]
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self
        )

    def _shown(self, name: str, value: Any) -> Any:
        own = self.__dict__
        wrappers = own.get("_wrappers")
        if wrappers is None:
            wrappers = own["_wrappers"] = {}
        made = wrappers.get(name)
        if made is None or made._inner is not value:
            made = wrappers[name] = kept(value)
        return made

    def _keep(self, name: str, value: Tensor) -> None:
        self.__dict__.setdefault("_wrappers", {})[name] = keep(value)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is not Tensor:
            super().__setattr__(name, value)
            return
        own = self.__dict__
        inner = value._inner
        if is_parameter(inner):
            super().__setattr__(name, inner)
        elif name in own.get("_parameters", ()):
            raise TypeError(
                f"cannot assign a tensor as parameter {name!r} (torch.nn.Parameter or None "
                "expected)"
            )
        elif "_is_persistent_buffer" in value.__dict__ or name in own.get("_buffers", ()):
            if name in own.get("_buffers", ()):
                self._buffers[name] = inner
            else:
                own.pop(name, None)
                self.register_buffer(name, value, value.__dict__["_is_persistent_buffer"])
        else:
            super().__setattr__(name, value)
            return
        self._keep(name, value)

    def __delattr__(self, name: str) -> None:
        self.__dict__.get("_wrappers", {}).pop(name, None)
        super().__delattr__(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter; None is a place for one."""
        super().register_parameter(name, unwrapped(param))
        if type(param) is Tensor:
            self._keep(name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module and is not learned; only one that is persistent
        is in its state dict."""
        if isinstance(tensor, Tensor) and tensor.layout is not strided:
            raise TypeError(
                f"buffer {name!r} is a sparse tensor: buffers are dense, and a sparse one is kept "
                f"as an attribute (module.{name} = x), which module.to(device) leaves where it is"
            )
        super().register_buffer(name, unwrapped(tensor), persistent)
        if type(tensor) is Tensor:
            self._keep(name, tensor)

    def set_submodule(self, target: str, module: InnerModule, strict: bool = False) -> None:
        """Put a module at a path such as "encoder.0.linear"."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and name not in owner._modules:
            raise AttributeError(f"{type(owner).__name__} has no module {name!r} ({target!r})")
        setattr(owner, name, module)

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, with tensors as PyTorch's: who pickles an optimizer with its module gets
        both with the same parameters."""
        state = {key: value for key, value in self.__dict__.items() if key != "_wrappers"}
        for members in ("_parameters", "_buffers"):
            state[members] = {
                name: None if value is None else kept(value)
                for name, value in state.get(members, {}).items()
            }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        for name in _PYTORCHS_HOOKS:
            if own.pop(name, None):
                raise RuntimeError(
                    f"a {type(self).__name__} was saved by PyTorch with hooks ({name}), which are "
                    "not those here: save it without them, or its state_dict()"
                )
        for members in ("_parameters", "_buffers"):
            given = own.get(members, {})
            own[members] = {name: unwrapped(value) for name, value in given.items()}
            own.setdefault("_wrappers", {}).update(
                {name: keep(value) for name, value in given.items() if type(value) is Tensor}
            )
        own.setdefault("_hooks", None)

    # --- changes ---------------------------------------------------------------------------------

    def _apply(self: Own, fn: Callable[[Any], Any], recurse: bool = True) -> Own:
        """Replace all tensors by a function of them; parameters stay the same objects."""
        if recurse:
            for child in self.children():
                child._apply(fn)

        def convert(x: Inner) -> Inner:
            found: Inner = unwrapped(fn(wrap(x)))
            return found

        with recorded(False):
            for parameter in self._parameters.values():
                if parameter is not None:
                    become(parameter, convert)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = convert(buffer)
        return self

    def to(self: Own, *args: Any, **kwargs: Any) -> Own:
        """Move parameters and buffers to a device, or cast those of floating dtypes, in place:
        `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`, or by keywords."""
        kwargs = {key: each for key, each in kwargs.items() if key != "memory_format"}
        given = [
            place(each) if isinstance(each, (str, int, Device)) and each is not False
            and each is not True else unwrapped(each)
            for each in args
        ]  # fmt: skip
        if kwargs.get("device") is not None:
            kwargs["device"] = place(kwargs["device"])
        if "tensor" in kwargs:
            given.append(unwrapped(kwargs.pop("tensor")))
        convert = conversion(*given, **kwargs)
        return self._apply(lambda x: wrap(convert(x._inner)))

    def cuda(self: Own, device: Any = None) -> Own:
        """Move parameters and buffers to a CUDA device."""
        return self.to(Device("cuda") if device is None else Device(device))

    def type(self: Own, dst_type: Any) -> Own:
        """Cast all parameters and buffers."""
        dtype: DType = dst_type
        return self._apply(lambda x: wrap(x._inner.to(dtype)))

    def to_empty(self: Own, *, device: Any, recurse: bool = True) -> Own:
        """Move parameters and buffers to a device without their values."""
        where = place(device)
        return self._apply(
            lambda x: wrap(empty(x._inner.shape, dtype=x._inner.dtype, device=where)), recurse
        )

    def share_memory(self: Own) -> Own:
        """Refused: tensors are not shared between processes."""
        raise RuntimeError(
            "share_memory: tensors of treadle are not shared between processes; send a state dict"
        )

    # --- hooks -----------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Have `hook(module, args)` called before `forward`; what it returns, if not None, are the
        arguments instead. With `with_kwargs` it is `hook(module, args, kwargs)`."""
        return super().register_forward_pre_hook(
            _shown_to(hook), prepend=prepend, with_kwargs=with_kwargs
        )

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Have `hook(module, args, output)` called after `forward`; what it returns, if not None,
        is the output instead. With `with_kwargs` it is `hook(module, args, kwargs, output)`."""
        return super().register_forward_hook(
            _shown_to(hook), prepend=prepend, with_kwargs=with_kwargs, always_call=always_call
        )

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Have `hook(module, grad_output)` called before gradients flow through the module."""
        return super().register_full_backward_pre_hook(_shown_to(hook), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Have `hook(module, grad_input, grad_output)` called when the gradients of the module's
        positional arguments are known; what it returns, if not None, is used instead."""
        return super().register_full_backward_hook(_shown_to(hook), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """The same, under its old name."""
        return self.register_full_backward_hook(hook)

    # --- the state -------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by their names. The tensors share the module's
        memory and are cut off from gradients, unless `keep_vars`."""
        if args:
            warnings.warn(
                "state_dict takes destination, prefix and keep_vars by their names",
                FutureWarning,
                stacklevel=2,
            )
            rest: tuple[Any, ...] = (destination, prefix, keep_vars)[len(args) :]
            destination, prefix, keep_vars = (*args, *rest)
        return state.save(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Take on the values of a state dict. RuntimeError if keys are missing or not known, unless
        `strict` is False, or if shapes differ: what fits is loaded even then."""
        return state.load(self, state_dict, strict, assign)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        state.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        lists = missing_keys, unexpected_keys, error_msgs
        state.load_own(self, state_dict, prefix, local_metadata, strict, *lists)

    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> state.StateHook:
        hooks = state.hooks_of(self, kind)
        hooks.append(hook)
        return state.StateHook(hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> state.StateHook:
        """Have `hook(module, prefix, keep_vars)` called before `state_dict` looks at the module."""
        return self._add_state_hook("save_before", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> state.StateHook:
        """Have `hook(module, state_dict, prefix, local_metadata)` called after it."""
        return self._add_state_hook("save_after", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> state.StateHook:
        """Have `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` called before the module's tensors are loaded."""
        return self._add_state_hook("load_before", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> state.StateHook:
        if with_module:
            return self._add_state_hook("load_before", hook)
        return self._add_state_hook("load_before", _WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> state.StateHook:
        """Have `hook(module, incompatible_keys)` called after the module's tensors are loaded."""
        return self._add_state_hook("load_after", hook)


class _WithoutModule:
    """A hook that is not given the module."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self._hook = hook

    def __call__(self, module: Any, *args: Any) -> Any:
        return self._hook(*args)


class _Forwarding:
    """A module for the calls of hooks, which see treadle's tensors around `forward`."""

    __slots__ = ("module",)

    def __init__(self, module: Module) -> None:
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        return unwrapped(self.module.forward(*wrapped(args), **wrapped(kwargs)))


def _shown_to(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook that is shown PyTorch's tensors and the module itself."""

    def call(forwarding: _Forwarding, *given: Any) -> Any:
        return unwrapped(hook(forwarding.module, *wrapped(given)))

    return call
