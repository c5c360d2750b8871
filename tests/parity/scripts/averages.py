"""Averages of weights: an exponential one by hand and by `AveragedModel`, batch norms updated, a
schedule for it; weight norm, a checkpointed block, a hook."""

import copy

import numpy as np
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.parity.scripts.starting import begin


class EMA:
    def __init__(self, model, decay):
        self.decay, self.model = decay, copy.deepcopy(model)
        for p in self.model.parameters():
            p.requires_grad_(False)

    def update(self, model):
        for mine, its in zip(self.model.parameters(), model.parameters()):
            mine.data.mul_(self.decay).add_(its.data, alpha=1 - self.decay)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh())
        self.second = nn.Sequential(nn.Linear(8, 8), nn.SiLU())
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        x = self.first(x)
        x = checkpoint(self.second, x, use_reentrant=False)
        return self.last(x)


def main():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(12, 5)).astype("float32"))
    y = torch.from_numpy(rng.normal(size=(12, 1)).astype("float32"))
    loader = DataLoader(TensorDataset(x, y), batch_size=4)
    model = begin(Net())
    ema = EMA(model, 0.9)
    swa_model = AveragedModel(model)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = SWALR(optimizer, swa_lr=0.01, anneal_epochs=3, anneal_strategy="linear")
    seen = []
    handle = model.last.register_forward_hook(lambda m, i, o: seen.append(tuple(o.shape)))
    losses = []
    for _ in range(3):
        for input, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(input), target)
            loss.backward()
            optimizer.step()
            ema.update(model)
            losses.append(loss.item())
        swa_model.update_parameters(model)
        averaged.update_parameters(model)
        scheduler.step()
    handle.remove()
    update_bn(loader, swa_model)
    for each in (swa_model, ema.model, averaged):
        each.eval()
    with torch.no_grad():
        found = [each(x).squeeze(1).tolist() for each in (swa_model, ema.model, averaged)]
    return {
        "losses": losses, "found": found, "seen": len(seen), "rate": scheduler.get_last_lr(),
        "count": int(swa_model.n_averaged),
    }  # fmt: skip
