"""The tokens that `sample` chooses, beside a reference in float64 that draws the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import treadle as td
from treadle.models.sampler import Sampler, Stages, log_probabilities, sample, stages_of
from treadle.models.sampling import MOST_CANDIDATES, Sampling

WORD = 2**32


def philox(counter: tuple[int, int], seed: int) -> int:
    """The first word of Philox 4x32-10, as Salmon and others define it."""
    c = [*counter, 0, 0]
    k = [seed % WORD, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(second // WORD) ^ c[1] ^ k[0], second % WORD,
             (first // WORD) ^ c[3] ^ k[1], first % WORD]  # fmt: skip
        k = [(k[0] + 0x9E3779B9) % WORD, (k[1] + 0xBB67AE85) % WORD]
    return c[0]


def reference(logits: np.ndarray, sampling: Sampling, text: list[int], step: int) -> int:
    """The token of one sequence, by llama.cpp's steps over a sorted list, in float64."""
    values = logits.astype(np.float64)
    for token, bias in sampling.logit_bias:
        values[token] += bias
    window = len(text) if sampling.penalty_window == -1 else sampling.penalty_window
    recent = text[len(text) - window :] if window < len(text) else text
    for token in set(recent):
        scaled = values[token] / sampling.repeat_penalty if values[token] > 0 else (
            values[token] * sampling.repeat_penalty)  # fmt: skip
        count = recent.count(token)
        values[token] = scaled - count * sampling.frequency_penalty - sampling.presence_penalty
    order = [int(i) for i in np.argsort(-values, kind="stable") if values[i] > -np.inf]
    if sampling.temperature == 0:
        return order[0]
    if sampling.top_k:
        order = order[: sampling.top_k]
    p = np.exp(values[order] - values[order[0]])
    p /= p.sum()
    if sampling.top_p < 1:
        reached = np.nonzero(np.cumsum(p) >= sampling.top_p)[0]
        order = order[: min(int(reached[0]) + 1 if reached.size else len(order), MOST_CANDIDATES)]
    order = [
        i for i in order if values[i] >= values[order[0]] + np.log(max(sampling.min_p, 1e-300))
    ]
    seed = sampling.seed % 2**64
    u = np.array([1 - (philox((i, step), seed) + 0.5) / WORD for i in order])
    return order[int(np.argmax(values[order] / sampling.temperature - np.log(-np.log(u))))]


CASES = [
    Sampling(),
    Sampling(repeat_penalty=3.0),
    Sampling(presence_penalty=1.5, penalty_window=3),
    Sampling(frequency_penalty=1.5, penalty_window=-1),
    Sampling(logit_bias={7: 100.0}),
    Sampling(temperature=1.0, seed=1),
    Sampling(temperature=0.7, seed=-2, top_k=40),
    Sampling(temperature=1.0, seed=2**63 + 5, top_p=0.9),
    Sampling(temperature=1.5, seed=4, min_p=0.1),
    Sampling(temperature=0.8, seed=5, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.1),
    Sampling(temperature=1.0, seed=6, top_k=1),
    Sampling(temperature=1.0, seed=7, min_p=1.0),
    Sampling(temperature=1.0, seed=8, top_p=0.0),
    Sampling(temperature=1e-30, seed=9),
    Sampling(temperature=2.0, seed=10, logit_bias={3: -float("inf"), 4: 2.0}, repeat_penalty=0.5),
    Sampling(temperature=1.0, seed=11, frequency_penalty=0.5, penalty_window=0),
]  # fmt: skip


def test_tokens_are_those_of_the_reference(device):
    vocabulary = 3000
    rng = np.random.default_rng(3)
    texts = [[int(t) for t in rng.integers(0, vocabulary, n)] for n in range(len(CASES))]
    sampler = Sampler(len(CASES), vocabulary, device)
    for row, sampling in enumerate(CASES):
        sampler.begin(row, sampling, texts[row])
    stages = stages_of(CASES)
    step = td.compile(lambda logits: sample(logits, sampler, stages))
    for n in range(4):
        logits = (rng.standard_normal((len(CASES), vocabulary)) * 2).astype(np.float32)
        logits[:, 2::7] = -np.inf
        found = step(td.asarray(logits)).tolist()
        wanted = [reference(*each, n) for each in zip(logits, CASES, texts, strict=True)]
        assert found == wanted
        for text, token in zip(texts, found, strict=True):
            text.append(token)
    assert step.traces == 1


def test_rows_replay_for_other_parameters(device):
    """A step is traced once for all parameters that need the same stages, and for any rows."""
    rng = np.random.default_rng(4)
    sampler = Sampler(5, 200, device)
    rows = td.asarray(np.array([4, 1], np.int32))
    stages = Stages(candidates=64, all_tokens=True)
    step = td.compile(lambda logits: sample(logits, sampler, stages, rows))
    cases = [
        Sampling(),
        Sampling(temperature=1.0, seed=3),
        Sampling(temperature=3.0, seed=5, top_k=20, top_p=0.5),
    ]
    for first in cases:
        for second in cases:
            sampler.begin(4, first)
            sampler.begin(1, second)
            logits = rng.standard_normal((2, 200)).astype(np.float32)
            found = step(td.asarray(logits)).tolist()
            assert found == [
                reference(logits[0], first, [], 0),
                reference(logits[1], second, [], 0),
            ]
    assert step.traces == 1


