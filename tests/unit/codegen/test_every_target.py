"""Where a target or a driver has to be named beside its line in a table; says what is missing.

The steps are those of docs/design/targets.md.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tests.device.conftest import FINDERS
from tools import trace
from treadle.cli.app import app
from treadle.codegen import TARGETS
from treadle.cuda_cpp.kernel import Kernel as CudaKernel
from treadle.drivers import BACKENDS, IN_A_BROWSER, NATIVE
from treadle.lang.decorators import Kernel

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS: list[dict[str, Any]] = PROJECT["tool"]["importlinter"]["contracts"]


def modules_of(name: str, key: str) -> set[str]:
    (found,) = [contract[key] for contract in CONTRACTS if contract["name"] == name]
    return set(found)


TARGET_PACKAGES = {module.rpartition(".")[0] for module in TARGETS.values()}
DRIVER_PACKAGES = {entry.module for table in (NATIVE, IN_A_BROWSER) for entry in table.values()}
ABOVE = "What stands above drivers and targets knows them by their tables alone"
APART = {"A target knows no other target": TARGET_PACKAGES,
         "A driver knows no other driver": DRIVER_PACKAGES}  # fmt: skip


@pytest.mark.parametrize("contract", APART)
def test_import_linter_keeps_them_apart(contract: str) -> None:
    assert modules_of(contract, "modules") == APART[contract]
    assert modules_of(ABOVE, "forbidden_modules") == TARGET_PACKAGES | DRIVER_PACKAGES


def test_the_suite_of_devices_runs_on_every_driver() -> None:
    missing = set(BACKENDS) - set(FINDERS)
    assert not missing, f"add {missing} to FINDERS in tests/device/conftest.py"


@pytest.mark.parametrize("target", TARGETS)
def test_readers_find_a_target(target: str) -> None:
    page = f"targets/{target}.md"
    assert (ROOT / "docs" / page).exists()
    assert page in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    index = (ROOT / "docs/targets/index.md").read_text(encoding="utf-8")
    table = index.partition("<!-- targets:begin -->")[2]
    assert f"({target}.md)" in table, "add a column to tools/targets.py"
    assert target in trace.TARGETS, "add it to tools/trace.py"
    for kernel in (Kernel, CudaKernel):
        assert f'"{target}"' in str(kernel.source.__doc__), f"{kernel.__module__}"
    guide = (ROOT / "docs/guides/command-line.md").read_text(encoding="utf-8")
    assert f"`{target}`" in guide


def test_the_command_line_knows_every_target() -> None:
    options = get_command(app).commands["transpile"].params  # type: ignore[attr-defined]
    (to,) = [option for option in options if option.name == "to"]
    assert set(TARGETS) < set(re.findall(r"\w+", to.help))
