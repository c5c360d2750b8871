"""The protocol that every driver speaks.

A `Backend` lists and opens devices. A `Device` makes `Buffer`s, `Stream`s, `Event`s and
`CompiledKernel`s. A `Stream` orders work: launches, copies, reads. Pools, caches and argument
checks are the runtime's; a driver does each call as cheaply as its API allows.

Rules for all of them:

- Work on one stream happens in order. What was launched need not have started until something
  waits for it: a read, `synchronize`, `Event.synchronize`.
- `free` may be called while work that uses the buffer is pending; the driver keeps it alive.
- A buffer has at least 4 bytes; sizes are multiples of 4. Zero-size arrays never reach a driver.
- Offsets and lengths of `write`, `read` and `copy` are any number of bytes within the buffer.
- Every failure is a `treadle.core.errors` class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from treadle.core.errors import LaunchError
from treadle.drivers.pending_read import PendingRead, finished_read
from treadle.drivers.residents import Residents

if TYPE_CHECKING:
    from treadle.codegen.records import KernelCode
    from treadle.core.dim3 import Dim3
    from treadle.core.limits import DeviceInfo, Limits
    from treadle.drivers.dense import DenseProduct, PreparedProduct

# Why a forked child has lost the devices that its parent opened.
FORKED = (
    "it was opened before this process was forked, and belongs to the parent: start workers with "
    "multiprocessing's 'spawn', or open devices only in the children"
)
# And why even memory of the host is of no use to a child.
FORKED_AMIDST = (
    "this process was forked while another thread of its parent was in the midst of computing, "
    "and what that thread had half done is lost: start workers with multiprocessing's 'spawn', or "
    "fork while no other thread computes"
)


class ArrayTooLarge(LaunchError):
    """A launch was given a buffer of more than `max_binding_size` bytes. Windows may help."""


class Buffer(ABC):
    """Device memory. `size` is its bytes; `identity` is unique among all buffers ever made."""

    __slots__ = ("device", "identity", "size")
    device: Device
    identity: int
    size: int

    @abstractmethod
    def address(self) -> int:
        """Where it lies: a host address on the CPU, a device pointer on CUDA; TypeError where
        memory has no addresses (WebGPU)."""

    def host_bytes(self) -> memoryview:
        """Its bytes, where memory is the host's; TypeError elsewhere."""
        raise TypeError(f"the memory of {self.device.info.id} is not the host's")


class CompiledKernel(ABC):
    """Code that is ready to run on one device."""

    __slots__ = ("code", "device")
    code: KernelCode
    device: Device
    is_pending = False  # whether it is a `PendingKernel` of the runtime, which drivers never see

    def entry_point(self) -> int:
        """The address of its machine code in this process, `void entry(void **buffers, void
        *parameters, uint32_t *grid, int64_t first, int64_t last)`, which runs some blocks and may
        be called by any thread. TypeError where `Traits.calls_kernels` is false."""
        raise TypeError(f"kernels of {self.device.info.id} are not functions of this process")


class Event(ABC):
    """A point in a stream. Device time where the device has timestamps, else host time."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the point is reached."""

    @abstractmethod
    def query(self) -> bool:
        """Whether the point is reached."""

    @abstractmethod
    def seconds(self) -> float:
        """The time of the point in seconds, on the device's clock. Waits for it."""


class Recording(ABC):
    """A captured list of launches and copies, prepared for cheap replay."""

    @abstractmethod
    def replay(self, stream: Stream) -> None:
        """Run the list again, in order, on a stream."""

    @abstractmethod
    def release(self) -> None:
        """Give back what the recording holds."""

    def change(self, place: int, kernel: CompiledKernel, grid: Dim3, parameters: bytes) -> None:
        """Give a launch of a kernel another grid and another parameter block, from the next replay
        on. `place` is what `Stream.recorded` was before it. TypeError where launches of recordings
        stay as they are (`Traits.changes_recordings`)."""
        raise TypeError(f"recordings of {kernel.device.info.id} do not change")


