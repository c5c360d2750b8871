"""Sines are predicted by two LSTM cells in float64, trained by L-BFGS."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim

from tests.parity.scripts.starting import begin


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 7)
        self.lstm2 = nn.LSTMCell(7, 7)
        self.linear = nn.Linear(7, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t = torch.zeros(input.size(0), 7, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), 7, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def main():
    x = np.arange(5)[None] + np.array([[0.0], [3.0], [5.0]])
    data = np.sin(x / 2).astype("float64")
    input, target = torch.from_numpy(data[1:, :-1]), torch.from_numpy(data[1:, 1:])
    seq = begin(Sequence()).double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=3)
    losses = []
    for _ in range(2):

        def closure():
            optimizer.zero_grad()
            loss = criterion(seq(input), target)
            losses.append(loss.item())
            loss.backward()
            return loss

        optimizer.step(closure)
    with torch.no_grad():
        pred = seq(torch.from_numpy(data[:1, :-1]), future=2)
    return {"losses": losses, "pred": pred.detach().numpy()}
