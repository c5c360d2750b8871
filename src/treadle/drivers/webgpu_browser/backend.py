"""The door to the browser's GPU.

An adapter and a device come as promises. `await td.init()` awaits them; without it they are waited
for where Python can wait. An adapter gives one device only, so each device has one of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceNotFound, WouldBlock
from treadle.core.limits import DeviceInfo, Limits
from treadle.drivers.base import Backend
from treadle.drivers.webgpu_browser.device import BrowserDevice, Heard
from treadle.drivers.webgpu_browser.waiting import can_wait, wait
from treadle.drivers.webgpu_rules.traits import (
    MOST_BOUND,
    Kind,
    subgroup_size,
    traits_of,
    whole_vectors,
)

_POWER = {"high": "high-performance", "low": "low-power"}
_APIS = ("vulkan", "metal", "d3d12", "gl")
_VENDORS = {
    "nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "apple": "Apple", "arm": "Arm",
    "qualcomm": "Qualcomm", "imagination": "Imagination", "microsoft": "Microsoft",
    "google": "Google", "mesa": "Mesa",
}  # fmt: skip
# Our features, each with the browser's name.
_FEATURES = {"float16": "shader-f16", "subgroups": "subgroups", "timestamps": "timestamp-query"}
_BROWSERS = re.compile(r"(Firefox|Edg|Chrome|Node\.js|Version)/(\d+)")
_SOFTWARE = ("swiftshader", "llvmpipe", "warp")


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter, which gives one device."""

    found: Any  # JavaScript's
    info: DeviceInfo
    raw: dict[str, int]  # its limits, by the browser's names
    features: tuple[str, ...]  # by the browser's names


@dataclass(frozen=True, slots=True)
class Opened:
    """A device of JavaScript's that no device of ours has yet."""

    helper: Any
    heard: Heard
    adapter: Adapter


@cache
def _helper() -> Any:
    from pyodide.code import run_js

    return run_js(Path(__file__).with_name("helper.js").read_text())


class BrowserBackend(Backend):
    """The device of the page."""

    name = "webgpu"

    def __init__(self) -> None:
        self._known: dict[str, DeviceInfo | None] = {}  # by preference of power; None: no adapter
        self._ready: Opened | None = None  # for the next `open` without limits
        self._preparing = asyncio.Lock()
        self._opened: Callable[[], BrowserDevice | None] = lambda: None  # without limits

    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The page's adapter, if there is one. WouldBlock if it was not asked for yet, and Python
        cannot wait here."""
        power, api = choice.get("power", "high"), choice.get("api")
        if power not in _POWER:
            raise ValueError(f"power is one of {', '.join(_POWER)}; not {power!r}")
        if api not in (None, *_APIS):
            raise ValueError(f"api is one of {', '.join(_APIS)}; not {api!r}")
        if api is not None or not _has_gpu():
            return []
        if power not in self._known:
            _check_can_open()
            self._note(power, wait(_helper().findAdapter(_POWER[power])))
        info = self._known[power]
        return [] if info is None else [info]

    def _note(self, power: str, found: Any) -> Adapter | None:
        adapter = None if found is None else _describe(found)
        self._known[power] = None if adapter is None else adapter.info
        return adapter

    def why_none(self) -> str:
        """Why there is no device, and what would make one appear."""
        if not _is_secure():
            return "this page is not served securely: WebGPU is there on https and localhost only"
        if not _has_gpu():
            return (
                "this browser has no WebGPU (navigator.gpu is missing): use a current Chrome, "
                "Edge, Safari or Firefox; on Linux, Chrome needs its flag --enable-unsafe-webgpu"
            )
        return (
            "the browser has WebGPU but gives no adapter: it blocks this GPU or its driver, or its "
            "graphics acceleration is off. chrome://gpu (in Firefox about:support) says why"
        )

    def hint(self) -> str | None:
        """Why the page's GPU is not used."""
        return None if any(self._known.values()) else f"no GPU is used: {self.why_none()}"

    async def prepare(self) -> None:
        """Find the adapter and open the device for the next `open`, unless one is there."""
        async with self._preparing:
            opened = self._opened()
            if self._ready is not None or not _has_gpu() or (opened and not opened.is_lost):
                return
            adapter = self._note("high", await _helper().findAdapter(_POWER["high"]))
            if adapter is not None:
                heard = Heard()
                self._ready = Opened(await _request(adapter, heard, adapter.raw), heard, adapter)

    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> BrowserDevice:
        """Open the device; with `limits` it allows no more than those."""
        ready, self._ready = (None, self._ready) if limits else (self._ready, None)
        if ready is None or ready.heard.errors:
            from pyodide.ffi import JsException

            _check_can_open()
            adapter = self._note("high", wait(_helper().findAdapter(_POWER["high"])))
            if adapter is None:
                raise DeviceNotFound(f"there is no {info.id} any more: {self.why_none()}")
            raw = adapter.raw if limits is None else _reduced(adapter.raw, limits)
            heard = Heard()
            try:
                ready = Opened(wait(_request(adapter, heard, raw)), heard, adapter)
            except JsException as error:
                raise DeviceNotFound(f"{info.name} could not be opened: {error}") from None
            if limits is not None:
                ready = replace(ready, adapter=_lowered(adapter, raw, limits))
        adapter = ready.adapter
        alignment = adapter.raw["minUniformBufferOffsetAlignment"]
        device = BrowserDevice(ready.helper, ready.heard, adapter.info, alignment)
        if limits is None:
            self._opened = weakref.ref(device)
        return device


