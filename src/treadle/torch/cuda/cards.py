"""Which cards there are, their memory, and waiting for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import TreadleError
from treadle.runtime.devices import Device
from treadle.runtime.devices import devices as find_all
from treadle.torch import devices
from treadle.torch.cuda.streams import Stream
from treadle.torch.devices import device as Shown
from treadle.torch.devices import place


def _place(device: Any = None) -> Device:
    if device is None:
        return place("cuda")
    return place(Shown("cuda", device) if isinstance(device, int) else device)


def is_available() -> bool:
    """Whether there is a card of NVIDIA's, or a device that stands in for one."""
    return device_count() > 0


def device_count() -> int:
    """The number of cards."""
    if devices.shown_as_card() is not None:
        return 1
    return sum(Shown(each).type == "cuda" for each in find_all())


def current_device() -> int:
    """The number of the card that "cuda" is."""
    _place()
    return devices.current_card()


def set_device(device: Any) -> None:
    """Have "cuda" be a card."""
    shown = Shown("cuda", device) if isinstance(device, int) else Shown(device)
    if shown.index is not None and shown.index >= 0:
        place(shown)
        devices.set_current_card(shown.index)


class device:
    """A block in which "cuda" is a card."""

    def __init__(self, device: Any) -> None:
        self._card = device if isinstance(device, int) else Shown(device).index

    def __enter__(self) -> None:
        self._before = devices.current_card()
        if self._card is not None and self._card >= 0:
            devices.set_current_card(self._card)

    def __exit__(self, *exception: object) -> None:
        devices.set_current_card(self._before)


class device_of(device):
    """A block in which "cuda" is the card that a tensor is on."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device())


def init() -> None:
    """Nothing: cards are opened when they are first used."""


def is_initialized() -> bool:
    """Whether there is a card: it is opened when it is first used."""
    return is_available()


def synchronize(device: Any = None) -> None:
    """Wait until a card has done all its work."""
    _place(device).synchronize()


# --- what a card is ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Properties:
    """What `get_device_properties` gives."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int


def get_device_name(device: Any = None) -> str:
    """The name of a card."""
    return _place(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a card; (0, 0) for a device that stands in."""
    number = int(getattr(_place(device).handle, "architecture", 0))
    return number // 10, number % 10


def get_device_properties(device: Any = None) -> _Properties:
    """What a card is."""
    found = _place(device)
    major, minor = get_device_capability(device)
    total = int(found.memory_stats()["driver"].get("total", 0))
    units = found.traits.multiprocessors
    return _Properties(found.name, major, minor, total, units, found.limits.subgroup_size or 32)


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for: those of the cards that are there."""
    found = (get_device_capability(number) for number in range(device_count()))
    return sorted({f"sm_{major}{minor}" for major, minor in found if major})


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether tensors on the card may be bfloat16; False without a card."""
    return is_available() and ("bfloat16" in _place().features or including_emulation)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a card reads the memory of another one: False, tensors go through the host."""
    return False


def utilization(device: Any = None) -> int:
    """Refused: the driver is not asked."""
    raise NotImplementedError("torch.cuda.utilization: ask nvidia-smi")


# --- memory --------------------------------------------------------------------------------------


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The bytes in use, and the most that were, by PyTorch's names; nothing without a card."""
    if not is_available():
        return {}
    found = _place(device).memory_stats()
    held = found["used"] + found["cached"]
    return {
        "allocated_bytes.all.current": found["used"],
        "allocated_bytes.all.peak": found["peak"],
        "reserved_bytes.all.current": held,
        "reserved_bytes.all.peak": max(held, found["peak"]),
    }


def memory_allocated(device: Any = None) -> int:
    """The bytes of all tensors."""
    return int(memory_stats(device).get("allocated_bytes.all.current", 0))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors had."""
    return int(memory_stats(device).get("allocated_bytes.all.peak", 0))


def memory_reserved(device: Any = None) -> int:
    """The bytes of all tensors, and those kept for the next ones."""
    return int(memory_stats(device).get("reserved_bytes.all.current", 0))


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes of tensors and those kept for the next ones."""
    return int(memory_stats(device).get("reserved_bytes.all.peak", 0))


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The bytes that are free, and all bytes, of a card's memory."""
    driver = _place(device).memory_stats()["driver"]
    return int(driver.get("free", 0)), int(driver.get("total", 0))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures of `memory_stats` as lines of text."""
    return "\n".join(f"{name}: {value:,}" for name, value in memory_stats(device).items())


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the most bytes anew."""
    _place(device).pool.reset_peak()


reset_max_memory_allocated = reset_peak_memory_stats


def empty_cache() -> None:
    """Give memory that is kept for the next tensors back."""
    if is_available():
        _place().pool.trim()


def ipc_collect() -> None:
    """Nothing: memory is not shared between processes."""


# --- streams -------------------------------------------------------------------------------------


def current_stream(device: Any = None) -> Stream:
    """The stream of a card."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Stream) -> None:
    """Nothing: a card has one stream."""


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """A block, in which work is in the one order that there is."""
    yield


def is_current_stream_capturing() -> bool:
    """Whether a graph is captured."""
    try:
        return _place().is_capturing
    except TreadleError:
        return False
