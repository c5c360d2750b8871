"""Builds the playground into a site that MkDocs has built:

    python -m tools.website.playground.build site

`src` is bundled by esbuild, which comes from npm with CodeMirror, as package-lock.json says; Node
is needed for nothing else. The examples become one file, with their titles. treadle is there as a
wheel, and so are its dependencies, so that nothing but Python itself (Pyodide, with NumPy) comes
from elsewhere.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.browser_parts import PYODIDE, cache_folder, making

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PYODIDE_SITE = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
MODEL = (
    "https://huggingface.co/bartowski/SmolLM2-135M-Instruct-GGUF/resolve/main/"
    "SmolLM2-135M-Instruct-Q4_K_M.gguf"
)
_DEPENDENCIES = ("opt_einsum==3.4.0",)  # what `import treadle` needs beside NumPy
_ORDER = ("kernel", "cuda", "wave", "digits", "text")


def build(site: Path, *, pyodide: str = PYODIDE_SITE, model: str = MODEL) -> None:
    """Build all of it into `site`/playground; `pyodide` is where the page loads Python from, and
    `model` the language model of the example."""
    target = site / "playground"
    target.mkdir(parents=True, exist_ok=True)
    bundle(target)
    for path in (HERE / "python").glob("*.py"):
        shutil.copy(path, target)
    names = wheels(target / "wheels")
    config = {"pyodide": pyodide, "wheels": [f"wheels/{name}" for name in names]}
    (target / "config.json").write_text(json.dumps(config))
    (target / "examples.json").write_text(json.dumps([example(each, model) for each in _ORDER]))
    (target / "digits.bin").write_bytes(digits())


def page(site: Path) -> None:
    """MkDocs' part of it alone, in seconds: this one page in the documentation's theme."""
    with tempfile.TemporaryDirectory() as scratch:
        docs = Path(scratch, "docs")
        for name in ("playground", "stylesheets", "images"):
            shutil.copytree(ROOT / "docs" / name, docs / name)
        config = Path(scratch, "mkdocs.yml")
        config.write_text(
            f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: {docs}\nhooks: []\nplugins: []\n"
            "nav: [playground/index.md]\n"
            "validation: { unrecognized_links: ignore, not_found: ignore }\n"
        )
        mkdocs = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
        subprocess.run(
            [*mkdocs, "-f", str(config), "-d", str(site)],
            cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        )  # fmt: skip


def bundle(target: Path) -> None:
    """The page's scripts: one for the page, one for its worker."""
    modules = node_modules()
    entries = [str(HERE / "src" / name) for name in ("page.js", "worker.js")]
    options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--log-level=warning"]
    subprocess.run(
        [str(modules / ".bin" / "esbuild"), *entries, *options, f"--outdir={target}"],
        check=True, env={**os.environ, "NODE_PATH": str(modules)},
    )  # fmt: skip


def node_modules() -> Path:
    """A folder with what the lock file names, installed once."""
    lock = HERE / "package-lock.json"
    folder = cache_folder() / f"npm-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    with making(folder) as missing:
        if missing:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, folder)
            subprocess.run(
                ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"],
                cwd=folder, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
    return folder / "node_modules"


def wheels(folder: Path) -> list[str]:
    """Make the wheels that the page installs; their names, in the order of installing. treadle's
    is built without the hook that writes a file among the sources, which others may be reading."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "download", "--no-deps", f"--dest={folder}", *_DEPENDENCIES], check=True)
    names = sorted(path.name for path in folder.iterdir())
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, env=os.environ | {"HATCH_BUILD_NO_HOOKS": "1"},
    )  # fmt: skip
    return [*names, next(folder.glob("treadle-*.whl")).name]


def example(name: str, model: str = MODEL) -> dict[str, Any]:
    """An example: its docstring's first line is its title, the other what it is about."""
    text = (HERE / "examples" / f"{name}.py").read_text(encoding="utf-8")
    text = text.replace("MODEL_URL", model)
    docstring = ast.get_docstring(ast.parse(text)) or ""
    title, _, about = docstring.partition("\n\n")
    program = text.partition('"""\n\n')[2].lstrip("\n")
    return {"name": name, "title": title, "about": about.replace("\n", " "), "program": program}


def digits() -> bytes:
    """scikit-learn's digits in a fixed random order: 64 pixels (0 to 16) and a label, in bytes."""
    import numpy as np
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))
    rows = np.concatenate([pixels, labels[:, None]], axis=1)[order]
    return bytes(rows.astype(np.uint8).tobytes())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--pyodide", default=PYODIDE_SITE, help="where the page loads Python from")
    given = parser.parse_args()
    build(given.site, pyodide=given.pyodide)


if __name__ == "__main__":
    main()
