# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.amp`: mixed precision."""

from treadle.torch.amp.mixed_precision import GradScaler as GradScaler
from treadle.torch.amp.mixed_precision import autocast as autocast
from treadle.torch.amp.mixed_precision import custom_bwd as custom_bwd
from treadle.torch.amp.mixed_precision import custom_fwd as custom_fwd
from treadle.torch.amp.mixed_precision import is_autocast_available as is_autocast_available

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]
