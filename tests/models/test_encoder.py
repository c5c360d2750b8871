"""Encoders: vectors of texts beside BERT in NumPy, beside transformers', and refused folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.bert import Array, bert
from tests.support.dawn import dawn_device
from treadle.core.errors import FormatError
from treadle.formats.hugging_face import read_folder
from treadle.models.encoder import Encoder, load_encoder
from treadle.models.packing import batches

try:
    import transformers
except ImportError:
    transformers = None

DEVICES: dict[str, Callable[[], td.Device]] = {
    "cpu": lambda: td.device("cpu"),
    "webgpu": lambda: td.device("webgpu"),
    "dawn": dawn_device,
}
SENTENCES = [
    "A man is eating food.",
    "A man eats.",
    "",
    "Die Katze sitzt auf der Matte – 猫がマットの上に座っている。",
    "The quick brown fox jumps over the lazy dog; " * 5,
    "word " * 600,  # more than are read
]
_VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat dog sat on mat ##s a . eats"
WORDS = _VOCABULARY.split()
CONFIG = {
    "model_type": "bert", "vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 40,
    "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 0,
}  # fmt: skip
MEAN = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
FEW = ["the cat sat on the mat.", "a dog eats", "", "cats", "the " * 60, *["dogs"] * 20]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> td.Device:
    return DEVICES[request.param]()


def weights_of(config: dict[str, Any]) -> dict[str, Array]:
    draw = np.random.default_rng(3).normal
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings": (config["vocab_size"], width),
        "embeddings.position_embeddings": (config["max_position_embeddings"], width),
        "embeddings.token_type_embeddings": (config["type_vocab_size"], width),
    }
    for at in (f"encoder.layer.{i}." for i in range(config["num_hidden_layers"])):
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{at}attention.{name}"] = (width, width)
        shapes[at + "intermediate.dense"] = (inner, width)
        shapes[at + "output.dense"] = (width, inner)
        shapes[at + "attention.output.LayerNorm"] = shapes[at + "output.LayerNorm"] = (width,)
    shapes["embeddings.LayerNorm"] = (width,)
    made = {name + ".weight": draw(size=shape) for name, shape in shapes.items()}
    made |= {
        name + ".bias": draw(size=shape[:1])
        for name, shape in shapes.items()
        if not name.endswith("embeddings")
    }
    return {name: array.astype(np.float32) for name, array in made.items()}


def folder_of(path: Path, config: dict[str, Any] = CONFIG, prefix: str = "", **files: Any) -> Path:
    """A small model's folder, with the words of `WORDS`."""
    td.save({prefix + k: v for k, v in weights_of(config).items()}, path / "model.safetensors")
    (path / "config.json").write_text(json.dumps(config))
    (path / "vocab.txt").write_text("\n".join(WORDS))
    (path / "1_Pooling").mkdir()
    for name, content in files.items():
        target = "1_Pooling/config.json" if name == "pooling" else name + ".json"
        (path / target).write_text(json.dumps(content))
    return path


def expected(
    config: dict[str, Any], texts: list[list[int]], pool: Callable[[Array], Array]
) -> Array:
    weights = weights_of(config)
    return np.array([pool(bert(weights, config, text)) for text in texts])


def test_vectors_of_a_small_model(tmp_path: Path, device: td.Device) -> None:
    encoder = load_encoder(folder_of(tmp_path, prefix="bert."), device)
    assert (encoder.dimensions, encoder.longest) == (16, 40)
    found = encoder.embed(FEW)
    assert found.device == device
    pooled = expected(CONFIG, tokens_of(encoder), lambda x: x.mean(0))
    np.testing.assert_allclose(found.numpy(), pooled, atol=2e-5)
    lengths = np.linalg.norm(encoder.embed(FEW, normalize=True).numpy(), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


def tokens_of(encoder: Encoder) -> list[list[int]]:
    """The tokens of `FEW`, cut to the model's length before the last one."""
    tokens = [encoder.tokenizer.encode(text) for text in FEW]
    return [ids if len(ids) <= 40 else [*ids[:39], 3] for ids in tokens]


@pytest.mark.parametrize(
    ("pooling", "pool"),
    [
        (MEAN, lambda x: x.mean(0)),
        (CLS, lambda x: x[0]),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, lambda x: x.sum(0) / len(x) ** 0.5),
        ({"pooling_mode": "lasttoken"}, lambda x: x[-1]),
    ],
)
def test_how_tokens_become_one_vector(
    tmp_path: Path, pooling: dict[str, Any], pool: Callable[[Array], Array]
) -> None:
    encoder = load_encoder(folder_of(tmp_path, pooling=pooling), "cpu")
    pooled = expected(CONFIG, tokens_of(encoder), pool)
    np.testing.assert_allclose(encoder.embed(FEW).numpy(), pooled, atol=2e-5)


def test_positions_of_roberta_begin_behind_the_padding_token(tmp_path: Path) -> None:
    config = CONFIG | {"model_type": "roberta", "pad_token_id": 1, "type_vocab_size": 1}
    encoder = load_encoder(folder_of(tmp_path, config), "cpu")
    assert encoder.longest == 38
    ids = encoder.tokenizer.encode("the cat")
    pooled = expected(config, [ids], lambda x: x.mean(0))
    np.testing.assert_allclose(encoder.embed("the cat").numpy(), pooled, atol=2e-5)


