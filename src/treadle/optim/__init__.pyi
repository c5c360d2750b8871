# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Optimizers: what changes parameters so that a loss falls."""

from treadle.optim import lr_scheduler as lr_scheduler
from treadle.optim.adadelta import Adadelta as Adadelta
from treadle.optim.adafactor import Adafactor as Adafactor
from treadle.optim.adagrad import Adagrad as Adagrad
from treadle.optim.adam import Adam as Adam
from treadle.optim.adam import AdamW as AdamW
from treadle.optim.adamax import Adamax as Adamax
from treadle.optim.asgd import ASGD as ASGD
from treadle.optim.lbfgs import LBFGS as LBFGS
from treadle.optim.lion import Lion as Lion
from treadle.optim.muon import Muon as Muon
from treadle.optim.nadam import NAdam as NAdam
from treadle.optim.optimizer import Optimizer as Optimizer
from treadle.optim.radam import RAdam as RAdam
from treadle.optim.rmsprop import RMSprop as RMSprop
from treadle.optim.rprop import Rprop as Rprop
from treadle.optim.scaling import GradScaler as GradScaler
from treadle.optim.sgd import SGD as SGD

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "GradScaler",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
]
