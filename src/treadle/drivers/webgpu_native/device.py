"""One opened WebGPU device: memory, compiled kernels, submission, waiting, and its errors."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from treadle.codegen.records import KernelCode
from treadle.core import forks, polling
from treadle.core.errors import (
    DeviceNotFound,
    LaunchError,
    TreadleError,
)
from treadle.core.limits import DeviceInfo, Limits
from treadle.drivers.base import FORKED, Event
from treadle.drivers.webgpu_native.adapters import Adapter, read_limits, reduce_limits
from treadle.drivers.webgpu_native.batch import Batch, Deferred, LiveBatch
from treadle.drivers.webgpu_native.encode_loop import EncodeLoop, encode_loop
from treadle.drivers.webgpu_native.events import TimestampPool, WebgpuEvent, read_times
from treadle.drivers.webgpu_native.matrix_units import working_units
from treadle.drivers.webgpu_native.memory import (
    LARGE_DOWNLOAD,
    LARGE_UPLOAD,
    SMALL_DOWNLOAD,
    SMALL_UPLOAD,
    Staging,
    StagingPool,
    WebgpuBuffer,
)
from treadle.drivers.webgpu_native.native import (
    COPY_DST,
    COPY_SRC,
    OUT_OF_MEMORY_ERROR,
    STORAGE,
    Handle,
    Listener,
)
from treadle.drivers.webgpu_native.pipelines import (
    Layout,
    WebgpuKernel,
    compile_kernel,
)
from treadle.drivers.webgpu_native.provider import MatrixUnit
from treadle.drivers.webgpu_native.stream import WebgpuStream
from treadle.drivers.webgpu_rules.device import MemoryDevice

MAX_IN_FLIGHT = 8  # submissions; beyond that, flushing waits for the oldest
_SPINS = 400  # polls in a row
_SPIN_SECONDS = 5e-4  # that a wait for a GPU polls without sleeping; a software one needs the CPU

_opened: weakref.WeakSet[WebgpuDevice] = weakref.WeakSet()


class WebgpuDevice(MemoryDevice[WebgpuBuffer, WebgpuKernel]):
    """A device of one of the libraries. `validate` builds checked shaders and labels everything."""

    memory = WebgpuBuffer
    teller = "the driver"
    opened_by = "close() of the device has its next use open it again"

    def __init__(self, adapter: Adapter, limits: Limits | None, *, validate: bool) -> None:
        super().__init__(adapter.info)
        native = self.native = adapter.native
        self.loop: EncodeLoop = encode_loop(native)
        self.validate = validate
        self._forked = False
        self._errors: list[tuple[int, str]] = []
        # Of threads that compile, by their identities: what is wrong is theirs to tell.
        self._compiling: dict[int, list[tuple[int, str]]] = {}
        self.batches: tuple[Batch, ...] = ()  # replaced, never changed, so readers need no lock
        # The stream whose batch is open, if one is: never two of them, so that work has one order.
        self.appending: Callable[[], WebgpuStream | None] = lambda: None
        self.dropped: deque[Staging] = deque(maxlen=64)
        self._identity = 0
        self.layouts: dict[tuple[tuple[str, ...], bool], Layout] = {}
        self._timestamps: TimestampPool | None = None
        self._matrix_units: tuple[MatrixUnit, ...] = ()

        raw = native.adapter_limits(adapter.handle)
        if limits is not None:
            reduce_limits(raw, limits)
        self.info = _reduced_info(adapter.info, raw, limits)
        self._spin_seconds = 0.0 if self.info.kind == "software" else _SPIN_SECONDS
        self.unified = "unified_memory" in self.info.features
        # Whether kernels can use memory that the host maps, be it across a bus.
        self.mappable = adapter.features.issuperset(native.provider.needs["unified_memory"])
        self.uniform_alignment = raw.minUniformBufferOffsetAlignment
        handle, listener = native.request_device(
            adapter.instance,
            adapter.handle,
            raw,
            sorted(adapter.features),
            self._listener(),
            validate=validate,
        )
        if handle is None:
            raise DeviceNotFound(f"{adapter.info.name} could not be opened: {listener}")
        self._listener_number = int(listener)
        self._instance = adapter.instance
        self.handle: Handle = handle
        self.poller: Handle = handle if native.provider.poll.of_device else adapter.instance
        self.queue: Handle = native.queue(handle)
        self.timestamp_period = native.timestamp_period(self.queue)
        self.serial = 0  # of the last submission
        self._done = native.flag()  # serial of the last finished one
        self._done_info = native.done_info(self.loop.on_done, self._done)
        self.parameter_layout = native.create_bind_group_layout(handle, ("uniform",), dynamic=True)
        self.small_uploads = StagingPool(self, SMALL_UPLOAD, write=True, keep=MAX_IN_FLIGHT + 2)
        self.large_uploads = StagingPool(self, LARGE_UPLOAD, write=True, keep=3)
        self._small_downloads = StagingPool(self, SMALL_DOWNLOAD, write=False, keep=4)
        self._large_downloads = StagingPool(self, LARGE_DOWNLOAD, write=False, keep=3)
        self._default_stream: WebgpuStream | None = None
        _opened.add(self)

    @property
    def default_stream(self) -> WebgpuStream:  # type: ignore[override]
        """The stream of callers that name none."""
        if self._default_stream is None:
            self._default_stream = WebgpuStream(self)
        return self._default_stream

    def create_stream(self) -> WebgpuStream:
        """A new stream; all streams share the device's one queue, in the order of appending."""
        self.check()
        return WebgpuStream(self)

    def compile(self, code: KernelCode, binary: bytes | None = None) -> WebgpuKernel:
        """Build printed WGSL. WebGPU gives no machine code to keep, so there is never a binary."""
        self.check()
        return compile_kernel(self, code)

    def cache_key(self) -> str:
        """What makes compiled code of this device unfit for another one."""
        return f"{super().cache_key()}/{self.native.name} {self.native.version}"

    # ------------------------------------------------------------------ memory

    def allocate_internal(self, size: int, usage: int = 0) -> WebgpuBuffer:
        """Memory of the driver's own, not counted in `memory_stats`."""
        size = -(-size // 4) * 4
        with self.lock:
            self.check()
            handle = self.native.create_buffer(
                self.handle, size, usage or STORAGE | COPY_SRC | COPY_DST
            )
            try:
                self.raise_errors(f"allocating {size:,} bytes")
            except TreadleError:
                self.native.release_buffer(handle)
                raise
            return self.wrap(handle, size)

    def wrap(
        self, handle: Handle, size: int, start: int = 0, parent: WebgpuBuffer | None = None
    ) -> WebgpuBuffer:
        """A buffer object for a handle."""
        with self.lock:
            self._identity += 1
            return WebgpuBuffer(self, self._identity, size, handle, start, parent)

    def _part(self, buffer: WebgpuBuffer, start: int, size: int) -> WebgpuBuffer:
        return self.wrap(buffer.handle, size, start, buffer)

    def _release_memory(self, buffer: WebgpuBuffer) -> None:
        self.release_later(self.native.release_buffer, buffer.handle)

    def _release_group(self, number: int) -> None:
        handle = self.native.handle("WGPUBindGroup", number)
        self.release_later(self.native.release_bind_group, handle)

    def matrix_units(self) -> tuple[MatrixUnit, ...]:
        """The matrix products that the device's tensor cores compute correctly."""
        return self._matrix_units

    def try_matrix_units(self, claimed: tuple[MatrixUnit, ...]) -> None:
        """Keep those of the claimed products whose results are correct. If none is, the device
        counts as one without tensor cores."""
        self._matrix_units = working_units(self, claimed)
        halves = tuple(
            (unit.m, unit.n, unit.k)
            for unit in self._matrix_units
            if (unit.input, unit.result) == ("f16", "f32")
        )
        self.info = replace(self.info, traits=replace(self.info.traits, matrix_units=halves))
        if not self._matrix_units:
            features = self.info.features - {"tensor_cores"}
            self.info = replace(self.info, features=features)

    # ------------------------------------------------------------------ shared by the driver

    def layout(self, types: tuple[str, ...], *, parameters: bool) -> Layout:
        """The pipeline layout for buffers bound as `types`."""
        key = (types, parameters)
        if key not in self.layouts:
            self.layouts[key] = Layout(self, types, parameters=parameters)
        return self.layouts[key]

    @property
    def timestamps(self) -> TimestampPool:
        """Places for timestamps."""
        with self.lock:
            if self._timestamps is None:
                self._timestamps = TimestampPool(self)
            return self._timestamps

    def read_times(self, events: Sequence[Event]) -> None:
        """Let events know their times, by a read for many."""
        read_times([event for event in events if isinstance(event, WebgpuEvent)])

    def download_pool(self, size: int) -> StagingPool:
        """The staging buffers for a read of `size` bytes."""
        small = size <= SMALL_DOWNLOAD - 8
        return self._small_downloads if small else self._large_downloads

    def add_batch(self, batch: Batch) -> None:
        """Register a batch, whose records may name handles."""
        with self.lock:
            self.batches = (*self.batches, batch)

    def remove_batch(self, batch: Batch) -> None:
        """The batch will not be appended to any more."""
        with self.lock:
            self.batches = tuple(other for other in self.batches if other is not batch)
        batch.settle()

    def release_later(self, release: Callable[[Any], None], handle: Any) -> None:
        """Release a handle as soon as no unsubmitted record can name it. Safe in finalizers."""
        if self._forked:
            return  # the library's threads do not exist in this process
        waiting = [batch for batch in self.batches if batch.open]
        if not waiting:
            release(handle)
            return
        deferred = Deferred(release, handle, len(waiting))
        for batch in waiting:
            batch.after.append(deferred)

    # ------------------------------------------------------------------ submission and waiting

    def submit(self, batch: LiveBatch, commands: Any) -> int:
        """Encode and submit a batch; its serial number. `commands` is the stream's C array of 1.

        Raises what the library found wrong with it, and then nothing of it has run.
        """
        native = self.native
        with self.lock:
            self.check()
            encoder = native.create_encoder(self.handle)
            self.loop.encode(encoder, batch.pointer, batch.count)
            for chunk in batch.chunks:
                chunk.close()
            commands[0] = native.finish(encoder)
            try:
                # A submission that the library would refuse ends the process: look first.
                self.raise_errors("the work appended so far")
                if batch.used and batch.parameters is not None:
                    words = -(-batch.used // 4) * 4
                    handle = batch.parameters.handle
                    native.write_buffer(self.queue, handle, batch.block_pointer, words)
                native.submit(self.queue, commands)
                self.serial += 1
                native.on_done(self.queue, self._done_info, self.serial)
            finally:
                native.release_encoder(encoder, commands[0])
                if self.lost is None:
                    for chunk in batch.chunks:
                        chunk.request_map()
                        pool = self.small_uploads
                        (pool if chunk.size == pool.size else self.large_uploads).give(chunk)
            return self.serial

    def limit_work_in_flight(self) -> None:
        """Wait if the device is many submissions behind, so that memory does not grow."""
        if self.serial - self._done[0] > MAX_IN_FLIGHT:
            self.wait_for(self.serial - MAX_IN_FLIGHT)

    @property
    def idle(self) -> bool:
        """Whether all that was submitted is known to be done."""
        done: int = self._done[0]
        return done >= self.serial

    def is_done(self, serial: int) -> bool:
        """Whether a submission is finished."""
        return self.loop.spin(self.poller, self._done, serial, 1) >= serial

    def wait_for(self, serial: int) -> None:
        """Wait until a submission is finished."""
        self.wait(self._done, serial)

    async def wait_for_async(self, serial: int) -> None:
        """`wait_for`, awaiting instead of blocking."""
        await self.wait_async(self._done, serial)

    def wait(self, flag: Any, value: int, until: float | None = None) -> bool:
        """Wait until a flag has reached a value: spinning at first, then in naps; False if it has
        not at a time of `time.perf_counter`.

        A nap is an eighth of the time waited so far, so that it costs little in proportion.
        """
        spin, poller = self.loop.spin, self.poller
        began = time.perf_counter()
        while spin(poller, flag, value, _SPINS) < value:
            if time.perf_counter() - began >= self._spin_seconds:
                break
            if until is not None and time.perf_counter() >= until:
                return False
        else:
            return True
        while spin(poller, flag, value, 1) < value:
            self.check()
            if until is not None and time.perf_counter() >= until:
                return False
            time.sleep(polling.nap(time.perf_counter() - began))
        return True

    async def wait_async(self, flag: Any, value: int) -> None:
        """`wait`, giving way to the event loop between polls, and at least once."""

        def is_reached() -> bool:
            reached: bool = self.loop.spin(self.poller, flag, value, 1) >= value
            if not reached:
                self.check()
            return reached

        await polling.until(is_reached)

    # ------------------------------------------------------------------ errors and the end

    def _listener(self) -> Listener:
        """The callbacks for errors and loss, which the library may call at any time. They do not
        refer to the device, which could not be freed otherwise."""
        errors, lost = self._errors, weakref.WeakMethod(self._on_lost)
        compiling = self._compiling

        def on_lost(message: str) -> None:
            tell = lost()
            if tell is not None:
                tell(message)

        def on_error(type: int, message: str) -> None:  # within the call that is wrong
            compiling.get(threading.get_ident(), errors).append((type, message))

        return Listener(on_error, on_lost)

    def _on_lost(self, message: str) -> None:
        if self.lost is None:
            self.lose(message or "the driver gave no reason")

    def _end_batches(self) -> None:
        for batch in self.batches:
            batch.room = 0

    @contextmanager
    def compiling(self) -> Iterator[list[tuple[int, str]]]:
        """For a thread that compiles a kernel, without the device's lock: what the library
        complains about in its calls. The runtime closes no device for which it compiles."""
        found = self._compiling[threading.get_ident()] = []
        try:
            yield found
        finally:
            del self._compiling[threading.get_ident()]

    def take_errors(self) -> list[tuple[int, str]]:
        """What the library complained about since the last look: (WGPUErrorType, message)."""
        errors, self._errors[:] = list(self._errors), []
        return errors

    @property
    def has_errors(self) -> bool:
        """Whether the library has complained."""
        return bool(self._errors)

    def raise_errors(self, what: str) -> None:
        """Raise the first complaint, if any, as the class that it is."""
        if not self._errors:
            return
        type, message = self.take_errors()[0]
        self.check()
        words = message.lower()
        if "device is lost" in words or "device lost" in words:
            raise self.lose(message.strip())
        # wgpu-native files a failed allocation under validation errors.
        if type == OUT_OF_MEMORY_ERROR or "not enough memory" in words:
            raise self.out_of_memory(f"for {what}", message)
        raise LaunchError(f"{self.info.id} refused {what}: {message.strip()}")

    def close(self) -> None:
        """Release the device and all of its memory; using it afterwards is DeviceLost."""
        with self.lock:
            if self._forked or not self._end():
                return
            native = self.native
            native.destroy_device(self.handle)
            self.bind_groups.forget_all()
            for batch in self.batches:
                batch.at = 0
                if isinstance(batch, LiveBatch):
                    for chunk in batch.chunks:
                        chunk.release()
                batch.settle()
            for layout in self.layouts.values():
                native.release_pipeline_layout(layout.handle)
                native.release_bind_group_layout(layout.group_layout)
            self.layouts.clear()
            self._free_all()
            for pool in (
                self.small_uploads, self.large_uploads,
                self._small_downloads, self._large_downloads,
            ):  # fmt: skip
                pool.release()
            if self._timestamps is not None:
                self._timestamps.release()
            self._default_stream = self._move_kernel = None

    def abandon_after_fork(self) -> None:
        """In a forked child: the device belongs to the parent."""
        self._forked = True
        self.lose(FORKED)

    def __del__(self) -> None:
        if getattr(self, "handle", None) is None or self._forked:
            return
        self.close()
        self.native.release_bind_group_layout(self.parameter_layout)
        self.native.release_device(self.handle, self.queue, self._listener_number)


@forks.in_child
def _abandon_all(half_changed: bool) -> None:
    for device in list(_opened):
        device.abandon_after_fork()


def _reduced_info(info: DeviceInfo, raw: Any, limits: Limits | None) -> DeviceInfo:
    """The info of a device opened with limits: what it will really have."""
    if limits is None:
        return info
    subgroup = info.limits.subgroup_size
    kept = subgroup if limits.subgroup_size == subgroup else 0
    features = info.features if kept else info.features - {"subgroups", "tensor_cores"}
    return replace(info, limits=read_limits(raw, kept), features=features)
