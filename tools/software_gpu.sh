#!/usr/bin/env bash
# Sees to it that the tests find a Vulkan and an OpenGL device: where there is none, installs
# Mesa's software drivers (lavapipe, llvmpipe) with the system's package manager. And g++, which runs
# printed CUDA C++ and Metal on the CPU.
#
#   tools/software_gpu.sh ENVIRONMENT
set -euo pipefail
[ "$(uname -s)" = Linux ] || exit 0 # elsewhere WebGPU stands on Metal or Direct3D

say() { printf '%s\n' "treadle: $*" >&2; }
found() { "$1/bin/python" tools/adapters.py 2>/dev/null || true; }

present=$(found "$1")
packages=()
if ! grep -qx vulkan <<<"$present"; then
    say "no Vulkan driver found; the tests use Mesa's software driver"
    packages+=(libvulkan1 mesa-vulkan-drivers)
fi
if ! grep -qx opengl <<<"$present"; then
    say "no OpenGL driver found; the tests use Mesa's software driver"
    packages+=(libegl1 libgl1-mesa-dri libgles2)
fi
if ! command -v g++ >/dev/null; then
    say "no g++ found; the tests run printed CUDA C++ and Metal with it"
    packages+=(g++ libc6-dev)
fi
[ ${#packages[@]} -gt 0 ] || exit 0
"$(dirname "$0")/system_packages.sh" "${packages[@]}"

present=$(found "$1")
for backend in vulkan opengl; do
    grep -qx "$backend" <<<"$present" ||
        say "WebGPU still finds no $backend device; tests that need one will be skipped, and fail in CI"
done
