"""One opened card: memory, compiled kernels, streams, and its errors."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

from treadle.codegen.records import KernelCode
from treadle.core import forks
from treadle.core.errors import DeviceLost, LaunchError, OutOfMemory, TreadleError
from treadle.core.limits import DeviceInfo
from treadle.drivers.base import FORKED, Buffer, CompiledKernel, Device, Recording
from treadle.drivers.cuda import decisions, errors, events, modules, order, properties
from treadle.drivers.cuda.blas import Blas
from treadle.drivers.cuda.blas import load as load_blas
from treadle.drivers.cuda.calls import Calls
from treadle.drivers.cuda.library import Library
from treadle.drivers.cuda.mapped import MappedMemory
from treadle.drivers.cuda.memory import CudaBuffer, MemorySource
from treadle.drivers.cuda.properties import Card
from treadle.drivers.cuda.staging import CHUNK, KEPT_CHUNKS, SLOT, Pinned, PinnedPool, UploadRing
from treadle.drivers.cuda.stream import CudaStream, copy_between
from treadle.drivers.cuda.tensor_maps import TensorMapEncoder
from treadle.drivers.dense import DenseProduct, PreparedProduct
from treadle.drivers.program import Item
from treadle.drivers.residents import Residents

_BLOCKING, _NON_BLOCKING = 0, 1  # CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING
_BLOCKING_SYNC, _NO_TIMING = 1, 2  # CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING
# Calls that wait for all that runs in the context (measured with driver 580, where others did not):
# kernels that stay there leave before.
_WAITING = frozenset({
    "cuMemFree", "cuMemFreeHost", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleUnload",
    "cuMemPoolDestroy", "cuMemHostRegister",
})  # fmt: skip
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_CLOSED = "it was closed"
_PATIENCE = 2.0  # seconds that closing a device waits for kernels that stay there
AFTER_A_FAULT = (
    "After such a fault CUDA has this card again only in a new process; other devices (cpu, "
    "webgpu) still work in this one"
)

_opened: weakref.WeakSet[CudaDevice] = weakref.WeakSet()


class CudaDevice(Device):
    """A card, in its primary context, which it shares with the other libraries of the process."""

    default_stream: CudaStream
    residents: Residents
    # Of the class: at the interpreter's end the names of modules are gone before the last streams.
    _is_finalizing = staticmethod(sys.is_finalizing)

    def __init__(self, library: Library, card: Card, info: DeviceInfo) -> None:
        self.info = info
        self.library = library
        self.ordinal = card.ordinal
        self.architecture = card.architecture
        self.lock = forks.lock()
        self.lost: str | None = None
        self.several_streams = False
        self.residents = Residents()
        self._mapped = MappedMemory(self)
        self._card = card
        self._forked = False
        self._identities = itertools.count(1)
        self._buffers: dict[int, CudaBuffer] = {}
        self._allocated = self._peak = 0
        self._streams: weakref.WeakSet[CudaStream] = weakref.WeakSet()
        self._timing_events: list[int] = []
        self._peers: set[int] = set()
        self._blas: tuple[Blas | None] | None = None  # not looked for yet
        get_current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
        self._get_current = get_current(library.address("cuCtxGetCurrent"))
        # Loaded code stays until the device closes: unloading it would wait for all that runs.
        self.modules: list[int] = []
        self.deciding: modules.CudaKernel | None = None  # the kernel of `decisions`

        self._context = library.ask("cuDevicePrimaryCtxRetain", card.handle)
        self.context = int(self._context)
        try:
            self._start(card)
        except BaseException:
            library.bindings.cuDevicePrimaryCtxRelease(card.handle)
            raise
        _opened.add(self)

    def _start(self, card: Card) -> None:
        # The context that libraries choose in a thread that has none is that of device 0.
        self.calls = Calls(self.library, self.context, keep=card.ordinal == 0)
        # A thread may still have the context of a device that was closed: the same, and dead.
        self.do("cuCtxSetCurrent", self.context)
        # Blocking: in order with the legacy default stream, on which PyTorch and CuPy work, with
        # no call. Other streams are for work beside everything else.
        handle = self._make_stream(_BLOCKING)
        self.memory = MemorySource(
            self, handle, pools=card.pools, total=self.info.limits.max_buffer_size
        )
        self.tensor_maps = TensorMapEncoder(self.library)
        self.chunks = PinnedPool(self, CHUNK, KEPT_CHUNKS)
        self.idle_slots: list[Pinned] = []
        self._idle_rings: list[UploadRing] = []
        self.default_stream = CudaStream(self, handle, events.reference(self, handle))
        self._streams.add(self.default_stream)

    def take_slot(self) -> Pinned:
        """Pinned memory for a small read; it goes back to `idle_slots`."""
        try:
            return self.idle_slots.pop()
        except IndexError:
            return Pinned(self, SLOT)

    def take_ring(self) -> UploadRing:
        """Pinned memory for the small writes of a stream."""
        try:
            ring = self._idle_rings.pop()
        except IndexError:
            return UploadRing(self)
        ring.adopt()
        return ring

    def give_ring(self, ring: UploadRing, stream: int) -> None:
        """Take it back from a stream that ends."""
        if self.lost is None and not self._is_finalizing():
            with contextlib.suppress(TreadleError):
                ring.retire(stream)
                self._idle_rings.append(ring)

    def cache_key(self) -> str:
        """What makes compiled code of this device unfit for another one."""
        return f"{super().cache_key()}/sm_{self.architecture}"

    # ------------------------------------------------------------------ calling the driver

    def do(self, name: str, *arguments: int) -> None:
        """Call a function of the driver in this device's context; its failure as an error."""
        if self.lost is not None:
            raise self.lose(self.lost)
        code = self.call(name, *arguments)
        if code:
            raise self.failure(code, name)

    def call(self, name: str, *arguments: int) -> int:
        """Call a function of the driver: its code."""
        if self.residents.inside and name in _WAITING:
            with self.residents.parked():
                return self.calls(name, *arguments)
        return self.calls(name, *arguments)

    def quietly(self, name: str, *arguments: int) -> None:
        """Release something; errors are ignored, since the caller could do nothing about them."""
        if self.lost is None and not self._is_finalizing():
            self.call(name, *arguments)

    def failure(self, code: int, what: str) -> TreadleError:
        """The error to raise for a code of the driver."""
        if self.lost is not None:
            return self.lose(self.lost)
        description = self.library.describe(code)
        if errors.is_sticky(code):
            recent = [name for stream in list(self._streams) for name in stream.recent]
            return self.lose(errors.loss_reason(code, description, recent))
        if code == errors.OUT_OF_MEMORY:
            return OutOfMemory(
                f"{self.info.id} ({self.info.name}) has no memory left for {what}; {self._usage()}"
            )
        return LaunchError(f"{self.info.id} ({self.info.name}) refused {what}: {description}")

    def lose(self, reason: str) -> DeviceLost:
        """Mark the device as lost; the error to raise."""
        if self.lost is None:
            self.lost = self.library.faults[self.ordinal] = reason
            for stream in list(self._streams):
                stream.plain = False  # so that the next launch looks here
        if self.lost == _CLOSED:
            return DeviceLost(f"the device {self.info.id} was closed; open it again to use it")
        return DeviceLost(
            f"{self.info.id} ({self.info.name}) is lost: {self.lost}"
            + ("" if self.lost == FORKED else f". What its memory held is gone. {AFTER_A_FAULT}")
        )

    def check(self) -> None:
        """DeviceLost if the device is gone."""
        if self.lost is not None:
            raise self.lose(self.lost)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Have this thread in the device's context, for libraries that ask which one it is."""
        self.check()
        now = ctypes.c_uint64()
        self._get_current(ctypes.addressof(now))
        if now.value == self.context:
            yield
            return
        bindings = self.library.bindings
        bindings.cuCtxPushCurrent(self._context)
        try:
            yield
        finally:
            bindings.cuCtxPopCurrent()

    def dense_product(self, product: DenseProduct) -> PreparedProduct | None:
        """How cuBLASLt computes a product, if it is installed and does."""
        blas = self.blas
        return blas.prepared(product) if blas is not None else None

    def compose(self, items: Sequence[Item]) -> Recording | None:
        """A program as one graph with conditional nodes, where that is enabled."""
        return decisions.composed(self, items)

    @property
    def blas(self) -> Blas | None:
        """CuBLASLt on this card, if its packages are installed."""
        if self._blas is None:
            library = load_blas()
            with self.lock, self.current():
                self._blas = (None if isinstance(library, str) else Blas(self, library),)
        return self._blas[0]

    # ------------------------------------------------------------------ memory

    def allocate(self, size: int) -> CudaBuffer:
        """New memory. OutOfMemory says what was asked, used and free."""
        self.check()
        if size <= 0:
            raise LaunchError(f"a buffer has at least 4 bytes, not {size}")
        size = -(-size // 4) * 4
        with self.lock:
            code, place = self.memory.allocate(size)
            if code == errors.OUT_OF_MEMORY:
                raise OutOfMemory(
                    f"{self.info.id} ({self.info.name}) cannot allocate {size:,} bytes: "
                    f"{self._usage()}; free some arrays, work in smaller pieces, or see which "
                    "other processes use the card (nvidia-smi)"
                )
            if code:
                raise self.failure(code, f"allocating {size:,} bytes")
            buffer = CudaBuffer(self, next(self._identities), size, place)
            self._buffers[buffer.identity] = buffer
            self._allocated += size
            self._peak = max(self._peak, self._allocated)
            if self.several_streams:
                self.default_stream.note((), (buffer,))
        return buffer

    def allocate_kept(self, size: int) -> CudaBuffer:
        """Memory of a recording's own."""
        return self.allocate(max(size, 4))

    def _usage(self) -> str:
        free, total = self._free_and_total()
        return (
            f"{self._allocated:,} bytes are in use by {len(self._buffers)} buffers, and "
            f"{free:,} of the card's {total:,} bytes are free"
        )

    def _free_and_total(self) -> tuple[int, int]:
        free, total = ctypes.c_uint64(), ctypes.c_uint64()
        if self.lost is None:
            self.calls("cuMemGetInfo", ctypes.addressof(free), ctypes.addressof(total))
        return free.value, total.value

    def borrow_address(self, address: int, size: int, owner: object) -> CudaBuffer:
        """Another library's memory on this card, as a buffer without a copy."""
        self.check()
        return CudaBuffer(self, next(self._identities), size, address, owner)

    def mapped_memory(self, size: int) -> tuple[memoryview, CudaBuffer]:
        """Memory of the process, pinned; it stays the host's after the device's end."""
        self.check()
        memory, place = self._mapped.take(size)
        return memoryview(memory).cast("B"), self.borrow_address(place, size, memory)

    def holder_of(self, address: int) -> str:
        """The card whose memory lies at an address."""
        ordinal = ctypes.c_int()
        self.do("cuPointerGetAttribute", ctypes.addressof(ordinal), _DEVICE_ORDINAL, address)
        return f"cuda:{ordinal.value}"

    def own(self, buffer: Buffer) -> CudaBuffer:
        """The buffer, if it is usable memory of this device."""
        if self.lost is not None:
            raise self.lose(self.lost)
        if type(buffer) is not CudaBuffer or buffer.device is not self:
            if isinstance(buffer, CudaBuffer):
                buffer.device.check()
            raise LaunchError(f"a buffer is not memory of {self.info.id} ({self.info.name})")
        if buffer.freed:
            raise LaunchError("a buffer has been freed")
        return buffer

    def free(self, buffer: Buffer) -> None:
        """Give memory back, once pending work and recordings are done with it."""
        assert isinstance(buffer, CudaBuffer)
        with self.lock:
            if buffer.freed:
                return
            buffer.freed = True
            buffer.pointer = None
            if not buffer.holds:
                self._release_buffer(buffer)

    def unhold(self, buffer: CudaBuffer) -> None:
        """A recording does not need the buffer any more."""
        with self.lock:
            buffer.holds -= 1
            if buffer.freed and not buffer.holds:
                self._release_buffer(buffer)

    def _release_buffer(self, buffer: CudaBuffer) -> None:
        buffer.owner = None
        if self._buffers.pop(buffer.identity, None) is None:
            return  # borrowed
        self._allocated -= buffer.size
        if self.lost is not None or self._is_finalizing():
            return
        if self.several_streams:
            with contextlib.suppress(TreadleError):
                self.default_stream.wait_for_users((), (buffer,))
        self.memory.free(buffer.place)

    def memory_stats(self) -> dict[str, Any]:
        """`allocated` and `peak` bytes, `buffers`, the card's `total` and `free` bytes, and what
        NVIDIA's management library gives, if it is installed, under `nvml`."""
        free, total = self._free_and_total()
        with self.lock:
            stats: dict[str, Any] = {
                "allocated": self._allocated,
                "peak": self._peak,
                "buffers": len(self._buffers),
                "total": total,
                "free": free,
            }
        known = properties.figures(self._card.bus)
        return {**stats, "nvml": known} if known else stats

    def copy_from(
        self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int
    ) -> bool:
        """Append a copy from another card's memory; False for memory that is on none."""
        if not isinstance(source, CudaBuffer):
            return False
        copy_between(source, source_offset, self.own(target), target_offset, size)
        return True

    def reach(self, other: CudaDevice) -> None:
        """Let this card read another one's memory over the bus, if the machine can."""
        if other.ordinal in self._peers:
            return
        self._peers.add(other.ordinal)
        can = ctypes.c_int()
        self.quietly("cuDeviceCanAccessPeer", ctypes.addressof(can), self.ordinal, other.ordinal)
        if can.value:
            other.memory.allow(self.ordinal)

    # ------------------------------------------------------------------ streams and events

    def create_stream(self) -> CudaStream:
        """A new stream, which comes after all work so far on the default stream."""
        self.check()
        with self.lock:
            handle = self._make_stream(_NON_BLOCKING)
            stream = CudaStream(self, handle, self.default_stream.anchor)
            self.several_streams = True
            self._streams.add(stream)
            for one in self._streams:
                one.plain = False
            self.default_stream.note((), ())
            before = self.default_stream.timeline
            event, stream.timeline.seen[before] = before.after(before.serial)
            self.do("cuStreamWaitEvent", handle, event, 0)
        return stream

    def _make_stream(self, flags: int) -> int:
        made = ctypes.c_uint64()
        self.do("cuStreamCreate", ctypes.addressof(made), flags)
        return made.value

    def make_event(self, *, asleep: bool = False) -> int:
        """A new event of the driver, without a time; a thread that waits for it may sleep."""
        made = ctypes.c_uint64()
        flags = _NO_TIMING | _BLOCKING_SYNC if asleep else _NO_TIMING
        self.do("cuEventCreate", ctypes.addressof(made), flags)
        return made.value

    def make_timeline(self) -> order.Timeline:
        """A numbering for the work of a new stream."""
        self_ = weakref.ref(self)

        def release(event: int) -> None:
            device = self_()
            if device is not None:
                device.quietly("cuEventDestroy", event)

        return order.Timeline(self.make_event, release, self.is_reached)

    def is_reached(self, event: int) -> bool:
        """Whether what was on a stream before an event is done."""
        if self.lost is not None:
            raise self.lose(self.lost)
        code = self.calls("cuEventQuery", event)
        if code and code != errors.NOT_READY:
            raise self.failure(code, "asking for an event")
        return code == errors.SUCCESS

    def take_timing_event(self) -> int:
        """An event of the driver with a time, to be given back."""
        self.check()
        with contextlib.suppress(IndexError):
            return self._timing_events.pop()
        made = ctypes.c_uint64()
        self.do("cuEventCreate", ctypes.addressof(made), 0)
        return made.value

    def give_timing_event(self, event: int) -> None:
        """Take one back."""
        self._timing_events.append(event)

    # ------------------------------------------------------------------ kernels

    def compile(self, code: KernelCode, binary: bytes | None = None) -> modules.CudaKernel:
        """Machine code of printed PTX or CUDA C++, loaded; or what `binary` gave before."""
        self.check()
        return modules.compile_kernel(self, code, binary)

    def work_apart(self) -> None:
        """Else waiting for an event would end a capture that is another library's, as PyTorch's
        are in all threads of a process."""
        mode = ctypes.c_int(_RELAXED)
        self.do("cuThreadExchangeStreamCaptureMode", ctypes.addressof(mode))

    def blocks_at_once(self, kernel: CompiledKernel) -> int:
        """Those that fit on a multiprocessor, on all of them."""
        assert isinstance(kernel, modules.CudaKernel)
        fitting = ctypes.c_int()
        threads, shared = kernel.code.workgroup.count, kernel.code.dynamic_shared
        self.do(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.addressof(fitting),
            kernel.function, threads, shared,
        )  # fmt: skip
        return fitting.value * self._card.multiprocessors

    def with_rows(self, kernel: CompiledKernel) -> modules.CudaKernel | None:
        """The kernel compiled anew, to load its arguments from rows."""
        from treadle.codegen.ptx.rows import with_rows  # few programs have so many actors

        code = kernel.code
        return self.compile(with_rows(code)) if code.target == "ptx" else None

    def binary(self, kernel: CompiledKernel) -> bytes | None:
        """The machine code of a kernel (a cubin)."""
        assert isinstance(kernel, modules.CudaKernel)
        return kernel.image

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """Release the device and all of its memory; using it afterwards is DeviceLost."""
        if self._forked or self.lost == _CLOSED or self._is_finalizing():
            return  # at the interpreter's end the driver has released everything
        with self.residents.parked(_PATIENCE), self.lock:
            if self.lost == _CLOSED:
                return
            if self.lost is None:
                self._give_everything_back()
            self.lost = _CLOSED
            for stream in list(self._streams):
                stream.plain = False
            self._buffers.clear()
            # If nothing else in the process uses the card, this ends the context and its faults.
            self.library.bindings.cuDevicePrimaryCtxRelease(self._card.handle)

    def _give_everything_back(self) -> None:
        for stream in list(self._streams):
            stream.finish()
        for buffer in list(self._buffers.values()):
            self.memory.free(buffer.place)
        self.quietly("cuStreamSynchronize", self.default_stream.handle)
        for stream in list(self._streams):
            stream.release()
        while self._idle_rings:
            self._idle_rings.pop().release()
        self.chunks.release()
        while self.idle_slots:
            self.idle_slots.pop().release()
        self.memory.release()
        for event in self._timing_events:
            self.quietly("cuEventDestroy", event)
        for module in self.modules:
            self.quietly("cuModuleUnload", module)

    def abandon_after_fork(self) -> None:
        """In a forked child: the device belongs to the parent."""
        self._forked = True
        self.lost = None
        self.lose(FORKED)

    def __del__(self) -> None:
        if getattr(self, "default_stream", None) is not None and not self._forked:
            self.close()


_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


@forks.in_child
def _abandon_all(half_changed: bool) -> None:
    for device in list(_opened):
        device.abandon_after_fork()
