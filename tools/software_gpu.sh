#!/usr/bin/env bash
# Sees to it that the tests find a Vulkan and an OpenGL device, and one for Dawn: where there is
# none, installs Mesa's software drivers (lavapipe, llvmpipe), and Chromium's (SwiftShader) if Dawn
# finds Mesa's too old, with the system's package manager. And g++, which runs printed CUDA C++ and
# Metal on the CPU.
#
#   tools/software_gpu.sh ENVIRONMENT
set -euo pipefail
[ "$(uname -s)" = Linux ] || exit 0 # elsewhere WebGPU stands on Metal or Direct3D

say() { printf '%s\n' "treadle: $*" >&2; }
look() { present=$("$1/bin/python" tools/adapters.py 2>/dev/null || true); }
found() { grep -qx "$1" <<<"$present"; }
install() { "$(dirname "$0")/system_packages.sh" "$@"; }

look "$1"
packages=()
if ! found vulkan; then
    say "no Vulkan driver found; the tests use Mesa's software driver"
    packages+=(libvulkan1 mesa-vulkan-drivers)
fi
if ! found opengl; then
    say "no OpenGL driver found; the tests use Mesa's software driver"
    packages+=(libegl1 libgl1-mesa-dri libgles2)
fi
if ! command -v g++ >/dev/null; then
    say "no g++ found; the tests run printed CUDA C++ and Metal with it"
    packages+=(g++ libc6-dev)
fi
if [ ${#packages[@]} -gt 0 ]; then
    install "${packages[@]}"
    look "$1"
fi
if ! found dawn; then
    say "no Vulkan driver is new enough for Dawn; the tests use Chromium's software driver"
    # The smallest package with libvk_swiftshader.so, of which nothing else is used.
    install libvulkan1 chromium-common || true
    look "$1"
fi

for backend in vulkan opengl dawn; do
    found "$backend" ||
        say "the tests still find no device through $backend; those that need one will be skipped, and fail in CI"
done
