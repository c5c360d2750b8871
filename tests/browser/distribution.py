"""A Pyodide distribution for notebooks: the one from npm, and the packages that JupyterLite and
marimo load, as Pyodide's own site would serve them.

All are pure wheels from PyPI. Where Pyodide's site has compiled ones that npm has not, something
small stands for them: no secure sockets, PyYAML without its parser in C, and a database that
forgets, where IPython keeps the history of its inputs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

from tools.browser_parts import cache_folder, fetch, making

_WHEELS = (
    # IPython
    "ipython==8.23.0", "traitlets==5.14.3", "jedi==0.19.1", "parso==0.8.4", "decorator==5.1.1",
    "matplotlib-inline==0.1.7", "prompt-toolkit==3.0.43", "stack-data==0.6.3", "pure-eval==0.2.3",
    "executing==2.0.1", "asttokens==2.4.1", "six==1.16.0", "wcwidth==0.2.13", "pygments==2.17.2",
    # marimo
    "marimo-base==0.14.17", "Markdown==3.8", "pymdown-extensions==10.15", "narwhals==1.39.0",
    "docutils==0.21.2", "tomlkit==0.13.3", "click==8.1.8", "itsdangerous==2.2.0",
    "pyodide-http==0.2.1",
)  # fmt: skip
_FORGETFUL = """
class Error(Exception): pass
class DatabaseError(Error): pass
class OperationalError(DatabaseError): pass
class IntegrityError(DatabaseError): pass

PARSE_DECLTYPES, PARSE_COLNAMES = 1, 2

class Connection:
    lastrowid = 1
    def __enter__(self): return self
    def __exit__(self, *_): return None
    def __iter__(self): return iter(())
    def execute(self, *_): return self
    def fetchone(self): return None
    def close(self): return None
    commit = close

def connect(*_, **__):
    return Connection()
"""
_NEEDS = {
    "ipython": (
        "traitlets", "jedi", "decorator", "matplotlib-inline", "prompt-toolkit", "stack-data",
        "pygments", "sqlite3",
    ),
    "jedi": ("parso",),
    "prompt-toolkit": ("wcwidth",),
    "stack-data": ("asttokens", "executing", "pure-eval"),
    "asttokens": ("six",),
    "matplotlib-inline": ("traitlets",),
    "marimo-base": (
        "markdown", "pymdown-extensions", "narwhals", "docutils", "tomlkit", "click",
        "itsdangerous", "jedi", "pygments", "packaging", "pyyaml",
    ),
    "pymdown-extensions": ("markdown", "pyyaml"),
}  # fmt: skip


def notebook_distribution() -> Path:
    """The folder of the distribution, made once."""
    recipe = Path(__file__).read_text()
    folder = cache_folder() / f"distribution-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    fetch(cache_folder())
    with making(folder) as missing:
        if missing:
            _make(folder)
    return folder


def _make(folder: Path) -> None:
    shutil.copytree(cache_folder() / "pyodide", folder, dirs_exist_ok=True)
    wheels = folder / "wheels"
    subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--only-binary=:all:", "--platform=any", "--python-version=3.12",
            "--implementation=py", "--abi=none", f"--dest={wheels}", *_WHEELS,
        ],
        check=True,
    )  # fmt: skip
    _write_wheel(wheels, "ssl", {})
    _write_wheel(wheels, "sqlite3", {"sqlite3.py": _FORGETFUL})
    _write_wheel(wheels, "pyyaml", _pure_yaml())
    lock = json.loads((folder / "pyodide-lock.json").read_text())
    for wheel in sorted(wheels.iterdir()):
        entry = _entry(wheel)
        lock["packages"][entry["name"]] = entry
        wheel.rename(folder / wheel.name)
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))


def _entry(wheel: Path) -> dict[str, object]:
    name, version = wheel.name.split("-")[:2]
    name = name.lower().replace("_", "-")
    with zipfile.ZipFile(wheel) as files:
        tops = {each.partition("/")[0].removesuffix(".py") for each in files.namelist()}
    return {
        "name": name, "version": version, "file_name": wheel.name, "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), "package_type": "package",
        "imports": sorted(top for top in tops if not top.endswith((".dist-info", ".data"))),
        "depends": list(_NEEDS.get(name, ())), "unvendored_tests": False,
    }  # fmt: skip


def _pure_yaml() -> dict[str, str]:
    package = resources.files("yaml")
    return {
        f"yaml/{each.name}": each.read_text()
        for each in package.iterdir()
        if each.name.endswith(".py")
    }


def _write_wheel(folder: Path, name: str, files: dict[str, str]) -> None:
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        tag = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", tag)
        wheel.writestr(f"{about}/RECORD", "")
