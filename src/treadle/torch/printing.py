"""The text of a tensor, as PyTorch writes it, and `torch.set_printoptions`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import treadle as td
from treadle.graph.placeholders import within
from treadle.nn.parameter import is_parameter
from treadle.torch.devices import device as Device
from treadle.torch.dtypes import get_default_dtype
from treadle.torch.tensors import Tensor


@dataclass(frozen=True)
class Options:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_now = [Options()]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """How tensors are written: decimals, elements from which on only the ends are, how many at
    each end, characters a line, whether powers of ten (None: where numbers differ much).

    >>> import treadle.torch as torch
    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([1.0, 2.345])
    tensor([1.00, 2.35])
    >>> torch.set_printoptions(profile="default")
    """
    given: dict[str, Any] = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth}  # fmt: skip
    changed = {key: value for key, value in given.items() if value is not None}
    _now[0] = replace(_now[0], **_PROFILES.get(profile or "", {}), **changed, sci_mode=sci_mode)


class _Format:
    """How the numbers of a tensor are written, so that all have one width."""

    def __init__(self, values: np.ndarray[Any, Any], options: Options) -> None:
        self._precision, self._style, self.width = options.precision, "", 1
        flat = values.reshape(-1)
        if flat.dtype.kind != "f":
            texts = [str(each) for each in flat.tolist()]
            self.width = max([len(each) for each in texts], default=1)
            return
        self._style = "f"
        numbers = np.abs(flat[np.isfinite(flat) & (flat != 0)]).astype(np.float64)
        most, least = (numbers.max(), numbers.min()) if numbers.size else (0.0, 0.0)
        is_whole = bool(np.all(numbers == np.ceil(numbers)))
        is_wide = numbers.size and (most / least > 1000 or most > 1e8 or (
            not is_whole and least < 1e-4))  # fmt: skip
        is_scientific = is_wide if options.sci_mode is None else options.sci_mode
        if is_scientific:
            self._style = "e"
        elif is_whole:
            self._style = "whole"
        shown = flat[np.isfinite(flat) & (flat != 0)]
        self.width = max([len(self._text(each)) for each in shown.tolist()], default=1)

    def _text(self, value: Any) -> str:
        if self._style == "":
            return str(value)
        if self._style == "e":
            return f"{value:.{self._precision}e}"
        if self._style == "f":
            return f"{value:.{self._precision}f}"
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def __call__(self, value: Any) -> str:
        """A number, from the right."""
        return f"{self._text(value):>{self.width}}"


class _Complex:
    """The same of complex numbers."""

    def __init__(self, values: np.ndarray[Any, Any], options: Options) -> None:
        self._real, self._imag = _Format(values.real, options), _Format(values.imag, options)
        self.width = self._real.width + self._imag.width + 1

    def __call__(self, value: complex) -> str:
        """A number of two parts."""
        imag = self._imag(value.imag).lstrip()
        return f"{self._real(value.real)}{'' if imag[0] == '-' else '+'}{imag}j"


def _rows(values: np.ndarray[Any, Any], form: Any, indent: int, cut: bool, options: Options) -> str:
    if not values.shape:
        return str(form(values.item()))
    edge = options.edgeitems
    is_cut = cut and len(values) > 2 * edge
    if len(values.shape) == 1:
        per_line = max(1, (options.linewidth - indent) // max(1, form.width + 2))
        if is_cut:
            texts = [form(each) for each in values[:edge].tolist()]
            texts += [" ..."] + [form(each) for each in values[-edge:].tolist()]
        else:
            texts = [form(each) for each in values.tolist()]
        lines = [texts[at : at + per_line] for at in range(0, len(texts), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"
    parts: list[Any] = list(values[:edge]) + list(values[-edge:]) if is_cut else list(values)
    shown = [_rows(each, form, indent + 1, cut, options) for each in parts]
    if is_cut:
        shown.insert(edge, "...")
    between = "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(shown) + "]"


def text(tensor: Tensor, contents: str | None = None) -> str:
    """A tensor as PyTorch writes it."""
    inner, options = tensor._inner, _now[0]
    prefix = "tensor("
    if within.get() is not None:
        return f"tensor(of an example within vmap, dtype=torch.{inner.dtype}, size={inner.shape})"
    suffixes = device_suffix(inner)
    if contents is None:
        if not inner.size:
            contents = "[]"
            if len(inner.shape) != 1:
                suffixes.append(f"size={tuple(inner.shape)}")
            if inner.dtype is not get_default_dtype():
                suffixes.append(f"dtype=torch.{inner.dtype}")
        else:
            suffixes += dtype_suffix(inner)
            contents = _contents(inner, len(prefix), options)
    else:
        suffixes += dtype_suffix(inner)
    if not inner.is_leaf:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif inner.requires_grad:
        suffixes.append("requires_grad=True")
    made = with_suffixes(prefix, contents, suffixes)
    return f"Parameter containing:\n{made}" if is_parameter(inner) else made


def device_suffix(inner: Any) -> list[str]:
    """What says where a tensor is: nothing for the CPU."""
    device = str(Device(inner.device))
    return [f"device='{device}'"] if device != "cpu" else []


def dtype_suffix(inner: Any) -> list[str]:
    """What says the dtype of elements: nothing for those that numbers show."""
    usual: tuple[Any, ...] = (get_default_dtype(), td.int64, td.bool)
    if inner.dtype.is_complex:
        usual = (*usual, td.complex64 if get_default_dtype() is td.float32 else td.complex128)
    return [] if inner.dtype in usual else [f"dtype=torch.{inner.dtype}"]


def with_suffixes(
    prefix: str, contents: str, suffixes: list[str], starts_line: bool = False
) -> str:
    """Elements, and what is said of them, in lines that are not too long."""
    made = prefix + contents
    last = len(made) - made.rfind("\n") + 1
    for suffix in suffixes:
        if starts_line or last + len(suffix) + 2 > _now[0].linewidth:
            made += ",\n" + " " * len(prefix) + suffix
            last, starts_line = len(prefix) + len(suffix), False
        else:
            made += ", " + suffix
            last += len(suffix) + 2
    return made + ")"


def contents_of(inner: Any, indent: int) -> str:
    """The elements as nested lists, whose lines begin behind an indent."""
    return _contents(inner, indent, _now[0]) if inner.size else "[]"


def _contents(inner: Any, indent: int, options: Options) -> str:
    cut = inner.size > options.threshold
    shown = inner.detach()
    if cut:
        # Only the ends are read; one element more says that there are some between.
        edge = options.edgeitems
        for axis, extent in enumerate(shown.shape):
            if extent > 2 * edge + 1:
                ends = [*range(edge + 1), *range(extent - edge, extent)]
                shown = td.take(shown, td.asarray(ends, device=shown.device), axis=axis)
    if shown.dtype.name in ("bfloat16", "float16"):
        shown = shown.to(td.float32)
    values = shown.numpy()
    seen = values
    if cut:
        edge = options.edgeitems
        for axis, extent in enumerate(values.shape):
            if extent > 2 * edge:
                seen = np.take(seen, [*range(edge), *range(extent - edge, extent)], axis)
    form = (_Complex if values.dtype.kind == "c" else _Format)(seen, options)
    return _rows(values, form, indent, cut, options)
