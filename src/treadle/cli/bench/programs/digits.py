"""An epoch over images of digits, with a loader, dropout and a schedule, as the example trains.

The images are drawn (a pattern for each digit, and noise), so that no other library is needed; the
shapes are those of the digits that the example reads.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.setting import (
    Array,
    Library,
    Measurement,
    Setting,
    drawn,
    numbers,
    shapes_of,
)
from treadle.core.errors import TreadleError

_BATCH = 64
_EPOCHS = 2  # before the images are read
_RIGHT = 0.8  # of the images, at least


def measurements(setting: Setting) -> list[Measurement]:
    """Seconds of an epoch."""
    return [functools.partial(_epoch, setting)]


class Run:
    """A network and what trains it, in either library."""

    def __init__(self, library: Library, images: Array, classes: Array) -> None:
        module, nn, device = library.module, library.module.nn, library.device
        self.library = library
        self.model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, device=device), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, device=device), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3),
            nn.Linear(32 * 4 * 4, 64, device=device), nn.ReLU(),
            nn.Linear(64, 10, device=device),
        )  # fmt: skip
        library.load(self.model, drawn(shapes_of(self.model)))
        self.optimizer = module.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.loss = nn.functional.cross_entropy
        if library.name == "PyTorch":
            data = module.utils.data
            pairs = data.TensorDataset(
                module.asarray(images), module.asarray(classes.astype(np.int64))
            )
            self.loader = data.DataLoader(pairs, _BATCH, shuffle=True)
        else:
            pairs = module.data.TensorDataset(images, classes.astype(np.int32))
            self.loader = module.data.DataLoader(
                pairs, _BATCH, shuffle=True, generator=0, device=device
            )

    def epoch(self) -> float:
        """Learn from each image once: the mean loss."""
        total: Any = 0.0
        for images, classes in self.loader:
            if self.library.name == "PyTorch":
                images, classes = images.to(self.library.device), classes.to(self.library.device)
            loss = self.loss(self.model(images), classes)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total = total + loss.detach()
        return float(total) / len(self.loader)

    def right(self, images: Array, classes: Array) -> float:
        """The share of images that the network reads."""
        self.model.eval()
        with self.library.module.no_grad():
            found = numbers(self.model(self.library.array(images)).argmax(-1))
        self.model.train()
        return float((found == classes).mean())


def _epoch(setting: Setting) -> list[Figure]:
    images, classes = _images(setting.sizes.digits)
    setting.ours.module.manual_seed(0)
    run = Run(setting.ours, images, classes)
    losses = [run.epoch() for _ in range(_EPOCHS)]
    share = run.right(images, classes)
    if not (losses[-1] < losses[0] and (share >= _RIGHT or len(images) < _BATCH * 10)):
        raise TreadleError(
            f"an epoch of the digits is wrong: losses {losses}, and {share:.0%} of the images are "
            f"read. Nothing was timed; please report it"
        )
    theirs = None if setting.peer is None else Run(setting.peer, images, classes).epoch
    name = f"digits, an epoch of {len(images)} images of 8 × 8, batches of {_BATCH}"
    return [setting.figure(name, run.epoch, theirs)]


def _images(count: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    patterns = rng.random((10, 1, 8, 8), np.float32)
    classes = rng.integers(0, 10, count)
    noise = rng.standard_normal((count, 1, 8, 8), np.float32)
    return patterns[classes] + 0.2 * noise, classes
