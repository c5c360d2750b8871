"""PyTorch's samples as treadle's arguments, and the comparison of results and gradients."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

import numpy as np

import treadle as td
import treadle.nn.functional as F
from treadle.runtime import settings

try:
    import torch
except ImportError:  # a smaller installation
    torch = None

# Keywords that say where and how PyTorch puts a tensor.
_DROPPED = ("device", "layout", "requires_grad", "memory_format", "pin_memory", "out")
# How far off results may be, of what is computed in a dtype.
TOLERANCES = {"float64": 1e-7, "complex128": 1e-7, "float32": 3e-4, "complex64": 3e-4,
              "float16": 4e-3}  # fmt: skip


def seed(number: int) -> None:
    """Every generator that PyTorch's samples are drawn from."""
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002  what the samples are drawn from


@cache
def operators() -> dict[tuple[str, str], Any]:
    """PyTorch's entries by name and variant. Making them takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    return {(each.name, each.variant_test_name): each for each in op_db}


def samples_of(operator: Any, dtype: Any, tracked: bool) -> list[Any]:
    """PyTorch's samples for an operator, the same at each call."""
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    seed(0)
    # For each list of samples and for each sample PyTorch looks through the stack for the name of
    # the test, and sets all seeds, which takes longer than the samples.
    nothing = {"extract_test_fn": lambda: None, "set_rng_seed": lambda *_, **__: None}
    without_name = mock.patch.object(core, "extract_test_fn", nothing["extract_test_fn"])
    with mock.patch.multiple(common_utils, **nothing), without_name:
        return list(operator.sample_inputs("cpu", dtype, requires_grad=tracked))


@contextmanager
def one_by_one(is_wanted: bool = True) -> Iterator[None]:
    """Have every operation computed by itself."""
    before = settings.eager
    settings.eager = before or is_wanted
    try:
        yield
    finally:
        settings.eager = before


def spread_out(samples: Sequence[Any], count: int) -> list[Any]:
    """At most so many samples, from the first to the last."""
    if len(samples) <= count:
        return list(samples)
    return [samples[int(at)] for at in np.linspace(0, len(samples) - 1, count)]


# --- arguments -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    """Arguments of PyTorch's as treadle's; `tracked` are the tensors that require gradients."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    tracked: list[tuple[Any, Any]]


def taken(arguments: Sequence[Any], keywords: dict[str, Any], device: Any) -> Taken:
    tracked: list[tuple[Any, Any]] = []
    mine = tuple(_mine(each, device, tracked) for each in arguments)
    return Taken(mine, _mine(keywords, device, tracked), tracked)


def _mine(value: Any, device: Any, tracked: list[tuple[Any, Any]]) -> Any:
    if isinstance(value, torch.Tensor):
        for made, original in tracked:
            if original is value:  # given twice, it has the gradients of both
                return made
        made = td.asarray(to_numpy(value), device=device)
        if value.requires_grad:
            made.requires_grad_()
            tracked.append((made, value))
        return made
    if isinstance(value, torch.dtype):
        return getattr(td, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_mine(each, device, tracked) for each in value)
    if callable(value) and hasattr(F, getattr(value, "__name__", "")):  # as activations are given
        return getattr(F, value.__name__)
    if isinstance(value, dict):
        return {k: _mine(v, device, tracked) for k, v in value.items() if k not in _DROPPED}
    return value


def to_numpy(tensor: Any) -> np.ndarray:
    if tensor._is_zerotensor():
        return np.zeros(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
    plain = tensor.detach().resolve_conj().resolve_neg().to_dense()
    if plain.dtype is torch.bfloat16:
        return plain.view(torch.int16).numpy().view(td.bfloat16.numpy)
    return plain.numpy()


# --- results -------------------------------------------------------------------------------------


def leaves(value: Any) -> Iterator[Any]:
    """What there is in nested results."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def compare(mine: Any, theirs: Any, what: str, looser: float = 1.0) -> None:
    """Shapes, dtypes and values."""
    found, wanted = list(leaves(mine)), list(leaves(theirs))
    assert len(found) == len(wanted), f"{what}: {len(found)} results, and PyTorch has {len(wanted)}"
    for one, other in zip(found, wanted, strict=True):
        expected = _host(other)
        if isinstance(one, td.Tensor) and one.device.backend == "webgpu":
            # Its integers have 32 bits, unless 64 are asked for.
            is_narrow = expected.dtype == np.int64 and one.dtype == td.int32
            expected = expected.astype(np.int32) if is_narrow else expected
        _compare_arrays(_host(one), expected, what, looser)


def _host(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        return to_numpy(value)
    return value.numpy() if isinstance(value, td.Tensor) else np.asarray(value)


def _compare_arrays(found: np.ndarray, wanted: np.ndarray, what: str, looser: float) -> None:
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, not {wanted.shape}"
    assert found.dtype == wanted.dtype, f"{what}: {found.dtype}, not {wanted.dtype}"
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, wanted, what)
        return
    tolerance = TOLERANCES[wanted.dtype.name] * looser
    finite = np.abs(wanted[np.isfinite(wanted)])
    greatest = max(1.0, float(finite.max(initial=0.0)))
    np.testing.assert_allclose(found, wanted, tolerance, tolerance * greatest, err_msg=what)


def compare_gradients(mine: Any, theirs: Any, tracked: list[tuple[Any, Any]], what: str) -> None:
    """The gradients of results that are weighted with fixed numbers."""
    weights = np.random.default_rng(3)
    pairs = [
        (one, other)
        for one, other in zip(leaves(mine), leaves(theirs), strict=True)
        if isinstance(other, torch.Tensor) and other.requires_grad
    ]
    if not pairs or not tracked:
        return
    by = []
    for one, other in pairs:
        weight = weights.standard_normal(tuple(other.shape))
        if other.dtype.is_complex:
            weight = weight + 1j * weights.standard_normal(weight.shape)
        by.append(weight.astype(one.dtype.numpy))
    recorded = [
        (one, td.asarray(weight, device=one.device))
        for weight, (one, _) in zip(by, pairs, strict=True)
        if one.requires_grad
    ]
    found: Any = [None] * len(tracked)  # of what depends on none of them
    if recorded:
        found = td.autograd.grad(
            [one for one, _ in recorded],
            [one for one, _ in tracked],
            [weight for _, weight in recorded],
            allow_unused=True,
        )
    wanted = torch.autograd.grad(
        [other for _, other in pairs],
        [other for _, other in tracked],
        [
            torch.tensor(weight.astype("c16" if other.dtype.is_complex else "f8")).to(other.dtype)
            for weight, (_, other) in zip(by, pairs, strict=True)
        ],
        allow_unused=True,
    )
    for number, (one, other, (own, _)) in enumerate(zip(found, wanted, tracked, strict=True)):
        zeros = np.zeros(own.shape, own.dtype.numpy)
        _compare_arrays(
            zeros if one is None else _host(one),
            zeros if other is None else _host(other),
            f"{what}: the gradient of number {number}",
            20.0,
        )


def shown(value: Any) -> str:
    """An argument in a few words, for messages."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, dict):
        return ", ".join(f"{key}={shown(each)}" for key, each in value.items())
    return repr(value)
