"""Other libraries' memory as arguments of kernels: its buffers, and the order of the streams.

Compiled code assumes that different buffers do not overlap (it loads through caches that do not see
stores, and moves loads over stores), so arrays that overlap become views of one buffer.

On CUDA, other libraries do not know treadle's streams. Before a launch on their memory, treadle's
stream waits for the stream that they work on, and after it theirs waits for treadle's. So a library
may reuse memory as soon as treadle releases it: its later work on that stream runs after treadle's.
The driver orders treadle's default stream and the legacy default stream, which most libraries use;
these need no calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treadle.core.errors import DeviceNotFound, LaunchError
from treadle.ir.definition import label_of
from treadle.runtime import dlpack
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device, device
from treadle.runtime.dlpack import LEGACY
from treadle.runtime.foreign import Foreign, Kind, alignment_of, kind_of, read
from treadle.runtime.libraries import ForeignStream, Library
from treadle.runtime.memory import Storage

if TYPE_CHECKING:
    from treadle.drivers import base
    from treadle.ir.definition import KernelDefinition
    from treadle.runtime.devices import Stream

# Compiled code relies on buffers that are aligned to the widest access.
_ALIGNMENT = 16
_MOST_PLACED = 4096  # arrays that a device caches

Bounds = tuple[int, int]  # the address of the first byte, and the one after the last


_reached: dict[tuple[int, int], Device] = {}  # by kind and number in DLPack


# --- which device --------------------------------------------------------------------------------


def device_of(value: Any, what: str) -> Device | None:
    """The device that another library's array is on, opened; None if treadle cannot access such
    devices. DeviceNotFound if it is on a GPU that treadle does not find."""
    kind = kind_of(value)
    assert kind is not None
    place, number = kind.place(value)
    found = _reached.get((place, number))
    if found is not None:
        return found
    unknown = place in dlpack.CUDA_KINDS and number < 0
    address = value.__cuda_array_interface__["data"][0] if unknown else 0
    found = _device_at(place, number, address, f"{what} is memory of {kind.library.name}")
    if found is not None and not unknown:
        _reached[place, number] = found
    return found


def _device_at(kind: int, number: int, address: int, what: str) -> Device | None:
    if kind in dlpack.HOST_KINDS:
        return device("cpu")
    if kind not in dlpack.CUDA_KINDS:
        return None
    try:
        if number < 0:  # __cuda_array_interface__ does not name it; the address determines it
            first = device("cuda")
            return device(first.handle.holder_of(address)) if address else first
        return device(f"cuda:{number}")
    except DeviceNotFound as error:
        raise DeviceNotFound(f"{what} on a CUDA device: {error}") from None


def check_place(foreign: Foreign, where: Device, what: str) -> None:
    """LaunchError unless an array's memory is on the device `where`."""
    name = foreign.library.name
    empty = 0 in foreign.shape
    if empty and foreign.device[1] < 0 and not foreign.address and where.traits.cuda_memory:
        return  # empty, on an unknown device
    found = _device_at(*foreign.device, foreign.address, f"{what} is memory of {name}")
    if found is where:
        if not foreign.address and not empty:
            raise LaunchError(f"{what} is an array of {name} without memory")
        return
    raise LaunchError(
        f"{what} is memory of {name} on "
        f"{'another device' if found is None else found.id if found.id != 'cpu' else 'the CPU'}; "
        f"the launch is on {where.id}. "
        + (f'Launch on device "{found.id}", or copy' if found else "Copy")
        + f' it with td.asarray(…, device="{where.id}")'
    )


# --- memory --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Placed:
    """Another library's array as one of treadle's, for a launch in which no other array overlaps
    it. It does not own the memory, so it is reused for every array with the same facts."""

    array: DeviceArray
    low: int  # the address of its first byte
    high: int  # the address after its last byte


def place(
    kind: Kind, value: Any, definition: KernelDefinition, position: int, order: Order
) -> Placed:
    """Another library's array on the device of a launch; its stream is added to the launch's order.

    LaunchError if it is on another device, or its library refuses.
    """
    where = order.stream.device
    known: dict[Any, Placed] = where.shared_storages.placed
    facts = None
    if kind.facts is not None:
        try:
            facts = kind.facts(value)
        except RuntimeError:  # not plain memory; `read` raises the reason
            facts = None
        found = known.get(facts)
        if found is not None:
            order.include(kind.library, None, value)
            return found
    what = f"{label_of(definition.parameters, position)} of kernel {definition.name}"
    foreign = read(value, what)
    check_place(foreign, where, what)
    order.include(foreign.library, foreign.stream, foreign.owner)
    if facts is None:
        dtype, locked = id(foreign.dtype), foreign.read_only
        facts = foreign.address, dtype, foreign.shape, foreign.strides, locked
        found = known.get(facts)
        if found is not None:
            return found
    if len(known) >= _MOST_PLACED:
        known.clear()
    low, high = foreign.bounds()
    storage = None if low == high else _lend(foreign, (low, high), where)
    array = _empty(foreign, where) if storage is None else _view(foreign, storage, where)
    found = known[facts] = Placed(array, low, high)
    return found


