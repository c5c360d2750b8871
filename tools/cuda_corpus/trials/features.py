"""NVIDIA's samples: 3_CUDA_Features, 4_CUDA_Libraries, 6_Performance."""

from __future__ import annotations

import numpy as np

from tools.cuda_corpus.spec import (
    FUSED,
    Fields,
    Levels,
    Norm,
    Printed,
    Record,
    Trial,
    filled,
    given,
    integers,
    reals,
    result,
    words,
)

FEATURES = "cuda-samples/Samples/3_CUDA_Features"
LIBRARIES = "cuda-samples/Samples/4_CUDA_Libraries"
PERFORMANCE = "cuda-samples/Samples/6_Performance"
COMPLEX = "typedef float2 cufftComplex; typedef int cufftHandle;"
_ASYNC = f"{FEATURES}/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu"
_GRAPHS = f"{FEATURES}/graphConditionalNodes/graphConditionalNodes.cu"
_NODES = f"{FEATURES}/graphMemoryNodes/graphMemoryNodes.cu"
_GRADIENT = f"{LIBRARIES}/conjugateGradientCudaGraphs/conjugateGradientCudaGraphs.cu"
_OCEAN = f"{LIBRARIES}/oceanFFT/oceanFFT_kernel.cu"
_PARAMETERS = f"{PERFORMANCE}/LargeKernelParameter/LargeKernelParameter.cu"
_SCALING = f"{PERFORMANCE}/cudaGraphsPerfScaling/cudaGraphPerfScaling.cu"
_TRANSPOSE = f"{PERFORMANCE}/transpose/transpose.cu"
_TICKS = np.int64(1000)
_QUOTIENT = Norm(3e-7, "a quotient of WGSL is within 2.5 units in the last place")
_SPECTRUM = Norm(1e-4, "sines of large angles, which differ with how products are fused")
_SQUARES = Fields(
    {
        "input": None, "square": None, "negSquare": reals(1000), "numElements": 999,
        "bytes": np.uint64(4000), "numBlocks": np.uint64(4),
    }
)  # fmt: skip

_FEATURES = (
    Trial(
        f"{FEATURES}/StreamPriorities/StreamPriorities.cu", "memcpy_kernel", grid=2, block=128,
        arguments=(result(1001, dtype=np.int32), integers(1001), np.uint64(4000)),
    ),
    Trial(
        f"{FEATURES}/cdpBezierTessellation/BezierLineCDP.cu", "computeBezierLinePositions",
        impossible="not launched: the lines are structs in memory with pointers to more memory",
    ),
    *(
        Trial(
            f"{FEATURES}/{file}", kernel,
            impossible="not launched: CUDA's own code has to be linked with its device runtime",
        )
        for file, kernel in (
            ("cdpBezierTessellation/BezierLineCDP.cu", "computeBezierLinesCDP"),
            ("cdpBezierTessellation/BezierLineCDP.cu", "freeVertexMem"),
            ("cdpSimplePrint/cdpSimplePrint.cu", "cdp_kernel"),
            ("cdpSimpleQuicksort/cdpSimpleQuicksort.cu", "cdp_simple_quicksort"),
        )
    ),
    Trial(
        f"{FEATURES}/cudaCompressibleMemory/saxpy.cu", "saxpy", grid=2, block=128,
        arguments=(2.5, reals(1000, 4), reals(1000, 4), result(1000, 4), np.uint64(999)),
        agreement=FUSED,
    ),
    Trial(
        f"{FEATURES}/cudaCompressibleMemory/saxpy.cu", "init", grid=2, block=128,
        arguments=(result(1000, 4), result(1000, 4), 1.5, np.uint64(999)),
    ),
    *(
        Trial(
            _ASYNC, kernel, grid=(4, 4), block=(16, 16), template=(16,), agreement=FUSED,
            arguments=(result(64, 64), reals(64, 64), reals(64, 64), 64, 64),
        )
        for kernel in ("MatrixMulNaive", "MatrixMulNaiveLargeChunk")
    ),
    *(
        Trial(_GRAPHS, kernel, block=3, agreement=Printed())
        for kernel in (
            "ifGraphKernelC", "doWhileEmptyKernel", "capturedWhileEmptyKernel", "ifGraphKernelD",
            "switchGraphKernelC", "switchGraphKernelD", "switchGraphKernelE", "switchGraphKernelF",
        )
    ),
    Trial(
        f"{FEATURES}/graphMemoryFootprint/graphMemoryFootprint.cu", "clockBlock",
        arguments=(_TICKS,),
    ),
    *(
        Trial(_NODES, kernel, grid=4, block=256, arguments=(reals(1000), result(1000), 999))
        for kernel in ("squareArray", "negateArray")
    ),
    Trial(
        _NODES, "validateGPU", grid=4, block=256,
        arguments=(reals(1000), _SQUARES, filled(False, 1, dtype=np.bool_)),
    ),
    Trial(
        f"{FEATURES}/memMapIPCDrv/memMapIpc_kernel.cu", "memMapIpc_kernel", grid=2, block=128,
        arguments=(result(1000, dtype=np.int8), 999, np.int8(3)),
    ),
    Trial(
        f"{FEATURES}/ptxjit/ptxjit_kernel.cu", "myKernel", grid=2, block=32,
        arguments=(result(64, dtype=np.int32),),
    ),
)  # fmt: skip

