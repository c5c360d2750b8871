"""Reductions, and what stands for a collective that is under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from treadle.autograd.modes import no_grad
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.tensors import Tensor
from treadle.torch.writing import write


class ReduceOp(Enum):
    """How elements of all ranks become one. The bitwise ones gather all ranks' elements."""

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "and"
    BOR = "or"
    BXOR = "xor"


class Work:
    """A collective that is under way. Tensors have its result after `wait`."""

    def __init__(self, finish: Callable[[], None], results: Sequence[Tensor] = ()) -> None:
        self._finish: Callable[[], None] | None = finish
        self._results = list(results)

    def wait(self, timeout: Any = None) -> bool:
        """Have the results in their tensors. What reads them waits, for as long as
        `init_process_group` has said at most."""
        finish, self._finish = self._finish, None
        if finish is not None:
            with no_grad():
                finish()
        return True

    def is_completed(self) -> bool:
        """Whether it is over, as it is when this returns."""
        return self.wait()

    def is_success(self) -> bool:
        """Whether it is over without an error, which `wait` raises."""
        return self.wait()

    def result(self) -> list[Tensor]:
        """The tensors with the results."""
        self.wait()
        return self._results


def finished(
    places: Sequence[Tensor], results: Sequence[Inner | None], async_op: bool
) -> Work | None:
    """Results in tensors: at once, or when a `Work` is waited for."""

    def finish() -> None:
        for place, result in zip(places, results, strict=True):
            if result is not None:
                write(place._inner, result)

    work = Work(finish, places)
    if async_op:
        return work
    work.wait()
    return None
