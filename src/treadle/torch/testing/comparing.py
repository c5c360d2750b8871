"""Comparing tensors within tolerances, and drawing some for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.tensor.tensor import from_numpy
from treadle.torch.devices import place
from treadle.torch.dtypes import dtype_named
from treadle.torch.tensors import Tensor, wrap

_Array = np.ndarray[Any, Any]
# The greatest difference, relative and absolute, by dtypes; others are equal.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless tensors, arrays or numbers, also within sequences and mappings, are
    equal up to `rtol` * abs(expected) + `atol`; by default what the dtypes are good for.

    >>> import treadle.torch as torch
    >>> torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0 + 1e-7))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be specified or both be unspecified")
    options = (rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    try:
        _compare(actual, expected, options, "")
    except AssertionError as error:
        text = str(error)
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        raise AssertionError(text) from None


def _compare(actual: Any, expected: Any, options: tuple[Any, ...], where: str) -> None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            raise AssertionError(
                f"The keys of the mappings do not match:{where}\n"
                f"Missing keys in the actual mapping: {sorted(expected.keys() - actual.keys())}\n"
                f"Missing keys in the expected mapping: {sorted(actual.keys() - expected.keys())}"
            )
        for key in expected:
            _compare(actual[key], expected[key], options, f"{where}\nitem [{key!r}]")
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise AssertionError(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
            )
        for at, (one, other) in enumerate(zip(actual, expected, strict=True)):
            _compare(one, other, options, f"{where}\nitem [{at}]")
    else:
        _compare_values(actual, expected, options, where)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _compare_values(actual: Any, expected: Any, options: tuple[Any, ...], where: str) -> None:
    rtol, atol, equal_nan, check_device, check_dtype, check_stride = options
    one, other = _array(actual), _array(expected)
    if one is None or other is None:
        if actual != expected:
            raise AssertionError(f"Object comparison failed: {actual!r} != {expected!r}{where}")
        return
    if one.shape != other.shape:
        raise AssertionError(
            f"The values for attribute 'shape' do not match: torch.Size({list(one.shape)}) != "
            f"torch.Size({list(other.shape)}).{where}"
        )
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        mine, theirs = actual._inner, expected._inner
        for name, is_checked, a, b in (
            ("device", check_device, mine.device.id, theirs.device.id),
            ("dtype", check_dtype, mine.dtype, theirs.dtype),
            ("stride()", check_stride, mine.strides, theirs.strides),
        ):
            if is_checked and a != b:
                raise AssertionError(
                    f"The values for attribute {name!r} do not match: {a} != {b}.{where}"
                )
    if rtol is None:
        found = [_TOLERANCES.get(each.dtype.name, (0.0, 0.0)) for each in (one, other)]
        rtol, atol = (max(pair) for pair in zip(*found, strict=True))
    _compare_arrays(one, other, rtol, atol, equal_nan, where)


def _array(value: Any) -> _Array | None:
    """The value as an array; None for what has no numbers."""
    if isinstance(value, Tensor):
        return np.asarray(value._inner.detach().numpy())
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        return np.asarray(value)
    return None


def _compare_arrays(
    one: _Array, other: _Array, rtol: float, atol: float, equal_nan: bool, where: str
) -> None:
    is_complex = np.iscomplexobj(one) or np.iscomplexobj(other)
    kind = np.complex128 if is_complex else np.float64
    exact = one.dtype.kind in "iub" and other.dtype.kind in "iub"
    a, b = (one, other) if exact else (one.astype(kind), other.astype(kind))
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(kind) - b.astype(kind))
        close = (a == b) | ((apart <= atol + rtol * np.abs(b.astype(kind))) & np.isfinite(b))
        if exact and not (rtol or atol):
            close = a == b
        if equal_nan:
            close |= np.isnan(a) & np.isnan(b)
    if close.all():
        return
    wrong = int((~close).sum())
    if not one.shape:
        raise AssertionError(
            f"Scalars are not close!\n\nExpected {other} but got {one}.\n"
            f"Absolute difference: {apart} (up to {atol} allowed)\n"
            f"Relative difference: {apart / abs(b) if b else np.inf} (up to {rtol} allowed){where}"
        )
    apart = np.where(close, 0.0, apart)
    with np.errstate(all="ignore"):
        relative = np.where(close, 0.0, apart / np.abs(b))
    places = [
        tuple(int(k) for k in np.unravel_index(np.nanargmax(each), one.shape))
        if not np.isnan(each).all() else (0,) * one.ndim
        for each in (apart, relative)
    ]  # fmt: skip
    raise AssertionError(
        f"Tensor-likes are not close!\n\n"
        f"Mismatched elements: {wrong} / {one.size} ({100 * wrong / one.size:.1f}%)\n"
        f"Greatest absolute difference: {apart[places[0]]} at index {places[0]} (up to {atol} "
        f"allowed)\n"
        f"Greatest relative difference: {relative[places[1]]} at index {places[1]} (up to {rtol} "
        f"allowed){where}"
    )


def make_tensor(
    *shape: Any,
    dtype: DType,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random numbers from `low` up to `high`: by default -9 to 9, 0 and 1 for bool, 0
    to 9 for unsigned integers."""
    extents = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    dtype = dtype_named(dtype)
    is_whole = dtype.kind in ("int", "uint", "bool")
    least = (0 if dtype.kind in ("uint", "bool") else -9) if low is None else low
    most = (2 if dtype.kind == "bool" else 10 if is_whole else 9) if high is None else high
    from treadle.torch.random import default_generator

    draws = np.random.default_rng(default_generator._inner.next_draw())
    data: _Array
    if is_whole:
        data = draws.integers(int(least), max(int(most), int(least) + 1), extents)
    elif dtype.kind == "complex":
        data = draws.uniform(least, most, extents) + 1j * draws.uniform(least, most, extents)
    else:
        data = draws.uniform(least, most, extents)
    if exclude_zero:
        data = np.where(data == 0, 1, data)
    made = from_numpy(np.asarray(data).astype(dtype.numpy), place(device))
    if noncontiguous and made.size > 1 and made.ndim:
        doubled = np.repeat(np.asarray(data).astype(dtype.numpy), 2, axis=-1)
        made = from_numpy(doubled, place(device))[..., ::2]
    found = wrap(made)
    if requires_grad:
        found.requires_grad_()  # type: ignore[attr-defined]
    return found
