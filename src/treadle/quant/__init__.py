"""Quantized weights: ggml's block formats, and products straight from the blocks.

`quantize` makes a `QuantizedTensor` of numbers, `td.load_gguf` opens files of them.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.quant.blocks": "BlockFormat",
    "treadle.quant.gguf_files": "Gguf",
    "treadle.quant.matrix": "QuantizedTensor",
    "treadle.quant.quantizing": "formats quantize",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
