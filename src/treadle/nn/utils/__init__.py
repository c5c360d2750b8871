"""What is done with all parameters of a model: gradients clipped, values as one vector."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.nn.utils.clipping": (
        "clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
    ),
    "treadle.nn.utils.vectors": "parameters_to_vector vector_to_parameters",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
