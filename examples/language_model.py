"""Train a small transformer to write, letter by letter.

The text is the Zen of Python (PEP 20, which is in the public domain): the only such prose that
Python ships, as `import this`. It is so short that the network learns it by heart, which is a good
test: it has to go on from any line. --text takes any other text, of which a tenth is kept to test.

    python examples/language_model.py --out results
    python examples/language_model.py --text book.txt --steps 5000 --width 384 --layers 6
"""

from __future__ import annotations

import codecs
import contextlib
import io
from pathlib import Path

import numpy as np
from showing import count, options, save

import treadle as td
from treadle import nn


def zen() -> str:
    """The text that Python has, which is shown when it is imported, and kept in cipher."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


class Windows(td.data.Dataset):
    """All pieces of a text of one length, and what comes one letter later."""

    def __init__(self, codes: np.ndarray, length: int) -> None:
        self.codes = codes
        self.length = length

    def __len__(self) -> int:
        return len(self.codes) - self.length

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        end = index + self.length
        return self.codes[index:end], self.codes[index + 1 : end + 1]


class Block(nn.Module):
    """Attention to what came before, then two layers, each added to what they are given."""

    def __init__(self, width: int, heads: int, device: td.Device) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, device=device)
        self.attention_in = nn.Linear(width, 3 * width, device=device)
        self.attention_out = nn.Linear(width, width, device=device)
        self.norm2 = nn.LayerNorm(width, device=device)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width, device=device), nn.GELU(),
            nn.Linear(4 * width, width, device=device),
        )  # fmt: skip

    def forward(self, x: td.Tensor) -> td.Tensor:
        """(batch, letters, width) to the same."""
        batch, count, width = x.shape
        joined = self.attention_in(self.norm1(x)).reshape(batch, count, 3, self.heads, -1)
        query, key, value = td.unstack(td.permute_dims(joined, (2, 0, 3, 1, 4)))
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.attention_out(td.permute_dims(seen, (0, 2, 1, 3)).reshape(batch, count, width))
        return x + self.layers(self.norm2(x))


class Writer(nn.Module):
    """A transformer: the scores of each next letter."""

    def __init__(
        self, letters: int, length: int, width: int, layers: int, heads: int, device: td.Device
    ) -> None:
        super().__init__()
        self.length = length
        self.letter = nn.Embedding(letters, width, device=device)
        self.place = nn.Embedding(length, width, device=device)
        self.blocks = nn.Sequential(*(Block(width, heads, device) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, device=device)
        self.scores = nn.Linear(width, letters, device=device)

    def forward(self, codes: td.Tensor) -> td.Tensor:
        """(batch, letters) to (batch, letters, kinds of letters)."""
        places = td.arange(codes.shape[1], dtype=td.int32, device=codes.device)
        return self.scores(self.norm(self.blocks(self.letter(codes) + self.place(places))))

    def write(self, codes: list[int], count: int, device: td.Device) -> list[int]:
        """Go on from some letters, each time with the likeliest."""
        written = list(codes)
        with td.no_grad():
            for _ in range(count):
                window = np.zeros((1, self.length), np.int32)  # of one size: compiled once
                last = written[-self.length :]
                window[0, : len(last)] = last
                scores = self(td.asarray(window, device=device))
                written.append(int(td.argmax(scores[0, len(last) - 1])))
        return written[len(codes) :]


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The last loss, in bits per letter."""
    parser = options(__doc__)
    parser.add_argument("--text", type=Path, help="a file to learn from (the Zen of Python)")
    parser.add_argument("--steps", type=count, default=700, help="of AdamW (700)")
    parser.add_argument("--batch", type=count, default=8, help="pieces in a step (8)")
    parser.add_argument("--length", type=count, default=64, help="letters in a piece (64)")
    parser.add_argument("--width", type=count, default=64, help="numbers for a letter (64)")
    parser.add_argument("--layers", type=count, default=2, help="blocks (2)")
    parser.add_argument("--heads", type=count, default=4, help="of attention (4)")
    parser.add_argument("--write", type=int, default=120, help="letters to write at the end (120)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()
    td.manual_seed(given.seed)

    text = given.text.read_text(encoding="utf-8") if given.text else zen()
    least = given.length * (10 if given.text else 1) + 1  # a piece in what is kept to test, too
    if len(text) < least:
        parser.error(
            f"the text has {len(text)} letters, and pieces of {given.length} need {least}: take a "
            f"longer text, or a smaller --length"
        )
    letters = sorted(set(text))
    codes = np.searchsorted(letters, list(text)).astype(np.int32)
    learned = codes[: len(codes) * 9 // 10] if given.text else codes
    data = Windows(learned, given.length)
    pieces = td.data.RandomSampler(data, True, given.steps * given.batch, given.seed)
    loader = td.data.DataLoader(data, given.batch, sampler=pieces, num_workers=1, device=device)

    sizes = len(letters), given.length, given.width, given.layers, given.heads
    model = Writer(*sizes, device)
    optimizer = td.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = td.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, given.steps)

    def bits(pieces: td.Tensor, following: td.Tensor) -> td.Tensor:
        scores = model(pieces).reshape(-1, len(letters))
        return nn.functional.cross_entropy(scores, following.reshape(-1)) / float(np.log(2))

    losses: list[td.Tensor] = []
    steps = td.data.progress(loader, "learning")
    for pieces, following in steps:
        loss = bits(pieces, following)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
        steps.set(bits=loss)
    curve = td.stack(losses).tolist()
    print(f"{curve[-1]:.3f} bits per letter; by chance it would be {np.log2(len(letters)):.2f}")
    if given.text:
        kept = td.data.DataLoader(Windows(codes[len(learned) :], given.length), 64, device=device)
        with td.no_grad():
            print(f"of the text that it has not seen: {bits(*next(iter(kept))).item():.3f}")

    start = text[len(text) // 2 :][: given.length // 2]
    written = model.write(codes[len(text) // 2 :][: len(start)].tolist(), given.write, device)
    story = "".join(letters[code] for code in written)
    print(f"--- given\n{start}\n--- written\n{story}")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        td.save(model.state_dict(), given.out / "language_model.safetensors")

    def draw(figure, axes):
        shown = f"{start}[{story}]"
        figure.text(0.02, 0.95, shown, va="top", family="monospace", fontsize=12, wrap=True)

    save(given.out, "language_model", {"bits per letter": curve}, draw, device=device.id)
    return curve[-1]


if __name__ == "__main__":
    main()
