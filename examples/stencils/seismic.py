"""A seismic survey: a shot at the surface, and what its echoes from below tell geophones.

The acoustic wave equation to the eighth order in space: a star of 25 points. The velocity differs
from layer to layer. Sponges absorb at the sides; at the surface the boundary's zeros reflect.

    python examples/stencils/seismic.py --out results
    python examples/stencils/seismic.py --size 512 --steps 1500 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

# The second derivative: the weights of the cell, and of those 1 to 4 cells away.
WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


@td.stencil
def tick(clock, pos):
    clock[pos] += 1


@td.stencil(boundary="zero")
def wave(u, now, speed, sponge, clock, pos):
    """`u` is the wave before and becomes the next one. `speed` is (velocity * step / cell)²."""
    laplacian = 3.0 * WEIGHTS[0] * now[pos]
    for d in td.static_range(1, 5):
        star = pos.at(now, d, 0, 0) + pos.at(now, -d, 0, 0) + pos.at(now, 0, d, 0)
        star += pos.at(now, 0, -d, 0) + pos.at(now, 0, 0, d) + pos.at(now, 0, 0, -d)
        laplacian += WEIGHTS[d] * star
    after = 2.0 * now[pos] - u[pos] + speed[pos] * laplacian - sponge[pos] * (now[pos] - u[pos])
    k, i, j = pos.index
    if k == 4 and i == u.shape[1] // 2 and j == u.shape[2] // 2:  # the shot: Ricker's wavelet
        t = 0.11 * (td.f32(clock[0]) - 40.0)
        after += (1.0 - t * t) * td.exp(-0.5 * t * t)
    u[pos] = after


def ground(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Layers in which sound is faster the deeper they are, one of them bent; and the sponge."""
    k, i, j = np.indices((size, size, size)) / size
    velocity = np.full(k.shape, 0.2)
    velocity[k > 0.3 + 0.08 * np.sin(5 * j)] = 0.3
    velocity[k > 0.55 + 0.2 * j] = 0.42
    edge = np.minimum.reduce([1 - k, i, 1 - i, j, 1 - j])
    return velocity**2, 0.2 * np.clip(1 - edge / 0.12, 0, 1) ** 2


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The strongest echo, beside the direct wave."""
    given = options(__doc__, arguments, size=96, steps=600)
    size, half = given.size, given.size // 2
    asked = {"dtype": td.float32, "device": given.device}
    speed, sponge = (td.asarray(each, **asked) for each in ground(size))
    a, b = (td.zeros((size,) * 3, **asked) for _ in range(2))
    clock = td.zeros(1, dtype=td.int32, device=given.device)
    sections, traces = {}, []
    blue = {"cmap": "RdBu", "vmin": -0.02, "vmax": 0.02}

    def record(pairs, clock, a, b):
        traces.append(b[4, half].numpy())  # a line of geophones
        if pairs in (given.steps // 6, given.steps // 4):
            sections[f"after {2 * pairs} steps"] = b[:, half].numpy(), blue

    both = [(tick, clock), (wave, a, b, speed, sponge, clock)]
    both += [(tick, clock), (wave, b, a, speed, sponge, clock)]
    td.stencil_loop(both, steps=given.steps // 2, every=1, callback=record)
    gather = np.stack(traces)
    echo = float(np.abs(gather[len(gather) * 2 // 3 :]).max() / np.abs(gather).max())
    print(f"the strongest late echo: {echo:.2%} of the shot")
    pictures = {"velocity": (np.sqrt(speed.numpy()[:, half]), {"cmap": "viridis"}), **sections}
    look = {"cmap": "gray", "vmin": -0.01, "vmax": 0.01, "aspect": "auto"}
    save(given, "seismic", pictures | {"at the geophones, in time": (gather, look)}, echo=echo)
    return echo


if __name__ == "__main__":
    main()
