"""`torch.optim.lr_scheduler`: treadle's schedules, which are PyTorch's."""

from treadle.core.deferred_imports import exports

_SCHEDULES = "treadle.optim.lr_scheduler"
NAMES = {
    f"{_SCHEDULES}.base": "LRScheduler",
    f"{_SCHEDULES}.combined": "ChainedScheduler SequentialLR",
    f"{_SCHEDULES}.cosine": "CosineAnnealingLR CosineAnnealingWarmRestarts",
    f"{_SCHEDULES}.cycles": "CyclicLR OneCycleLR",
    f"{_SCHEDULES}.factors": (
        "ConstantLR ExponentialLR LambdaLR LinearLR MultiplicativeLR MultiStepLR PolynomialLR "
        "StepLR"
    ),
    f"{_SCHEDULES}.plateau": "ReduceLROnPlateau",
}
__all__, _find, __dir__ = exports(__name__, NAMES)


def __getattr__(name: str) -> object:
    return _find("LRScheduler" if name == "_LRScheduler" else name)
