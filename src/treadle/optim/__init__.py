"""Optimizers: what changes parameters so that a loss falls."""

from treadle.optim.adam import Adam, AdamW
from treadle.optim.optimizer import Optimizer
from treadle.optim.scaling import GradScaler
from treadle.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "GradScaler", "Optimizer"]
