"""What changes on the device between two tokens of the same sequences."""

from __future__ import annotations

from treadle import lang as td


@td.kernel(checked=False)
def advance(tokens, places, chosen, count: td.i32):  # type: ignore[no-untyped-def]
    """Go on to the tokens that were chosen: each sequence's position is one further. Positions
    below 0 are those of rows that only fill up a batch."""
    g = td.grid(1)
    if g < count and places[g] >= 0:
        tokens[g] = chosen[g]
        places[g] += 1
