"""The demo's training: a network learns to read handwritten digits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

import treadle as td
from treadle.core.errors import TreadleError

functional: Any = td.nn.functional  # checkers of types do not see what is gathered there
_BATCH = 64
_HIDDEN = 512
_FASTEST = 1e-2  # the largest learning rate
_DROPOUT = 0.3
_NOISE = 0.2  # added to the pictures in training, whose pixels are from 0 to 1
_SMOOTHING = 0.1  # of the labels

Array = np.ndarray[Any, Any]


class Digits(NamedTuple):
    """Pictures of 8 by 8 pixels, from 0 to 1, and what they show."""

    training: td.data.TensorDataset
    test: td.data.TensorDataset


class Trained(NamedTuple):
    """How a training went, and what the network reads in the test pictures."""

    losses: list[float]  # of each epoch, the mean
    accuracies: list[float]  # after each epoch, of the test pictures
    pictures: Array
    labels: Array
    readings: Array
    seconds: float


class Reader(td.nn.Module):
    """Two layers."""

    def __init__(self, device: td.Device) -> None:
        super().__init__()
        self.inner = td.nn.Linear(64, _HIDDEN, device=device)
        self.outer = td.nn.Linear(_HIDDEN, 10, device=device)

    def forward(self, pictures: td.Tensor) -> td.Tensor:
        """The scores of the ten digits."""
        found = functional.dropout(functional.relu(self.inner(pictures)), _DROPOUT, self.training)
        scores: td.Tensor = self.outer(found)
        return scores


def load_digits() -> Digits:
    """The 1797 digits that scikit-learn ships, a fifth of them to test with.

    TreadleError where scikit-learn is missing, which says how to get it.
    """
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        raise TreadleError(
            "the demo trains on the digits of scikit-learn, which is missing: "
            'pip install "treadle[demo]", or run only the kernels with --no-train'
        ) from None
    pixels, labels = load(return_X_y=True)
    pictures = np.asarray(pixels / 16, np.float32)
    order = np.random.default_rng(0).permutation(len(pictures))
    test, training = np.split(order, [len(order) // 5])
    labels = np.asarray(labels, np.int32)
    return Digits(
        td.data.TensorDataset(pictures[training], labels[training]),
        td.data.TensorDataset(pictures[test], labels[test]),
    )


def train(
    digits: Digits, device: td.Device, epochs: int, seed: int, console: Console | None = None
) -> Trained:
    """Train on a device, with a line of progress in a terminal."""
    began = time.perf_counter()
    td.manual_seed(seed)
    model = Reader(device)
    optimizer = td.optim.AdamW(model.parameters(), lr=_FASTEST)
    loader = td.data.DataLoader(
        digits.training, _BATCH, shuffle=True, generator=seed, num_workers=1, device=device
    )
    losses: list[float] = []
    accuracies: list[float] = []
    readings = np.empty(0, np.int32)
    test_pictures, test_labels = map(np.asarray, digits.test.tensors)
    total = epochs * len(loader)
    schedule = td.optim.lr_scheduler.OneCycleLR(optimizer, _FASTEST, total)

    def batches() -> Iterator[Any]:
        for _ in range(epochs):
            yield from loader

    steps = td.data.progress(batches(), "training", total=total, console=console)
    sum_of_losses = td.zeros((), device=device)
    for number, (pictures, labels) in enumerate(steps, start=1):
        noise = td.random.normal(pictures.shape, 0.0, _NOISE, device=device)
        loss = functional.cross_entropy(model(pictures + noise), labels, label_smoothing=_SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        sum_of_losses = sum_of_losses + loss.detach()
        steps.set(epoch=(number - 1) // len(loader) + 1, loss=loss)
        if number % len(loader) == 0:
            readings = read(model, test_pictures, device)
            accuracies.append(float(np.mean(readings == test_labels)))
            losses.append(float(sum_of_losses) / len(loader))
            sum_of_losses = td.zeros((), device=device)
            steps.set(accuracy=f"{accuracies[-1]:.1%}")
    seconds = time.perf_counter() - began
    return Trained(losses, accuracies, test_pictures, test_labels, readings, seconds)


def read(model: Reader, pictures: Array, device: td.Device) -> Array:
    """What the network takes each picture for."""
    model.eval()
    with td.no_grad():
        scores = model(td.asarray(pictures, device=device))
    model.train()
    return td.argmax(scores, axis=1).numpy()
