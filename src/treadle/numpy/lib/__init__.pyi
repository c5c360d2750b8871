# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`numpy.lib`: `stride_tricks`, views of arrays by distances in memory."""

from treadle.numpy.lib import stride_tricks as stride_tricks

__all__ = [
    "stride_tricks",
]
