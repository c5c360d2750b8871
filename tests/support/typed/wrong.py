"""What a user got wrong. Behind `# wrong:` is what mypy calls it, and then what Pyright does."""

from __future__ import annotations

import treadle as td
import treadle.nn.functional as F
from treadle import nn


@td.struct
class Particle:
    """A point of some mass."""

    place: td.vec3[td.f32]
    mass: td.f32


@td.kernel
def misspelled(x: td.Array[td.f32, 2]) -> None:
    """Names that the kernel language does not have, and wrong arguments of those that it has."""
    i = td.gird(1)  # wrong: attr-defined reportAttributeAccessIssue
    if i < td.block_dim.w:  # wrong: attr-defined reportAttributeAccessIssue
        x[i, 0] = td.exp()  # wrong: call-overload reportCallIssue
        td.sync_threads(i)  # wrong: call-arg reportCallIssue
        x[i, 1] = td.shuffle_down(x[i, 0], "1")  # wrong: arg-type reportArgumentType


def arrays(x: td.Tensor) -> td.Tensor:
    """Arrays."""
    y = td.expp(x)  # wrong: attr-defined reportAttributeAccessIssue
    y = td.exp("x")  # wrong: call-overload reportCallIssue
    y = x.summ()  # wrong: attr-defined reportAttributeAccessIssue
    y = x.sum(axis="rows")  # wrong: arg-type reportArgumentType
    y = x.reshape("2", 3)  # wrong: arg-type reportArgumentType
    y = td.zeros((2, 3), device=1)  # wrong: arg-type reportArgumentType
    y = td.zeros((2, 3), dtype=4)  # wrong: arg-type reportArgumentType
    y = x + "1"  # wrong: operator reportOperatorIssue
    y = x @ None  # wrong: operator reportOperatorIssue
    name: str = x.T  # wrong: assignment reportAssignmentType
    length: int = x.shape  # wrong: assignment reportAssignmentType
    y = td.where(x > 0, x)  # wrong: call-overload reportCallIssue
    y = td.linalg.inverse(x)  # wrong: attr-defined reportAttributeAccessIssue
    y = td.random.normal((3,), men=0.0)  # wrong: call-arg reportCallIssue
    return x.numpy() if name and length else y  # wrong: return-value reportReturnType


def train(model: nn.Module, x: td.Tensor) -> None:
    """Modules, optimizers, files."""
    layer = nn.Linear("8", 8)  # wrong: arg-type reportArgumentType
    optimizer = td.optim.Adamw(model.parameters())  # wrong: attr-defined reportAttributeAccessIssue
    td.optim.SGD(model.parameters(), learning_rate=0.1)  # wrong: call-arg reportCallIssue
    loss = F.mse_loss(layer(x), x)
    F.cross_entropy(layer(x), reduction="mean")  # wrong: call-arg reportCallIssue
    loss.backwards()  # wrong: attr-defined reportAttributeAccessIssue
    td.save(model.state_dict())  # wrong: call-arg reportCallIssue
    print(optimizer, Particle(1.0), Particle(mas=1.0))  # wrong: call-arg reportCallIssue


misspelled.lunch(3)  # wrong: attr-defined reportAttributeAccessIssue
print(td.devices()[0].idd)  # wrong: attr-defined reportAttributeAccessIssue
