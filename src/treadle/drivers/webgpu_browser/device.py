"""One opened device of the browser: memory, kernels, the one batch that all streams append to, and
the errors that the browser reports."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from treadle.codegen.records import KernelCode
from treadle.core.errors import LaunchError
from treadle.core.limits import DeviceInfo
from treadle.drivers.base import Event
from treadle.drivers.webgpu_browser import commands
from treadle.drivers.webgpu_browser.commands import Batch
from treadle.drivers.webgpu_browser.events import BrowserEvent, TimestampPool, read_times
from treadle.drivers.webgpu_browser.kernels import (
    BrowserKernel,
    Layout,
    compile_kernel,
)
from treadle.drivers.webgpu_browser.memory import BrowserBuffer
from treadle.drivers.webgpu_browser.stream import FIRST_WORDS, MOST_WORDS, BrowserStream
from treadle.drivers.webgpu_browser.waiting import can_wait, wait
from treadle.drivers.webgpu_rules.device import MemoryDevice
from treadle.drivers.webgpu_rules.kernels import PARAMETER_SIZES

PARAMETER_BYTES = 1 << 17  # of parameter blocks in a batch
UPLOAD_BYTES = 1 << 20  # of small uploads in a batch
_CHECKED = 16 << 20  # an allocation of so many bytes waits for its success, where Python can wait


class Heard:
    """What the browser reports of a device, at any time: errors, failed kernels, its loss."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, str]] = []  # kinds, as `helper.js` names them, and messages
        self.changed: Callable[[], BrowserDevice | None] = lambda: None

    def __call__(self, kind: str, message: str) -> None:
        self.errors.append((kind, message))
        device = self.changed()
        if device is not None:
            device.batch.room = 0  # so that the next append looks here


