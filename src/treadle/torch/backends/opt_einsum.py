"""`torch.backends.opt_einsum`: the order of an einsum's products is treadle's."""

enabled = True
strategy = "auto"


def is_available() -> bool:
    """Whether orders are optimized: yes."""
    return True
