"""What turns text without special tokens into tokens, by the kind of the vocabulary.

SentencePiece's byte-pair encoding is in `score_merges`; for all others the `tokenizers` library is
made from what the file says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.models.text.pre_tokenizers import pre_tokenizer
from treadle.models.text.score_merges import SPACE, score_merges
from treadle.models.text.vocabulary import BYTE, NORMAL, Vocabulary

if TYPE_CHECKING:
    import tokenizers

Encode = Callable[[str], list[int]]


def encoder(vocabulary: Vocabulary) -> Encode:
    """A function from text to tokens."""
    return _ENCODERS[vocabulary.model](vocabulary)


def library() -> Any:
    """The `tokenizers` library, which the extra `llm` installs."""
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "tokens are made by the library `tokenizers`: pip install 'treadle[llm]'"
        ) from error
    return tokenizers


def byte_tokens(vocabulary: Vocabulary) -> list[int | None]:
    """The token of each byte, or None."""
    return [vocabulary.ids.get(f"<0x{byte:02X}>") for byte in range(256)]


def _sentencepiece(vocabulary: Vocabulary) -> Encode:
    if len(vocabulary.scores) and not np.isfinite(vocabulary.scores).all():
        raise FormatError("tokenizer.ggml.scores holds infinities or NaN")
    merge = score_merges(
        vocabulary.ids, vocabulary.scores.tolist(), byte_tokens(vocabulary), vocabulary.unknown
    )
    return lambda text: merge(text.replace(" ", SPACE))


def _byte_level(vocabulary: Vocabulary) -> Encode:
    kind = pre_tokenizer(vocabulary.pre_tokenizer)
    lib = library()
    merges = [tuple(merge.split(" ", 1)) for merge in vocabulary.merges]
    if not merges or any(len(pair) != 2 for pair in merges):
        raise FormatError("tokenizer.ggml.merges must hold pairs of tokens with a space between")
    model = _made(
        lib.models.BPE, vocabulary.ids, merges, ignore_merges=kind.whole_words, fuse_unk=False
    )
    tokenizer = lib.Tokenizer(model)
    split = lib.pre_tokenizers.Split
    tokenizer.pre_tokenizer = lib.pre_tokenizers.Sequence(
        [split(lib.Regex(expression), "isolated") for expression in kind.expressions]
        + [lib.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return _by(tokenizer)


def _word_piece(vocabulary: Vocabulary) -> Encode:
    lib = library()
    # GGUF marks the beginnings of words, the library what continues them.
    ids = {
        text if kind != NORMAL else text[1:] if text.startswith(SPACE) else "##" + text: token
        for token, (text, kind) in enumerate(
            zip(vocabulary.tokens, vocabulary.types.tolist(), strict=True)
        )
    }
    unknown = None if vocabulary.unknown is None else vocabulary.tokens[vocabulary.unknown]
    model = _made(lib.models.WordPiece, ids, unk_token=unknown or "[UNK]")
    tokenizer = lib.Tokenizer(model)
    tokenizer.normalizer = lib.normalizers.BertNormalizer(
        lowercase=vocabulary.lowercase, strip_accents=vocabulary.strip_accents
    )
    tokenizer.pre_tokenizer = lib.pre_tokenizers.BertPreTokenizer()
    return _by(tokenizer)


def _unigram(vocabulary: Vocabulary) -> Encode:
    lib = library()
    scored = list(zip(vocabulary.tokens, vocabulary.scores.tolist(), strict=True))
    has_bytes = bool(vocabulary.of_type(BYTE))
    model = _made(lib.models.Unigram, scored, vocabulary.unknown, has_bytes)
    tokenizer = lib.Tokenizer(model)
    steps = []
    if vocabulary.character_map:
        steps.append(_made(lib.normalizers.Precompiled, vocabulary.character_map))
    if vocabulary.remove_extra_spaces:
        steps += [lib.normalizers.Strip(), lib.normalizers.Replace(lib.Regex(" {2,}"), " ")]
    steps.append(lib.normalizers.Replace(" ", SPACE))
    tokenizer.normalizer = lib.normalizers.Sequence(steps)
    return _by(tokenizer)


_ENCODERS: dict[str, Callable[[Vocabulary], Encode]] = {
    "llama": _sentencepiece,
    "gpt2": _byte_level,
    "bert": _word_piece,
    "t5": _unigram,
}


def _made(kind: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    try:
        return kind(*arguments, **keywords)
    except Exception as error:
        raise FormatError(f"the file's tokenizer contradicts itself: {error}") from error


def _by(tokenizer: tokenizers.Tokenizer) -> Encode:
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
