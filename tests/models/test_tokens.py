"""Tokens of drawn texts are llama.cpp's, for both files at hand and for each pre-tokenizer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support.drawn_text import draw_text
from tests.support.llama_cpp import LlamaVocabulary
from treadle.core.errors import FormatError
from treadle.formats.gguf import read_gguf
from treadle.models.text import Tokenizer, tokenizer_of_gguf
from treadle.models.text.folder_tokenizer import tokenizer_of_folder
from treadle.models.text.pre_tokenizers import PRE_TOKENIZERS
from treadle.models.text.token_bounds import TooManyTokens, least_tokens

TEXTS = 1000  # of each seed
SEEDS = (0, time.time_ns())

# llama.cpp writes the expressions of these in a simpler form, which differs from the models' own.
SIMPLIFIED_BY_LLAMA_CPP = ("gpt-4o", "llama4", "tekken")


@pytest.fixture(scope="module", params=["gemma", "smollm"])
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture(scope="module")
def tokenizer(file: Path) -> Tokenizer:
    return tokenizer_of_gguf(read_gguf(file).metadata)


@pytest.fixture(scope="module")
def peer(file: Path) -> Iterator[LlamaVocabulary]:
    vocabulary = LlamaVocabulary(file)
    yield vocabulary
    vocabulary.close()


@pytest.mark.parametrize("seed", SEEDS, ids=["fixed", "fresh"])
def test_tokens_are_llama_cpp_s(tokenizer: Tokenizer, peer: LlamaVocabulary, seed: int) -> None:
    random = Random(seed)
    for index in range(TEXTS):
        text, special = draw_text(random), bool(index % 2)
        expected = peer.encode(text, special, add_ends=True)
        assert tokenizer.encode(text, special=special) == expected, (seed, text)


@pytest.mark.parametrize("seed", SEEDS, ids=["fixed", "fresh"])
def test_text_comes_back_from_its_tokens(tokenizer: Tokenizer, seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        text = draw_text(random)
        tokens = tokenizer.encode(text, add_bos=False)
        expected = _what_is_kept(tokenizer, text)
        assert tokenizer.decode(tokens) == expected, (seed, text)
        stream = tokenizer.stream()
        assert "".join([*map(stream.add, tokens), stream.end()]) == expected, (seed, text)


@pytest.mark.parametrize("seed", SEEDS, ids=["fixed", "fresh"])
def test_no_text_is_refused_whose_tokens_are_few_enough(tokenizer: Tokenizer, seed: int) -> None:
    """Also those of the longest tokens, and of characters that have none."""
    random = Random(seed)
    least = least_tokens(tokenizer.vocabulary)
    longest = sorted(tokenizer.vocabulary.tokens, key=lambda text: -len(text.encode()))[:40]
    texts = ["▁" * 900, " " * 900, "\x04\x06" * 100, "\ud7ff\U00045678"]
    for each in longest:
        data = tokenizer.bytes_of(tokenizer.vocabulary.ids[each], special=True)
        texts += [each * 20, data.decode("utf-8", "ignore") * 20]
    for text in texts + [draw_text(random) for _ in range(200)]:
        for special in (False, True):
            tokens = tokenizer.encode(text, special, add_bos=False)
            assert least(text) <= len(tokens), (seed, text)
            again = tokenizer.encode(text, special, add_bos=False, most=len(tokens))
            assert again == tokens
    with pytest.raises(TooManyTokens, match="at most 7 are possible") as refused:
        tokenizer.encode("word " * 500, most=7)
    assert 7 < refused.value.least <= 500


@pytest.mark.parametrize("kind", ["smollm", "minilm"])
def test_what_is_decoded_are_tokens(kind: str, request: pytest.FixtureRequest) -> None:
    made = tokenizer_at(request.getfixturevalue(kind))
    tokens = made.encode("a cat", add_bos=False)
    assert made.decode(np.array(tokens)) == made.decode(tokens) == "a cat"
    for wrong, message in (([10**7], "token 10000000 is outside"), ([-1], "token -1 is outside")):
        with pytest.raises(ValueError, match=message):
            made.decode(wrong)
    for not_tokens in ([1.7], "a cat", 5):
        with pytest.raises(TypeError, match="integer"):
            made.decode(not_tokens)
    with pytest.raises(TypeError, match="a text is a string, not b'a cat'"):
        made.encode(b"a cat")


def tokenizer_at(path: Path) -> Any:
    if path.is_dir():
        return tokenizer_of_folder(path)
    return tokenizer_of_gguf(read_gguf(path).metadata)


@pytest.mark.parametrize("kind", ["smollm", "minilm"])
def test_other_threads_go_on_while_a_long_text_is_encoded(
    kind: str, request: pytest.FixtureRequest
) -> None:
    made = tokenizer_at(request.getfixturevalue(kind))
    woken, ended = [0], threading.Event()

    def wake() -> None:
        while not ended.wait(1e-4):
            woken[0] += 1

    other = threading.Thread(target=wake)
    other.start()
    try:
        before = woken[0]
        made.encode("Once upon a time, " * 40_000)
        during = woken[0] - before
    finally:
        ended.set()
        other.join()
    assert during > 20  # one that waits for the interpreter is woken once or twice


def _what_is_kept(tokenizer: Tokenizer, text: str) -> str:
    """The text without what the vocabulary does not tell apart, or does not have."""
    if tokenizer.vocabulary.model == "llama":
        return text.replace("▁", " ")
    missing = [byte for byte in range(0x20) if not tokenizer.encode(chr(byte), add_bos=False)]
    return text.translate(dict.fromkeys(missing))


def vocabulary_file(folder: Path, smollm: Path, **changes: Any) -> Path:
    """A GGUF file of SmolLM's vocabulary alone, with other metadata."""
    import gguf

    source = read_gguf(smollm).metadata
    path = folder / "vocabulary.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(64)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(source["tokenizer.ggml.tokens"])
    writer.add_token_types(source["tokenizer.ggml.token_type"].tolist())
    writer.add_token_merges(source["tokenizer.ggml.merges"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for key, value in changes.items():
        writer.add_string("tokenizer.ggml." + key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


# One name of each kind.
KINDS = {kind.expressions: name for name, kind in PRE_TOKENIZERS.items()}.values()


@pytest.mark.parametrize("name", [n for n in KINDS if n not in SIMPLIFIED_BY_LLAMA_CPP])
def test_each_pre_tokenizer_splits_as_llama_cpp_does(
    name: str, tmp_path: Path, smollm: Path
) -> None:
    path = vocabulary_file(tmp_path, smollm, pre=name)
    tokenizer, peer = tokenizer_of_gguf(read_gguf(path).metadata), LlamaVocabulary(path)
    random = Random(1)
    for _ in range(300):
        text = draw_text(random)
        assert tokenizer.encode(text) == peer.encode(text, False, add_ends=True), text
    peer.close()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gpt-4o", "HelloWorld's oЬ", ["Hello", "World's", " o", "Ь"]),
        ("gpt-4o", "12345 a/\n/b", ["123", "45", " a", "/\n/", "b"]),
        ("tekken", "HelloWorld's oЬ", ["Hello", "World", "'s", " o", "Ь"]),
        ("tekken", "123", ["1", "2", "3"]),
    ],
)
def test_words_that_change_their_case_are_split(name: str, text: str, words: list[str]) -> None:
    import tokenizers

    (expression,) = PRE_TOKENIZERS[name].expressions
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
    assert [word for word, _ in split.pre_tokenize_str(text)] == words


def test_control_tokens_are_text_unless_asked(smollm: Path) -> None:
    tokenizer = tokenizer_of_gguf(read_gguf(smollm).metadata)
    text = "<|im_start|>user"
    plain, special = tokenizer.encode(text), tokenizer.encode(text, special=True)
    assert 1 not in plain
    assert special[0] == 1
    assert tokenizer.decode(plain) == text
    assert tokenizer.decode(special) == "user"
    assert tokenizer.decode(special, special=True) == text


def test_ends_of_generation_are_llama_cpp_s(tokenizer: Tokenizer, peer: LlamaVocabulary) -> None:
    assert tokenizer.ends == peer.ends(range(tokenizer.vocabulary_size))


def test_beginnings_and_ends_are_added_as_asked(gemma: Path) -> None:
    tokenizer = tokenizer_of_gguf(read_gguf(gemma).metadata)
    assert tokenizer.encode("") == [2]
    assert tokenizer.encode("", add_bos=False, add_eos=True) == [1]
    assert tokenizer.vocabulary_size == 262144
    with pytest.raises(ValueError, match="outside of the vocabulary"):
        tokenizer.bytes_of(262144)


def test_half_of_a_surrogate_pair_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="half of a surrogate pair at character 1"):
        tokenizer.encode("a\ud800")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer.ggml.model": "rwkv"}, "rwkv.*supported are llama, gpt2, bert, t5"),
        ({"tokenizer.ggml.model": None}, "says nothing of its tokenizer"),
        ({"tokenizer.ggml.pre": "klingon"}, "klingon.*supported are chatglm-bpe"),
        ({"tokenizer.ggml.tokens": None}, "no tokens"),
        ({"tokenizer.ggml.tokens": ["a", "b", "a"]}, "'a' is in tokenizer.ggml.tokens twice"),
        ({"tokenizer.ggml.merges": ["ab"]}, "pairs of tokens"),
        ({"tokenizer.ggml.merges": ["a z"]}, "contradicts itself"),
        ({"tokenizer.ggml.token_type": np.ones(1, np.int32)}, "a number for each of the 3 tokens"),
    ],
)
def test_what_is_wrong_with_a_vocabulary_is_said(changes: dict[str, Any], message: str) -> None:
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": ["a", "b", "ab"],
        "tokenizer.ggml.merges": ["a b"],
    }
    assert tokenizer_of_gguf(metadata).encode("abba") == [2, 1, 0]
    metadata |= changes
    with pytest.raises(FormatError, match=message):
        tokenizer_of_gguf({key: value for key, value in metadata.items() if value is not None})


@pytest.mark.parametrize("name", KINDS)
def test_without_the_library_tokens_are_the_same(
    smollm: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = {**read_gguf(smollm).metadata, "tokenizer.ggml.pre": name}
    expected = tokenizer_of_gguf(metadata)
    monkeypatch.setattr("treadle.models.text.encoders.find_spec", lambda name: None)
    found = tokenizer_of_gguf(metadata)
    random = Random(0)
    for _ in range(300):
        text = draw_text(random)
        assert found.encode(text) == expected.encode(text), text
