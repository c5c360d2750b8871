"""Functions that are called around a module's: before `forward`, after it, and while gradients flow
through it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from treadle.graph import views
from treadle.graph.history import History, recording
from treadle.graph.node import view_of
from treadle.graph.placeholders import record_composite
from treadle.tensor.tensor import Tensor, from_node


class Hook(NamedTuple):
    """A function, and what it wants."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


class HookHandle:
    """A hook that can be taken away again: `remove()`, or the end of a with statement."""

    def __init__(self, hooks: list[Hook], hook: Hook) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Don't call the hook any more."""
        for number, hook in enumerate(self._hooks):
            if hook is self._hook:
                del self._hooks[number]
                return

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


class Hooks:
    """The hooks of a module."""

    def __init__(self) -> None:
        self.before: list[Hook] = []
        self.after: list[Hook] = []
        self.backward_before: list[Hook] = []
        self.backward: list[Hook] = []

    def add(self, where: list[Hook], hook: Hook, prepend: bool = False) -> HookHandle:
        """Have a hook called, after the others or before them."""
        where.insert(0 if prepend else len(where), hook)
        return HookHandle(where, hook)


def called(module: Any, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a module makes of arguments, with its hooks called."""
    call = _Call(args, kwargs)
    try:
        return _called(module, hooks, call, args, kwargs)
    except Exception:
        for hook in tuple(hooks.after):
            if hook.always_call and not any(hook is each for each in call.begun):
                try:
                    _after(hook, module, call.args, call.kwargs, call.result)
                except Exception as error:  # noqa: BLE001  the first error is the one to be seen
                    warnings.warn(
                        f"a hook of {type(module).__name__} with always_call=True raised "
                        f"{error!r}, after another error, which is raised",
                        stacklevel=3,
                    )
        raise


class _Call:
    """How far a call has come."""

    __slots__ = ("args", "begun", "kwargs", "result")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.begun: list[Hook] = []  # those after forward that were called


def _called(
    module: Any, hooks: Hooks, call: _Call, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    for hook in tuple(hooks.before):
        if hook.with_kwargs:
            changed = hook.function(module, args, kwargs)
            if changed is not None:
                args, kwargs = changed
        else:
            changed = hook.function(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    has_backward = bool(hooks.backward or hooks.backward_before) and recording.get()
    gate = _Gate(module, hooks) if has_backward else None
    if gate is not None:
        args = gate.entered(args)
    call.args, call.kwargs = args, kwargs
    result = call.result = module.forward(*args, **kwargs)
    for hook in tuple(hooks.after):
        call.begun.append(hook)
        changed = _after(hook, module, args, kwargs, result)
        if changed is not None:
            result = call.result = changed
    return result if gate is None else gate.left(result)


def _after(hook: Hook, module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    if hook.with_kwargs:
        return hook.function(module, args, kwargs, result)
    return hook.function(module, args, result)


# --- backward hooks ------------------------------------------------------------------------------


class _Gate:
    """Where gradients come into a module and leave it. All of its inputs are one operation on the
    tape, which changes nothing, and so are its results: what flows back through them is what the
    hooks are shown, at once."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self._module = module
        self._hooks = hooks
        self._of_results: tuple[Any, ...] = ()
        self._inputs_without: tuple[None, ...] | None = ()  # if none of them has a history

    def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments; those that are tensors pass the gate."""
        tracked = [x for x in args if isinstance(x, Tensor) and x._history is not None]
        if not tracked:
            self._inputs_without = (None,) * len(args)
            return args
        self._inputs_without = None
        places = [x if isinstance(x, Tensor) else None for x in args]
        passed = iter(_passed(tracked, _Passage("a module's inputs", self._inputs, places)))
        return tuple(next(passed) if _is_in(x, tracked) else x for x in args)

    def left(self, result: Any) -> Any:
        """The results; those that are tensors pass the gate."""
        results = result if isinstance(result, tuple) else (result,)
        tracked = [x for x in results if isinstance(x, Tensor) and x._history is not None]
        if not tracked:
            return result
        places = [x if isinstance(x, Tensor) else None for x in results]
        passed = iter(_passed(tracked, _Passage("a module's results", self._results, places)))
        made: list[Any] = [next(passed) if _is_in(x, tracked) else x for x in results]
        if not isinstance(result, tuple):
            return made[0]
        fields = getattr(type(result), "_fields", None)
        return tuple(made) if fields is None else type(result)(*made)

    def _results(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in tuple(self._hooks.backward_before):
            changed = hook.function(self._module, gradients)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
        self._of_results = gradients
        if self._inputs_without is not None:
            for hook in tuple(self._hooks.backward):
                hook.function(self._module, self._inputs_without, gradients)
        return gradients

    def _inputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in tuple(self._hooks.backward):
            changed = hook.function(self._module, gradients, self._of_results)
            if changed is not None:
                gradients = changed if isinstance(changed, tuple) else (changed,)
        return gradients


def _is_in(value: Any, tensors: Sequence[Tensor]) -> bool:
    return any(value is each for each in tensors)


class _Passage:
    """The derivative of a gate: gradients as they are, or as hooks have them."""

    def __init__(self, name: str, shown: Callable[[Any], Any], places: Sequence[Any]) -> None:
        self.name = name
        self._shown = shown
        # Of which place each of the tracked tensors is.
        self._tracked = [
            number for number, x in enumerate(places) if x is not None and x._history is not None
        ]
        self._count = len(places)

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """Nothing."""
        return ()

    def backward(
        self, made: History, gradients: Sequence[Any]
    ) -> Iterator[tuple[History | None, Any]]:
        """The gradients, shown to the hooks, of each place."""
        shown: list[Any] = [None] * self._count
        for place, gradient in zip(self._tracked, gradients, strict=True):
            shown[place] = gradient
        given = self._shown(tuple(shown))
        if len(given) != self._count:
            raise ValueError(
                f"a backward hook gave {len(given)} gradients in place of {self._count}: give one "
                "for each, None where there is none"
            )
        for edge, place in zip(made.edges, self._tracked, strict=True):
            yield edge, given[place]


def _passed(tensors: Sequence[Tensor], passage: _Passage) -> list[Tensor]:
    """The same tensors, with a passage behind them."""
    sources = [x._node for x in tensors]
    nodes = [view_of(source, views.whole(source.shape)) for source in sources]
    for node in nodes:
        node.history = None
    record_composite(passage, nodes, sources)
    return [from_node(node) for node in nodes]
