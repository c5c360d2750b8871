"""Prints what the tests can run on here, one a line: the graphics interfaces through which WebGPU
finds a device, and "dawn" if Dawn finds one (in tests it also looks for Chromium's SwiftShader).
"""

import sys
from pathlib import Path

import wgpu

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.dawn import dawn_device
from treadle.core.errors import DeviceNotFound

if __name__ == "__main__":
    adapters = wgpu.gpu.enumerate_adapters_sync()
    for backend in sorted({adapter.info["backend_type"] for adapter in adapters}):
        print(backend.lower())
    try:
        dawn_device()
    except DeviceNotFound:
        pass
    else:
        print("dawn")
