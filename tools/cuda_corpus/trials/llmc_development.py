"""karpathy/llm.c: the variants of each kernel under dev/cuda."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from tools.cuda_corpus.spec import (
    FAST,
    FUSED,
    MATH,
    Agreement,
    Argument,
    Dims,
    Exact,
    Norm,
    Template,
    Trial,
    filled,
    reals,
    result,
)
from tools.cuda_corpus.trials.llmc import (
    ADAM,
    ALL,
    HEADS,
    HS,
    NH,
    NUMBERS,
    ROWS,
    SUMS,
    TOKENS,
    B,
    C,
    T,
    V,
    encoder_gradient,
    heads,
    product,
    trial,
)

FOLDER = "llm.c/dev/cuda"
BRAIN = ml_dtypes.bfloat16


def _dev(
    name: str,
    kernel: str,
    *arguments: Argument,
    grid: Dims = 8,
    block: Dims = 256,
    shared: int = 0,
    agreement: Agreement = FUSED,
    template: tuple[Template, ...] = (),
) -> Trial:
    return trial(
        kernel, *arguments, grid=grid, block=block, shared=shared, agreement=agreement,
        template=template, file=f"{FOLDER}/{name}.cu",
    )  # fmt: skip


PRELUDE = "#include <cuda_bf16.h>"  # which cuBLAS' header includes
BRAINS = Norm(1e-2, "bfloat16 has 8 bits")


def _brain(name: str, kernel: str, *arguments: Argument, **more: Any) -> Trial:
    """A kernel whose `floatX` is bfloat16."""
    found = _dev(name, kernel, *arguments, **({"agreement": BRAINS} | more))
    return replace(found, prelude=PRELUDE)


_ATTENTION = reals(B * NH, T, T, low=0)
_LOGITS = reals(12, 300, low=-5, high=5)


def _softmax(kernel: str, grid: Dims, block: Dims, shared: int = 0) -> Trial:
    """Of 12 rows of 300."""
    return _dev(
        "softmax_forward", kernel, result(12, 300), _LOGITS, 12, 300, grid=grid, block=block,
        shared=shared, agreement=MATH,
    )  # fmt: skip


def _adam(kernel: str) -> Trial:
    return _dev(
        "adamw", kernel, reals(1000, output=True), reals(1000), reals(1000, output=True),
        reals(1000, low=0, output=True), np.int64(999), *NUMBERS, agreement=ADAM,
    )  # fmt: skip


def _residual(name: str) -> Trial:
    inputs = reals(1000, dtype=BRAIN), reals(1000, dtype=BRAIN)
    return _brain(name, "residual_forward_kernel1", result(1000, dtype=BRAIN), *inputs, 999)


_NORMALIZED = (result(ROWS, C), result(ROWS), result(ROWS))
_WEIGHTS = (reals(C), reals(C))
# The kernels look whether a row is beyond the last with > instead of >=: there is one more row.
_FUSED_ROWS = (
    result(ROWS + 1, C, dtype=BRAIN), result(ROWS + 1, C, dtype=BRAIN),
    result(ROWS + 1, dtype=BRAIN), result(ROWS + 1, dtype=BRAIN), reals(ROWS + 1, C, dtype=BRAIN),
    reals(ROWS + 1, C, dtype=BRAIN), reals(C, dtype=BRAIN), reals(C, dtype=BRAIN), ROWS, C,
)  # fmt: skip
_BACKWARD = (reals(ROWS, C), reals(ROWS, C), reals(C), reals(ROWS), reals(ROWS, low=0.5), B, T, C)

_ATTENTION_TRIALS = (
    *(heads(kernel, f"{FOLDER}/attention_backward.cu") for kernel in HEADS),
    _dev(
        "attention_backward", "softmax_autoregressive_backward_kernel1", filled(0, B * NH, T, T),
        reals(B * NH, T, T), _ATTENTION, B, T, C, NH, grid=1, block=32,
    ),
    _dev(
        "attention_backward", "softmax_autoregressive_backward_kernel2", filled(0, B * NH, T, T),
        reals(B * NH, T, T), _ATTENTION, B, T, C, NH, grid=(1, B * NH), block=32,
    ),
    _dev(
        "attention_forward", "attention_query_key_kernel1", result(B * NH, T, T), reals(3 * ALL), B,
        T, C, NH,
    ),
    _dev(
        "attention_forward", "attention_softmax_kernel1", result(B * NH, T, T), _ATTENTION, B, T,
        NH,
        grid=1, agreement=MATH,
    ),
    _dev(
        "attention_forward", "softmax_forward_kernel4", result(12, 300), _LOGITS, 12, 300, grid=12,
        block=128, shared=32, agreement=MATH,
    ),
    _dev(
        "attention_forward", "attention_value_kernel1", result(B, T, C), _ATTENTION, reals(3 * ALL),
        B, T, C, NH, grid=1,
    ),
    # Of 64 positions, in tiles of 32, heads of 16.
    _dev(
        "attention_forward", "attention_forward_kernel2", reals(B * NH, 64, 16),
        reals(B * NH, 64, 16),
        reals(B * NH, 64, 16), 64, 16, 2, 2, 32, 32, 0.25, filled(0, B * NH, 64),
        filled(-np.inf, B * NH, 64), filled(0, B * NH, 64, 16), grid=(B, NH), block=32,
        shared=4 * (3 * 32 * 16 + 32 * 32), agreement=FAST,
    ),
    *(
        heads(kernel, f"{FOLDER}/attention_forward.cu")
        for kernel in ("permute_kernel", "unpermute_kernel")
    ),
    _dev(
        "attention_forward", "scale_kernel", reals(B * NH, T, T, output=True), 0.25, B, NH, T,
    ),
    _dev(
        "attention_forward", "permute_kernel_lowp", result(ALL, dtype=BRAIN),
        result(ALL, dtype=BRAIN),
        result(ALL, dtype=BRAIN), reals(3 * ALL), B, T, NH, HS, agreement=Exact(),
    ),
    _dev(
        "attention_forward", "unpermute_kernel_lowp", reals(ALL, dtype=BRAIN), result(ALL), B, T,
        NH,
        HS, agreement=Exact(),
    ),
)  # fmt: skip

_NORMS = (
    _dev(
        "layernorm_forward", "layernorm_forward_kernel1", *_NORMALIZED, reals(ROWS, C), *_WEIGHTS,
        ROWS, C, grid=1,
    ),
    _brain(
        "fused_residual_forward", "layernorm_forward_kernel1", result(ROWS, C, dtype=BRAIN),
        result(ROWS, dtype=BRAIN), result(ROWS, dtype=BRAIN), reals(ROWS, C, dtype=BRAIN),
        reals(C, dtype=BRAIN), reals(C, dtype=BRAIN), ROWS, C, grid=1,
    ),
    _brain("fused_residual_forward", "fused_residual_forward2", *_FUSED_ROWS, grid=1, block=33),
    _brain(
        "fused_residual_forward", "fused_residual_forward3", *_FUSED_ROWS, grid=4, block=(32, 8)
    ),
    _dev(
        "layernorm_forward", "mean_kernel", result(ROWS), reals(ROWS, C, low=0), ROWS, C, 32,
        grid=ROWS, block=32, shared=128,
    ),
    _dev(
        "layernorm_forward", "rstd_kernel", result(ROWS), reals(ROWS, C), reals(ROWS), ROWS, C, 32,
        grid=ROWS, block=32, shared=128,
    ),
    _dev(
        "layernorm_forward", "normalization_kernel", result(ROWS, C), reals(ROWS, C), reals(ROWS),
        reals(ROWS, low=0.5), *_WEIGHTS, B, T, C,
    ),
    _dev(
        "layernorm_backward", "layernorm_backward_kernel1", reals(ROWS, C, output=True),
        reals(C, output=True), reals(C, output=True), *_BACKWARD, grid=1, agreement=SUMS,
    ),
    _dev(
        "layernorm_backward", "copy_to_dweight_dbias", C, result(C), result(C), reals(C), reals(C),
        grid=1, block=32, template=(np.float32,),
    ),
    _brain(
        "layernorm_backward", "layernorm_backward_kernel7",
        reals(ROWS, C, dtype=BRAIN, output=True), result(C, dtype=BRAIN), result(C, dtype=BRAIN),
        filled(0, 2 * C + 1, output=False), reals(ROWS, C, dtype=BRAIN),
        reals(ROWS, C, dtype=BRAIN), reals(C, dtype=BRAIN), reals(ROWS, dtype=BRAIN),
        reals(ROWS, low=0.5, dtype=BRAIN), B, T, C, grid=1, block=128, shared=4 * (2 * C + 1),
    ),
    _dev(
        "global_norm", "norm_kernel3", filled(0, 1), reals(1000), np.uint64(999), grid=2,
        template=(np.float32,), agreement=SUMS,
    ),
    _dev(
        "global_norm", "norm_kernel4", result(2), reals(1000), np.uint64(999), grid=2,
        template=(np.float32,),
    ),
    _dev(
        "global_norm", "global_norm_aggregate_kernel", reals(1000, low=0, output=True),
        np.uint64(999), grid=1, block=1024,
    ),
)  # fmt: skip

_PRODUCTS = (
    _dev(
        "matmul_backward", "matmul_backward_bias_kernel_naive", result(100), reals(ROWS, 100), B, T,
        100, grid=1,
    ),
    _dev(
        "matmul_backward", "matmul_backward_bias_kernel_faster", result(100), reals(ROWS, 100), B,
        T,
        100, grid=100, block=32, shared=128,
    ),
    _brain(
        "matmul_backward_bias", "matmul_backward_bias_kernel1",
        reals(100, dtype=BRAIN, output=True), reals(ROWS, 100, dtype=BRAIN), B, T, 100, grid=100,
        block=32, shared=128,
    ),
    _brain(
        "matmul_backward_bias", "matmul_backward_bias_kernel4",
        reals(128, dtype=BRAIN, output=True), reals(ROWS, 128, dtype=BRAIN), B, T, 128, grid=4,
        block=256, shared=1024,
    ),
    _brain(
        "matmul_backward_bias", "cast_and_add_kernel", reals(1000, dtype=BRAIN, output=True),
        reals(1000),
        np.uint64(999), grid=4,
    ),
    _dev(
        "matmul_forward", "matmul_forward_kernel1", result(ROWS, 50), reals(ROWS, C), reals(50, C),
        reals(50), ROWS, C, 50, grid=(2, 4), block=(16, 16),
    ),
    _dev(
        "matmul_forward", "add_bias", reals(ROWS, 100, output=True), reals(100), B, T, 100, grid=2
    ),
    product(f"{FOLDER}/matmul_forward.cu"),
    *(
        _dev(
            "trimat_forward", "trimul_global", result(2, 256, 256), reals(256, 3, 2, 64), 256, 128,
            2, grid=(2, 2, 2), block=(16, 16), template=(function,),
        )
        for function in (
            "matmul_tri_naive", "matmul_tri_registers", "matmul_tri3", "matmul_tri4",
        )
    ),
)  # fmt: skip

_OTHERS = (
    _adam("adamw_kernel1"),
    _adam("adamw_kernel2"),
    _dev(
        "crossentropy_forward", "crossentropy_forward_kernel1", result(ROWS),
        reals(ROWS, V, low=0.01), TOKENS, B, T, V, grid=1, agreement=MATH,
    ),
    _dev(
        "crossentropy_softmax_backward", "crossentropy_softmax_backward_kernel1",
        reals(ROWS, V, output=True), reals(ROWS), reals(ROWS, V, low=0), TOKENS, B, T, V,
    ),
    encoder_gradient("encoder_backward_kernel1", f"{FOLDER}/encoder_backward.cu"),
    encoder_gradient("encoder_backward_kernel2", f"{FOLDER}/encoder_backward.cu"),
    *(
        _brain(
            "encoder_forward", kernel, result(B, T, C, dtype=BRAIN), TOKENS,
            reals(V, C, dtype=BRAIN), reals(T, C, dtype=BRAIN), B, T, C,
        )
        for kernel in ("encoder_forward_kernel1", "encoder_forward_kernel2")
    ),
    _residual("fused_residual_forward"),
    _residual("residual_forward"),
    _brain(
        "gelu_backward", "gelu_backward1", result(1000, dtype=BRAIN),
        reals(1000, low=-4, high=4, dtype=BRAIN), reals(1000, dtype=BRAIN), 999,
    ),
    _brain(
        "gelu_forward", "gelu_forward_kernel1", result(1000, dtype=BRAIN),
        reals(1000, low=-4, high=4, dtype=BRAIN), 999,
    ),
    _dev("nccl_all_reduce", "set_vector", result(1000), 999, 2.5, grid=4),
    _dev(
        "permute", "permute_kernel", reals(2, 3, 5, 7), result(210), 2, 3, 5, 7, grid=1
    ),
    _softmax("softmax_forward_kernel1", 1, 32),
    _softmax("softmax_forward_kernel2", 12, 128, 512),
    _softmax("softmax_forward_kernel3", 12, 32, 128),
    _softmax("softmax_forward_kernel4", 12, 128, 16),
    _softmax("softmax_forward_online_kernel1", 1, 32),
    _softmax("softmax_forward_kernel7", 12, 128, 32),
    _softmax("softmax_forward_online_kernel8", 3, 128),
    heads("permute_kernel", f"{FOLDER}/trimat_forward.cu"),
)  # fmt: skip

TRIALS = (*_ATTENTION_TRIALS, *_NORMS, *_PRODUCTS, *_OTHERS)
