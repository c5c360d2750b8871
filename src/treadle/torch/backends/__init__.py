"""`torch.backends`: the switches of PyTorch's libraries, of which treadle has none. Those that
change how treadle computes do so; all others are kept, and change nothing."""

from treadle.core.deferred_imports import exports

NAMES: dict[str, str] = {}
__all__, __getattr__, __dir__ = exports(
    __name__, NAMES, "cpu cuda cudnn mha mkl mkldnn mps openmp opt_einsum"
)
