"""Draw the Mandelbrot set with a kernel: one thread computes one point.

Each point c is followed through z = z * z + c until |z| is large. How many steps that takes, made
smooth by a logarithm, is the point's brightness; points that never leave are the set itself.

    python examples/mandelbrot.py --out results
    python examples/mandelbrot.py --size 2048 --limit 2000 --device cuda --out results
"""

from __future__ import annotations

import time

import numpy as np
from showing import count, options, save

import treadle as td

# Where to look: the centre of a square, and its width.
PLACES = {"the whole set": (-0.6, 0.0, 2.6), "seahorses": (-0.7453, 0.1127, 0.012),
          "a spiral": (-0.088, 0.654, 0.006)}  # fmt: skip


@td.kernel
def escape(out: td.Array[td.f32, 2], x0: td.f32, y0: td.f32, width: td.f32, limit: td.i32):
    """The steps until a point leaves, with a fraction; -1 for a point that does not leave."""
    i, j = td.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        step = width / td.f32(out.shape[0])
        cx = x0 - 0.5 * width + step * (td.f32(j) + 0.5)
        cy = y0 - 0.5 * width + step * (td.f32(i) + 0.5)
        x, y, steps = 0.0, 0.0, 0
        while x * x + y * y < 256.0 and steps < limit:
            x, y = x * x - y * y + cx, 2.0 * x * y + cy
            steps += 1
        if steps < limit:
            out[i, j] = td.f32(steps) - td.log2(0.5 * td.log2(x * x + y * y))
        else:
            out[i, j] = -1.0


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The part of the first picture that is in the set."""
    parser = options(__doc__)
    parser.add_argument("--size", type=count, default=512, help="points along each side (512)")
    parser.add_argument("--limit", type=count, default=1000, help="steps at most (1000)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()

    pictures = {}
    for title, place in PLACES.items():
        out = td.zeros((given.size, given.size), device=device)
        escape.launch(out.shape, out, *place, 1)  # compiled here, and not while the clock runs
        device.synchronize()
        began = time.perf_counter()
        escape.launch(out.shape, out, *place, given.limit)
        device.synchronize()
        took = time.perf_counter() - began
        print(f"{title}: {given.size} × {given.size} points in {took * 1e3:.1f} ms on {device.id}")
        pictures[title] = out.numpy()

    def draw(figure, _):
        for axes, (title, steps) in zip(figure.subplots(1, 3), pictures.items(), strict=True):
            outside = np.ma.masked_less(steps, 0.0)
            shades = np.log1p(np.log1p(np.maximum(outside - outside.min(), 0.0)))
            axes.imshow(shades, cmap="twilight_shifted", origin="lower")
            axes.set_facecolor("black")
            axes.set_title(title)
            axes.set_xticks([])
            axes.set_yticks([])

    inside = float((pictures["the whole set"] < 0).mean())
    save(given.out, "mandelbrot", {}, draw, device=device.id, inside=inside)
    return inside


if __name__ == "__main__":
    main()
