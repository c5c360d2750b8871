"""What changes on the device between two tokens of the same sequences."""

from __future__ import annotations

from treadle import lang as td


@td.kernel(checked=False)
def count_tokens(integers, rows, drawn: td.i32, length: td.i32, count: td.i32):  # type: ignore[no-untyped-def]
    """One more token of sequences: in their rows of `integers`, these two columns count them."""
    g = td.grid(1)
    if g < count:
        integers[rows[g], drawn] += 1
        integers[rows[g], length] += 1


@td.kernel(checked=False)
def advance(tokens, places, chosen, integers, drawn: td.i32, length: td.i32, count: td.i32):  # type: ignore[no-untyped-def]
    """Go on to the tokens that were chosen: each sequence's position is one further, and its tokens
    are counted. Positions below 0 are those of rows that only fill up a batch."""
    g = td.grid(1)
    if g < count and places[g] >= 0:
        tokens[g] = chosen[g]
        places[g] += 1
        row = places[count + g]
        integers[row, drawn] += 1
        integers[row, length] += 1
