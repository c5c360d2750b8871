"""NVIDIA's samples, beyond what was asked: kernels with cooperative groups and class templates."""

from __future__ import annotations

from typing import Any

import numpy as np

from tools.cuda_corpus.spec import (
    FAST,
    FUSED,
    MATH,
    Array,
    Holds,
    Norm,
    NumPy,
    Printed,
    Share,
    Trial,
    filled,
    given,
    integers,
    made,
    reals,
    result,
    words,
)
from tools.cuda_corpus.trials.concepts import (
    CELLS,
    COUNT,
    PARTICLE_CONSTANTS,
    PARTICLES,
    PARTICLES_UNIT,
    sorted_particles,
)

SAMPLES = "cuda-samples/Samples"
INTRODUCTION = f"{SAMPLES}/0_Introduction"
CONCEPTS = f"{SAMPLES}/2_Concepts_and_Techniques"
FEATURES = f"{SAMPLES}/3_CUDA_Features"
DOMAIN = f"{SAMPLES}/5_Domain_Specific"
TRANSPOSE = f"{SAMPLES}/6_Performance/transpose/transpose.cu"
DEVICES = "it waits for kernels on other devices"
_u = np.uint32


def _out(*shape: int) -> Array:
    return result(*shape, dtype=np.uint32)


def _counts(*shape: int) -> Array:
    return filled(0, *shape, dtype=np.int32)


# --- sorting -------------------------------------------------------------------------------------


def _halves(rng: np.random.Generator) -> NumPy:
    """Two sorted sequences of 1024 keys."""
    return np.sort(rng.integers(0, 1 << 32, (2, 1024)), axis=1).astype(np.uint32)


_LIMITS = given(np.arange(16) * 64, np.uint32)
_PAIRS = (_out(2048), _out(2048), words(2048), words(2048))


def _merge(file: str, kernel: str) -> Trial:
    """Sixteen pieces, each of 64 keys of both halves."""
    return Trial(
        f"{INTRODUCTION}/mergeSort/{file}", kernel, grid=16, block=128, template=(_u(1),),
        arguments=(
            _out(2048), _out(2048), made(_halves), words(2048), _LIMITS, _LIMITS, _u(1024),
            _u(2048),
        ),
    )  # fmt: skip


def _sorting(file: str, kernel: str, *sizes: int, template: tuple[Any, ...] = ()) -> Trial:
    return Trial(
        file, kernel, grid=2, block=512, arguments=(*_PAIRS, *map(_u, sizes)), template=template
    )


_SORTING = (
    _sorting(f"{INTRODUCTION}/mergeSort/bitonic.cu", "bitonicSortSharedKernel", 1024, 1),
    _merge("bitonic.cu", "bitonicMergeElementaryIntervalsKernel"),
    _sorting(
        f"{INTRODUCTION}/mergeSort/mergeSort.cu", "mergeSortSharedKernel", 1024, template=(_u(1),)
    ),
    _merge("mergeSort.cu", "mergeElementaryIntervalsKernel"),
    *(
        _sorting(f"{CONCEPTS}/sortingNetworks/{file}.cu", kernel, *sizes)
        for file, kernel, sizes in (
            ("bitonicSort", "bitonicSortShared", (1024, 1)),
            ("bitonicSort", "bitonicSortShared1", ()),
            ("bitonicSort", "bitonicMergeShared", (2048, 2048, 1)),
            ("oddEvenMergeSort", "oddEvenMergeSortShared", (1024, 1)),
        )
    ),
    Trial(
        f"{FEATURES}/cdpAdvancedQuicksort/cdpBitonicSort.cu", "bitonicsort", block=256,
        arguments=(words(256), _out(256), _u(0), _u(200)),
    ),
)  # fmt: skip

# --- sums ----------------------------------------------------------------------------------------

_REDUCTION = f"{CONCEPTS}/reduction/reduction_kernel.cu"
_FENCES = f"{CONCEPTS}/threadFenceReduction"
_GRAPHS = f"{FEATURES}/simpleCudaGraphs/simpleCudaGraphs.cu"
_ROWS = 512


