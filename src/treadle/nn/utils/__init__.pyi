# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""What is done with all parameters of a model: gradients clipped, values as one vector."""

from treadle.nn.utils.clipping import clip_grad_norm_ as clip_grad_norm_
from treadle.nn.utils.clipping import clip_grad_value_ as clip_grad_value_
from treadle.nn.utils.clipping import clip_grads_with_norm_ as clip_grads_with_norm_
from treadle.nn.utils.clipping import get_total_norm as get_total_norm
from treadle.nn.utils.vectors import parameters_to_vector as parameters_to_vector
from treadle.nn.utils.vectors import vector_to_parameters as vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]
