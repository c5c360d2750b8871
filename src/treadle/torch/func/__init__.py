"""`torch.func`: transforms of functions of tensors."""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.func.modules": "functional_call stack_module_state",
    "treadle.torch.func.transforms": (
        "grad grad_and_value hessian jacfwd jacrev jvp linearize vjp vmap"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "", within("func"))