_LIBRARIES = (
    Trial(
        _GRADIENT, "initVectors", grid=2, block=128, strip=True,
        arguments=(result(1000), result(1000), 999),
    ),
    Trial(
        _GRADIENT, "r1_div_x", strip=True,
        arguments=(given([3.0], "f4"), given([7.0], "f4"), result(1)), agreement=_QUOTIENT,
    ),
    Trial(_GRADIENT, "a_minus", strip=True, arguments=(given([3.0], "f4"), result(1))),
    Trial(
        f"{LIBRARIES}/cudaNvSci/imageKernels.cu", "rgbToGrayscaleKernel", grid=2, block=128,
        arguments=(words(24, 32, output=True), np.uint64(32), np.uint64(24)),
        agreement=Levels(1, "grays are rounded down from doubles"),
    ),
    Trial(
        f"{LIBRARIES}/lineOfSight/lineOfSight.cu", "computeVisibilities_kernel", grid=4, block=256,
        arguments=(reals(1000), reals(1000), 999, result(1000, dtype=np.uint8)),
    ),
    Trial(
        _OCEAN, "generateSpectrumKernel", grid=(4, 4), block=(8, 8), strip=True,
        arguments=(
            reals(36 * 36, 2), result(32 * 32, 2), np.uint32(36), np.uint32(32), np.uint32(32), 0.5,
            100.0,
        ),
        agreement=_SPECTRUM,
    ),
    *(
        Trial(
            _OCEAN, kernel, grid=(4, 4), block=(8, 8), strip=True,
            arguments=(result(32, 32), reals(32 * 32, 2), np.uint32(32)),
        )
        for kernel in ("updateHeightmapKernel", "updateHeightmapKernel_y")
    ),
    Trial(
        _OCEAN, "calculateSlopeKernel", grid=(4, 4), block=(8, 8), strip=True,
        arguments=(reals(32, 32), result(32 * 32, 2), np.uint32(32), np.uint32(32)),
    ),
    Trial(
        f"{LIBRARIES}/simpleCUFFT/simpleCUFFT.cu", "ComplexPointwiseMulAndScale", grid=2, block=128,
        strip=True, arguments=(reals(1000, 2, output=True), reals(1000, 2), 999, 0.001),
        agreement=FUSED,
    ),
)  # fmt: skip

_FEW, _MANY = np.dtype([("param", "i4", 1024)]), np.dtype([("param", "i4", 8000)])

_PERFORMANCE = (
    Trial(
        _PARAMETERS, "kernelDefault", constants={"excess_params": integers(6976)},
        arguments=(Record(_FEW, (np.arange(1024),)), result(1, dtype=np.int32)),
    ),
    Trial(
        _PARAMETERS, "kernelLargeParam",
        arguments=(Record(_MANY, (np.arange(8000),)), result(1, dtype=np.int32)),
    ),
    Trial(
        f"{PERFORMANCE}/UnifiedMemoryPerf/commonKernels.cu", "spinWhileLessThanOne",
        arguments=(filled(1, 1, dtype=np.uint32),),
    ),
    Trial(
        f"{PERFORMANCE}/UnifiedMemoryPerf/matrixMultiplyPerf.cu", "matrixMultiplyKernel",
        grid=(2, 2), block=(32, 32), agreement=FUSED,
        arguments=(result(64, 64), reals(64, 64), reals(64, 64), np.uint32(64)),
    ),
    Trial(
        f"{PERFORMANCE}/alignedTypes/alignedTypes.cu", "testKernel", grid=2, block=128,
        template=(np.uint16,),
        arguments=(
            result(1000, dtype=np.uint16), integers(1000, high=1 << 16, dtype=np.uint16), 999,
        ),
    ),
    *(
        Trial(_SCALING, kernel, grid=2, block=32)
        for kernel in ("empty", "preUploadAnnotation", "postUploadAnnotation")
    ),
    Trial(_SCALING, "delay", arguments=(_TICKS,)),
    *(
        Trial(
            _TRANSPOSE, kernel, grid=(2, 3), block=(32, 16),
            arguments=(result(96, 64), reals(96, 64), 64, 96),
        )
        for kernel in ("copy", "transposeNaive")
    ),
)  # fmt: skip

TRIALS = (*_FEATURES, *_LIBRARIES, *_PERFORMANCE)
