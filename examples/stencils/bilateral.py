"""Noise removed from a picture: the bilateral filter, beside Gauss's, and the edges that it keeps.

The filter weighs each neighbour by its distance, and by how different its colour is: colours do not
mix over edges. Pixels are vectors of three numbers. Each step filters once more.

    python examples/stencils/bilateral.py --out results
    python examples/stencils/bilateral.py --size 4096 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td

RADIUS = 3
Image = td.Array[td.vec3[td.f32], 2]


@td.stencil(boundary="mirror")
def bilateral(image: Image, near, alike, out: Image, pos: td.GridPos):
    """`near` and `alike`: 1 / (2 sigma²) of distances and of differences of colours."""
    here = image[pos]
    total = td.vec3[td.f32](0.0, 0.0, 0.0)
    weights = 0.0
    for di in td.static_range(-RADIUS, RADIUS + 1):
        for dj in td.static_range(-RADIUS, RADIUS + 1):
            other = pos.at(image, di, dj)
            change = other - here
            weight = td.exp(-near * (di * di + dj * dj) - alike * td.dot(change, change))
            total += weight * other
            weights += weight
    out[pos] = total / weights


@td.stencil(boundary="mirror")
def edges(image: Image, out: td.Array[td.f32, 2], pos: td.GridPos):
    """How fast the colour changes (Sobel's filter)."""
    right = pos.at(image, -1, 1) + 2.0 * pos.east(image) + pos.at(image, 1, 1)
    left = pos.at(image, -1, -1) + 2.0 * pos.west(image) + pos.at(image, 1, -1)
    below = pos.at(image, 1, -1) + 2.0 * pos.south(image) + pos.at(image, 1, 1)
    above = pos.at(image, -1, -1) + 2.0 * pos.north(image) + pos.at(image, -1, 1)
    along, across = right - left, below - above
    out[pos] = td.sqrt(td.dot(along, along) + td.dot(across, across))


def painting(size: int) -> np.ndarray:
    """Disks, each shaded, and stripes."""
    i, j = np.mgrid[:size, :size] / size
    image = np.stack([0.9 - 0.3 * i, 0.9 - 0.2 * j, 0.8 + 0.1 * i], -1)
    for middle, radius, colour in ((0.35, 0.25, (0.8, 0.2, 0.2)), (0.6, 0.28, (0.15, 0.35, 0.7))):
        inside = np.hypot(i - middle, j - middle) < radius
        image[inside] = np.array(colour) * (1.2 - 0.8 * i[inside, None])
    image[(i > 0.9) & (np.sin(90 * j) > 0)] = 0.15
    return image


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The error after the bilateral filter, as a part of the noise."""
    given = options(__doc__, arguments, size=256, steps=2)
    clean = painting(given.size)
    noisy = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    noise = td.asarray(noisy, dtype=td.float32, device=given.device)
    shown = {"with noise": noise}
    for title, alike in (("Gauss", 0.0), ("bilateral", 1 / (2 * 0.35**2))):
        a, b = noise + 0.0, td.zeros_like(noise)
        shown[title] = td.stencil_loop(bilateral, a, 1 / (2 * 2.0**2), alike, b, steps=given.steps)
    found = td.zeros(clean.shape[:2], device=given.device)
    edges(shown["bilateral"], found)

    pictures = {title: image.numpy().clip(0, 1) for title, image in shown.items()}
    left = {title: float(np.std(image - clean)) / 0.1 for title, image in pictures.items()}
    print(", ".join(f"{title}: error {value:.2f}" for title, value in left.items()))
    pictures["edges"] = found.numpy(), {"cmap": "gray_r"}
    save(given, "bilateral", pictures, **left)
    return left["bilateral"]


if __name__ == "__main__":
    main()
