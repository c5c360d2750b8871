"""A transformer that translates: positions by sines, masks, padding, a loss that ignores it, greedy
decoding."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import Transformer
from torch.nn.utils.rnn import pad_sequence

from tests.parity.scripts.starting import begin

PAD, BOS, EOS = 0, 1, 2


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size: int, dropout: float, maxlen: int = 50):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        pos_embedding = pos_embedding.unsqueeze(-2)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding)

    def forward(self, token_embedding: Tensor):
        return self.dropout(token_embedding + self.pos_embedding[: token_embedding.size(0), :])


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size: int, emb_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.emb_size = emb_size

    def forward(self, tokens: Tensor):
        return self.embedding(tokens.long()) * math.sqrt(self.emb_size)


class Seq2SeqTransformer(nn.Module):
    def __init__(self, layers, emb_size, nhead, src_vocab, tgt_vocab):
        super().__init__()
        self.transformer = Transformer(
            d_model=emb_size, nhead=nhead, num_encoder_layers=layers, num_decoder_layers=layers,
            dim_feedforward=32, dropout=0.0,
        )  # fmt: skip
        self.generator = nn.Linear(emb_size, tgt_vocab)
        self.src_tok_emb = TokenEmbedding(src_vocab, emb_size)
        self.tgt_tok_emb = TokenEmbedding(tgt_vocab, emb_size)
        self.positional_encoding = PositionalEncoding(emb_size, dropout=0.0)

    def forward(self, src, trg, src_mask, tgt_mask, src_pad, tgt_pad, memory_pad):
        src_emb = self.positional_encoding(self.src_tok_emb(src))
        tgt_emb = self.positional_encoding(self.tgt_tok_emb(trg))
        outs = self.transformer(
            src_emb, tgt_emb, src_mask, tgt_mask, None, src_pad, tgt_pad, memory_pad
        )
        return self.generator(outs)

    def encode(self, src, src_mask):
        return self.transformer.encoder(self.positional_encoding(self.src_tok_emb(src)), src_mask)

    def decode(self, tgt, memory, tgt_mask):
        embedded = self.positional_encoding(self.tgt_tok_emb(tgt))
        return self.transformer.decoder(embedded, memory, tgt_mask)


def generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones((sz, sz))) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, 0.0)


def create_mask(src, tgt):
    src_len, tgt_len = src.shape[0], tgt.shape[0]
    tgt_mask = generate_square_subsequent_mask(tgt_len)
    src_mask = torch.zeros((src_len, src_len)).type(torch.bool)
    return src_mask, tgt_mask, (src == PAD).transpose(0, 1), (tgt == PAD).transpose(0, 1)


def main():
    rng = np.random.default_rng(0)

    def sentence(length):
        words = rng.integers(3, 12, length).tolist()
        return torch.cat((torch.tensor([BOS]), torch.tensor(words), torch.tensor([EOS])))

    src = pad_sequence([sentence(k) for k in (3, 5)], padding_value=PAD)
    tgt = pad_sequence([sentence(k) for k in (4, 2)], padding_value=PAD)
    model = Seq2SeqTransformer(1, 16, 2, 12, 12)
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    begin(model)
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for _ in range(3):
        tgt_input = tgt[:-1, :]
        src_mask, tgt_mask, src_pad, tgt_pad = create_mask(src, tgt_input)
        logits = model(src, tgt_input, src_mask, tgt_mask, src_pad, tgt_pad.float(), src_pad)
        optimizer.zero_grad()
        tgt_out = tgt[1:, :]
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        one = src[:, :1]
        memory = model.encode(one, torch.zeros(len(one), len(one)).type(torch.bool))
        ys = torch.ones(1, 1).fill_(BOS).type(torch.long)
        for _ in range(2):
            mask = generate_square_subsequent_mask(ys.size(0)).type(torch.bool)
            out = model.decode(ys, memory, mask).transpose(0, 1)
            prob = model.generator(out[:, -1])
            _, next_word = torch.max(prob, dim=1)
            ys = torch.cat([ys, torch.ones(1, 1).type_as(one.data).fill_(next_word.item())], dim=0)
    return {"losses": losses, "ys": ys.flatten().tolist(), "memory": memory.numpy()}