class Exchange(ABC):
    """Launches of a kernel that are made again and again, each with a little data of the host's and
    a result that the host reads at once."""

    @abstractmethod
    def begin(self, which: int, data: int, size: int, wanted: int) -> Any:
        """Start the launch of this number, after all work so far, with `size` bytes at an address
        of the host's; what `wait` takes, for the first `wanted` bytes of the result."""

    @abstractmethod
    def wait(self, begun: Any, target: int, until: float | None = None) -> bool:
        """Wait for the result, and copy it to an address of the host's; False if it is not there
        at a time of `time.perf_counter`, after which it can be waited for again."""

    @abstractmethod
    def release(self) -> None:
        """Give back what it holds."""


class Stream(ABC):
    """An order of work on a device."""

    __slots__ = ("device",)
    device: Device

    @property
    def takes_pending(self) -> bool:
        """Whether launches may have kernels that are still being compiled (`PendingKernel`)."""
        return False

    @abstractmethod
    def launch(
        self,
        kernel: CompiledKernel,
        grid: Dim3,
        buffers: Sequence[Buffer],
        parameters: bytes,
    ) -> None:
        """Append a launch of `grid` blocks: one buffer a binding of the kernel's code, and its
        parameter block as `code.layout` says. A grid over the device's limit needs folded code."""

    @abstractmethod
    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Append a copy from host memory, which may be reused as soon as this returns."""

    @abstractmethod
    def copy(
        self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int
    ) -> None:
        """Append a copy between buffers of the device (ranges of one buffer do not overlap)."""

    @abstractmethod
    def fill_zero(self, buffer: Buffer, offset: int, size: int) -> None:
        """Append zeroing a range."""

    @abstractmethod
    def read(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """Wait for all work so far, then copy into host memory."""

    @abstractmethod
    async def read_async(self, buffer: Buffer, offset: int, target: memoryview) -> None:
        """`read`, awaiting instead of blocking."""

    def begin_read(self, buffer: Buffer, offset: int, target: memoryview) -> PendingRead:
        """Start to copy into host memory what the buffer has after all work so far. What is
        appended before it is finished does not delay it, where the device can do that; here, it
        has waited."""
        self.read(buffer, offset, target)
        return finished_read()

    def exchange(
        self,
        kernel: CompiledKernel,
        buffers: Sequence[Buffer],
        source: tuple[int, int],
        result: tuple[int, int],
        launches: Sequence[tuple[Dim3, bytes]],
        near: bool,
    ) -> Exchange | None:
        """Launches that are made again and again: grids and parameter blocks. Of the kernel's
        buffers, `source` (its place among them, and how many bytes) is what the host gives and
        kernels only read, and `result` is what kernels only write and the host takes: the driver
        may use other memory in their places, if `near` is set the host's own, to which a kernel's
        way may be long: for few bytes. None where a device gains nothing by all that."""
        return None

    @abstractmethod
    def record(self) -> Event:
        """Mark the point after all work so far."""

    def timed(self, append: Callable[[], object]) -> tuple[Event, Event]:
        """Call `append`, which appends work and waits for nothing; the points before and after
        that work, with as little else between them as the API allows."""
        start = self.record()
        append()
        return start, self.record()

    @abstractmethod
    def flush(self) -> None:
        """Start what was appended, without waiting."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything appended is done."""

    @abstractmethod
    async def synchronize_async(self) -> None:
        """`synchronize`, awaiting instead of blocking."""

    def rest(self) -> None:
        """`synchronize`, for waits that are long: the processor is left to others meanwhile."""
        self.synchronize()

    def use(self, buffers: Sequence[Buffer]) -> None:
        """As a launch that uses these buffers, without one: what used them on other streams of
        the device comes before what follows here, and what uses them later comes after what was
        before. Nothing to do where the device runs all of its streams in order."""
        return

    def at_submission(self, work: Callable[[], object]) -> None:
        """Call a function of the host's that does nothing on the device: now, or, in a capture, at
        each replay once it is submitted. TypeError where no other library can use the device's
        streams."""
        raise TypeError(f"streams of {self.device.info.id} are of no use to other libraries")

    def call_host(self, work: Callable[[], object], buffers: Sequence[Buffer]) -> None:
        """Append work of the host's on the memory of these buffers, as a product by NumPy's BLAS;
        TypeError where memory is not the host's."""
        raise TypeError(f"the memory of {self.device.info.id} is not the host's")

    def call_library(
        self,
        name: str,
        work: Callable[[int], object],
        reads: Sequence[Buffer],
        writes: Sequence[Buffer],
    ) -> None:
        """Append what another library appends to a stream in its own API (`native_handle`), which
        `work` is called with; it uses these buffers. In a capture it is recorded. TypeError where
        no other library can use the device's streams."""
        raise TypeError(f"streams of {self.device.info.id} are of no use to other libraries")

    def multiply(
        self,
        product: PreparedProduct,
        left: tuple[Buffer, int],
        right: tuple[Buffer, int],
        out: tuple[Buffer, int],
        workspace: Buffer | None,
    ) -> None:
        """Append a product by the vendor's library: buffers, with the byte where each array starts.
        The workspace has `product.workspace` bytes."""
        raise TypeError(f"no vendor's library multiplies on {self.device.info.id}")

    def native_handle(self) -> int:
        """The stream in its own API (a CUstream), for libraries that share the device; TypeError
        where no other library can. On CUDA the device's default stream is a blocking one: it is
        ordered with the legacy default stream, which most libraries use, without a call."""
        raise TypeError(f"streams of {self.device.info.id} are of no use to other libraries")

    def wait_for(self, other: int) -> None:
        """Work appended from here on runs after all work so far on another library's stream (a
        CUstream as a number; 1 is the legacy default stream, 2 the thread's own)."""
        raise TypeError(f"streams of {self.device.info.id} are of no use to other libraries")

    def precede(self, other: int) -> None:
        """Work given to another library's stream from here on runs after all work so far here."""
        raise TypeError(f"streams of {self.device.info.id} are of no use to other libraries")

    @property
    def recorded(self) -> int:
        """How many calls were recorded since `begin_capture`."""
        raise TypeError(f"calls recorded on {self.device.info.id} are not counted")

    @abstractmethod
    def begin_capture(self) -> None:
        """From here on launches and copies are recorded instead of run."""

    def take_capture(self) -> None:  # noqa: B027 - where threads do not matter, nothing is to do
        """What this thread does from here on is recorded, not what the thread does that has begun
        the capture. `end_capture` must follow."""

    @abstractmethod
    def end_capture(self) -> Recording:
        """The recording since `begin_capture`. Buffers it uses are kept alive by it."""


