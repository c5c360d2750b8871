"""WGSL on this machine: naga as a checker, and kernels run on the software Vulkan adapter.

This is plain wgpu, with none of the library's drivers, so that a printer's test says something
about the printer alone. `run` takes what the printer returned.
"""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

import numpy as np

from treadle.codegen.records import KernelCode
from treadle.codegen.wgsl import WgslOptions
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits

_FEATURES = {
    "float16": ("shader-f16",),
    "float64": ("shader-f64",),
    "int64": ("shader-int64",),
    "subgroups": ("subgroup", "subgroup-barrier"),
    "float_atomics": ("shader-float32-atomic",),
    "int64_atomics": ("shader-int64-atomic-all-ops", "shader-int64-atomic-min-max"),
}
ALL_FEATURES = frozenset(_FEATURES)
LIMITS = Limits(max_shared_memory=32768, max_threads_per_block=1024)


def options(*features: str, **more: Any) -> WgslOptions:
    """Options for naga with these features, or with all that the software adapter has."""
    chosen = frozenset(features) if features else ALL_FEATURES
    return WgslOptions(features=chosen - {"none"}, limits=more.pop("limits", LIMITS), **more)


@functools.cache
def device() -> Any:
    """The software Vulkan adapter's device, with every feature that printed kernels may use."""
    import wgpu

    adapters = wgpu.gpu.enumerate_adapters_sync()
    (adapter, *_) = [a for a in adapters if a.info["backend_type"] == "Vulkan"]
    wanted = sorted(name for names in _FEATURES.values() for name in names)
    return adapter.request_device_sync(
        required_features=wanted,
        required_limits={
            "max-compute-workgroup-storage-size": 32768,
            "max-compute-invocations-per-workgroup": 1024,
            "max-compute-workgroup-size-x": 1024,
        },
    )


def naga_error(source: str, entry: str) -> str | None:
    """What naga says against a module and its entry point; None if nothing."""
    import wgpu

    try:
        module = device().create_shader_module(code=source)
        stage = {"module": module, "entry_point": entry}
        device().create_compute_pipeline(layout="auto", compute=stage)
    except wgpu.GPUError as error:
        return str(error)
    return None


def run(
    code: KernelCode,
    grid: int | tuple[int, ...],
    buffers: dict[str, np.ndarray[Any, Any]],
    parameters: dict[str, Any] | None = None,
    dispatch: tuple[int, int, int] | None = None,
) -> None:
    """Run a kernel; the arrays of written buffers are changed in place, the others must not be.

    Sizes of arrays and the grid are derived; other parameters are given. `dispatch` launches other
    workgroups than the grid (folded).
    """
    extent = Dim3.of(grid)
    queue = device().queue
    bound = []
    entries = []
    for number, binding in enumerate(code.bindings):
        data = _padded(buffers[binding.buffers[0]])
        buffer = device().create_buffer_with_data(data=data, usage=_STORAGE)
        bound.append(buffer)
        entries.append({"binding": number, "resource": {"buffer": buffer}})
    groups = [(0, entries)] if entries else []
    if code.layout.size:
        block = parameter_block(code, extent, buffers, parameters or {})
        uniform = device().create_buffer_with_data(data=block, usage="UNIFORM")
        groups.append((1, [{"binding": 0, "resource": {"buffer": uniform}}]))
    pipeline = _pipeline(code)
    encoder = device().create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    for index, bindings in groups:
        layout = pipeline.get_bind_group_layout(index)
        compute.set_bind_group(index, device().create_bind_group(layout=layout, entries=bindings))
    compute.dispatch_workgroups(*(dispatch or (extent.x, extent.y, extent.z)))
    compute.end()
    queue.submit([encoder.finish()])
    for binding, buffer in zip(code.bindings, bound, strict=True):
        array = buffers[binding.buffers[0]]
        data = np.frombuffer(queue.read_buffer(buffer), np.uint8)[: array.nbytes]
        if binding.writes:
            array.reshape(-1).view(np.uint8)[:] = data
        else:
            assert np.array_equal(array.reshape(-1).view(np.uint8), data)


_STORAGE = "STORAGE|COPY_SRC|COPY_DST"


def _pipeline(code: KernelCode) -> Any:
    """A pipeline with the layout that a driver would give it (unused bindings included)."""
    kinds = ["storage" if b.writes else "read-only-storage" for b in code.bindings]
    groups = [_group_layout(kinds)]
    if code.layout.size:
        groups.append(_group_layout(["uniform"]))
    layout = device().create_pipeline_layout(bind_group_layouts=groups)
    module = device().create_shader_module(code=code.source)
    return device().create_compute_pipeline(
        layout=layout, compute={"module": module, "entry_point": code.entry}
    )


def _group_layout(kinds: list[str]) -> Any:
    entries = [
        {"binding": number, "visibility": "COMPUTE", "buffer": {"type": kind}}
        for number, kind in enumerate(kinds)
    ]
    return device().create_bind_group_layout(entries=entries)


def _padded(array: np.ndarray[Any, Any]) -> bytes:
    data = array.tobytes()
    return data + bytes(-len(data) % 16 if data else 16)


def parameter_block(
    code: KernelCode,
    grid: Dim3,
    buffers: dict[str, np.ndarray[Any, Any]],
    given: dict[str, Any],
) -> bytes:
    """The kernel's scalars as a launch would pack them."""
    values = []
    for slot in code.layout.slots:
        parameter = slot.parameter
        if parameter.name in given:
            value = given[parameter.name]
        elif parameter.origin[0] == "size":
            value = buffers[str(parameter.origin[1])].size
        elif parameter.origin[0] == "grid":
            value = grid[int(parameter.origin[1])]
        else:
            raise KeyError(f"no value for the parameter {parameter.name}")
        values.append(float(value) if parameter.type.is_float else int(value))
    return struct.pack(code.layout.format, *values)


def same_float(got: float, wanted: float, smallest_normal: float = 0.0) -> bool:
    """Equal to the bit, any NaN for NaN; a number too small to be normal may come as zero."""
    if math.isnan(wanted):
        return math.isnan(got)
    if got == wanted:
        return math.copysign(1, got) == math.copysign(1, wanted)
    return got == 0 and abs(wanted) < smallest_normal
