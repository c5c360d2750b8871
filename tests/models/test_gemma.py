"""Gemma 3 270M beside llama.cpp: `data/gemma3_270m.json` has its tokens and scores, for the file's
weights in float32, and for activations of 8 bits as it computes on a CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import treadle as td
from treadle.models.model import Model

CASES = json.loads((Path(__file__).parent / "data" / "gemma3_270m.json").read_text())
# Kind of activations, bound of the five largest scores, and margin below which another token may
# be chosen.
KINDS = [("float", "float32", 0.05, 0.1), ("int8", "int8_activations", 0.6, 0.3)]
COUNT = 8  # tokens


def check_tokens(tokens: list[int], wanted: dict[str, Any], margin: float) -> None:
    """The same tokens, up to a choice between two that are almost as probable."""
    for at, (token, other) in enumerate(zip(tokens, wanted["greedy"], strict=False)):
        if token != other:
            assert wanted["margins"][at] < margin, f"token {at} is {token}, not {other}"
            return


def check_scores(model: Model, tokens: list[int], wanted: dict[str, Any], bound: float) -> None:
    """The five largest scores after a text."""
    last = model.logits(tokens)[-1].numpy()
    for token, score in wanted["top5"]:
        assert abs(last[token] - score) < bound, (token, score, last[token])


@pytest.mark.parametrize(("activations", "reference", "bound", "margin"), KINDS)
def test_tokens_are_those_of_the_reference(
    gemma: Path, activations: Any, reference: str, bound: float, margin: float
) -> None:
    model = td.models.load(gemma, "cpu", activations=activations)
    running = [model.generate(case["tokens"], max_tokens=COUNT) for case in CASES]
    for case, generation in zip(CASES, running, strict=True):
        wanted = case[reference]
        text = generation.text()
        check_tokens(generation.tokens, wanted, margin)
        if generation.tokens == wanted["greedy"][:COUNT]:
            assert wanted["text"].startswith(text)
    check_scores(model, CASES[0]["tokens"], CASES[0][reference], bound)
    assert model.tokenizer is not None
    assert [model.tokenizer.encode(case["prompt"]) for case in CASES] == [
        case["tokens"] for case in CASES
    ]


def test_the_first_token_on_webgpu(gemma: Path) -> None:
    """On a software adapter, which takes seconds for a token of this vocabulary. Steps after the
    first have the small models of test_generation."""
    model = td.models.load(gemma, "webgpu", context=64, activations="float")
    generation = model.generate(CASES[0]["tokens"], max_tokens=1, logprobs=5)
    text = generation.text()
    assert text == " the"
    assert generation.tokens == CASES[0]["float32"]["greedy"][:1]
    wanted = CASES[0]["float32"]["top5"]
    found = generation.logprobs[0].top
    assert [token for token, _ in found] == [token for token, _ in wanted]
    for (_, value), (_, score) in zip(found, wanted, strict=True):
        assert abs((value - found[0][1]) - (score - wanted[0][1])) < 0.05
