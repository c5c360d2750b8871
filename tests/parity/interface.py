"""PyTorch's samples of operators called through `treadle.torch`, exactly as PyTorch is called."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import treadle.torch as door
from tests.parity import comparing, unspecified
from tests.parity.comparing import torch


class Refused(Exception):
    """What `treadle.torch` does not have, and says so."""


@dataclass
class Tally:
    """What came of the samples of an operator."""

    name: str
    right: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def samples(self) -> int:
        return self.right + len(self.refused) + len(self.wrong)


def function(operator: Any) -> Callable[..., Any]:
    """The door's function for an entry of PyTorch's list."""
    op = operator.op
    if isinstance(op, types.FunctionType) and op.__module__.startswith("torch.testing"):
        # Written for the list itself: the same code, with the door as `torch`.
        names = {key: _ours(value) for key, value in op.__globals__.items() if key in _GLOBALS}
        cells = tuple(types.CellType(_ours(c.cell_contents)) for c in op.__closure__ or ())
        made = types.FunctionType(
            op.__code__, {**op.__globals__, **names}, op.__name__, op.__defaults__, cells or None
        )
        made.__kwdefaults__ = op.__kwdefaults__
        return made
    return named(operator.name)


_GLOBALS = ("torch", "np")


def _ours(value: Any) -> Any:
    if value is torch:
        return door
    name = getattr(value, "__name__", None)
    if getattr(value, "__module__", "") in ("torch", "torch.functional", None) and name:
        found = getattr(torch, name, None)
        if found is value:
            return named(name)
    return value


def named(path: str) -> Callable[..., Any]:
    """The door's function at a path, `linalg.qr`; a method where there is no function."""
    found: Any = door
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        if "." not in path and hasattr(door.Tensor, path):
            found = getattr(door.Tensor, path)
            return found if callable(found) else lambda x: getattr(x, path)
        raise Refused(f"{path}: {error}") from None
    # `torch.float` is a dtype, and `x.float()` is meant.
    return getattr(door.Tensor, path) if isinstance(found, door.dtype) else found


