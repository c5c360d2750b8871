"""Functions of `torch` that take sparse tensors, by name: `adapting` asks here when an argument is
sparse."""

from __future__ import annotations

from typing import Any

from treadle.torch.errors import CAUGHT, translated
from treadle.torch.sparse import arithmetic, products, shapes
from treadle.torch.tensors import NotDense

FUNCTIONS: dict[str, Any] = {
    **arithmetic.FUNCTIONS, **products.FUNCTIONS, **shapes.FUNCTIONS,
}  # fmt: skip


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function of PyTorch's of arguments of which some are sparse. NotImplementedError, which is
    a RuntimeError, for functions that do not take them."""
    function = FUNCTIONS.get(name)
    if function is None:
        if kwargs.get("layout") is not None:
            raise NotDense(f"{name} makes dense tensors: x.to_sparse() is the sparse one")
        raise NotDense(f"{name} does not take sparse tensors: x.to_dense() is the dense one")
    try:
        return function(*args, **kwargs)
    except CAUGHT as error:
        raise translated(error) from None
    except NotDense:
        raise NotDense(
            f"{name} does not take sparse tensors in this way: x.to_dense() is the dense one"
        ) from None