@pytest.mark.parametrize("device", ["cpu", "webgpu"], indirect=True)
def test_vectors_of_minilm(minilm: Path, device: td.Device) -> None:
    encoder = load_encoder(minilm, device)
    assert repr(encoder) == f"Encoder('all-MiniLM-L6-v2', 384 dimensions, {device.id})"
    found = encoder.embed(SENTENCES[:2]).numpy()
    file = read_folder(minilm)
    weights = {name: file.weights.array(name) for name in file.weights.tensors}
    for vector, text in zip(found, SENTENCES, strict=False):
        pooled = bert(weights, file.config, encoder.tokenizer.encode(text)).mean(0)
        assert vector @ pooled / np.linalg.norm(pooled) > 1 - 1e-6
    assert found[0] @ found[1] > 0.6


if transformers is not None:

    def test_vectors_of_minilm_are_those_of_pytorch(minilm: Path) -> None:
        import torch

        network = transformers.BertModel.from_pretrained(minilm).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
        found = load_encoder(minilm, "cpu").embed(SENTENCES).numpy()
        for vector, text in zip(found, SENTENCES, strict=True):
            given = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
            with torch.inference_mode():
                mean = network(**given).last_hidden_state.mean(1)[0].numpy()
            assert vector @ mean / np.linalg.norm(mean) > 1 - 1e-6


def test_a_tokenizer_of_a_folder(minilm: Path) -> None:
    tokenizer = load_encoder(minilm, "cpu").tokenizer
    assert tokenizer.encode("Hello [SEP]") == [101, 7592, 1031, 19802, 1033, 102]
    assert tokenizer.encode("Hello [SEP]", special=True, add_bos=False) == [7592, 102]
    assert tokenizer.decode([101, 7592, 2088, 102]) == "hello world"
    assert tokenizer.decode([101, 7592], special=True) == "[CLS] hello"
    assert [tokenizer.bytes_of(token) for token in (101, 7592, 2015)] == [b"", b" hello", b"s"]
    assert (tokenizer.bos, tokenizer.eos, tokenizer.vocabulary_size) == (101, 102, 30522)
    with pytest.raises(ValueError, match="outside of the vocabulary"):
        tokenizer.bytes_of(-1)


def test_load_gives_the_encoder_of_a_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    assert isinstance(td.models.load(folder, "cpu"), Encoder)
    with pytest.raises(ValueError, match="context and activations are of language models"):
        td.models.load(folder, "cpu", context=64)


def test_no_texts_and_other_things(tmp_path: Path) -> None:
    encoder = load_encoder(folder_of(tmp_path), "cpu")
    assert encoder.embed([]).shape == (0, 16)
    assert encoder.count_tokens(["the cat", "the " * 60, ""]) == [4, 40, 2]
    with pytest.raises(TypeError, match=r"texts\[1\] is 7"):
        encoder.embed(["the cat", 7])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("config", "files", "message"),
    [
        (
            {"model_type": "qwen2"},
            {},
            "of the type 'qwen2': .* `treadle quantize FOLDER model.gguf",
        ),
        ({"model_type": "t5"}, {}, "'t5'; encoders that are supported are bert, roberta"),
        ({"hidden_act": "swish9"}, {}, "'swish9' is not supported; gelu"),
        ({"position_embedding_type": "relative_key"}, {}, "'relative_key' are not supported"),
        ({"hidden_size": 15}, {}, "15 elements are not 2 heads"),
        ({"num_hidden_layers": 0}, {}, "sizes that no encoder has"),
        ({"num_hidden_layers": 3}, {}, "has no tensor encoder.layer.2"),
        ({"intermediate_size": 48}, {}, r"shape \(24, 16\), where config.json says \(48, 16\)"),
        ({}, {"pooling": MEAN | CLS | MEAN | {"pooling_mode_max_tokens": True}}, "max_tokens; sup"),
        ({}, {"modules": [{"type": "a.Dense", "path": "2"}]}, "a layer Dense behind the encoder"),
        ({}, {"modules": {"type": "a.Dense"}}, "not a list of modules"),
        ({}, {"tokenizer": {}}, "tokenizer in .* cannot be read"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(
    tmp_path: Path, config: dict[str, Any], files: dict[str, Any], message: str
) -> None:
    folder_of(tmp_path, **files)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | config))
    with pytest.raises(FormatError, match=message):
        load_encoder(tmp_path, "cpu")


def test_the_folder_of_a_language_model(tmp_path: Path) -> None:
    """Its tokenizer may be of another kind: what to do with it is said before that is read."""
    (folder_of(tmp_path) / "vocab.txt").unlink()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    advice = r"'qwen2': .* `treadle quantize FOLDER model.gguf` makes"
    with pytest.raises(FormatError, match=advice):
        td.models.load(tmp_path, "cpu")


def test_rows_hold_every_text_once() -> None:
    random = np.random.default_rng(1)
    texts = [list(range(length)) for length in random.geometric(0.08, 500).clip(2, 500)]
    seen, shapes = [], set()
    for batch in batches(texts, 1024):
        assert batch.tokens.size <= 1024
        shapes.add(batch.tokens.shape)
        for row, members in enumerate(batch.members):
            assert len(members) <= batch.room
            seen += members
            for number, index in enumerate(members):
                here = batch.texts[row] == number
                assert batch.tokens[row, here].tolist() == texts[index]
                assert batch.positions[row, here].tolist() == texts[index]
    assert sorted(seen) == list(range(500))
    assert len(shapes) <= 4
