"""Derivatives of what works on rows: softmax and its kin, and norms.

Each is one formula of the input or the result, which reads a row of it and of the gradient once.
Statistics of rows are computed again, in the same kernel: that costs nothing where a row is in
registers, and they have derivatives themselves.
"""

from __future__ import annotations

import math
from typing import Any

from treadle.autograd.derivative import Rule
from treadle.graph.calls import call, call_of_several
from treadle.graph.history import recording
from treadle.kernels.launching import serial_threads
from treadle.kernels.norm_gradients import blocks_of, fits, norm_backward, norm_gradients
from treadle.tensor.axes import some_axes
from treadle.tensor.elementwise_functions import FUNCTIONS
from treadle.tensor.functional.compute_dtype import widened
from treadle.tensor.functional.standardization import by_channel
from treadle.tensor.manipulation import expand_dims
from treadle.tensor.reductions import mean
from treadle.tensor.reductions import sum as total
from treadle.tensor.tensor import from_node

_conj, _exp = FUNCTIONS["conj"], FUNCTIONS["exp"]
_rsqrt, _square = FUNCTIONS["rsqrt"], FUNCTIONS["square"]
_isfinite, _sqrt, _where = FUNCTIONS["isfinite"], FUNCTIONS["sqrt"], FUNCTIONS["where"]
Gradients = dict[str, Any]


# --- softmax -------------------------------------------------------------------------------------


def _softmax(g: Any, out: Any, axis: int) -> Any:
    (g, _), (y, _) = widened(g), widened(out)
    if not y.ndim:
        return g * 0
    return y * (g - total(g * y, axis=axis, keepdims=True))


def _log_softmax(g: Any, out: Any, axis: int) -> Any:
    (g, _), (y, _) = widened(g), widened(out)
    if not y.ndim:
        return g * 0
    return g - _exp(y) * total(g, axis=axis, keepdims=True)


def _logsumexp(g: Any, x: Any, out: Any, axis: Any, keepdims: bool) -> Any:
    (g, _), (x, _), (y, _) = widened(g), widened(x), widened(out)
    if not keepdims:
        for each in sorted(some_axes("logsumexp", axis, x.ndim)):
            g, y = expand_dims(g, each), expand_dims(y, each)
    powers = _exp(x - y)
    return g * (_conj(powers) if powers.dtype.kind == "complex" else powers)


# --- norms ---------------------------------------------------------------------------------------


def _standardized(
    g: Any, input: Any, axes: tuple[int, ...], eps: float, scale: Any, average: Any, variance: Any
) -> Gradients:
    given = g
    (g, _), (x, _) = widened(g), widened(input)
    if average is None and (whole := _by_a_kernel(given, input, axes, eps, scale, True)):
        return whole
    if average is None or recording.get():  # the given values do not record how they depend on x
        average = mean(x, axis=axes, keepdims=True)
        variance = mean(_square(x - average), axis=axes, keepdims=True)
    steep = _rsqrt(variance + eps)
    y = (x - average) * steep
    if scale is not None and _varies(scale, axes, x.ndim):
        found = {"input": _across(g * scale, y, axes) * steep, "scale": g * y, "shift": g}
        return found | _of_factors(given, input, axes, eps, scale, True)
    # One factor for all that is averaged: the sums are those of the factors' gradients.
    sums, sums_y = (total(each, axis=axes, keepdims=True) for each in (g, g * y))
    count = x.size / sums.size if sums.size else 1
    if scale is not None:
        steep = steep * scale
    found = (g - (sums + y * sums_y) / count) * steep
    return {"input": found, "scale": sums_y, "shift": sums}


def _standardized_channels(
    g: Any, input: Any, eps: float, weight: Any, average: Any, variance: Any
) -> Gradients:
    axes, scale = (0, *range(2, input.ndim)), by_channel(weight, input.ndim)
    found = _standardized(g, input, axes, eps, scale, average, variance)
    return {
        "input": found["input"],
        "weight": found["scale"].reshape(-1),
        "bias": found["shift"].reshape(-1),
    }


