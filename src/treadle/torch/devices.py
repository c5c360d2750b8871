"""`torch.device` and where tensors are made.

A device of PyTorch's is a name until a tensor is made on it: `torch.device("cuda")` exists on
machines without one. Tensors are made on the CPU unless `torch.set_default_device`, or the
environment variable TREADLE_DEVICE, says otherwise. On machines without CUDA the variable
TREADLE_TORCH_CUDA names the device that "cuda" stands for.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from treadle.core.errors import DeviceNotFound
from treadle.runtime.devices import Device, is_available
from treadle.runtime.devices import device as find_device
from treadle.torch.errors import TorchDeviceNotFound

# What a device may be called: those that there are, and other names of PyTorch's, whose programs
# ask whether a tensor is on one.
_KINDS = (
    "cpu", "cuda", "webgpu", "dawn", "numpy", "meta", "mps", "xpu", "hip", "hpu", "ipu", "maia",
    "mkldnn", "mtia", "opencl", "opengl", "privateuseone", "ve", "vulkan", "xla", "fpga", "ideep",
    "lazy",
)  # fmt: skip


class device:
    """A place for tensors: "cpu", "cuda", "cuda:1", "webgpu", "dawn:0", …

    >>> import treadle.torch as torch
    >>> torch.device("cuda:1").type, torch.device("cuda", 1).index
    ('cuda', 1)
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any = None, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, Device):
            type = type.id
            instead = shown_as_card()
            if instead is not None and instead.id == type:
                type = "cuda:0"
        if isinstance(type, int):
            type, index = "cuda", type
        kind, colon, number = str(type).partition(":")
        if kind not in _KINDS:
            raise RuntimeError(
                f"Expected one of {', '.join(_KINDS)} at the start of a device string: {type!r}"
            )
        if colon and (not number.isdigit() or index is not None):
            raise RuntimeError(f"Invalid device string: {type!r}")
        self.type = kind
        self.index = int(number) if colon else index

    def __repr__(self) -> str:
        number = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{number})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        _defaults.within.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _defaults.within.pop()


class _Defaults:
    """What `set_default_device` and `with torch.device(…)` say."""

    chosen: device | None = None
    stand_in: str | None = None
    card = 0
    within: list[device] = []


_defaults = _Defaults()


def set_default_device(device: Any) -> None:
    """Have tensors made on a device; None is the CPU again."""
    _defaults.chosen = None if device is None else globals()["device"](device)


def get_default_device() -> device:
    """Where tensors are made that name no device."""
    if _defaults.within:
        return _defaults.within[-1]
    return _defaults.chosen or device(os.environ.get("TREADLE_DEVICE") or "cpu")


def stand_in() -> Device | None:
    """The device that "cuda" is on a machine without one of CUDA's: what `set_stand_in`, or
    TREADLE_TORCH_CUDA in the environment, names. None if there is CUDA, or nothing is named."""
    named = _defaults.stand_in or os.environ.get("TREADLE_TORCH_CUDA")
    if not named or is_available("cuda"):
        return None
    return find_device(None if named == "best" else named)


def shown_as_card() -> Device | None:
    """The device that tensors say is "cuda:0" on a machine without CUDA. The CPU is none: where it
    is what "cuda" stands for, as the best device there is, programs are told that it is the CPU."""
    found = stand_in()
    return None if found is None or found.traits.host_memory else found


def set_stand_in(device: str | None) -> None:
    """Have "cuda" be another device on machines without one of CUDA's: "webgpu", "best", … None
    ends that. So programs run that ask for "cuda" and nothing else. Where the best device is the
    CPU, `torch.cuda.is_available()` stays False, and tensors made on "cuda" are the CPU's.

    >>> import treadle.torch as torch
    >>> torch.cuda.set_stand_in(None)
    """
    if device not in (None, "best"):
        find_device(device)
    _defaults.stand_in = device


def current_card() -> int:
    """The number of the CUDA device that "cuda" is."""
    return _defaults.card


def set_current_card(number: int) -> None:
    """Have "cuda" be another one of CUDA's devices."""
    _defaults.card = number


def place(where: Any = None) -> Device:
    """Treadle's device for one of PyTorch's, or the default. RuntimeError if there is none."""
    if isinstance(where, Device):
        return where
    if where is None and not (
        _defaults.within or _defaults.chosen or os.environ.get("TREADLE_DEVICE")
    ):
        return _host()  # what most tensors are made on
    found = get_default_device() if where is None else where
    found = found if isinstance(found, device) else device(found)
    if found.type == "meta":
        raise TorchDeviceNotFound(
            "no device 'meta', whose tensors have no elements: tensors take no memory before they "
            'are computed, so make them on "cpu", or a module by torch.nn.utils.skip_init'
        )
    if found.type != "cuda":
        return _found(str(found))
    instead = stand_in()
    if instead is not None and not found.index:
        return instead
    number = _defaults.card if found.index is None else found.index
    return _found(f"cuda:{number}", _ADVICE)


@functools.cache
def _host() -> Device:
    return find_device("cpu")


_ADVICE = (
    ". TREADLE_TORCH_CUDA=best in the environment (or a device, as webgpu), or "
    'torch.cuda.set_stand_in("best"), has programs use another one for "cuda"'
)


def _found(wanted: str, advice: str = "") -> Device:
    try:
        return find_device(wanted)
    except DeviceNotFound as error:
        raise TorchDeviceNotFound(f"{error}{advice}") from None
