"""`torch.backends.cudnn`: there is no cuDNN. Kernels are treadle's, and give the same results at
each run; its autotuner is `TREADLE_TUNE`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether there is cuDNN: no."""
    return False


def version() -> None:
    """The version of cuDNN: None."""
    return None  # noqa: RET501  a value, as PyTorch's


@contextmanager
def flags(**changed: object) -> Iterator[None]:
    """A block with other switches."""
    before = {name: globals()[name] for name in changed if name in globals()}
    globals().update(changed)
    try:
        yield
    finally:
        globals().update(before)
