"""PyTorch's interface over treadle's tensors: `import treadle.torch as torch`.

Names, arguments, defaults, promotion and results are PyTorch's; what computes is treadle, on every
device that it has. `x.td` is the tensor of treadle that `x` shows. What PyTorch has and this has
not raises an AttributeError that names the nearest thing; `torch.missing()` lists it.
"""

from typing import Any as _Any

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within
from treadle.torch.table import IN_PLACE, entries
from treadle.torch.version import __version__ as __version__

NAMES = {
    "treadle.torch.attributes": "is_tensor typename",
    "treadle.torch.devices": "device get_default_device set_default_device",
    "treadle.torch.dtypes": (
        "can_cast finfo get_default_dtype iinfo promote_types set_default_dtype"
    ),
    "treadle.torch.functions": (
        "cdouble cfloat double float half int long short "
        + " ".join([*(each.name for each in entries() if "f" in each.flags), *IN_PLACE])
    ),
    "treadle.torch.layouts": (
        "Size channels_last channels_last_3d contiguous_format layout memory_format "
        "preserve_format sparse_coo sparse_csc sparse_csr strided"
    ),
    "treadle.torch.legacy": (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor "
        "IntTensor LongTensor ShortTensor dtype"
    ),
    "treadle.torch.lacking": "missing",
    "treadle.torch.printing": "set_printoptions",
    "treadle.torch.random": (
        "Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state"
    ),
    "treadle.torch.tensors": "Tensor wrap",
    "treadle.torch.errors": "OutOfMemoryError",
    # Dtypes are treadle's, under PyTorch's names.
    "treadle": (
        "bfloat16 bool complex64 complex128 float16 float32 float64 int8 int16 int32 int64 uint8 "
        "uint16 uint32 uint64 inf nan newaxis pi e no_grad enable_grad"
    ),
    "treadle.autograd.modes": "is_grad_enabled set_grad_enabled",
    "treadle.torch.autograd.gradients": "inference_mode is_inference_mode_enabled",
    "treadle.torch.func.transforms": "vmap",
    "treadle.torch.amp.mixed_precision": (
        "GradScaler autocast get_autocast_dtype is_autocast_enabled"
    ),
    "treadle.torch.compilation": "compile",
    "treadle.torch.cuda.streams": "Event Stream",
    "treadle.torch.serialization": "load save",
    "treadle.torch.sparse.creation": (
        "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor"
    ),
    "treadle.torch.sparse.products": "dsmm smm spmm",
    "treadle.torch.settings": (
        "are_deterministic_algorithms_enabled compiled_with_cxx11_abi "
        "get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads "
        "get_num_threads is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled "
        "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal "
        "set_num_interop_threads set_num_threads set_warn_always use_deterministic_algorithms"
    ),
}
_MODULES = "accelerator distributed distributions fft linalg nn onnx optim random return_types "
_OTHERS = (
    "amp autograd backends compiler cuda func mps multiprocessing serialization signal sparse "
    "special testing utils version xpu"
)
__all__, _imported, __dir__ = exports(__name__, NAMES, _MODULES + _OTHERS, within(""))


def __getattr__(name: str) -> _Any:
    """A name, imported when it is first used."""
    if name.startswith("_foreach_"):
        from treadle.torch.foreach import foreach

        found = globals()[name] = foreach(name) or _imported(name)
        return found
    return _imported(name)
