# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.nn.utils`: gradients clipped, parameters as a vector, sequences, weights that are
computed.
"""

from treadle.torch.nn.utils import clip_grad as clip_grad
from treadle.torch.nn.utils import convert_parameters as convert_parameters
from treadle.torch.nn.utils import fusion as fusion
from treadle.torch.nn.utils import init as init
from treadle.torch.nn.utils import parametrizations as parametrizations
from treadle.torch.nn.utils import parametrize as parametrize
from treadle.torch.nn.utils import rnn as rnn
from treadle.torch.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from treadle.torch.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from treadle.torch.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from treadle.torch.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from treadle.torch.nn.utils.clip_grad import get_total_norm as get_total_norm
from treadle.torch.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from treadle.torch.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
from treadle.torch.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from treadle.torch.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from treadle.torch.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from treadle.torch.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from treadle.torch.nn.utils.hooked_norms import remove_spectral_norm as remove_spectral_norm
from treadle.torch.nn.utils.hooked_norms import remove_weight_norm as remove_weight_norm
from treadle.torch.nn.utils.hooked_norms import spectral_norm as spectral_norm
from treadle.torch.nn.utils.hooked_norms import weight_norm as weight_norm
from treadle.torch.nn.utils.init import skip_init as skip_init

__all__ = [
    "clip_grad",
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_parameters",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "fusion",
    "get_total_norm",
    "init",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
