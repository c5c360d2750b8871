"""A tagger of parts of speech: embeddings, an LSTM, one sentence at a time."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from tests.parity.scripts.starting import begin


def prepare_sequence(seq, to_ix):
    idxs = [to_ix[w] for w in seq]
    return torch.tensor(idxs, dtype=torch.long)


training_data = [
    ("a cat sleeps on the mat".split(), ["DET", "NN", "V", "P", "DET", "NN"]),
    ("people read that book".split(), ["NN", "V", "DET", "NN"]),
]


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim)
        self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, _ = self.lstm(embeds.view(len(sentence), 1, -1))
        tag_space = self.hidden2tag(lstm_out.view(len(sentence), -1))
        return F.log_softmax(tag_space, dim=1)


def main():
    torch.manual_seed(1)
    word_to_ix = {}
    for sent, _ in training_data:
        for word in sent:
            if word not in word_to_ix:
                word_to_ix[word] = len(word_to_ix)
    tag_to_ix = {"DET": 0, "NN": 1, "V": 2, "P": 3}
    model = begin(LSTMTagger(6, 6, len(word_to_ix), len(tag_to_ix)))
    loss_function = nn.NLLLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        for sentence, tags in training_data:
            model.zero_grad()
            sentence_in = prepare_sequence(sentence, word_to_ix)
            targets = prepare_sequence(tags, tag_to_ix)
            tag_scores = model(sentence_in)
            loss = loss_function(tag_scores, targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        scores = model(prepare_sequence(training_data[0][0], word_to_ix))
        _, best = scores.max(dim=1)
    return {"losses": losses, "scores": scores.numpy(), "best": best.tolist()}