def variants(operator: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function, and the method of the same name, as PyTorch has them."""
    yield "", function(operator)
    method = operator.method_variant
    name = getattr(method, "__name__", "")
    if method is not None and name and isinstance(getattr(torch.Tensor, name, None), type(method)):
        found = getattr(door.Tensor, name, None)
        if found is None:
            raise Refused(f"Tensor.{name}")
        yield f"Tensor.{name}", found


def taken(value: Any, device: Any, tracked: list[tuple[Any, Any]]) -> Any:
    """Arguments of PyTorch's as the door's."""
    if isinstance(value, torch.Tensor):
        for made, original in tracked:
            if original is value:
                return made
        made = _made(value, device)
        if value.requires_grad and value.layout is torch.strided:
            made.requires_grad_()
            tracked.append((made, value))
        return made
    if isinstance(value, (torch.dtype, torch.layout)):
        return getattr(door, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return door.Size(value)
    if isinstance(value, torch.device):
        return door.device(str(device))
    if isinstance(value, dict):
        return {
            key: str(device) if key == "device" else taken(each, device, tracked)
            for key, each in value.items()
        }
    if isinstance(value, (tuple, list)):
        return type(value)(taken(each, device, tracked) for each in value)
    if isinstance(value, torch.nn.Module):  # of samples, with the usual settings
        return getattr(door.nn, type(value).__name__)()
    if callable(value) and value is getattr(torch.nn.functional, getattr(value, "__name__", ""), 0):
        return getattr(door.nn.functional, value.__name__)
    if callable(value) and getattr(value, "__module__", "").startswith("torch"):
        return _ours(value)
    if isinstance(value, torch.nn.LinearCrossEntropyOptions):
        return door.nn.LinearCrossEntropyOptions(**asdict(value))
    return value


def _made(value: Any, device: Any) -> Any:
    """A tensor of PyTorch's as the door's; a part of more memory as one, too."""
    if value.layout is not torch.strided:
        dense = door.wrap(comparing.td.asarray(comparing.to_numpy(value), device=device))
        return dense.to_sparse(getattr(door, str(value.layout).removeprefix("torch.")))
    stored = value.untyped_storage().nbytes() // value.element_size()
    if stored != value.numel() and value.is_leaf and not value.is_conj() and value.numel():
        memory = value.detach().as_strided((stored,), (1,), 0)
        whole = door.wrap(comparing.td.asarray(comparing.to_numpy(memory), device=device))
        return whole.as_strided(value.shape, value.stride(), value.storage_offset())
    return door.wrap(comparing.td.asarray(comparing.to_numpy(value), device=device))


def inner(value: Any) -> Any:
    """Results of the door's as treadle's tensors."""
    if isinstance(value, door.Tensor):
        return (value if value.layout is door.strided else value.to_dense()).td
    assert not isinstance(value, comparing.td.Tensor), "a tensor of treadle, not one of PyTorch's"
    if isinstance(value, dict):
        return {key: inner(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(inner(each) for each in value)
    return value


def check(operator: Any, dtype: Any, count: int, device: str, tally: Tally) -> None:
    """Compare at most so many samples, forward, and gradients in float64."""
    differentiates = (
        dtype is torch.float64
        and operator.supports_autograd
        and dtype in operator.supported_backward_dtypes("cpu")
    )
    samples = comparing.samples_of(operator, dtype, differentiates)
    both = unspecified.both(operator)
    for number, sample in enumerate(comparing.spread_out(samples, count)):
        what = f"{operator.name} {str(dtype).removeprefix('torch.')} {number}"
        arguments = (sample.input, *sample.args)
        _fix_draws(operator.name, sample)
        try:
            with np.errstate(all="ignore"):
                theirs = operator.op if both is None else both(operator.op, torch)
                wanted = theirs(*arguments, **sample.kwargs)
        except Exception:
            continue
        shown = f"{what}: {comparing.shown(arguments)} {comparing.shown(sample.kwargs)}"
        try:
            _check_sample(operator, sample, arguments, wanted, device, shown)
            if number in (0, 2) and both is None:
                _check_writing(operator, sample, wanted, device, shown)
        except Refused as error:
            tally.refused.append(str(error))
        except AttributeError as error:
            is_named = str(error).startswith(("module 'treadle.torch", "'Tensor' object"))
            (tally.refused if is_named else tally.wrong).append(f"{shown}: {error}")
        except Exception as error:
            text = str(error).strip().replace("\n", " ")
            tally.wrong.append(f"{shown}: {type(error).__name__}: {text[:200]}")
        else:
            tally.right += 1


def _check_sample(
    operator: Any, sample: Any, arguments: Any, wanted: Any, device: str, what: str
) -> None:
    for variant, call in variants(operator):
        tracked: list[tuple[Any, Any]] = []
        mine = [taken(each, device, tracked) for each in arguments]
        keywords = taken(sample.kwargs, device, tracked)
        both = unspecified.both(operator)
        call = call if both is None else both(call, door)
        with door.device(device):
            found = call(*mine, **keywords)
        label = f"{what} {variant}"
        _compare_kinds(found, wanted, label)
        is_sparse = isinstance(wanted, torch.Tensor) and wanted.layout is not torch.strided
        expected = wanted.to_dense() if is_sparse else wanted
        if operator.name.startswith(_UNDEFINED) or _is_drawn(operator.name, sample):
            continue
        looser = unspecified.LOOSER.get(operator.name, 1.0)
        comparing.compare(inner(found), expected, label, looser)
        is_compared = operator.name not in unspecified.GRADIENTS_NOT_COMPARED
        if not variant and is_compared:  # the method is the same function
            ours = [(one.td, other) for one, other in tracked]
            comparing.compare_gradients(inner(found), expected, ours, label)


# What these make is drawn, or undefined.
_UNDEFINED = (
    "bernoulli", "cauchy", "empty", "exponential", "geometric", "log_normal", "multinomial",
    "new_empty", "nn.functional.dropout", "nn.functional.feature_alpha_dropout",
    "nn.functional.alpha_dropout", "normal", "rand", "uniform",
)  # fmt: skip


def _is_drawn(name: str, sample: Any) -> bool:
    """Whether the results of a sample are drawn, those of others of the operator not."""
    if name.endswith("multi_head_attention_forward"):
        return bool(sample.kwargs.get("training", True) and sample.args[9] > 0)
    given = sample.kwargs
    return given.get("dropout_p", 0) > 0 or (name.endswith("rrelu") and bool(given.get("training")))


def _fix_draws(name: str, sample: Any) -> None:
    """Have both draw the same, where they can be told what."""
    if name.startswith("nn.functional.fractional_max_pool"):
        axes, shape = int(name[-2]), sample.input.shape
        lead = shape[:2] if len(shape) == axes + 2 else (1, shape[0])
        drawn = torch.rand(*lead, axes, dtype=sample.input.dtype)
        sample.kwargs.setdefault("_random_samples", drawn)


def _compare_kinds(found: Any, wanted: Any, what: str) -> None:
    """Classes of results: tensors with shape and dtype, tuples with names, numbers."""
    if isinstance(wanted, torch.Tensor):
        assert isinstance(found, door.Tensor), f"{what}: a {type(found).__name__}, not a Tensor"
        assert tuple(found.shape) == tuple(wanted.shape), f"{what}: {found.shape}, {wanted.shape}"
        assert str(found.layout) == str(wanted.layout), f"{what}: {found.layout}, {wanted.layout}"
        return
    if not isinstance(wanted, (list, tuple)) or isinstance(wanted, torch.Size):
        return
    assert isinstance(found, (list, tuple)), f"{what}: a {type(found).__name__}"
    for name in ("values", "indices"):
        assert hasattr(found, name) == hasattr(wanted, name), f"{what}: the field {name}"
    for one, other in zip(found, wanted, strict=True):
        _compare_kinds(one, other, what)


def _check_writing(operator: Any, sample: Any, wanted: Any, device: str, what: str) -> None:
    """The in-place method, and `out=`, where PyTorch has them."""
    if operator.name.startswith(_UNDEFINED):
        return
    arguments = [_untracked(each) for each in (sample.input, *sample.args)]
    name = getattr(operator.inplace_variant, "__name__", "")
    if name and isinstance(getattr(torch.Tensor, name, None), type(torch.Tensor.add_)):
        theirs = [each.clone() if each is arguments[0] else each for each in arguments]
        try:
            changed = getattr(torch.Tensor, name)(*theirs, **sample.kwargs)
        except Exception:
            changed = None
        if changed is not None and changed.shape == arguments[0].shape:
            if not hasattr(door.Tensor, name):
                raise Refused(f"Tensor.{name}")
            mine = [taken(each, device, []) for each in arguments]
            found = getattr(mine[0], name)(*mine[1:], **taken(sample.kwargs, device, []))
            assert found is mine[0], f"{what}: {name} returns another tensor"
            comparing.compare(inner(found), changed, f"{what} {name}")
    if not operator.supports_out or "out" in sample.kwargs or not _has_out(operator.name):
        return
    if isinstance(wanted, tuple) and any(isinstance(each, (list, tuple)) for each in wanted):
        return
    results = [_untracked(each) for each in comparing.leaves(wanted)]
    if not all(isinstance(each, torch.Tensor) for each in results):
        return
    places = [taken(torch.full_like(each, 7), device, []) for each in results]
    out: Any = places[0] if isinstance(wanted, torch.Tensor) else tuple(places)
    mine = [taken(each, device, []) for each in arguments]
    with door.device(device):
        function(operator)(*mine, **taken(sample.kwargs, device, []), out=out)
    looser = unspecified.LOOSER.get(operator.name, 1.0)
    comparing.compare(inner(tuple(places)), results, f"{what} out=", looser)


def _has_out(name: str) -> bool:
    """Whether PyTorch's function takes `out=`: its list says so of methods, too. (Of
    `nn.functional` it is not documented.)"""
    if name.startswith("nn.functional") or name in ("histogramdd", "linalg.lstsq"):
        return False
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return isinstance(found, types.BuiltinFunctionType)


def _untracked(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, (list, tuple)):
        return type(value)(_untracked(each) for each in value)
    return value
