"""Public CUDA kernels, tried: what of them parses, compiles, runs, and agrees with CUDA.

    python -m tools.cuda_corpus check   --sources DIR                that every kernel is listed
    python -m tools.cuda_corpus cubins  --sources DIR --out CUBINS   CUDA's own machine code (nvcc)
    python -m tools.cuda_corpus compare --sources DIR --cubins CUBINS --devices cuda,webgpu,cpu
    python -m tools.cuda_corpus accept  --sources DIR [DIR…] --out FOLDER    any other projects
    python -m tools.cuda_corpus page                                 docs/cuda_corpus.md

DIR holds checkouts of NVIDIA/cuda-samples, karpathy/llm.c, cavazos-lab/PolyBench-ACC and
yuhc/gpu-rodinia, in folders of the repositories' names. Nothing of them is kept here: a trial names
a file and a kernel, and says how inputs are made.
"""
