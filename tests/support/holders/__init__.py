"""Ways to hold a value around a function: each makes a reader, and what changes the value."""

from tests.support.holders import containers, objects, others, variables
from tests.support.holders.base import HOLDERS

__all__ = ["HOLDERS", "containers", "objects", "others", "variables"]
