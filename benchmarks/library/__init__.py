"""The kernel library beside its peers: one file a theme, each with its CASES."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import treadle as td
from benchmarks.harness import Figure, about_device, installed
from benchmarks.library.case import Case, measure

THEMES: tuple[str, ...] = (
    "attention",
    "convolution",
    "fft",
    "gradients",
    "linalg",
    "pooling",
    "products",
    "rows",
    "sorting",
)  # fmt: skip


def cases(themes: Sequence[str] = THEMES) -> list[Case]:
    """Those of some themes, or of all."""
    modules = [importlib.import_module(f"benchmarks.library.{theme}") for theme in themes]
    return [case for module in modules for case in module.CASES]


def about(spec: str) -> dict[str, Any]:
    """The device measured, and the peer's version."""
    torch = installed("torch")
    return about_device(spec) | ({"torch": torch.__version__} if torch else {})


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What is measured on a device."""
    device = td.device(spec)
    return [
        functools.partial(measure, f"library-{spec}", device, case)
        for case in cases()
        if case.suits(device, spec)
    ]
