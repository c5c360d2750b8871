# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.signal`: windows."""

from treadle.torch.signal import windows as windows

__all__ = [
    "windows",
]
