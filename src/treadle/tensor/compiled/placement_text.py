"""The places of a function's calls, and the reasons, as text (`td.explain`)."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.graph.explain import Explanation
from treadle.tensor.compiled.choice import CLEAR, Choice, Mean
from treadle.tensor.compiled.kinds_of_calls import Kind


def explained(name: str, kinds: Sequence[Kind]) -> Explanation:
    """Where the calls of each kind run, and why."""
    if not kinds:
        return Explanation(f'{name}, device="auto": not called yet')
    lines = [f'{name}, device="auto": {len(kinds)} kind{"" if len(kinds) == 1 else "s"} of calls']
    for at, kind in enumerate(kinds, 1):
        lines += described(kind, f"{at}. ")
    return Explanation("\n".join(lines))


def described(kind: Kind, mark: str = "") -> list[str]:
    """A kind of calls in a few lines."""
    choice, home, other = kind.choice, kind.home.id, kind.other
    if choice.pinned or other is None:
        return [f"{mark}{kind.text}: on {home}, since {choice.pinned}"]
    where = other.id if choice.is_best_away else home
    lines = [f"{mark}{kind.text}: on {where}, {_reason(choice, home, other.id)}"]
    means = [
        _mean(name, mean)
        for name, mean in ((home, choice.home), (other.id, choice.away))
        if mean.count
    ]
    if means:
        again = f"; {choice.retrials} trials since" if choice.retrials else ""
        lines.append(f"     measured: {', '.join(means)}{again}")
    if choice.estimated is not None:
        parts = [
            f"{what} {shown(seconds)}" for what, seconds in choice.estimated.parts if seconds > 0
        ]
        total = shown(choice.estimated.seconds)
        lines.append(f"     estimated on {other.id}: {total} = {' + '.join(parts)}")
    return lines


def _reason(choice: Choice, home: str, other: str) -> str:
    if not choice.home.is_known:
        return "where its calls begin"
    if choice.away.is_known:
        low, high = sorted((choice.home.seconds, choice.away.seconds))
        slower = home if choice.is_best_away else other
        kept = ", as earlier processes measured, too" if choice.is_recalled else ""
        return f"which is {high / max(low, 1e-12):.2g} times as fast as {slower}{kept}"
    if choice.estimated is None:
        return "since its work is not known yet"
    if choice.is_trial:
        return f"and {other} is tried next"
    clear = CLEAR * choice.estimated.doubt
    return f"since {other} is estimated to take {clear:.2g} times as long or longer"


def _mean(name: str, mean: Mean) -> str:
    return f"{name} {shown(mean.seconds)} ({mean.count} call{'' if mean.count == 1 else 's'})"


def shown(seconds: float) -> str:
    """A time with three digits.

    >>> shown(1.234e-5), shown(0.5)
    ('12.3 µs', '500 ms')
    """
    for bound, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if seconds < bound:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
