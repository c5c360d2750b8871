"""The devices of this machine with their streams, and the choice of one.

A backend is asked for its devices once, when they are first needed. `device("cpu")` never loads a
graphics driver.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from treadle.core import forks
from treadle.core.errors import DeviceNotFound
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.once import once
from treadle.core.recent_cache import RecentCache
from treadle.drivers import BACKENDS
from treadle.runtime.libraries import ForeignStream
from treadle.runtime.memory import Pool, SharedStorages
from treadle.runtime.weak_registry import WeakRegistry

if TYPE_CHECKING:
    from treadle.core.traits import Traits
    from treadle.drivers import base

# How many compiled kernels, and how many programs of array expressions, a device caches.
_RECENT_KERNELS = 1024
_RECENT_PROGRAMS = 512

_log = logging.getLogger("treadle")
_lock = forks.lock()
_opened: dict[tuple[str, str], Device] = {}
_listed: dict[tuple[Any, ...], tuple[DeviceInfo, ...]] = {}  # by backends and choices
_default: Device | None = None
# The device of `use_device`, before the default one.
scoped: contextvars.ContextVar[Device | None] = contextvars.ContextVar("device", default=None)


class Device:
    """A device that kernels run on. Get one from `td.device` or `td.devices`.

    Its driver and its pool are opened at first use. `limits` lower what it allows, so that it
    behaves like a smaller device. It is then a device of its own, with its own memory and kernels,
    and is opened at once, since only the driver knows what it then has.
    """

    def __init__(
        self, backend: base.Backend, info: DeviceInfo, *, limits: Limits | None = None
    ) -> None:
        self._backend = backend
        self._info = info
        self._lowered = limits
        self._driver: base.Device | None = None
        self._pool: Pool | None = None
        self._stream: Stream | None = None
        self.compiled: RecentCache[str, Any] = RecentCache(_RECENT_KERNELS)  # by their keys on disk
        self.builds: dict[str, Any] = {}  # by the same keys, those that are not compiled yet
        self.programs: RecentCache[Any, Any] = RecentCache(
            _RECENT_PROGRAMS
        )  # the array library's kernels
        self.tables: dict[Any, Any] = {}  # cached arrays of constants for kernels
        self.several_streams = False
        if limits is not None:
            self._open()

    @property
    def info(self) -> DeviceInfo:
        """Everything known about the device, as one record."""
        return self._info

    @property
    def id(self) -> str:
        """The name that `td.device` takes: "cpu", "webgpu:0"."""
        return self._info.id

    @property
    def name(self) -> str:
        """The product's name."""
        return self._info.name

    @property
    def backend(self) -> str:
        """The backend that reaches it, for display: "cuda", "webgpu" or "cpu"."""
        return self._info.backend

    @property
    def kind(self) -> str:
        """The kind of device: "discrete", "integrated", "software" or "cpu"."""
        return self._info.kind

    @property
    def vendor(self) -> str:
        """The vendor."""
        return self._info.vendor

    @property
    def driver(self) -> str:
        """The driver's name and version."""
        return self._info.driver

    @property
    def limits(self) -> Limits:
        """The device's limits (bytes, threads)."""
        return self._info.limits

    @property
    def features(self) -> frozenset[str]:
        """Its optional features: "float16", "subgroups", …"""
        return self._info.features

    @property
    def traits(self) -> Traits:
        """The traits that all decisions which depend on the kind of device are based on."""
        return self._info.traits

    def shares_backend(self, other: Device) -> bool:
        """Whether both devices belong to one backend, which may then copy between them."""
        return self._backend is other._backend

    @property
    def handle(self) -> base.Device:
        """The opened driver device."""
        driver = self._driver
        if driver is None:
            driver = self._open()
        return driver

    def _open(self) -> base.Device:
        with _lock:
            if self._driver is None:
                self._driver = self._backend.open(self._info, limits=self._lowered)
                self._info = self._driver.info
                self._pool = Pool(self._driver)
            return self._driver

    def is_open_as(self, driver: base.Device) -> bool:
        """Whether this is its current driver device (it may have been closed and reopened)."""
        return self._driver is driver

    @property
    def pool(self) -> Pool:
        """The device's memory pool."""
        if self._pool is None:
            _ = self.handle
        assert self._pool is not None
        return self._pool

    @property
    def shared_storages(self) -> SharedStorages:
        """The storages whose memory it shares with other libraries."""
        return self.pool.shared_storages

    @property
    def default_stream(self) -> Stream:
        """The stream of work that names no other."""
        if self._stream is None:
            self._stream = Stream(self, self.handle.default_stream)
        return self._stream

    @property
    def is_capturing(self) -> bool:
        """Whether a graph of its default stream is captured at present, other than by the trace of
        a function. It is not opened for that."""
        stream = self._stream
        return stream is not None and stream.capturing is not None and stream.interrupt is None

    def stream(self, name: str = "") -> Stream:
        """A new stream of work, ordered within itself; traces show its name."""
        made = Stream(self, self.handle.create_stream(), name)
        self.several_streams = True
        return made

    def synchronize(self) -> None:
        """Wait until all work launched on the default stream is done."""
        self.default_stream.synchronize()

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""
        await self.default_stream.synchronize_async()

    def memory_stats(self) -> dict[str, Any]:
        """Bytes `used` by arrays now, at `peak`, `cached` for reuse, and the `driver`'s figures."""
        return self.pool.stats()

    def close(self) -> None:
        """Release the device. Its arrays are lost; the next use opens it again."""
        for build in list(self.builds.values()):
            build.wait()  # compilers use the driver
        with _lock:
            if self._driver is not None:
                self._driver.close()
            self._driver = self._pool = self._stream = None
            self.compiled.clear()
            self.builds.clear()
            self.several_streams = False

    def close_if_lost(self) -> None:
        """Close it if it is known to be gone, so that its next use opens it again."""
        if self._driver is not None and self._driver.is_lost:
            self.close()

    def __repr__(self) -> str:
        return f"<treadle device {self.id}: {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_device, (self.id, self._info.api)


