"""From a `Program` to its launches and to the IR of each launch's kernel.

`body` prints a program's steps at one point of the loops. Each kind of program has a strategy,
which says how sizes are divided among threads, and prints the kernels of the strategy's stages:

- `maps`: every point by itself.
- rows: `row_analysis` says what each pass over a row computes, `row_strategy` plans the launches,
  `row_kernels` prints the passes in terms of a `row_walk`, which `row_loops` implements for CPUs
  and `row_blocks` for GPUs. `combine` has the states of reductions.
- `products`: the library's product of matrices with the program as its epilogue.
"""
