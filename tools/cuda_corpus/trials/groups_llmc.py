"""karpathy/llm.c, beyond what was asked: kernels with cooperative groups and class templates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tools.cuda_corpus.spec import MATH, Argument, Dims, Trial, filled, integers, reals, result
from tools.cuda_corpus.trials.llmc import (
    NH,
    ROWS,
    SUMS,
    TOKENS,
    TRAINING,
    B,
    C,
    T,
    V,
    trial,
)
from tools.cuda_corpus.trials.llmc_development import BRAIN, BRAINS, FOLDER, PRELUDE

WORDS, PADDED = 48, 64  # whole groups of four: what is beyond the last word is stored unset
_SINGLE = ("ENABLE_FP32",)


def _dev(name: str, kernel: str, *arguments: Argument, **more: Any) -> Trial:
    return trial(kernel, *arguments, file=f"{FOLDER}/{name}.cu", **more)


def _brain(name: str, kernel: str, *arguments: Argument, **more: Any) -> Trial:
    found = _dev(name, kernel, *arguments, **({"agreement": BRAINS} | more))
    return replace(found, prelude=PRELUDE)


def _library(name: str, kernel: str, *arguments: Argument, **more: Any) -> Trial:
    return trial(kernel, *arguments, file=f"llm.c/llmc/{name}.cuh", defines=_SINGLE, **more)


def _softmax(file: str) -> Trial:
    return trial(
        "softmax_forward_kernel5", result(6 * T, T), 0.25, reals(6 * T, T, high=4), 6, T, grid=12,
        agreement=MATH, file=file,
    )  # fmt: skip


def _normalized(
    file: str, kernel: str, grid: Dims = 4, block: Dims = 256, shared: int = 0, **more: Any
) -> Trial:
    return trial(
        kernel, result(ROWS, C), result(ROWS), result(ROWS), reals(ROWS, C), reals(C), reals(C),
        ROWS, C, grid=grid, block=block, shared=shared, agreement=MATH, file=file, **more,
    )  # fmt: skip


def _normalized_back(
    number: int, *scratch: Argument, after: tuple[Argument, ...] = (), grid: int = 2, shared: int
) -> Trial:
    return _dev(
        "layernorm_backward", f"layernorm_backward_kernel{number}", reals(ROWS, C, output=True),
        reals(C, output=True), reals(C, output=True), *scratch, reals(ROWS, C), reals(ROWS, C),
        reals(C), reals(ROWS), reals(ROWS, low=0.5), B, T, C, *after, grid=grid, shared=shared,
        template=(np.float32,) * 4, agreement=SUMS,
    )  # fmt: skip


def _attention_back(kernel: str, *last: Argument, grid: Dims, **more: Any) -> Trial:
    """Gradients of attention, of which what is not looked at stays zero."""
    return trial(
        kernel, filled(0, B * NH, T, T), reals(B * NH, T, T), reals(B * NH, T, T, low=0), B, T, C,
        *last, grid=grid, **more,
    )  # fmt: skip


def _classified(
    file: str, kernel: str, *, inplace: bool = False, grid: int = ROWS, **more: Any
) -> Trial:
    logits = reals(ROWS, PADDED, low=-3, high=3, output=inplace)
    gradients = () if inplace else (filled(0, ROWS, PADDED),)
    probabilities: tuple[Argument, ...] = () if kernel.endswith("1") else (None,)
    known = (reals(ROWS), integers(B, T, high=WORDS), B, T, WORDS, PADDED)
    before = (logits, result(ROWS), *probabilities)
    outside = (*gradients, result(ROWS), *probabilities, logits)
    return trial(
        kernel, *(before if inplace else outside), *known, grid=grid, agreement=MATH, file=file,
        **more,
    )  # fmt: skip


_BACK = f"{FOLDER}/attention_backward.cu"
_FORWARD = f"{FOLDER}/attention_forward.cu"
_CLASSIFIER = f"{FOLDER}/classifier_fused.cu"
_NORMS = f"{FOLDER}/layernorm_forward.cu"

_GROUPS = (
    _normalized(TRAINING, "layernorm_forward_kernel3"),
    _softmax(TRAINING),
    trial(
        "layernorm_backward_kernel2", reals(ROWS, C, output=True), reals(C, output=True),
        reals(C, output=True), reals(ROWS, C), reals(ROWS, C), reals(C), reals(ROWS),
        reals(ROWS, low=0.5), B, T, C, grid=4, shared=512, agreement=SUMS,
    ),
    _attention_back("softmax_autoregressive_backward_kernel", 0.25, grid=(T // 4, B * NH)),
    _classified(TRAINING, "fused_classifier_kernel3", inplace=True),
    _softmax(_BACK),
    _attention_back(
        "softmax_autoregressive_backward_kernel3", NH, grid=(2, B * NH), file=_BACK
    ),
    *(
        _attention_back(
            f"softmax_autoregressive_backward_kernel{number}", NH, grid=(1, B * NH), block=64,
            file=_BACK,
        )
        for number in (4, 5)
    ),
    _dev(  # as wide as its blocks, which write whole rows
        "attention_backward", "softmax_autoregressive_backward_kernel6", filled(0, 2, 64, 64),
        reals(2, 64, 64), reals(2, 64, 64, low=0), 1, 64, 32, 2, grid=(64, 2), block=64,
        template=(64,),
    ),
    _attention_back(
        "softmax_autoregressive_backward_kernel7", 0.25, grid=(T, B * NH), block=64,
        template=(64,), file=_BACK,
    ),
    _attention_back(
        "softmax_autoregressive_backward_kernel8", 0.25, grid=(T // 4, B * NH), block=64,
        template=(64,), file=_BACK,
    ),
    _softmax(_FORWARD),
    Trial(
        _FORWARD, "attention_forward_fused1",
        impossible="it reads what other threads of its warp wrote, without waiting for them",
    ),
    _dev(
        "attention_forward", "softmax_forward_kernel5_lowp", result(6 * T, T, dtype=BRAIN), 0.25,
        reals(6 * T, T, high=4, dtype=BRAIN), 6, T, grid=12, agreement=BRAINS,
    ),
    _classified(_CLASSIFIER, "fused_classifier_kernel1", grid=4),
    _classified(_CLASSIFIER, "fused_classifier_kernel2"),
    _classified(_CLASSIFIER, "fused_classifier_kernel3"),
    *(
        _dev(
            "global_norm", kernel, filled(0, 1), reals(1000), np.uint64(999), grid=2,
            template=(np.float32,), agreement=SUMS,
        )
        for kernel in ("norm_kernel1", "norm_kernel2")
    ),
    _normalized_back(2, after=(filled(0, C), filled(0, C)), grid=4, shared=512),
    _normalized_back(3, shared=512),
    _normalized_back(4, shared=512),
    *(
        _normalized_back(number, filled(0, 2 * C + 1, output=False), grid=1, shared=516)
        for number in (5, 6)
    ),
    _normalized(_NORMS, "layernorm_forward_kernel3"),
    _normalized(_NORMS, "layernorm_forward_kernel4"),
    _normalized(_NORMS, "layernorm_forward_kernel5", grid=ROWS, block=64),
    *(
        _brain(
            "matmul_backward_bias", kernel, reals(100, dtype=BRAIN, output=True),
            reals(ROWS, 100, dtype=BRAIN), B, T, 100, grid=grid,
        )
        for kernel, grid in (
            ("matmul_backward_bias_kernel2", 13), ("matmul_backward_bias_kernel3", 100),
        )
    ),
    _dev(
        "softmax_forward", "softmax_forward_online_kernel2", result(12, 300),
        reals(12, 300, low=-5, high=5), 12, 300, grid=2, agreement=MATH,
    ),
)  # fmt: skip

# --- class templates: 128 bits at a time ---------------------------------------------------------

_INPUTS = (reals(1000, low=-4, high=4, dtype=BRAIN), reals(1000, dtype=BRAIN))
_FUSED_ROWS = (
    result(ROWS, C, dtype=BRAIN), result(ROWS, C, dtype=BRAIN), result(ROWS, dtype=BRAIN),
    result(ROWS, dtype=BRAIN), reals(ROWS, C, dtype=BRAIN), reals(ROWS, C, dtype=BRAIN),
    reals(C, dtype=BRAIN), reals(C, dtype=BRAIN), ROWS, C,
)  # fmt: skip


_WIDE = (
    _brain("gelu_forward", "gelu_forward_kernel2", result(1000, dtype=BRAIN), _INPUTS[0], 1000),
    _brain("gelu_backward", "gelu_backward2", result(1000, dtype=BRAIN), *_INPUTS, 1000),
    _brain(
        "residual_forward", "residual_forward_kernel2", result(1000, dtype=BRAIN), *_INPUTS, 1000
    ),
    _brain(
        "encoder_forward", "encoder_forward_kernel3", result(B, T, C, dtype=BRAIN), TOKENS,
        reals(V, C, dtype=BRAIN), reals(T, C, dtype=BRAIN), B, T, C, grid=1,
    ),
    _brain(
        "fused_residual_forward", "fused_residual_forward_kernel4", *_FUSED_ROWS, grid=4,
        block=(32, 8),
    ),
    _brain(
        "fused_residual_forward", "fused_residual_forward_kernel5", *_FUSED_ROWS, grid=4,
        block=(32, 8), shared=1280,
    ),
    _classified(_CLASSIFIER, "fused_classifier_kernel4"),
    _classified(_CLASSIFIER, "fused_classifier_kernel5", template=(True, False)),
    _normalized(_NORMS, "layernorm_forward_kernel6", block=(32, 8), shared=2560),
    _library(
        "gelu", "gelu_forward_kernel2", result(1024), reals(1024, low=-4, high=4), grid=1,
        agreement=MATH,
    ),
    _library(
        "gelu", "gelu_backward_inplace_kernel", reals(1024, output=True),
        reals(1024, low=-4, high=4), grid=1, agreement=MATH,
    ),
    _library(
        "encoder", "encoder_forward_kernel3", result(B, T, C), TOKENS, reals(V, C), reals(T, C), B,
        T, C, grid=2,
    ),
    _library(
        "layernorm", "residual_forward_kernel", result(1024), reals(1024), reals(1024), grid=1
    ),
    _normalized(
        "llm.c/llmc/layernorm.cuh", "layernorm_forward_kernel6", block=(32, 8), shared=2560,
        defines=_SINGLE,
    ),
    _library(
        "layernorm", "fused_residual_forward_kernel5", result(ROWS, C), result(ROWS, C),
        result(ROWS), result(ROWS), reals(ROWS, C), reals(ROWS, C), reals(C), reals(C), ROWS, C,
        grid=4, block=(32, 8), shared=2560, agreement=MATH,
    ),
    _library(
        "matmul", "reduce_add_sum_kernel", reals(128, output=True), reals(3, 128), np.uint64(128),
        np.uint64(3), grid=1,
    ),
)  # fmt: skip

TRIALS = (*_GROUPS, *_WIDE)
