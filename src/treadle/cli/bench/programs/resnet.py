"""A ResNet-18: steps of training, and the first one of a process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.cli.bench.programs.first_use import first_uses
from treadle.cli.bench.programs.setting import Array, ImageSizes, Library, Measurement, Setting
from treadle.cli.bench.programs.training import Program, figures, step_of

_SMALLER = ImageSizes(2, 32, 4, 10)


def measurements(setting: Setting) -> list[Measurement]:
    """Steps, and the first eager and compiled ones of a process."""
    firsts = {"resnet": "ResNet-18, first step"}
    if setting.sizes.compiled_first:
        firsts["resnet-compiled"] = "ResNet-18, first compiled step"
    return [
        functools.partial(figures, setting, program(setting.sizes.image)),
        *(functools.partial(first_uses, setting, *first) for first in firsts.items()),
    ]


def first_step(setting: Setting, program_name: str) -> Callable[[], object]:
    """The first step of a process."""
    step = step_of(
        program(setting.sizes.image), setting.ours, compiled=program_name.endswith("compiled")
    )
    return lambda: step().item()


def program(sizes: ImageSizes) -> Program:
    """A batch of drawn images, by SGD with momentum."""
    return Program(
        f"ResNet-18, {sizes.channels} channels, batch {sizes.batch} of {sizes.edge}²",
        lambda library: resnet(library, sizes),
        lambda library, parameters: library.module.optim.SGD(parameters, lr=0.01, momentum=0.9),
        functools.partial(_batch, sizes),
        None if sizes == _SMALLER else program(_SMALLER),
    )


def _batch(sizes: ImageSizes, rng: np.random.Generator) -> tuple[Array, Array]:
    images = rng.standard_normal((sizes.batch, 3, sizes.edge, sizes.edge), np.float32)
    return images, rng.integers(0, sizes.classes, sizes.batch)


def resnet(library: Library, sizes: ImageSizes) -> Any:
    """The model, in either library."""
    nn, device = library.module.nn, library.device

    def convolution(inputs: int, outputs: int, edge: int, stride: int) -> Any:
        return nn.Conv2d(
            inputs, outputs, edge, stride=stride, padding=edge // 2, bias=False, device=device
        )

    def norm(channels: int) -> Any:
        return nn.BatchNorm2d(channels, device=device)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                convolution(inputs, outputs, 3, stride), norm(outputs), nn.ReLU(),
                convolution(outputs, outputs, 3, 1), norm(outputs),
            )  # fmt: skip
            self.short = nn.Identity()
            if stride > 1 or inputs != outputs:
                self.short = nn.Sequential(convolution(inputs, outputs, 1, stride), norm(outputs))

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.layers(x) + self.short(x))

    width = sizes.channels
    layers = [convolution(3, width, 7, 2), norm(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for number, stride in enumerate((1, 2, 2, 2)):
        outputs = sizes.channels << number
        layers += [Block(width, outputs, stride), Block(outputs, outputs, 1)]
        width = outputs
    end = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, sizes.classes, device=device)
    return nn.Sequential(*layers, *end)