def _varies(scale: Any, axes: tuple[int, ...], ndim: int) -> bool:
    """Whether something that broadcasts to so many axes is not the same along some of them."""
    seen = (1,) * (ndim - scale.ndim) + tuple(scale.shape)
    return any(seen[axis] != 1 for axis in axes)


def _across(g: Any, y: Any, axes: tuple[int, ...]) -> Any:
    """The part of a gradient that changes neither the mean nor the variance over axes, if y has
    mean 0 and variance 1."""
    along = mean(g * y, axis=axes, keepdims=True)
    return g - mean(g, axis=axes, keepdims=True) - y * along


def _scaled_to_rms_one(
    g: Any, input: Any, axes: tuple[int, ...], eps: float, scale: Any
) -> Gradients:
    given = g
    if whole := _by_a_kernel(given, input, axes, eps, scale, False):
        return whole
    (g, _), (x, _) = widened(g), widened(input)
    steep = _rsqrt(mean(_square(x), axis=axes, keepdims=True) + eps)
    y = x * steep
    inner = g if scale is None else g * scale
    found = (inner - y * mean(inner * y, axis=axes, keepdims=True)) * steep
    return {"input": found, "scale": g * y} | _of_factors(given, input, axes, eps, scale, False)


def _by_a_kernel(
    g: Any, input: Any, axes: tuple[int, ...], eps: float, scale: Any, centered: bool
) -> Gradients:
    """All gradients of a norm over the last axes, by a kernel that reads input and gradient once;
    none where there is no such kernel."""
    if serial_threads(input.device) or not _has_kernel(input, axes, scale):
        return {}
    columns = math.prod(input.shape[axis] for axis in axes)
    shape = (blocks_of(input.device, input.size // columns, columns), 2, columns)
    nodes = [each._node for each in (input, g, scale)]
    results = [(input.shape, input.dtype), (shape, widened(input)[0].dtype)]
    found, sums = call_of_several(norm_backward, nodes, results, (columns, centered, eps))
    return {"input": from_node(found)} | _of_sums(from_node(sums), scale, centered)


def _of_factors(
    g: Any, input: Any, axes: tuple[int, ...], eps: float, scale: Any, centered: bool
) -> Gradients:
    """The gradients of factors and terms for the last axes, by a kernel that reads all once."""
    if not serial_threads(input.device) or not _has_kernel(input, axes, scale):
        return {}
    columns = math.prod(input.shape[axis] for axis in axes)
    rows = input.size // columns
    pair = [each.reshape((rows, columns))._node for each in (input, g)]
    shape = (blocks_of(input.device, rows, columns), 2, columns)
    made = from_node(call(norm_gradients, pair, shape, widened(input)[0].dtype, (centered, eps)))
    return _of_sums(made, scale, centered)


def _has_kernel(input: Any, axes: tuple[int, ...], scale: Any) -> bool:
    """Whether the kernel library has gradients of a norm over axes."""
    if recording.get() or scale is None or scale.ndim != len(axes) or axes[-1] != -1:
        return False
    columns = math.prod(input.shape[axis] for axis in axes)
    return fits(input.device, input.size // max(columns, 1), columns)


def _of_sums(sums: Any, scale: Any, centered: bool) -> Gradients:
    """The gradients of factors and terms, of sums over some rows each."""
    of_scale = {"scale": total(sums[:, 0], axis=0).reshape(scale.shape)}
    if not centered:
        return of_scale
    return of_scale | {"shift": total(sums[:, 1], axis=0).reshape(scale.shape)}


def _scaled_to_length_one(g: Any, input: Any, axis: int, eps: float) -> Any:
    (g, _), (x, _) = widened(g), widened(input)
    square = total(_square(x), axis=axis, keepdims=True)
    is_long = square > eps * eps
    length = _where(is_long, _sqrt(_where(is_long, square, 1)), eps)
    y = x / length
    return (g - _where(is_long, y * total(g * y, axis=axis, keepdims=True), 0)) / length


RULES: dict[str, Rule] = {
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "scaled_to_length_one": _scaled_to_length_one,
    "scaled_to_rms_one": _scaled_to_rms_one,
    "softmax": _softmax,
    "standardized": _standardized,
    "standardized_channels": _standardized_channels,
}
