"""The demo's work on one device, and the same in NumPy to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import treadle as td
from treadle.cli.demo import kernels

WAVE_SIZE = 256
WAVE_STEPS = 300
WAVE_SPEED = 0.24  # (speed of sound * time step / grid step)^2; stable below 0.5
_BLOCK = (16, 16)

Array = np.ndarray[Any, Any]
Picture = Array  # of float32


@dataclass(frozen=True)
class Results:
    """What the demo computes, and the seconds each part took (second run, without compiling)."""

    blurred: Picture
    edges: Picture
    counts: Array
    wave: Picture
    seconds: dict[str, float]


def gaussian_weights() -> Picture:
    """Normalized weights of a Gaussian over 2 * RADIUS + 1 pixels."""
    distance = np.arange(-kernels.RADIUS, kernels.RADIUS + 1)
    weights = np.exp(-0.5 * (distance / (kernels.RADIUS / 2)) ** 2)
    return np.asarray(weights / weights.sum(), np.float32)


def first_wave() -> Picture:
    """A still surface with one round bump."""
    y, x = np.mgrid[0:WAVE_SIZE, 0:WAVE_SIZE] / WAVE_SIZE
    bump = np.exp(-((x - 0.3) ** 2 + (y - 0.4) ** 2) / 0.001)
    bump[0] = bump[-1] = bump[:, 0] = bump[:, -1] = 0
    return np.asarray(bump, np.float32)


def run_on_device(image: Picture, device: td.Device, step: Callable[[str], None]) -> Results:
    """Everything on one device; `step` is called with the name of each part before it starts."""
    photo = td.asarray(image, device=device)
    weights = td.asarray(gaussian_weights(), device=device)
    half, blurred, edges = (td.zeros(image.shape, device=device) for _ in range(3))
    grid = (-(-image.shape[1] // _BLOCK[0]), -(-image.shape[0] // _BLOCK[1]))

    def blur() -> Picture:
        kernels.blur_rows[grid, _BLOCK](photo, weights, half)
        kernels.blur_columns[grid, _BLOCK](half, weights, blurred)
        return blurred.numpy()

    def find_edges() -> Picture:
        kernels.sobel[grid, _BLOCK](blurred, edges)
        return edges.numpy()

    def count() -> Array:
        counts = td.zeros(kernels.BINS, dtype=td.u32, device=device)
        kernels.histogram[32, 128](photo.reshape(-1), counts)
        return counts.numpy()

    def wave() -> Picture:
        start = first_wave()
        before, now, after = (td.asarray(start, device=device) for _ in range(3))
        extent = (WAVE_SIZE // _BLOCK[0], WAVE_SIZE // _BLOCK[1])
        for _ in range(WAVE_STEPS):
            kernels.wave_step[extent, _BLOCK](before, now, after, WAVE_SPEED)
            before, now, after = now, after, before
        return now.numpy()

    made: dict[str, Array] = {}
    seconds: dict[str, float] = {}
    parts = {"blur": blur, "edges": find_edges, "histogram": count, "wave": wave}
    for name, part in parts.items():
        step(name)
        part()  # compiles
        began = time.perf_counter()
        made[name] = part()
        seconds[name] = time.perf_counter() - began
    return Results(made["blur"], made["edges"], made["histogram"], made["wave"], seconds)


def run_in_numpy(image: Picture) -> Results:
    """The same in NumPy and float64, as the truth."""
    seconds: dict[str, float] = {}

    def timed(name: str, part: Callable[[], Array]) -> Array:
        began = time.perf_counter()
        result = part()
        seconds[name] = time.perf_counter() - began
        return result

    def blur() -> Array:
        weights = gaussian_weights().astype(np.float64)
        radius = kernels.RADIUS
        wide = np.pad(image.astype(np.float64), ((0, 0), (radius, radius)), mode="edge")
        rows = sum(w * wide[:, k : k + image.shape[1]] for k, w in enumerate(weights))
        tall = np.pad(rows, ((radius, radius), (0, 0)), mode="edge")
        return np.asarray(sum(w * tall[k : k + image.shape[0]] for k, w in enumerate(weights)))

    blurred = timed("blur", blur)

    def find_edges() -> Array:
        p = np.pad(blurred, 1, mode="edge")
        across = (
            p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
        )
        down = (
            p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
        )
        return np.asarray(np.sqrt(across**2 + down**2))

    def count() -> Array:
        levels = np.clip((image * np.float32(255) + np.float32(0.5)).astype(np.int32), 0, 255)
        return np.bincount(levels.ravel(), minlength=kernels.BINS).astype(np.uint32)

    def wave() -> Array:
        before = now = first_wave().astype(np.float64)
        for _ in range(WAVE_STEPS):
            after = np.zeros_like(now)
            bend = (
                now[:-2, 1:-1]
                + now[2:, 1:-1]
                + now[1:-1, :-2]
                + now[1:-1, 2:]
                - 4 * now[1:-1, 1:-1]
            )
            after[1:-1, 1:-1] = (
                2 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + np.float32(WAVE_SPEED) * bend
            )
            before, now = now, after
        return now

    return Results(
        blurred, timed("edges", find_edges), timed("histogram", count), timed("wave", wave), seconds
    )


def difference(result: Array, truth: Array) -> float:
    """The relative norm of the difference; NaN if there is a NaN."""
    return float(np.linalg.norm(result.astype(np.float64) - truth) / np.linalg.norm(truth))
