"""In which order a stage of a pipeline does its work."""

from __future__ import annotations

from typing import NamedTuple

FORWARD, BACKWARD = "forward", "backward"


class Task(NamedTuple):
    """A pass through a stage of one microbatch."""

    kind: str
    microbatch: int


def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> list[Task]:
    """The order of a stage ("1F1B"): forward passes until the first gradient can arrive, then one
    backward pass and one forward pass in turn, and the backward passes that are left. So of at most
    `stages - stage` microbatches a stage keeps what the backward pass needs.

    >>> [f"{kind[0]}{microbatch}" for kind, microbatch in one_forward_one_backward(0, 2, 3)]
    ['f0', 'f1', 'b0', 'f2', 'b1', 'b2']
    """
    ahead = min(stages - stage - 1, microbatches)
    found = [Task(FORWARD, k) for k in range(ahead)]
    for k in range(microbatches - ahead):
        found += [Task(FORWARD, ahead + k), Task(BACKWARD, k)]
    return found + [Task(BACKWARD, k) for k in range(microbatches - ahead, microbatches)]


class Step(NamedTuple):
    """A thing that a stage does for one microbatch."""

    what: str
    microbatch: int


RECEIVE, SEND = "receive", "send"
RECEIVE_GRADIENT, SEND_GRADIENT = "receive gradient", "send gradient"


def steps_of(stage: int, stages: int, microbatches: int) -> list[Step]:
    """All that a stage does, messages too, in an order in which each send may wait for its receive:
    two neighbours that exchange an input and a gradient do so in this order on both sides."""
    tasks = one_forward_one_backward(stage, stages, microbatches)
    is_first, is_last = stage == 0, stage == stages - 1
    found: list[Step] = []
    received = -1
    for number, (kind, k) in enumerate(tasks):
        if kind == FORWARD:
            if not is_first and received < k:
                found.append(Step(RECEIVE, k))
            found.append(Step(FORWARD, k))
            if not is_last:
                found.append(Step(SEND, k))
            continue
        if not is_last:
            found.append(Step(RECEIVE_GRADIENT, k))
        found.append(Step(BACKWARD, k))
        if is_first:
            continue
        following = tasks[number + 1] if number + 1 < len(tasks) else None
        if following is not None and following.kind == FORWARD:
            received = following.microbatch
            found.append(Step(RECEIVE, received))
        found.append(Step(SEND_GRADIENT, k))
    return found
