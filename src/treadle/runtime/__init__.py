"""Devices, memory, launches and caches: what stands between kernels and drivers.

`devices` lists and chooses, `memory` pools, `arrays` are device memory with a shape, `launch` is
the one way to run a kernel, `graphs` capture and replay, `disk_cache` keeps compiled code.
"""
