"""A convolutional autoencoder in mixed precision's form: autocast that is off, a scaler, one-cycle
rates, gradients that accumulate, parameters that are frozen."""

import numpy as np
import torch
import torch.nn as nn

from tests.parity.scripts.starting import begin


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(4, 8, 5), nn.Flatten()
        )
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (8, 1, 1)), nn.ConvTranspose2d(8, 4, 5), nn.ReLU(),
            nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(4, 1, 3, padding=1),
            nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code), code


def main():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.uniform(size=(8, 1, 10, 10)).astype("float32"))
    model = begin(Autoencoder())
    for name, p in model.named_parameters():
        if name.startswith("encoder.0"):
            p.requires_grad = False
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.NAdam(trained, lr=1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, total_steps=4)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    losses = []
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        for part in images.split(4):
            with torch.autocast("cpu", enabled=False):
                out, code = model(part)
                loss = nn.functional.mse_loss(out, part) + 1e-3 * code.abs().mean()
            scaler.scale(loss / 2).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(trained, max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        losses.append(loss.item())
    frozen = model.encoder[0].weight.grad is None
    return {
        "losses": losses, "frozen": frozen, "scale": scaler.get_scale(),
        "code": model.encoder(images).detach().numpy(), "rates": scheduler.get_last_lr(),
    }  # fmt: skip
