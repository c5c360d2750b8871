"""`torch.compile`: treadle's, of functions and modules of PyTorch's tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from treadle.graph.history import recording
from treadle.tensor.compiled.decorator import compile as inner_compile
from treadle.torch.nn.module import Module
from treadle.torch.tensors import unwrapped, wrapped


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
    **more: Any,
) -> Any:
    """Compile a function of tensors, or a module's calls: its Python runs once, and later calls
    with arguments of that kind replay what it did on the device.

    `fullgraph=True` makes everything an error that prevents a replay. `backend`, `mode` and
    `options` are accepted: there is one way. A module is returned as one whose calls are compiled,
    with the same parameters; a call within `torch.no_grad()` is replayed, and one whose results are
    differentiated runs as it is: compile the whole step for that, with `backward()` and the
    optimizer.

    >>> import treadle.torch as torch
    >>> @torch.compile
    ... def step(x):
    ...     return (x * 2 + 1).sum()
    >>> step(torch.ones(3)).item()
    9.0
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode,
            options=options, disable=disable,
        )  # fmt: skip
    if disable:
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph, dynamic)
    return _compiled(model, fullgraph, dynamic)


def _compiled(function: Callable[..., Any], strict: bool, dynamic: bool | None) -> Any:
    def of_inner(*args: Any, **kwargs: Any) -> Any:
        return unwrapped(function(*wrapped(args), **wrapped(kwargs)))

    recorded = inner_compile(functools.wraps(function)(of_inner), dynamic=dynamic, strict=strict)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapped(recorded(*unwrapped(args), **unwrapped(kwargs)))

    call.compiled = recorded  # type: ignore[attr-defined]
    return call


class OptimizedModule(Module):
    """A module whose calls are compiled."""

    def __init__(self, module: Any, strict: bool = False, dynamic: bool | None = None) -> None:
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "_call", _compiled(module, strict, dynamic))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. What is differentiated from outside is not replayed."""
        if recording.get() and any(each.requires_grad for each in self._orig_mod.parameters()):
            return self._orig_mod(*args, **kwargs)
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_orig_mod" or name.startswith("__"):
                raise
            return getattr(self._orig_mod, name)