class Stream:
    """Work that runs in order. Get one from `Device.stream()`."""

    def __init__(self, device: Device, handle: base.Stream, name: str = "") -> None:
        self.device = device
        self.name = name
        self.handle = handle
        self.capturing: list[object] | None = None  # while capturing: launches and arrays
        self.foreign_streams: dict[ForeignStream, None] = {}  # while capturing: owners of arrays
        # While a function is traced here: called, with a reason, before an operation that cannot be
        # recorded.
        self.interrupt: Callable[[str], None] | None = None
        streams.add(self)

    def flush(self) -> None:
        """Start what was launched, without waiting for it."""
        self.handle.flush()

    def synchronize(self) -> None:
        """Wait until all work launched here is done."""
        self.handle.synchronize()

    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""
        await self.handle.synchronize_async()

    def __repr__(self) -> str:
        return f"<treadle stream on {self.device.id}>"


streams: WeakRegistry[Stream] = WeakRegistry()  # all open streams


def devices() -> list[Device]:
    """Every usable device, best first: one entry for each physical device and provider.

    >>> import treadle as td
    >>> [each.id for each in td.devices() if each.id == "cpu"]
    ['cpu']
    """
    return _ranked([name for name, entry in BACKENDS.items() if entry.is_listed])


def _ranked(backends: list[str]) -> list[Device]:
    """The devices of these backends, best first. The order of backends decides among equals."""
    found = [_device(name, info) for name in backends for info in _infos(name)]
    return sorted(found, key=lambda device: device.traits.rank)


def device(
    spec: str | Device | None = None, *, power: str | None = None, api: str | None = None
) -> Device:
    """The device that `spec` names: an id ("webgpu:1"), a backend ("cpu", "dawn"), or a Device.
    Capital letters do not matter.

    `power` is "high" or "low": which GPU to prefer where a machine has two. `api` asks for one
    graphics API ("vulkan", "gl", "metal", "d3d12"). DeviceNotFound lists the devices found.

    >>> device("cpu").id
    'cpu'
    """
    if isinstance(spec, Device):
        return spec
    if spec is None:
        return (
            default_device()
            if power is None and api is None
            else device(_graphics(), power=power, api=api)
        )
    if not isinstance(spec, str):
        raise TypeError(f"a device is named by its id or is a Device, not {type(spec).__name__}")
    wanted = spec.lower()
    name = wanted.partition(":")[0]
    if name not in BACKENDS:
        raise _not_found(spec)
    asked = {"api": api, "power": power}
    choice = {key: value for key, value in asked.items() if value is not None}
    if choice and not BACKENDS[name].chooses_api:
        choosing = "api and power choose" if len(choice) > 1 else f"{next(iter(choice))} chooses"
        raise DeviceNotFound(f"{choosing} among WebGPU devices only, and {spec!r} is not one")
    for info in _infos(name, **choice):
        if wanted in (info.id, name):
            return _device(name, info)
    raise _not_found(spec, api)


def _graphics() -> str:
    """The backend to use where only a graphics API or a power preference is given."""
    return next(name for name, entry in BACKENDS.items() if entry.chooses_api)


def missing() -> dict[str, str]:
    """Why backends have no device of this machine, and what would make one appear, by backend."""
    return {name: _backend(name).why_none() for name in BACKENDS if not _infos(name)}


def _named(spec: str | Device | None) -> Device:
    return device(spec)


def memory_stats(device: str | Device | None = None) -> dict[str, Any]:
    """A device's memory (the default one's if None): bytes `used` by arrays now, at `peak`,
    `cached` for reuse, and the `driver`'s figures.

    >>> sorted(memory_stats("cpu"))
    ['cached', 'driver', 'peak', 'used']
    """
    return _named(device).memory_stats()


def restored_device(spec: str, api: str) -> Device:
    """The device that a pickle names, by its graphics API too where that must be given."""
    return device(spec, api=api) if api == "gl" else device(spec)


