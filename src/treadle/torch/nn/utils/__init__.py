"""`torch.nn.utils`: gradients clipped, parameters as a vector, sequences, weights that are
computed."""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.nn.utils.clip_grad": (
        "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
    ),
    "treadle.torch.nn.utils.convert_parameters": "parameters_to_vector vector_to_parameters",
    "treadle.torch.nn.utils.fusion": (
        "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"
    ),
    "treadle.torch.nn.utils.hooked_norms": (
        "remove_spectral_norm remove_weight_norm spectral_norm weight_norm"
    ),
    "treadle.torch.nn.utils.init": "skip_init",
}
__all__, __getattr__, __dir__ = exports(
    __name__,
    NAMES,
    "clip_grad convert_parameters fusion init parametrizations parametrize rnn",
    within("nn.utils"),
)
