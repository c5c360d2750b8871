"""A graph convolution: a normalized adjacency, a layer with `reset_parameters`, masks of nodes."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parameter import Parameter

from tests.parity.scripts.starting import begin


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.mm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    return correct.sum() / len(labels)


def main():
    rng = np.random.default_rng(0)
    n = 15
    edges = torch.from_numpy(rng.integers(0, n, (2, 40)))
    adj = torch.zeros(n, n)
    adj[edges[0], edges[1]] = 1.0
    adj = torch.maximum(adj, adj.t()) + torch.eye(n)
    d = adj.sum(1).pow(-0.5)
    d[torch.isinf(d)] = 0.0
    adj = d.view(-1, 1) * adj * d
    features = torch.FloatTensor(rng.normal(size=(n, 5)).tolist())
    labels = torch.LongTensor(rng.integers(0, 3, n).tolist())
    idx_train, idx_val = torch.LongTensor(range(10)), torch.arange(10, n)
    model = begin(GCN(5, 8, 3, 0.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
    record = []
    for _ in range(5):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, adj)
        record += [
            loss_train.item(), accuracy(output[idx_train], labels[idx_train]).item(),
            F.nll_loss(output[idx_val], labels[idx_val]).item(),
        ]  # fmt: skip
    return {"record": record, "output": output.detach().numpy(), "shown": repr(model.gc1)}
