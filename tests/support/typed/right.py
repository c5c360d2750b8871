"""What a user writes, with all rooms in it: mypy and Pyright find nothing to say (strict)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import treadle as td
import treadle.nn.functional as F
from treadle import nn


@td.struct
class Particle:
    """A point of some mass."""

    place: td.vec3[td.f32]
    mass: td.f32 = 1.0


@td.func
def weighted(x: td.f32, n: td.i32) -> td.f32:
    """A sum, term by term."""
    total = 0.0
    for k in range(n):
        total += x * td.exp(-td.f32(k) * 0.5) + td.where(x > 0.0, x, td.fma(x, 2.0, 1.0))
    return total


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]) -> None:
    """The usual first kernel."""
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + weighted(y[i], 3)


@td.kernel(block=64, checked=False)
def fold(x: td.Array[td.f32, 2], points: td.Array[Particle], sums: td.Array[td.f32]) -> None:
    """Rows, summed in shared memory."""
    part = td.shared(64, td.f32)
    i, j = td.grid(2)
    lane = td.thread_idx.x
    value: td.f32 = 0.0
    count: td.i32 = 0
    if i < x.shape[0] and j < x.shape[1]:
        value = x[i, j] * points[j].mass + points[j].place.x
        count += 1
    part[lane] = value
    td.sync_threads()
    for step in td.static_range(3):
        part[lane] += part[lane ^ (1 << step)]
    if td.vote_any(value > 0.0) and lane == 0:
        td.atomic_add(sums, i, td.subgroup_sum(td.sqrt(value)))


@td.elementwise
def blend(x: td.f32, y: td.f32, t: td.f32) -> td.f32:
    """A function of numbers, for arrays."""
    return x + (y - x) * t


def arrays(device: td.Device) -> td.Tensor:
    """Arrays, operators, methods."""
    x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    y = td.exp(x) + 2 * x.T @ x - np.ones((2, 2), np.float32)
    y[0] += 1.0
    rows: td.Tensor = y.reshape(-1, 2).sum(axis=0, keepdims=True)
    rows = td.where(rows > 0, rows, 0).clip(0, max=10).to(td.float64)
    best, places = td.topk(y, 1)
    largest = max(y.max(dim=0).tolist())
    if x.dtype == td.float32 and bool((y >= 0).all()) and len(x.shape) == x.ndim:
        return td.concat([rows, blend(x, y, 0.5), best.T * largest]).softmax(axis=-1)
    return td.einsum("ij,jk->ik", x, td.linalg.inv(x)) + td.fft.fft(places).real


def draws() -> list[float]:
    """Random numbers, and linear algebra."""
    td.manual_seed(1)
    x = td.random.normal((3, 3), dtype=td.float32)
    q, r = td.linalg.qr(x)
    return [(q @ r - x).abs().max().item(), td.linalg.vector_norm(x).item()]


class Net(nn.Module):
    """A model with a layer of each kind."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(2, width)
        self.rest = nn.Sequential(nn.GELU(), nn.Dropout(0.1), nn.Linear(width, 2))

    def forward(self, x: td.Tensor) -> td.Tensor:
        """The scores of two classes."""
        return F.log_softmax(self.rest(self.first(x)), dim=-1)


def train(x: td.Tensor, target: td.Tensor, path: Path) -> float:
    """A model, an optimizer, a compiled step, a file."""
    model = Net(8).to(x.device)
    optimizer = td.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = td.optim.lr_scheduler.StepLR(optimizer, 2)

    @td.compile
    def step(x: td.Tensor, target: td.Tensor) -> td.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    loss = 0.0
    for features, labels in td.data.DataLoader(td.data.TensorDataset(x, target), batch_size=2):
        loss = step(features, labels).item()
        schedule.step()
    td.save(model.state_dict(), path)
    model.load_state_dict(td.load(path))
    with td.no_grad():
        print(model(x).argmax(-1).numpy().mean(), loss)
    return loss


def cubes(v: td.Tensor) -> td.Tensor:
    """A function to differentiate."""
    return (v**3).sum()


def main() -> None:
    """Devices, launches, CUDA C++, gradients, profile."""
    for device in td.devices():
        print(device.id, device.limits.max_threads_per_block, "float64" in device.features)
    device = td.default_device()
    x, y = td.arange(8, dtype=td.float32, device=device), td.zeros(8, device=device)
    saxpy[2, 4](2.0, x, y)
    saxpy.launch(y.size, 2.0, x, y)
    text = saxpy.source("wgsl", 2.0, x, y, block=64)
    module = td.cuda_module("__global__ void twice(float *x) { x[threadIdx.x] *= 2; }")
    module.twice[1, 8](y)
    w = td.ones(3).requires_grad_()
    (w * w).sum().backward()
    slope = td.grad(cubes)(td.ones(2))
    with td.profile() as run, td.use_device("cpu"):
        train(td.random.uniform((4, 2)), td.random.integers((4,), 0, 2), Path("model.safetensors"))
    print(run.table(), text, w.grad, slope, arrays(device), draws())
    assert Particle(td.vec3[td.f32](1, 2, 3), mass=2.0).mass == 2.0


if __name__ == "__main__":
    main()
