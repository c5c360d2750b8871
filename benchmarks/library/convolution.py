"""Convolutions of images beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import installed
from benchmarks.library.case import Arrays, Case

_CARDS = ("cuda", "webgpu", "dawn")


def _arrays(x: tuple[int, ...], weight: tuple[int, ...]) -> Callable[[], Arrays]:
    def make() -> Arrays:
        random = np.random.default_rng(0)
        return [random.standard_normal(shape, dtype=np.float32) for shape in (x, weight)]

    return make


def _case(
    name: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    devices: tuple[str, ...],
    targets: dict[str, tuple[str, float]] | None = None,
    dtype: str = "",
    **options: int,
) -> Case:
    def compute(x: td.Tensor, weight: td.Tensor) -> td.Tensor:
        return td.nn.functional.conv2d(x, weight, None, **options)

    def by_torch(torch: Any, x: Any, weight: Any) -> Any:
        return torch.nn.functional.conv2d(x, weight, None, **options)

    def reference(x: Any, weight: Any) -> Any:
        """By PyTorch in float64 where it is there, else by the CPU device in float64."""
        torch = installed("torch")
        if torch is not None:
            return by_torch(torch, *[torch.asarray(a).double() for a in (x, weight)]).numpy()
        wide = [td.asarray(a.astype(np.float64), device="cpu") for a in (x, weight)]
        return compute(*wide).numpy()

    stride, padding = options.get("stride", 1), options.get("padding", 0)
    places = [(e + 2 * padding - k) // stride + 1 for e, k in zip(x[2:], weight[2:], strict=True)]
    products = x[0] * places[0] * places[1] * int(np.prod(weight))
    return Case(
        "convolution", name, _arrays(x, weight), compute, 2 * products, "GFLOP/s", devices,
        torch=by_torch, reference=reference, targets=targets or {}, dtype=dtype,
        tolerance={"float16": 1e-3}.get(dtype, 2e-5),
    )  # fmt: skip


CASES = [
    _case(
        "8×64×56×56, 64 of 3×3", (8, 64, 56, 56), (64, 64, 3, 3), ("cpu", *_CARDS),
        {"cpu": ("PyTorch", 0.7)}, padding=1,
    ),
    _case("32×256×28×28, 256 of 3×3", (32, 256, 28, 28), (256, 256, 3, 3), _CARDS, padding=1),
    _case("32×256×28×28, 256 of 3×3 float16", (32, 256, 28, 28), (256, 256, 3, 3), _CARDS,
          {"cuda": ("PyTorch", 0.85)}, "float16", padding=1),
    _case("4×128×28×28, 128 of 3×3", (4, 128, 28, 28), (128, 128, 3, 3), ("cpu",), padding=1),
    _case("8×64×56×56, 128 of 3×3, stride 2", (8, 64, 56, 56), (128, 64, 3, 3), ("cpu", *_CARDS),
          stride=2, padding=1),
    _case("8×3×224×224, 64 of 7×7, stride 2", (8, 3, 224, 224), (64, 3, 7, 7), ("cpu", *_CARDS),
          stride=2, padding=3),
    _case("8×256×56×56, 64 of 1×1", (8, 256, 56, 56), (64, 256, 1, 1), ("cpu", *_CARDS)),
    _case("8×96×56×56, 3×3 by channel", (8, 96, 56, 56), (96, 1, 3, 3), ("cpu", *_CARDS),
          groups=96, padding=1),
]  # fmt: skip
