"""What llama.cpp computes for SmolLM2, through the C functions of the library that `xllamacpp`
brings: `python -m tests.models.smollm_references` writes `data/smollm2_135m.json`.

With the weights dequantized, so that activations are not rounded to 8 bits: prompts as token ids,
the tokens that it chooses greedily with the margin to the second at each, and the mean negative
log-likelihood of the tokens of `data/alice.txt` (L. Carroll, 1865); that also with 8 bits.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.support import llama_cpp
from tests.support.small_models import smollm_file
from treadle.formats.gguf import read_gguf, write_gguf

DATA = Path(__file__).parent / "data"
PROMPTS = ("The capital of France is", "Water boils at", "def add(a, b):\n")
COUNT = 24
_ROOM = 512
_INT_POINTER = ctypes.POINTER(ctypes.c_int32)


class _Parameters(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * _ROOM)]


class _Batch(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_int32), ("token", _INT_POINTER), ("embedding", ctypes.c_void_p),
        ("position", _INT_POINTER), ("sequences", _INT_POINTER), ("sequence", ctypes.c_void_p),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]  # fmt: skip


class LlamaModel:
    """A model that llama.cpp runs."""

    def __init__(self, path: Path, vocabulary: int) -> None:
        self._c = library = llama_cpp._library()
        library.llama_context_default_params.restype = _Parameters
        library.llama_init_from_model.restype = ctypes.c_void_p
        library.llama_init_from_model.argtypes = [ctypes.c_void_p, _Parameters]
        library.llama_decode.argtypes = [ctypes.c_void_p, _Batch]
        library.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        library.llama_get_logits_ith.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        library.llama_get_memory.restype = ctypes.c_void_p
        library.llama_get_memory.argtypes = [ctypes.c_void_p]
        library.llama_memory_clear.argtypes = [ctypes.c_void_p, ctypes.c_bool]
        parameters = library.llama_model_default_params()
        self._model = library.llama_model_load_from_file(str(path).encode(), parameters)
        given = library.llama_context_default_params()
        self._context = library.llama_init_from_model(self._model, given)
        self._vocabulary = vocabulary

    def logits(self, tokens: list[int], start: int = 0) -> np.ndarray:
        """Scores after each token; with a start, of tokens that follow those given before."""
        if not start:
            self._c.llama_memory_clear(self._c.llama_get_memory(self._context), True)
        n = len(tokens)
        ids = (ctypes.c_int32 * n)(*tokens)
        positions = (ctypes.c_int32 * n)(*range(start, start + n))
        counts = (ctypes.c_int32 * n)(*[1] * n)
        zero = (ctypes.c_int32 * 1)(0)
        sequences = (ctypes.POINTER(ctypes.c_int32) * n)(*[zero] * n)
        wanted = (ctypes.c_int8 * n)(*[1] * n)
        batch = _Batch(
            n, ids, None, positions, counts, ctypes.cast(sequences, ctypes.c_void_p), wanted
        )
        assert self._c.llama_decode(self._context, batch) == 0
        found = self._c.llama_get_logits_ith
        rows = [
            np.ctypeslib.as_array(found(self._context, i), (self._vocabulary,)).copy()
            for i in range(n)
        ]
        return np.array(rows)

    def greedy(self, tokens: list[int], count: int) -> tuple[list[int], list[float]]:
        """The most probable tokens, and their margins."""
        chosen: list[int] = []
        margins: list[float] = []
        row = self.logits(tokens)[-1]
        for at in range(len(tokens), len(tokens) + count):
            second, first = np.sort(row)[-2:]
            chosen.append(int(row.argmax()))
            margins.append(round(float(first - second), 3))
            row = self.logits(chosen[-1:], at)[-1]
        return chosen, margins


def mean_loss(logits: np.ndarray, tokens: list[int]) -> float:
    """The mean negative log-likelihood of each token after those before it."""
    scores = logits[:-1].astype(np.float64)
    top = scores.max(axis=1)
    totals = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
    return float((totals - scores[np.arange(len(scores)), tokens[1:]]).mean())


def _dequantized(path: Path, out: Path) -> Path:
    """The same model in float32."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    file = read_gguf(path)
    arrays = {}
    for name, tensor in file.tensors.items():
        rows = file.raw(name).reshape(tensor.shape[0], -1)
        kind = GGMLQuantizationType[tensor.type.upper()]
        arrays[name] = dequantize(rows, kind).reshape(tensor.shape).astype(np.float32)
    write_gguf(out, {key: file.metadata.encoded(key) for key in file.metadata}, arrays)
    return out


def main() -> None:
    """Write the file."""
    path = smollm_file()
    vocabulary = llama_cpp.LlamaVocabulary(path)
    text = vocabulary.encode((DATA / "alice.txt").read_text(), False, False)
    found: dict[str, Any] = {"tokens_of_text": len(text)}
    found["loss_int8"] = round(mean_loss(LlamaModel(path, 49152).logits(text), text), 5)
    with tempfile.TemporaryDirectory() as folder:
        model = LlamaModel(_dequantized(path, Path(folder) / "plain.gguf"), 49152)
        found["loss_float32"] = round(mean_loss(model.logits(text), text), 5)
        found["cases"] = []
        for prompt in PROMPTS:
            tokens = vocabulary.encode(prompt, False, False)
            greedy, margins = model.greedy(tokens, COUNT)
            case = {"prompt": prompt, "tokens": tokens, "greedy": greedy, "margins": margins}
            found["cases"].append(case)
    (DATA / "smollm2_135m.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
