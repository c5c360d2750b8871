# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Whole models, read from the files in which they are published.

>>> import treadle as td
>>> td.models.Sampling(temperature=0.8, seed=1).is_greedy
False
"""

from treadle.models import text as text
from treadle.models.encoder import Encoder as Encoder
from treadle.models.encoder import load_encoder as load_encoder
from treadle.models.engine import Engine as Engine
from treadle.models.generation import Generation as Generation
from treadle.models.loading import load as load
from treadle.models.model import Model as Model
from treadle.models.sampling import Sampling as Sampling

__all__ = [
    "Encoder",
    "Engine",
    "Generation",
    "Model",
    "Sampling",
    "load",
    "load_encoder",
    "text",
]
