"""A device that treadle does not know: its driver, and the target that kernels are printed for.

Kernels are printed as the IR's own text, which the driver reads back and evaluates. It shows that a
device is a folder, a record and two lines in tables: nothing else in treadle names it.
"""

from __future__ import annotations

import pytest

import treadle as td
from treadle.codegen import TARGETS
from treadle.drivers import BACKENDS, BackendEntry


def add_toy(monkeypatch: pytest.MonkeyPatch) -> td.Device:
    """Add the device, as long as a test lasts."""
    entry = BackendEntry("tests.support.toy.driver", "Backend", by_name_only=True)
    monkeypatch.setitem(TARGETS, "toy", "tests.support.toy.target")
    monkeypatch.setitem(BACKENDS, "toy", entry)
    return td.device("toy")
