# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.func`: transforms of functions of tensors."""

from treadle.torch.func.modules import functional_call as functional_call
from treadle.torch.func.modules import stack_module_state as stack_module_state
from treadle.torch.func.transforms import grad as grad
from treadle.torch.func.transforms import grad_and_value as grad_and_value
from treadle.torch.func.transforms import hessian as hessian
from treadle.torch.func.transforms import jacfwd as jacfwd
from treadle.torch.func.transforms import jacrev as jacrev
from treadle.torch.func.transforms import jvp as jvp
from treadle.torch.func.transforms import linearize as linearize
from treadle.torch.func.transforms import vjp as vjp
from treadle.torch.func.transforms import vmap as vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
