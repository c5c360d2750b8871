#!/usr/bin/env bash
# Sees to it that the tests find Chromium and what its pages load (tools/browser_parts.py).
#
#   tools/browser_parts.sh ENVIRONMENT
set -euo pipefail
cd "$(dirname "$0")/.."
packages=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || [ -n "${TREADLE_CHROMIUM:-}" ] || packages+=(chromium)
command -v npm >/dev/null || packages+=(npm)
if [ ${#packages[@]} -gt 0 ]; then
    echo "treadle: the tests of the browser need ${packages[*]}" >&2
    tools/system_packages.sh "${packages[@]}"
fi
"$1/bin/python" tools/browser_parts.py >/dev/null
