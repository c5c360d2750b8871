# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.testing`: comparisons for tests."""

from treadle.torch.testing.comparing import assert_close as assert_close
from treadle.torch.testing.comparing import make_tensor as make_tensor

__all__ = [
    "assert_close",
    "make_tensor",
]
