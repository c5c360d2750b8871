"""The examples run: in a small form, as people run them, with what they save."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.support.small_llama import METADATA, tensors
from treadle.formats.gguf import write_gguf

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "showing")
# What makes each small, and what it comes to: a curve's last value at most this part of its first.
SMALL = {
    "language_model": (
        ("--steps", 6, "--batch", 4, "--length", 16, "--width", 16, "--layers", 1, "--write", 4),
        "bits per letter", 0.97,
    ),
    "physics_informed": (("--steps", 8, "--width", 8), "loss", 0.9),
    "wave_focus": (("--size", 24, "--steps", 20, "--iterations", 8), "relative error", 0.6),
}  # fmt: skip
# The model that learns facts is a small one with random weights.
SMALL["finetune_language_model"] = (
    ("--steps", 12, "--rank", 4, "--layers", 1, "--words", 2, "--questions", 1, "--rate", 0.02),
    "loss", 0.9,
)  # fmt: skip
if importlib.util.find_spec("sklearn") is not None:
    SMALL["image_classifier"] = (("--epochs", 2), "loss", 1.0)
FEW = 256  # pictures to learn from
# Those that only draw: what makes each small, and the bounds of what it returns.
DRAWN = {
    "galaxies": (("--stars", 256, "--steps", 6), 0.0, 1e-5),  # the momentum is kept
    "live_wave": (
        ("--size", 24, "--steps", 36, "--every", 6),
        0.2,
        0.35,
    ),  # the energy that damping leaves
    "mandelbrot": (("--size", 64, "--limit", 80), 0.21, 0.25),  # the set's area is 1.507 of 6.76
    "neighbour_search": (("--points", 100, "--side", 20), 1.0, 1.0),  # all answers are right
    "reaction_diffusion": (("--size", 32, "--steps", 80), 0.1, 0.5),
    "sensor_pipeline": (("--sensors", 3, "--readings", 120), 0.99, 1.0),  # readings judged right
}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """They import what they share as programs do that are run by their path."""
    monkeypatch.syspath_prepend(str(EXAMPLES))


def run(name, *options):
    return importlib.import_module(name).main([*map(str, options)])


def few_digits(digits):
    training, test = digits()
    return td.data.TensorDataset(*training[:FEW]), test


def small_language_model(path):
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    further = {"llama.context_length": 128, "tokenizer.chat_template": template}
    write_gguf(path, METADATA | further, tensors(np.float32))
    return path


@pytest.mark.parametrize("name", NAMES)
def test_each_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(name, "--help")
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert f"python examples/{name}.py" in shown
    assert "--out" in shown


@pytest.mark.parametrize("name", SMALL)
def test_each_learns_something(name, tmp_path, capsys, monkeypatch):
    options, curve, share = SMALL[name]
    if name == "image_classifier":
        model = importlib.import_module(name)
        monkeypatch.setattr(model, "digits", partial(few_digits, model.digits))
    if name == "finetune_language_model":
        options = (*options, "--model", small_language_model(tmp_path / "model.gguf"))
    result = run(name, "--device", "cpu", "--out", tmp_path, *options)
    assert np.isfinite(result)
    values = json.loads((tmp_path / f"{name}.json").read_text())[curve]
    assert values[-1] < share * values[0]
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == ""  # no progress where nobody looks


@pytest.mark.parametrize("name", DRAWN)
def test_each_draws_what_it_computed(name, tmp_path, capsys):
    options, least, most = DRAWN[name]
    assert least <= run(name, "--device", "cpu", "--out", tmp_path, *options) <= most
    assert json.loads((tmp_path / f"{name}.json").read_text())["device"] == "cpu"
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == ""


def test_the_gallery_has_every_example():
    page = (EXAMPLES.parent / "docs" / "gallery.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"python examples/{name}.py" in page, name
        assert f"(images/gallery/{name}.webp)" in page, name
        picture = EXAMPLES.parent / "docs" / "images" / "gallery" / f"{name}.webp"
        assert picture.read_bytes()[8:12] == b"WEBP", "run python tools/gallery.py"


@pytest.mark.parametrize("name", ["language_model", "physics_informed"])
def test_nothing_is_learned_in_no_steps(name, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(name, "--steps", 0)
    assert stopped.value.code == 2
    assert "error: argument --steps: 0 should be a whole number" in capsys.readouterr().err


def test_a_text_may_be_too_short(tmp_path, capsys):
    text = tmp_path / "text"
    text.write_text("abcd" * 10)
    with pytest.raises(SystemExit) as stopped:
        run("language_model", "--text", text, "--length", 4)
    assert stopped.value.code == 2
    assert "the text has 40 letters, and pieces of 4 need 41" in capsys.readouterr().err


def test_the_digits_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(SystemExit, match=r"^The digits .* treadle\[demo\]$"):
        run("image_classifier", "--device", "cpu")


def test_what_a_text_is_learned_from_is_said_letter_by_letter():
    model = importlib.import_module("language_model")
    assert model.zen().startswith("The Zen of Python, by Tim Peters\n\nBeautiful is better")
    codes = np.arange(10, dtype=np.int32)
    pieces, following = model.Windows(codes, 4)[5]
    assert pieces.tolist() == [5, 6, 7, 8]
    assert following.tolist() == [6, 7, 8, 9]
    assert len(model.Windows(codes, 4)) == 6


if "image_classifier" in SMALL:

    def test_a_run_that_was_stopped_goes_on_to_the_last_bit(tmp_path):
        model = importlib.import_module("image_classifier")
        few, _ = few_digits(model.digits)
        device = td.device("cpu")
        whole = model.Run(few, 2, 0, device)
        for _ in range(2):
            whole.epoch()
        stopped = model.Run(few, 2, 0, device)
        stopped.epoch()
        td.save(stopped.state(), tmp_path / "run.safetensors")
        resumed = model.Run(few, 2, 77, device)
        resumed.resume(td.load(tmp_path / "run.safetensors", device="cpu"))
        resumed.epoch()
        assert resumed.losses == whole.losses
        for mine, other in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
            assert mine.numpy().tobytes() == other.numpy().tobytes()

    def test_there_must_be_something_to_resume(tmp_path, capsys):
        with pytest.raises(SystemExit) as stopped:
            run("image_classifier", "--out", tmp_path, "--resume")
        assert stopped.value.code == 2
        assert "nothing to resume" in capsys.readouterr().err
