"""PyTorch's protocol for objects that are not its tensors, `__torch_function__`.

PyTorch asks it before anything else. Its own errors would say that an argument "must be Tensor, not
Tensor". Conversions, as `torch.from_dlpack(x)` and `torch.asarray(x)`, do not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn


class TorchProtocol:
    """The method that PyTorch's functions and operators call with a tensor of treadle."""

    __slots__ = ()

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Iterable[type],
        arguments: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
    ) -> NoReturn:
        """TypeError, which says what to convert."""
        name = getattr(function, "__name__", str(function))
        raise TypeError(
            f"PyTorch's {name} takes no tensors of treadle: torch.from_dlpack(x) makes one of "
            "PyTorch's, td.from_dlpack(y) one of treadle's; each shares the memory on cpu and cuda"
        )
