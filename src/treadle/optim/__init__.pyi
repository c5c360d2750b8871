# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Optimizers: what changes parameters so that a loss falls."""

from treadle.optim import lr_scheduler as lr_scheduler
from treadle.optim.adagrad import Adagrad as Adagrad
from treadle.optim.adam import Adam as Adam
from treadle.optim.adam import AdamW as AdamW
from treadle.optim.lion import Lion as Lion
from treadle.optim.optimizer import Optimizer as Optimizer
from treadle.optim.rmsprop import RMSprop as RMSprop
from treadle.optim.scaling import GradScaler as GradScaler
from treadle.optim.sgd import SGD as SGD

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "GradScaler",
    "Lion",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
]