def default_device() -> Device:
    """The device used where none is named: that of `use_device`, `set_default_device` or
    TREADLE_DEVICE, else the best one found.

    >>> import treadle as td
    >>> with td.use_device("cpu"):
    ...     td.default_device().id
    'cpu'
    """
    global _default
    chosen = scoped.get()
    if chosen is not None:
        return chosen
    if _default is None:
        wanted = os.environ.get("TREADLE_DEVICE")
        automatic = [name for name, entry in BACKENDS.items() if not entry.by_name_only]
        _default = _from_environment(wanted) if wanted else _ranked(automatic)[0]
        if not wanted:
            for hint in hints():
                _log.warning("%s (until then kernels run on %s)", hint, _default.id)
    return _default


def known_default() -> Device | None:
    """The device used where none is named, if that was asked for or set before: to find it opens
    the drivers of all backends."""
    return scoped.get() or _default


def _from_environment(wanted: str) -> Device:
    try:
        return device(wanted)
    except DeviceNotFound as error:
        raise DeviceNotFound(f"TREADLE_DEVICE is {wanted!r}: {error}") from None


def hints() -> list[str]:
    """A line for each backend that lacks a package to use hardware of this machine."""
    found = (_backend(name).hint() for name, entry in BACKENDS.items() if not entry.by_name_only)
    return [hint for hint in found if hint is not None]


def set_default_device(spec: str | Device | None) -> None:
    """Use this device where none is named; None goes back to the automatic choice.

    >>> import treadle as td
    >>> td.set_default_device("cpu")
    >>> td.zeros(2).device.id
    'cpu'
    >>> td.set_default_device(None)
    """
    global _default
    _default = None if spec is None else device(spec)


@contextlib.contextmanager
def use_device(spec: str | Device) -> Iterator[Device]:
    """Within the block (and thread or task), use this device where none is named.

    >>> import treadle as td
    >>> with td.use_device("cpu"):
    ...     td.ones(2).device.id
    'cpu'
    """
    chosen = device(spec)
    token = scoped.set(chosen)
    try:
        yield chosen
    finally:
        scoped.reset(token)


def is_available(spec: str) -> bool:
    """Whether `device(spec)` would find a device.

    >>> import treadle as td
    >>> td.is_available("cpu")
    True
    """
    try:
        device(spec)
    except DeviceNotFound:
        return False
    return True


@once
def _backend(name: str) -> base.Backend:
    entry = BACKENDS[name]
    made: base.Backend = getattr(importlib.import_module(entry.module), entry.maker)()
    made.code_store = _CodeStore()
    return made


class _CodeStore:
    """The cache of kernels on disk, for drivers."""

    def load(self, *parts: str) -> bytes | None:
        """What was saved for these texts."""
        from treadle.runtime import disk_cache, settings  # most processes only list devices

        return disk_cache.load(disk_cache.key_of(*parts)) if settings.disk_cache else None

    def save(self, content: bytes, *parts: str) -> None:
        """Keep code."""
        from treadle.runtime import disk_cache, settings

        if settings.disk_cache:
            disk_cache.save(disk_cache.key_of(*parts), content)


def _infos(name: str, **choice: str) -> tuple[DeviceInfo, ...]:
    key = (name, *sorted(choice.items()))
    with _lock:
        found = _listed.get(key)
        if found is None:
            found = _listed[key] = tuple(_backend(name).list_devices(**choice))
        return found


async def init() -> None:
    """Prepare the devices of a web page, which come as promises: `await td.init()` once, before
    anything else that uses a device. After a device was lost it opens a new one.

    Where Python can wait for promises ([`treadle.runtime.sync_available`][]), and outside browsers,
    it is not needed, and does no harm.

    >>> import asyncio, treadle as td
    >>> asyncio.run(td.init())
    """
    if sys.platform == "emscripten":
        from treadle.runtime import page_storage

        await page_storage.load()
    for name in BACKENDS:
        await _backend(name).prepare()
    for device in list(_opened.values()):
        device.close_if_lost()
    for key in [key for key, found in _listed.items() if not found]:
        del _listed[key]  # what had no devices may have some now


def _device(name: str, info: DeviceInfo) -> Device:
    with _lock:
        key = (info.id, info.api)
        if key not in _opened:
            _opened[key] = Device(_backend(name), info)
        return _opened[key]


def _not_found(spec: str, api: str | None = None) -> DeviceNotFound:
    name = spec.lower().partition(":")[0]
    asked = f"no device {spec!r}" + (f" through {api}" if api else "")
    found = ", ".join(f"{d.id} ({d.name})" for d in devices()) or "none"
    if name in BACKENDS:
        hint = "Use one of these ids." if _infos(name) else _backend(name).why_none()
    else:
        hint = f"Backends are {', '.join(sorted(BACKENDS))}."
    return DeviceNotFound(f"{asked}. Found: {found}. {hint[:1].upper()}{hint[1:]}")
