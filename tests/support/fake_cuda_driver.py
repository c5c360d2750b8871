"""A CUDA driver that is not there: `cuda.bindings.driver` with cards made of host memory.

Functions are reached as in the real one, by their addresses; work runs when it is given. A test
says which function fails with which code, what a kernel does, and looks at the calls.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_WORDS = 12
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * _WORDS)
_Launch = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, *[ctypes.c_uint32] * 7, *[ctypes.c_uint64] * 3
)
# How many arguments each function has, where that is not what its method says.
_SILENT = (
    "cuMemPoolSetAttribute", "cuMemPoolTrimTo", "cuMemPoolSetAccess",
    "cuMemPoolDestroy", "cuStreamDestroy", "cuEventDestroy", "cuModuleUnload", "cuFuncLoad",
    "cuFuncSetAttribute", "cuLinkDestroy", "cuGraphUpload", "cuGraphExecDestroy",
    "cuGraphDestroy", "cuEventSynchronize", "cuStreamSynchronize", "cuEventQuery",
    "cuMemFreeHost", "cuStreamBeginCapture", "cuStreamEndCapture",
    "cuThreadExchangeStreamCaptureMode", "cuModuleLoadDataEx",
)  # fmt: skip


@dataclass
class FakeCard:
    """What a card says of itself."""

    name: str = "NVIDIA Fake"
    capability: tuple[int, int] = (9, 0)
    memory: int = 1 << 30
    pools: bool = True
    integrated: bool = False
    time_limit: bool = False
    multiprocessors: int = 3


@dataclass
class FakeDriver:
    """The module. `failures` maps a function's name to the code it gives from now on."""

    cards: list[FakeCard] = field(default_factory=lambda: [FakeCard()])
    version: int = 13000
    init: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    kernel: Callable[[tuple[int, ...], bytes], None] | None = None  # (grid, arguments)
    missing: frozenset[str] = frozenset()
    cubin: bytes = b"cubin"
    first_map: int = 0  # the number of the first parameter that is a tensor map

    def __post_init__(self) -> None:
        self.calls: list[tuple[str, tuple[int, ...]]] = []
        self.current = 0  # the calling thread's context
        self.retained: Counter[int] = Counter()
        self.free_memory = self.cards[0].memory if self.cards else 0
        self._handles = itertools.count(0x1000, 16)
        self._memory: dict[int, Any] = {}
        self._graphs: dict[int, list[Callable[[], int]]] = {}
        self._places: dict[int, tuple[list[Callable[[], int]], int]] = {}  # of nodes
        self._last: dict[int, int] = {}  # nodes of graphs
        self._executables: dict[int, int] = {}
        self.conditions: dict[int, int] = {}  # of conditional nodes, by their handles
        self._bodies: list[Any] = []
        self._times: dict[int, float] = {}
        self._recorded: dict[int, int] = {}
        # Which stream waited for an event recorded on which.
        self.crossings: list[tuple[int, int]] = []
        self._callbacks: dict[str, Any] = {}
        self.CUdevice_attribute = self.CUresult = int

    # ------------------------------------------------------------------ as cuda.bindings gives it

    def cuInit(self, _flags: int) -> tuple[int]:
        return (self.init,)

    def cuDriverGetVersion(self) -> tuple[int, int]:
        return 0, self.version

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, len(self.cards)

    def cuDeviceGet(self, ordinal: int) -> tuple[int, int]:
        return 0, ordinal

    def cuDeviceGetName(self, _size: int, device: int) -> tuple[int, bytes]:
        return 0, self.cards[device].name.encode().ljust(256, b"\0")

    def cuDeviceGetPCIBusId(self, _size: int, device: int) -> tuple[int, bytes]:
        return 0, f"0000:0{device}:00.0".encode()

    def cuDeviceTotalMem(self, device: int) -> tuple[int, int]:
        return 0, self.cards[device].memory

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> tuple[int, int]:
        card = self.cards[device]
        known = {
            1: 1024, 2: 1024, 3: 1024, 4: 64, 5: (1 << 31) - 1, 6: 65535, 7: 65535, 10: 32,
            16: card.multiprocessors, 17: card.time_limit, 18: card.integrated,
            75: card.capability[0], 76: card.capability[1], 97: 232448, 115: card.pools,
        }  # fmt: skip
        return 0, int(known[attribute])

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, int]:
        self.retained[device] += 1
        return 0, 0xC0 + device

    def cuDevicePrimaryCtxRelease(self, device: int) -> tuple[int]:
        self.retained[device] -= 1
        return (0,)

    def cuGetErrorName(self, code: int) -> tuple[int, bytes]:
        return 0, f"CUDA_ERROR_{code}".encode()

    def cuGetErrorString(self, code: int) -> tuple[int, bytes]:
        return 0, f"words about {code}".encode()

    def cuGetProcAddress(self, name: bytes, version: int, flags: int) -> tuple[int, int, int]:
        text = name.decode()
        assert version <= self.version
        if text in self.missing:
            return 500, 0, 1
        if text not in self._callbacks:
            self._callbacks[text] = self._callback(text)
        return 0, ctypes.cast(self._callbacks[text], ctypes.c_void_p).value or 0, 0

    # ------------------------------------------------------------------ by address

    def _callback(self, name: str) -> Any:
        if name == "cuLaunchKernel":
            return _Launch(self._launch)
        function = getattr(self, "_" + name, None)
        assert function is not None or name in _SILENT, name
        arity = function.__code__.co_argcount - 1 if function is not None else 4

        def answer(*words: int) -> int:
            arguments = words[:arity]
            self.calls.append((name, arguments))
            if name in self.failures:
                return self.failures[name]
            return (function(*arguments) or 0) if function is not None else 0

        return _Callback(answer)

    def named(self, name: str) -> list[tuple[int, ...]]:
        """The arguments of each call of a function so far."""
        return [arguments for called, arguments in self.calls if called == name]

    def _new(self, out: int) -> int:
        handle = next(self._handles)
        ctypes.c_uint64.from_address(out).value = handle
        return handle

    def _cuCtxGetCurrent(self, out: int) -> None:
        self.calls.pop()
        ctypes.c_uint64.from_address(out).value = self.current

    def _cuCtxSetCurrent(self, context: int) -> None:
        self.current = context

    def _cuStreamCreate(self, out: int, _flags: int) -> None:
        self._new(out)

    def _cuEventCreate(self, out: int, _flags: int) -> None:
        self._new(out)

    def _cuStreamWaitEvent(self, stream: int, event: int) -> None:
        self.crossings.append((stream, self._recorded[event]))

    def _cuEventRecord(self, event: int, stream: int) -> None:
        self._recorded[event] = stream
        self._times[event] = len(self._times) * 1.5

    def _cuEventElapsedTime(self, out: int, start: int, end: int) -> None:
        ctypes.c_float.from_address(out).value = self._times[end] - self._times[start]

    def _cuMemPoolCreate(self, out: int, _properties: int) -> None:
        self._new(out)

    def _cuMemAllocFromPoolAsync(self, out: int, size: int, _pool: int, _stream: int) -> int:
        return self._cuMemAlloc(out, size)

    def _cuMemAlloc(self, out: int, size: int) -> int:
        if size > self.free_memory:
            return 2
        self.free_memory -= size
        self._allocate(out, size)
        return 0

    def _cuMemHostRegister(self, _place: int, _size: int, _flags: int) -> None:
        pass

    def _cuMemHostGetDevicePointer(self, out: int, host: int, _flags: int) -> None:
        ctypes.c_uint64.from_address(out).value = host

    def _cuMemHostAlloc(self, out: int, size: int, _flags: int) -> None:
        self._allocate(out, size)

    def _allocate(self, out: int, size: int) -> None:
        block = (ctypes.c_uint8 * size)()
        place = ctypes.addressof(block)
        self._memory[place] = block
        ctypes.c_uint64.from_address(out).value = place

    def _cuMemFreeAsync(self, place: int, _stream: int) -> None:
        self._cuMemFree(place)

    def _cuMemFree(self, place: int) -> None:
        self.free_memory += len(self._memory.pop(place))

    def _cuMemGetInfo(self, free: int, total: int) -> None:
        ctypes.c_uint64.from_address(free).value = self.free_memory
        ctypes.c_uint64.from_address(total).value = self.cards[0].memory

    def _cuMemcpyHtoDAsync(self, target: int, source: int, size: int, _stream: int) -> None:
        ctypes.memmove(target, source, size)

    def _cuMemcpyDtoHAsync(self, target: int, source: int, size: int, _stream: int) -> None:
        ctypes.memmove(target, source, size)

    def _cuMemcpyDtoDAsync(self, target: int, source: int, size: int, _stream: int) -> None:
        ctypes.memmove(target, source, size)

    def _cuMemcpyPeerAsync(
        self, target: int, _here: int, source: int, _there: int, size: int, _stream: int
    ) -> None:
        ctypes.memmove(target, source, size)

    def _cuMemsetD8Async(self, target: int, value: int, count: int, _stream: int) -> None:
        ctypes.memset(target, value, count)

    def _cuMemsetD32Async(self, target: int, value: int, count: int, _stream: int) -> None:
        assert value == 0
        assert target % 4 == 0
        ctypes.memset(target, 0, 4 * count)

    def _cuPointerGetAttribute(self, out: int, attribute: int, _place: int) -> None:
        assert attribute == 9
        ctypes.c_int.from_address(out).value = 0

    def _cuDeviceCanAccessPeer(self, out: int, _device: int, _other: int) -> None:
        ctypes.c_int.from_address(out).value = 1

    def _cuLinkCreate(self, _count: int, _options: int, _values: int, out: int) -> None:
        self.log = ctypes.c_uint64.from_address(_values + 16).value
        self._new(out)

    def _cuLinkAddData(
        self, _state: int, _kind: int, data: int, size: int, _name: int, _a: int, _b: int, _c: int
    ) -> int:
        self.linked = ctypes.string_at(data, size)
        if b"wrong" in self.linked:
            ctypes.memmove(self.log, b"line 3: no such instruction\0", 28)
            return 218
        return 0

    def _cuLinkComplete(self, _state: int, image: int, size: int) -> None:
        self._image = ctypes.create_string_buffer(self.cubin, len(self.cubin))
        ctypes.c_uint64.from_address(image).value = ctypes.addressof(self._image)
        ctypes.c_uint64.from_address(size).value = len(self.cubin)

    def _cuModuleLoadData(self, out: int, image: int) -> int:
        text = ctypes.string_at(image)
        if ctypes.string_at(image, len(self.cubin)) != self.cubin and b"setmaxnreg" not in text:
            return 200
        self._new(out)
        return 0

    def _cuModuleGetFunction(self, out: int, _module: int, _name: int) -> None:
        self._new(out)

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, out: int, _function: int, threads: int, _shared: int
    ) -> None:
        ctypes.c_int.from_address(out).value = 1024 // threads

    def _cuFuncGetParamInfo(self, _function: int, number: int, place: int, size: int) -> None:
        """Parameters of 128 bytes, of which the first one lies where no multiple of 64 is."""
        ctypes.c_size_t.from_address(place).value = 48 + 128 * (number - self.first_map)
        ctypes.c_size_t.from_address(size).value = 128

    def _cuTensorMapEncodeTiled(
        self, out: int, kind: int, rank: int, address: int, extents: int, steps: int, box: int,
        ones: int, *_layout: int,
    ) -> None:  # fmt: skip
        assert out % 64 == 0
        numbers = [
            *(ctypes.c_uint64 * (rank & 0xFFFF)).from_address(extents),
            *(ctypes.c_uint64 * ((rank & 0xFFFF) - 1)).from_address(steps),
            *(ctypes.c_uint32 * (rank & 0xFFFF)).from_address(box),
        ]
        assert list((ctypes.c_uint32 * 3).from_address(ones)) == [1, 1, 1]
        made = struct.pack("<I4xQ8Q", kind & 0xFFFF, address, *numbers)
        ctypes.memmove(out, made.ljust(128, b"M"), 128)

    def _cuFuncGetAttribute(self, out: int, attribute: int, _function: int) -> None:
        ctypes.c_int.from_address(out).value = {0: 512, 4: 80}[attribute]

    # ------------------------------------------------------------------ launches and graphs

    def _launch(self, function: int, *rest: int) -> int:
        grid, block, shared, stream, parameters, extra = (
            rest[:3], rest[3:6], rest[6], rest[7], rest[8], rest[9],
        )  # fmt: skip
        assert parameters == 0
        self.calls.append(("cuLaunchKernel", (function, *grid, *block, shared, stream)))
        if "cuLaunchKernel" in self.failures:
            return self.failures["cuLaunchKernel"]
        self._run(grid, _extra_bytes(extra))
        return 0

    def _run(self, grid: tuple[int, ...], arguments: bytes) -> int:
        self.arguments = arguments
        if self.kernel is not None:
            self.kernel(grid, arguments)
        return 0

    def _cuGraphCreate(self, out: int, _flags: int) -> None:
        self._graphs[self._new(out)] = []

    def _node(self, out: int, graph: int, before: int, count: int, run: Callable[[], int]) -> None:
        nodes = self._graphs[graph]
        assert count == (1 if nodes else 0)  # a chain
        if count:
            assert ctypes.c_uint64.from_address(before).value == self._last[graph]
        node = self._last[graph] = self._new(out)
        self._places[node] = nodes, len(nodes)
        nodes.append(run)

    def _cuGraphAddKernelNode(self, out: int, graph: int, before: int, count: int, at: int) -> None:
        _, *shape, parameters, extra, _, _ = struct.unpack("<Q7I4x4Q", ctypes.string_at(at, 72))
        assert parameters == 0
        arguments = _extra_bytes(extra)
        self._node(out, graph, before, count, lambda: self._run(tuple(shape[:3]), arguments))

    def _cuGraphExecKernelNodeSetParams(self, executable: int, node: int, at: int) -> None:
        nodes, place = self._places[node]
        assert self._graphs[self._executables[executable]] is nodes
        _, *shape, parameters, extra, _, _ = struct.unpack("<Q7I4x4Q", ctypes.string_at(at, 72))
        assert parameters == 0
        arguments = _extra_bytes(extra)
        nodes[place] = lambda: self._run(tuple(shape[:3]), arguments)

    def _cuGraphAddMemcpyNode(
        self, out: int, graph: int, before: int, count: int, at: int, _context: int
    ) -> None:
        words = struct.unpack("<25Q", ctypes.string_at(at, 200))
        assert (words[4], words[15]) == (2, 2)
        source, target, size = words[6], words[17], words[22]

        def run() -> int:
            ctypes.memmove(target, source, size)
            return 0

        self._node(out, graph, before, count, run)

    def _cuGraphAddMemsetNode(
        self, out: int, graph: int, before: int, count: int, at: int, _context: int
    ) -> None:
        target, _, value, element, width, rows = struct.unpack("<QQIIQQ", ctypes.string_at(at, 40))
        assert (value, rows) == (0, 1)

        def run() -> int:
            ctypes.memset(target, 0, element * width)
            return 0

        self._node(out, graph, before, count, run)

    def _cuGraphAddChildGraphNode(
        self, out: int, graph: int, before: int, count: int, child: int
    ) -> None:
        nodes = list(self._graphs[child])
        self._node(out, graph, before, count, lambda: sum(run() for run in nodes))

    def _cuGraphConditionalHandleCreate(
        self, out: int, graph: int, context: int, default: int, flags: int
    ) -> None:
        assert graph in self._graphs
        assert (context & ~0xF, default, flags) == (0xC0, 0, 0)
        self.conditions[self._new(out)] = 0

    def _cuGraphAddNode(self, out: int, graph: int, before: int, count: int, at: int) -> None:
        """A conditional node: its body is a graph, whose handle the driver writes."""
        kind, handle, form, size, _, context = struct.unpack("<I12xQIIQQ", ctypes.string_at(at, 48))
        assert (kind, size, context & ~0xF) == (13, 1, 0xC0)
        assert handle in self.conditions
        bodies = (ctypes.c_uint64 * 1)()
        self._bodies.append(bodies)
        nodes = self._graphs[self._new(ctypes.addressof(bodies))] = []
        ctypes.c_uint64.from_address(at + 32).value = ctypes.addressof(bodies)

        def run() -> int:
            while self.conditions[handle]:
                for node in nodes:
                    node()
                if form == 0:
                    break
            return 0

        self._node(out, graph, before, count, run)

    def _cuGraphInstantiateWithFlags(self, out: int, graph: int, _flags: int) -> None:
        self._executables[self._new(out)] = graph

    def _cuGraphLaunch(self, executable: int, _stream: int) -> None:
        for run in self._graphs[self._executables[executable]]:
            run()


def _extra_bytes(extra: int) -> bytes:
    """The arguments of a launch, out of the words that say where they are."""
    if not extra:
        return b""
    pointer, place, sized, size_at, end = (ctypes.c_uint64 * 5).from_address(extra)
    assert (pointer, sized, end) == (1, 2, 0)
    return ctypes.string_at(place, ctypes.c_uint64.from_address(size_at).value)
