"""What the parameters of sampling may be."""

from __future__ import annotations

import re

import numpy as np
import pytest

from treadle.models.sampler import Stages, stages_of
from treadle.models.sampling import Sampling


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": -1}, "temperature is a number from 0 to 100 (0 takes"),
        ({"temperature": float("nan")}, "not nan"),
        ({"top_p": 95}, "top_p is a number from 0 to 1 (1 keeps all tokens), not 95"),
        ({"min_p": 1.5}, "min_p"),
        ({"repeat_penalty": 0}, "repeat_penalty is a number from 0.01"),
        ({"top_k": 2000}, "top_k is an integer from 0 to 1024 (0 keeps all tokens), not 2000"),
        ({"top_k": -1}, "top_k"),
        ({"penalty_window": 5000}, "-1 looks at the whole text"),
        ({"seed": 2**64}, "seed"),
        ({"logprobs": 21}, "logprobs is an integer from 0 to 20"),
        ({"logit_bias": {1: float("inf")}}, "inf for token 1"),
        ({"logit_bias": dict.fromkeys(range(2000), 0)}, "at most 1024"),
        ({"grammar": "start: A", "json_schema": {}}, "exclude each other"),
        ({"json_schema": "{"}, "json_schema is not JSON"),
        ({"json_schema": {"a": {1, 2}}}, "json_schema is not JSON"),
    ],
)
def test_values_out_of_range(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Sampling(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": "hot"}, "temperature is a number from 0 to 100"),
        ({"temperature": True}, "not True"),
        ({"top_k": 2.0}, "top_k is an integer"),
        ({"seed": "1"}, "seed is an integer"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"logit_bias": 5}, "logit_bias maps tokens"),
        ({"grammar": 5}, "grammar is a text"),
        ({"json_schema": 5}, "json_schema is a JSON object, not 5"),
    ],
)
def test_values_of_other_types(given, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        Sampling(**given)


def test_numbers_of_numpy_are_numbers():
    given = Sampling(temperature=np.float32(0.5), top_p=np.float64(1), top_k=np.int64(3))
    assert given == Sampling(temperature=0.5, top_p=1.0, top_k=3)
    assert type(given.temperature) is float


def test_it_has_a_hash_and_tells_what_it_needs():
    given = Sampling(logit_bias={2: 1, 1: -1}, json_schema={"type": "object"})
    assert given.logit_bias == ((1, -1.0), (2, 1.0))
    assert hash(given) == hash(
        Sampling(logit_bias=[(1, -1), (2, 1)], json_schema='{"type":"object"}')
    )
    assert given.is_greedy
    assert given.is_constrained
    assert not given.has_penalties
    assert not Sampling(presence_penalty=1.0, penalty_window=0).has_penalties


def test_stages_are_what_any_sequence_needs():
    assert stages_of([]) == stages_of([Sampling(top_k=5, top_p=0.1)]) == Stages()
    assert stages_of([Sampling(temperature=1.0)]) == Stages(all_tokens=True)
    drawn = [Sampling(temperature=1.0, top_k=65), Sampling(frequency_penalty=0.1)]
    assert stages_of(drawn) == Stages(penalties=True, candidates=1024)
    assert stages_of([Sampling(temperature=1.0, top_k=64, top_p=0.5)]) == Stages(candidates=64)
    assert stages_of([Sampling(temperature=1.0, top_p=0.5)]) == Stages(candidates=1024)
