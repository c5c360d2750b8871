"""LoRA: adapters of low rank, which learn while the quantized weights stay as they are.

To the product of x with a matrix an adapter adds `(x @ a.T) @ b.T * scale`, where `a` has `rank`
rows and `b` as many columns. (E. Hu and others, "LoRA", 2021.) `b` begins with zeros, so a new
adapter changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from treadle.graph.history import recording
from treadle.models.arguments import integer, number, strings
from treadle.models.conversion.families import hugging_face_parts
from treadle.models.layers import Projection
from treadle.nn.containers import ModuleList
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.runtime.devices import Device
from treadle.tensor.creation import zeros
from treadle.tensor.functional.dropouts import dropout
from treadle.tensor.generator import Generator
from treadle.tensor.random import uniform
from treadle.tensor.tensor import Tensor

_NEVER = frozenset({"ffn_gate_inp"})  # chooses experts: discrete, and not adapted


class Adapter(Module):
    """What is added to one product."""

    def __init__(self, a: Tensor, b: Tensor, scale: float, drop: float) -> None:
        super().__init__()
        self.a, self.b = Parameter(a), Parameter(b)
        self.scale, self.drop = scale, drop

    def forward(self, x: Tensor) -> Tensor:
        """Of rows of the product's input. Some of their elements are dropped in training, while
        gradients are recorded."""
        if self.drop and self.training and recording.get():
            x = dropout(x, self.drop)
        return ((x @ self.a.T) * self.scale) @ self.b.T


class Lora(Module):
    """The adapters of a model: `parameters()` are what an optimizer learns.

    `rank` is the rows of each `a`; what an adapter computes is multiplied by alpha / rank, or by
    alpha / sqrt(rank) with `by_root`. `targets` are the products that have an adapter, by the names
    of GGUF files."""

    def __init__(
        self, rank: int, alpha: float, dropout: float = 0.0, by_root: bool = False
    ) -> None:
        super().__init__()
        self.rank, self.alpha, self.dropout, self.by_root = rank, alpha, dropout, by_root
        self.names: list[str] = []
        self.adapters = ModuleList()

    @property
    def targets(self) -> tuple[str, ...]:
        """The parts of layers that have adapters."""
        return tuple(dict.fromkeys(part_of(name) for name in self.names))

    def add(self, name: str, a: Tensor, b: Tensor) -> None:
        """One more adapter, for the product with a matrix of this name."""
        scale = self.alpha / (math.sqrt(self.rank) if self.by_root else self.rank)
        self.names.append(name)
        self.adapters.append(Adapter(a, b, scale, self.dropout))

    def __repr__(self) -> str:
        return (
            f"<LoRA of rank {self.rank}, alpha {self.alpha:g}: {len(self.names)} adapters of "
            f"{', '.join(self.targets)}>"
        )


def new_lora(
    projections: dict[str, Projection], architecture: str, device: Device, *, rank: int,
    alpha: float, targets: Sequence[str] | None, dropout: float, seed: int | None,
    layers: Collection[int] | None = None,
) -> Lora:  # fmt: skip
    """Adapters that change nothing yet, for the products that are named."""
    rank = integer("rank", rank, 1)
    dropout = number("dropout", dropout, 0.0, 1.0, "a probability")
    alpha = number("alpha", alpha, -math.inf, math.inf, "above 0")
    if dropout == 1.0:
        raise ValueError("dropout is a probability below 1: nothing is left of 1")
    if not 0.0 < alpha < math.inf:
        raise ValueError(f"alpha is a number above 0, not {alpha!r}")
    if layers is not None and not isinstance(layers, Iterable):
        raise TypeError(f"layers are the numbers of several layers, as [4, 5], not {layers!r}")
    wanted = _parts(projections, architecture, targets)
    count = 1 + max(map(layer_of, projections))
    chosen = set(range(count)) if layers is None else set(layers)
    if not chosen or not chosen <= set(range(count)):
        wrong = ", ".join(map(str, sorted(chosen - set(range(count))))) or "none"
        raise ValueError(f"layers are numbers from 0 to {count - 1}, not {wrong}")
    generator = None if seed is None else Generator(seed)
    made = Lora(rank, float(alpha), dropout)
    for name, projection in projections.items():
        if part_of(name) not in wanted or layer_of(name) not in chosen:
            continue
        bound = projection.columns**-0.5
        shape = rank, projection.columns
        a = uniform(shape, -bound, bound, device=device, generator=generator)
        made.add(name, a, zeros((projection.rows, rank), device=device))
    return made


def attach(lora: Lora, projections: dict[str, Projection]) -> None:
    """Let products add what the adapters compute."""
    for name, adapter in zip(lora.names, lora.adapters, strict=True):
        projections[name].adapter = adapter


def detach(projections: dict[str, Projection]) -> None:
    """Take all adapters from products."""
    for projection in projections.values():
        projection.adapter = None


def projections_of(decoder: Module) -> dict[str, Projection]:
    """The products of layers that may have adapters, by the names of their matrices in the file."""
    found = (each for each in decoder.modules() if isinstance(each, Projection))
    return {each.name: each for each in found if part_of(each.name) not in _NEVER}


def part_of(name: str) -> str:
    """Which part of a layer a matrix is."""
    return name.rsplit(".", 1)[-1]


def layer_of(name: str) -> int:
    """The number of its layer."""
    return int(name.split(".")[1])


def learns(lora: Lora) -> bool:
    """Whether any of the parameters requires gradients."""
    return any(each.requires_grad for each in lora.parameters())


def _parts(
    projections: dict[str, Projection], architecture: str, targets: Sequence[str] | None
) -> Collection[str]:
    """The parts that targets name, as GGUF files do or as Hugging Face's; all without any."""
    present = dict.fromkeys(part_of(name) for name in projections)
    if targets is None:
        return present
    targets = strings("targets", targets)
    own = hugging_face_parts(architecture, present)
    known = {**{part: part for part in present}, **{part_of(own[part]): part for part in present}}
    wrong = [target for target in targets if target not in known]
    if wrong or not targets:
        raise ValueError(
            f"targets name products of the layers: {', '.join(known)}, not "
            f"{', '.join(map(repr, wrong)) or 'nothing'}"
        )
    return {known[target] for target in targets}
