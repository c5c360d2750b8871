#!/usr/bin/env bash
# Installs packages with Debian's or Ubuntu's package manager, or says what to install.
#
#   tools/system_packages.sh PACKAGE...
set -euo pipefail

say() { printf '%s\n' "treadle: $*" >&2; }

command="apt-get install -y --no-install-recommends $*"
if ! command -v apt-get >/dev/null; then
    say "install what your system calls: $*"
    exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
        say "run this as root, then try again: $command"
        exit 1
    fi
    as_root=(sudo)
fi
say "installing with the system's package manager: $*"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $command; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    say "that failed; run it by hand to see more: $command"
    exit 1
fi