def _sum(kernel: str, *template: Any, grid: int = 4) -> Trial:
    """Of 1000 floats, or integers."""
    whole = template[0] is np.int32
    data = integers(1000) if whole else reals(1000)
    return Trial(
        _REDUCTION, kernel, grid=grid, block=256, shared=1024, template=template, agreement=FUSED,
        arguments=(data, result(grid, dtype=template[0]), _u(1000)),
    )  # fmt: skip


def _fenced(kernel: str) -> Trial:
    return Trial(
        f"{_FENCES}/threadFenceReduction_kernel.cuh", kernel, grid=4, block=128, shared=512,
        unit=f"{_FENCES}/threadFenceReduction.cu", template=(128, False), agreement=FUSED,
        arguments=(reals(1000), result(4), _u(1000)),
    )  # fmt: skip


def _inside(folder: str) -> Trial:
    """Points within a quarter of a circle."""
    return Trial(
        f"{CONCEPTS}/{folder}/src/piestimator.cu", "computeValue", grid=4, block=128, shared=512,
        strip=True, template=(np.float32,), arguments=(_out(4), reals(2, 1000, low=0), _u(1000)),
    )  # fmt: skip


def _dominant(rng: np.random.Generator) -> NumPy:
    matrix = rng.uniform(-1, 1, (_ROWS, _ROWS)) + _ROWS * np.eye(_ROWS)
    return matrix.astype(np.float32)


_OPTION = np.dtype([
    *((name, "f4") for name in ("spot", "strike", "r", "sigma", "tenor", "dt", "golden", "value")),
    ("type", "i4"),
])  # fmt: skip
_CALL = np.array([(40, 35, 0.03, 0.2, 1 / 3, 1 / 261, 0, 0, 0)], _OPTION)
_NO_CURAND = """typedef int curandState;
__device__ void curand_init(unsigned, unsigned, unsigned, curandState *) {}
__device__ float curand_normal(curandState *) { return 0; }
__device__ double curand_normal_double(curandState *) { return 0; }
"""

_SUMS = (
    *(_sum(f"reduce{number}", np.int32) for number in range(3)),
    *(_sum(f"reduce{number}", np.float32) for number in range(3)),
    _sum("reduce3", np.float32, grid=2),
    *(_sum(f"reduce{number}", np.float32, 256, grid=2) for number in (4, 5)),
    _sum("reduce6", np.float32, 256, False, grid=2),
    # Of integers, for with floats it reads from threads that do not take part.
    _sum("reduce7", np.int32, 256, False, grid=2),
    _sum("cg_reduce", np.float32),
    _sum("multi_warp_cg_reduce", np.float32, 256, 64, grid=2),
    Trial(
        f"{CONCEPTS}/reductionMultiBlockCG/reductionMultiBlockCG.cu",
        "reduceSinglePassMultiBlockCG", grid=4, block=128, shared=1024, agreement=FUSED,
        arguments=(reals(1000), result(4), _u(1000)), cooperative=True,
    ),
    _fenced("reduceMultiPass"),
    _fenced("reduceSinglePass"),
    _inside("MC_EstimatePiP"),
    _inside("MC_EstimatePiQ"),
    Trial(
        f"{CONCEPTS}/MC_SingleAsianOptionP/src/pricingengine.cu", "computeValue", grid=4,
        block=128, shared=512, strip=True, template=(np.float32,), agreement=FUSED,
        prelude=_NO_CURAND,
        arguments=(
            result(4), reals(10, 500, low=0.8, high=1.2), made(lambda _: _CALL), _u(500), _u(10),
        ),
    ),
    Trial(
        f"{CONCEPTS}/scalarProd/scalarProd_kernel.cuh", "scalarProdGPU", grid=4, block=256,
        unit=f"{CONCEPTS}/scalarProd/scalarProd.cu", agreement=FUSED,
        arguments=(result(5), reals(5, 2000), reals(5, 2000), 5, 2000),
    ),
    Trial(
        f"{INTRODUCTION}/simpleHyperQ/simpleHyperQ.cu", "sum", block=32,
        arguments=(integers(64, dtype=np.int64, output=True), 64),
    ),
    Trial(
        _GRAPHS, "reduce", grid=4, block=512, agreement=FUSED,
        arguments=(
            reals(5000), result(4, dtype=np.float64), np.uint64(5000), np.uint64(4),
        ),
    ),
    Trial(
        _GRAPHS, "reduceFinal", block=512, agreement=FUSED,
        arguments=(reals(900, dtype=np.float64), result(1, dtype=np.float64), np.uint64(900)),
    ),
    Trial(
        f"{FEATURES}/jacobiCudaGraphs/jacobi.cu", "JacobiMethod", grid=64, block=256,
        agreement=FUSED,
        arguments=(
            made(_dominant), reals(_ROWS, dtype=np.float64), 1e-4, reals(_ROWS, dtype=np.float64),
            result(_ROWS, dtype=np.float64), filled(0, 1, dtype=np.float64),
        ),
    ),
    Trial(
        f"{FEATURES}/jacobiCudaGraphs/jacobi.cu", "finalError", grid=2, block=256, shared=72,
        agreement=FUSED, arguments=(reals(_ROWS, dtype=np.float64), filled(0, 1, dtype=np.float64)),
    ),
    Trial(
        f"{FEATURES}/binaryPartitionCG/binaryPartitionCG.cu", "oddEvenCountAndSumCG", grid=2,
        block=128, arguments=(integers(1024, high=50), _counts(1), _counts(2), _u(1024)),
    ),
    Trial(
        f"{INTRODUCTION}/simpleCooperativeGroups/simpleCooperativeGroups.cu", "cgkernel", block=64,
        shared=256, agreement=Printed(),
    ),
)  # fmt: skip

