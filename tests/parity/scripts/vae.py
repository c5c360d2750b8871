"""A variational autoencoder: the reparametrization, a sum of losses, a loader, sampling."""

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

from tests.parity.scripts.starting import begin


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 16)
        self.fc21 = nn.Linear(16, 3)
        self.fc22 = nn.Linear(16, 3)
        self.fc3 = nn.Linear(3, 16)
        self.fc4 = nn.Linear(16, 36)
        self.noise = np.random.default_rng(3)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        eps.copy_(torch.from_numpy(self.noise.normal(size=eps.shape)))
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 36))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main():
    torch.manual_seed(1)
    images = np.random.default_rng(0).uniform(size=(20, 1, 6, 6)).astype("float32")
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(images))
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=False)
    model = begin(VAE())
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(2):
        model.train()
        train_loss = 0
        for (data,) in loader:
            optimizer.zero_grad()
            recon_batch, mu, logvar = model(data)
            loss = loss_function(recon_batch, data, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            optimizer.step()
        losses.append(train_loss / len(loader.dataset))
    model.eval()
    with torch.no_grad():
        recon, mu, logvar = model(torch.from_numpy(images))
        comparison = torch.cat([dataset[0][0].view(1, 36), recon.view(20, 36)[:4]])
        sample = model.decode(torch.zeros(2, 3)).cpu()
    return {"losses": losses, "comparison": comparison.numpy(), "sample": sample.numpy()}
