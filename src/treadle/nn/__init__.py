"""Neural networks: `functional` has what layers compute."""

from treadle.nn import functional

__all__ = ["functional"]
