"""Dawn's device for tests: a GPU's driver if it is good enough for Dawn, else Chromium's software
one, SwiftShader (Mesa's is too old in Debian 12).

Vulkan's loader reads from the environment, whenever an instance is made, which drivers there are.
So the variable is set around Dawn's listing of adapters alone, and `webgpu` goes on finding what it
finds without it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import treadle as td
from treadle.drivers.webgpu_native.dawn import DAWN, swiftshader
from treadle.drivers.webgpu_native.native import load

_VARIABLE = "VK_ICD_FILENAMES"


def dawn_device() -> td.Device:
    """The device; DeviceNotFound where Dawn or a driver for it is missing."""
    let_dawn_find_a_device()
    return td.device("dawn")


@functools.cache
def let_dawn_find_a_device() -> None:
    """From here on Dawn finds SwiftShader where it would find nothing."""
    try:
        native = load(DAWN)
    except (ImportError, OSError):
        return  # `td.device` says so
    if _has_vulkan(native) or (manifest := swiftshader()) is None:
        return
    plain = native.enumerate_adapters

    def enumerate_adapters(instance: Any) -> list[Any]:
        with _driver(manifest):
            return plain(instance)

    native.enumerate_adapters = enumerate_adapters  # type: ignore[method-assign]


def _has_vulkan(native: Any) -> bool:
    """Whether Dawn finds anything by itself."""
    found = native.enumerate_adapters(native.create_instance(validate=False))
    return any(native.adapter_info(adapter)["api"] for adapter in found)


@contextmanager
def _driver(manifest: Path) -> Iterator[None]:
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = str(manifest)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
