"""The pre-tokenizers that GGUF files name: how text is split into words before its bytes merge.

A file says only the name (`tokenizer.ggml.pre`). Each stands for regular expressions that are
applied one after the other; what an expression does not match stays as it is between its matches.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.errors import FormatError

_ENGLISH = r"'s|'t|'re|'ve|'m|'ll|'d"
_ANY_CASE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BY_CASE = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%s"
_DIGIT, _THREE_DIGITS = r"\p{N}", r"\p{N}{1,3}"

_GPT_2 = rf"{_ENGLISH}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"


def _words(numbers: str) -> str:
    return f"{_ANY_CASE}|{_WORD}|{numbers}|{_SIGNS}|{_SPACES}"


def _words_by_case(numbers: str, suffix: str) -> str:
    words = _BY_CASE % (suffix, suffix)
    return rf"{words}|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


@dataclass(frozen=True)
class PreTokenizer:
    """Expressions in their order; whether a word that is a token as a whole skips the merges."""

    expressions: tuple[str, ...]
    whole_words: bool = False


_LLAMA_3 = PreTokenizer((_words(_THREE_DIGITS),), whole_words=True)
_DIGITS_FIRST = PreTokenizer((_DIGIT, _GPT_2))
_PLAIN = PreTokenizer((_GPT_2,))
_QWEN_2 = PreTokenizer((_words(_DIGIT),))

PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    "default": PreTokenizer(
        (r"[\p{P}\$\+<=>\^~\|]+", _GPT_2, r"\p{N}+", "[0-9][0-9][0-9]"),
    ),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "pixtral", "falcon3"), _LLAMA_3),
    **dict.fromkeys(("gpt-2", "phi-2", "olmo", "mpt"), _PLAIN),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), _DIGITS_FIRST),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"), _QWEN_2),
    "qwen35": PreTokenizer(
        (
            rf"{_ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
        )
    ),
    # Phi-4 names dbrx, and its small models gpt-4o.
    **dict.fromkeys(
        ("dbrx", "smaug-bpe", "chatglm-bpe", "glm4"), PreTokenizer((_words(_THREE_DIGITS),))
    ),
    **dict.fromkeys(
        ("gpt-4o", "llama4"), PreTokenizer((_words_by_case(_THREE_DIGITS, _ANY_CASE + "?"),))
    ),
    "tekken": PreTokenizer((_words_by_case(_DIGIT, ""),), whole_words=True),  # Mistral's
}  # fmt: skip

BOS_BY_DEFAULT = frozenset(name for name, kind in PRE_TOKENIZERS.items() if kind.whole_words)
"""Names of those whose models begin with a token of their own, unless their file says otherwise."""


def pre_tokenizer(name: str) -> PreTokenizer:
    """The pre-tokenizer of that name."""
    found = PRE_TOKENIZERS.get(name)
    if found is None:
        raise FormatError(
            f"the file's tokenizer splits text by {name!r} (tokenizer.ggml.pre), which is not "
            f"supported; supported are {', '.join(sorted(PRE_TOKENIZERS))}"
        )
    return found
