"""A clap in a house with two rooms and a door: the acoustic wave equation in three dimensions.

Walls reflect: nothing moves through the side of a cell that is solid, and the outer walls are
boundary="clamp". Three arrays change places.

    python examples/stencils/wave_3d.py --out results
    python examples/stencils/wave_3d.py --size 512 --steps 1000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

SPEED = 0.3  # (speed of sound * time step / cell)², at most 1/3


@td.stencil(boundary="clamp")
def sound(before, now, air, after, pos):
    here = now[pos]
    force = pos.west(air) * (pos.west(now) - here) + pos.east(air) * (pos.east(now) - here)
    force += pos.north(air) * (pos.north(now) - here) + pos.south(air) * (pos.south(now) - here)
    force += pos.up(air) * (pos.up(now) - here) + pos.down(air) * (pos.down(now) - here)
    after[pos] = air[pos] * (2.0 * here - before[pos] + SPEED * force)


def house(size: int) -> np.ndarray:
    """1 where there is air. The wall between the rooms has a door at the floor."""
    air = np.ones((size // 2, size, size), np.float32)
    wall = slice(size // 2, size // 2 + max(size // 32, 1))
    air[:, :, wall] = 0
    air[: size // 3, size * 5 // 8 : size * 3 // 4, wall] = 1
    return air


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The part of the sound's pressure that is in the other room at the end."""
    given = options(__doc__, arguments, size=96, steps=150)
    size = given.size
    air = house(size)
    k, i, j = np.indices(air.shape)
    far = (k - size // 8) ** 2 + (i - size // 3) ** 2 + (j - size // 4) ** 2
    clap = np.exp(-far / (size / 32) ** 2).astype(np.float32)
    before, now, after = (td.asarray(clap, device=given.device) for _ in range(3))

    seen = {}

    def picture(step, now):
        height = now.numpy()[size // 8]
        most = float(np.abs(height).max())
        cut = np.where(air[size // 8] > 0, height, np.nan)
        seen[f"after {step} steps"] = cut, {"cmap": "RdBu", "vmin": -0.5 * most, "vmax": 0.5 * most}

    last = td.stencil_loop(
        sound, before, now, td.asarray(air, device=given.device), after, steps=given.steps,
        rotate=("before", "now", "after"), every=-(-given.steps // 3), callback=picture,
    )  # fmt: skip
    energy = last.numpy().astype(np.float64) ** 2
    part = float(energy[:, :, size // 2 :].sum() / energy.sum())
    print(f"in the other room: {part:.1%}")
    save(given, "wave_3d", seen, part=part)
    return part


if __name__ == "__main__":
    main()
