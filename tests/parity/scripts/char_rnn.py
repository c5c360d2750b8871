"""A recurrent network that classifies names by their letters: one-hot letters, a cell by hand,
parameters that are changed without an optimizer, a GRU beside it."""

import string

import torch
import torch.nn as nn

from tests.parity.scripts.starting import begin

all_letters = string.ascii_lowercase
n_letters = len(all_letters)
names = [("anna", 0), ("boris", 1), ("clara", 0), ("dmitri", 1)]


def lineToTensor(line):
    tensor = torch.zeros(len(line), 1, n_letters)
    for li, letter in enumerate(line):
        tensor[li][0][all_letters.find(letter)] = 1
    return tensor


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size, hidden_size)
        self.h2h = nn.Linear(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, hidden):
        hidden = torch.tanh(self.i2h(input) + self.h2h(hidden))
        return self.softmax(self.h2o(hidden)), hidden

    def initHidden(self):
        return torch.zeros(1, self.hidden_size)


def main():
    rnn, criterion = begin(RNN(n_letters, 8, 2)), nn.NLLLoss()
    losses = []
    for name, category in names:
        category_tensor = torch.tensor([category], dtype=torch.long)
        line_tensor = lineToTensor(name)
        hidden = rnn.initHidden()
        rnn.zero_grad()
        for i in range(line_tensor.size()[0]):
            output, hidden = rnn(line_tensor[i], hidden)
        loss = criterion(output, category_tensor)
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-0.05)
        losses.append(loss.item())
    top_n, top_i = output.topk(1)
    gru = begin(nn.GRU(n_letters, 8, num_layers=2, batch_first=True, bidirectional=True), 1)
    packed = nn.utils.rnn.pack_sequence(
        [lineToTensor(name).squeeze(1) for name, _ in names], enforce_sorted=False
    )
    out, h = gru(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
    padded.sum().backward()
    return {
        "losses": losses, "top": [top_n.item(), top_i[0].item()], "padded": padded.detach().numpy(),
        "lengths": lengths.tolist(), "h": h.detach().numpy(),
        "grad": gru.weight_hh_l0.grad.numpy(),
    }  # fmt: skip
