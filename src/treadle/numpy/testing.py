"""NumPy's `testing`: its own assertions, on the elements of arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.numpy.arrays import Values

_NAMES = [
    "assert_",
    "assert_allclose",
    "assert_almost_equal",
    "assert_approx_equal",
    "assert_array_almost_equal",
    "assert_array_almost_equal_nulp",
    "assert_array_compare",
    "assert_array_equal",
    "assert_array_less",
    "assert_array_max_ulp",
    "assert_equal",
    "assert_no_warnings",
    "assert_raises",
    "assert_raises_regex",
    "assert_string_equal",
    "assert_warns",
    "suppress_warnings",
]
__all__ = sorted(_NAMES)


def _host(value: Any) -> Any:
    if isinstance(value, Values):
        data = value._inner.numpy()
        return data if data.shape else data[()]
    if type(value) in (list, tuple):
        return type(value)([_host(each) for each in value])
    if type(value) is dict:
        return {key: _host(each) for key, each in value.items()}
    return value


def _on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return function(*[_host(each) for each in args], **_host(kwargs))

    return call


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(np.testing, name)
    made = globals()[name] = found if isinstance(found, type) else _on_host(found)
    return made


def __dir__() -> list[str]:
    return __all__
