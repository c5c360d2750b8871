"""Patterns that grow by themselves: reaction and diffusion of two chemicals (Gray and Scott).

The rates differ from place to place, so one picture has many of the patterns: the second
chemical is taken away faster from left to right, and the first is fed faster from bottom to top.

    python examples/stencils/gray_scott.py --out results
    python examples/stencils/gray_scott.py --size 2048 --steps 40000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td


@td.func
def around(x, pos):
    """The weighted mean of the eight neighbours, less the cell itself."""
    sides = pos.north(x) + pos.south(x) + pos.west(x) + pos.east(x)
    corners = pos.at(x, -1, -1) + pos.at(x, -1, 1) + pos.at(x, 1, -1) + pos.at(x, 1, 1)
    return 0.2 * sides + 0.05 * corners - x[pos]


@td.stencil(boundary="wrap")
def react(u, v, new_u, new_v, pos):
    i, j = pos.index
    feed = 0.062 - 0.045 * td.f32(i) / td.f32(u.shape[0])
    kill = 0.054 + 0.013 * td.f32(j) / td.f32(u.shape[1])
    reaction = u[pos] * v[pos] * v[pos]
    new_u[pos] = u[pos] + around(u, pos) - reaction + feed * (1.0 - u[pos])
    new_v[pos] = v[pos] + 0.5 * around(v, pos) + reaction - (feed + kill) * v[pos]


def main(arguments: list[str] | None = None) -> float:
    """Run the example. How much of the plate the second chemical covers."""
    given = options(__doc__, arguments, size=256, steps=8000)
    squares = np.random.default_rng(0).random((given.size // 4 + 1,) * 2) < 0.1
    seeds = np.kron(squares, np.ones((4, 4)))[: given.size, : given.size]
    u = td.asarray(1.0 - 0.5 * seeds, dtype=td.float32, device=given.device)
    v = td.asarray(0.25 * seeds, dtype=td.float32, device=given.device)

    seen = {}

    def picture(step, u, v):
        if step in (first, 3 * first, given.steps):
            seen[f"after {step} steps"] = v.numpy(), {"cmap": "magma", "vmin": 0, "vmax": 0.4}

    first = max(given.steps // 12, 1)
    _, v = td.stencil_loop(
        react, u, v, td.zeros_like(u), td.zeros_like(v),
        steps=given.steps, every=first, callback=picture,
    )  # fmt: skip
    cover = float((v.numpy() > 0.1).mean())
    print(f"covered: {cover:.0%}")
    save(given, "gray_scott", seen, cover=cover)
    return cover


if __name__ == "__main__":
    main()
