"""Let two galaxies collide, with a kernel in CUDA C++ that runs on every device.

Every star attracts every other one. A block of threads loads as many stars into shared memory as it
has threads, uses them, and goes on to the next ones: the classic kernel of CUDA's textbooks.

    python examples/galaxies.py --out results
    python examples/galaxies.py --stars 32768 --steps 1500 --device cuda --out results
"""

from __future__ import annotations

import numpy as np
from showing import count, options, save

import treadle as td

BLOCK = 128
SOURCE = """
__global__ void attract(const float4 *place, float4 *speed, int n, float dt, float soft)
{
    __shared__ float4 near[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 me = i < n ? place[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += BLOCK) {
        int j = first + threadIdx.x;
        near[threadIdx.x] = j < n ? place[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < BLOCK; ++k) {
            float dx = near[k].x - me.x, dy = near[k].y - me.y, dz = near[k].z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + soft);
            float pull = near[k].w * inverse * inverse * inverse;  // w is the mass
            ax += pull * dx; ay += pull * dy; az += pull * dz;
        }
        __syncthreads();
    }
    if (i < n) { speed[i].x += dt * ax; speed[i].y += dt * ay; speed[i].z += dt * az; }
}

__global__ void move(float4 *place, const float4 *speed, int n, float dt)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) {
        place[i].x += dt * speed[i].x;
        place[i].y += dt * speed[i].y;
        place[i].z += dt * speed[i].z;
    }
}
"""
SOFT = 0.01  # of the distance's square, so that close stars do not fly apart


def galaxy(rng, stars: int, centre, drift, tilt: float, spin: float):
    """Places with masses, and speeds, of a disk of stars that circles a heavy centre."""
    radius = 0.1 + 0.9 * rng.random(stars)
    angle = 2 * np.pi * rng.random(stars)
    flat = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    circle = spin * np.stack([-np.sin(angle), np.cos(angle)], 1) / np.sqrt(radius)[:, None]
    place, speed = np.zeros((stars, 4), np.float32), np.zeros((stars, 4), np.float32)
    for into, from_ in ((place, flat), (speed, circle)):
        into[:, 0] = from_[:, 0]
        into[:, 1] = np.cos(tilt) * from_[:, 1]
        into[:, 2] = np.sin(tilt) * from_[:, 1] + 0.01 * rng.normal(size=stars)
    place[:, 3] = 0.2 / stars
    place[0], speed[0] = (0, 0, 0, 1.0), 0  # the centre
    place[:, :3] += centre
    speed[:, :3] += drift
    return place, speed


def momentum(place: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """What no step may change."""
    return (place[:, 3:] * speed[:, :3]).sum(axis=0)


def main(arguments: list[str] | None = None) -> float:
    """Run the example. How much the momentum changed, which should be nothing."""
    parser = options(__doc__)
    parser.add_argument("--stars", type=count, default=6144, help="in both galaxies (6144)")
    parser.add_argument("--steps", type=count, default=600, help="time steps (600)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()

    rng, half = np.random.default_rng(given.seed), max(given.stars // 2, 1)
    left = galaxy(rng, half, (-1.3, -0.8, 0), (0.25, -0.1, 0), 0.2, 1.0)
    right = galaxy(rng, half, (1.3, 0.8, 0), (-0.25, 0.1, 0), 0.9, 1.0)
    place, speed = (
        td.asarray(np.concatenate(both), device=device) for both in zip(left, right, strict=True)
    )
    before, n = momentum(place.numpy(), speed.numpy()), 2 * half
    module = td.cuda_module(SOURCE, defines={"BLOCK": BLOCK})
    blocks, dt = -(-n // BLOCK), 5.0 / given.steps
    frames = {}
    for step in td.data.progress(range(given.steps + 1), "colliding"):
        if step in {given.steps * k // 3 for k in range(4)}:
            frames[step] = place.numpy()
        module.attract[blocks, BLOCK](place, speed, n, dt, SOFT)
        module.move[blocks, BLOCK](place, speed, n, dt)
    drift = float(np.abs(momentum(place.numpy(), speed.numpy()) - before).max())
    print(f"{n} stars, {given.steps} steps on {device.id}; the momentum changed by {drift:.1e}")

    def draw(figure, _):
        figure.set_facecolor("black")
        for axes, (step, at) in zip(figure.subplots(1, len(frames)), frames.items(), strict=True):
            for part, colour in ((slice(0, half), "#ffd9a0"), (slice(half, n), "#9fd0ff")):
                axes.scatter(*at[part, :2].T, s=1.6, color=colour, alpha=0.6, linewidths=0)
            axes.set(xlim=(-2.5, 2.5), ylim=(-2.9, 2.9), aspect="equal", facecolor="black")
            axes.set_title(f"step {step}", color="white")
            axes.set_axis_off()

    save(given.out, "galaxies", {}, draw, device=device.id, drift=drift)
    return drift


if __name__ == "__main__":
    main()
