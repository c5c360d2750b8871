"""Grow patterns by reaction and diffusion (Gray and Scott), with array expressions alone.

Two chemicals diffuse; one feeds the other, which decays. What each point gets from its neighbours
is `td.roll`, and `td.compile` makes one submission of many steps, whose expressions are fused.

    python examples/reaction_diffusion.py --out results
    python examples/reaction_diffusion.py --size 512 --steps 20000 --device cuda --out results
"""

from __future__ import annotations

import numpy as np
from showing import count, options, save

import treadle as td

# How fast the first chemical is fed and the second taken away, by what grows.
KINDS = {"spots": (0.030, 0.062), "worms": (0.046, 0.063), "coral": (0.0545, 0.062)}
AT_ONCE = 8  # steps of a submission


def neighbours(x: td.Tensor) -> td.Tensor:
    """The weighted mean of a point's eight neighbours, less the point itself."""
    rows = td.roll(x, 1, axis=0) + td.roll(x, -1, axis=0)
    sides = td.roll(x, 1, axis=1) + td.roll(x, -1, axis=1)
    corners = td.roll(rows, 1, axis=1) + td.roll(rows, -1, axis=1)
    return 0.2 * (rows + sides) + 0.05 * corners - x


@td.compile
def advance(u: td.Tensor, v: td.Tensor, feed: td.Tensor, kill: td.Tensor):
    """Some steps of both chemicals."""
    for _ in range(AT_ONCE):
        reaction = u * v * v
        du = neighbours(u) - reaction + feed * (1.0 - u)
        dv = 0.5 * neighbours(v) + reaction - (feed + kill) * v
        u, v = u + du, v + dv
    return u, v


def main(arguments: list[str] | None = None) -> float:
    """Run the example. How much of the second chemical there is at the end, at most."""
    parser = options(__doc__)
    parser.add_argument("--size", type=count, default=128, help="points along each side (128)")
    parser.add_argument("--steps", type=count, default=6000, help="time steps (6000)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()

    rng = np.random.default_rng(given.seed)
    shape = (given.size, given.size)
    seeds = (rng.random(shape) < 0.002).astype(np.float32)
    for axis in (0, 1):  # each seed becomes a square of five points
        seeds = np.maximum.reduce([np.roll(seeds, shift, axis) for shift in range(5)])

    grown = {}
    turns = td.data.progress(range(-(-given.steps // AT_ONCE)), "growing")
    states = {
        kind: (td.asarray(1.0 - 0.5 * seeds, device=device),
               td.asarray(0.25 * seeds, device=device),
               *(td.asarray(rate, dtype=td.float32, device=device) for rate in rates))
        for kind, rates in KINDS.items()
    }  # fmt: skip
    for _ in turns:
        for kind, (u, v, feed, kill) in states.items():
            states[kind] = (*advance(u, v, feed, kill), feed, kill)
    grown = {kind: v.numpy() for kind, (_, v, _, _) in states.items()}
    print(", ".join(f"{kind} cover {(v > 0.1).mean():.0%}" for kind, v in grown.items()))

    def draw(figure, _):
        for axes, (kind, v) in zip(figure.subplots(1, 3), grown.items(), strict=True):
            axes.imshow(v, cmap="magma", interpolation="bilinear")
            axes.set_title(f"{kind}: feed {KINDS[kind][0]}, kill {KINDS[kind][1]}")
            axes.set_axis_off()

    most = float(max(v.max() for v in grown.values()))
    save(given.out, "reaction_diffusion", {}, draw, device=device.id, most=most)
    return most


if __name__ == "__main__":
    main()
