"""WebGPU through wgpu-native: Vulkan, Metal, Direct3D 12 and OpenGL, on every desktop system.

- `backend`: listing and opening devices; the door.
- `adapters`: which physical devices there are.
- `device`, `stream`, `events`, `recording`: the driver protocol.
- `batch`, `encode_loop`: work collected as records, and the compiled loop that encodes them.
- `memory`, `transfers`, `moves`: buffers, staging, and bytes at odd offsets.
- `pipelines`: compiled kernels and cached bind groups.
- `native`: the C library.

Kernels bind their buffers in group 0, in the order of `KernelCode.bindings`, read-only where the
kernel does not write; and their parameter block as a uniform with a dynamic offset in group 1,
binding 0.
"""

from treadle.drivers.webgpu_native.backend import WebgpuBackend

__all__ = ["WebgpuBackend"]
