# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Schedules: how the learning rates of an optimizer change from epoch to epoch, or step to step.

Rates are on the device, too, and are written there when a schedule changes them: so call
`scheduler.step()` outside of a compiled function, whose replays then go on with the new rates.
"""

from treadle.optim.lr_scheduler.base import LRScheduler as LRScheduler
from treadle.optim.lr_scheduler.combined import ChainedScheduler as ChainedScheduler
from treadle.optim.lr_scheduler.combined import SequentialLR as SequentialLR
from treadle.optim.lr_scheduler.cosine import CosineAnnealingLR as CosineAnnealingLR
from treadle.optim.lr_scheduler.cosine import (
    CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts,
)
from treadle.optim.lr_scheduler.cycles import CyclicLR as CyclicLR
from treadle.optim.lr_scheduler.cycles import OneCycleLR as OneCycleLR
from treadle.optim.lr_scheduler.factors import ConstantLR as ConstantLR
from treadle.optim.lr_scheduler.factors import ExponentialLR as ExponentialLR
from treadle.optim.lr_scheduler.factors import LambdaLR as LambdaLR
from treadle.optim.lr_scheduler.factors import LinearLR as LinearLR
from treadle.optim.lr_scheduler.factors import MultiplicativeLR as MultiplicativeLR
from treadle.optim.lr_scheduler.factors import MultiStepLR as MultiStepLR
from treadle.optim.lr_scheduler.factors import PolynomialLR as PolynomialLR
from treadle.optim.lr_scheduler.factors import StepLR as StepLR
from treadle.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