def test_a_sequence_goes_on_in_another_row(device):
    """One that had to wait draws what it would have drawn, and counts what it had."""
    sampling = Sampling(temperature=1.5, seed=3, repeat_penalty=1.5, penalty_window=2)
    logits = np.random.default_rng(8).standard_normal((6, 1, 300)).astype(np.float32)
    stages = stages_of([sampling])
    rows = [td.asarray(np.array([row], np.int32)) for row in range(2)]
    sampler = Sampler(2, 300, device)
    sampler.begin(0, sampling, [1, 2, 3])
    whole = [int(sample(td.asarray(each), sampler, stages, rows[0])[0]) for each in logits]
    sampler.begin(1, sampling, [1, 2, 3, *whole[:4]], 4)
    found = [int(sample(td.asarray(each), sampler, stages, rows[1])[0]) for each in logits[4:]]
    assert found == whole[4:]


def test_a_token_does_not_depend_on_its_batch(device):
    """Candidates that other sequences ask for do not change what a sequence draws."""
    logits = np.random.default_rng(5).standard_normal((1, 4000)).astype(np.float32) * 3
    sampler = Sampler(1, 4000, device)
    for sampling in (Sampling(temperature=1.0, seed=1), Sampling(temperature=1.0, seed=2, top_k=5)):
        tokens = set()
        for all_tokens in (True, not sampling.top_k):
            for candidates in (64, 1024):
                sampler.begin(0, sampling)
                stages = Stages(candidates=candidates, all_tokens=all_tokens)
                tokens.add(int(sample(td.asarray(logits), sampler, stages)[0]))
        assert len(tokens) == 1


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [({}, 12), ({"top_k": 5}, 5), ({"top_p": 0.8}, 6), ({"min_p": 0.2}, 7),
     ({"temperature": 2.0}, 12)],
)  # fmt: skip
def test_frequencies_of_drawn_tokens(device, sampling, kept):
    """A chi-square test: a false alarm has a probability of 1e-4, and the seeds are fixed."""
    logits = np.log(np.array([40, 30, 24, 20, 16, 12, 10, 6, 5, 4, 3, 2], np.float64))
    rows, steps = 1000, 5
    given = Sampling(**{"temperature": 1.0, **sampling})
    sampler = Sampler(rows, len(logits), device)
    numbers = np.array([given.temperature, given.top_p, given.min_p, 1, 0, 0], np.float32)
    sampler.numbers[:] = np.tile(numbers, (rows, 1))
    integers = np.zeros((rows, 6), np.int32)
    integers[:, 0], integers[:, 2] = given.top_k, np.arange(rows)
    sampler.integers[:] = integers
    stages = stages_of([given])
    batch = td.asarray(np.tile(logits.astype(np.float32), (rows, 1)))
    drawn = np.concatenate([sample(batch, sampler, stages).numpy() for _ in range(steps)])
    p = np.exp(logits / given.temperature)
    p[kept:] = 0
    wanted = p / p.sum() * rows * steps
    counts = np.bincount(drawn, minlength=len(logits))
    assert counts[kept:].sum() == 0
    assert stats.chisquare(counts[:kept], wanted[:kept]).pvalue > 1e-4


def test_masks_and_single_tokens(device):
    vocabulary = 70
    logits = np.random.default_rng(6).standard_normal((3, vocabulary)).astype(np.float32)
    samplings = [Sampling(json_schema={}), Sampling(temperature=1.0, top_p=0.5, json_schema={}),
                 Sampling(temperature=5.0, json_schema={})]  # fmt: skip
    sampler = Sampler(3, vocabulary, device)
    for row, sampling in enumerate(samplings):
        sampler.begin(row, sampling)
    for allowed in ([69], [0], [31, 32, 64]):
        words = np.zeros(3, np.uint32)
        for token in allowed:
            words[token // 32] |= np.uint32(1 << token % 32)
        for row in range(3):
            sampler.allow(row, words)
        found = sample(td.asarray(logits), sampler, stages_of(samplings)).tolist()
        assert set(found) <= set(allowed)
        assert found[0] == max(allowed, key=lambda token: logits[0, token])
    sampler.begin(0, Sampling())  # a sequence without a grammar may choose any token
    found = sample(td.asarray(logits), sampler, stages_of(samplings)).tolist()
    assert found[0] == int(np.argmax(logits[0]))


def test_log_probabilities(device):
    logits = np.random.default_rng(7).standard_normal((2, 90)).astype(np.float32)
    found = log_probabilities(td.asarray(logits), td.asarray(np.array([5, 80], np.int32)), 3)
    wide = logits.astype(np.float64)
    wanted = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    np.testing.assert_allclose(found.chosen, [wanted[0, 5], wanted[1, 80]], atol=1e-5)
    order = np.argsort(-wanted, -1)[:, :3]
    np.testing.assert_array_equal(found.tokens, order)
    np.testing.assert_allclose(found.values, np.take_along_axis(wanted, order, -1), atol=1e-5)


def test_logits_of_another_vocabulary(device):
    with pytest.raises(td.errors.ShapeError, match=r"\(sequences, 9\)"):
        sample(td.zeros((1, 8)), Sampler(1, 9, device), Stages())
    with pytest.raises(ValueError, match="no token 9"):
        Sampler(1, 9, device).begin(0, Sampling(logit_bias={9: 1.0}))
