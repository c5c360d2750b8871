"""Sums of exponentials in the pass that finds the greatest value: for rows that are read again.

A softmax wants sum(exp(x - max(x))), which needs the maximum first, and so a pass of its own. But a
sum so far can be moved to a greater maximum when one is met (Milakov and Gimelshein, "Online
normalizer calculation for softmax", 2018). So the sum becomes a reduction of x itself, "exp_sum",
whose state is the greatest value so far and the sum beside it.
"""

from __future__ import annotations

from functools import lru_cache

from treadle.graph.program import Program, Step


@lru_cache(maxsize=1024)
def online(program: Program) -> Program:
    """A program whose sums of exponentials below a maximum need not wait for it; itself if it has
    none."""
    steps = tuple(_exp_sum(program, step) or step for step in program.steps)
    return program if steps == program.steps else program._replace(steps=steps)


def _exp_sum(program: Program, step: Step) -> Step | None:
    """The reduction of x that a step sum(exp(x - max(x))) is."""
    if step.op != "reduce" or step.detail != "sum":
        return None
    powers = program.steps[step.sources[0]]
    below = program.steps[powers.sources[0]] if powers.op == "exp" else powers
    if below.op != "subtract":
        return None
    x, shift = below.sources
    greatest = program.steps[shift]
    if greatest.op != "reduce" or greatest.detail != "max" or greatest.sources != (x,):
        return None
    types = {step.type, powers.type, below.type, program.steps[x].type}
    if types not in ({"f32"}, {"f64"}):
        return None
    return step._replace(sources=(x,), detail="exp_sum")
