"""Rows: reductions that need one another, and values of every element that need reductions.

A softmax is three passes over a row: its greatest value; the sum of the exponentials, which wait in
the result's place on a CPU; and their quotients. The passes are those of `reductions`.
"""

from __future__ import annotations

from treadle.graph.emit.reductions import emit, plan

__all__ = ["emit", "plan"]
