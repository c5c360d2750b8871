"""Schedules: how the learning rates of an optimizer change from epoch to epoch, or step to step.

Rates are on the device, too, and are written there when a schedule changes them: so call
`scheduler.step()` outside of a compiled function, whose replays then go on with the new rates.
"""

from treadle.optim.lr_scheduler.base import LRScheduler
from treadle.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from treadle.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from treadle.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from treadle.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from treadle.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
