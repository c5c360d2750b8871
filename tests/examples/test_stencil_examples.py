"""The stencil examples run, in a small form, as people run them, with what they save."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td

EXAMPLES = Path(__file__).parents[2] / "examples" / "stencils"
DOCS = EXAMPLES.parents[1] / "docs"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "pictures")
# What makes each small, and the bounds of what it returns.
RUNS: dict[str, tuple[int, int, float, float]] = {
    "bilateral": (64, 2, 0.1, 0.4),  # of the noise
    "cylinder_flow": (24, 300, 0.8, 1.1),  # the mean speed is that of the inflow
    "gray_scott": (48, 200, 0.05, 0.9),
    "heat": (24, 600, 0.2, 0.6),
    "lattice_3d": (12, 40, 1e-5, 1e-3),
    "lattice_d3q19": (16, 60, 0.7, 0.9),  # of the energy
    "life": (64, 30, 41, 41),  # after 30 steps the gun is back, and has made a glider
    "maxwell": (56, 600, 1e-9, 0.01),  # nearly all of the light has left
    "seismic": (24, 120, 1e-6, 1.0),
    "wave_2d": (60, 160, 1e-4, 0.1),
    "wave_3d": (24, 40, 0.001, 0.5),
}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """They import what they share as programs do that are run by their path."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def run(name: str, *options: Any) -> float:
    return importlib.import_module(name).main([*map(str, options)])


def test_each_is_run() -> None:
    assert sorted(RUNS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_draws_what_it_computed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size, steps, least, most = RUNS[name]
    found = run(name, "--device", "cpu", "--out", tmp_path, "--size", size, "--steps", steps)
    assert least <= found <= most
    assert json.loads((tmp_path / f"{name}.json").read_text())["device"] == "cpu"
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", NAMES)
def test_devices_agree(name: str) -> None:
    size, steps, _, _ = RUNS[name]
    size, steps = size // 2 + 5, min(steps, 24)
    one, other = (
        run(name, "--device", device, "--size", size, "--steps", steps)
        for device in ("cpu", "webgpu")
    )
    assert other == pytest.approx(one, rel=2e-3, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_short_and_in_the_gallery(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) < 80
    with pytest.raises(SystemExit) as stopped:
        run(name, "--help")
    assert stopped.value.code == 0
    assert f"python examples/stencils/{name}.py" in capsys.readouterr().out
    page = (DOCS / "gallery-stencils.md").read_text(encoding="utf-8")
    assert f"python examples/stencils/{name}.py" in page
    assert f"(images/gallery/stencils/{name}.webp)" in page
    picture = DOCS / "images" / "gallery" / "stencils" / f"{name}.webp"
    assert picture.read_bytes()[8:12] == b"WEBP", "run python tools/gallery.py"


@pytest.mark.parametrize("name", [each for each in NAMES if each != "bilateral"])
def test_the_smallest_run(name: str) -> None:
    assert run(name, "--device", "cpu", "--size", 8, "--steps", 2) is not None


@pytest.mark.parametrize(
    ("device", "storage"), [("cpu", "float32"), ("cpu", "float16"), ("webgpu", "float16")]
)
def test_the_viscosity_of_lattice_d3q19(device: str, storage: str) -> None:
    """A shear wave decays as the Navier-Stokes equations say, also in 16 bits."""
    example = importlib.import_module("lattice_d3q19")
    rate, steps, length = 1.2, 200, 32
    shape = np.sin(2 * np.pi * np.indices((length, 4, 5))[0] / length)
    start = np.float32([0 * shape, 0 * shape, 0.02 * shape])
    f = td.asarray(example.placed(start), dtype=getattr(td, storage), device=device)
    both = [(example.stepper(odd, storage), f, rate) for odd in (0, 1)]
    td.stencil_loop(both, steps=steps // 2)
    v = example.velocities(f)
    left = 2 * (v[2] * shape).mean() / 0.02
    # The viscosity is right within 1 %, and nothing else moves.
    exact = (1 / rate - 0.5) / 3 * (2 * np.pi / length) ** 2 * steps
    assert -np.log(left) == pytest.approx(exact, rel=0.01)
    np.testing.assert_allclose(v[2], left * start[2], atol=1e-5)
    np.testing.assert_allclose(v[:2], 0, atol=1e-5)


def test_a_grid_may_be_too_small(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("heat", "--size", 3)
    assert stopped.value.code == 2
    assert "argument --size: 3 should be a whole number, from 8 on" in capsys.readouterr().err
