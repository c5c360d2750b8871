"""`torch.backends.mkldnn`: not there; treadle's kernels are its own."""

enabled = False


def is_available() -> bool:
    """Whether it is there: no."""
    return False


def is_built() -> bool:
    """Whether it is there: no."""
    return False
