"""`torch.amp`: mixed precision."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.torch.amp.mixed_precision": (
        "autocast custom_bwd custom_fwd GradScaler is_autocast_available"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
