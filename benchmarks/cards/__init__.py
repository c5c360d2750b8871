"""A card's rates beside PyTorch's: products, attention, convolutions, steps of training, and what
is no product. One file a suite, each with its `CASES`; `steps` has measurements of its own.

Each suite takes less than a minute of a card, but for `steps`, which compiles networks.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import treadle as td
from benchmarks.cards.case import measure
from benchmarks.harness import Figure


def measurements_of(suite: str, spec: str) -> list[Callable[[], list[Figure]]]:
    """What a suite measures on a device."""
    module = importlib.import_module(f"benchmarks.cards.{suite}")
    device = td.device(spec)
    return [
        functools.partial(measure, f"{suite}-{spec}", device, case)
        for case in module.CASES
        if spec in case.devices
    ]