class BrowserDevice(MemoryDevice[BrowserBuffer, BrowserKernel]):
    """A device of `navigator.gpu`. `helper` is its side in JavaScript."""

    memory = BrowserBuffer
    teller = "the browser"
    opened_by = "`await td.init()` opens it again"

    def __init__(self, helper: Any, heard: Heard, info: DeviceInfo, parameter_alignment: int):
        super().__init__(info)
        self.helper = helper
        self.batch = Batch()
        self.batch.room = FIRST_WORDS
        self.parameter_alignment = parameter_alignment
        self.layouts: dict[str, Layout] = {}
        self._submit = helper.submit
        self._heard = heard
        heard.changed = weakref.ref(self)
        self._numbers = 0
        self.captures = 0  # streams that are captured at present
        self._forgotten: list[int] = []
        self._kernels: weakref.WeakValueDictionary[int, BrowserKernel] = (
            weakref.WeakValueDictionary()
        )
        self._timestamps: TimestampPool | None = None
        self._default_stream: BrowserStream | None = None
        helper.prepare(PARAMETER_BYTES, UPLOAD_BYTES, str(list(PARAMETER_SIZES)))

    @property
    def default_stream(self) -> BrowserStream:  # type: ignore[override]
        """The stream of callers that name none."""
        if self._default_stream is None:
            self._default_stream = BrowserStream(self)
        return self._default_stream

    def create_stream(self) -> BrowserStream:
        """A new stream; all streams append to the device's one batch."""
        self.check()
        return BrowserStream(self)

    def compile(self, code: KernelCode, binary: bytes | None = None) -> BrowserKernel:
        """Begin to build printed WGSL, which does not block; launches of it wait in the queue."""
        self.check()
        return compile_kernel(self, code)

    def next_number(self) -> int:
        """A number for an object of JavaScript's."""
        self._numbers += 1
        return self._numbers

    def forget(self, what: int, number: int) -> None:
        """Have JavaScript forget an object once the open batch is submitted. Safe in finalizers."""
        self._forgotten += (what, number)

    # ------------------------------------------------------------------ memory

    def allocate_internal(self, size: int) -> BrowserBuffer:
        """Memory of the driver's own, not counted in `memory_stats`. OutOfMemory at once for large
        buffers where Python can wait, else when the memory is next used or waited for."""
        size = -(-size // 4) * 4
        number = self.next_number()
        checked = size >= _CHECKED and can_wait()
        if checked:
            self.flush()  # memory that was freed is given back
        outcome = self.helper.allocate(number, size, checked)
        if checked:
            refused = wait(outcome)
            if refused is not None:
                self.forget(commands.FORGET_BUFFER, number)
                raise self.out_of_memory(f"for a buffer of {size:,} bytes", refused)
            self.raise_heard()
        return BrowserBuffer(self, number, size, number)

    def _part(self, buffer: BrowserBuffer, start: int, size: int) -> BrowserBuffer:
        return BrowserBuffer(self, self.next_number(), size, buffer.number, start, buffer)

    def _release_memory(self, buffer: BrowserBuffer) -> None:
        self.forget(commands.FORGET_BUFFER, buffer.number)

    def _release_group(self, number: int) -> None:
        self.forget(commands.FORGET_GROUP, number)

    # ------------------------------------------------------------------ shared by the driver

    def layout(self, types: str) -> Layout:
        """The layout for buffers bound as `types`: "r" or "w" each."""
        found = self.layouts.get(types)
        if found is None:
            found = Layout(self.next_number(), self.bind_groups.new_cache())
            self.layouts[types] = found
            self.helper.layout(found.number, types)
        return found

    def compiling(self, kernel: BrowserKernel) -> None:
        """A pipeline is made from here on."""
        self._kernels[kernel.number] = kernel

    @property
    def timestamps(self) -> TimestampPool:
        """Places for timestamps."""
        if self._timestamps is None:
            self._timestamps = TimestampPool(self)
        return self._timestamps

    def read_times(self, events: Sequence[Event]) -> None:
        """Let events know their times, by a read for many."""
        read_times([event for event in events if isinstance(event, BrowserEvent)])

    def flush(self) -> None:
        """Hand what was appended to JavaScript. Raises what was heard."""
        batch = self.batch
        if (batch.words or self._forgotten) and self.lost is None:
            forgotten: list[int] = []
            if not self.captures:  # what they name is kept by their recordings
                forgotten, self._forgotten = self._forgotten, forgotten
            self._submit(batch.block(forgotten))
            batch.clear()
            batch.room = min(2 * max(batch.room, FIRST_WORDS), MOST_WORDS)
        self.raise_heard()

    async def handed_over(self) -> None:
        """All that was appended is on the device's queue, before what JavaScript submits from here
        on: kernels that were still compiled are waited for."""
        self.flush()
        await self.helper.handedOver()
        self.raise_heard()

    @property
    def gpu_device(self) -> Any:
        """The device as JavaScript has it, a GPUDevice, for render pipelines of a page's own."""
        return self.helper.device

    # ------------------------------------------------------------------ errors and the end

    def raise_heard(self) -> None:
        """Raise the first error that the browser reported since the last look."""
        if not self._heard.errors:
            self.check()
            return
        heard, self._heard.errors = self._heard.errors, []
        self.batch.room = FIRST_WORDS
        failed = None
        for kind, message in heard:
            if kind == "lost":
                raise self.lose(message)
            if kind == "kernel":
                number, _, words = message.partition("\n")
                kernel = self._kernels.get(int(number))
                if kernel is not None:
                    failed = kernel.failed(words)
        self.check()
        if failed is not None:
            raise failed
        kind, message = next((each for each in heard if each[0] == "memory"), heard[0])
        if kind == "memory":
            raise self.out_of_memory("for what was allocated last", message)
        if kind == "kernel":  # of one that is gone
            raise LaunchError(f"the browser refused a kernel: {message.partition(chr(10))[2]}")
        raise LaunchError(f"{self.info.id} refused the work appended so far: {message.strip()}")

    def _end_batches(self) -> None:
        self.batch.clear()
        self.batch.room = 0

    @property
    def is_lost(self) -> bool:
        """Whether it is gone, as far as the page has heard."""
        return self.lost is not None or any(kind == "lost" for kind, _ in self._heard.errors)

    def close(self) -> None:
        """Release the device and all of its memory; using it afterwards is DeviceLost."""
        if not self._end():
            return
        self.helper.close()
        self._heard.errors.clear()
        self._free_all()
        self._forgotten.clear()
        self._default_stream = self._move_kernel = self._timestamps = None
