"""Captured launches and copies, as one CUDA graph.

The driver could record a stream, but other libraries' work on the legacy default stream
would then break the capture. So what is captured is a list of ours, and the graph is a chain of its
nodes.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from treadle.core.errors import LaunchError
from treadle.drivers.base import CompiledKernel, Recording, Stream
from treadle.drivers.cuda.library import address_of
from treadle.drivers.cuda.memory import CudaBuffer

if TYPE_CHECKING:
    from treadle.core.dim3 import Dim3
    from treadle.drivers.cuda.device import CudaDevice
    from treadle.drivers.cuda.modules import CudaKernel

_DEVICE_MEMORY = 2  # CU_MEMORYTYPE_DEVICE
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: other threads may do what they like meanwhile
_LARGEST_ROW = 1 << 30  # a copy is a row of bytes, and a row has a largest pitch
_PARAMETERS, _PARAMETER_BYTES = 1, 2  # what the pairs of a launch's extra words mean
# CUDA_KERNEL_NODE_PARAMS of CUDA 12: function; grid, block, shared bytes; parameters one by one
# (none), extra words, kernel and context (none: the function has them).
_pack_kernel = struct.Struct("<Q28s4x4Q").pack
# CUDA_MEMCPY3D: source x, y, z, level; kind of memory, host, device, array, reserved, pitch,
# height; the same of the target; width in bytes, height, depth.
_pack_copy = struct.Struct("<4Q I4x6Q 4Q I4x6Q 3Q").pack
# CUDA_MEMSET_NODE_PARAMS: target, pitch; value, bytes of an element; elements in a row, rows.
_pack_fill = struct.Struct("<QQIIQQ").pack


class Capture:
    """A graph under construction, each node after the one before."""

    def __init__(self, device: CudaDevice, graph: int = 0) -> None:
        """With `graph`, in one that belongs to the driver (`decisions`)."""
        self.device = device
        self.owned: list[CudaBuffer] = []  # memory of the recording's own
        self.reads: dict[CudaBuffer, None] = {}
        self.writes: dict[CudaBuffer, None] = {}
        self.kernels: dict[CudaKernel, None] = {}
        self.recordings: list[CudaRecording] = []
        self.notices: list[Callable[[], object]] = []  # what the host does at each replay
        self.count = 0  # of calls that were recorded
        # Their nodes, and the pointers of their buffers, by the numbers of launches.
        self.launches: dict[int, tuple[int, bytes]] = {}
        self._node = ctypes.c_uint64()  # the last one
        self.graph = graph
        if not graph:
            made = ctypes.c_uint64()
            device.do("cuGraphCreate", ctypes.addressof(made), 0)
            self.graph = made.value

    def add(self, name: str, *arguments: int) -> None:
        """Add a node after the last one: the driver's function for its kind, and what it is."""
        last, node = self._node, ctypes.c_uint64()
        before = (ctypes.addressof(last), 1) if last.value else (0, 0)
        self.device.do(name, ctypes.addressof(node), self.graph, *before, *arguments)
        self._node = node
        self.count += 1

    def launch(
        self, kernel: CudaKernel, record: bytes, arguments: bytes, buffers: Sequence[CudaBuffer]
    ) -> None:
        """Record a launch, as the stream prepared it."""
        place = self.count
        with_node(record, arguments, lambda at: self.add("cuGraphAddKernelNode", at))
        pointers = arguments[: 8 * len(kernel.code.bindings)]
        self.launches[place] = self._node.value, pointers
        self.kernels[kernel] = None
        reads, writes = kernel.split(buffers)
        self.reads.update(dict.fromkeys(reads))
        self.writes.update(dict.fromkeys(writes))

    def copy(
        self, source: CudaBuffer, source_offset: int, target: CudaBuffer, offset: int, size: int
    ) -> None:
        """Record a copy on the card."""
        for start in range(0, size, _LARGEST_ROW):
            row = min(_LARGEST_ROW, size - start)
            node = _pack_copy(
                0, 0, 0, 0, _DEVICE_MEMORY, 0, source.place + source_offset + start, 0, 0, row, 1,
                0, 0, 0, 0, _DEVICE_MEMORY, 0, target.place + offset + start, 0, 0, row, 1,
                row, 1, 1,
            )  # fmt: skip
            self.add("cuGraphAddMemcpyNode", address_of(node), self.device.context)
        self.reads[source] = None
        self.writes[target] = None

    def fill_zero(self, target: CudaBuffer, offset: int, size: int) -> None:
        """Record zeroing a range."""
        place = target.place + offset
        element = 4 if place % 4 == 0 and size % 4 == 0 else 1
        node = _pack_fill(place, 0, 0, element, size // element, 1)
        self.add("cuGraphAddMemsetNode", address_of(node), self.device.context)
        self.writes[target] = None

    def foreign(
        self,
        append: Callable[[int], object],
        reads: Sequence[CudaBuffer],
        writes: Sequence[CudaBuffer],
    ) -> None:
        """Record what another library appends to a stream: the driver listens to one of ours."""
        device = self.device
        listening, heard = ctypes.c_uint64(), ctypes.c_uint64()
        device.do("cuStreamCreate", ctypes.addressof(listening), _NON_BLOCKING)
        try:
            device.do("cuStreamBeginCapture", listening.value, _RELAXED)
            try:
                append(listening.value)
            finally:
                device.do("cuStreamEndCapture", listening.value, ctypes.addressof(heard))
            self.add("cuGraphAddChildGraphNode", heard.value)
        finally:
            if heard.value:
                device.quietly("cuGraphDestroy", heard.value)
            device.quietly("cuStreamDestroy", listening.value)
        self.reads.update(dict.fromkeys(reads))
        self.writes.update(dict.fromkeys(writes))

    def replay(self, recording: CudaRecording) -> None:
        """Record the work of another recording."""
        self.add("cuGraphAddChildGraphNode", recording.graph)
        self.hold(recording)

    def hold(self, recording: CudaRecording) -> None:
        """Keep a recording, and note what it uses."""
        self.recordings.append(recording)
        self.notices += recording.notices
        self.reads.update(dict.fromkeys(recording.reads))
        self.writes.update(dict.fromkeys(recording.writes))

    def release(self) -> None:
        """Drop a graph of which no recording is made."""
        self.device.quietly("cuGraphDestroy", self.graph)
        for owned in self.owned:
            self.device.free(owned)


def with_node(record: bytes, arguments: bytes, use: Callable[[int], object]) -> None:
    """Call a function with the address of what the driver wants to know of a launch's node."""
    function, size = struct.unpack_from("<QQ", record)
    count = (ctypes.c_uint64 * 1)(size)
    extra = (ctypes.c_uint64 * 5)(
        _PARAMETERS, address_of(arguments), _PARAMETER_BYTES, ctypes.addressof(count), 0
    )
    shape = record[16:44]  # grid, block and shared bytes
    given = ctypes.addressof(extra) if size else 0
    node = _pack_kernel(function, shape, 0, given, 0, 0)
    use(address_of(node))


class CudaRecording(Recording):
    """A graph, ready to run; it holds on to the memory and the code that it names."""

    def __init__(self, device: CudaDevice, capture: Capture) -> None:
        self._device = device
        self.graph = capture.graph
        self.executable = 0
        self.writes = list(capture.writes)
        self.reads = [buffer for buffer in capture.reads if buffer not in capture.writes]
        self.name = "a recording of " + ", ".join(dict.fromkeys(k.name for k in capture.kernels))
        self.notices = tuple(capture.notices)
        self._owned = capture.owned
        self._launches = capture.launches
        self._kept = (list(capture.kernels), capture.recordings)
        self._released = False
        for buffer in (*self.reads, *self.writes):
            buffer.holds += 1
        made = ctypes.c_uint64()
        try:
            device.do("cuGraphInstantiateWithFlags", ctypes.addressof(made), self.graph, 0)
            self.executable = made.value
            device.do("cuGraphUpload", self.executable, device.default_stream.handle)
        except BaseException:
            self.release()
            raise

    def replay(self, stream: Stream) -> None:
        """Run the graph on a stream of the same device."""
        if self._released:
            raise LaunchError("this recording has been released")
        if stream.device is not self._device:
            raise LaunchError(
                f"this recording was made on {self._device.info.id}, and the stream is of "
                f"{stream.device.info.id}"
            )
        stream.append_replay(self)  # type: ignore[attr-defined]

    def change(self, place: int, kernel: CompiledKernel, grid: Dim3, parameters: bytes) -> None:
        """Give a launch another grid and other parameters. Replays that were submitted keep
        theirs."""
        node, pointers = self._launches[place]
        known: CudaKernel = kernel  # type: ignore[assignment]
        record = known.records.get(grid) or known.make_record(grid)
        assert record is not None, "a launch has at least one block"
        do, what = self._device.do, "cuGraphExecKernelNodeSetParams"
        if known.maps:
            arguments = known.arguments(pointers, parameters)
        else:
            arguments = pointers + parameters
        with_node(record, arguments, lambda at: do(what, self.executable, node, at))

    def release(self) -> None:
        """Give back what the recording holds; replays that are pending still run."""
        if self._released:
            return
        self._released = True
        device = self._device
        if self.executable:
            device.quietly("cuGraphExecDestroy", self.executable)
        device.quietly("cuGraphDestroy", self.graph)
        for buffer in (*self.reads, *self.writes):
            device.unhold(buffer)
        for owned in self._owned:
            device.free(owned)
        self.reads, self.writes, self._owned, self._kept = [], [], [], ([], [])
        self.notices = ()

    def __del__(self) -> None:
        if not getattr(self, "_released", True):
            self.release()