class Device(ABC):
    """One opened device."""

    info: DeviceInfo
    default_stream: Stream
    residents: Residents | None = None
    """The kernels that stay there, if calls of the driver's may have to wait for their end."""
    threads: int = 1
    """Threads that run blocks at the same time, where those of a block run one after the other."""

    def vector_bytes(self) -> int:
        """The width of a vector register, whose lanes threads of a block are there."""
        return 16

    @abstractmethod
    def allocate(self, size: int) -> Buffer:
        """New memory, contents undefined. OutOfMemory says how much was asked, used and free."""

    def work_apart(self) -> None:
        """From here on, what the calling thread asks of the driver does not disturb what other
        libraries record in other threads meanwhile."""
        return

    def blocks_at_once(self, kernel: CompiledKernel) -> int:
        """How many blocks of a kernel run at the same time, so that they may wait for each other,
        if the device runs nothing else. 1 where they run one after the other."""
        return 1

    def with_rows(self, kernel: CompiledKernel) -> CompiledKernel | None:
        """The kernel that takes one buffer of rows: its n-th block is the only one of a launch with
        the n-th row's arguments, the addresses of its buffers and then its parameter block. None
        where there are no such kernels."""
        return None

    def borrow_address(self, address: int, size: int, owner: object) -> Buffer:
        """Memory of another library (on the CPU: of the process) at an address, as a buffer
        without a copy, of any size; it keeps `owner` alive, is not counted as the device's memory
        and needs no `free`. TypeError where memory has no addresses."""
        raise TypeError(f"{self.info.id} cannot use another library's memory")

    def mapped_memory(self, size: int) -> tuple[memoryview, Buffer]:
        """Zeroed memory that kernels and the host use at the same time: the host's bytes, which
        keep it alive, and a buffer for launches. It needs no `free`. TypeError where there is
        none."""
        raise TypeError(f"{self.info.id} has no memory that the host uses at the same time")

    def window(self, buffer: Buffer, offset: int, size: int) -> Buffer:
        """A part of a buffer as a buffer to launch with (not to copy), where `max_binding_size` is
        less than a buffer's largest size. It is the same object for the same part, valid as long as
        the buffer. The offset is a multiple of `buffer_alignment`, the size one of 4. TypeError
        where a kernel sees whole buffers."""
        raise TypeError(f"kernels on {self.info.id} see whole buffers")

    def holder_of(self, address: int) -> str:
        """The id of the device (of this one's kind) whose memory lies at an address."""
        return self.info.id

    def copy_from(
        self, source: Buffer, source_offset: int, target: Buffer, target_offset: int, size: int
    ) -> bool:
        """Append a copy from another device's memory to this device's, in the order of both
        default streams; False where the two are not reached by one API, and nothing is done."""
        return False

    @abstractmethod
    def free(self, buffer: Buffer) -> None:
        """Give memory back."""

    @abstractmethod
    def compile(self, code: KernelCode, binary: bytes | None = None) -> CompiledKernel:
        """Build printed code, or load what `binary` gave for the same code on such a device.
        CompileError carries the driver's words and the generated source."""

    def binary(self, kernel: CompiledKernel) -> bytes | None:
        """Machine code to keep on disk, where the driver lets us have it."""
        return None

    @abstractmethod
    def create_stream(self) -> Stream:
        """A new stream (a device may order all of its streams as one)."""

    def dense_product(self, product: DenseProduct) -> PreparedProduct | None:
        """How the vendor's library computes a product, to be given to `Stream.multiply`; None where
        there is no such library, or where it lacks this product."""
        return None

    def compose(self, items: Sequence[Any]) -> Recording | None:
        """One recording of work with loops and branches (`program.Item`s), which the device itself
        decides; None where it cannot, and the host reads the conditions."""
        return None

    def read_times(self, events: Sequence[Event]) -> None:
        """Let events of the device know their times, if that is cheaper than asking each for its
        seconds. Waits for them."""
        return

    @abstractmethod
    def memory_stats(self) -> dict[str, Any]:
        """`allocated` (bytes now), `peak`, `buffers` (count), and what the API offers of
        `total` and `free`."""

    @property
    def is_lost(self) -> bool:
        """Whether it is known to be gone, where a lost device can be opened anew."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Release the device; using it afterwards is DeviceLost."""

    def cache_key(self) -> str:
        """What makes compiled code of this device unfit for another one (driver, versions)."""
        return f"{self.info.backend}/{self.info.name}/{self.info.driver}"


