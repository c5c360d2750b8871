"""Schedules: how the learning rates of an optimizer change from epoch to epoch, or step to step.

Rates are on the device, too, and are written there when a schedule changes them: so call
`scheduler.step()` outside of a compiled function, whose replays then go on with the new rates.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.optim.lr_scheduler.base": "LRScheduler",
    "treadle.optim.lr_scheduler.combined": "ChainedScheduler SequentialLR",
    "treadle.optim.lr_scheduler.cosine": "CosineAnnealingLR CosineAnnealingWarmRestarts",
    "treadle.optim.lr_scheduler.cycles": "CyclicLR OneCycleLR",
    "treadle.optim.lr_scheduler.factors": (
        "ConstantLR ExponentialLR LambdaLR LinearLR MultiplicativeLR MultiStepLR PolynomialLR "
        "StepLR"
    ),
    "treadle.optim.lr_scheduler.plateau": "ReduceLROnPlateau",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
