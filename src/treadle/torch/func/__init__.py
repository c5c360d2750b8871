"""`torch.func`: transforms of functions of tensors."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.torch.func.modules": "functional_call stack_module_state",
    "treadle.torch.func.transforms": (
        "grad grad_and_value hessian jacfwd jacrev jvp linearize vjp vmap"
    ),
}
_ELSEWHERE = {
    "functionalize": "functions need no such form here: torch.compile takes them as they are"
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "", _ELSEWHERE)
