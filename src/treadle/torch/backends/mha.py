"""`torch.backends.mha`: attention has one way."""


def get_fastpath_enabled() -> bool:
    """Whether layers of attention have a shorter way for inference: they need none."""
    return True


def set_fastpath_enabled(value: bool) -> None:
    """Accepted."""
