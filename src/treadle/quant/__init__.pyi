# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Quantized weights: ggml's block formats, and products straight from the blocks.

`quantize` makes a `QuantizedTensor` of numbers, `td.load_gguf` opens files of them.
"""

from treadle.quant.blocks import BlockFormat as BlockFormat
from treadle.quant.gguf_files import Gguf as Gguf
from treadle.quant.matrix import QuantizedTensor as QuantizedTensor
from treadle.quant.quantizing import formats as formats
from treadle.quant.quantizing import quantize as quantize

__all__ = [
    "BlockFormat",
    "Gguf",
    "QuantizedTensor",
    "formats",
    "quantize",
]
