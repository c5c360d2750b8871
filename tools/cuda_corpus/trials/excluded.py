"""The kernels that are not tried: excluded.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.cuda_corpus.spec import Excluded

EXCLUDED: tuple[Excluded, ...] = tuple(
    Excluded(file, kernel, reason)
    for reason, files in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    ).items()
    for file, kernels in files.items()
    for kernel in kernels.split()
)
