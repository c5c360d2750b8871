"""Fetches what the browser's tests need, once, into a cache folder:

    python tools/browser_parts.py [FOLDER]

- `pyodide/`: Pyodide from npm, and beside it NumPy's wheel and micropip's, from
  $TREADLE_PYODIDE_WHEELS where that is set, else from Pyodide's own site.
- `wheels/`: pure wheels from PyPI: treadle's own dependencies, and pytest's.

Without FOLDER it is $TREADLE_BROWSER_CACHE, else `~/.cache/treadle-browser`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PYODIDE = "0.27.7"
_SITE = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full"
_FROM_PYODIDE = ("numpy", "micropip", "packaging")
_PURE = (
    # treadle's dependencies
    "opt_einsum==3.4.0", "rich==15.0.0", "typer==0.28.0", "click==8.5.1", "shellingham==1.5.4",
    "markdown-it-py==4.3.0", "mdurl==0.1.2", "Pygments==2.21.0", "typing_extensions",
    "annotated-doc",
    # what the suite runs with
    "pytest==9.2.0", "pluggy==1.7.0", "iniconfig==2.3.1", "hypothesis==6.135.0",
    "sortedcontainers==2.4.0", "attrs", "mpmath", "einops",
)  # fmt: skip


def cache_folder() -> Path:
    """Where the parts are kept."""
    given = os.environ.get("TREADLE_BROWSER_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "treadle-browser"


@contextmanager
def making(folder: Path) -> Iterator[bool]:
    """Whether a folder is still to be made, once and for all; it exists then, and is empty. One
    process makes it while others wait."""
    import fcntl  # which Windows has not, where pages are not built

    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "complete"
        missing = not stamp.exists()
        if missing:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield missing
        stamp.touch()


def fetch(folder: Path) -> None:
    """Fetch what is missing."""
    recipe = json.dumps([PYODIDE, _FROM_PYODIDE, _PURE])
    stamp = folder / f".complete-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    if stamp.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        runtime, wheels = Path(scratch, "pyodide"), Path(scratch, "wheels")
        _fetch_runtime(runtime)
        _fetch_pure(wheels)
        for made in (runtime, wheels):
            shutil.rmtree(folder / made.name, ignore_errors=True)
            made.rename(folder / made.name)
    stamp.touch()


def _fetch_runtime(runtime: Path) -> None:
    _say(f"fetching Pyodide {PYODIDE} from npm")
    runtime.mkdir()
    subprocess.run(
        ["npm", "pack", "--silent", f"pyodide@{PYODIDE}"],
        cwd=runtime, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    archive = next(runtime.glob("*.tgz"))
    with tarfile.open(archive) as files:
        for member in files.getmembers():
            member.name = member.name.partition("/")[2]  # they lie in "package/"
            files.extract(member, runtime, filter="data")
    archive.unlink()
    packages = json.loads((runtime / "pyodide-lock.json").read_text())["packages"]
    given = os.environ.get("TREADLE_PYODIDE_WHEELS")
    for name in _FROM_PYODIDE:
        package = packages[name]
        path = runtime / package["file_name"]
        if given:
            shutil.copyfile(Path(given, path.name), path)
        else:
            _say(f"fetching {path.name}")
            urllib.request.urlretrieve(f"{_SITE}/{path.name}", path)
        if hashlib.sha256(path.read_bytes()).hexdigest() != package["sha256"]:
            raise SystemExit(f"{path.name} is not the one that Pyodide {PYODIDE} names")


def _fetch_pure(wheels: Path) -> None:
    _say(f"fetching {len(_PURE)} pure wheels from PyPI")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--only-binary=:all:", "--platform=any", "--python-version=3.12",
            "--implementation=py", "--abi=none", f"--dest={wheels}", *_PURE,
        ],
        check=True,
    )  # fmt: skip


def _say(text: str) -> None:
    print(f"treadle: {text}", file=sys.stderr)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else cache_folder()
    fetch(target)
    print(target)
