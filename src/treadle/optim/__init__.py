"""Optimizers: what changes parameters so that a loss falls."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.optim.adagrad": "Adagrad",
    "treadle.optim.adam": "Adam AdamW",
    "treadle.optim.lion": "Lion",
    "treadle.optim.optimizer": "Optimizer",
    "treadle.optim.rmsprop": "RMSprop",
    "treadle.optim.scaling": "GradScaler",
    "treadle.optim.sgd": "SGD",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "lr_scheduler")
