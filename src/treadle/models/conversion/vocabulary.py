"""tokenizer.json, under the keys of GGUF files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from treadle.core.errors import FormatError
from treadle.formats.contents import read_json
from treadle.formats.hugging_face import HuggingFaceFolder
from treadle.models.text.pre_tokenizers import PRE_TOKENIZERS

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)
_BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")
_GPT_2 = PRE_TOKENIZERS["gpt-2"].expressions[0]  # what `ByteLevel` splits by
_UNREACHED = -1e6  # the score of tokens that no merge makes
_SPECIAL = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


def vocabulary(folder: HuggingFaceFolder, size: int) -> dict[str, Any]:
    """Metadata of a GGUF file: the tokens, of which the model has so many, and how text is split.

    FormatError for a tokenizer that GGUF files, or treadle, do not know.
    """
    if folder.tokenizer is None:
        raise FormatError(
            f"{folder.path} has no tokenizer.json: transformers' tokenizer.save_pretrained(folder) "
            "writes it"
        )
    found = read_json(folder.tokenizer)
    model, added = found.get("model"), found.get("added_tokens") or []
    if not isinstance(model, dict) or not isinstance(model.get("vocab"), dict):
        kind = model.get("type") if isinstance(model, dict) else None
        raise FormatError(f"{folder.tokenizer}: the tokenizer {kind!r} is not supported; BPE is")
    try:
        tokens, types = _tokens(model, added, size)
        made = {
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": types,
            **_special(folder, added, found),
            **_splitting(folder.tokenizer, found, model, tokens),
        }
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise FormatError(f"{folder.tokenizer} is not a tokenizer: {error!r}") from None
    template = _template(folder)
    return made | ({"tokenizer.chat_template": template} if template else {})


def _tokens(
    model: Mapping[str, Any], added: list[Mapping[str, Any]], size: int
) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The text and the type of each token. Rows of the embedding without one get a name."""
    tokens = [f"[PAD{number}]" for number in range(size)]
    types = np.full(size, _UNUSED, np.int32)
    unknown = model.get("unk_token")
    for text, number in model["vocab"].items():
        if 0 <= number < size:
            tokens[number] = text
            types[number] = _NORMAL
            if text == unknown:
                types[number] = _UNKNOWN
            elif model.get("byte_fallback") and _BYTE_TOKEN.fullmatch(text):
                types[number] = _BYTE
    for token in added:
        number = token["id"]
        if 0 <= number < size and types[number] != _UNKNOWN:
            tokens[number] = token["content"]
            types[number] = _CONTROL if token.get("special") else _USER_DEFINED
    return tokens, types


def _splitting(
    path: Path, found: Mapping[str, Any], model: Mapping[str, Any], tokens: list[str]
) -> dict[str, Any]:
    """The kind of tokenizer, its merges or scores, and how text is split before."""
    pairs = [pair.split(" ", 1) if isinstance(pair, str) else pair for pair in model["merges"]]
    steps = list(_steps(found.get("pre_tokenizer")))
    if any(step["type"] == "ByteLevel" for step in steps):
        return {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": _pre_tokenizer(path, steps, bool(model.get("ignore_merges"))),
            "tokenizer.ggml.merges": [f"{one} {other}" for one, other in pairs],
        }
    if not model.get("byte_fallback"):
        raise FormatError(f"{path}: BPE that is neither of bytes nor falls back to them")
    # SentencePiece merges the pair whose result has the highest score: the one that came first.
    scores = np.full(len(tokens), _UNREACHED, np.float32)
    ids = {text: number for number, text in enumerate(tokens)}
    for rank, (one, other) in reversed(list(enumerate(pairs))):
        if one + other in ids:
            scores[ids[one + other]] = -rank
    normalizers = _steps(found.get("normalizer"), "normalizers")
    prepended = any(step["type"] == "Prepend" for step in normalizers) or any(
        step["type"] == "Metaspace" and step.get("prepend_scheme", "always") != "never"
        for step in steps
    )
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": prepended,
    }


def _steps(step: Any, inner: str = "pretokenizers") -> Iterator[Mapping[str, Any]]:
    """The steps of a sequence, or the single one."""
    if not step:
        return
    if step["type"] == "Sequence":
        for each in step[inner]:
            yield from _steps(each, inner)
    else:
        yield step


def _pre_tokenizer(path: Path, steps: list[Mapping[str, Any]], whole_words: bool) -> str:
    """The name under which GGUF files know how text is split."""
    expressions: list[str] = []
    for step in steps:
        if step["type"] == "Split":
            expressions.append(step["pattern"].get("Regex") or re.escape(step["pattern"]["String"]))
        elif step["type"] == "Digits" and step.get("individual_digits"):
            expressions.append(r"\p{N}")
        elif step["type"] == "Digits":
            expressions.append(r"\p{N}+")
        elif step["type"] == "Punctuation":
            expressions.append(r"[\p{P}\$\+<=>\^~\|]+")
        elif step["type"] == "ByteLevel" and step.get("use_regex", True):
            expressions.append(_GPT_2)
    for name, known in PRE_TOKENIZERS.items():
        if known.expressions == tuple(expressions) and known.whole_words == whole_words:
            return name
    raise FormatError(
        f"{path}: text is split by {expressions}, for which GGUF files have no name that treadle "
        "knows: a GGUF file of the model, from whoever made one, says it"
    )


def _special(
    folder: HuggingFaceFolder, added: list[Mapping[str, Any]], found: Mapping[str, Any]
) -> dict[str, Any]:
    """The tokens with a role, and whether a text begins with one."""
    numbers = {token["content"]: token["id"] for token in added}
    numbers = found["model"]["vocab"] | numbers
    made: dict[str, Any] = {}
    for name, key in _SPECIAL.items():
        token = folder.tokenizer_config.get(f"{name}_token")
        text = token.get("content") if isinstance(token, dict) else token
        number = numbers.get(text, folder.config.get(f"{name}_token_id"))
        if type(number) is int:
            made[f"tokenizer.ggml.{key}_token_id"] = number
    begins = folder.tokenizer_config.get("add_bos_token")
    if not isinstance(begins, bool):
        bos = made.get("tokenizer.ggml.bos_token_id")
        begins = any(
            _first(step, numbers) == bos is not None
            for step in _steps(found.get("post_processor"), "processors")
        )
    return made | {"tokenizer.ggml.add_bos_token": begins}


def _first(step: Mapping[str, Any], numbers: Mapping[str, int]) -> int | None:
    """The token that a template puts first."""
    single = step.get("single") if step["type"] == "TemplateProcessing" else None
    token = single[0].get("SpecialToken") if single else None
    return numbers.get(token["id"]) if token else None


def _template(folder: HuggingFaceFolder) -> str | None:
    """The chat template: a file of its own, or a text among the tokenizer's values."""
    path = folder.path / "chat_template.jinja"
    if path.is_file() and path.stat().st_size < 1 << 20:
        return path.read_text("utf-8", errors="replace")
    template = folder.tokenizer_config.get("chat_template")
    if isinstance(template, list):  # several with names
        named = {each.get("name"): each.get("template") for each in template}
        template = named.get("default")
    return template if isinstance(template, str) else None
