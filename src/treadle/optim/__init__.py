"""Optimizers: what changes parameters so that a loss falls."""

from treadle.optim import lr_scheduler
from treadle.optim.adagrad import Adagrad
from treadle.optim.adam import Adam, AdamW
from treadle.optim.lion import Lion
from treadle.optim.optimizer import Optimizer
from treadle.optim.rmsprop import RMSprop
from treadle.optim.scaling import GradScaler
from treadle.optim.sgd import SGD

__all__ = [
    "SGD", "Adagrad", "Adam", "AdamW", "GradScaler", "Lion", "Optimizer", "RMSprop", "lr_scheduler",
]  # fmt: skip
