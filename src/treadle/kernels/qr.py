"""QR of matrices on GPUs: a launch for each panel of columns, and one that applies its reflections.

See `device_code.qr_steps`.
"""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.kernels.device_code.matrix_blocks import IDENTITY, UPPER
from treadle.kernels.device_code.qr_steps import WIDEST, Panel, Reflection, qr_panel, reflector
from treadle.kernels.launching import flat, new
from treadle.kernels.lu import block_of, has_room, is_seen
from treadle.kernels.triangular import copy_of, fill, whole
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device

_STRIP = 16  # columns that a block applies reflections to
_LEAST_CHUNK = 16  # rows that are in shared memory at once


def fits(a: DeviceArray) -> bool:
    """Whether the matrices can be factored here."""
    count, height, wide = a.shape
    assert isinstance(a.dtype, DType)
    size = count * min(height, wide) * WIDEST
    return is_seen(a, size) and has_room(a.device, a.dtype, height)


def factor(a: DeviceArray, q: DeviceArray, r: DeviceArray) -> None:
    """Write both factors; Q has as many columns as `q` has."""
    assert isinstance(a.dtype, DType)
    device, dtype = a.device, a.dtype
    count, height, wide = a.shape
    steps = min(height, wide)
    work = copy_of(a)
    vectors, triangles = (
        new(a, dtype, count * height * steps),
        new(a, dtype, count * steps * WIDEST),
    )

    def reflect(c: DeviceArray, left: int, at: int, end: int, width: int, back: int) -> None:
        """Apply the reflections of a panel to the columns of c from `left` on."""
        columns = c.shape[2]
        if left < columns:
            what = reflection_of(device, dtype, width)
            blocks = count * -(-(columns - left) // what.strip)
            reflector(what)[blocks, what.threads](
                vectors, triangles, flat(c), height, columns, steps, at, end - at, left, back
            )

    panels = []
    at = 0
    while at < steps:
        what = panel_of(device, dtype, height, height - at)
        end = min(at + what.width, steps)
        qr_panel(what)[count, what.threads](
            flat(work), vectors, triangles, height, wide, steps, at, end - at
        )
        reflect(work, end, at, end, what.width, 1)
        panels.append((at, end, what.width))
        at = end
    fill(whole(r), UPPER, whole(work))
    fill(whole(q), IDENTITY)
    for at, end, width in reversed(panels):
        reflect(q, at, at, end, width, 0)


def panel_of(device: Device, dtype: DType, height: int, rows: int) -> Panel:
    """How a panel of so many rows of matrices of `height` rows is factored."""
    # Each thread writes as many sums as columns at every step: fewer threads write fewer.
    threads, each, width = block_of(device, dtype, height, rows, few=True)
    room = device.limits.max_shared_memory
    while (
        (what := Panel(dtype, threads, each, width)).shared_bytes > room
        or reflection_of(device, dtype, width).shared_bytes > room
    ):  # fmt: skip
        width //= 2
    return what


def reflection_of(device: Device, dtype: DType, width: int) -> Reflection:
    """How reflections of panels of so many columns are applied: with the most threads and rows at a
    time that a device has room for."""
    serial = device.traits.software or device.traits.serial_threads
    threads = min(64 if serial else 256, device.limits.max_threads_per_block)
    chunk = 32 if serial else 128
    while True:
        what = Reflection(dtype, threads, width, _STRIP, chunk)
        if what.shared_bytes <= device.limits.max_shared_memory:
            return what
        if chunk > _LEAST_CHUNK:
            chunk //= 2
        elif threads > max(width, _STRIP):
            threads //= 2
        else:
            return what
