"""Programs in the style of well-known ones run unchanged under PyTorch and, but for their imports,
under treadle.torch, with the same numbers."""

from __future__ import annotations

import importlib
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.comparing import torch

SCRIPTS = Path(__file__).with_name("scripts")
# What compiles many kernels for its few numbers.
_SLOW = {
    "autoencoder", "averages", "char_rnn", "dcgan", "dqn", "nanogpt", "reinforce", "siamese",
    "sines", "translation",
}  # fmt: skip
NAMES = sorted(
    path.stem for path in SCRIPTS.glob("*.py") if path.stem not in ("__init__", "starting")
)


def _translated(name: str) -> types.ModuleType:
    """The program with treadle.torch for torch."""
    text = (SCRIPTS / f"{name}.py").read_text()
    text = re.sub(r"^import torch$", "import treadle.torch as torch", text, flags=re.M)
    text = re.sub(r"^(from|import) torch\b", r"\1 treadle.torch", text, flags=re.M)
    # `import torch.utils.data` binds `torch`.
    text = re.sub(
        r"^import treadle\.torch\.([\w.]+)$", r"import treadle.torch.\1", text, flags=re.M
    )
    module = types.ModuleType(f"translated_{name}")
    module.__file__ = str(SCRIPTS / f"{name}.py")
    sys.modules[module.__name__] = module
    exec(compile(text, module.__file__, "exec"), module.__dict__)
    return module


def _close(found: Any, wanted: Any, what: str) -> None:
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted), what
        for at, (one, other) in enumerate(zip(found, wanted, strict=True)):
            _close(one, other, f"{what}[{at}]")
    elif isinstance(wanted, (str, bool)):
        assert found == wanted, what
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-5, err_msg=what)


if torch is not None:

    @pytest.mark.parametrize(
        "name",
        [pytest.param(each, marks=pytest.mark.slow if each in _SLOW else ()) for each in NAMES],
    )
    def test_that_a_program_gives_the_same_numbers(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = importlib.import_module(f"tests.parity.scripts.{name}").main()
            found = _translated(name).main()
        assert found.keys() == wanted.keys()
        for key in wanted:
            _close(found[key], wanted[key], f"{name}: {key}")
