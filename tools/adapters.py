"""Prints the graphics interfaces through which WebGPU finds a device, one a line."""

import wgpu

if __name__ == "__main__":
    adapters = wgpu.gpu.enumerate_adapters_sync()
    for backend in sorted({adapter.info["backend_type"] for adapter in adapters}):
        print(backend.lower())
