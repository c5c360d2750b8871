"""Bytes at offsets that WebGPU's own copies refuse.

A WebGPU copy needs offsets and sizes that are multiples of 4, and two different buffers. Any other
copy goes through a scratch buffer of the stream: an ordinary copy brings whole words there, and a
small kernel moves single bytes to their place without changing their neighbours.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3

if TYPE_CHECKING:
    from treadle.drivers.webgpu_native.device import WebgpuDevice
    from treadle.drivers.webgpu_native.pipelines import WebgpuKernel

LARGEST = 1 << 21  # bytes moved at a time
SCRATCH = LARGEST + 8  # a part that starts and ends within words
pack = struct.Struct("<IIII").pack  # the kernel's parameters: offset from, offset to, size, unused

_SOURCE = """
struct Move {
  source: u32,  // byte offsets
  result: u32,
  size: u32,
  unused: u32,
}
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(1) @binding(0) var<uniform> bytes: Move;

@compute @workgroup_size(WIDTH)
fn move_bytes(@builtin(global_invocation_id) thread: vec3<u32>) {
  let first = (bytes.result / 4u + thread.x) * 4u;
  let end = bytes.result + bytes.size;
  if (first >= end) {
    return;
  }
  var word = 0u;
  if (first < bytes.result || first + 4u > end) {
    word = result[first / 4u];
  }
  for (var i = 0u; i < 4u; i++) {
    let place = first + i;
    if (place >= bytes.result && place < end) {
      let origin = bytes.source + (place - bytes.result);
      let byte = (source[origin / 4u] >> (origin % 4u * 8u)) & 0xffu;
      word = (word & ~(0xffu << (i * 8u))) | (byte << (i * 8u));
    }
  }
  result[first / 4u] = word;
}
"""


def compile_move(device: WebgpuDevice) -> WebgpuKernel:
    """The kernel that moves bytes from its first buffer to its second."""
    width = min(64, device.info.limits.max_threads_per_block, device.info.limits.max_block.x)
    code = KernelCode(
        target="wgsl",
        dialect=device.info.dialect,
        name="move_bytes",
        entry="move_bytes",
        source=_SOURCE.replace("WIDTH", str(width)),
        block=Dim3(width),
        workgroup=Dim3(width),
        bindings=(Binding(("source",), writes=False), Binding(("result",), writes=True)),
        layout=ParameterLayout((), 16, "<IIII"),
    )
    return device.compile(code)


def split(offset: int, size: int) -> tuple[int, int, int]:
    """A range as bytes before the first whole word, in whole words, and after the last.

    >>> split(3, 7)
    (1, 4, 2)
    """
    head = min(-offset % 4, size)
    middle = (size - head) // 4 * 4
    return head, middle, size - head - middle