def _request(adapter: Adapter, heard: Heard, raw: dict[str, int]) -> Any:
    """A promise for JavaScript's side of a device."""
    from pyodide.ffi import create_proxy

    features = json.dumps(adapter.features)
    return _helper().openDevice(adapter.found, features, json.dumps(raw), create_proxy(heard))


def _has_gpu() -> bool:
    import js

    navigator = getattr(js, "navigator", None)
    return getattr(navigator, "gpu", None) is not None


def _is_secure() -> bool:
    import js

    return bool(getattr(js, "isSecureContext", True))  # only pages have it


def _check_can_open() -> None:
    if not can_wait():
        raise WouldBlock(
            "the browser gives its GPU as a promise, and Python cannot wait for one here: "
            "`await td.init()` first, once in the page"
        )


def _describe(found: Any) -> Adapter:
    facts = json.loads(found.facts)
    vendor = _VENDORS.get(facts["vendor"], facts["vendor"])
    names = (vendor, facts["architecture"], facts["device"])
    name = facts["description"] or " ".join(filter(None, names)) or "WebGPU adapter"
    software = facts["software"] or any(word in name.lower() for word in _SOFTWARE)
    kind: Kind = "integrated"
    if software:
        kind = "software"
    elif vendor == "NVIDIA":
        kind = "discrete"
    features = frozenset(facts["features"])
    low, high = facts["subgroups"]
    subgroup = subgroup_size((low, high)) if "subgroups" in features else 0
    ours = {ours for ours, theirs in _FEATURES.items() if theirs in features}
    info = DeviceInfo(
        id="webgpu:0",
        name=name,
        backend="webgpu",
        kind=kind,
        traits=traits_of(kind),
        vendor=vendor,
        driver=_browser(),
        api="",
        dialect="tint",
        limits=_limits(facts["limits"], subgroup),
        features=frozenset(ours if subgroup else ours - {"subgroups"}),
    )
    return Adapter(found.adapter, info, facts["limits"], tuple(sorted(features)))


def _browser() -> str:
    """The browser and its version, as "Chrome 156"."""
    import js

    found = _BROWSERS.findall(str(getattr(js.navigator, "userAgent", "")))
    return " ".join(found[0]).replace("Version", "Safari").replace("Edg ", "Edge ") if found else ""


def _limits(raw: dict[str, int], subgroup: int) -> Limits:
    largest_grid = raw["maxComputeWorkgroupsPerDimension"]
    bound = min(raw["maxStorageBufferBindingSize"], raw["maxBufferSize"])
    return Limits(
        max_threads_per_block=raw["maxComputeInvocationsPerWorkgroup"],
        max_block=Dim3(
            raw["maxComputeWorkgroupSizeX"],
            raw["maxComputeWorkgroupSizeY"],
            raw["maxComputeWorkgroupSizeZ"],
        ),
        max_grid=Dim3(largest_grid, largest_grid, largest_grid),
        max_shared_memory=raw["maxComputeWorkgroupStorageSize"],
        max_buffer_size=whole_vectors(raw["maxBufferSize"]),
        max_binding_size=min(whole_vectors(bound), MOST_BOUND),
        max_buffers_per_kernel=min(
            raw["maxStorageBuffersPerShaderStage"], raw["maxBindingsPerBindGroup"]
        ),
        subgroup_size=subgroup,
        buffer_alignment=raw["minStorageBufferOffsetAlignment"],
    )


def _reduced(raw: dict[str, int], wanted: Limits) -> dict[str, int]:
    """Limits to ask for, at most those wanted."""
    most = {
        "maxComputeInvocationsPerWorkgroup": wanted.max_threads_per_block,
        "maxComputeWorkgroupSizeX": wanted.max_block.x,
        "maxComputeWorkgroupSizeY": wanted.max_block.y,
        "maxComputeWorkgroupSizeZ": wanted.max_block.z,
        "maxComputeWorkgroupsPerDimension": wanted.max_grid.x,
        "maxComputeWorkgroupStorageSize": wanted.max_shared_memory,
        "maxBufferSize": wanted.max_buffer_size,
        "maxStorageBufferBindingSize": wanted.max_binding_size,
        "maxStorageBuffersPerShaderStage": wanted.max_buffers_per_kernel,
    }
    return {name: min(value, most.get(name, value)) for name, value in raw.items()}


def _lowered(adapter: Adapter, raw: dict[str, int], limits: Limits) -> Adapter:
    """The adapter as a device with lower limits sees it."""
    info = adapter.info
    kept = info.limits.subgroup_size if limits.subgroup_size == info.limits.subgroup_size else 0
    features = info.features if kept else info.features - {"subgroups"}
    return replace(adapter, info=replace(info, limits=_limits(raw, kept), features=features))
