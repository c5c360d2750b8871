"""Where calls run: the choice between two devices, by times that a test states."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from treadle.runtime.costs import Estimate
from treadle.tensor.compiled.choice import CLEAR, Choice, Mean


def run(choice: Choice, calls: int, home: float, away: float, estimated: float | None = None):
    """Which of some calls ran away, where each side takes so long."""
    found = []
    for _ in range(calls):
        if choice.needs_estimate and estimated is not None:
            choice.estimated = Estimate((("call", estimated),))
        is_away = choice.next_settled()
        if is_away is None:
            is_away = choice.next_considered()
        choice.took(is_away, away if is_away else home)
        found.append(is_away)
    return found


def test_calls_begin_at_home_and_stay_without_an_estimate():
    choice = Choice()
    assert run(choice, 20, 1.0, 0.1) == [False] * 20
    assert not choice.is_settled


def test_a_clear_estimate_decides_without_a_trial():
    choice = Choice()
    assert run(choice, 3000, 1e-3, 1e-4, estimated=CLEAR * 1.01e-3) == [False] * 3000
    assert choice.is_settled
    assert choice.away.count == 0


def test_a_doubted_estimate_is_tried():
    choice = Choice()
    run(choice, 2, 1.0, 0.5)
    choice.estimated = Estimate((("upload", CLEAR * 1.9),), doubt=2.0)
    assert run(choice, 10, 1.0, 0.5) == [True] * 10
    assert choice.is_best_away


def test_a_close_estimate_is_tried_and_the_quicker_side_taken():
    for away, best in ((0.5, True), (1.6, False)):
        choice = Choice()
        found = run(choice, 50, 1.0, away, estimated=CLEAR * 0.99)
        assert found[:4] == [False, False, True, True]
        assert found[4:] == [best] * 46
        assert choice.is_settled
        assert choice.is_best_away is best


@pytest.mark.parametrize("ratio", [1.05, 1.5, 3.0, 40.0])
def test_trials_continue_less_and_less_often(ratio):
    choice = Choice()
    found = run(choice, 50_000, 1.0, ratio, estimated=1.0)
    trials = [at for at, away in enumerate(found) if away]
    assert len(trials) == 2 + choice.retrials
    assert choice.retrials >= 4
    gaps = [two - one for one, two in pairwise(trials[1:])]
    assert all(two >= one - 1 for one, two in pairwise(gaps))
    assert gaps[0] >= max(64, 50 * ratio)
    lost = sum(ratio - 1 for at in trials[2:])
    assert lost <= 0.02 * len(found)


def test_a_disturbed_comparison_is_corrected():
    choice = Choice()
    assert run(choice, 20, 30.0, 8.0, estimated=8.0)[-1] is True  # home was busy
    assert run(choice, 1000, 1.0, 8.0)[-1] is False
    choice = Choice()
    assert run(choice, 20, 1.0, 30.0, estimated=4.0)[-1] is False
    assert run(choice, 5000, 1.0, 0.5)[-1] is True


def test_a_wrong_estimate_is_corrected_where_it_matters():
    choice = Choice()
    found = run(choice, 60_000, 1e-2, 1e-3, estimated=1.0)
    assert found[-1] is True
    assert found.index(True) * 1e-2 >= 50 * 4  # as much time as 50 such trials take
    assert not any(run(Choice(), 5000, 1e-5, 1e-6, estimated=1e-4))


def test_a_side_that_becomes_slower_is_left():
    choice = Choice()
    assert run(choice, 20, 1.0, 0.8, estimated=0.8)[-1] is True
    found = run(choice, 50, 1.0, 3.0)
    assert found[0] is True
    assert sum(found[10:]) == choice.retrials


def test_the_slower_side_is_found_again_when_it_becomes_quicker():
    choice = Choice()
    assert run(choice, 20, 1.0, 1.2, estimated=1.0)[-1] is False
    assert run(choice, 200, 1.0, 0.4)[-1] is True


def test_one_call_that_is_interrupted_changes_nothing():
    choice = Choice()
    run(choice, 20, 1.0, 0.5, estimated=0.5)
    choice.took(True, 1000.0)
    assert choice.is_best_away
    assert run(choice, 5, 1.0, 0.5) == [True] * 5


def test_a_pinned_choice_stays():
    choice = Choice()
    run(choice, 20, 1.0, 0.5, estimated=0.5)
    choice.pin("it writes")
    choice.pin("something else")
    assert choice.pinned == "it writes"
    assert run(choice, 3000, 1.0, 0.1, estimated=0.1) == [False] * 3000


def test_samples_of_calls_that_are_not_all_measured():
    choice = Choice()
    run(choice, 10, 1.0, 5.0, estimated=100.0)
    samples = []
    for _ in range(256):
        if choice.next_settled() is None:
            choice.next_considered()
        samples.append(choice.is_sample)
    assert 2 <= sum(samples) <= 8


def test_a_mean_takes_the_least_of_the_first_calls():
    mean = Mean()
    assert not mean.is_known
    for seconds in (5.0, 1.0, 3.0):
        mean.add(seconds)
    assert mean.seconds == 1.0
    mean.add(1.5)
    assert mean.seconds == 1.125
    mean.add(math.inf)
    assert mean.seconds == pytest.approx(1.125 * 1.25)
