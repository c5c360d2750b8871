"""The order of a pipeline's work, with all stages simulated."""

from __future__ import annotations

import itertools

import pytest

from treadle.distributed.layers.schedules import BACKWARD, FORWARD, SEND, SEND_GRADIENT, steps_of

SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 7), (3, 2), (3, 3), (4, 3), (4, 4), (4, 9), (5, 8)]
PARTNERS = {SEND: ("receive", 1), SEND_GRADIENT: ("receive gradient", -1)}


def simulated(stages, microbatches):
    """When each stage's passes are, each of one unit of time, if every message waits until its
    receiver is there."""
    plans = [steps_of(stage, stages, microbatches) for stage in range(stages)]
    at = [0] * stages
    clock = [0] * stages
    found = [[] for _ in range(stages)]
    while any(at[stage] < len(plans[stage]) for stage in range(stages)):
        moved = False
        for stage, plan in enumerate(plans):
            if at[stage] == len(plan):
                continue
            what, k = plan[at[stage]]
            if what in (FORWARD, BACKWARD):
                found[stage].append((what, k, clock[stage]))
                clock[stage] += 1
                at[stage] += 1
                moved = True
            elif what in PARTNERS:
                wanted, way = PARTNERS[what]
                other = stage + way
                step = plans[other][at[other]] if at[other] < len(plans[other]) else None
                if step == (wanted, k):
                    clock[other] = max(clock[other], clock[stage])
                    at[stage] += 1
                    at[other] += 1
                    moved = True
        assert moved, f"no stage can go on: {at} of {plans}"
    return found, max(clock)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_no_stage_waits_for_ever_and_none_keeps_more_than_it_has_to(stages, microbatches):
    found, _ = simulated(stages, microbatches)
    for stage, passes in enumerate(found):
        for kind in (FORWARD, BACKWARD):
            assert [k for what, k, _ in passes if what == kind] == [*range(microbatches)]
        alive = itertools.accumulate(1 if what == FORWARD else -1 for what, _, _ in passes)
        assert max(alive) <= min(stages - stage, microbatches)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_the_bubble_is_one_pass_through_all_stages(stages, microbatches):
    """Messages that need no receiver to be there, as over MPI: 2 (m + p - 1) units of time."""
    plans = [steps_of(stage, stages, microbatches) for stage in range(stages)]
    ends: dict[tuple[str, int, int], int] = {}
    clock, at = [0] * stages, [0] * stages
    while any(at[stage] < len(plans[stage]) for stage in range(stages)):
        for stage, plan in enumerate(plans):
            while at[stage] < len(plan):
                what, k = plan[at[stage]]
                if what in (FORWARD, BACKWARD):
                    other = stage - 1 if what == FORWARD else stage + 1
                    before = 0 if not 0 <= other < stages else ends.get((what, other, k))
                    if before is None:
                        break
                    clock[stage] = max(clock[stage], before) + 1
                    ends[what, stage, k] = clock[stage]
                at[stage] += 1
    assert max(clock) == 2 * (microbatches + stages - 1)
