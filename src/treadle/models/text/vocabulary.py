"""A vocabulary as a model's file describes it: tokens, their types, scores, merges and flags.

The keys and the numbers of token types are GGUF's (https://github.com/ggml-org/ggml, docs/gguf.md).
Where a file leaves a key out, its value is the one that llama.cpp takes, so that both give the same
tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treadle.core.errors import FormatError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of tokens, by their numbers in GGUF."""

_PREFIX = "tokenizer.ggml."

# What each kind of tokenizer takes for what its file does not say.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0, "add_bos": True, "space_prefix": True},
    "gpt2": {"bos": 11, "eos": 11},
    "bert": {"bos": 101, "eos": 102, "unknown": 100, "add_bos": True, "add_sep": True},
    "t5": {"eos": 1, "unknown": 2, "add_eos": True, "space_prefix": True},
}

# Tokens that end a generation in whatever file they stand: many files name one of several.
_END_TEXTS = (
    "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<end_of_turn>",
    "<|endoftext|>", "<|end_of_text|>", "</s>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<eos>",
    "<end_of_utterance>", "<｜end▁of▁sentence｜>", "<turn|>",
    # The next file, after which a model of code goes on with something else.
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
    "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
)  # fmt: skip
# Of these, those that take part in calls of tools where the file has both others.
_HARMONY = ("<|return|>", "<|call|>", "<|end|>")
_KEYS_OF_ENDS = ("eos_token_id", "eot_token_id", "eom_token_id")


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Tokens by their numbers, and what the file says about them."""

    model: str
    tokens: Sequence[str]
    types: np.ndarray
    scores: np.ndarray
    merges: Sequence[str] = ()
    pre_tokenizer: str = "default"
    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None
    ends: frozenset[int] = frozenset()
    add_bos: bool = False
    add_eos: bool = False
    space_prefix: bool = False
    strip_after: frozenset[int] = frozenset()
    lowercase: bool = True
    strip_accents: bool = True
    character_map: bytes = b""
    remove_extra_spaces: bool = False
    ids: dict[str, int] = field(default_factory=dict, repr=False)

    def of_type(self, *types: int) -> list[int]:
        """Numbers of all tokens of these types."""
        return [int(token) for token in np.flatnonzero(np.isin(self.types, types))]


def vocabulary_of_gguf(metadata: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary in the metadata of a GGUF file."""
    model = metadata.get(_PREFIX + "model")
    if model not in _DEFAULTS:
        found = "says nothing of its tokenizer" if model is None else f"has the tokenizer {model!r}"
        raise FormatError(
            f"the file {found} (tokenizer.ggml.model); supported are {', '.join(_DEFAULTS)}"
        )
    tokens = metadata.get(_PREFIX + "tokens")
    if not isinstance(tokens, list) or not tokens:
        raise FormatError("the file has no tokens: tokenizer.ggml.tokens must be a list of strings")
    ids = dict(zip(tokens, range(len(tokens)), strict=True))
    if len(ids) != len(tokens):
        seen: set[str] = set()
        twice = next(token for token in tokens if token in seen or seen.add(token))  # type: ignore[func-returns-value]
        raise FormatError(f"the token {twice!r} is in tokenizer.ggml.tokens twice")
    types = _numbers(metadata, "token_type", len(tokens), np.int32, NORMAL)
    defaults = _DEFAULTS[model]
    ends = _ends(metadata, ids, types, defaults.get("eos"))
    bos = _token(
        metadata, ("cls_token_id", "bos_token_id"), model, len(tokens), defaults.get("bos")
    )
    eos = _token(
        metadata, ("seperator_token_id", "eos_token_id"), model, len(tokens), defaults.get("eos")
    )
    add_bos = bool(metadata.get(_PREFIX + "add_bos_token", _adds_bos(metadata, defaults)))
    sep = "add_sep" in defaults and bool(metadata.get(_PREFIX + "add_sep_token", True))
    add_eos = bool(metadata.get(_PREFIX + "add_eos_token", defaults.get("add_eos", False))) or sep
    lowercase = bool(metadata.get(_PREFIX + "normalizer.lowercase", True))
    return Vocabulary(
        model=model,
        tokens=tokens,
        types=types,
        scores=_numbers(metadata, "scores", len(tokens), np.float32, 0),
        merges=metadata.get(_PREFIX + "merges", ()),
        pre_tokenizer=str(metadata.get(_PREFIX + "pre") or "default"),
        bos=bos,
        eos=eos,
        unknown=_token(
            metadata, ("unknown_token_id",), model, len(tokens), defaults.get("unknown")
        ),
        ends=ends,
        add_bos=add_bos and bos is not None,
        add_eos=add_eos and eos is not None,
        space_prefix=model != "gpt2"
        and bool(metadata.get(_PREFIX + "add_space_prefix", defaults.get("space_prefix", False))),
        strip_after=_strip_after(metadata, ids, types),
        lowercase=lowercase,
        strip_accents=bool(metadata.get(_PREFIX + "normalizer.strip_accents", lowercase)),
        character_map=np.asarray(
            metadata.get(_PREFIX + "precompiled_charsmap", ()), "u1"
        ).tobytes(),
        remove_extra_spaces=bool(metadata.get(_PREFIX + "remove_extra_whitespaces", False)),
        ids=ids,
    )


def _numbers(
    metadata: Mapping[str, Any], key: str, count: int, dtype: type[np.generic], missing: int
) -> np.ndarray:
    values = metadata.get(_PREFIX + key)
    if values is None:
        return np.full(count, missing, dtype)
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 1 or len(array) < count:
        raise FormatError(f"{_PREFIX}{key} must hold a number for each of the {count} tokens")
    return array[:count].astype(dtype)


def _token(
    metadata: Mapping[str, Any], keys: Sequence[str], model: str, count: int, default: int | None
) -> int | None:
    # WordPiece begins with CLS and ends with SEP, which files name in keys of their own.
    for key in keys if model == "bert" else keys[-1:]:
        number = metadata.get(_PREFIX + key)
        if number is not None and 0 <= int(number) < count:
            return int(number)
    return default if default is not None and default < count else None


def _adds_bos(metadata: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
    from treadle.models.text.pre_tokenizers import BOS_BY_DEFAULT

    pre = metadata.get(_PREFIX + "pre")
    return bool(defaults.get("add_bos", False)) or pre in BOS_BY_DEFAULT


def _ends(
    metadata: Mapping[str, Any], ids: Mapping[str, int], types: np.ndarray, eos: int | None
) -> frozenset[int]:
    ends = {ids[text] for text in _END_TEXTS if text in ids}
    for token in ends:  # some converters write these as plain tokens; they are never text
        types[token] = CONTROL
    if all(text in ids for text in _HARMONY):
        ends.discard(ids["<|end|>"])
    for key in _KEYS_OF_ENDS:
        number = metadata.get(_PREFIX + key, eos if key == "eos_token_id" else None)
        if number is not None and 0 <= int(number) < len(ids):
            ends.add(int(number))
    return frozenset(ends)


def _strip_after(
    metadata: Mapping[str, Any], ids: Mapping[str, int], types: np.ndarray
) -> frozenset[int]:
    """Special tokens that take the white space after them, as Phi-3's do; files do not say it."""
    name = str(metadata.get("general.name", "")).lower()
    if "phi-3" not in name and "phi3" not in name:
        return frozenset()
    special = {int(i) for i in np.flatnonzero(np.isin(types, (UNKNOWN, CONTROL, USER_DEFINED)))}
    kept = {ids.get(text) for text in ("<unk>", "<s>", "<|endoftext|>")}
    return frozenset(special - kept)
