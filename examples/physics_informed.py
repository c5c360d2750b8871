"""Fit a network to a differential equation, and find what the equation does not tell.

A weight on a spring swings ever less: u'' + 2 d u' + w^2 u = 0. It was measured twelve times in the
first third of the time, with errors, and d is not known. A small network u(t) is fitted to the
measurements and, everywhere, to the equation, whose derivatives are made by `td.grad` of `td.grad`;
d is fitted with it. So the network goes on where nobody measured.

    python examples/physics_informed.py --out results
"""

from __future__ import annotations

import numpy as np
from showing import count, options, save

import treadle as td

DAMPING, FREQUENCY, END = 0.6, 6.0, 3.0  # d and w, and until when


def swing(t: np.ndarray) -> np.ndarray:
    """The solution from u = 1 at rest."""
    w = np.sqrt(FREQUENCY**2 - DAMPING**2)
    return np.exp(-DAMPING * t) * (np.cos(w * t) + DAMPING / w * np.sin(w * t))


class Sine(td.nn.Module):
    """The sine, with which networks have derivatives as smooth as they are (SIREN, 2020)."""

    def forward(self, x):
        return td.sin(x)


def network(width: int, device: td.Device) -> td.nn.Module:
    """A function of time, whose first layer knows the time in several frequencies."""
    model = td.nn.Sequential(
        td.nn.Linear(1, width, device=device), Sine(),
        td.nn.Linear(width, width, device=device), Sine(),
        td.nn.Linear(width, 1, device=device),
    )  # fmt: skip
    with td.no_grad():
        model[0].weight *= FREQUENCY
    return model


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The largest error of u anywhere."""
    parser = options(__doc__)
    parser.add_argument("--steps", type=count, default=600, help="of Adam (600)")
    parser.add_argument("--width", type=count, default=32, help="neurons of a layer (32)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()
    td.manual_seed(given.seed)

    rng = np.random.default_rng(given.seed)
    when = np.sort(rng.uniform(0, END / 3, 12))
    noisy = swing(when) + 0.02 * rng.normal(size=when.size)
    measured_at = td.asarray(when[:, None], dtype=td.float32, device=device)
    measured = td.asarray(noisy[:, None], dtype=td.float32, device=device)
    points = td.linspace(0.0, END, 64, device=device).reshape(-1, 1)

    model = network(given.width, device)
    damping = td.nn.Parameter(td.asarray(0.0, device=device))
    velocity = td.grad(lambda t: model(t).sum())
    acceleration = td.grad(lambda t: velocity(t).sum())

    def residual(t):
        return acceleration(t) + 2.0 * damping * velocity(t) + FREQUENCY**2 * model(t)

    optimizer = td.optim.Adam([*model.parameters(), damping], lr=1e-2)
    schedule = td.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.steps)
    losses: list[td.Tensor] = []
    steps = td.data.progress(range(given.steps), "fitting")
    for _ in steps:
        equation = td.mean((residual(points) / FREQUENCY**2) ** 2)
        data = td.mean((model(measured_at) - measured) ** 2)
        loss = data + equation
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
        steps.set(loss=loss, damping=damping)

    t = np.linspace(0, END, 300)
    with td.no_grad():
        fitted = model(td.asarray(t[:, None], dtype=td.float32, device=device)).numpy()[:, 0]
    worst = float(np.max(np.abs(fitted - swing(t))))
    print(f"u is off by {worst:.3f} at most; damping {damping.item():.3f}, in truth {DAMPING}")

    def draw(figure, axes):
        place = figure.subplots()
        place.plot(t, swing(t), color="0.7", linewidth=4, label="truth")
        place.plot(t, fitted, color="tab:blue", label="network")
        place.plot(when, noisy, "o", color="crimson", label="measured")
        place.set_xlabel("time")
        place.legend()

    curve = td.stack(losses).tolist()
    save(given.out, "physics_informed", {"loss": curve}, draw, damping=damping.item(), worst=worst)
    return worst


if __name__ == "__main__":
    main()
