"""Builds the notebooks into a site that has the playground:

    python -m tools.website.notebooks.build site

JupyterLite and marimo make pages of them. Both are installed into an environment of their own in
the cache, in the versions that were made for the Pyodide that the playground uses.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.browser_parts import cache_folder, fetch, making
from tools.website.playground.build import PYODIDE_SITE

HERE = Path(__file__).resolve().parent
_TOOLS = (
    "jupyterlite-core==0.6.4",
    "jupyterlite-pyodide-kernel==0.6.1",  # the last one for Pyodide 0.27
    "jupyter-server==2.17.0",
    "marimo==0.14.17",  # which loads Pyodide 0.27.7
)
# Lets Python see the notebooks' folder as files, for which each import looks there first: seconds
# on a fast machine, for files that these notebooks have no use for.
_DRIVE = "@jupyterlite/application-extension:service-worker-manager"
# What `pip install treadle` fetches in a notebook beside what Pyodide has, so that nothing comes
# from elsewhere; and of IPython's own needs the one that Pyodide lacks.
_DEPENDENCIES = (
    "opt_einsum", "rich", "typer", "click", "shellingham", "markdown_it_py", "mdurl", "pygments",
    "typing_extensions", "annotated_doc",
)  # fmt: skip
_COMM = "comm==0.2.3"


def build(site: Path, *, pyodide: str = PYODIDE_SITE) -> None:
    """Build both into `site`/notebooks, with the wheels of `site`/playground."""
    programs = _environment() / "bin"
    fetch(cache_folder())
    wheels = [
        *(site / "playground" / "wheels").glob("treadle-*.whl"),
        *(
            next((cache_folder() / "wheels").glob(f"{name}-*.whl"))
            for name in _DEPENDENCIES
        ),
    ]  # fmt: skip
    target = site / "notebooks"
    shutil.rmtree(target, ignore_errors=True)
    _jupyterlite(programs, target / "jupyter", wheels, pyodide)
    _marimo(programs, target / "marimo", wheels)
    config = site / "playground" / "config.json"
    if config.exists():
        _announce(config)


def _jupyterlite(programs: Path, target: Path, wheels: Sequence[Path], pyodide: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        lite = Path(scratch)
        contents, packages = lite / "contents", lite / "packages"
        contents.mkdir()
        packages.mkdir()
        shutil.copy(HERE / "treadle.ipynb", contents)
        for wheel in wheels:
            shutil.copy(wheel, packages)
        _pip(programs / "python", "download", "--no-deps", f"--dest={packages}", _COMM)
        kernel = {"pyodideUrl": f"{pyodide}pyodide.js"}
        config = {
            "jupyter-lite-schema-version": 0,
            "jupyter-config-data": {
                "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel},
                "disabledExtensions": [_DRIVE],
            },
        }
        (lite / "jupyter-lite.json").write_text(json.dumps(config))
        _run(
            programs / "jupyter", "lite", "build", "--lite-dir", lite, "--output-dir", target,
            "--contents", contents, "--piplite-wheels", packages, "--apps", "notebooks",
            "--no-unused-shared-packages", "--no-sourcemaps",
            folder=lite,  # where it keeps a database of its own
        )  # fmt: skip


def _marimo(programs: Path, target: Path, wheels: Sequence[Path]) -> None:
    _run(
        programs / "marimo", "export", "html-wasm", HERE / "treadle_marimo.py",
        "--mode", "run", "--output", target,
    )  # fmt: skip
    public = target / "public"
    public.mkdir()
    for wheel in wheels:
        shutil.copy(wheel, public)
    names = [wheel.name for wheel in wheels]
    (public / "wheels.txt").write_text("\n".join(names))


def _announce(config: Path) -> None:
    """Let the playground's page name the notebooks."""
    found = json.loads(config.read_text())
    found["notebooks"] = {
        "JupyterLite": "../notebooks/jupyter/notebooks/index.html?path=treadle.ipynb",
        "marimo": "../notebooks/marimo/index.html",
    }
    config.write_text(json.dumps(found))


def _environment() -> Path:
    """An environment with JupyterLite and marimo, made once."""
    name = hashlib.sha256(json.dumps([_TOOLS, sys.version]).encode()).hexdigest()[:16]
    folder = cache_folder() / f"notebooks-{name}"
    with making(folder) as missing:
        if missing:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            _pip(folder / "bin" / "python", "install", *_TOOLS)
    return folder


def _pip(python: Path, *arguments: str) -> None:
    _run(python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: object, folder: Path | None = None) -> None:
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{command[0]} failed:\n{done.stdout}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument(
        "--pyodide", default=PYODIDE_SITE, help="where JupyterLite loads Python from"
    )
    given = parser.parse_args()
    build(given.site.resolve(), pyodide=given.pyodide)


if __name__ == "__main__":
    main()
