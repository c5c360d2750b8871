"""Folders of models as Hugging Face's libraries save them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import safetensors.numpy as peer

from treadle.core.errors import FormatError
from treadle.formats.hugging_face import read_folder

CONFIG = {"model_type": "llama", "hidden_size": 8, "limits": [0.0, math.inf]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))  # with Infinity, as some have it
    peer.save_file({"w": np.ones((2, 3), np.float32)}, tmp_path / "model.safetensors")
    return tmp_path


def test_a_folder(folder):
    (folder / "tokenizer.json").write_text("{}")
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    found = read_folder(folder)
    assert found.config == CONFIG
    assert found.generation_config == {"eos_token_id": [1, 2]}
    assert found.tokenizer_config == {}
    assert found.tokenizer == folder / "tokenizer.json"
    assert found.json("1_Pooling", "config.json") == {"pooling_mode_mean_tokens": True}
    assert found.json("modules.json") == {}
    assert found.weights.array("w").tolist() == [[1.0] * 3] * 2
    with pytest.raises(FormatError, match="not a file in its folder"):
        found.json("..", "config.json")


def test_a_folder_of_the_cache(folder, tmp_path_factory):
    """Its snapshots are links to files that have other names."""
    snapshot = tmp_path_factory.mktemp("snapshot")
    for number, path in enumerate(sorted(folder.iterdir())):
        blob = path.rename(folder / f"blob{number}")
        (snapshot / path.name).symlink_to(blob)
    found = read_folder(snapshot)
    assert found.config["model_type"] == "llama"
    assert found.tokenizer is None
    assert found.weights.array("w").shape == (2, 3)


def test_what_is_wrong(folder, tmp_path_factory):
    (folder / "config.json").write_text("7")
    with pytest.raises(FormatError, match=r"config\.json is not a JSON object"):
        read_folder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FormatError, match=r"no config\.json: it is not the folder of a model"):
        read_folder(folder)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        read_folder(folder / "missing")
    with pytest.raises(FileNotFoundError, match="is a file, not a folder"):
        read_folder(folder / "model.safetensors")


def test_weights_that_are_missing_or_pickles(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(FormatError, match=r"has no weights: they are in model\.safetensors or"):
        read_folder(folder)
    (folder / "pytorch_model.bin").write_bytes(b"PK")
    with pytest.raises(FormatError, match="a pickle, which can run any program"):
        read_folder(folder)


def test_json_that_is_too_large(folder):
    with (folder / "config.json").open("r+b") as file:
        file.truncate(200_000_000)
    with pytest.raises(FormatError, match="has 200000000 bytes, and JSON may have 100000000"):
        read_folder(folder)