def are_disjoint(placed: list[Placed], own: list[DeviceArray], where: Device) -> bool:
    """Whether no two different arrays of a launch overlap."""
    for number, one in enumerate(placed):
        for other in placed[:number]:
            if one.low < other.high and other.low < one.high and one is not other:
                return False
        for array in own:
            if array.device is where:
                start, end = _extent(array.storage)
                if one.low < end and start < one.high:
                    return False
    return True


def borrow(arrays: list[Foreign], own: list[DeviceArray], where: Device) -> list[DeviceArray]:
    """Other libraries' arrays, which may overlap, as arrays of a device, for a launch that takes
    treadle's `own` arrays too."""
    bounds = [array.bounds() for array in arrays]
    made: dict[Bounds, Storage] = {}
    ours = {array.storage for array in own if array.device is where}
    borrowed = []
    for array, (low, high) in zip(arrays, bounds, strict=True):
        if low == high:
            borrowed.append(_empty(array, where))
            continue
        storage = _holding(ours, low, high)
        if storage is None:
            stretch = overlapping_range(low, high, bounds)
            storage = made.get(stretch)
            if storage is None:
                storage = made[stretch] = _lend(array, stretch, where)
        borrowed.append(_view(array, storage, where))
    return borrowed


def share(value: Any, what: str) -> DeviceArray:
    """Another library's array as one of treadle's, without a copy, which keeps the memory alive.

    LaunchError or DtypeError if it cannot be shared.
    """
    foreign = read(value, what)
    name = f"{what} is memory of {foreign.library.name}"
    where = _device_at(*foreign.device, foreign.address, name)
    if where is None:
        raise LaunchError(f"{name} on a device that treadle does not support: copy it to the CPU")
    low, high = foreign.bounds()
    order = Order(where.default_stream)
    order.include(foreign.library, foreign.stream, foreign.owner)
    order.before()
    if low == high:
        return _empty(foreign, where)
    known = where.shared_storages.storages()
    storage = _holding(known, low, high)
    if storage is None:
        if foreign.whole is not None:  # other parts of it then become views of this storage
            start, size = foreign.whole
            wide = min(low, start), max(high, start + size)
            if not any(a < wide[1] and wide[0] < b for a, b in map(_extent, known)):
                low, high = wide
        loan = Loan(foreign, order, where)
        base = _base_of(low, foreign)
        loan.buffer = where.handle.borrow_address(base, high - base, foreign.owner)
        storage = Storage.borrowed(loan.buffer, high - low, loan)
        where.shared_storages.add(storage)
    else:
        where.shared_storages.lend(storage)  # for good: two arrays have it now
    return _view(foreign, storage, where)


def overlapping_range(low: int, high: int, bounds: list[Bounds]) -> Bounds:
    """The byte range of an array and all arrays that overlap it, directly or through others.

    >>> overlapping_range(0, 4, [(0, 4), (6, 9), (3, 7), (20, 30)])
    (0, 9)
    """
    while True:
        touching = [(a, b) for a, b in bounds if a < high and low < b] + [(low, high)]
        wider = min(a for a, _ in touching), max(b for _, b in touching)
        if wider == (low, high):
            return wider
        low, high = wider


def _empty(array: Foreign, where: Device) -> DeviceArray:
    made = DeviceArray.allocate(where, array.dtype, array.shape)
    return DeviceArray(where, made.storage, array.dtype, array.shape, read_only=array.read_only)


def _holding(storages: Any, low: int, high: int) -> Storage | None:
    """The storage that contains the memory. LaunchError if a storage overlaps only a part of it."""
    for storage in storages:
        start, end = _extent(storage)
        if start <= low and high <= end:
            found: Storage = storage
            return found
        if low < end and start < high:
            raise LaunchError(
                f"the {high - low} bytes of another library's array partly overlap a tensor's "
                "memory: share the whole array with td.from_dlpack, and slice the tensor"
            )
    return None


def _extent(storage: Storage) -> Bounds:
    """The byte range of a storage, without the padding in front of it in a borrowed buffer."""
    end = storage.buffer.address() + storage.buffer.size
    return end - (storage.buffer.size if storage.pool is not None else storage.nbytes), end


