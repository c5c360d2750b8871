#!/usr/bin/env bash
# Builds the wheel and the sdist and checks what is in them.
#
#   tools/packages.sh FOLDER        with `build` and `twine` installed; PYTHON names another python
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
python=${PYTHON:-python}
rm -rf "$folder"
"$python" -m build --outdir "$folder" . # the sdist first, and the wheel from it
"$python" -m twine check --strict "$folder"/*
"$python" - "$folder" <<'CHECK'
import sys, tarfile, zipfile
from pathlib import Path

wheel, = Path(sys.argv[1]).glob("*-py3-none-any.whl")
sdist, = Path(sys.argv[1]).glob("*.tar.gz")
modules = {str(path.relative_to("src")) for path in Path("src").rglob("*") if path.suffix in (".py", ".pyi", ".typed")}
packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("treadle/")}
if missing := sorted(modules - packed):
    sys.exit(f"{wheel.name} lacks {missing}")
if strange := sorted(name for name in packed if not name.endswith((".py", ".pyi", ".typed"))):
    sys.exit(f"{wheel.name} has files that are not the package's: {strange}")
top = sdist.name.removesuffix(".tar.gz")
names = set(tarfile.open(sdist).getnames())
for needed in ("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "src/treadle/core/_version.py", "tests/conftest.py"):
    if f"{top}/{needed}" not in names:
        sys.exit(f"{sdist.name} lacks {needed}")
for package in (wheel, sdist):
    print(f"{package.name}: {package.stat().st_size / 1e6:.1f} MB")
CHECK