# --- scans, histograms, aggregated atomics -------------------------------------------------------

_SCAN = f"{CONCEPTS}/scan/scan.cu"
_AGGREGATED = f"{FEATURES}/warpAggregatedAtomicsCG/warpAggregatedAtomicsCG.cu"
_BUCKETS = 5
_MIXED = np.random.default_rng(1).integers(-50, 50, 1000, np.int32)
_LABELS = np.random.default_rng(2).integers(0, _BUCKETS, 1000, np.int32)


def _filtered(outputs: list[NumPy]) -> bool:
    kept, count = outputs
    expected = np.sort(_MIXED[:999][_MIXED[:999] > 0])
    return int(count[0]) == expected.size and bool(
        (np.sort(kept[: expected.size]) == expected).all() and not kept[expected.size :].any()
    )


def _in_buckets(outputs: list[NumPy]) -> bool:
    indices, ends = outputs
    return all(
        np.array_equal(
            np.sort(indices[bucket * 1000 : ends[bucket]]), np.flatnonzero(bucket == _LABELS)
        )
        for bucket in range(_BUCKETS)
    )


def _hashes(_: np.random.Generator) -> NumPy:
    """Sorted hashes of particles."""
    _, start, end = sorted_particles()
    lengths = np.where(start == 0xFFFFFFFF, 0, end.astype(np.int64) - start)
    return np.repeat(np.arange(CELLS**3), lengths).astype(np.uint32)