class CodeStore(Protocol):
    """Where machine code is kept between processes."""

    def load(self, *parts: str) -> bytes | None:
        """What was saved for these texts, on which the code depends; None if nothing is there."""

    def save(self, content: bytes, *parts: str) -> None:
        """Keep code."""


class Backend(ABC):
    """A way to reach devices: one of these for each driver."""

    name: str
    code_store: CodeStore | None = None
    """For code of the driver's own, once the runtime has set it."""

    @abstractmethod
    def list_devices(self, **choice: str) -> list[DeviceInfo]:
        """The devices that could be opened, best first; never raises for a missing driver.

        `choice` is empty, or for backends that reach several graphics APIs `api` ("vulkan", "gl",
        …) and `power` ("low", "high").
        """

    @abstractmethod
    def why_none(self) -> str:
        """If `list_devices` is empty: the reason, and what would make devices appear."""

    async def prepare(self) -> None:
        """Do what listing and opening devices would have to wait for, where a call cannot wait."""
        return

    def hint(self) -> str | None:
        """One line if hardware for this backend is here and only a package is missing."""
        return None

    @abstractmethod
    def open(self, info: DeviceInfo, *, limits: Limits | None = None) -> Device:
        """Open a device that `list_devices` gave; with `limits` it allows no more than those."""
