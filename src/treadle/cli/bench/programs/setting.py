"""What programs are measured with: their sizes, the device, and PyTorch where it is installed."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure, Run, installed, torch_on_cuda, wall_seconds
from treadle.core.errors import TreadleError
from treadle.runtime.devices import Device

Array = np.ndarray[Any, Any]
Measurement = Callable[[], list[Figure]]
_CALM = 0.2  # seconds


@dataclass(frozen=True)
class DecoderSizes:
    """A decoder as GPT-2 is one; `room` is the most tokens of a text."""

    layers: int
    width: int
    heads: int
    words: int
    room: int


@dataclass(frozen=True)
class ImageSizes:
    """A ResNet-18 whose first layers have `channels`, and its batch."""

    batch: int
    edge: int
    channels: int = 64
    classes: int = 1000


@dataclass(frozen=True)
class Sizes:
    """How large the programs are. `lengths` are those of texts, before plans and kernels are
    counted and while they are."""

    decoder: DecoderSizes
    image: ImageSizes
    any_length: DecoderSizes
    lengths: tuple[int, int]
    rows: tuple[int, int] = (4096, 8192)
    in_a_row: int = 20  # results of the loop over rows
    hidden: int = 256  # of the perceptron
    sequence: int = 48  # the longest, of the LSTM
    grid: int = 512  # edge, of Jacobi's method
    iterations: int = 100
    paths: int = 1000  # of the Monte-Carlo loop, and its steps
    steps: int = 50
    digits: int = 1437
    operations: bool = True  # whether it is of interest what a single one costs
    compiled_first: bool = False  # whether a process starts with a compiled step of the ResNet, too


CARD = Sizes(
    DecoderSizes(12, 768, 12, 50304, 256),
    ImageSizes(32, 224),
    DecoderSizes(2, 64, 4, 512, 1024),
    (100, 400),
    compiled_first=True,
)
HOST = Sizes(
    DecoderSizes(12, 64, 4, 512, 256),
    ImageSizes(8, 32, 16, 10),
    DecoderSizes(2, 64, 4, 512, 1024),
    (100, 100),
    grid=256,
)
SMALL = Sizes(
    DecoderSizes(1, 8, 2, 11, 64),
    ImageSizes(2, 32, 2, 3),
    DecoderSizes(1, 8, 2, 11, 8),
    (4, 4),
    (5, 300),
    2,
    7,
    5,
    9,
    3,
    20,
    3,
    70,
    operations=False,
)


@dataclass(frozen=True)
class Library:
    """treadle or PyTorch, whose functions and modules have the same names."""

    name: str
    module: Any
    device: Any
    wait: Run

    def array(self, value: Any) -> Any:
        """An array of the library's on its device."""
        return self.module.asarray(value, device=self.device)

    def classes(self, value: Array) -> Any:
        """Numbers of classes, in the dtype that its losses take."""
        return self.array(value.astype(np.int64 if self.name == "PyTorch" else np.int32))

    def load(self, model: Any, state: Mapping[str, Array]) -> Any:
        """A model with these parameters."""
        model.load_state_dict({name: self.array(value) for name, value in state.items()})
        return model


@dataclass(frozen=True)
class Setting:
    """A device to measure, and who else computes the same in this run."""

    suite: str
    device: Device
    sizes: Sizes
    ours: Library
    peer: Library | None

    @property
    def on_host(self) -> bool:
        """Whether NumPy computes where treadle does."""
        return self.device.traits.host_memory

    def figure(self, name: str, step: Run, theirs: Run | None, **more: Any) -> Figure:
        """Seconds of a step, by the host's clock, and of the peer's step, one after the other:
        the threads of each stay awake for a while, in the way of the other's."""
        peers = None if self.peer is None or theirs is None else one(self.peer.wait, theirs)
        took = one(self.ours.wait, step)
        return Figure(
            self.suite, name, "s", took, peer="PyTorch" if peers else "", peers=peers, **more
        )

    def numpy(self, step: Run) -> tuple[tuple[str, float], ...]:
        """NumPy as another peer, where it computes on the same processor."""
        return (("NumPy", one(lambda: None, step)),) if self.on_host else ()


def one(wait: Run, step: Run) -> float:
    """Seconds of one step, after the threads of what ran before had time to fall asleep."""
    time.sleep(_CALM)
    return wall_seconds(wait, step)[0]


def setting_for(suite: str, device: Device, small: bool = False) -> Setting:
    """Sizes for a device, and PyTorch on the same hardware."""
    host = device.traits.host_memory
    torch = installed("torch") if host else None
    if device.kind == "discrete" and "nvidia" in device.vendor.lower():
        torch = torch_on_cuda()
    peer = None
    if torch is not None:
        wait = (lambda: None) if host else torch.cuda.synchronize
        peer = Library("PyTorch", torch, "cpu" if host else "cuda", wait)
    large = CARD if device.kind == "discrete" else HOST
    module = importlib.import_module("treadle")
    ours = Library("treadle", module, device, device.synchronize)
    return Setting(suite, device, SMALL if small else large, ours, peer)


def compare(name: str, found: Any, right: Any, tolerance: float) -> None:
    """TreadleError unless a result is right, but for rounding: the relative error of a norm."""
    found, right = np.asarray(found, np.float64), np.asarray(right, np.float64)
    norm = float(np.linalg.norm(right.ravel()))
    error = float(np.linalg.norm((found - right).ravel())) if found.shape == right.shape else None
    if error is None or not error <= tolerance * norm:
        raise TreadleError(
            f"{name} is wrong: shape {found.shape} where {right.shape} is right, relative error "
            f"{'unknown' if error is None else f'{error / norm:.1e}'} where {tolerance:g} is "
            f"accepted. Nothing was timed; please report it"
        )


def numbers(value: Any) -> Array:
    """What either library's array has, as NumPy's."""
    if hasattr(value, "cpu"):
        value = value.detach().cpu()
    return np.asarray(value.numpy())


def drawn(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, Array]:
    """Parameters by their names: normal by the square root of the inputs; ones for the scales of
    norms and for running variances, zeros for biases and running means."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes.items():
        if name.endswith(("bias", "running_mean")):
            found[name] = np.zeros(shape, np.float32)
        elif name.endswith("num_batches_tracked"):
            found[name] = np.zeros(shape, np.int32)  # some devices have no int64
        elif len(shape) == 1:
            found[name] = np.ones(shape, np.float32)
        else:
            spread = float(np.prod(shape[1:])) ** -0.5
            found[name] = (rng.standard_normal(shape, np.float32) * spread).astype(np.float32)
    return found


def shapes_of(model: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of a model's parameters and buffers, by their names."""
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}