_COUNTING = (
    Trial(
        _SCAN, "scanExclusiveShared", grid=2, block=256,
        arguments=(_out(2048), integers(2048, dtype=np.uint32), _u(1024)),
    ),
    Trial(
        _SCAN, "scanExclusiveShared2", block=256,
        arguments=(
            _out(8), integers(8, 1024, dtype=np.uint32), integers(8, 1024, dtype=np.uint32), _u(8),
            _u(8),
        ),
    ),
    Trial(
        _SCAN, "uniformUpdate", grid=2, block=256,
        arguments=(integers(2048, dtype=np.uint32, output=True), integers(2, dtype=np.uint32)),
    ),
    Trial(
        f"{CONCEPTS}/shfl_scan/shfl_integral_image.cuh", "shfl_intimage_rows", grid=4, block=128,
        unit=f"{CONCEPTS}/shfl_scan/shfl_scan.cu", arguments=(words(4, 512), _out(4, 2048)),
    ),
    Trial(
        f"{CONCEPTS}/histogram/histogram256.cu", "histogram256Kernel", grid=2, block=192,
        arguments=(_out(2, 256), words(5000), _u(5000)),
    ),
    Trial(
        f"{CONCEPTS}/histogram/histogram256.cu", "mergeHistogram256Kernel", grid=256, block=256,
        arguments=(_out(256), integers(10, 256, dtype=np.uint32), _u(10)),
    ),
    Trial(
        f"{CONCEPTS}/histogram/histogram64.cu", "histogram64Kernel", grid=4, block=64,
        arguments=(_out(4, 64), words(1000, 4), _u(1000)),
    ),
    Trial(
        f"{CONCEPTS}/histogram/histogram64.cu", "mergeHistogram64Kernel", grid=64, block=256,
        arguments=(_out(64), integers(10, 64, dtype=np.uint32), _u(10)),
    ),
    Trial(
        PARTICLES, "reorderDataAndFindCellStartD", grid=2, block=256, shared=1028,
        unit=PARTICLES_UNIT, constants=PARTICLE_CONSTANTS,
        arguments=(
            filled(0xFFFFFFFF, CELLS**3, dtype=np.uint32),
            filled(0xFFFFFFFF, CELLS**3, dtype=np.uint32), result(COUNT, 4), result(COUNT, 4),
            made(_hashes), made(lambda rng: rng.permutation(COUNT).astype(np.uint32)),
            reals(COUNT, 4), reals(COUNT, 4), _u(COUNT),
        ),
    ),
    Trial(
        _AGGREGATED, "filter_arr", grid=2, block=128,
        arguments=(_counts(1000), _counts(1), given(_MIXED), 999),
        agreement=Holds(_filtered, "all that is positive is kept, in any order"),
    ),
    Trial(
        _AGGREGATED, "mapToBuckets", grid=2, block=128,
        arguments=(
            given(_LABELS), _counts(_BUCKETS * 1000),
            given(np.arange(_BUCKETS) * 1000, output=True), 1000, _BUCKETS,
        ),
        agreement=Holds(_in_buckets, "each bucket has its elements, in any order"),
    ),
    Trial(
        _AGGREGATED, "calculateMaxInEachBuckets", grid=2, block=128,
        arguments=(
            integers(1000, high=_BUCKETS), integers(1000), _counts(_BUCKETS), 1000, _BUCKETS,
        ),
    ),
)  # fmt: skip

# --- matrices, images, transforms ----------------------------------------------------------------

_DCT = f"{CONCEPTS}/dct8x8"
_CONVOLUTION = f"{CONCEPTS}/convolutionSeparable/convolutionSeparable.cu"
_EIGENVALUES = f"{CONCEPTS}/eigenvalues"
_SIZE = 48
_OPTIONS = np.dtype([(name, "f4") for name in ("S", "X", "vDt", "puByDf", "pdByDf")])


