"""NVIDIA's samples: 0_Introduction."""

from __future__ import annotations

import numpy as np

from tools.cuda_corpus.spec import (
    FUSED,
    HALVES,
    MATH,
    Argument,
    Holds,
    NumPy,
    Printed,
    Trial,
    filled,
    given,
    integers,
    made,
    reals,
    result,
)

FOLDER = "cuda-samples/Samples/0_Introduction"


def _vector_add(file: str, kernel: str) -> Trial:
    count = 1000
    arguments = (reals(count), reals(count), result(count), count)
    return Trial(f"{FOLDER}/{file}", kernel, grid=4, block=256, arguments=arguments)


def _product(file: str, kernel: str, tile: int, integer: type[np.generic] | None = None) -> Trial:
    """Tiled products, of 64 x 64 by 64 x 96."""
    sizes: tuple[Argument, ...] = (64, 96) if integer is None else (integer(64), integer(96))
    return Trial(
        f"{FOLDER}/{file}", kernel, grid=(96 // tile, 64 // tile), block=(tile, tile),
        arguments=(result(64, 96), reals(64, 64), reals(64, 96), *sizes), agreement=FUSED,
        template=(tile,) if kernel == "MatrixMulCUDA" else (),
    )  # fmt: skip


def _timed_minima(file: str) -> Trial:
    return Trial(
        f"{FOLDER}/{file}", "timedReduction", grid=4, block=256, shared=2048,
        arguments=(reals(512), result(4), filled(0, 8, dtype=np.int64, output=False)),
    )  # fmt: skip


def _scalar_product(kernel: str) -> Trial:
    return Trial(
        f"{FOLDER}/fp16ScalarProduct/fp16ScalarProduct.cu", kernel, grid=128, block=128,
        arguments=(
            reals(2048, 2, dtype=np.float16), reals(2048, 2, dtype=np.float16), result(128),
            np.uint64(2048),
        ),
        agreement=HALVES,
    )  # fmt: skip


# --- atomics of a warp: what is not the same in every run must be one of the threads' numbers -----

_ATOMICS_START = np.array([0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 255], np.int32)
_SYSTEM_START = np.array([0, 0, 0, 0, 0, 0, 0, 255, 0, 255], np.int32)
_ANDED = int(np.bitwise_and.reduce(2 * np.arange(32) + 7)) & 255


def _atomics_hold(outputs: list[NumPy]) -> bool:
    found = outputs[0].tolist()
    expected = [320, -320, found[2], 31, 0, 32 % 18, 138 - 32, found[7], _ANDED, -1, 255]
    return bool(found == expected and 0 <= found[2] < 32 and 0 <= found[7] < 32)


def _system_atomics_hold(outputs: list[NumPy]) -> bool:
    found = outputs[0].tolist()
    count = 50 * 32
    expected = [10 * count, found[1], 31, 0, count % 18, 138 - count % 138, found[6], _ANDED, -1]
    return bool(found == [*expected, 255] and 0 <= found[1] < 32 and 0 <= found[6] < 32)


_RACES = "which thread exchanges last is not said"


def _atomics(file: str, unit: str = "") -> Trial:
    return Trial(
        f"{FOLDER}/{file}", "testKernel", block=32, unit=unit and f"{FOLDER}/{unit}",
        arguments=(given(_ATOMICS_START, output=True),), agreement=Holds(_atomics_hold, _RACES),
    )  # fmt: skip


# --- merge sort: ranks of samples, one of 128 elements --------------------------------------------


def _segments(rng: np.random.Generator) -> NumPy:
    """4096 keys, sorted in segments of 1024."""
    return np.sort(rng.integers(0, 1 << 20, (4, 1024)), axis=1).astype(np.uint32)


def _ranks(rng: np.random.Generator) -> NumPy:
    """Sorted ranks of the samples of four segments."""
    return np.sort(rng.integers(0, 1024, (4, 8)), axis=1).astype(np.uint32)


_WARPS = [0] * 32 + [0, 1] * 16 + [5] * 32 + [0] * 31 + [1]
_VOTES = f"{FOLDER}/simpleVoteIntrinsics"
_SPIN = Holds(lambda outputs: int(outputs[0][0]) >= 1000, "it counts at least so many ticks")

TRIALS = (
    Trial(
        f"{FOLDER}/asyncAPI/asyncAPI.cu", "increment_kernel", grid=8, block=512,
        arguments=(integers(4096, output=True), 26),
    ),
    _timed_minima("clock/clock.cu"),
    _timed_minima("clock_nvrtc/clock_kernel.cu"),
    Trial(
        f"{FOLDER}/cudaOpenMP/cudaOpenMP.cu", "kernelAddConstant", grid=8, block=128,
        arguments=(integers(1024, output=True), 3),
    ),
    _scalar_product("scalarProductKernel_intrinsics"),
    _scalar_product("scalarProductKernel_native"),
    _product("matrixMul/matrixMul.cu", "MatrixMulCUDA", 16),
    _product("matrixMulDrv/matrixMul_kernel.cu", "matrixMul_bs8_64bit", 8, np.uint64),
    _product("matrixMulDrv/matrixMul_kernel.cu", "matrixMul_bs16_64bit", 16, np.uint64),
    _product("matrixMulDrv/matrixMul_kernel.cu", "matrixMul_bs32_64bit", 32, np.uint64),
    Trial(
        f"{FOLDER}/mergeSort/mergeSort.cu", "generateSampleRanksKernel", block=256,
        template=(np.uint32(1),),
        arguments=(
            result(32, dtype=np.uint32), result(32, dtype=np.uint32), made(_segments),
            np.uint32(1024), np.uint32(4096), np.uint32(16),
        ),
    ),
    Trial(
        f"{FOLDER}/mergeSort/mergeSort.cu", "mergeRanksAndIndicesKernel", block=256,
        arguments=(
            result(32, dtype=np.uint32), made(_ranks), np.uint32(1024), np.uint32(4096),
            np.uint32(16),
        ),
    ),
    Trial(f"{FOLDER}/simpleAssert/simpleAssert.cu", "testKernel", 2, 32, arguments=(64,)),
    Trial(
        f"{FOLDER}/simpleAssert_nvrtc/simpleAssert_kernel.cu", "testKernel", 2, 32, arguments=(64,)
    ),
    _atomics(
        "simpleAtomicIntrinsics/simpleAtomicIntrinsics_kernel.cuh",
        "simpleAtomicIntrinsics/simpleAtomicIntrinsics.cu",
    ),
    _atomics("simpleAtomicIntrinsics_nvrtc/simpleAtomicIntrinsics_kernel.cuh"),
    # The sample's threads race on purpose; of zeros the sums are zero all the same.
    Trial(
        f"{FOLDER}/simpleAttributes/simpleAttributes.cu", "kernCacheSegmentTest", grid=2, block=64,
        arguments=(
            filled(0, 1024, dtype=np.int32), 1024, filled(0, 4096, dtype=np.int32), 4096, 50,
        ),
    ),
    Trial(
        f"{FOLDER}/simpleCUDA2GL/simpleCUDA2GL.cu", "cudaProcess", grid=(4, 4), block=(16, 16),
        arguments=(result(64, 64, dtype=np.uint32), 64),
    ),
    Trial(
        f"{FOLDER}/simpleCallback/simpleCallback.cu", "incKernel", grid=4, block=256,
        arguments=(integers(1000, output=True), 999),
    ),
    _vector_add("simpleDrvRuntime/vectorAdd_kernel.cu", "VecAdd_kernel"),
    *(
        Trial(
            f"{FOLDER}/simpleHyperQ/simpleHyperQ.cu", kernel, agreement=_SPIN,
            arguments=(filled(0, 1, dtype=np.int64), np.int64(1000)),
        )
        for kernel in ("kernel_A", "kernel_B")
    ),
    Trial(
        f"{FOLDER}/simpleIPC/simpleIPC.cu", "simpleKernel", grid=2, block=128,
        arguments=(result(1000, dtype=np.int8), 999, np.int8(5)),
    ),
    Trial(
        f"{FOLDER}/simpleMPI/simpleMPI.cu", "simpleMPIKernel", grid=4, block=256, strip=True,
        arguments=(reals(1024, low=0), result(1024)), agreement=MATH,
    ),
    Trial(
        f"{FOLDER}/simpleMultiCopy/simpleMultiCopy.cu", "incKernel", grid=4, block=256,
        arguments=(result(1000, dtype=np.int32), integers(1000), 999, 3),
    ),
    Trial(
        f"{FOLDER}/simpleMultiGPU/simpleMultiGPU.cu", "reduceKernel", grid=2, block=128,
        arguments=(result(256), reals(5000), 5000), agreement=FUSED,
    ),
    Trial(
        f"{FOLDER}/simpleOccupancy/simpleOccupancy.cu", "square", grid=4, block=256,
        arguments=(integers(1000, output=True), 999),
    ),
    Trial(
        f"{FOLDER}/simpleP2P/simpleP2P.cu", "SimpleKernel", grid=4, block=256,
        arguments=(reals(1024), result(1024)),
    ),
    Trial(
        f"{FOLDER}/simplePrintf/simplePrintf.cu", "testKernel", grid=(2, 2), block=(2, 2, 2),
        arguments=(10,), agreement=Printed(),
    ),
    Trial(
        f"{FOLDER}/simpleStreams/simpleStreams.cu", "init_array", grid=4, block=256,
        arguments=(integers(1024, output=True), given([7]), 5),
    ),
    *(
        Trial(
            f"{_VOTES}/simpleVote_kernel.cuh", kernel, block=128,
            unit=f"{_VOTES}/simpleVoteIntrinsics.cu",
            arguments=(
                given(_WARPS, np.uint32), result(128, dtype=np.uint32), 128,
            ),
        )
        for kernel in ("VoteAnyKernel1", "VoteAllKernel2")
    ),
    Trial(
        f"{_VOTES}/simpleVote_kernel.cuh", "VoteAnyKernel3", block=96,
        unit=f"{_VOTES}/simpleVoteIntrinsics.cu",
        arguments=(filled(False, 288, dtype=np.bool_), 32),
    ),
    _vector_add("simpleZeroCopy/simpleZeroCopy.cu", "vectorAddGPU"),
    Trial(
        f"{FOLDER}/systemWideAtomics/systemWideAtomics.cu", "atomicKernel", block=32,
        arguments=(given(_SYSTEM_START, output=True),),
        agreement=Holds(_system_atomics_hold, _RACES),
    ),
    Trial(
        f"{FOLDER}/template/template.cu", "testKernel", block=32, shared=128,
        arguments=(reals(32), result(32)),
    ),
    _vector_add("vectorAdd/vectorAdd.cu", "vectorAdd"),
    _vector_add("vectorAddDrv/vectorAdd_kernel.cu", "VecAdd_kernel"),
    _vector_add("vectorAddMMAP/vectorAdd_kernel.cu", "VecAdd_kernel"),
    _vector_add("vectorAdd_nvrtc/vectorAdd_kernel.cu", "vectorAdd"),
)  # fmt: skip
