"""Which products of small matrices a device's tensor cores really compute.

The library lists what the driver claims. Some drivers claim what they get wrong, so each unit
multiplies two matrices once, at first use, and only those that give the right result count. The
numbers are small integers, which every type holds and adds exactly.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError
from treadle.drivers.webgpu_native.provider import Element, MatrixUnit

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice

_log = logging.getLogger("treadle")
_DTYPES: dict[Element, type[np.generic]] = {
    "f32": np.float32, "f16": np.float16, "u32": np.uint32, "i32": np.int32,
    "u8": np.uint8, "i8": np.int8,
}  # fmt: skip
# What memory is declared as: bytes lie in words, which offsets and strides count then.
_IN_MEMORY: dict[Element, str] = {"u8": "u32", "i8": "i32"}


def working_units(device: WebgpuDevice, claimed: tuple[MatrixUnit, ...]) -> tuple[MatrixUnit, ...]:
    """Those of the claimed units that multiply right on this device."""
    working = tuple(unit for unit in claimed if _works(device, unit))
    for unit in claimed:
        if unit not in working:
            _log.warning("%s: %s gives wrong results and is not used", device.info.id, unit)
    return working


def _works(device: WebgpuDevice, unit: MatrixUnit) -> bool:
    generator = np.random.default_rng(0)
    most = 1 if unit.result in _IN_MEMORY else 3  # so that sums fit

    def matrix(rows: int, columns: int, element: Element) -> npt.NDArray[np.generic]:
        least = 0 if element.startswith("u") else -most
        numbers = generator.integers(least, most + 1, (rows, columns))
        return numbers.astype(_DTYPES[element])

    left, right = matrix(unit.m, unit.k, unit.input), matrix(unit.k, unit.n, unit.input)
    result = matrix(unit.m, unit.n, unit.result)
    expected = left.astype(np.int64) @ right.astype(np.int64) + result.astype(np.int64)
    stream, arrays = device.create_stream(), (left, right, result)
    buffers = [device.allocate_internal(array.nbytes) for array in arrays]
    try:
        kernel = device.compile(check_code(unit, device.info.limits.subgroup_size))
        for buffer, array in zip(buffers, arrays, strict=True):
            stream.write(buffer, 0, memoryview(array))  # type: ignore[arg-type]
        stream.launch(kernel, Dim3(1), tuple(buffers), b"")
        stream.read(buffers[2], 0, memoryview(result))  # type: ignore[arg-type]
    except (CompileError, LaunchError) as error:
        _log.info("%s: %s does not work: %s", device.info.id, unit, error)
        return False
    finally:
        for buffer in buffers:
            device.free(buffer)
    return np.array_equal(result.astype(np.int64), expected)


def check_code(unit: MatrixUnit, subgroup: int) -> KernelCode:
    """A kernel that multiplies once: result += left @ right."""
    m, n, k, factor, total = unit.m, unit.n, unit.k, unit.input, unit.result
    k_step, n_step = (extent // (4 if factor in _IN_MEMORY else 1) for extent in (k, n))
    halves = "enable f16;" if "f16" in (factor, total) else ""
    source = f"""
enable chromium_experimental_subgroup_matrix;
{halves}
@group(0) @binding(0) var<storage, read> left: array<{_IN_MEMORY.get(factor, factor)}>;
@group(0) @binding(1) var<storage, read> right: array<{_IN_MEMORY.get(factor, factor)}>;
@group(0) @binding(2) var<storage, read_write> result: array<{_IN_MEMORY.get(total, total)}>;

@compute @workgroup_size({subgroup})
fn multiply() {{
  let a =
    subgroupMatrixLoad<subgroup_matrix_left<{factor}, {k}, {m}>, row_major>(&left, 0u, {k_step}u);
  let b =
    subgroupMatrixLoad<subgroup_matrix_right<{factor}, {n}, {k}>, row_major>(&right, 0u, {n_step}u);
  let c =
    subgroupMatrixLoad<subgroup_matrix_result<{total}, {n}, {m}>, row_major>(&result, 0u, {n}u);
  subgroupMatrixStore<row_major>(&result, 0u, subgroupMatrixMultiplyAccumulate(a, b, c), {n}u);
}}
"""
    return KernelCode(
        target="wgsl",
        dialect="tint",
        name="multiply",
        entry="multiply",
        source=source,
        block=Dim3(subgroup),
        workgroup=Dim3(subgroup),
        bindings=(
            Binding(("left",), writes=False),
            Binding(("right",), writes=False),
            Binding(("result",), writes=True),
        ),
        layout=ParameterLayout((), 0, "<"),
    )
