"""Factors of a matrix of ratings, with biases; and the same by gradients written by hand."""

import numpy as np
import torch
import torch.nn as nn

from tests.parity.scripts.starting import begin


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, n_factors=4):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, n_factors)
        self.item_factors = nn.Embedding(n_items, n_factors)
        self.user_biases = nn.Embedding(n_users, 1)
        self.item_biases = nn.Embedding(n_items, 1)

    def forward(self, user, item):
        pred = self.user_biases(user) + self.item_biases(item)
        pred += (self.user_factors(user) * self.item_factors(item)).sum(1, keepdim=True)
        return pred.squeeze(-1)


def main():
    rng = np.random.default_rng(0)
    users, items = (torch.from_numpy(rng.integers(0, n, 30)) for n in (7, 9))
    ratings = torch.from_numpy(rng.uniform(1, 5, 30)).float()
    model = begin(MatrixFactorization(7, 9))
    loss_fn = nn.MSELoss()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        order = torch.arange(30).flip(0)
        for at in order.chunk(3):
            loss = loss_fn(model(users[at], items[at]), ratings[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    table = torch.full((7, 9), float("nan"))
    table[users, items] = ratings
    known = ~torch.isnan(table)
    P, Q = (torch.from_numpy(rng.normal(size=(n, 2))).float() for n in (7, 9))
    errors = []
    for _ in range(5):
        E = torch.where(known, table - P @ Q.T, torch.zeros(()))
        P, Q = P + 0.01 * (E @ Q - 0.1 * P), Q + 0.01 * (E.T @ P - 0.1 * Q)
        errors.append((E**2).sum().sqrt().item())
    return {"losses": losses, "errors": errors, "mean": table.nanmean().item(), "P": P.numpy()}
