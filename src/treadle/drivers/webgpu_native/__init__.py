"""WebGPU through wgpu-native or Dawn: Vulkan, Metal, Direct3D 12, OpenGL, on every desktop system.

- `backend`: listing and opening devices; the door.
- `adapters`: which physical devices there are.
- `device`, `stream`, `events`, `recording`: the driver protocol.
- `batch`, `encode_loop`: work collected as records, and the compiled loop that encodes them.
- `memory`: buffers and staging.
- `pipelines`: compiled kernels and cached bind groups.
- `matrix_units`: the products that tensor cores compute.
- `native`: what the C libraries share. `provider`: what each does in its own way, as a record;
  `wgpu_native` and `dawn` are the two.

Kernels bind their buffers in group 0, in the order of `KernelCode.bindings`, read-only where the
kernel does not write; and their parameter block as a uniform with a dynamic offset in group 1,
binding 0.
"""

from treadle.drivers.webgpu_native.backend import WebgpuBackend, dawn_backend

__all__ = ["WebgpuBackend", "dawn_backend"]
