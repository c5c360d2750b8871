"""How exactly products are computed. `td.set_float32_matmul_precision`: those of float32 numbers,
rounded to TF32 where a device has instructions for that.

`td.autocast`: products in float16 or bfloat16, and functions that need the range in float32.

Two tables list these functions, as PyTorch's tables for CUDA do. All other functions compute in the
dtypes of their arguments: so do `mean`, `var` and `std`, which are not in PyTorch's tables, and
which accumulate float16 and bfloat16 in float32 in any case.

Elementwise and composite functions look their names up here. Any other function of the tables has
to be decorated with `cast_by_name`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from typing import Any, TypeVar
from typing import cast as assume

from treadle.core.dtypes import DType, as_dtype, bfloat16, float16, float32
from treadle.core.errors import DtypeError
from treadle.core.overriding import overridden
from treadle.runtime import settings
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.dtypes import check_dtype
from treadle.tensor.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

# The dtype that products are computed in; None outside of `autocast`.
lower: ContextVar[DType | None] = ContextVar("lower", default=None)

_HALVES = (float16, bfloat16)
_PRECISIONS = ("highest", "high", "medium")
# Functions whose float32 operands are cast to the lower dtype.
LOWERED = frozenset({
    "bilinear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "einsum", "linear", "matmul", "packed_attention", "prelu",
    "scaled_dot_product_attention",
})  # fmt: skip
# Functions whose float16 and bfloat16 operands are cast to float32.
WIDENED = frozenset({
    "acos", "asin", "binary_cross_entropy_with_logits", "cdist", "cosh", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "cumulative_prod", "cumulative_sum", "erfc",
    "exp", "expm1", "group_norm", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "layer_norm", "log", "log10", "log1p", "log2", "log_softmax", "logsumexp",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss", "nll_loss",
    "normalize", "pdist", "poisson_nll_loss", "pow", "prod", "reciprocal", "rms_norm", "rsqrt",
    "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "sum", "tan",
    "triplet_margin_loss", "vector_norm",
})  # fmt: skip


class autocast(ContextDecorator):
    """A context in which products, convolutions and attention are computed in a lower dtype, and
    functions that need the range of float32 in float32: softmax, norms, losses, powers and sums.
    Also a decorator.

    `dtype` is float16 or bfloat16 (also as the first argument). `device_type`, a device or its id,
    is checked for support of `dtype`, as in PyTorch. Parameters stay as they are, and gradients
    have their dtypes. With float16 use a `GradScaler`, since gradients may be too small for it.

    >>> import treadle as td
    >>> x = td.ones((8, 8), device="cpu")
    >>> with td.autocast(td.bfloat16):
    ...     y = x @ x
    ...     y.dtype.name, y.softmax(-1).dtype.name
    ('bfloat16', 'float32')
    """

    def __init__(
        self,
        device_type: DType | Device | str | None = None,
        dtype: DType | str | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        device: Any = device_type
        if device_type is not None and dtype is None:
            try:
                dtype, device = as_dtype(device_type), None
            except DtypeError:
                dtype = float16 if str(device_type).startswith("cuda") else bfloat16
        wanted = bfloat16 if dtype is None else as_dtype(dtype)
        if wanted not in _HALVES:
            raise DtypeError(f"autocast takes float16 and bfloat16, not {wanted}")
        if device is not None and enabled:
            check_dtype(wanted, find_device(device))
        self._dtype = wanted if enabled else None
        self._tokens: list[Token[DType | None]] = []

    def __enter__(self) -> autocast:
        self._tokens.append(lower.set(self._dtype))
        return self

    def __exit__(self, *exception: Any) -> None:
        lower.reset(self._tokens.pop())


def set_float32_matmul_precision(precision: str, /) -> None:
    """Say how products of float32 matrices are computed from now on, in this process.

    "highest", the default: in float32. "high" and "medium": factors are rounded to TF32, the
    nearest number with 10 bits of fraction, where a device multiplies these by instructions
    (NVIDIA's cards from Ampere on, `cuda`), several times as fast; sums are float32. Other devices
    compute as with "highest". It holds for `@`, `matmul`, `einsum`, `tensordot`, linear layers,
    convolutions and their gradients from this call on; products of other dtypes are as ever. What
    `td.compile` has recorded with another precision is recorded anew. ValueError for another word.

    >>> import treadle as td
    >>> td.set_float32_matmul_precision("high")
    >>> td.get_float32_matmul_precision()
    'high'
    >>> td.set_float32_matmul_precision("highest")
    """
    if precision not in _PRECISIONS:
        choices = ", ".join(map(repr, _PRECISIONS))
        raise ValueError(
            f"the precision of float32 products is one of {choices}, not {precision!r}"
        )
    settings.float32_products = precision


def get_float32_matmul_precision() -> str:
    """How products of float32 matrices are computed: what `set_float32_matmul_precision` was last
    called with, "highest" if it was not.

    >>> import treadle as td
    >>> td.get_float32_matmul_precision()
    'highest'
    """
    return settings.float32_products


def modes() -> tuple[Any, ...]:
    """What decides, beside its arguments, how a function computes its products."""
    return lower.get(), settings.float32_products


def cast_argument(name: str, value: Any) -> Any:
    """An argument of a function cast as `autocast` requires: a tensor, or the tensors in tuples and
    lists."""
    dtype = lower.get()
    if dtype is None:
        return value
    if type(value) is Tensor:
        own: Any = value.dtype
        if name in LOWERED and own in (float32, *_HALVES):
            return value.to(dtype)
        if name in WIDENED and own in _HALVES:
            return value.to(float32)
    elif type(value) in (list, tuple):
        return type(value)([cast_argument(name, each) for each in value])
    return value


def cast_arguments(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """All arguments of a function cast as `autocast` requires."""
    given = tuple([cast_argument(name, value) for value in args])
    return given, {key: cast_argument(name, value) for key, value in kwargs.items()}


def cast_by_name(function: F) -> F:
    """Make a function of one of the tables cast its arguments as `autocast` requires."""
    name = function.__name__
    assert name in LOWERED or name in WIDENED

    @functools.wraps(function)
    def casting(*args: Any, **kwargs: Any) -> Any:
        try:
            if lower.get() is None:
                return function(*args, **kwargs)
            given, named = cast_arguments(name, args, kwargs)
            return function(*given, **named)
        except TypeError as error:
            return overridden(error, name, args, kwargs)

    return assume(F, casting)
