"""What all drivers of WebGPU have in common, in the browser and outside.

- `kernels`: what a kernel may ask of a device, what it is bound to, what a compiler's message says.
- `memory`: buffers, and the cached bind groups that tie them to kernels.
- `device`: the memory of a device: allocating, freeing, windows, and what kernels may be given.
- `unaligned_copies`: bytes at offsets that are not words; streams that copy at any offset.
- `traits`: what devices are like, and which of their limits and features kernels can use.
"""
