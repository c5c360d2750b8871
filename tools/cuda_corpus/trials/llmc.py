"""karpathy/llm.c: what trains, in train_gpt2_fp32.cu and llmc/."""

from __future__ import annotations

import numpy as np

from tools.cuda_corpus.spec import (
    FUSED,
    MATH,
    Agreement,
    Argument,
    Dims,
    Norm,
    Template,
    Trial,
    filled,
    integers,
    reals,
    result,
)

TRAINING = "llm.c/train_gpt2_fp32.cu"
B, T, C, NH, HS, V = 2, 16, 64, 4, 16, 50  # batch, time, channels, heads, head size, words
ROWS, ALL = B * T, B * T * C
SUMS = Norm(1e-5, "atomic sums come in any order")
ADAM = Norm(1e-5, "products and sums may be fused; roots and quotients follow")
NUMBERS = (1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01)  # of AdamW: rate, betas, corrections, …
TOKENS = integers(B, T, high=V)


def trial(
    kernel: str,
    *arguments: Argument,
    grid: Dims = 8,
    block: Dims = 256,
    shared: int = 0,
    agreement: Agreement = FUSED,
    file: str = TRAINING,
    template: tuple[Template, ...] = (),
    defines: tuple[str, ...] = (),
) -> Trial:
    """A kernel of files whose host code calls cuBLAS."""
    return Trial(
        file, kernel, grid, block, arguments, agreement, template, shared, strip=True,
        defines=defines,
    )  # fmt: skip


def heads(kernel: str, file: str = TRAINING, defines: tuple[str, ...] = ()) -> Trial:
    """One of the four kernels that permute queries, keys and values, there or back."""
    parts = (result(ALL), result(ALL), result(ALL))
    known = (reals(ALL), reals(ALL), reals(ALL))
    arguments: tuple[Argument, ...] = {
        "permute_kernel": (*parts, reals(3 * ALL)),
        "permute_kernel_backward": (reals(3 * ALL, output=True), *known),
        "unpermute_kernel": (reals(ALL), result(ALL)),
        "unpermute_kernel_backward": (reals(ALL, output=True), reals(ALL)),
    }[kernel]
    return trial(kernel, *arguments, B, T, NH, HS, file=file, defines=defines)


HEADS = (
    "permute_kernel", "permute_kernel_backward", "unpermute_kernel", "unpermute_kernel_backward",
)  # fmt: skip


def product(file: str) -> Trial:
    """256 x 64 by 64 x 128, with a bias."""
    return trial(
        "matmul_forward_kernel4", result(256, 128), reals(256, 64), reals(128, 64), reals(128), 64,
        128, grid=(2, 1), block=(16, 16), file=file,
    )  # fmt: skip


def encoder_gradient(kernel: str, file: str) -> Trial:
    """Gradients of embeddings, summed atomically."""
    return trial(
        kernel, filled(0, V, C), filled(0, T, C), reals(B, T, C), TOKENS, B, T, C, file=file,
        agreement=SUMS,
    )  # fmt: skip


_SINGLE = ("ENABLE_FP32",)


def _library(name: str, kernel: str, *arguments: Argument, **more: object) -> Trial:
    return trial(
        kernel, *arguments, file=f"llm.c/llmc/{name}.cuh", defines=_SINGLE,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


_SIZE, _STRIDE = np.uint64(300), np.int64(300)

TRIALS = (
    trial(
        "encoder_forward_kernel3", result(B, T, C), TOKENS, reals(V, C), reals(T, C), B, T, C,
        agreement=FUSED,
    ),
    encoder_gradient("encoder_backward_kernel", TRAINING),
    *(heads(kernel) for kernel in HEADS),
    trial("residual_forward_kernel", result(1000), reals(1000), reals(1000), 999),
    trial("gelu_forward_kernel", result(1000), reals(1000, low=-4, high=4), 999, agreement=MATH),
    trial(
        "gelu_backward_kernel", result(1000), reals(1000, low=-4, high=4), reals(1000), 999,
        agreement=MATH,
    ),
    trial(
        "matmul_backward_bias_kernel4", reals(128, output=True), reals(ROWS, 128), B, T, 128,
        grid=4, block=256, shared=1024,
    ),
    trial(
        "adamw_kernel2", reals(1000, output=True), reals(1000), reals(1000, output=True),
        reals(1000, low=0, output=True), np.int64(999), *NUMBERS, agreement=ADAM,
    ),
    product(TRAINING),
    _library(
        "adamw", "adamw_kernel3", reals(2, 300, output=True), reals(2, 300, output=True),
        reals(2, 300), reals(2, 300, output=True), reals(2, 300, low=0, output=True), _SIZE,
        _STRIDE, _STRIDE, _STRIDE, *NUMBERS, 0.5, np.uint32(7), grid=(2, 2), agreement=ADAM,
        template=(np.float32, np.float32),
    ),
    _library(
        "adamw", "init_from_master_kernel", result(2, 300), reals(2, 300), _SIZE, _STRIDE, _STRIDE,
        np.uint32(7), grid=(2, 2), template=(np.float32,),
    ),
    *(heads(kernel, "llm.c/llmc/attention.cuh", _SINGLE) for kernel in HEADS),
    _library(
        "attention", "softmax_forward_kernel5", result(6 * T, T), 0.25, reals(6 * T, T, high=4),
        6, T,
        grid=12, agreement=MATH,
    ),
    _library(
        "attention", "softmax_autoregressive_backward_inplace_kernel",
        reals(NH, T, T, output=True), reals(NH, T, T), B, T, C, 0.25, grid=(4, NH),
    ),
    _library(
        "cuda_utils", "copy_and_cast_kernel", result(2, 300), reals(2, 300), _SIZE, _STRIDE,
        _STRIDE, grid=(2, 2), template=(np.float32, np.float32),
    ),
    _library(
        "cuda_utils", "global_sum_single_block_kernel", result(1), reals(1000, low=0),
        np.uint64(999), grid=1, template=(np.float32,),
    ),
    _library(
        "global_norm", "global_norm_squared_kernel", filled(0.5, 2, 2), reals(2, 1000),
        np.uint64(999), np.int64(1000), grid=(2, 2), template=(np.float32,),
    ),
    _library(
        "global_norm", "global_norm_aggregate_kernel", reals(1000, low=0, output=True),
        np.uint64(999), grid=1, block=1024,
    ),
    _library(
        "layernorm", "layernorm_forward_kernel3", result(ROWS, C), result(ROWS), result(ROWS),
        reals(ROWS, C), reals(C), reals(C), ROWS, C, grid=4, agreement=MATH,
    ),
)  # fmt: skip
