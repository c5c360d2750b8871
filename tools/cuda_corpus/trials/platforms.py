"""NVIDIA's samples: 8_Platform_Specific."""

from __future__ import annotations

import numpy as np

from tools.cuda_corpus.spec import Trial, result
from tools.cuda_corpus.trials.domain import fluids, waves

FOLDER = "cuda-samples/Samples/8_Platform_Specific/Tegra"

TRIALS = (
    Trial(
        f"{FOLDER}/EGLSync_CUDAEvent_Interop/EGLSync_CUDAEvent_Interop.cu", "getNumErrors",
        arguments=(result(1, dtype=np.int32),),
    ),
    *fluids(f"{FOLDER}/fluidsGLES/fluidsGLES_kernels.cu"),
    waves(f"{FOLDER}/simpleGLES/simpleGLES.cu"),
    waves(f"{FOLDER}/simpleGLES_EGLOutput/simpleGLES_EGLOutput.cu", strip=True),
)  # fmt: skip
