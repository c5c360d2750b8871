"""What all drivers of WebGPU have in common, in the browser and outside.

- `kernels`: what a kernel may ask of a device, what it is bound to, what a compiler's message says.
- `unaligned_copies`: bytes at offsets that are not words; streams that copy at any offset.
- `traits`: what devices are like, and which of their limits and features kernels can use.
"""
