"""A convolutional network on small pictures: loaders with workers, transforms in the dataset, a
schedule, an evaluation, a checkpoint."""

import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, random_split

from tests.parity.scripts.starting import begin


class Pictures(Dataset):
    def __init__(self, count, transform=None):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (count, 12, 12)).astype(np.uint8)
        self.labels = rng.integers(0, 10, count)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        image = torch.from_numpy(self.images[idx]).unsqueeze(0).float().div(255)
        if self.transform:
            image = self.transform(image)
        return image, int(self.labels[idx])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.fc1 = nn.Linear(128, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, device, loader, optimizer):
    model.train()
    losses = []
    for data, target in loader:
        data, target = data.to(device), target.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test(model, device, loader):
    model.eval()
    test_loss = correct = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return [test_loss / len(loader.dataset), correct]


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset = Pictures(24, transform=lambda x: (x - 0.13) / 0.31)
    train_set = torch.utils.data.Subset(dataset, range(16))
    sizes = [len(each) for each in random_split(dataset, [16, 8])]
    loader = DataLoader(train_set, batch_size=8, num_workers=0, pin_memory=False, drop_last=True)
    test_loader = DataLoader(torch.utils.data.Subset(dataset, range(16, 24)), batch_size=5)
    model = begin(Net().to(device))
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    record = []
    for _ in range(2):
        record += train(model, device, loader, optimizer)
        record += test(model, device, test_loader)
        scheduler.step()
        record.append(scheduler.get_last_lr()[0])
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    checkpoint = torch.load(file, map_location=device, weights_only=True)
    fresh = Net().to(device)
    fresh.load_state_dict(checkpoint["model"])
    optimizer = optim.Adadelta(fresh.parameters(), lr=1.0)
    optimizer.load_state_dict(checkpoint["optimizer"])
    record += train(fresh, device, loader, optimizer)
    return {"record": record, "sizes": sizes}
