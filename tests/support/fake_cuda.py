"""A CUDA driver without CUDA: two devices whose memory is the host's, which run at once, and whose
streams write down in which order they were told to work.

It shows what the runtime asks of a driver when other libraries' memory is used.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from treadle.core.traits import Traits
from treadle.drivers import base
from treadle.drivers.cpu import device as cpu
from treadle.drivers.cpu import stream as cpu_stream

_TRAITS = Traits(targets=("llvm",), rank=0, double_buffers=True, cuda_memory=True)
_handles = itertools.count(0x1000, 0x10)
foreign_memory: dict[int, str] = {}
"""The device on which memory of tests lies, by its address."""


class Stream(cpu_stream.Stream):
    """A stream that keeps a diary."""

    __slots__ = ("diary", "number")

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.number = next(_handles)
        self.diary = device.diary

    def _note(self, *entry: object) -> None:
        name = "default" if self is self.device.default_stream else "other"
        self.diary.append((name, *entry))

    def launch(self, kernel, grid, buffers, parameters):
        self._note("launch")
        super().launch(kernel, grid, buffers, parameters)

    def synchronize(self):
        self._note("synchronize")

    def use(self, buffers):
        self._note("use", len(buffers))

    def native_handle(self):
        return self.number

    def wait_for(self, other):
        self._note("wait_for", other)

    def precede(self, other):
        self._note("precede", other)

    def record(self):
        self._note("record")
        return Event(self.device)


class Event(base.Event):
    """A point that is reached when the test says so."""

    def __init__(self, device):
        self.device = device

    def query(self):
        return self.device.reached

    def synchronize(self):
        pass

    def seconds(self):
        return 0.0


class Device(cpu.Device):
    """One of the two devices."""

    def __init__(self, info):
        self.diary: list[tuple[object, ...]] = []
        self.reached = False
        super().__init__(info)
        self.default_stream = Stream(self)
        self.peers = 0

    def create_stream(self):
        return Stream(self)

    def holder_of(self, address):
        return foreign_memory[address]

    def copy_from(self, source, source_offset, target, target_offset, size):
        self.peers += 1
        piece = source.memory[source_offset : source_offset + size]
        target.memory[target_offset : target_offset + size] = piece
        return True


class FakeCuda(cpu.Backend):
    """The two devices."""

    name = "cuda"

    def list_devices(self, **choice):
        plain = super().list_devices()[0]
        return [
            replace(
                plain,
                id=f"cuda:{n}",
                backend="cuda",
                kind="discrete",
                name=f"fake {n}",
                traits=_TRAITS,
            )
            for n in range(2)
        ]

    def open(self, info, *, limits=None):
        return Device(info)
