"""PyTorch's optimizers: those of `td.optim` over PyTorch's tensors."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from treadle import optim
from treadle.torch.optim.optimizer import Optimizer, Shown

_NAMES = (
    "Adadelta Adafactor Adagrad Adam Adamax AdamW ASGD LBFGS Lion Muon NAdam RAdam RMSprop Rprop "
    "SGD"
)


def _shown(name: str) -> type[Shown]:
    kind: Any = getattr(optim, name)
    signature = inspect.signature(kind.__init__)
    text = str(kind.__doc__).partition("    >>> ")[0].rstrip()
    return type(
        name,
        (Shown,),
        {
            "_kind": kind, "__doc__": text, "__module__": "treadle.torch.optim",
            "__signature__": signature.replace(parameters=[*signature.parameters.values()][1:]),
        },
    )  # fmt: skip


for _name in _NAMES.split():
    globals()[_name] = _shown(_name)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


class SparseAdam(Optimizer):
    """Not here: there are no sparse gradients. Use Adam."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "SparseAdam steps by sparse gradients, which treadle does not have: use Adam, whose "
            "step over a dense gradient is one kernel"
        )
