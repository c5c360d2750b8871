"""`Module`: what has parameters, and a function of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from treadle.core.dtypes import DType, bfloat16, float16, float32, float64
from treadle.nn import state
from treadle.nn.conversion import conversion, converted
from treadle.nn.hooks import Hook, HookHandle, Hooks, called
from treadle.nn.parameter import Parameter
from treadle.nn.text import representation
from treadle.tensor.tensor import Tensor

Own = TypeVar("Own", bound="Module")
_MEMBERS = ("_parameters", "_buffers", "_modules")


class Module:
    """The base of all layers and models.

    A subclass calls `super().__init__()`, sets parameters, modules and buffers as attributes, and
    has a `forward`, which a call of the module runs. `training` says whether it is in training
    mode (`train()`, `eval()`).

    >>> import treadle as td
    >>> class Scaled(td.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = td.nn.Parameter(td.asarray(2.0, device="cpu"))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> model = Scaled()
    >>> model(td.asarray([1.0, 3.0], device="cpu")).tolist()
    [2.0, 6.0]
    >>> [name for name, _ in model.named_parameters()]
    ['factor']
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    # The buffers that a state dict may lack, since older ones do.
    _may_lack: frozenset[str] = frozenset()
    _traced_members = _MEMBERS  # where traces look for attributes

    def __init__(self) -> None:
        put = self.__dict__
        put["training"] = True
        put["_parameters"] = {}
        put["_buffers"] = {}
        put["_non_persistent_buffers_set"] = set()
        put["_modules"] = {}
        put["_hooks"] = None

    # --- calls -----------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes: each subclass has its own."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward: define what a call of it computes"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What `forward` computes, with the module's hooks called."""
        hooks = self._hooks
        if hooks is None:
            return self.forward(*args, **kwargs)
        return called(self, hooks, args, kwargs)

    # --- attributes ------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        for members in _MEMBERS:
            found = self.__dict__.get(members, ())
            if name in found:
                return found[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget(name, "_modules")
            self.register_module(name, value)
        elif name in self.__dict__.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name} is a parameter, and cannot become a "
                    f"{type(value).__name__}: assign a td.nn.Parameter, or None, or write into it "
                    "within td.no_grad()"
                )
            self._parameters[name] = None
        elif name in self.__dict__.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name} is a module, and cannot become a "
                    f"{type(value).__name__}: assign a td.nn.Module, or None"
                )
            self._modules[name] = None
        elif name in self.__dict__.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"{type(self).__name__}.{name} is a buffer, and cannot become a "
                    f"{type(value).__name__}: assign a tensor, or None"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for members in _MEMBERS:
            if name in self.__dict__.get(members, ()):
                del self.__dict__[members][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        members = [name for each in _MEMBERS for name in self.__dict__.get(each, ())]
        return sorted({*object.__dir__(self), *members})

    def _forget(self, name: str, keeping: str) -> None:
        """Let an attribute of another kind go."""
        if "_parameters" not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}.{name} is set before the module is one: call "
                "super().__init__() first"
            )
        self.__dict__.pop(name, None)
        for members in _MEMBERS:
            if members != keeping:
                self.__dict__[members].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None is a place for one."""
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"{name} is a {type(param).__name__} that is not a parameter: make it one with "
                "td.nn.Parameter(x)"
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module and is not learned; only one that is persistent
        is in its state dict."""
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: a buffer is a tensor, or None")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a module: `add_module`."""
        self._check_name("module", name, "_modules")
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{name} is a {type(module).__name__}, not a module")
        self._modules[name] = module

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module, as an attribute of that name."""
        self.register_module(name, module)

    def _check_name(self, kind: str, name: str, members: str) -> None:
        if members not in self.__dict__:
            raise AttributeError(
                f"{type(self).__name__}.{name} is set before the module is one: call "
                "super().__init__() first"
            )
        if not isinstance(name, str):
            raise TypeError(f"a {kind}'s name is a string, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a {kind}'s name is not empty and has no dot: {name!r}")
        if hasattr(self, name) and name not in self.__dict__[members]:
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")

    # --- what there is ---------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module, named as `prefix`, and all within it; each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all within it; each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly in this one."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly in this one."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, members: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        found = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else ((prefix, self),)
        )
        for path, module in found:
            for name, value in module.__dict__[members].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{path}.{name}" if path else name), module._shown(name, value)

    def _shown(self, name: str, value: Any) -> Any:
        """A parameter or buffer as callers get it."""
        return value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names; one that is in several places once."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, of the modules within, too; each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, of the modules within, too; each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.0.linear". AttributeError if there is none."""
        found: Any = self
        for name in target.split(".") if target else ():
            inner = getattr(found, name, None)
            if not isinstance(inner, Module):
                raise AttributeError(f"{type(found).__name__} has no module {name!r} ({target!r})")
            found = inner
        assert isinstance(found, Module)
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "encoder.0.weight"."""
        found: Parameter = self._member(target, "_parameters", "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "norm.running_mean"."""
        found: Tensor = self._member(target, "_buffers", "buffer")
        return found

    def _member(self, target: str, members: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module.__dict__[members].get(name) is None:
            raise AttributeError(f"{type(module).__name__} has no {kind} {name!r} ({target!r})")
        return module._shown(name, module.__dict__[members][name])

    # --- changes ---------------------------------------------------------------------------------

    def apply(self: Own, fn: Callable[[Module], Any]) -> Own:
        """Call a function with each module within this one, then with it: to initialize, say."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Own, mode: bool = True) -> Own:
        """Put this module and all within it into training mode, or out of it."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode is True or False, not {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Own) -> Own:
        """Put this module and all within it into evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self: Own, requires_grad: bool = True) -> Own:
        """Have all parameters require gradients, or none (frozen)."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let the parameters' gradients go, or make them zero."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    gradient.detach()[...] = 0

    def _apply(self: Own, fn: Callable[[Tensor], Tensor]) -> Own:
        converted(self, fn)
        return self

    def to(self: Own, *args: Any, **kwargs: Any) -> Own:
        """Move parameters and buffers to a device, or cast those of floating or complex dtypes, in
        place: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`, or by keywords. The
        parameters stay the same objects, so that an optimizer that has them keeps them.

        >>> import treadle as td
        >>> layer = td.nn.Linear(2, 3, device="cpu").to(td.float16)
        >>> layer.weight.dtype
        treadle.float16
        """
        return self._apply(conversion(*args, **kwargs))

    def cpu(self: Own) -> Own:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self: Own, device: Any = None) -> Own:
        """Move parameters and buffers to a CUDA device: `to("cuda")`, or one by its number."""
        if isinstance(device, int):
            device = f"cuda:{device}"
        return self.to("cuda" if device is None else device)

    def type(self: Own, dst_type: DType) -> Own:
        """Cast all parameters and buffers."""
        return self._apply(lambda x: x.to(dst_type))

    def float(self: Own) -> Own:
        """Cast floating parameters and buffers to float32."""
        return self.to(float32)

    def double(self: Own) -> Own:
        """Cast floating parameters and buffers to float64."""
        return self.to(float64)

    def half(self: Own) -> Own:
        """Cast floating parameters and buffers to float16."""
        return self.to(float16)

    def bfloat16(self: Own) -> Own:
        """Cast floating parameters and buffers to bfloat16."""
        return self.to(bfloat16)

    # --- hooks -----------------------------------------------------------------------------------

    def _with_hooks(self) -> Hooks:
        hooks: Hooks | None = self.__dict__["_hooks"]
        if hooks is None:
            hooks = self.__dict__["_hooks"] = Hooks()
        return hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> HookHandle:
        """Have `hook(module, args)` called before `forward`; what it returns, if not None, are the
        arguments instead. With `with_kwargs` it is `hook(module, args, kwargs)`, and returns
        both."""
        hooks = self._with_hooks()
        return hooks.add(hooks.before, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> HookHandle:
        """Have `hook(module, args, output)` called after `forward`; what it returns, if not None,
        is the output instead. With `with_kwargs` it is `hook(module, args, kwargs, output)`; with
        `always_call` it is called after an error, too (output is None)."""
        hooks = self._with_hooks()
        return hooks.add(hooks.after, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Have `hook(module, grad_output)` called before gradients flow through the module; what it
        returns, if not None, are the gradients of the results instead."""
        hooks = self._with_hooks()
        return hooks.add(hooks.backward_before, Hook(hook), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Have `hook(module, grad_input, grad_output)` called when the gradients of the module's
        positional arguments are known (None for what has none); what it returns, if not None, is
        used instead."""
        hooks = self._with_hooks()
        return hooks.add(hooks.backward, Hook(hook), prepend)

    # --- the state -------------------------------------------------------------------------------

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by their names, with PyTorch's keys. The tensors
        share the module's memory and are cut off from gradients, unless `keep_vars`."""
        return state.state_of(self, {} if destination is None else destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Take on the values of a state dict: of tensors, NumPy arrays or PyTorch's tensors, which
        are cast and moved to what the module has. With `assign` the state dict's tensors take the
        place of the module's, with their own dtype and device.

        StateDictError, which lists everything that is wrong, if keys are missing or not known
        (unless `strict` is False: then they are in the result) or shapes differ; nothing was
        changed then.
        """
        return state.load(self, state_dict, strict, assign)

    @property
    def _has_extra_state(self) -> bool:
        """Whether the class has more to put into a state dict."""
        return type(self).get_extra_state is not Module.get_extra_state

    def get_extra_state(self) -> Any:
        """What else belongs into the state dict; a subclass that has this has `set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} has no extra state")

    def set_extra_state(self, state: Any) -> None:
        """Take on what `get_extra_state` gave."""
        raise NotImplementedError(f"{type(self).__name__} takes no extra state")

    # --- text ------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What the module's own line in its text says between the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        return representation(self)