def _product(tile: int) -> Trial:
    return Trial(
        f"{INTRODUCTION}/matrixMul_nvrtc/matrixMul_kernel.cu", f"matrixMulCUDA_block{tile}",
        grid=(96 // tile, 64 // tile), block=(tile, tile), agreement=FUSED,
        arguments=(result(64, 96), reals(64, 64), reals(64, 96), 64, 96),
    )  # fmt: skip


def _shorts(kernel: str, file: str, grid: tuple[int, int], block: tuple[int, ...]) -> Trial:
    return Trial(
        f"{_DCT}/{file}.cuh", kernel, grid=grid, block=block, unit=f"{_DCT}/dct8x8.cu",
        arguments=(integers(32, 32, low=-500, high=500, dtype=np.int16, output=True), 32),
    )  # fmt: skip


def _price_inputs(rng: np.random.Generator) -> NumPy:
    options = np.zeros(1024, _OPTIONS)
    options["S"], options["X"] = rng.uniform(5, 30, 1024), rng.uniform(1, 100, 1024)
    options["vDt"], options["puByDf"], options["pdByDf"] = 0.0125, 0.5009, 0.4988
    return options


# A matrix with ones beside its diagonal; the first of `beside` is not of it.
_DIAGONAL = made(lambda _: np.linspace(-3, 4, _SIZE).astype(np.float32))
_BESIDE = made(lambda _: np.where(np.arange(_SIZE) == 0, 0, 1).astype(np.float32))


def _intervals(side: int) -> NumPy:
    """Where between two eigenvalues intervals begin (0) or end (1)."""
    matrix = np.diag(np.linspace(-3, 4, _SIZE)) + np.eye(_SIZE, k=1) + np.eye(_SIZE, k=-1)
    values = np.linalg.eigvalsh(matrix)
    middles = np.concatenate([[-6], (values[1:] + values[:-1]) / 2, [7]])
    return middles[side : side + _SIZE].astype(np.float32)


# Four on the diagonal, and -1 beside it, in rows.
_EQUATIONS = 100
_PLACES = [(i, j) for i in range(_EQUATIONS) for j in (i - 1, i, i + 1) if 0 <= j < _EQUATIONS]
_ROW_STARTS = np.searchsorted([i for i, _ in _PLACES], range(_EQUATIONS + 1))
_COLUMN_INDICES = [j for _, j in _PLACES]
_ELEMENTS = [4.0 if i == j else -1.0 for i, j in _PLACES]
_SOLVED = Norm(1e-4, "the last step of the iteration is as small as its tolerance")

_DENSE = (
    _product(16),
    _product(32),
    Trial(
        _CONVOLUTION, "convolutionRowsKernel", grid=(1, 16), block=(16, 4), agreement=FUSED,
        constants={"c_Kernel": reals(17)},
        arguments=(result(64, 128), reals(64, 128), 128, 64, 128),
    ),
    Trial(
        _CONVOLUTION, "convolutionColumnsKernel", grid=(8, 1), block=(16, 8), agreement=FUSED,
        constants={"c_Kernel": reals(17)},
        arguments=(result(64, 128), reals(64, 128), 128, 64, 128),
    ),
    *(
        Trial(
            f"{_DCT}/dct8x8_kernel2.cuh", kernel, grid=(2, 2), block=(8, 4, 2),
            unit=f"{_DCT}/dct8x8.cu", agreement=FUSED,
            arguments=(result(32, 64), reals(32, 64, low=-128, high=128), 64),
        )
        for kernel in ("CUDAkernel2DCT", "CUDAkernel2IDCT")
    ),
    _shorts("CUDAkernelQuantizationShort", "dct8x8_kernel_quantization", (4, 4), (8, 8)),
    _shorts("CUDAkernelShortDCT", "dct8x8_kernel_short", (1, 1), (8, 4, 4)),
    _shorts("CUDAkernelShortIDCT", "dct8x8_kernel_short", (1, 1), (8, 4, 4)),
    Trial(
        f"{_EIGENVALUES}/bisect_kernel_small.cuh", "bisectKernel", block=512,
        unit=f"{_EIGENVALUES}/bisect_small.cu", agreement=FUSED,
        arguments=(
            _DIAGONAL, _BESIDE, _u(_SIZE), result(_SIZE), result(_SIZE), _out(_SIZE), _out(_SIZE),
            -6.0, 7.0, _u(0), _u(_SIZE), 1e-5,
        ),
    ),
    Trial(
        f"{_EIGENVALUES}/bisect_kernel_large_onei.cuh", "bisectKernelLarge_OneIntervals",
        block=256, unit=f"{_EIGENVALUES}/bisect_large.cu", agreement=FUSED,
        arguments=(
            _DIAGONAL, _BESIDE, _u(_SIZE), _u(_SIZE), made(lambda _: _intervals(0), output=True),
            made(lambda _: _intervals(1), output=True),
            given(np.arange(1, _SIZE + 1), np.uint32, output=True), 1e-5,
        ),
    ),
    Trial(
        f"{DOMAIN}/FDTD3d/inc/FDTD3dGPUKernel.cuh", "FiniteDifferencesKernel", block=(32, 16),
        unit=f"{DOMAIN}/FDTD3d/src/FDTD3dGPU.cu", agreement=FUSED,
        constants={"stencil": reals(5)},
        arguments=(result(13, 24, 40), reals(13, 24, 40), 32, 16, 5),
    ),
    Trial(
        f"{DOMAIN}/HSOpticalFlow/solverKernel.cuh", "JacobiIteration", grid=(2, 3), block=(32, 6),
        unit=f"{DOMAIN}/HSOpticalFlow/flowCUDA.cu", template=(32, 6), agreement=FUSED,
        arguments=(
            *(reals(16, 64) for _ in range(5)), 60, 16, 64, 0.5, result(16, 64), result(16, 64),
        ),
    ),
    Trial(
        f"{DOMAIN}/SobolQRNG/sobol_gpu.cu", "sobolGPU_kernel", grid=(2, 3), block=64,
        arguments=(_u(1000), _u(3), words(3, 32), result(3, 1000)),
    ),
    Trial(
        f"{DOMAIN}/binomialOptions/binomialOptions_kernel.cu", "binomialOptionsKernel", grid=4,
        block=128, constants={"d_OptionData": made(_price_inputs)}, agreement=FAST,
        read_back={"d_CallValue": (np.float32, (1024,))},
    ),
    Trial(
        f"{DOMAIN}/dwtHaar1D/dwtHaar1D_kernel.cuh", "initValue", grid=2, block=64,
        unit=f"{DOMAIN}/dwtHaar1D/dwtHaar1D.cu", arguments=(result(128), 2.5),
    ),
    Trial(
        f"{DOMAIN}/dwtHaar1D/dwtHaar1D_kernel.cuh", "dwtHaar1D", grid=2, block=64, shared=2048,
        unit=f"{DOMAIN}/dwtHaar1D/dwtHaar1D.cu", agreement=FUSED,
        arguments=(reals(256), result(256), result(2), _u(4), _u(128), 64),
    ),
    Trial(
        f"{DOMAIN}/dxtc/dxtc.cu", "compress", grid=4, block=64,
        arguments=(words(1024), words(4, 16), _out(4, 2), 0),
        agreement=Share(0.25, "the best of near equals differs with how products are fused"),
    ),
    Trial(
        f"{DOMAIN}/fastWalshTransform/fastWalshTransform_kernel.cuh", "fwtBatch1Kernel", grid=2,
        block=256, shared=4096, unit=f"{DOMAIN}/fastWalshTransform/fastWalshTransform.cu",
        arguments=(result(2, 1024), reals(2, 1024), 10),
    ),
    *(
        Trial(
            file, "integrateBodies", grid=2, block=256, shared=4096, strip=True,
            template=(np.float32,), agreement=Norm(1e-4, MATH.why),
            constants={"softeningSquared": made(lambda _: np.array(0.00125, np.float32))},
            arguments=(
                result(512, 4), reals(512, 4), reals(512, 4, output=True), _u(0), _u(512), 0.016,
                0.995, 2,
            ),
        )
        for file in (
            f"{DOMAIN}/nbody/bodysystemcuda.cu",
            f"{SAMPLES}/8_Platform_Specific/Tegra/nbody_opengles/bodysystemcuda.cu",
        )
    ),
    Trial(
        f"{DOMAIN}/recursiveGaussian/recursiveGaussian_kernel.cuh", "d_transpose", grid=(3, 3),
        block=(16, 16), unit=f"{DOMAIN}/recursiveGaussian/recursiveGaussian_cuda.cu",
        arguments=(_out(48, 40), words(40, 48), 48, 40),
    ),
    *(
        Trial(
            TRANSPOSE, kernel, grid=(2, 2), block=(32, 16),
            arguments=(result(64, 64), reals(64, 64), 64, 64),
        )
        for kernel in (
            "copySharedMem", "transposeCoalesced", "transposeNoBankConflicts", "transposeDiagonal",
            "transposeFineGrained", "transposeCoarseGrained",
        )
    ),
    *(
        Trial(
            f"{INTRODUCTION}/simpleTemplates/simpleTemplates.cu", "testKernel", block=32,
            shared=128, template=(dtype,), arguments=(data, result(32, dtype=dtype)),
        )
        for dtype, data in ((np.float32, reals(32)), (np.int32, integers(32)))
    ),
    Trial(
        f"{SAMPLES}/4_CUDA_Libraries/conjugateGradientMultiBlockCG/conjugateGradientMultiBlockCG.cu",
        "gpuConjugateGradient", grid=2, block=64, shared=1024, cooperative=True, agreement=_SOLVED,
        arguments=(
            given(_ROW_STARTS), given(_COLUMN_INDICES), given(_ELEMENTS, np.float32),
            filled(0, _EQUATIONS), filled(0, _EQUATIONS, output=False),
            filled(0, _EQUATIONS, output=False), filled(1, _EQUATIONS, output=False),
            filled(0, 1, dtype=np.float64, output=False), len(_ELEMENTS), _EQUATIONS, 1e-5,
        ),
    ),
    Trial(
        f"{SAMPLES}/4_CUDA_Libraries/conjugateGradientMultiDeviceCG/"
        "conjugateGradientMultiDeviceCG.cu",
        "multiGpuConjugateGradient", impossible=DEVICES,
    ),
)  # fmt: skip

TRIALS = (*_SORTING, *_SUMS, *_COUNTING, *_DENSE)