def _lend(array: Foreign, stretch: Bounds, where: Device) -> Storage:
    """A storage for one launch, whose `Order` keeps the memory alive."""
    low, high = stretch
    base = _base_of(low, array)
    buffer = where.handle.borrow_address(base, high - base, None)
    return Storage.borrowed(buffer, high - low, None)


def _base_of(low: int, array: Foreign) -> int:
    """The start of a buffer that holds the bytes from `low` on: `low` itself, or an aligned address
    a few whole elements before it. Kernels do not access these elements."""
    item = array.dtype.itemsize
    for base in range(low, low - _ALIGNMENT * item, -item):
        if base % _ALIGNMENT == 0:
            return base
    raise _misaligned(array)


def _view(array: Foreign, storage: Storage, where: Device) -> DeviceArray:
    offset, remainder = divmod(array.address - storage.buffer.address(), array.dtype.itemsize)
    if remainder or array.address % alignment_of(array.dtype):
        raise _misaligned(array)
    return DeviceArray(
        where, storage, array.dtype, array.shape, array.strides, offset, array.read_only
    )


def _misaligned(array: Foreign) -> LaunchError:
    return LaunchError(
        f"an array of {array.dtype} whose elements are not aligned to their size cannot be used "
        "without a copy: copy it first"
    )


# --- order ---------------------------------------------------------------------------------------


class Order:
    """The order of a launch with the work of the libraries whose memory it uses: a context manager
    around the launch."""

    __slots__ = ("_foreign_streams", "_held", "_immutable", "_others", "owners", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.owners: list[object] = []  # of the memory
        self._foreign_streams: dict[ForeignStream, None] = {}  # in order of the arguments
        # The handles of their streams, other than the legacy one, with the streams' owners.
        self._others: dict[int, object] = {}
        self._held = False  # whether a library works on an unknown stream
        self._immutable = True  # whether the arrays of all such libraries are read-only

    @property
    def is_plain(self) -> bool:
        """Whether all work is on default streams, which the driver orders without calls."""
        return not self._others and not self._held

    def include(self, library: Library, stream: int | None, owner: object) -> None:
        """Add a library's work to the order; `stream` is the one that the array names."""
        self.owners.append(owner)
        device = self.stream.device
        if not device.traits.cuda_memory or (library, stream) in self._foreign_streams:
            return
        self._foreign_streams[library, stream] = None
        current, stream_owner = library.stream(int(device.id.partition(":")[2] or 0))
        if current is None and stream is None:
            self._held = True
            self._immutable &= library.immutable
        for other in (current, stream):
            if other is not None and other > LEGACY:
                self._others[other] = stream_owner

    def before(self) -> None:
        """Order the libraries' work so far before later work on treadle's stream."""
        stream = self.stream
        if stream.capturing is not None:  # captured work runs later; its replay orders it
            stream.capturing.extend(self.owners)
            stream.foreign_streams.update(self._foreign_streams)
            return
        if not self._foreign_streams:
            return
        stream.device.shared_storages.run_deferred()
        default = stream.device.default_stream
        if stream.handle is not default.handle:
            stream.handle.wait_for(default.handle.native_handle())
        for other in self._others:
            stream.handle.wait_for(other)

    def after(self) -> None:
        """Order the libraries' later work after treadle's stream so far."""
        stream = self.stream
        if not self._foreign_streams or stream.capturing is not None:
            return
        default = stream.device.default_stream
        if stream.handle is not default.handle:
            stream.handle.precede(default.handle.native_handle())
        if self._held and not self._immutable:  # an unknown stream cannot be made to wait
            stream.handle.synchronize()
        else:
            self.leave()

    def leave(self) -> None:
        """Order the libraries' later use of the memory after treadle's work so far."""
        stream = self.stream
        for other in self._others:
            stream.handle.precede(other)
        if self._held:
            stream.device.shared_storages.hold(stream.handle.record(), self.owners)

    def __enter__(self) -> None:
        self.before()

    def __exit__(self, kind: object, *rest: object) -> None:
        self.after()


class Loan:
    """Another library's memory, borrowed for a storage. When the storage is freed, the library may
    reuse the memory, after treadle's work on it."""

    __slots__ = ("array", "buffer", "device", "order")

    def __init__(self, array: Foreign, order: Order, device: Device) -> None:
        self.array = array
        self.order = order
        self.device = device
        self.buffer: base.Buffer | None = None

    def __del__(self) -> None:
        device, order, buffer = self.device, self.order, self.buffer
        if buffer is None or (order.is_plain and not device.several_streams):
            return

        def let_go() -> None:
            device.default_stream.handle.use([buffer])
            order.leave()

        device.shared_storages.deferred.append(let_go)
