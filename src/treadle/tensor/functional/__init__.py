"""What neural networks compute, as `td.nn.functional` has it: PyTorch's names and defaults.

Functions made of array functions are lazy and share kernels with what is around them; what needs
kernels of its own calls the kernel library. float16 and bfloat16 are computed in float32 and
rounded once.
"""

from treadle.tensor.functional import (
    activations,
    affine,
    attention,
    convolution,
    distances,
    dropouts,
    element_losses,
    embeddings,
    folding,
    interpolation,
    losses,
    margin_losses,
    normalization,
    padding,
    pooling,
    sampling,
    sequence_losses,
    unpooling,
)
from treadle.tensor.functional.activations import *  # noqa: F403  what its __all__ names
from treadle.tensor.functional.affine import *  # noqa: F403
from treadle.tensor.functional.attention import *  # noqa: F403
from treadle.tensor.functional.convolution import *  # noqa: F403
from treadle.tensor.functional.distances import *  # noqa: F403
from treadle.tensor.functional.dropouts import *  # noqa: F403
from treadle.tensor.functional.element_losses import *  # noqa: F403
from treadle.tensor.functional.embeddings import *  # noqa: F403
from treadle.tensor.functional.folding import *  # noqa: F403
from treadle.tensor.functional.interpolation import *  # noqa: F403
from treadle.tensor.functional.losses import *  # noqa: F403
from treadle.tensor.functional.margin_losses import *  # noqa: F403
from treadle.tensor.functional.normalization import *  # noqa: F403
from treadle.tensor.functional.padding import *  # noqa: F403
from treadle.tensor.functional.pooling import *  # noqa: F403
from treadle.tensor.functional.sampling import *  # noqa: F403
from treadle.tensor.functional.sequence_losses import *  # noqa: F403
from treadle.tensor.functional.unpooling import *  # noqa: F403

# What is a method of tensors, too: `x.softmax(axis=0)`.
METHODS = {
    name: globals()[name]
    for name in (
        "elu", "gelu", "leaky_relu", "log_softmax", "relu", "silu", "softmax", "softplus",
    )
}  # fmt: skip

__all__ = [
    *activations.__all__,
    *affine.__all__,
    *attention.__all__,
    *convolution.__all__,
    *distances.__all__,
    *dropouts.__all__,
    *element_losses.__all__,
    *embeddings.__all__,
    *folding.__all__,
    *interpolation.__all__,
    *losses.__all__,
    *margin_losses.__all__,
    *normalization.__all__,
    *padding.__all__,
    *pooling.__all__,
    *sampling.__all__,
    *sequence_losses.__all__,
    *unpooling.__all__,
]
