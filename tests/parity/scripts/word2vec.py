"""Word vectors: skip-grams with negative samples, sparse lookups, nearest words by cosines; and a
bag of words."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.parity.scripts.starting import begin

text = "the quick fox jumps over the lazy dog and the dog sleeps while the fox runs".split()


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.u = nn.Embedding(vocab, dim)
        self.v = nn.Embedding(vocab, dim)
        r = 0.5 / dim
        self.u.weight.data.uniform_(-r, r)
        self.v.weight.data.zero_()

    def forward(self, center, context, negative):
        u, v, n = self.u(center), self.v(context), self.v(negative)
        score = F.logsigmoid(torch.clamp(torch.sum(u * v, dim=1), max=10, min=-10))
        against = torch.bmm(n, u.unsqueeze(2)).squeeze(2)
        against = F.logsigmoid(-torch.clamp(against, max=10, min=-10)).sum(dim=1)
        return -torch.mean(score + against)


class CBOW(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embeddings = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.linear = nn.Linear(dim, vocab)

    def forward(self, inputs, offsets):
        return F.log_softmax(self.linear(self.embeddings(inputs, offsets)), dim=-1)


def main():
    vocab = sorted(set(text))
    index = {w: i for i, w in enumerate(vocab)}
    pairs = [
        (index[text[i]], index[text[j]])
        for i in range(len(text)) for j in range(max(0, i - 2), min(len(text), i + 3)) if i != j
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    model = begin(SkipGram(len(vocab), 6), scale=0.3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    losses = []
    for start in range(0, 32, 8):
        batch = torch.LongTensor(pairs[start : start + 8])
        negative = torch.from_numpy(rng.integers(0, len(vocab), (8, 3)))
        optimizer.zero_grad()
        loss = model(batch[:, 0], batch[:, 1], negative)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    vectors = F.normalize(model.u.weight.detach(), p=2, dim=1)
    near = torch.matmul(vectors, vectors[index["fox"]])
    similar = F.cosine_similarity(vectors[0], vectors[1], dim=0)
    cbow = begin(CBOW(len(vocab), 4), 2)
    out = cbow(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 2]))
    F.nll_loss(out, torch.tensor([1, 2])).backward()
    return {
        "losses": losses, "near": near.numpy(), "similar": similar.item(),
        "bag": cbow.embeddings.weight.grad.numpy(),
        "best": near.argsort(descending=True)[0].item() == index["fox"],
    }  # fmt: skip
