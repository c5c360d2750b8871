"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from treadle.tensor.assembly import stack
from treadle.torch.tensors import Tensor, wrap


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module returns with other parameters and buffers, by their names; the module stays as
    it is. A parameter that is tied to one of them is replaced, too, unless `tie_weights` is False.
    RuntimeError with `strict` for names that are missing or not known.

    >>> import treadle.torch as torch
    >>> layer = torch.nn.Linear(2, 1)
    >>> values = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(layer, values, (torch.ones(1, 2),)).tolist()
    [[2.0]]
    """
    given: dict[str, Tensor] = {}
    dicts = parameter_and_buffer_dicts
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        given.update(each)
    places = _places(module)
    if strict and given.keys() != places.keys():
        missing, unknown = sorted(places.keys() - given), sorted(given.keys() - places.keys())
        raise RuntimeError(f"missing keys: {missing}, unexpected keys: {unknown}")
    values = {name: each._inner for name, each in given.items() if name in places}
    if tie_weights:
        by_tensor: dict[int, Any] = {}
        for name, value in values.items():
            owner, key = places[name]
            by_tensor.setdefault(id(owner[key]), value)
        for name, (owner, key) in places.items():
            tied = by_tensor.get(id(owner[key]))
            if tied is not None and owner[key] is not None:
                values.setdefault(name, tied)
    if not isinstance(args, (tuple, list)):
        args = () if args is None else (args,)
    with _replaced(places, values):
        return module(*args, **(kwargs or {}))


def _places(module: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Where modules have their tensors, by names."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    for prefix, each in module.named_modules(remove_duplicate=False):
        for members in (each._parameters, each._buffers):
            for name, value in members.items():
                if value is not None:
                    found[f"{prefix}.{name}" if prefix else name] = members, name
    return found


@contextmanager
def _replaced(
    places: Mapping[str, tuple[dict[str, Any], str]], values: Mapping[str, Any]
) -> Iterator[None]:
    before = [(places[name], places[name][0][places[name][1]]) for name in values]
    for name, value in values.items():
        owner, key = places[name]
        owner[key] = value
    try:
        yield
    finally:
        for (owner, key), old in before:
            owner[key] = old


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters, and the buffers, of models of one kind, stacked by their names."""
    if not models:
        raise RuntimeError("stack_module_state: expected at least one model, got 0")
    parameters = [dict(each.named_parameters()) for each in models]
    buffers = [dict(each.named_buffers()) for each in models]

    def stacked(name: str, states: list[dict[str, Any]]) -> Tensor:
        first = states[0][name]._inner
        made = wrap(stack([each[name]._inner.detach() for each in states]))
        if first.requires_grad:
            made.requires_grad_()  # type: ignore[attr-defined]
        return made

    return (
        {name: stacked(name, parameters) for name in parameters[0]},
        {name: stacked(name, buffers) for name in buffers[0]},
    )
