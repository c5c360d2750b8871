"""`python -m benchmarks.convolution_tiles [DEVICE …]`: which tile suits which convolution.

What is found goes by hand into `treadle.kernels.convolve`.
"""

from __future__ import annotations

import sys
import traceback
from unittest import mock

import treadle as td
from benchmarks.__main__ import DEVICES
from benchmarks.harness import device_seconds
from treadle.kernels import convolve
from treadle.kernels.device_code.convolution import Tile

# Input, weights and stride; padding is half of the kernel.
LAYERS = (
    ((8, 64, 56, 56), (64, 64, 3, 3), 1),
    ((32, 256, 28, 28), (256, 256, 3, 3), 1),
    ((8, 3, 224, 224), (64, 3, 7, 7), 2),
    ((2, 512, 7, 7), (512, 512, 3, 3), 1),
)
CANDIDATES = (
    *[Tile(128, 128, depth, 8, 8, copies) for depth in (8, 16) for copies in (1, 2)],
    *[Tile(64, 128, 8, 8, 8, copies) for copies in (1, 2)],
    *[Tile(64, 64, depth, 4, 8, copies) for depth in (8, 16) for copies in (1, 2)],
    *[Tile(64, 64, 8, 4, 4, copies) for copies in (1, 2)],
    Tile(32, 128, 8, 4, 8, 2),
    Tile(32, 32, 8, 4, 4, 2),
)


def main() -> None:
    """Time all candidates on the devices named, or on all that are there."""
    for spec in sys.argv[1:] or [name for name in DEVICES if td.is_available(name)]:
        with td.use_device(spec) as device:
            print(f"{device.id}: {device.name}, {device.driver}")
            for shape, weights, stride in LAYERS:
                x, weight = (td.random.normal(each).realize() for each in (shape, weights))
                for tile in CANDIDATES:
                    try:
                        print(f"  {shape} {weights} {tuple(tile)!s:28}", end=" ")
                        print(f"{_rate(device, x, weight, stride, tile):6.2f} TFLOP/s", flush=True)
                    except Exception:  # noqa: BLE001 - the other candidates go on
                        traceback.print_exc()


def _rate(device: td.Device, x: td.Tensor, weight: td.Tensor, stride: int, tile: Tile) -> float:
    def run() -> td.Tensor:
        padding = weight.shape[-1] // 2
        return td.nn.functional.conv2d(x, weight, None, stride, padding).realize()

    with mock.patch.object(convolve, "tile_for", return_value=tile):
        products = run().size * weight.size // weight.shape[0]
        return 2e-12 * products / device_seconds(device, run)[0]


if __name__ == "__main__":
    main()
