"""Tint, Dawn's WGSL compiler, as a checker: no GPU and no driver needed.

Dawn has a backend that runs nothing ("Null") but offers every feature, float16 and subgroups
among them, so a shader goes through Tint's parser, its type rules and its uniformity analysis
on any machine where the `wgpudawn` wheel installs.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

FEATURES = ("shader-f16", "subgroups", "chromium-experimental-subgroup-matrix")


@functools.cache
def _device() -> Any:
    import wgpudawn
    from wgpudawn.backends.dawn.extras import set_instance_extras

    before = os.environ.get("WGPU_BACKEND_TYPE")
    os.environ["WGPU_BACKEND_TYPE"] = "Null"  # read at the request, by Dawn's Python side
    try:
        set_instance_extras(enable_toggles=["allow_unsafe_apis"])
        adapter = wgpudawn.gpu.request_adapter_sync()
        wanted = [name for name in FEATURES if name in adapter.features]
        return adapter.request_device_sync(required_features=wanted)
    finally:
        if before is None:
            del os.environ["WGPU_BACKEND_TYPE"]
        else:
            os.environ["WGPU_BACKEND_TYPE"] = before


def tint_error(source: str) -> str | None:
    """What Tint says against a module and each of its compute entry points; None if nothing."""
    import wgpudawn

    device = _device()
    try:
        module = device.create_shader_module(code=source)
        for name in re.findall(r"@compute\b[^{;]*?\bfn\s+(\w+)", source):
            stage = {"module": module, "entry_point": name}
            device.create_compute_pipeline(layout="auto", compute=stage)
    except wgpudawn.GPUError as error:
        return str(error)
    return None
