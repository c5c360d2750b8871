"""Optimizers: what changes parameters so that a loss falls."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.optim.adadelta": "Adadelta",
    "treadle.optim.adafactor": "Adafactor",
    "treadle.optim.adagrad": "Adagrad",
    "treadle.optim.adam": "Adam AdamW",
    "treadle.optim.adamax": "Adamax",
    "treadle.optim.asgd": "ASGD",
    "treadle.optim.lbfgs": "LBFGS",
    "treadle.optim.lion": "Lion",
    "treadle.optim.muon": "Muon",
    "treadle.optim.nadam": "NAdam",
    "treadle.optim.optimizer": "Optimizer",
    "treadle.optim.radam": "RAdam",
    "treadle.optim.rmsprop": "RMSprop",
    "treadle.optim.rprop": "Rprop",
    "treadle.optim.scaling": "GradScaler",
    "treadle.optim.sgd": "SGD",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "lr_scheduler")
