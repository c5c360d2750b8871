"""The rows between the parts of a layer, and rows that a product computes by itself.

A part of a layer begins with a norm of all that was computed before, and each sum, norm and gate is
a launch of a few microseconds, for a few thousand numbers. So they are not computed where they are
written: `Stream` keeps what a part gave beside the rows to which it is added, and the kernel of the
next product does the rest (`kernels/device_code/activation_prologues.py`). Where that is not
possible (on a CPU, for prompts, for training), the same is computed by ordinary operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from treadle.kernels.device_code.activation_prologues import Prologue
from treadle.quant.blocks import Quantized
from treadle.quant.gradients import is_recorded
from treadle.quant.products import Activations, can_follow, product_after
from treadle.tensor.tensor import Tensor


class Norm(Protocol):
    """A division by the root mean square."""

    weight: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """Rows after it."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows, and what a part of a layer gave for them: it is divided by `after`, if there is such a
    norm, and added."""

    x: Tensor
    added: Tensor | None = None
    after: Norm | None = None

    def tensor(self) -> Tensor:
        """The sum."""
        if self.added is None:
            return self.x
        more = self.added if self.after is None else self.after(self.added)
        return self.x + more

    def plus(self, added: Tensor, after: Norm | None = None) -> Stream:
        """What a part gave is added."""
        return Stream(self.tensor(), added, after)

    def normed(self, norm: Norm) -> Rows:
        """Its rows after a norm."""
        arrays = [self.x, norm.weight]
        scaled = self.after is not None and self.added is not None
        if self.added is not None:
            arrays.insert(1, self.added)
        if self.after is not None and self.added is not None:
            arrays.append(self.after.weight)
        epsilons = {each.epsilon for each in (norm, self.after) if each is not None}
        prologue = Prologue("normed", self.x.shape[-1], added=self.added is not None, scaled=scaled)
        return Rows(
            prologue, tuple(arrays), self.x.shape[0], lambda: norm(self.tensor()), norm.epsilon,
            len(epsilons) == 1,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rows:
    """`count` rows of activations, which a prologue computes of arrays, or `tensor` by ordinary
    operations. `least` is added to mean squares. `possible`: whether the prologue can."""

    prologue: Prologue
    arrays: tuple[Tensor, ...]
    count: int
    tensor: Callable[[], Tensor]
    least: float = 0.0
    possible: bool = True

    def times(
        self, weights: Sequence[object], activations: Activations | None
    ) -> tuple[Tensor, Tensor | None] | None:
        """What matrices give for the rows, one after the other in each row, and the sum of the
        stream before its norm, if something was added. None if kernels cannot do that."""
        quantized = [each for each in weights if isinstance(each, Quantized)]
        if not self.possible or len(quantized) < len(weights) or any(map(is_recorded, self.arrays)):
            return None
        device, n = self.arrays[0].device, self.prologue.columns
        if not can_follow(device, quantized, activations, self.count, n):
            return None
        return product_after(
            self.prologue, self.arrays, self.count, quantized, activations, self.least
        )


def plain_rows(x: Tensor) -> Rows:
    """Rows that are computed already."""
    return Rows(Prologue("rows", x.shape[-1]), (x,), x.shape[0], lambda: x)
