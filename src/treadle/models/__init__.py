"""Whole models, read from the files in which they are published.

>>> import treadle as td
>>> td.models.Sampling(temperature=0.8, seed=1).is_greedy
False
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.models.encoder": "Encoder load_encoder",
    "treadle.models.engine": "Engine",
    "treadle.models.generation": "Generation",
    "treadle.models.loading": "load",
    "treadle.models.model": "Model",
    "treadle.models.sampling": "Sampling",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "text")
