"""Steer a wave by gradient descent through the solver.

A membrane is let go at rest. Which shape must it have at first, for the wave to be a given picture
some time later? The wave equation is solved by a kernel, 120 times; `td.autograd.Function` tells
how a gradient goes back through one step, and `backward()` goes through all of them. Many shapes
will nearly do, so a small price on the first one's size chooses among them.

    python examples/wave_focus.py --out results
    python examples/wave_focus.py --size 256 --steps 480 --iterations 300 --device cuda
"""

from __future__ import annotations

import numpy as np
from showing import count, options, save

import treadle as td

SPEED = 0.2  # (speed of sound * time step / grid step)^2; stable below 0.5


@td.kernel
def laplacian(u: td.Array[td.f32, 2], out: td.Array[td.f32, 2]):
    """How much each point lies below its four neighbours; what lies outside is 0."""
    i, j = td.grid(2)
    if i < u.shape[0] and j < u.shape[1]:
        out[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]


def bent(u: td.Tensor) -> td.Tensor:
    """The kernel as a function of a tensor."""
    out = td.empty_like(u)
    laplacian.launch(u.shape, u, out)
    return out


class Laplacian(td.autograd.Function):
    """A stencil with a derivative. It is its own transpose, so the gradient takes the same way."""

    @staticmethod
    def forward(ctx, u):
        return bent(u)

    @staticmethod
    def backward(ctx, g):
        return bent(g)


def simulate(first: td.Tensor, steps: int) -> td.Tensor:
    """The membrane after so many steps (leapfrog, from rest)."""
    before, now = first, first + 0.5 * SPEED * Laplacian.apply(first)
    for _ in range(steps - 1):
        before, now = now, 2.0 * now - before + SPEED * Laplacian.apply(now)
    return now


def target(size: int) -> np.ndarray:
    """The picture to become: a ring with a bump in it."""
    y, x = (np.mgrid[0:size, 0:size] + 0.5) / size - 0.5
    radius = np.hypot(x, y)
    ring = np.exp(-(((radius - 0.25) / 0.035) ** 2))
    bump = np.exp(-((radius / 0.06) ** 2))
    return (ring + bump).astype(np.float32)


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The relative error at the end."""
    parser = options(__doc__)
    parser.add_argument("--size", type=count, default=64, help="points along each side (64)")
    parser.add_argument("--steps", type=count, default=120, help="time steps (120)")
    parser.add_argument("--iterations", type=count, default=60, help="of gradient descent (60)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()

    goal = td.asarray(target(given.size), device=device)
    norm = td.sum(goal * goal)
    first = td.nn.Parameter(td.zeros((given.size, given.size), device=device))
    optimizer = td.optim.Adam([first], lr=0.05)
    schedule = td.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.iterations)
    errors = []
    steps = td.data.progress(range(given.iterations), "focusing")
    for _ in steps:
        error = td.sum((simulate(first, given.steps) - goal) ** 2) / norm
        loss = error + 1e-3 * td.sum(first * first) / norm
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        errors.append(error.item())
        steps.set(error=errors[-1])
    print(f"what is left of the picture after {given.iterations} iterations: {errors[-1]:.2%}")

    def draw(figure, axes):
        times = (0, given.steps // 2, given.steps - given.steps // 8, given.steps)
        places = figure.subplots(1, len(times) + 1)
        with td.no_grad():
            frames = [first if t == 0 else simulate(first, t) for t in times]
        titles = ["found: at first", *(f"after {t} steps" for t in times[1:]), "wanted"]
        for place, title, frame in zip(places, titles, [*frames, goal], strict=True):
            place.imshow(frame.numpy(), cmap="RdBu", vmin=-1, vmax=1)
            place.set_title(title)
            place.set_axis_off()

    save(given.out, "wave_focus", {"relative error": errors}, draw, device=device.id)
    return errors[-1]


if __name__ == "__main__":
    main()
