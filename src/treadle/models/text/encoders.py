"""What turns text without special tokens into tokens, by the kind of the vocabulary.

SentencePiece's byte-pair encoding is in `score_merges`; for all others the `tokenizers` library is
made from what the file says. Where it is not installed, byte-level vocabularies are encoded by
`rank_merges`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.models.text.pieces import bytes_of_characters
from treadle.models.text.pre_tokenizers import pre_tokenizer
from treadle.models.text.rank_merges import rank_merges
from treadle.models.text.score_merges import SPACE, score_merges
from treadle.models.text.vocabulary import BYTE, NORMAL, Vocabulary

if TYPE_CHECKING:
    import tokenizers

Encode = Callable[[str], list[int]]

_MISSING_BYTE = "\0missing byte"  # no token of a byte-level vocabulary contains the character 0


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
    merges = [(left, right) for left, _, right in (m.partition(" ") for m in vocabulary.merges)]
    if not merges or not all(right for _, right in merges):
        raise FormatError("tokenizer.ggml.merges must hold pairs of tokens with a space between")
    if find_spec("tokenizers") is None:
        return rank_merges(vocabulary.ids, merges, kind.expressions, kind.whole_words)
    lib = library()
    # A byte that the vocabulary lacks gives nothing, but what stands beside it does not merge over
    # it: the library would leave it out first, so it becomes a token that is left out afterwards.
    count = len(vocabulary.tokens)
    ids = vocabulary.ids | {_MISSING_BYTE: count}
    model = _made(
        lib.models.BPE,
        ids,
        merges,
        unk_token=_MISSING_BYTE,
        fuse_unk=False,
        ignore_merges=kind.whole_words,
    )
    tokenizer = lib.Tokenizer(model)
    split = lib.pre_tokenizers.Split
    tokenizer.pre_tokenizer = lib.pre_tokenizers.Sequence(
        [split(lib.Regex(expression), "isolated") for expression in kind.expressions]
        + [lib.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    encode = _by(tokenizer)
    if all(character in vocabulary.ids for character in bytes_of_characters()):
        return encode
    return lambda text: [token for token in encode(text) if token < count]


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
    replace, pattern = lib.normalizers.Replace, lib.Regex
    if vocabulary.remove_extra_spaces:
        steps += [replace(pattern(r"\A +| +\z"), ""), replace(pattern(" {2,}"), " ")]
    if vocabulary.space_prefix:  # of what has more than spaces
        steps.append(replace(pattern(r"\A(?=[\s\S]*[^ ])"), " "))
    steps.append(replace(" ", SPACE))
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
    # As a batch, for which the library releases the interpreter: other threads go on, however long
    # the text is.
    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    return encode
