"""Gradients of gradients: a penalty of the gradient's norm, a step of MAML by functional calls,
gradients of each example, a Hessian, an operation with a derivative of its own."""

import numpy as np
import torch
import torch.nn as nn
from torch.func import functional_call, grad, hessian, vmap

from tests.parity.scripts.starting import begin


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * i.sigmoid()
        ctx.save_for_backward(result, i)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        result, i = ctx.saved_tensors
        sigmoid_x = i.sigmoid()
        return grad_output * (result + sigmoid_x * (1 - result))


def main():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(6, 3)).astype("float32"))
    y = torch.from_numpy(rng.normal(size=(6, 1)).astype("float32"))
    model = begin(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
    critic = begin(nn.Linear(3, 1), 3)
    mixed = x.clone().requires_grad_(True)
    (gradients,) = torch.autograd.grad(
        outputs=torch.tanh(critic(mixed)), inputs=mixed, grad_outputs=torch.ones(6, 1),
        create_graph=True, retain_graph=True, only_inputs=True,
    )  # fmt: skip
    penalty = ((gradients.norm(2, dim=1) - 1) ** 2).mean()
    penalty.backward()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(2):
        params = dict(model.named_parameters())
        inner = nn.functional.mse_loss(functional_call(model, params, (x[:3],)), y[:3])
        found = torch.autograd.grad(inner, tuple(params.values()), create_graph=True)
        fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), found)}
        outer = nn.functional.mse_loss(functional_call(model, fast, (x[3:],)), y[3:])
        optimizer.zero_grad()
        outer.backward()
        optimizer.step()
        losses.append(outer.item())
    detached = {k: v.detach() for k, v in model.named_parameters()}

    def compute_loss(params, sample, target):
        predictions = functional_call(model, params, (sample.unsqueeze(0),))
        return nn.functional.mse_loss(predictions, target.unsqueeze(0))

    each = vmap(grad(compute_loss), in_dims=(None, 0, 0))(detached, x, y)
    curve = hessian(lambda v: (v**3).sum() + v.prod())(torch.tensor([1.0, 2.0, 3.0]))
    z = x.clone().requires_grad_()
    Swish.apply(z).sum().backward()
    return {
        "penalty": penalty.item(), "critic": critic.weight.grad.numpy(), "losses": losses,
        "each": each["0.weight"].numpy(), "curve": curve.numpy(), "swish": z.grad.numpy(),
    }  # fmt: skip
