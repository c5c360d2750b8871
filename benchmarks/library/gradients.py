"""Gradients of rows and of attention: what is timed is the forward and the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
import treadle.nn.functional as F
from benchmarks.library.case import Arrays, Case
from benchmarks.library.rows import softmax

_GPUS = ("cuda", "webgpu", "dawn")
Array = np.ndarray[Any, Any]


def _pulled_back(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of treadle's tensors: the gradients of all but the last one, which is that of the result."""

    def compute(*tensors: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in tensors[:-1]]
        return td.autograd.grad(function(*leaves), leaves, tensors[-1])

    return td.compile(compute)  # as steps of training are: the host's part is another figure


def _by_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(torch: Any, *tensors: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in tensors[:-1]]
        return torch.autograd.grad(function(torch, *leaves), leaves, tensors[-1])

    return compute


def _rows(rows: int, length: int) -> Arrays:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((rows, length), np.float32) for _ in range(2)]


def _normed(rows: int, length: int) -> Arrays:
    rng = np.random.default_rng(0)
    shapes = ((rows, length), (length,), (length,), (rows, length))
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def _of_softmax(x: Array, g: Array) -> Array:
    y = softmax(x)
    return np.asarray(y * (g - (g * y).sum(axis=1, keepdims=True)))


def _of_layer_norm(x: Array, weight: Array, bias: Array, g: Array) -> Array:
    centered = x - x.mean(axis=1, keepdims=True, dtype=np.float64)
    steep = 1 / np.sqrt(np.square(centered).mean(axis=1, keepdims=True) + 1e-5)
    y, given = centered * steep, g * weight.astype(np.float64)
    means = [each.mean(axis=1, keepdims=True) for each in (given, given * y)]
    return np.asarray((given - means[0] - y * means[1]) * steep)


def _scored(rows: int, length: int) -> Arrays:
    x, _ = _rows(rows, length)
    return [x, np.random.default_rng(1).integers(0, length, rows).astype(np.int32)]


def _of_scores(x: Array, classes: Array) -> Array:
    found = softmax(x)
    found[np.arange(len(x)), classes] -= 1
    return np.asarray(found / len(x))


@td.compile
def _loss(x: Any, classes: Any) -> Any:
    leaf = x.detach().requires_grad_()
    return td.autograd.grad(F.cross_entropy(leaf, classes), leaf)


def _loss_by_torch(torch: Any, x: Any, classes: Any) -> Any:
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(torch.nn.functional.cross_entropy(leaf, classes.long()), leaf)


def _heads(batch: int, heads: int, length: int, size: int) -> Arrays:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((batch, heads, length, size), np.float32) for _ in range(4)]


def _of_attention(causal: bool) -> Callable[..., Array]:
    def reference(q: Array, k: Array, v: Array, g: Array) -> Array:
        """The query's gradient, head by head."""
        found, scale = np.empty(q.shape, np.float64), q.shape[-1] ** -0.5
        hidden = np.triu(np.ones((q.shape[-2], k.shape[-2]), bool), 1)
        for head in np.ndindex(*q.shape[:2]):
            scores = (q[head] @ k[head].T).astype(np.float64) * scale
            if causal:
                scores[hidden] = -np.inf
            weights, of_weights = softmax(scores), g[head] @ v[head].T
            sums = (weights * of_weights).sum(axis=1, keepdims=True)
            found[head] = weights * (of_weights - sums) @ k[head] * scale
        return found

    return reference


def _attention(
    sizes: tuple[int, int, int, int], causal: bool, devices: tuple[str, ...], dtype: str = ""
) -> Case:
    """Two products forward, and five back."""
    batch, heads, length, size = sizes
    work = 14.0 * batch * heads * length * length * size * (0.5 if causal else 1.0)
    named = " × ".join(map(str, sizes))
    return Case(
        "gradients", f"attention {named} {dtype or 'float32'}{', causal' if causal else ''}",
        lambda: _heads(*sizes),
        _pulled_back(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)),
        work, "GFLOP/s", devices,
        torch=_by_torch(
            lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal
            )
        ),
        reference=_of_attention(causal), dtype=dtype, tolerance=3e-2 if dtype else 1e-4,
        targets={"cpu": ("PyTorch", 0.7)},
    )  # fmt: skip


def _cases(rows: int, length: int, devices: tuple[str, ...], dtype: str = "") -> list[Case]:
    """Bytes that have to be moved: of the norm and softmax 5 times the array, of the loss 3."""
    bytes_each = rows * length * (2 if dtype else 4)
    named = f"{rows} x {length}{f' {dtype}' if dtype else ''}"
    close = 3e-2 if dtype else 1e-4
    return [
        Case(
            "gradients", f"softmax of {named}", lambda: _rows(rows, length),
            _pulled_back(F.softmax),
            5.0 * bytes_each, "GB/s", devices, dtype=dtype, tolerance=close,
            torch=_by_torch(lambda torch, x: torch.softmax(x, -1)), reference=_of_softmax,
        ),
        Case(
            "gradients", f"layer_norm of {named}", lambda: _normed(rows, length),
            _pulled_back(lambda x, w, b: F.layer_norm(x, length, w, b)), 5.0 * bytes_each, "GB/s",
            devices, dtype=dtype, tolerance=close,
            torch=_by_torch(
                lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (length,), w, b)
            ),
            reference=_of_layer_norm,
        ),
        Case(
            "gradients", f"cross_entropy of {named}", lambda: _scored(rows, length), _loss,
            3.0 * bytes_each, "GB/s", devices, dtype=dtype, tolerance=close, torch=_loss_by_torch,
            reference=_of_scores,
        ),
    ]  # fmt: skip


CASES = [
    *_cases(4096, 1024, ("cpu", *_GPUS)),
    *_cases(8192, 4096, _GPUS, "bfloat16"),
    _attention((1, 8, 1024, 64), False, ("cpu",)),
    _attention((1, 8, 1024, 64), True, ("cpu",)),
    _attention((8, 12, 1024, 64), True, _GPUS),
    _attention((8, 12, 1024, 64), True, _GPUS, "bfloat16"),
    _attention((4, 16, 4096, 64), True, _GPUS, "float16"),
]
