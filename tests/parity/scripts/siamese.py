"""A siamese network: shared weights, a contrastive and a triplet loss, cosine annealing."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from tests.parity.scripts.starting import begin


class ContrastiveLoss(torch.nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        distance = F.pairwise_distance(output1, output2, keepdim=True)
        return torch.mean(
            (1 - label) * torch.pow(distance, 2)
            + label * torch.pow(torch.clamp(self.margin - distance, min=0.0), 2)
        )


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn1 = nn.Sequential(
            nn.ReflectionPad2d(1), nn.Conv2d(1, 4, kernel_size=3), nn.ReLU(inplace=True),
            nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(4),
        )  # fmt: skip
        self.fc1 = nn.Sequential(nn.Linear(64, 12), nn.ReLU(inplace=True), nn.Linear(12, 5))

    def forward_once(self, x):
        output = self.cnn1(x)
        output = output.view(output.size()[0], -1)
        return self.fc1(output)

    def forward(self, input1, input2):
        return self.forward_once(input1), self.forward_once(input2)


def main():
    rng = np.random.default_rng(0)
    a, b, c = (torch.tensor(rng.normal(size=(6, 1, 9, 9)), dtype=torch.float32) for _ in range(3))
    label = torch.tensor(rng.integers(0, 2, (6, 1)), dtype=torch.float32)
    net = begin(SiameseNetwork())
    contrastive, triplet = ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0, p=2)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, alpha=0.9, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4, eta_min=1e-5)
    record = []
    for _ in range(3):
        output1, output2 = net(a, b)
        optimizer.zero_grad()
        loss = contrastive(output1, output2, label) + triplet(output1, output2, net.forward_once(c))
        loss.backward()
        optimizer.step()
        scheduler.step()
        record += [loss.item(), optimizer.param_groups[0]["lr"]]
    net.eval()
    with torch.inference_mode():
        x, y = net(a, b)
        distance = F.pairwise_distance(x, y)
    return {"record": record, "distance": distance.numpy()}
