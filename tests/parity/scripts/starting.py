"""Parameters that begin with the same numbers under both libraries."""

import numpy as np


def begin(model, seed=0, scale=None):
    """Draw all parameters anew, from NumPy."""
    rng = np.random.default_rng(seed)
    for p in model.parameters():
        shape = tuple(p.shape)
        std = scale or (1 / np.sqrt(max(np.prod(shape[1:]), 1)) if len(shape) > 1 else 0.1)
        p.data.copy_(p.new_tensor(rng.normal(0.0, std, shape).astype("float32")))
    return model
