"""`torch.mps`: not there; other GPUs are the devices "webgpu" and "dawn"."""


def is_available() -> bool:
    """Whether there is such a device: no."""
    return False


def device_count() -> int:
    """The number of such devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Accepted: there is no such device."""


def synchronize() -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing to give back."""
