"""Beyond what was asked: inline PTX, tensor cores, asynchronous copies, sums by warps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tools.cuda_corpus.spec import (
    FUSED,
    HALVES,
    Array,
    Norm,
    Template,
    Trial,
    filled,
    integers,
    reals,
    result,
)
from tools.cuda_corpus.trials.llmc import TOKENS, B, C, T, trial
from tools.cuda_corpus.trials.llmc_development import BRAIN, FOLDER, PRELUDE

SAMPLES = "cuda-samples/Samples"
CONCEPTS, FEATURES = f"{SAMPLES}/2_Concepts_and_Techniques", f"{SAMPLES}/3_CUDA_Features"
_u = np.uint32

# --- inline PTX ----------------------------------------------------------------------------------

_PTX = tuple(
    Trial(
        f"{CONCEPTS}/{file}", "sequence_gpu", grid=4, block=256,
        arguments=(result(1000, dtype=np.int32), 1000),
    )
    for file in ("inlinePTX/inlinePTX.cu", "inlinePTX_nvrtc/inlinePTX_kernel.cu")
)  # fmt: skip

# --- tensor cores, asynchronous copies -----------------------------------------------------------

_N = 64
_TENSOR_FLOATS = Norm(2e-3, "tensor cores take floats of 10 bits, in sums of another order")


def _tensors(name: str, kernel: str, dtype: Any, out: Any = np.float32, **more: Any) -> Trial:
    """Products of 64 x 64, the blocks of four warps by four."""
    if out is np.int32:
        inputs: tuple[Array, ...] = (integers(_N, _N, high=256, dtype=dtype),) * 2
        added, factors = integers(_N, _N), (3, 2)
    else:
        inputs, added = (reals(_N, _N, dtype=dtype),) * 2, reals(_N, _N)
        factors = (1.25, 0.5)  # type: ignore[assignment]
    return Trial(
        f"{FEATURES}/{name}/{name}.cu", kernel, block=(128, 4),
        arguments=(*inputs, added, result(_N, _N, dtype=out), _N, _N, _N, *factors), **more,
    )  # fmt: skip


_TENSORS = (
    _tensors("cudaTensorCoreGemm", "simple_wmma_gemm", np.float16, agreement=HALVES),
    _tensors("bf16TensorCoreGemm", "simple_wmma_bf16gemm", BRAIN, agreement=HALVES),
    _tensors("tf32TensorCoreGemm", "simple_wmma_tf32gemm", np.float32, agreement=_TENSOR_FLOATS),
    _tensors("immaTensorCoreGemm", "simple_wmma_gemm_imma", np.uint8, np.int32),
)

_COPIES = tuple(
    Trial(
        f"{FEATURES}/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu",
        f"MatrixMulAsyncCopy{kind}", grid=(4, 4), block=(16, 16), template=(16,), agreement=FUSED,
        arguments=(result(_N, _N), reals(_N, _N), reals(_N, _N), _N, _N),
    )
    for kind in ("SingleStage", "MultiStage", "LargeChunk", "MultiStageLargeChunk")
)  # fmt: skip

# --- llm.c ---------------------------------------------------------------------------------------

_BIAS, _CHANNELS = f"{FOLDER}/matmul_backward_bias.cu", 256
_SINGLE = ("ENABLE_FP32",)


def _bias(kernel: str, out: Array, *after: Any, template: tuple[Template, ...] = ()) -> Trial:
    """Sums of 4 x 16 rows, the channels of two blocks."""
    shape = {"grid": (1, 2), "block": (32, 8), "shared": 1024}
    if template:
        shape = {"grid": (4, 2), "block": (4, 8, 8), "shared": 0}
    found = trial(
        kernel, out, reals(4, 16, _CHANNELS, dtype=BRAIN), 4, 16, _CHANNELS, *after, file=_BIAS,
        template=template, **shape,  # type: ignore[arg-type]
    )  # fmt: skip
    return replace(found, prelude=PRELUDE)


_SUMS = (
    _bias("matmul_backward_bias_kernel7", filled(0, _CHANNELS), 256),
    trial(
        "wpe_backward_kernel", reals(T, C, output=True), reals(B, T, C), TOKENS, B, T, C, _u(7),
        grid=2, file="llm.c/llmc/encoder.cuh", defines=_SINGLE,
    ),
)  # fmt: skip

TRIALS = (*_PTX, *_TENSORS, *_COPIES, *_SUMS)
